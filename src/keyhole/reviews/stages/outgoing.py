"""Stages that measure what could be released and what is: every key on every file.

Everything about the outgoing release can be recounted from its files by a plain ``group_by``: a
missing value is a category of its own, and of several implicates the most exposed one counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import polars as pl

from keyhole.core.marks import COUNT, Share
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.data.deriving import Derivation
from keyhole.engines import MemoryEngine
from keyhole.environment.scenarios.recoding import ScenarioKey
from keyhole.errors import InputError
from keyhole.exposure.cells import risk
from keyhole.kernels.arrays import Flags, Ints
from keyhole.protection.plan import Plan
from keyhole.results import Result, share
from keyhole.reviews.count_sheets import count_alone, smallest_shown
from keyhole.reviews.files import SCENARIO, Files, scenario_key_of
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import products
from keyhole.reviews.stages.exposure import hidden_share
from keyhole.reviews.stages.selection import SELECTIONS, proposed_set
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage
from keyhole.screening.screen import identifying
from keyhole.synthesis.associations import NEVER_RELEASED

if TYPE_CHECKING:
    from keyhole.engines import Missing
    from keyhole.exposure.attributes import LearntColumn


REMAINING, OUTGOING, RELEASED_ATTRIBUTES = "remaining", "outgoing", "attributes-released"
AS_IT_IS = "the file as it is"
KEYS = "the keys"
PRODUCT_NAMES = {
    "file": AS_IT_IS,
    "selection": "the variables proposed",
    "protection": "the protected file",
    "synthesis": "implicate 1 of the synthesis",
}


def _ask_remaining(review: Review, earlier: Earlier) -> Asked | None:
    """Ask where anything is done to the file: every key of the review, each once."""
    chosen = review.release.steps is None or "selection" not in review.release.steps
    proposed = proposed_set(review, earlier) if chosen else None
    if (
        proposed is None
        and products.PROTECTION not in earlier
        and products.SYNTHESIS not in earlier
    ):
        return None
    scenarios, keyed = _scenarios_of(review)
    named = {} if keyed else {KEYS: review.keys}
    for name in (products.PROTECTION, products.SYNTHESIS):
        part = getattr(review, name)
        if part is not None and part.keys not in named.values():
            named[f"the key of the {name}"] = part.keys
    plan = products.plan_of_release(review, earlier)
    if plan is None and products.PROTECTION in earlier and review.protection is not None:
        plan = Plan.parse(review.protection.plan)
    return {
        "cutoff": review.exposure.cutoff,
        "missing": review.exposure.missing,
        "intruders": {name: list(keys) for name, keys in named.items()},
        "scenarios": scenarios,
        "proposed": proposed,
        "protected": earlier[products.PROTECTION].ledger.missing
        if products.PROTECTION in earlier
        else None,
        "implicate": products.SYNTHESIS in earlier,
        "derived": derived_columns(review, plan),
    }


def _scenarios_of(review: Review) -> tuple[list[str], bool]:
    """Return the scenarios of a review, and whether its keys are measured as those of one."""
    given = review.scenarios
    return ([], False) if given is None else (list(given.names), given.chosen is not None)


def _run_remaining(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    data, missing = files["data"].data, asked["missing"]
    made_of = [Product(AS_IT_IS, data, missing)]
    if asked["proposed"] is not None:
        kept = data.select([name for name in data.names if name in asked["proposed"]])
        made_of.append(Product(PRODUCT_NAMES["selection"], kept, missing))
    if asked["protected"] is not None:
        protected = files[products.PROTECTED_FILE].data
        made_of.append(Product(PRODUCT_NAMES[products.PROTECTION], protected, asked["protected"]))
    if asked["implicate"]:
        made, start = files[products.IMPLICATE].data, products.synthesised_from(files)
        made_of.append(Product(PRODUCT_NAMES[products.SYNTHESIS], made, missing, start))
    known = asked["intruders"].items()
    intruders = [Intruder(n, tuple(keys), derived=asked.get("derived", {})) for n, keys in known]
    intruders += _in_scenarios(files, asked)
    return find_remaining(made_of, intruders, cutoff=asked["cutoff"])


@dataclass(frozen=True, slots=True)
class Intruder:
    """Somebody who knows some columns, perhaps only at the detail of a scenario's key.

    With `derived`, also the columns that are made of these.
    """

    knows: str
    columns: tuple[str, ...]
    scenario: ScenarioKey | None = None
    derived: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Product:
    """A file that could go out; `start` has its records before the synthesis, if there was one."""

    name: str
    data: Microdata
    missing: Missing = "own"
    start: Microdata | None = None


@dataclass(frozen=True, slots=True)
class KeyOnProduct:
    """One key on one product, which has the `columns` of it.

    `detail` is `exact`, or `at most` where the product could not be brought to the detail of the
    scenario. `still` counts the records that were unique and are, with the values they had.
    """

    knows: str
    product: str
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    detail: str
    records: Annotated[int, COUNT]
    uniques: Annotated[int | None, COUNT]
    at_risk: Annotated[int | None, COUNT]
    rp: Annotated[float | None, Share("records")]
    cr: float | None
    still: Annotated[int | None, COUNT] = None


@dataclass(frozen=True, slots=True, repr=False)
class Remaining(Result):
    """Exposure on each key, of the file as it is and of what could go out."""

    cutoff: int
    rows: tuple[KeyOnProduct, ...]

    def tables(self) -> list[Table]:
        """Return one row a key and product; how many are unique as before is told if not small."""
        smallest, rows = smallest_shown(self.cutoff), list[list[str]]()
        counted = any(row.still is not None for row in self.rows)
        columns = ["an intruder knows", "of", "variables", "uniques", f"RP({self.cutoff})", "CR"]
        columns += ["unique as before"] * counted
        for row in self.rows:
            told = ["none is left", "", "", "", ""]
            if row.rp is not None:
                many = len(row.columns) + len(row.left_out)
                most = "≤" if row.detail == "at most" else ""
                figures = (f"{row.uniques:,}", share(row.rp), share(row.cr))
                told = [
                    f"{len(row.columns)}{f' of {many}' if row.left_out else ''}",
                    *(f"{most}{figure}" for figure in figures),
                    "" if row.still is None else count_alone(row.still, smallest),
                ]
            rows.append([row.knows, row.product, *told][: len(columns)])
        finer = any(row.detail == "at most" for row in self.rows)
        notes = [
            "≤: the file has values that are not in the scenario’s coding, so the intruder is "
            "assumed to match it at full detail, which may be finer than what the intruder has."
        ] * finer + [
            "Unique as before: records that were unique and still are, with their original values. "
            "A synthetic record that is unique with other values matches nobody."
        ] * counted
        return [Table("Each key on each file that could be released", columns, rows, notes)]


class _Seen(NamedTuple):
    """A product as an intruder could match it, and whether that is his detail or finer."""

    data: Microdata
    columns: tuple[str, ...]
    detail: str


def seen_by(data: Microdata, who: Intruder) -> _Seen:
    """Return a file as an intruder could match it."""
    known = _with_derived(who.columns, who.derived)
    columns = tuple(name for name in known if name in data.names)
    if who.scenario is None:
        return _Seen(data, columns, "exact")
    detail, frame, variables = "exact", data.frame, {one.name: one for one in data.variables}
    for name in columns:
        try:
            found = who.scenario.recode(data.select([name]), partial=True)
        except InputError:
            # Values that the protection made are not of the scenario's coding: it stays as it is.
            detail = "at most"
            continue
        frame = frame.with_columns(found.frame)
        variables[name] = found.variable(name)
    recoded = dataclasses.replace(data, frame=frame, variables=tuple(variables.values()))
    return _Seen(recoded, columns, detail)


def find_remaining(
    products: Sequence[Product], intruders: Sequence[Intruder], *, cutoff: int
) -> Remaining:
    """Measure every product on the key of every intruder; the first is the file as it is."""
    rows = [_on_product(product, who, cutoff) for who in intruders for product in products]
    return Remaining(cutoff, tuple(rows))


def _on_product(product: Product, who: Intruder, cutoff: int) -> KeyOnProduct:
    seen, records, still = seen_by(product.data, who), product.data.records, None
    shown = {*seen.columns, *(n for name in seen.columns for n in who.derived.get(name, ()))}
    left_out = tuple(name for name in who.columns if name not in shown)
    row = (who.knows, product.name, seen.columns, left_out, seen.detail, records)
    if not seen.columns:
        return KeyOnProduct(*row, uniques=None, at_risk=None, rp=None, cr=None)
    found = risk(seen.data, keys=seen.columns, cutoff=cutoff, missing=product.missing)
    before = None if product.start is None else seen_by(product.start, who)
    if before is not None and (before.detail, before.data.records) == (seen.detail, records):
        # Who was unique and is so with what is left of the key: a new unique is nobody.
        alone = (_sizes(before) == 1) & (_sizes(seen) == 1)
        still = int((alone & same_values(before.data, seen.data, seen.columns)).sum())
    at_risk = round(found.rp * records)
    return KeyOnProduct(*row, found.uniques, at_risk, found.rp, found.cr, still)


def _sizes(seen: _Seen) -> Ints:
    """Return for each record the size of its cell on the columns an intruder can match."""
    codes = {name: seen.data.codes(name) for name in seen.columns}
    return MemoryEngine(codes).cell_sizes(seen.columns)


def same_values(one: Microdata, other: Microdata, columns: Sequence[str]) -> Flags:
    """Return which records have the same values in two files, both in the same order."""
    first, second = ([data.column(n).cast(pl.String) for n in columns] for data in (one, other))
    pairs = [a.eq_missing(b) for a, b in zip(first, second, strict=True)]
    return pl.DataFrame(pairs).select(pl.all_horizontal(pl.all())).to_series().to_numpy()


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

    `rp` is the largest over the implicates, `rp_wildcard` the same where a missing value matches
    every other; `rp_true` counts only records with the values that they had before the synthesis.
    `columns` and `detail` are as of `KeyOnProduct`; `original` is the figure of the file reviewed.
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


def ask_outgoing(review: Review, earlier: Earlier) -> Asked:
    """Ask how exposed what is released is, on every key of the review."""
    release, chosen = review.release, review.selection
    scenarios, keyed = _scenarios_of(review)
    selected = proposed_set(review, earlier) or []
    if release.steps is not None:
        selected = list(release.take or selected) if "selection" in release.steps else []
    elif release.product != "selection":
        selected = []
    kept = [] if chosen is None else list(chosen.keep)
    return {
        "product": products.released_product(review, earlier),
        "keys": [] if keyed else list(review.keys),
        "selected": list(dict.fromkeys([*kept, *selected])) if selected else [],
        "scenarios": scenarios,
        "cutoff": review.exposure.cutoff,
        "weight": review.exposure.weight,
        "not_knowable": dict(release.not_knowable),
        "derived": derived_columns(review, products.plan_of_release(review, earlier)),
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
    start = products.synthesised_from(files) if asked["product"] == products.SYNTHESIS else None
    first, cutoff = made[0], asked["cutoff"]
    intruders = intruders_on(files, asked, first.names)
    keys = [_on_key(who, source, made, start, cutoff) for who in intruders]
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
    if product == products.SYNTHESIS:
        folder = files[products.RELEASE]
        assert isinstance(folder, products.ReleaseFolder)
        names = tuple(f"{products.SYNTHESIS}/release/{path.name}" for path in folder.paths)
        return names, [folder.data, *map(folder.load, folder.paths[1:])]
    if product == products.PROTECTION and products.PROTECTED_FILE in files:
        found = files[products.PROTECTED_FILE]
        return (found.file,), [found.data]
    left = [name for name in data.data.names if data.data.variable(name).role not in NEVER_RELEASED]
    if product == "selection":
        left = [name for name in left if name in asked["selected"]]
    every = len(left) == len(data.data.names)
    return (data.file,), [data.data if every else data.data.select(left)]


def intruders_on(files: Files, asked: Asked, released: Sequence[str]) -> Iterator[Intruder]:
    """Yield who could match the release: by the keys, all that is selected, and scenarios."""
    keys = _with_derived(asked["keys"], asked["derived"])
    if keys:
        yield Intruder(KEYS, keys)
    together = _with_derived([*keys, *asked["selected"]], asked["derived"])
    if set(together).intersection(released) - set(keys):
        yield Intruder(ALL_KNOWN, together)
    yield from _in_scenarios(files, asked)


def _in_scenarios(files: Files, asked: Asked) -> Iterator[Intruder]:
    for name in asked["scenarios"]:
        key = scenario_key_of(files, f"{SCENARIO}{name}")
        if key is not None and key.keys:
            yield Intruder(scenario_words(name), key.keys, key, asked.get("derived", {}))


scenario_words = "scenario {!r}".format
"""Names an intruder by the scenario."""


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
        held = seen_by(start, who).data
        kept = [(_sizes(one) < cutoff) & same_values(held, one.data, columns) for one in seen]
        true = float(max(one.sum() for one in kept)) / records
    risks = (round(worst.rp * records), worst.rp, loose, true, original)
    return OnKey(who.knows, columns, records, *risks, seen[0].detail)


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


@dataclass(frozen=True, slots=True)
class AttributeOnKey:
    """What a key tells of a sensitive column of the release.

    `homogeneous` is the share of records in cells with one value, the largest over the implicates,
    `hidden_by_rp` how many of them lie in cells of the cutoff or more, `right` (of a synthesis) the
    share of people whose own value that is (DiSCO). Figures are None where the column, or the
    whole key, is not released; a column with one value tells nothing, and its shares are 0.
    """

    knows: str
    column: str
    columns: tuple[str, ...]
    records: Annotated[int, COUNT]
    homogeneous: Annotated[float | None, Share("records")] = None
    hidden_by_rp: Annotated[int | None, COUNT] = None
    cap: float | None = None
    base_rate: float | None = None
    right: float | None = None
    original: float | None = None

    @property
    def judged(self) -> float | None:
        """The figure that is compared with the limit."""
        return self.homogeneous if self.right is None else self.right


@dataclass(frozen=True, slots=True, repr=False)
class ReleasedAttributes(Result):
    """What the keys tell of the sensitive columns of a release."""

    cutoff: int
    rows: tuple[AttributeOnKey, ...]

    def tables(self) -> list[Table]:
        """Return one row a key and sensitive column; small counts are not told."""
        smallest, rows = smallest_shown(self.cutoff), []
        for one in self.rows:
            told, before = ["not released", ""], ""
            if one.judged is not None:
                told = hidden_share(round(one.judged * one.records), one.judged, smallest)
                original = one.original or 0.0
                before = hidden_share(round(original * one.records), one.original, smallest)[1]
            rows.append([one.knows, one.column, *told, before])
        notes = [
            "Counted are people whose cell has one value in an implicate, which is their own."
        ] * any(one.right is not None for one in self.rows)
        head = ["an intruder knows", "sensitive", "records disclosed", "share", "in the original"]
        return [Table("What is released", head, rows, notes)]

    def worst(self, column: str) -> AttributeOnKey | None:
        """Return the key that tells most of a column, if any tells something of it."""
        told = [one for one in self.rows if one.column == column and one.judged is not None]
        return max(told, key=lambda one: one.judged or 0.0, default=None)


def _ask_released(review: Review, earlier: Earlier) -> Asked | None:
    outgoing = ask_outgoing(review, earlier)
    if review.attributes is None:
        return None
    used = ("product", "keys", "selected", "scenarios", "cutoff", "derived")
    asked = {name: outgoing[name] for name in used}
    return {**asked, "sensitive": list(review.attributes.sensitive)}


def _run_released(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    source, made = files["data"].data, released_files(files, asked)[1]
    start = products.synthesised_from(files) if asked["product"] == products.SYNTHESIS else None
    released = made[0].names
    rows = list[AttributeOnKey]()
    for who in intruders_on(files, asked, released):
        rows += _attributes_on_key(who, source, made, start, asked)
    known = {one.column for one in rows}
    gone = [name for name in asked["sensitive"] if name not in {*known, *released}]
    rows += [AttributeOnKey("", name, (), made[0].records) for name in gone]
    return ReleasedAttributes(asked["cutoff"], tuple(rows))


def _attributes_on_key(
    who: Intruder,
    source: Microdata,
    made: Sequence[Microdata],
    start: Microdata | None,
    asked: Asked,
) -> Iterator[AttributeOnKey]:
    """Yield what one key tells of each sensitive column that is not a part of it."""
    from keyhole.exposure.attribution import attribution

    # The sensitive columns of the release, and what is made of one.
    sensitive, derived = set(asked["sensitive"]), asked["derived"]
    told = [n for n in made[0].names if {n, *derived.get(n, ())} & sensitive]
    names = [n for n in told if n not in who.columns]
    if not names:
        return
    seen = [seen_by(one, who) for one in made]
    columns, records = seen[0].columns, made[0].records
    if not columns:
        yield from (AttributeOnKey(who.knows, name, (), records) for name in names)
        return
    found = [_learnt(one.data, columns, names, asked["cutoff"]) for one in seen]
    file, known, _ = seen_by(source, who)
    there = [n for n in names if n in source.names]
    original = _learnt(file, known, there, asked["cutoff"]) if there else {}
    right: dict[str, float] = {}
    if start is not None:
        held = seen_by(start, who).data
        copied = [attribution(held, one.data, columns, names) for one in seen]
        right = {
            n: max(each[n].DiSCO for each in copied) * (found[0][n].base_rate < 1) for n in names
        }
    for name in names:
        worst = max((each[name] for each in found), key=lambda one: one.disclosed)
        hidden = worst.hidden_by_rp if worst.disclosed else 0
        figures = (worst.disclosed, hidden, worst.cap, worst.base_rate, right.get(name))
        before = original[name].disclosed if name in original else None
        yield AttributeOnKey(who.knows, name, columns, records, *figures, before)


def _learnt(
    data: Microdata, keys: Sequence[str], names: Sequence[str], cutoff: int
) -> Mapping[str, LearntColumn]:
    from keyhole.exposure.attributes import attributes

    return attributes(data, keys=keys, sensitive=names, cutoff=cutoff).sensitive


RELEASE_INPUTS = (products.PROTECTION, products.SYNTHESIS, "solve", *SELECTIONS)
_FILES = ("data", "scenario", products.PROTECTED_FILE, products.STARTED, products.MADE_FROM)
RELEASE_READS = (*_FILES, products.RELEASE)
OUTGOING_STAGE = Stage(
    OUTGOING, "The release", ask_outgoing, _run, RELEASE_INPUTS, reads=RELEASE_READS,
    since="0.2", returns="keyhole.reviews.stages.outgoing.ReleasedFiles",
)  # fmt: skip
OUTGOING_STAGES: tuple[Stage, ...] = (
    Stage(
        REMAINING, "Remaining risk", _ask_remaining, _run_remaining, RELEASE_INPUTS,
        reads=(*_FILES, products.IMPLICATE),
        returns="keyhole.reviews.stages.outgoing.Remaining",
    ),
    OUTGOING_STAGE,
    Stage(
        RELEASED_ATTRIBUTES, "Attribute disclosure, release", _ask_released, _run_released,
        RELEASE_INPUTS, reads=RELEASE_READS,
        returns="keyhole.reviews.stages.outgoing.ReleasedAttributes",
    ),
)  # fmt: skip
