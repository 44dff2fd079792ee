"""``keyhole environment import``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.environment.common import (
    Classes,
    Purpose,
    Sector,
    StorePlace,
    Who,
    classes,
    tell_store,
    user,
)
from keyhole.cli.output import Outputs, tell_written
from keyhole.cli.progress import working
from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.environment.model import CapturedForm, Environment
    from keyhole.results import Result

__all__ = ["import_"]

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        show_default=False,
        help="Forms: JSON Schema, a REDCap dictionary, XLSForm, DDI, labels of SPSS, Stata or "
        "SAS, SDMX, or a table of keyhole's own layout. A target: the file that may go out.",
    ),
]
As = Annotated[
    Literal["form", "source", "target"],
    typer.Option("--as", help="What the files are.", metavar="form|source|target"),
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="json schema, redcap, xlsform, ddi, labels, sdmx or table; found out if left out.",
    ),
]
Organisation = Annotated[str | None, typer.Option(metavar="O", help="Who collects.")]
Collected = Annotated[str | None, typer.Option(metavar="DAY", help="When, as 2024-05-31.")]
Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="LABELS.csv", help="Labels of a target's columns: name, label, code, category."
    ),
]
Accept = Annotated[
    float,
    opt.number("accept", "S", "Proposals of this score or more are taken; the others wait."),
]
Decisions = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml", help="What a person decided on the fields of one form, instead."
    ),
]
Propose = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help="Write the proposals for one form to a file to be edited and given as --decisions; "
        "nothing is kept.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would be done; nothing is kept.")
]
Ranks = Annotated[
    str | None,
    typer.Option(
        metavar="M,S,C", help="Of a source: the ranks of mode (1-4), scope and cost (1-3)."
    ),
]


def import_(
    store: StorePlace,
    files: Files,
    as_: As = "form",
    kind: Kind = None,
    organisation: Organisation = None,
    sector: Sector = None,
    purpose: Purpose = None,
    class_: Classes = None,
    collected: Collected = None,
    ranks: Ranks = None,
    labels: Labels = None,
    accept: Accept = 0.8,
    propose: Propose = None,
    decisions: Decisions = None,
    dry_run: DryRun = False,
    who: Who = None,
    encoding: opt.Encoding = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Add forms, a public source or a target: propose where each field belongs, and say why.

    Fields whose best proposal scores lower than asked are kept without a coding and listed;
    nothing is merged without being said.
    """
    _require_together(propose, decisions)
    with working("Importing"):
        from keyhole.environment.adding.decision_files import read_decision_file
        from keyhole.environment.store import open_store

        given = {
            "organisation": organisation, "sector": sector, "purpose": purpose,
            "collected": collected, "classifications": classes(class_) or None,
        }  # fmt: skip
        attributes = {name: value for name, value in given.items() if value is not None}
        captured = _captured(files, as_, kind, labels, encoding, attributes)
        opened = open_store(store, create=True)
        snapshot = opened.read()
        if len(captured) != 1 and (propose or decisions or as_ != "form"):
            raise OptionError("one form, source or target is decided on at a time. Give one file.")
        decided = None if decisions is None else read_decision_file(decisions)
        if propose is None:
            found, environment = _add(
                snapshot.environment, captured, as_, decided, accept, _ranks(ranks, as_)
            )
        else:
            found = _propose(snapshot.environment, captured[0], as_, propose, force)
        dry_run = dry_run or propose is not None
        if not dry_run:
            names = ", ".join(one.form.name for one in captured)
            opened.write(snapshot, environment, who=user(who), note=f"import of {names}"[:400])
    Outputs(json).give(found)
    if not dry_run:
        tell_store(store, opened.place)


def _require_together(propose: Path | None, decisions: Path | None) -> None:
    if propose is not None and decisions is not None:
        raise OptionError("--propose writes what --decisions reads. Give one of them.")


def _propose(
    environment: Environment, captured: CapturedForm, as_: str, path: Path, force: bool
) -> Result:
    """Write the proposals to a file, and return them."""
    from keyhole.data.whole import write_whole
    from keyhole.environment.adding.decision_files import proposals_to_toml
    from keyhole.environment.adding.proposals import propose

    found = propose(environment, captured, exact_codes=as_ == "target")
    with write_whole(path, force=force) as temporary:
        temporary.write_text(proposals_to_toml(found), encoding="utf-8")
    tell_written("proposals", path)
    return found


def _captured(
    files: Sequence[Path],
    as_: str,
    kind: str | None,
    labels: Path | None,
    encoding: str | None,
    attributes: dict[str, Any],
) -> list[CapturedForm]:
    """Read all the files; the problems of all are raised at once."""
    problems: list[str] = []
    out: list[CapturedForm] = []
    for path in files:
        try:
            if as_ == "target" and kind is None:
                out.append(_target(path, labels, encoding, attributes.get("collected")))
            else:
                from keyhole.environment.importers import read_forms

                out.extend(read_forms(path, kind, encoding=encoding, **attributes))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return out


def _target(path: Path, labels: Path | None, encoding: str | None, day: str | None) -> CapturedForm:
    from dataclasses import replace
    from datetime import date

    from keyhole.data import load
    from keyhole.environment.importers import capture_microdata, read_labels

    given = None if labels is None else read_labels(labels)
    captured = capture_microdata(load(path, encoding=encoding), labels=given)
    if day is None:
        return captured
    try:
        return replace(captured, form=replace(captured.form, collected=date.fromisoformat(day)))
    except ValueError:
        raise OptionError("--collected must be a day, as 2024-05-31.") from None


def _ranks(text: str | None, as_: str) -> dict[str, int]:
    if text is None:
        return {}
    if as_ != "source":
        raise OptionError("--ranks are those of a source. Add --as source.")
    numbers = [lists.number(n, option="ranks", kind=int) for n in lists.names(text, "--ranks")]
    if len(numbers) != 3:
        raise OptionError("--ranks must be three whole numbers: mode, scope and cost.")
    return dict(zip(("mode", "scope", "cost"), numbers, strict=True))


def _add(
    environment: Environment,
    captured: Sequence[CapturedForm],
    as_: str,
    decided: Any,
    accept: float,
    ranks: dict[str, int],
) -> tuple[Result, Environment]:
    from keyhole.environment.adding.adding import add_form, add_forms, add_source, add_target

    if as_ == "form" and decided is None:
        batch = add_forms(environment, captured, threshold=accept)
        return (batch if len(captured) > 1 else batch.additions[0]), batch.environment
    if as_ == "form":
        added = add_form(environment, captured[0], decided)
    elif as_ == "target":
        added = add_target(environment, captured[0], decisions=decided, threshold=accept)
    else:
        added = add_source(environment, captured[0], decisions=decided, threshold=accept, **ranks)
    return added, added.environment
