"""Attribute disclosure in a review: what the key tells of sensitive columns.

One stage measures the file under review, the other what is released: every file of the release, on
every key that the stage `outgoing` measures, with the largest figure of several implicates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from keyhole.core.marks import COUNT, Share
from keyhole.core.tables import Table
from keyhole.data import Microdata
from keyhole.results import Result, share
from keyhole.reviews.count_sheets import count_alone, smallest_shown
from keyhole.reviews.files import Files
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.exposure import tellable
from keyhole.reviews.stages.outgoing import (
    RELEASE_INPUTS,
    RELEASE_READS,
    Intruder,
    ask_outgoing,
    intruders_on,
    released_files,
    seen_by,
)
from keyhole.reviews.stages.protection import (
    SYNTHESIS,
)
from keyhole.reviews.stages.stage import Asked, Earlier, Pictures, Progress, Stage, runs
from keyhole.reviews.stages.synthesis import synthesised_from

if TYPE_CHECKING:
    from keyhole.exposure.attributes import Attributes, LearntColumn

ATTRIBUTES = "attributes"
RELEASED_ATTRIBUTES = "attributes-released"


@dataclass(frozen=True, slots=True)
class AttributeOnKey:
    """What a key tells of a sensitive column of the release.

    `columns` are those of the key that are released. `homogeneous` is the share of records in
    cells with one value, the largest over the implicates, and `hidden_by_rp` how many of them lie
    in cells of the cutoff or more. Of a synthesis `right` is the share of the people whose cell
    has one value in an implicate, and it is their own (DiSCO). `original` is the share in the file
    under review. Figures are None where the column, or the whole key, is not released; a column
    with one value tells nothing, and its shares are 0.
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
        notes = []
        if any(one.right is not None for one in self.rows):
            notes.append(
                "Counted are people whose cell has one value in an implicate, and it is their own."
            )
        head = ["an intruder knows", "sensitive", "records that tell", "share", "in the original"]
        return [Table("What is released", head, rows, notes)]

    def worst(self, column: str) -> AttributeOnKey | None:
        """Return the key that tells most of a column, if any tells something of it."""
        told = [one for one in self.rows if one.column == column and one.judged is not None]
        return max(told, key=lambda one: one.judged or 0.0, default=None)


def hidden_share(count: int, part: float | None, smallest: int) -> list[str]:
    """Return a count with its share, neither of them if it is small."""
    few = 0 < count < smallest
    return [count_alone(count, smallest), "" if few else share(part)]


def ask_attributes(review: Review, _: Earlier) -> Asked | None:
    """Ask what the keys tell of the sensitive columns, if there are any."""
    given = review.attributes
    if given is None:
        return None
    options = {name: value for name, value in given.values.items() if name != "limit"}
    return {
        **options,
        "keys": list(review.keys),
        "sensitive": list(given.sensitive),
        "cutoff": review.exposure.cutoff,
    }


def _without_small_levels(found: Attributes) -> Attributes:
    """Leave out the levels of keys of which a small count could be told."""
    smallest = smallest_shown(found.cutoff)

    def kept(one: LearntColumn) -> LearntColumn:
        levels = []
        for name in found.keys:
            mine = [level for level in one.levels if level.column == name]
            counts = [(level.records, level.homogeneous) for level in mine]
            rest = (
                found.records - sum(level.records for level in mine),
                one.hidden_by_rp - sum(level.homogeneous for level in mine),
            )
            told = tellable([*counts, rest] if rest[0] else counts, smallest)
            levels += [mine[i] for i in told if i < len(mine)]
        return dataclasses.replace(one, levels=tuple(levels))

    each = {name: kept(one) for name, one in found.sensitive.items()}
    return dataclasses.replace(found, sensitive=each, grid=None)


def draw_attributes(found: Attributes) -> Pictures:
    """Draw what the key discloses, but for columns with a count that the table hides."""
    smallest, each = smallest_shown(found.cutoff), found.sensitive
    shown = {n: one for n, one in each.items() if not 0 < one.homogeneous_records < smallest}
    return dataclasses.replace(found, sensitive=shown).plot() if shown else {}


def _ask_released(review: Review, earlier: Earlier) -> Asked | None:
    outgoing = ask_outgoing(review, earlier)
    if review.attributes is None or outgoing is None:
        return None
    used = ("product", "keys", "selected", "scenarios", "cutoff", "derived")
    return {
        **{name: outgoing[name] for name in used},
        "sensitive": list(review.attributes.sensitive),
    }


def _run_released(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    made = released_files(files, asked)[1]
    source = files["data"].data
    start = synthesised_from(files) if asked["product"] == SYNTHESIS else None
    released = made[0].names
    rows = [
        one
        for who in intruders_on(files, asked, released)
        for one in _on_key(who, source, made, start, asked)
    ]
    known = {one.column for one in rows}
    gone = [name for name in asked["sensitive"] if name not in {*known, *released}]
    rows += [AttributeOnKey("", name, (), made[0].records) for name in gone]
    return ReleasedAttributes(asked["cutoff"], tuple(rows))


def _sensitive(asked: Asked, released: Sequence[str]) -> list[str]:
    """Return the sensitive columns of a release, and what is made of one."""
    named, derived = set(asked["sensitive"]), asked["derived"]
    return [n for n in released if n in named or not named.isdisjoint(derived.get(n, ()))]


def _on_key(
    who: Intruder,
    source: Microdata,
    made: Sequence[Microdata],
    start: Microdata | None,
    asked: Asked,
) -> Iterator[AttributeOnKey]:
    """Yield what one key tells of each sensitive column that is not a part of it."""
    from keyhole.exposure.attribution import attribution

    names = [n for n in _sensitive(asked, made[0].names) if n not in who.columns]
    if not names:
        return
    seen = [seen_by(one, who) for one in made]
    columns, records = seen[0].columns, made[0].records
    if not columns:
        yield from (AttributeOnKey(who.knows, name, (), records) for name in names)
        return
    found = [_learnt(one.data, columns, names, asked["cutoff"]) for one in seen]
    before = seen_by(source, who)
    there = [n for n in names if n in source.names]
    original = _learnt(before.data, before.columns, there, asked["cutoff"]) if there else {}
    right: dict[str, float] = {}
    if start is not None:
        held = seen_by(start, who).data
        told = [attribution(held, one.data, columns, names) for one in seen]
        right = {
            n: max(each[n].DiSCO for each in told) * (found[0][n].base_rate < 1) for n in names
        }
    for name in names:
        worst = max((each[name] for each in found), key=lambda one: one.disclosed)
        yield AttributeOnKey(
            knows=who.knows,
            column=name,
            columns=columns,
            records=records,
            homogeneous=worst.disclosed,
            hidden_by_rp=worst.hidden_by_rp if worst.disclosed else 0,
            cap=worst.cap,
            base_rate=worst.base_rate,
            right=right.get(name),
            original=original[name].disclosed if name in original else None,
        )


def _learnt(
    data: Microdata, keys: Sequence[str], names: Sequence[str], cutoff: int
) -> Mapping[str, LearntColumn]:
    from keyhole.exposure.attributes import attributes

    return attributes(data, keys=keys, sensitive=names, cutoff=cutoff).sensitive


ATTRIBUTES_STAGE = Stage(
    ATTRIBUTES,
    "What the key tells",
    ask_attributes,
    runs("keyhole.exposure.attributes.attributes", then=_without_small_levels),
    draw=draw_attributes,
    returns="keyhole.exposure.attributes.Attributes",
)
RELEASED_ATTRIBUTES_STAGE = Stage(
    RELEASED_ATTRIBUTES, "What the release tells", _ask_released, _run_released, RELEASE_INPUTS,
    reads=RELEASE_READS, returns="keyhole.reviews.stages.attributes.ReleasedAttributes",
)  # fmt: skip
