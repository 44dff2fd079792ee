"""Keys of a target: the variables that others hold too, what is not in the key, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from keyhole.core.marks import HIDDEN
from keyhole.core.names import plural
from keyhole.core.tables import Table
from keyhole.environment.wording import short
from keyhole.results import Result, share

if TYPE_CHECKING:
    import polars as pl


MappingKind = Literal["pair", "class", "public", "stages"]


@dataclass(frozen=True, slots=True)
class KeyVariable:
    """One column of the target and the coding at which others hold it too.

    ``groups`` gives, for each category of the target's coding in its order (intervals
    first), the number of the group it falls into; ``labels`` names the groups. ``coding``
    is the name of the stored coding with these groups, or of the one to be minted
    (``stored`` is false then). ``entropy`` is in bits, ``lost`` what harmonising took.
    ``explanation`` says which forms, which path up the graph, which categories merged;
    ``codings`` are those in which it is held, where one holder has them all.
    """

    construct: str
    column: str
    target_coding: str
    coding: str
    stored: bool
    groups: tuple[int, ...]
    labels: tuple[str, ...]
    entropy: float
    lost: float
    holders: int
    of: int
    antichain: tuple[str, ...] = ()
    exact: bool = True
    explanation: tuple[str, ...] = ()
    codings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Absent:
    """A column of the target that is not in the key, and why.

    `ruled_out` is the share of pairs of categories that cannot be the same person although
    the codings join to nothing (see `keyhole.environment.compatibility`), where known.
    `codings` are those in which it is held all the same: with others they may tell it.
    """

    column: str
    construct: str
    reason: str
    ruled_out: float | None = None
    codings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Undecided:
    """A field of a form, source or target, or a coding, on which somebody should decide.

    `column` is the column of the target of which it may tell more.
    """

    form: str
    field: str
    column: str
    reason: str
    kind: str = "form"


@dataclass(frozen=True, slots=True)
class KeyBound:
    """A bound of a key: its columns, how many categories each has, how many hold it, its bits."""

    columns: tuple[str, ...] = ()
    variables: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    bits: float = 0.0

    @classmethod
    def of(cls, mapping: KeyMapping) -> KeyBound:
        """Return the bound that a mapping is."""
        variables = {v.column: (len(v.labels), v.holders) for v in mapping.key}
        return cls(mapping.columns, variables, sum(v.entropy for v in mapping.key))


@dataclass(frozen=True, slots=True, repr=False)
class KeyMapping(Result):
    """The key variables of a target, at the detail at which others hold them.

    `key` is the upper answer, which counts what is undecided as asked; `lower` and `upper` are
    both in short, and `undecided` the fields that make them differ. `surely` is the lower answer
    whole, where it is another.

    `against` says in words who the others are and `forms` how many; `needed` is how many of
    them must hold a coding for the `threshold` asked for. `identifiers` are the direct
    identifiers they hold, with how many hold each.
    """

    kind: MappingKind
    target: str
    against: str
    forms: int
    threshold: float
    needed: int
    key: tuple[KeyVariable, ...]
    absent: tuple[Absent, ...]
    identifiers: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lower: KeyBound = field(default_factory=KeyBound)
    upper: KeyBound = field(default_factory=KeyBound)
    undecided: tuple[Undecided, ...] = ()
    surely: Annotated[KeyMapping | None, HIDDEN] = None

    @property
    def settled(self) -> bool:
        """Whether the lower and the upper answer are the same."""
        return self.lower == self.upper

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the key."""
        return tuple(variable.column for variable in self.key)

    def variable(self, column: str) -> KeyVariable | None:
        """Return the key variable of a column, if it is in the key."""
        return next((v for v in self.key if v.column == column), None)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a key variable."""
        import polars as pl

        names = {"column": str, "construct": str, "target_coding": str, "coding": str}
        sizes = {"stored": bool, "target_categories": int, "categories": int}
        figures = {"entropy": float, "lost": float, "holders": int, "of": int, "exact": bool}
        rows = [
            (
                *(getattr(v, name) for name in names),
                *(v.stored, len(v.groups), len(v.labels)),
                *(getattr(v, name) for name in figures),
            )
            for v in self.key
        ]
        return pl.DataFrame(rows, schema={**names, **sizes, **figures}, orient="row")

    def tables(self) -> list[Table]:
        """Return the key, and what is not in it for which reason; see also `why`."""
        unit = " stages" if self.kind == "stages" else ""
        rows = [
            [
                short(v.column),
                v.coding if v.stored else f"{v.coding} (new)",
                f"{len(v.labels):,} of {len(v.groups):,}",
                share(v.entropy, 2),
                share(v.lost, 2),
                f"{v.holders:,} of {v.of:,}{unit}",
            ]
            for v in self.key
        ]
        notes = [*self.notes] if rows else ["The key is empty.", *self.notes]
        if not self.settled:
            sure = ", ".join(self.lower.columns) or "none"
            notes.append(
                f"Upper answer: undecided fields count as asked. Surely held: {sure} "
                f"({self.lower.bits:.2f} of {self.upper.bits:.2f} bits). Pending: "
                f"{plural(len(self.undecided), 'decision')} (environment waiting)."
            )
        if self.identifiers:
            held = ", ".join(f"{kind} ({count:,})" for kind, count in self.identifiers.items())
            notes.append(f"Direct identifiers held: {held}.")
        columns = ["column", "coding", "categories", "bits", "lost", "held by"]
        title = f"Key of {short(self.target)} against {self.against}"
        tables = [Table(title, columns, rows, notes)]
        reasons: dict[str, list[str]] = {}
        for part in self.absent:
            reasons.setdefault(part.reason, []).append(short(part.column))
        if reasons:
            rows = [[", ".join(names), reason] for reason, names in reasons.items()]
            tables.append(Table("Not in the key", ["columns", "reason"], rows))
        return tables

    def why(self) -> Table:
        """Return for each key variable which forms, which path up the graph, what merged."""
        rows = [[short(v.column), text] for v in self.key for text in v.explanation]
        return Table("Why", ["column", "because"], rows)


class MappedResult(Result):
    """A result with a mapping in it, whose key is its main table."""

    __slots__ = ()
    mapping: KeyMapping

    @property
    def key(self) -> tuple[KeyVariable, ...]:
        """The key variables."""
        return self.mapping.key

    def to_frame(self) -> pl.DataFrame:
        """Return one row a key variable."""
        return self.mapping.to_frame()
