"""Key sets that forms hold together: per-variable prevalence overstates what anyone has.

Each of two columns may be held by half of the forms, and no form hold both.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from keyhole.core.marks import HIDDEN
from keyhole.core.tables import Table
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.partitions import refines
from keyhole.environment.mapping.holdings import ColumnWeights, columns_of
from keyhole.environment.mapping.keys import KeyMapping
from keyhole.environment.mapping.mapping import forms_in, holdings_of, map_class
from keyhole.environment.mapping.undecided import upper_graph
from keyhole.environment.model import Environment, Target
from keyhole.errors import OptionError
from keyhole.results import Result, share

if TYPE_CHECKING:
    import polars as pl


def closed_sets(holders: Sequence[int], everybody: int, minimum: int) -> Iterator[tuple[int, int]]:
    """Yield (items, support) of each closed set, in falling order of support.

    A set is closed if nothing can be added to it without losing a holder; every set held by
    somebody has the support of the smallest closed set around it. `holders` has for each item
    its holders as the bits of a whole number; sets with fewer than `minimum` are left out.

    Notes
    -----
    Each closed set is made once, by adding to its parent an item after which it has no new
    earlier one (the prefix-preserving closure extension of LCM, Uno et al. 2004), best first.
    """
    everyone = (1 << everybody) - 1
    heap = [(-everybody, _closure(holders, everyone), -1, everyone)] if everybody >= minimum else []
    while heap:
        support, items, core, who = heapq.heappop(heap)
        yield items, -support
        for item in range(core + 1, len(holders)):
            both = who & holders[item]
            if items >> item & 1 or both.bit_count() < max(minimum, 1):
                continue
            closure, before = _closure(holders, both), (1 << item) - 1
            if closure & before == items & before:
                heapq.heappush(heap, (-both.bit_count(), closure, item, both))


def _closure(holders: Sequence[int], who: int) -> int:
    """Return all items that these holders have in common."""
    return sum(1 << item for item, has in enumerate(holders) if has & who == who)


# So many closed sets are looked at before the search says that it is not complete.
MOST = 20_000
SHOWN = 20


@dataclass(frozen=True, slots=True)
class KeySet:
    """Columns that the same forms hold, each at its coding in the class key.

    `bits` adds up the columns' entropies: the most the set can tell, if they are independent.
    """

    columns: tuple[str, ...]
    support: int
    share: float
    bits: float


@dataclass(frozen=True, slots=True, repr=False)
class JointKeys(Result):
    """The closed sets of key columns that forms hold together.

    `whole` is how many forms hold all columns of the key. Where `complete` is false, all
    sets with a support above `searched_to` were seen. `found` counts the sets of two or more
    columns, of which `sets` are those with the most bits.
    """

    target: str
    forms: int
    minimum: int
    found: int
    whole: int
    complete: bool
    searched_to: int
    sets: tuple[KeySet, ...]
    mapping: Annotated[KeyMapping, HIDDEN]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a set."""
        import polars as pl

        rows = [(list(s.columns), s.support, s.share, s.bits) for s in self.sets]
        schema = {"columns": list[str], "support": int, "share": float, "bits": float}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the sets with the most bits."""
        rows = [
            [", ".join(s.columns), f"{s.support:,}", share(s.share, 3), share(s.bits, 2)]
            for s in self.sets[:SHOWN]
        ]
        title = f"Columns of {self.mapping.target} held together, {self.mapping.against}"
        notes = [
            f"{self.whole:,} of {self.mapping.forms:,} forms hold the whole key.",
            f"{len(rows):,} of {self.found:,} closed sets of two or more columns are shown.",
        ]
        if not self.complete:
            notes.append(
                f"Not complete: sets held by {self.searched_to:,} or fewer may be missing."
            )
        return [Table(title, ["columns", "forms", "share", "bits"], rows, notes)]


def joint_keys(
    environment: Environment | CodingGraph,
    target: str | Target,
    *,
    sector: str | None = None,
    purpose: str | None = None,
    classifications: Mapping[str, str] | None = None,
    threshold: float = 0.0,
    weights: ColumnWeights | None = None,
    minimum: int | None = None,
    limit: int = 50,
) -> JointKeys:
    """Find the sets of key columns that forms hold together, with their support.

    Parameters
    ----------
    target, sector, purpose, classifications, threshold, weights
        As in `keyhole.environment.mapping.mapping.map_class`, whose key says at which coding a form
        must hold a column.
    minimum
        How many forms must hold a set; as many as the threshold asks for if left out.
    limit
        How many sets to return, those with the most bits.
    """
    graph = CodingGraph.of(environment)
    mapping = map_class(
        graph,
        target,
        sector=sector,
        purpose=purpose,
        classifications=classifications,
        threshold=threshold,
        weights=weights,
    )
    graph, aim = upper_graph(graph, target)
    forms, _ = forms_in(graph, sector=sector, purpose=purpose, classifications=classifications)
    least = mapping.needed if minimum is None else minimum
    if least < 1 or limit < 1:
        raise OptionError("minimum and limit must be at least 1. Got less instead.")
    columns = {c.name: c for c in columns_of(graph, aim, weights)[0]}
    askings = graph.askings(forms)
    holders = []  # of each variable at its coding in the key, as bits
    for variable in mapping.key:
        groups = np.array(variable.groups, dtype=np.int64)
        holds = np.zeros(len(forms), dtype=bool)
        for one in holdings_of(graph, columns[variable.column], askings):
            holds[one.forms] = one.held.groups is not None and refines(one.held.groups, groups)
        bits = np.packbits(holds, bitorder="little").tobytes()
        holders.append(int.from_bytes(bits, "little"))
    sets, complete, last = _sets(mapping, holders, least)
    whole = (1 << len(forms)) - 1
    for has in holders:
        whole &= has
    return JointKeys(
        mapping.target,
        mapping.forms,
        least,
        len(sets),
        whole.bit_count() if holders else 0,
        complete,
        last,
        tuple(sets[:limit]),
        mapping,
    )


def _sets(
    mapping: KeyMapping, holders: Sequence[int], least: int
) -> tuple[list[KeySet], bool, int]:
    """Return the sets by bits, whether all were seen, and the support seen last."""
    out: list[KeySet] = []
    complete, last = True, least
    for looked, (items, support) in enumerate(closed_sets(holders, mapping.forms, least)):
        if looked == MOST:
            complete, last = False, support
            break
        held = [v for i, v in enumerate(mapping.key) if items >> i & 1]
        if len(held) > 1:
            names, bits = tuple(v.column for v in held), sum(v.entropy for v in held)
            out.append(KeySet(names, support, support / mapping.forms, bits))
    return sorted(out, key=lambda s: (-round(s.bits, 9), -s.support, s.columns)), complete, last
