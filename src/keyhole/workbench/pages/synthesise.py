"""Synthesise: replace what makes records stand out, and see what that does for both sides."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, get_args

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent
from keyhole.errors import OptionError
from keyhole.reviews.settings import Review, SynthesisSettings
from keyhole.reviews.stages.synthesis import SYNTHESIS
from keyhole.synthesis.matching import Match
from keyhole.synthesis.options import Options
from keyhole.workbench import editing
from keyhole.workbench.commands import equivalent, review_lines
from keyhole.workbench.editing import numbered_lines, put_changed
from keyhole.workbench.page import Change, Form, Page, View
from keyhole.workbench.stored_results import as_tables, stored_synthesis

__all__ = ["SYNTHESISE"]

# As large as the numbers that every program reads exactly.
SEEDS = 2**53
# Columns with these roles are in no release, whether the review drops them or not.
KEPT_HOME = ("identifier", "household", "drop")
_LISTS = ("targets", "keys", "strata", "drop", "allow")
# Of the options that say how values are drawn, those that the advice on a goal may name.
_DRAWING = ("donors", "match", "cycles", "change")
_PICTURES = {
    "synthesis-distributions": "Distributions of the targets, before and after",
    "synthesis-coefficients": "Coefficients of the regression, before and after",
}


def _context(view: View) -> dict[str, Any]:
    review = view.review
    given = review.synthesis
    found = stored_synthesis(view)
    return {
        "given": given or SynthesisSettings(keys=review.keys, targets=(), seed=0),
        "asked": given is not None,
        "columns": view.data.variables,
        "drawing": _drawing(given),
        "usual": given is None or _drawing(given) == _drawing(None),
        "matches": get_args(Match),
        "rules": _written(None if given is None else given.rules),
        "found": found,
        "protection": as_tables(found.protection) if found else [],
        "utility": as_tables([*found.utility, *found.wide]) if found else [],
        "pictures": [(name, _PICTURES.get(name, name)) for name in view.charts(SYNTHESIS)],
        "released": _released(view),
        "equivalents": _equivalents(view),
    }


def _drawing(given: SynthesisSettings | None) -> dict[str, Any]:
    """Return how values are drawn, as asked or as usual."""
    options = {} if given is None else given.options
    return {name: options.get(name, getattr(Options(), name)) for name in _DRAWING}


def _written(rules: Mapping[str, str] | None) -> str:
    return "\n".join(f"{name}: {rule}" for name, rule in (rules or {}).items())


def _released(view: View) -> list[str]:
    """Return the files that may go out, as seen from the review file."""
    record = view.standing(SYNTHESIS).record or {}
    place = f"{view.project.results.name}/{SYNTHESIS}"
    names = sorted(name for name in record.get("files", {}) if name.startswith("release/"))
    return [f"{place}/{name}" for name in names]


def _synthesise(view: View, form: Form) -> Change:
    """Take what the form says; a seed is drawn where there is none yet."""
    given = view.review.synthesis
    rules = None
    if "rules" in form.values:
        text = form.text("rules")
        now = _written(None if given is None else given.rules)
        # Unchanged rules stay as they are written, whatever their names.
        rules = None if _same_lines(text, now) else {"rules": _read_rules(text)}

    def edit(document: TOMLDocument) -> None:
        if given is None:
            _put_seed(document)
        put_changed(document, SYNTHESIS, _sent(form), _now(view.review))
        if rules is not None:
            editing.put(document, SYNTHESIS, "rules", rules["rules"])

    return Change("how records are synthesised", edit)


def _sent(form: Form) -> dict[str, Any]:
    return {
        **{name: form.texts(name) for name in _LISTS},
        "implicates": form.number("implicates"),
        "decoys": form.number("decoys"),
        "cutoff": form.number("cutoff"),
        "targeted": form.flag("targeted"),
        "graded": form.flag("graded"),
        "formula": form.text("formula"),
        **{name: form.number(name) for name in _DRAWING if name in form.values},
    }


def _now(review: Review) -> dict[str, Any]:
    """Return the settings as they are; of a review without a synthesis, the defaults."""
    given = review.synthesis or SynthesisSettings(keys=review.keys, targets=(), seed=0)
    names = ("implicates", "decoys", "cutoff", "targeted", "graded", "formula")
    return {name: getattr(given, name) for name in (*_LISTS, *names)} | _drawing(given)


def _same_lines(text: str | None, other: str) -> bool:
    return [line for _, line in numbered_lines(text)] == [line for _, line in numbered_lines(other)]


def _read_rules(text: str | None) -> dict[str, str]:
    """Read rules, one a line with its name before it."""
    rules: dict[str, str] = {}
    problems = []
    for number, line in numbered_lines(text):
        name, colon, rule = (part.strip() for part in line.partition(":"))
        if not (name and colon and rule):
            problems.append(
                f"line {number} of the rules must be a name, a colon and a condition, like "
                f"adult: age >= 17."
            )
        elif name in rules:
            problems.append(f"line {number} of the rules has a name that another has. Change it.")
        rules[name] = rule
    if problems:
        raise OptionError(problems)
    return rules


def _reseed(view: View, form: Form) -> Change:  # noqa: ARG001
    if view.review.synthesis is None:
        raise OptionError("there is no synthesis yet. Say first what is to be synthesised.")
    return Change("a new secret seed", _put_seed)


def _put_seed(document: TOMLDocument) -> None:
    editing.put(document, SYNTHESIS, "seed", secrets.randbelow(SEEDS))


def _stop(view: View, form: Form) -> Change:  # noqa: ARG001
    """Leave the synthesis out, and no longer call it what goes out."""

    def edit(document: TOMLDocument) -> None:
        editing.remove(document, SYNTHESIS)
        release: Any = document.get("release", {})
        if release.get("product") == SYNTHESIS:
            editing.remove(document, "release", "product")

    return Change("no synthesis", edit)


def _equivalents(view: View) -> list[Equivalent]:
    """Write the verb where it can say all that the review does; the seed is not told."""
    review, given = view.review, view.review.synthesis
    whole = review_lines(view.project.path.name, view.project.results.name)
    if given is None or not _is_plain(review, given):
        return [whole]
    home = [one.name for one in view.data.variables if one.role in KEPT_HOME]
    options = {
        **{name: list(getattr(given, name)) for name in _LISTS if name != "drop"},
        "drop": [*given.drop, *(name for name in home if name not in given.drop)],
        "rules": given.rules_file,
        "implicates": given.implicates,
        "decoys": given.decoys or None,
        "cutoff": given.cutoff,
        "targeted": given.targeted,
        "formula": given.formula,
        "seed": _Secret(),
        "out": "synthesised",
    }
    both = equivalent("synthesise", review.data.file, options)
    if not given.graded:
        both = Equivalent(f"{both.command} --evenly", f"{both.python[:-1]}, graded=False)")
    return [both, whole]


class _Secret:
    """Stands where the seed would."""

    def __str__(self) -> str:
        return "SEED"

    __repr__ = __str__


def _is_plain(review: Review, given: SynthesisSettings) -> bool:
    """Tell whether a command line can say it: files read as they are, no tables of settings."""
    data = review.data
    reading = (data.missing_codes, data.kinds, data.encoding, data.delimiter, data.sheet)
    tables = (
        given.options, given.predictors, given.crosses, given.least_probability, given.keep_order,
    )  # fmt: skip
    inline = given.rules if given.rules_file is None else None
    standard = given.relations == 0.05 and given.self_match == 2_000
    return standard and not (any(reading) or any(tables) or inline)


SYNTHESISE = Page(
    "synthesise",
    "Synthesise",
    ("synthesis", "releases"),
    _context,
    {"synthesise": _synthesise, "reseed": _reseed, "stop": _stop},
)
