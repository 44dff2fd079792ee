"""What an import does with captured forms: propose, add, or place what waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from keyhole.cli import lists
from keyhole.cli.output import tell_written
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.environment.adding.decisions import Decision
    from keyhole.environment.model import CapturedForm, Environment
    from keyhole.results import Result

__all__ = ["Wanted", "follow"]

Followed = tuple["Result", "Environment", str]
"""What is told, the environment afterwards, and the note for the history."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done with captured forms."""

    as_: str
    stored: bool
    accept: float
    propose: Path | None
    decisions: Path | None
    replace: bool
    force: bool
    source: tuple[str | None, str | None, str | None]

    @property
    def exact_codes(self) -> bool:
        """Whether codings must have the codes of the file."""
        return self.as_ == "target"


def follow(environment: Environment, captured: Sequence[CapturedForm], wanted: Wanted) -> Followed:
    """Do what is wanted, and say what was done."""
    from keyhole.environment.adding.decision_files import read_decision_file

    alone = wanted.propose or wanted.decisions or wanted.as_ != "form"
    if len(captured) != 1 and alone:
        names = f"Got {len(captured)}: choose one with --form."
        raise OptionError(f"one form, source or target is decided on at a time. {names}")
    attributes = _source_attributes(wanted)
    if wanted.propose is not None:
        return _propose(environment, captured[0], wanted), environment, ""
    decided = None if wanted.decisions is None else read_decision_file(wanted.decisions)
    if wanted.stored:
        return _place(environment, captured[0], wanted, decided)
    if wanted.replace:
        environment = _without(environment, captured, wanted.as_)
    elif decided is not None and _is_there(environment, captured[0].form.name, wanted.as_):
        return _placed(environment, captured[0], wanted, decided)
    found, after = _add(environment, captured, wanted, decided, attributes)
    return found, after, "import of " + ", ".join(one.form.name for one in captured)


def _is_there(environment: Environment, name: str, kind: str) -> bool:
    from keyhole.environment.kinds import entities

    return (kind, name) in entities(environment)


def _without(environment: Environment, captured: Sequence[CapturedForm], kind: str) -> Environment:
    from keyhole.environment.removing import without

    for one in captured:
        environment = without(environment, kind, one.form.name)
    return environment


def _propose(environment: Environment, captured: CapturedForm, wanted: Wanted) -> Result:
    """Write the proposals to a file, and return them."""
    from keyhole.core.files import write_whole
    from keyhole.environment.adding.decision_files import proposals_to_toml
    from keyhole.environment.adding.proposals import propose

    assert wanted.propose is not None
    _require_fields(captured)
    found = propose(environment, captured, exact_codes=wanted.exact_codes)
    with write_whole(wanted.propose, force=wanted.force) as temporary:
        temporary.write_text(proposals_to_toml(found), encoding="utf-8")
    tell_written("proposals", wanted.propose)
    return found


def _require_fields(captured: CapturedForm) -> None:
    from keyhole.environment.wording import shown

    if not captured.fields:
        raise OptionError(f"{shown(captured.form.name)} has no field that waits for a decision.")


def _place(
    environment: Environment,
    captured: CapturedForm,
    wanted: Wanted,
    decided: Sequence[Decision] | None,
) -> Followed:
    """Place fields of the store: as decided, or by the proposals that are sure enough."""
    from keyhole.environment.adding.proposals import propose

    if decided is None:
        _require_fields(captured)
        proposals = propose(environment, captured, exact_codes=wanted.exact_codes, preview=False)
        decided = proposals.best(wanted.accept)
        if not decided:
            raise OptionError(
                f"no proposal scores {wanted.accept:g} or more. Lower --accept, or decide: write "
                f"them with --propose FILE.toml, edit it, and give it as --decisions."
            )
    return _placed(environment, captured.form.name, wanted, decided)


def _placed(
    environment: Environment,
    captured: CapturedForm | str,
    wanted: Wanted,
    decided: Sequence[Decision],
) -> Followed:
    from keyhole.environment.adding.adding import place

    found = place(environment, captured, decided, kind=wanted.as_)
    return found, found.environment, f"decisions on {found.name}"


def _add(
    environment: Environment,
    captured: Sequence[CapturedForm],
    wanted: Wanted,
    decided: Sequence[Decision] | None,
    attributes: dict[str, Any],
) -> tuple[Result, Environment]:
    from keyhole.environment.adding.adding import add_form, add_forms, add_source, add_target

    if wanted.as_ == "form" and decided is None:
        batch = add_forms(environment, captured, threshold=wanted.accept)
        return (batch if len(captured) > 1 else batch.additions[0]), batch.environment
    if wanted.as_ == "form":
        added = add_form(environment, captured[0], decided or ())
    elif wanted.as_ == "target":
        added = add_target(environment, captured[0], decisions=decided, threshold=wanted.accept)
    else:
        added = add_source(
            environment, captured[0], decisions=decided, threshold=wanted.accept, **attributes
        )
    return added, added.environment


def _source_attributes(wanted: Wanted) -> dict[str, Any]:
    """Read what is said of a source: its ranks, its type and whom it covers."""
    ranks, typed, coverage = wanted.source
    if wanted.as_ != "source":
        if any(wanted.source):
            raise OptionError("--ranks, --type and --coverage are of a source. Add --as source.")
        return {}
    found: dict[str, Any] = {} if coverage is None else {"coverage": coverage}
    if ranks is not None:
        numbers = [lists.number(n, option="ranks", kind=int) for n in lists.names(ranks, "--ranks")]
        if len(numbers) != 3:
            raise OptionError("--ranks must be three whole numbers: mode, scope and cost.")
        found |= dict(zip(("mode", "scope", "cost"), numbers, strict=True))
    return found | ({} if typed is None else _types(lists.names(typed, "--type")))


def _types(words: Sequence[str]) -> dict[str, str]:
    """Tell by each word which attribute of a source it is."""
    from keyhole.environment.model import Source

    hints = get_type_hints(Source)
    known = {
        word: name
        for name in ("formality", "origin", "compulsion")
        for word in get_args(hints[name])
    }
    unknown = [word for word in words if word not in known]
    if unknown or len({known[word] for word in words if word in known}) < len(words):
        raise OptionError(
            "--type must have one word each of formal or informal; collected, self-disclosed, "
            "observed or secondary; compelled or voluntary. Got others instead."
        )
    return {known[word]: word for word in words}
