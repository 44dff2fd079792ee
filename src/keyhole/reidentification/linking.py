"""Linkage of a public file with an intruder's: the suspected pairs (Singer & Dajani, section 2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.core.marks import COUNT, HIDDEN, SPREAD, Share, figure
from keyhole.core.names import absent
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.data.microdata import Microdata
from keyhole.engines.resources import in_turn, workers
from keyhole.errors import ColumnError, OptionError
from keyhole.kernels.arrays import Flags, Floats, Ints, Numbers, Words
from keyhole.kernels.packing import Layout, in_order, pack
from keyhole.reidentification.question import Linkage, Orders
from keyhole.reidentification.rates import number_strata
from keyhole.reidentification.variables import (
    LinkCodes,
    linking_category,
    linking_variable,
    variable_problems,
)
from keyhole.results import Result, share

if TYPE_CHECKING:
    from keyhole.kernels.unicity import Visits
    from keyhole.reidentification.neighbours import Progress
    from keyhole.reidentification.scores import Costs, Graded

Places = Mapping[str, npt.NDArray[np.integer]]
V = TypeVar("V", bound="LinkCodes | Graded")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Pairs(Result):
    """The suspected re-identification pairs, in order of PUF record, rank and EIF record.

    Parameters
    ----------
    linkage
        The linking variables, the metric and its settings.
    pairs, suspected
        How many there are, and how many PUF records have at least one.
    puf, eif
        The record numbers of each pair, counted from 0 in the order of the files.
    score
        The metric of each pair; for unicity the number of variables of the smallest set.
    rank
        The rank of the score within the PUF record, 1 the best; for unicity 1 throughout.
    subset
        For unicity the smallest set of variables that makes the pair, bit j for the j-th
        linking variable; for the other metrics none.
    """

    linkage: Annotated[Linkage, SPREAD]
    puf_records: Annotated[int, COUNT]
    eif_records: Annotated[int, COUNT]
    pairs: Annotated[int, COUNT]
    suspected: Annotated[int, COUNT]
    puf: Annotated[Ints, HIDDEN]
    eif: Annotated[Ints, HIDDEN]
    score: Annotated[Floats, HIDDEN]
    rank: Annotated[Ints, HIDDEN]
    subset: Annotated[Words | None, HIDDEN] = None
    warnings: tuple[str, ...] = ()
    lost: Annotated[int | None, HIDDEN] = None

    @property
    @figure(Share("puf_records"))
    def putative_rate(self) -> float:
        """The share of PUF records with at least one suspected pair."""
        return self.suspected / self.puf_records

    def subset_names(self) -> list[str] | None:
        """Return for unicity the variables of each pair's smallest set, as ``sex + age``."""
        if self.subset is None:
            return None
        masks, places = np.unique(self.subset, return_inverse=True)
        named = [
            " + ".join(name for j, name in enumerate(self.linkage.link) if mask >> j & 1)
            for mask in masks.tolist()
        ]
        return [named[place] for place in places]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a pair: record numbers, score and rank, or for unicity the subset."""
        frame = pl.DataFrame({"puf": self.puf, "eif": self.eif})
        if self.subset is None:
            return frame.with_columns(score=pl.Series(self.score), rank=pl.Series(self.rank))
        return frame.with_columns(
            size=pl.Series(self.score.astype(np.int64)),
            subset=pl.Series(self.subset_names(), dtype=pl.String),
        )

    def tables(self) -> list[Table]:
        """Return the figures as a table; no record is shown."""
        asked = self.linkage
        rows = [
            ["PUF records", f"{self.puf_records:,}"],
            ["EIF records", f"{self.eif_records:,}"],
            ["suspected pairs", f"{self.pairs:,}"],
            ["PUF records suspected", f"{self.suspected:,}"],
            ["suspected (putative) rate", share(self.putative_rate)],
        ]
        if asked.effective_threshold is not None:
            word = "above" if asked.metric == "adhoc" else "below"
            text = f"{word} {asked.effective_threshold:.6g} ({asked.threshold})"
            rows += [["threshold", text], ["rank cap", f"{asked.rank_cap}"]]
        title = f"Pairs by {asked.metric} on {', '.join(asked.link)}"
        return [Table(title, ["figure", "value"], rows, list(self.warnings))]


@dataclass(frozen=True, slots=True, eq=False)
class LinkAttack:
    """The linking variables as a metric needs them: as categories for unicity, else priced."""

    question: Question
    categories: tuple[LinkCodes, ...] = ()
    costs: Costs | None = None

    @property
    def threshold(self) -> float | None:
        """The score to be below, or for adhoc above; None for unicity."""
        return None if self.costs is None else self.costs.threshold

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know of prices and threshold."""
        return () if self.costs is None else self.costs.warnings

    def find(
        self, strata: LinkCodes | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Search; return the pairs, their scores and ranks by their names in `Pairs`."""
        asked = self.question
        if self.costs is None:
            puf, eif, subset = find_mates(self.categories, strata, asked.orders, progress)
            score, rank = np.bitwise_count(subset).astype(np.float64), np.ones(len(puf), np.int64)
            return {"puf": puf, "eif": eif, "score": score, "rank": rank, "subset": subset}
        from keyhole.reidentification import scores
        from keyhole.reidentification.neighbours import find_nearest

        cap = min(asked.rank_cap, self.costs.eif_records)  # nobody has more pairs
        ranked = find_nearest(self.costs, strata, cap, progress=progress)
        score, count = ranked.keys / scores.DECIMALS, len(asked.link)
        if asked.metric == "taxicab":
            score = np.round(score / count, 9)
        elif asked.metric == "adhoc":
            score = np.round(scores.BEST_SCORE * count - score, 9)
        return {"puf": ranked.puf, "eif": ranked.eif, "score": score, "rank": ranked.ranks}

    def lost(
        self, found: Mapping[str, Any], truth: tuple[Ints, Ints], strata: LinkCodes | None = None
    ) -> int | None:
        """Count the true pairs within the threshold that the rank rule does not keep."""
        if self.costs is None:
            return None
        puf, eif = truth
        fits = self.costs.keys(puf, eif) < self.costs.bound
        if strata is not None:
            fits &= strata.puf[puf] == strata.eif[eif]
        width = self.costs.eif_records
        kept = np.isin(puf * width + eif, found["puf"] * width + found["eif"])
        return int((fits & ~kept).sum())

    def only(self, puf: Places, eif: Places) -> LinkAttack:
        """Return the attack on some records, given by their places in each variable."""
        costs = self.costs
        if costs is not None:
            counted = tuple(only(v, puf, eif) for v in costs.counted)
            graded = tuple(only(v, puf, eif) for v in costs.graded)
            costs = dataclasses.replace(costs, counted=counted, graded=graded)
        categories = tuple(only(v, puf, eif) for v in self.categories)
        return dataclasses.replace(self, categories=categories, costs=costs)


def only(variable: V, puf: Places, eif: Places) -> V:
    """Return a variable of some records, given by their places in it."""
    name = variable.name
    held: dict[str, Any] = {"puf": variable.puf[puf[name]], "eif": variable.eif[eif[name]]}
    return dataclasses.replace(variable, **held)


def prepare(
    puf: Microdata,
    eif: Microdata,
    question: Question,
    counts: Mapping[str, tuple[Ints, Ints]] | None = None,
) -> LinkAttack:
    """Make the variables ready to search; `counts` tells for how many records rows stand."""
    held = counts or {}
    if question.metric == "unicity":
        cut = (linking_category(puf, eif, n, question, held.get(n)) for n in question.link)
        return LinkAttack(question, categories=tuple(cut))
    from keyhole.reidentification import scores

    if question.metric == "adhoc":
        return LinkAttack(question, costs=scores.adhoc(puf, eif, question))
    variables = [linking_variable(puf, eif, n, question, held.get(n)) for n in question.link]
    price = scores.taxicab if question.metric == "taxicab" else scores.euclidean
    return LinkAttack(question, costs=price(variables, question))


def find_pairs(
    puf: Microdata,
    eif: Microdata,
    question: Question,
    progress: Progress | None = None,
    truth: tuple[Ints, Ints] | None = None,
) -> Pairs:
    """Check the files and search for pairs; of true ones, count those the rank rule leaves out."""
    if puf.name == eif.name:
        puf, eif = puf.replace(name=f"PUF {puf.name}"), eif.replace(name=f"EIF {eif.name}")
    absent_names = linked_column_problems(question, {puf.name: puf.names, eif.name: eif.names})
    if question.problems or absent_names:
        raise OptionError([*question.problems, *absent_names])
    check_variables(puf, eif, question)
    strata = number_strata(puf, eif, question.strata).as_category() if question.strata else None
    attack = prepare(puf, eif, question)
    found = attack.find(strata, progress)
    return Pairs(
        Linkage.asked(question, attack.threshold),
        puf.records,
        eif.records,
        len(found["puf"]),
        len(np.unique(found["puf"])),
        **found,
        warnings=attack.warnings,
        lost=None if truth is None else attack.lost(found, truth, strata),
    )


def check_variables(puf: Microdata, eif: Microdata, question: Question) -> None:
    """Say everything that is wrong with the variables."""
    for data in (puf, eif):
        data.require_records()
    problems = variable_problems(puf, eif, question)
    if problems:
        raise ColumnError(problems)


def linked_column_problems(question: Question, files: Mapping[str, Sequence[str]]) -> list[str]:
    """Say which linking variables and strata are no columns of the files, given by name."""
    columns = {"linking variable": question.link, "stratum": question.strata}
    return [
        problem
        for file, known in files.items()
        for purpose, names in columns.items()
        for problem in absent(names, list(known), purpose=purpose, where=repr(file))
    ]


MOST_VARIABLES = 64
_NO_CODE = -1
_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)


class Mates(NamedTuple):
    """Pairs of records and the smallest set that makes each: bit j is variable j."""

    puf: Ints
    eif: Ints
    subset: Words


def find_mates(
    variables: Sequence[LinkCodes],
    strata: LinkCodes | None,
    orders: Orders = "all",
    progress: Progress | None = None,
) -> Mates:
    """Find the pairs that are alone with each other in a cell of some variables (section 2.1).

    For every non-empty set of variables, among the records complete on it: the cells with exactly
    one PUF record and one EIF record. Of the sets of a pair the smallest is told, of several of one
    size the one of the earliest variables (the lowest mask).
    """
    if orders == "highest":
        return _highest(variables, strata)
    search = _Search(variables, strata)
    pieces = search.pieces()
    found = []
    for number, (_, part) in enumerate(in_turn(search.find, pieces, search.stop), start=1):
        found.append(part)
        if progress is not None:
            progress(number, len(pieces))
    keys, masks = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    return _smallest(keys, masks)


def _highest(variables: Sequence[LinkCodes], strata: LinkCodes | None) -> Mates:
    """Match the records that are alone on all variables, and complete."""
    from keyhole.reidentification.neighbours import collapse

    columns = list(variables) if strata is None else [*variables, strata]
    names = [str(i) for i in range(len(columns))]
    frames = []
    for file in ("puf", "eif"):
        patterns = collapse([getattr(c, file) for c in columns], [c.size for c in columns])
        alone = patterns.counts == 1
        for v, variable in enumerate(variables):
            alone &= patterns.codes[:, v] != variable.missing
        frame = pl.DataFrame(patterns.codes[alone], schema=names)
        frames.append(frame.with_columns(record=pl.Series(patterns.first_records[alone])))
    pairs = frames[0].join(frames[1], on=names).sort("record")
    everything = np.uint64((1 << len(variables)) - 1)
    puf, eif = (pairs[name].to_numpy().astype(np.int64) for name in ("record", "record_right"))
    return Mates(puf, eif, np.full(pairs.height, everything, dtype=np.uint64))


class _Search:
    """Both files arranged for the kernel: the most selective variables come first."""

    def __init__(self, variables: Sequence[LinkCodes], strata: LinkCodes | None) -> None:
        from keyhole.reidentification.neighbours import entropy

        given = [] if strata is None else [strata]
        entropies = [entropy(_counts(v)) for v in variables]
        order = sorted(range(len(variables)), key=lambda v: -entropies[v])
        self._order = [*given, *(variables[v] for v in order)]
        self._leads = given or self._order
        layout = in_order([v.size for v in self._order])
        self._files = [*self._arranged("puf", layout), *self._arranged("eif", layout)]
        self._plan = _plan(self._order, [0] * len(given) + [1 << v for v in order], layout)
        self._watch = np.zeros(1, dtype=np.int64)

    def _arranged(self, file: str, layout: Layout) -> tuple[Words, Numbers]:
        """Pack the distinct patterns, the last variables counting most, and who has each."""
        from keyhole.kernels.unicity import SEVERAL

        rows = pack([getattr(v, file).astype(np.uint32) for v in self._order], layout)
        places = np.argsort(rows[:, 0]) if layout.words == 1 else np.lexsort(rows.T)
        rows = rows[places]
        first = np.ones(len(rows) + 1, dtype=np.bool_)
        first[1:-1] = (rows[1:] != rows[:-1]).any(axis=1)
        alone = first[:-1] & first[1:]
        records = np.where(alone, places, SEVERAL).astype(np.int32)
        return rows[first[:-1]], records[first[:-1]]

    def pieces(self) -> list[tuple[int, Flags]]:
        """Cut the work: by the first variable of a set, or the stratum, and by its codes."""
        pieces = []
        for lead, variable in enumerate(self._leads):
            counts = _counts(variable)
            falling = np.argsort(-counts, kind="stable")
            shares = max(1, 2 * workers() >> lead)  # each lead has half the sets of the one before
            for part in range(shares):
                chosen = np.zeros(len(counts), dtype=np.bool_)
                chosen[falling[part::shares]] = True
                pieces.append((lead, chosen & (counts > 0)))
        return [piece for piece in pieces if piece[1].any()]

    def find(self, piece: tuple[int, Flags]) -> tuple[Words, Words]:
        """Find the pairs of one piece of work."""
        from keyhole.kernels import unicity

        found: tuple[Words, Words] = unicity.find(*self._files, self._plan, *piece, self._watch)
        return found

    def stop(self) -> None:
        """Let the pieces under way end early."""
        self._watch[0] = 1


def _plan(order: Sequence[LinkCodes], bits: Sequence[int], layout: Layout) -> Visits:
    from keyhole.kernels.unicity import SMALL, Visits

    missing = [v.missing if bit else _NO_CODE for v, bit in zip(order, bits, strict=True)]
    return Visits(
        layout.word,
        layout.shift.astype(np.uint64),
        ((1 << layout.bits) - 1).astype(np.uint64),
        np.array(missing, dtype=np.int64),
        np.array(bits, dtype=np.uint64),
        np.array([layout.mask(range(t, len(order))) for t in range(len(order) + 1)]),
        SMALL,
    )


def _counts(variable: LinkCodes) -> Ints:
    """Count the records of both files by code."""
    codes = np.concatenate([variable.puf, variable.eif])
    return np.bincount(codes, minlength=variable.size)


def _smallest(keys: Words, masks: Words) -> Mates:
    """Keep the smallest set of each pair: fewest variables, then the lowest mask."""
    sizes = np.bitwise_count(masks).astype(np.uint64)
    narrow = not masks.max(initial=np.uint64(0)) >> _HALF
    order = np.argsort(keys) if narrow else np.lexsort([masks, sizes, keys])
    keys, masks, sizes = keys[order], masks[order], sizes[order]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    if narrow and len(keys):  # size and mask in one word, of which the least is wanted
        ranks = np.minimum.reduceat((sizes << _HALF) | masks, np.flatnonzero(first))
        smallest = ranks & _LOWER
    else:
        smallest = masks[first]
    keys = keys[first]
    return Mates((keys >> _HALF).astype(np.int64), (keys & _LOWER).astype(np.int64), smallest)
