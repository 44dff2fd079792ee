"""Mapping a target against one form, or against a class of forms with a prevalence threshold.

Elliot, Mackey & Purdam (2011), "The Key Variable Mapping System": the key is the metadata
intersection of two datasets, or of a dataset and a class of datasets. Prevalence by variable
overstates what anyone has, since half of the forms may hold each of two columns and none both:
`joint_keys` finds what forms hold together.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import and_
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.marks import HIDDEN
from keyhole.core.names import plural, quoted, shown
from keyhole.core.tables import Table
from keyhole.environment.codings.graph import CodingGraph, Holder
from keyhole.environment.codings.partitions import (
    group_count,
    inexact,
    join_partitions,
    partition_entropy,
    refines,
    representatives,
)
from keyhole.environment.mapping import keys
from keyhole.environment.model import Environment, Form, Target
from keyhole.environment.scenarios.scenarios import class_words
from keyhole.environment.wording import frame_of
from keyhole.errors import InputError, OptionError
from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.results import Result, share

# An explanation tells of so many codings, the most common first.
SHOWN = 3
# The key variable may be the coding that one of so many holdings has.
NEAR = 10


def class_of(
    *,
    sector: str | None = None,
    purpose: str | None = None,
    classifications: Mapping[str, str] | None = None,
) -> dict[str, str | None]:
    """Return what a class asks of forms, by scheme; sector and purpose are schemes like others."""
    given, more = {"sector": sector, "purpose": purpose}, dict(classifications or {})
    twice = [name for name in given if given[name] and more.get(name, given[name]) != given[name]]
    if twice:
        raise OptionError(f"{' and '.join(twice)} must be given once. Got two values instead.")
    return {**given, **more}


def forms_in(
    graph: CodingGraph, sector: str | None, purpose: str | None, more: Mapping[str, str] | None
) -> tuple[tuple[Form, ...], str]:
    """Return the forms of a class, sorted by name, and the class in words; all if none is asked."""
    asked = class_of(sector=sector, purpose=purpose, classifications=more)
    given = {name: value for name, value in asked.items() if value is not None}
    forms = sorted(graph.environment.forms, key=lambda form: form.name)
    held = {name: [class_value(graph, form, name) for form in forms] for name in given}
    fits = [[v.casefold() == given[name].casefold() for v in of] for name, of in held.items()]
    found = [form for form, *fit in zip(forms, *fits, strict=True) if all(fit)]
    if found:
        return tuple(found), class_words(given)
    if not forms:
        raise InputError("the environment has no forms; import some first.")
    known = ((name, quoted(sorted({*values} - {""}))) for name, values in held.items())
    there = "; ".join(f"{name}: {values or 'no form states it'}" for name, values in known)
    raise InputError(f"no form is in the class {class_words(given)}. There are {there}.")


def class_value(graph: CodingGraph, form: Form, scheme: str) -> str:
    """Return what a form is in a classification; its organisation's sector may stand in."""
    own = {"sector": form.sector, "purpose": form.purpose}.get(scheme, "")
    if scheme == "sector" and not own:
        every = graph.environment.organisations
        own = next((one.sector for one in every if one.name == form.organisation), "")
    return own or form.classifications.get(scheme, "")


def needed_of(threshold: float, forms: int) -> int:
    """Return how many forms a prevalence threshold asks for: at least t * N, and one."""
    if isinstance(threshold, bool) or not 0 <= threshold <= 1:
        raise OptionError(f"threshold must be from 0 to 1. Got {threshold!r} instead.")
    exact = threshold * forms
    # 0.1 * 30 is a little above 3 in floating point; that is not a fourth form.
    return max(round(exact) if abs(exact - round(exact)) < 1e-9 else int(exact) + 1, 1)


def identifiers_of(holders: Iterable[Holder]) -> dict[str, int]:
    """Return the direct identifiers that holders have, with how many have each."""
    each = ({f.identifier for f in one.fields if f.identifier is not None} for one in holders)
    return commonest(Counter(name for names in each for name in names))


def commonest(counts: Mapping[str, int]) -> dict[str, int]:
    """Sort identifiers by how many have each, then by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def map_pair(
    environment: Environment | CodingGraph,
    target: str | Target,
    form: str | Form,
    *,
    weights: keys.ColumnWeights | None = None,
) -> keys.KeyMapping:
    """Map a target against one form: each column at the join of both codings; see `map_class`."""

    def against(graph: CodingGraph) -> keys.Holders:
        name = form if isinstance(form, str) else form.name
        here = graph.possible and any(f.name == name for f in graph.environment.forms)
        other = graph.find(Form, name if here else form)
        holder, asked = f"form {shown(other.name)}", graph.asked(other)

        def find(maker: keys.VariableMaker, column: keys.TargetColumn) -> keys.Part:
            if codings := asked.get(column.node.construct, ()):
                because = [f"{holder} holds {' and '.join(codings)}"]
                return maker.held(column, codings, because, holder)
            return column.absent(f"{holder} does not ask it")

        return keys.Holders("pair", holder, find, identifiers=identifiers_of([other]))

    return keys.bounded(CodingGraph.of(environment), target, weights, against)


def map_class(
    environment: Environment | CodingGraph,
    target: str | Target,
    *,
    sector: str | None = None,
    purpose: str | None = None,
    classifications: Mapping[str, str] | None = None,
    threshold: float = 0.0,
    weights: keys.ColumnWeights | None = None,
) -> keys.KeyMapping:
    """Map a target against a class of forms, at codings that enough of them hold.

    The class is that of a sector, purpose and other classifications; all forms if none is given.
    `threshold` is the share of them that must hold a coding, equal or finer. 0: any form has it; 1:
    all forms have it or harmonise to it. The target is given by name or as it is; `weights` says
    for its columns how many people are in each category (by code).

    Notes
    -----
    For each column the finest coding at or above the target's (by entropy) that at least
    max(t * N, 1) of the N forms hold; a coding with one category is not in the key. The
    paper's sentence about a threshold of one says zero by mistake.
    """

    def against(graph: CodingGraph) -> keys.Holders:
        forms, words = forms_in(graph, sector, purpose, classifications)
        needed = needed_of(threshold, len(forms))
        note = f"{plural(len(forms), 'form')}; a coding counts if {needed:,} or more hold it"
        return keys.Holders(
            "class",
            words,
            lambda maker, column: _class_variable(maker, column, forms, needed),
            *(len(forms), threshold, needed, identifiers_of(forms)),
            notes=(f"{note} (threshold {threshold:g}).",),
        )

    return keys.bounded(CodingGraph.of(environment), target, weights, against)


def map_restricted(
    graph: CodingGraph,
    target: str | Target,
    *,
    form: str | None,
    weights: keys.ColumnWeights | None,
    **forms: Any,
) -> keys.KeyMapping:
    """Map a target against the form that is named, else against the class that `forms` describe."""
    if form is not None:
        return map_pair(graph, target, form, weights=weights)
    return map_class(graph, target, weights=weights, **forms)


@dataclass(frozen=True, slots=True, eq=False)
class Holding:
    """The forms (their places) that hold a construct in the same codings, and what that tells."""

    codings: tuple[str, ...]
    forms: Ints
    held: keys.Held


def holdings_of(
    graph: CodingGraph, column: keys.TargetColumn, forms: Sequence[Form]
) -> list[Holding]:
    """Sort forms by the codings in which they hold a column's construct; most forms first."""
    found: dict[tuple[str, ...], list[int]] = {}
    for place, form in enumerate(forms):
        if codings := graph.asked(form).get(column.node.construct):
            found.setdefault(codings, []).append(place)
    ordered = sorted(found, key=lambda codings: (-len(found[codings]), codings))
    return [Holding(c, np.array(found[c]), keys.held_by(graph, column, c)) for c in ordered]


def _class_variable(
    maker: keys.VariableMaker, column: keys.TargetColumn, forms: Sequence[Form], needed: int
) -> keys.Part:
    """Return a column at the finest coding that enough forms hold, or why there is none.

    Of the antichain the finest: most bits, most groups, the first in their order. Neither names
    nor what is stored decide: they depend on the order of imports.
    """
    holdings = holdings_of(maker.graph, column, forms)
    known = [(h.held.groups, len(h.forms)) for h in holdings if h.held.groups is not None]
    found, complete = finest(
        *([groups for groups, _ in known], [count for _, count in known], needed),
        substantive=column.node.substantive,
        weights=column.weights,
    )
    if not found:
        together = (holding.codings for holding in holdings if len(holding.codings) > 1)
        return column.absent(_missing(column, holdings, needed), None, next(together, ()))

    def rank(groups: Ints) -> tuple[float, int, bytes]:
        bits = round(partition_entropy(groups, column.weights), 9)
        return -bits, -group_count(groups), groups.tobytes()

    near = [c for holding in holdings[:NEAR] for c in holding.codings]
    best, *rest = sorted(found, key=rank)
    holders = [h for h in holdings if h.held.groups is not None and refines(h.held.groups, best)]
    count, of = sum(len(holding.forms) for holding in holders), len(forms)
    exact = all(holding.held.exact for holding in holders)
    verb = "holds" if count == 1 else "hold"
    because = [f"{count:,} of {plural(of, 'form')} {verb} it at this detail or finer"]
    for holding in holders[:SHOWN]:
        names = quoted([forms[place].name for place in holding.forms], SHOWN)
        words = "; ".join(holding.held.words)
        because.append(f"{' and '.join(holding.codings)} in {names}: {words}")
    if len(holders) > SHOWN:
        because.append(f"and {len(holders) - SHOWN:,} more codings")
    because += inexact(exact)
    if not complete:
        because.append("there are too many joins: the search ended before it had seen all")
    antichain = [maker.name(column, groups, near)[0] for groups in (best, *rest)]
    if rest:
        because.append(f"held by enough forms and not coarser: {', '.join(antichain[1:])}")
    told: Any = {"antichain": antichain, "because": because, "near": near}
    return maker.make(column, best, holders=count, of=of, exact=exact, **told)


def _missing(column: keys.TargetColumn, holdings: Sequence[Holding], needed: int) -> str:
    """Say why a column is not in the key of a class."""
    if not holdings:
        return "no form of the class asks it"
    asking = sum(len(holding.forms) for holding in holdings)
    unresolved = [holding for holding in holdings if holding.held.groups is None]
    telling = [holding for holding in holdings if holding.held.tells(column)]
    if unresolved and not telling:
        return f"unresolved: {'; '.join(unresolved[0].held.words)}"
    some = sum(len(holding.forms) for holding in telling)
    verb = "asks" if asking == 1 else "ask"
    return (
        f"{plural(asking, 'form')} {verb} it, {some:,} so that answers can be distinguished;"
        f" no coding with two or more categories is held by {needed:,}"
    )


# So many candidates are looked at, fewer of many categories, before the search says that it
# is not complete.
MOST_CANDIDATES = 3_000
BUDGET = 50_000_000


def finest(
    partitions: Sequence[Ints],
    counts: Sequence[int],
    needed: int,
    *,
    substantive: Flags,
    weights: Floats | None = None,
) -> tuple[list[Ints], bool]:
    """Return the finest joins of partitions that enough forms hold, and whether all were seen.

    A form holds a partition if its own refines it. `partitions` are the canonical ones that forms
    hold, `counts` how many hold each. One with a single group of `substantive` categories tells
    nothing and is left out. A join is told by the closed set of partitions that refine it; each
    is made once, by adding a later member after which no new earlier one comes in (as in
    `closed_sets`), the finest first, and no higher than the first that enough forms hold.
    """
    answers = np.flatnonzero(substantive)
    known = Counter[bytes]()
    for partition, count in zip(partitions, counts, strict=True):
        if _tells(partition, answers):
            known[partition.tobytes()] += count
    if not known:
        return [], True
    # The commonest first, so that few forms remain to be added soon.
    ordered = sorted(known.items(), key=lambda item: (-item[1], item[0]))
    held = [np.frombuffer(key, dtype=np.int64) for key, _ in ordered]
    forms = np.array([count for _, count in ordered], dtype=np.int64)
    firsts = np.array([representatives(partition) for partition in held])
    heap: list[tuple[float, int, bytes, int]] = []

    def add(partition: Ints, core: int) -> None:
        """Queue a candidate made by adding the partition numbered `core`."""
        bits = round(partition_entropy(partition, weights), 9)
        heapq.heappush(heap, (-bits, -group_count(partition), partition.tobytes(), core))

    def holding(partition: Ints) -> Flags:
        """Tell which of the forms' partitions refine a candidate."""
        return np.asarray((partition[firsts] == partition).all(axis=1))

    found: list[tuple[Ints, Ints]] = []  # with their representatives, to see what is coarser
    add(np.arange(firsts.shape[1]), -1)
    looked, most = 0, max(50, min(MOST_CANDIDATES, BUDGET // firsts.size))
    while heap and looked < most:
        *_, key, core = heapq.heappop(heap)
        candidate = np.frombuffer(key, dtype=np.int64)
        if any((candidate[first] == candidate).all() for _, first in found):
            continue
        looked += 1
        holds = holding(candidate)
        if forms[holds].sum() >= needed:
            found.append((candidate, representatives(candidate)))
            continue
        # Join it with later partitions, as long as enough forms can still come in.
        reachable = int(forms[holds].sum() + forms[core + 1 :][~holds[core + 1 :]].sum())
        for i in range(core + 1, len(held)):
            if reachable < needed:
                break
            if not holds[i]:
                reachable -= int(forms[i])
                further = join_partitions(candidate, held[i])
                if _tells(further, answers) and not (holding(further) & ~holds)[:i].any():
                    add(further, i)
    return [partition for partition, _ in found], not heap


def _tells(partition: Ints, answers: Ints) -> bool:
    return len(answers) > 0 and bool((partition[answers] != partition[answers[0]]).any())


# --- key sets that forms hold together ----------------------------------------------------------


def closed_sets(holders: Sequence[int], everybody: int, minimum: int) -> Iterator[tuple[int, int]]:
    """Yield (items, support) of each closed set, in falling order of support.

    A set is closed if nothing can be added to it without losing a holder. `holders` has for each
    item its holders as the bits of a whole number; sets with fewer than `minimum` are left out.
    Each is made once, by adding to its parent an item after which it has no new earlier one (the
    prefix-preserving closure extension of LCM, Uno et al. 2004), best first.
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
MOST_SETS = 20_000
SETS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class KeySet:
    """Columns that the same forms hold as in the class key; `bits` is the most they can tell."""

    columns: tuple[str, ...]
    support: int
    share: float
    bits: float


@dataclass(frozen=True, slots=True, repr=False)
class JointKeys(Result):
    """The closed sets of key columns that forms hold together.

    `whole` is how many forms hold the whole key. `found` counts the sets of two or more columns, of
    which `sets` have the most bits. Unless `complete`, all with a support above `searched_to` were
    seen.
    """

    target: str
    forms: int
    minimum: int
    found: int
    whole: int
    complete: bool
    searched_to: int
    sets: tuple[KeySet, ...]
    mapping: Annotated[keys.KeyMapping, HIDDEN]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a set."""
        return frame_of(self.sets, columns=list[str], support=int, share=float, bits=float)

    def tables(self) -> list[Table]:
        """Return the sets with the most bits."""
        rows = [
            [", ".join(s.columns), f"{s.support:,}", share(s.share, 3), share(s.bits, 2)]
            for s in self.sets[:SETS_SHOWN]
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
    weights: keys.ColumnWeights | None = None,
    minimum: int | None = None,
    limit: int = 50,
) -> JointKeys:
    """Find the sets of key columns that forms hold together, with their support.

    The key of `map_class`, which takes the same options, says at which coding a form must hold a
    column. `minimum` is how many forms must hold a set (as many as the threshold asks for if left
    out), `limit` how many sets to return: those with the most bits.
    """
    graph = CodingGraph.of(environment)
    of: Any = {"sector": sector, "purpose": purpose, "classifications": classifications}
    mapping = map_class(graph, target, **of, threshold=threshold, weights=weights)
    graph, aim = keys.upper_graph(graph, target)
    forms, _ = forms_in(graph, sector, purpose, classifications)
    least = mapping.needed if minimum is None else minimum
    if least < 1 or limit < 1:
        raise OptionError("minimum and limit must be at least 1. Got less instead.")
    columns = {c.name: c for c in keys.columns_of(graph, aim, weights)[0]}
    holders = []  # of each variable at its coding in the key, as bits
    for variable in mapping.key:
        groups = np.array(variable.groups, dtype=np.int64)
        every = holdings_of(graph, columns[variable.column], forms)
        told = (h for h in every if h.held.groups is not None and refines(h.held.groups, groups))
        holders.append(sum(1 << place for holding in told for place in holding.forms.tolist()))
    whole = reduce(and_, holders).bit_count() if holders else 0
    found: list[KeySet] = []
    seen = list(islice(closed_sets(holders, mapping.forms, least), MOST_SETS + 1))
    for items, support in seen[:MOST_SETS]:
        held = [v for i, v in enumerate(mapping.key) if items >> i & 1]
        if len(held) > 1:
            names, bits = tuple(v.column for v in held), sum(v.entropy for v in held)
            found.append(KeySet(names, support, support / mapping.forms, bits))
    found.sort(key=lambda s: (-round(s.bits, 9), -s.support, s.columns))
    complete = len(seen) <= MOST_SETS
    head = mapping.target, mapping.forms, least, len(found), whole, complete
    return JointKeys(*head, least if complete else seen[-1][1], tuple(found[:limit]), mapping)
