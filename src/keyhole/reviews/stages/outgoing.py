"""The outgoing release: the stage that measures the file, or the implicates, that are released.

Everything here can be recounted from the files themselves by a plain ``group_by``: a missing value
is a category of its own, and of several implicates the most exposed one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from keyhole.core.marks import COUNT, Share
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.data.deriving import Derivation
from keyhole.exposure.cells import risk
from keyhole.protection.plan import Plan
from keyhole.results import Result, share
from keyhole.reviews.files import Files, scenario_key_of
from keyhole.reviews.settings import Review
from keyhole.reviews.source import SCENARIO
from keyhole.reviews.stages.protection import (
    PROTECTED_FILE,
    PROTECTION,
    STARTED,
    SYNTHESIS,
    plan_of_release,
    released_product,
)
from keyhole.reviews.stages.remaining import KEYS, Intruder, cell_sizes, same_values, seen_by
from keyhole.reviews.stages.selection import SELECTIONS, proposed_set
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage
from keyhole.reviews.stages.synthesis import (
    MADE_FROM,
    RELEASE,
    ReleaseFolder,
    synthesised_from,
)
from keyhole.screening.screen import identifying
from keyhole.synthesis.associations import NEVER_RELEASED

OUTGOING = "outgoing"
ALL_KNOWN = "the keys and every variable selected"
WEIGHT = "a weight, made by the office"


@dataclass(frozen=True, slots=True)
class Identified:
    """A column of the release that names people or numbers their records, and why."""

    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class OnKey:
    """Exposure of the release on one key, a missing value as a category of its own.

    `columns` are those of the key that are released. `rp` is the largest over the implicates, and
    `rp_wildcard` the same figure where a missing value matches every other. `rp_true` counts only
    records with the values that they had before the synthesis: a new unique is nobody. `original`
    is the figure of the file under review. `detail` is `exact`, or `at most` where an intruder is
    given more detail than the scenario has.
    """

    knows: str
    columns: tuple[str, ...]
    records: Annotated[int, COUNT]
    at_risk: Annotated[int | None, COUNT]
    rp: Annotated[float | None, Share("records")]
    rp_wildcard: Annotated[float | None, Share("records")]
    rp_true: Annotated[float | None, Share("records")]
    original: float | None
    detail: str = "exact"

    @property
    def judged(self) -> float | None:
        """The figure that is compared with the limit."""
        return self.rp if self.rp_true is None else self.rp_true


@dataclass(frozen=True, slots=True)
class UncountedColumn:
    """A column that is released and in no key: RP if an intruder knew it besides the keys."""

    name: str
    rp_if_known: float
    reason: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ReleasedFiles(Result):
    """What is released: its columns, identifiers left in it, and its exposure on every key."""

    files: tuple[str, ...]
    records: Annotated[int, COUNT]
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    cutoff: int
    identifiers: tuple[Identified, ...]
    keys: tuple[OnKey, ...]
    not_counted: tuple[UncountedColumn, ...]

    def tables(self) -> list[Table]:
        """Return one row a key, and one a column that is in none."""
        head = ["an intruder knows", "variables", f"RP({self.cutoff}) released", "original"]
        rows = [[k.knows, str(len(k.columns)), share(k.rp), share(k.original)] for k in self.keys]
        more = [[c.name, share(c.rp_if_known), c.reason or ""] for c in self.not_counted]
        return [
            Table("What is released", head, rows),
            Table("Released and in no key", ["column", "RP if it is known", "why not"], more),
        ]


def ask_outgoing(review: Review, earlier: Earlier) -> Asked | None:
    """Ask how exposed what is released is, on every key of the review."""
    release, scenarios = review.release, review.scenarios
    keyed = scenarios is not None and scenarios.chosen is not None
    chosen = review.selection
    selected = proposed_set(review, earlier) or []
    if release.steps is not None:
        selected = list(release.take or selected) if "selection" in release.steps else []
    elif release.product != "selection":
        selected = []
    kept = [] if chosen is None else list(chosen.keep)
    return {
        "product": released_product(review, earlier),
        "keys": [] if keyed else list(review.keys),
        "selected": list(dict.fromkeys([*kept, *selected])) if selected else [],
        "scenarios": [] if scenarios is None else list(scenarios.names),
        "cutoff": review.exposure.cutoff,
        "weight": review.exposure.weight,
        "not_knowable": dict(release.not_knowable),
        "derived": derived_columns(review, plan_of_release(review, earlier)),
    }


def derived_columns(review: Review, plan: Plan | None) -> dict[str, list[str]]:
    """Return the columns that a review and its plan add, each with those it is made from."""
    added = {n: list(Derivation.of(n, t).columns) for n, t in review.data.derive.items()}
    for step in () if plan is None else plan.steps:
        if step.definition.effect == "derives":
            added[step.options["name"]] = list(step.definition.columns(step.options))
    return added


def _run(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    source = files["data"].data
    named, made = released_files(files, asked)
    start = synthesised_from(files) if asked["product"] == SYNTHESIS else None
    first, cutoff = made[0], asked["cutoff"]
    keys = [
        _on_key(who, source, made, start, cutoff) for who in intruders_on(files, asked, first.names)
    ]
    return ReleasedFiles(
        files=named,
        records=first.records,
        columns=tuple(first.names),
        left_out=tuple(name for name in source.names if name not in first.names),
        cutoff=cutoff,
        identifiers=tuple(Identified(*one) for one in identifying(first, first.names).items()),
        keys=tuple(keys),
        not_counted=tuple(_not_counted(first, asked, keys)),
    )


def released_files(files: Files, asked: Asked) -> tuple[tuple[str, ...], list[Microdata]]:
    """Return the names of the files that are released, and what they hold."""
    product, data = asked["product"], files["data"]
    if product == SYNTHESIS:
        folder = files[RELEASE]
        assert isinstance(folder, ReleaseFolder)
        names = tuple(f"{SYNTHESIS}/release/{path.name}" for path in folder.paths)
        return names, [folder.data, *map(folder.load, folder.paths[1:])]
    if product == PROTECTION and PROTECTED_FILE in files:
        found = files[PROTECTED_FILE]
        return (found.file,), [found.data]
    left = [name for name in data.data.names if data.data.variable(name).role not in NEVER_RELEASED]
    if product == "selection":
        left = [name for name in left if name in asked["selected"]]
    return (data.file,), [
        data.data if len(left) == len(data.data.names) else data.data.select(left)
    ]


def intruders_on(files: Files, asked: Asked, released: Sequence[str]) -> Iterator[Intruder]:
    """Yield who could match the release: by the keys, all that is selected, and scenarios."""
    keys = _with_derived(asked["keys"], asked["derived"])
    if keys:
        yield Intruder(KEYS, keys)
    together = _with_derived([*keys, *asked["selected"]], asked["derived"])
    if set(together).intersection(released) - set(keys):
        yield Intruder(ALL_KNOWN, together)
    for name in asked["scenarios"]:
        key = scenario_key_of(files, f"{SCENARIO}{name}")
        if key is not None and key.keys:
            yield Intruder(scenario_words(name), key.keys, key)


def scenario_words(name: str) -> str:
    """Name an intruder by the scenario."""
    return f"scenario {name!r}"


def _with_derived(known: Sequence[str], derived: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return columns with those that are made of them: who knows the age knows its band."""
    found = dict.fromkeys(known)
    for name, sources in derived.items():  # in order: one may be made of another
        if set(sources) <= set(found):
            found[name] = None
    return tuple(found)


def _on_key(
    who: Intruder,
    source: Microdata,
    made: Sequence[Microdata],
    start: Microdata | None,
    cutoff: int,
) -> OnKey:
    before = seen_by(source, who)
    measure = partial(risk, cutoff=cutoff)
    original = measure(before.data, keys=before.columns).rp if before.columns else None
    seen = [seen_by(one, who) for one in made]
    columns, records = seen[0].columns, made[0].records
    if not columns:
        return OnKey(who.knows, (), records, None, None, None, None, original)
    worst = max((measure(one.data, keys=columns) for one in seen), key=lambda found: found.rp)
    loose = max(measure(one.data, keys=columns, missing="wildcard").rp for one in seen)
    true = None
    if start is not None:
        held = seen_by(start, who)
        counts = [
            ((cell_sizes(one) < cutoff) & same_values(held.data, one.data, columns)).sum()
            for one in seen
        ]
        true = float(max(counts)) / records
    at_risk = round(worst.rp * records)
    return OnKey(
        who.knows, columns, records, at_risk, worst.rp, loose, true, original, seen[0].detail
    )


def _not_counted(data: Microdata, asked: Asked, keys: Sequence[OnKey]) -> Iterator[UncountedColumn]:
    """Measure for each column that is in no key what it would add to the first key."""
    counted = {name for key in keys for name in key.columns}
    base, reasons = (keys[0].columns if keys else ()), dict(asked["not_knowable"])
    if asked["weight"] is not None:
        reasons.setdefault(asked["weight"], WEIGHT)
    for name in data.names:
        if name not in counted:
            found = risk(data, keys=[*base, name], cutoff=asked["cutoff"])
            yield UncountedColumn(name, found.rp, reasons.get(name))


OUTGOING_STAGE = Stage(
    OUTGOING,
    "What is released",
    ask_outgoing,
    _run,
    (PROTECTION, SYNTHESIS, "solve", *SELECTIONS),
    reads=("data", "scenario", PROTECTED_FILE, STARTED, MADE_FROM, RELEASE),
    since="0.2",
    returns="keyhole.reviews.stages.outgoing.ReleasedFiles",
)
