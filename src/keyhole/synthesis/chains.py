"""Chains: the targets of blanked records filled in turn, by donors with close predictions.

Models are fitted to the records that are whole, so that one bootstrap and one Gram matrix serve
all the targets; what a fold blanks is taken out of the matrix again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from keyhole.core.options import Question
from keyhole.kernels.arrays import Array, Flags, Floats, Ints
from keyhole.synthesis.constraints import MOST_CHOICES, Acceptance
from keyhole.synthesis.design import Design, Weights
from keyhole.synthesis.models import (
    CentredGram,
    Fitted,
    centred,
    fit_quantiles,
    fit_shares,
    fit_target,
    refit,
    strongest,
)
from keyhole.synthesis.trees import FittedTree, fit_tree

Match = Literal["closest", "k-closest", "weighted"]
Predictions = npt.NDArray[np.floating]
Model = Fitted | FittedTree

# Numbers of records within a pool.
Places = npt.NDArray[np.int32]
# Hmisc's reach of tricube weights, as a share of the mean distance.
REACH = 0.2
# Proposals of the weighted draw; more than half are taken, so these practically never run out.
PROPOSALS = 32
# Donors offered to a record whose first choice was refused, and then to those left over.
OFFERS = (8, 64, 512, 4096)
# Where fewer records than this are alike, all others may give too.
LEAST_ALIKE = 4
# So many neighbours are asked to exchange a value that may not return.
EXCHANGES = 24
# Donors with the same choice of values under the rules are a pool if there are so many.
LEAST_POOL = 30
# Its multiples, but for their integers, are spread evenly.
GOLDEN = (math.sqrt(5) - 1) / 2
# So many records alike exchange their draws at random.
NEIGHBOURS = 10
# So often are shares made to fit the donors.
ROUNDS, TINY = 10, 1e-300
# A category of at most so many levels is drawn from their shares.
MOST_DRAWN = 30
# Sums of products of the folds are kept if they have no more entries than this.
MOST_KEPT = 1 << 22
# How far another pool is, and a standard deviation of a tied number, in those of a prediction.
ANOTHER_POOL, TIED = 100.0, 2.0


@dataclass(frozen=True, slots=True, eq=False)
class DrawingPlan:
    """What is to be replaced, and how.

    `replace` has a row for each record of the file and a column for each target; the predictors
    in `first` are the last to be left out of a model. `question` is that of `synthesise`. Where
    `alike` is given, a target of a record marked in it is taken from a record marked too.
    """

    targets: tuple[str, ...]
    predictors: Mapping[str, tuple[str, ...]]
    replace: Flags
    question: Question
    acceptance: Acceptance
    first: frozenset[str] = frozenset()
    alike: Flags | None = None


class Folds:
    """The folds of a pool, whose `rows` are its records in the file, and what is fitted outside.

    Implicates that share their folds also share the fitted shares of categories, which need no
    bootstrap.
    """

    def __init__(
        self, plan: DrawingPlan, design: Design, rows: Ints, random: np.random.Generator
    ) -> None:
        self.plan, self.design, self.rows = plan, design, rows
        self.blanked = np.asarray(plan.replace[rows].any(axis=1))
        self.number = np.zeros(len(rows), dtype=np.int64)
        if plan.question.donors == "folds":
            blanked = random.permutation(np.flatnonzero(self.blanked))
            others = random.permutation(np.flatnonzero(~self.blanked))
            # The others begin with the last, so that no fold has all the records.
            for some, first in ((blanked, 0), (others, -1)):
                self.number[some] = (first + np.arange(len(some))) % plan.question.folds
        self._shares: dict[tuple[str, tuple[str, ...], bool, int], Fitted] = {}
        self._logs: dict[tuple[int, tuple[str, ...], bool], Predictions] = {}
        self._busy = RLock()

    def shares(self, t: int, predictors: tuple[str, ...], fold: int, alike: bool) -> Fitted:
        """Fit the shares of a category's levels to the records outside a fold."""
        asked = (self.plan.targets[t], predictors, alike, fold)
        with self._busy:  # implicates on other threads ask for the same
            if asked not in self._shares:
                common = self.plan.question.donors == "common"
                used = ~self.blanked if common else self.number != fold
                if alike and self.plan.alike is not None:
                    marked = used & self.plan.alike[self.rows, t]
                    used = marked if marked.sum() >= LEAST_ALIKE else used
                rows = np.flatnonzero(used)
                self._shares[asked] = fit_shares(self.design, *asked[:2], rows)
            return self._shares[asked]

    def logs(self, t: int, predictors: tuple[str, ...], alike: bool) -> Predictions:
        """Return the logarithms of the shares of each record, predicted without its own fold.

        A model knows the rare levels of its own records.
        """
        asked = t, predictors, alike
        with self._busy:
            if asked not in self._logs:
                if len(self._logs) > len(self.plan.targets):  # many patterns of blanks
                    self._logs.clear()
                at = self.design.names.index(self.plan.targets[t])
                logs = np.empty((len(self.rows), len(self.design.blocks[at].values)), np.float32)
                for fold in range(int(self.number.max(initial=-1)) + 1):
                    here = np.flatnonzero(self.number == fold)
                    logs[here] = self.shares(*asked[:2], fold, alike).predict(
                        self.design.codes, here
                    )
                self._logs[asked] = logs
            return self._logs[asked]


class Chain:
    """Draws one implicate for the subgroups of a pool."""

    def __init__(self, shared: Folds, random: np.random.Generator) -> None:
        self.shared, self.plan, self.design = shared, shared.plan, shared.design
        self.rows, self.folds, self.blanked = shared.rows, shared.number, shared.blanked
        self.random = random
        self.places = [self.design.places(target) for target in self.plan.targets]
        self.quantiles: dict[tuple[str, tuple[str, ...]], Floats] = {}
        self._models: dict[int, Fitted] = {}
        design, records = self.design, len(self.rows)
        usable = np.arange(records, dtype=np.int32)
        if self.plan.question.donors == "common":
            usable = usable[~self.blanked]
        drawn = usable[random.integers(len(usable), size=len(usable))] if len(usable) else usable
        weights = {"drawn": np.bincount(drawn, minlength=records)}
        if self.plan.question.donor_model == "refit":
            weights["observed"] = np.bincount(usable, minlength=records)
        self.weights = {which: one.astype(np.float32) for which, one in weights.items()}
        # What a fold blanks is taken out of the sums again: it is added up by itself, if that is
        # not too much to keep.
        folds = int(self.folds.max(initial=-1)) + 1
        self.apart: list[dict[str, Floats]] = []
        if self.plan.question.donors == "folds" and folds * design.size**2 <= MOST_KEPT:
            self.apart = [self._grams(self.without(fold)) for fold in range(folds)]
            usable = usable[~self.blanked]
        self.grams = self._grams(usable)
        for part in self.apart:
            self.grams = {which: gram + part[which] for which, gram in self.grams.items()}

    def without(self, fold: int) -> Places:
        """Return the records that are blanked in a fold."""
        return np.flatnonzero(self.blanked & (self.folds == fold)).astype(np.int32)

    def _grams(self, rows: Places) -> dict[str, Floats]:
        codes = self.design.codes
        return {which: self.design.gram(rows, w, codes) for which, w in self.weights.items()}

    def moments(self, fold: int) -> dict[str, CentredGram]:
        """Return the centred sums of products without the records blanked in a fold."""
        grams = self.grams
        if self.plan.question.donors == "folds":
            out = self.apart[fold] if self.apart else self._grams(self.without(fold))
            grams = {which: gram - out[which] for which, gram in grams.items()}
        return {which: centred(gram) for which, gram in grams.items()}

    def run(
        self, subgroups: Sequence[Places], randoms: Sequence[np.random.Generator]
    ) -> list[tuple[Ints, Ints]]:
        """Fill the blanked records of subgroups, given by their places in the pool."""
        plan, filled = self.plan, []
        whole = [(members, members[self.blanked[members]]) for members in subgroups]
        given = [np.repeat(blanked[:, None], len(plan.targets), axis=1) for _, blanked in whole]
        free = [one.copy() for one in given]
        for fold in range(int(self.folds.max(initial=-1)) + 1):
            models = _FoldModels(self, fold)
            for s, (members, blanked) in enumerate(whole):
                here = np.flatnonzero(self.folds[blanked] == fold)
                giving = np.zeros(len(self.rows), dtype=np.bool_)
                giving[members] = True
                giving[blanked if plan.question.donors == "common" else blanked[here]] = False
                donors = np.flatnonzero(giving).astype(np.int32)
                if len(donors) and len(here):
                    one = _Fold(self, models, blanked[here], donors, randoms[s])
                    given[s][here], free[s][here] = one.fill(), one.free
        for (_, blanked), own, left, random in zip(whole, given, free, randoms, strict=True):
            for t in range(len(plan.targets)) if plan.acceptance.must_change is not None else ():
                self._exchange(t, blanked, own, left[:, t])
            self._never_own(blanked, own, random)
            filled.append((self.rows[blanked], self.rows[own]))
        return filled

    def _never_own(self, blanked: Places, given: Places, random: np.random.Generator) -> None:
        """Give a target that is drawn as a whole of any other record where no donor was found."""
        leaders = np.array(self.plan.acceptance.leaders)
        for t, name in enumerate(self.plan.targets):
            left = np.flatnonzero(given[:, t] == blanked)
            if name in self.plan.question.whole and len(left) and len(self.rows) > 1:
                other = random.integers(len(self.rows) - 1, size=len(left))
                other += other >= blanked[left]
                given[np.ix_(left, np.flatnonzero(leaders == leaders[t]))] = other[:, None]

    def _exchange(self, t: int, blanked: Places, given: Places, free: Places) -> None:
        """Pass values that may not return on to records alike, or frequent ones become rarer."""
        accept, rows, own = self.plan.acceptance, self.rows, self.rows[blanked]
        if accept.must_change is None or accept.leaders.count(accept.leaders[t]) > 1:
            return  # the parts of a sum are drawn as a whole
        codes: Ints = accept.data.codes(accept.targets[t]).values[rows]
        mine, left, bars = codes[blanked], codes[free], accept.must_change[own, t]
        waiting = bars & (left == mine) & (codes[given[:, t]] != mine)
        if not waiting.any():
            return
        who = np.flatnonzero(self.plan.replace[own, t])
        at = np.flatnonzero(waiting[who])
        near = self._alike(t, blanked[who], given[who], at)
        for step in range(near.shape[1]):
            # The nearest first; nobody is asked by two.
            there = near[:, step]
            first = np.unique(there, return_index=True)[1]
            one, other = who[at[first]], who[there[first]]
            one, other = one[~waiting[other]], other[~waiting[other]]
            get, give = given[one], given[other]
            get[:, t], give[:, t] = given[other, t], free[one]
            fine = (codes[get[:, t]] != mine[one]) & (~bars[other] | (left[one] != mine[other]))
            fine &= (get[:, t] != blanked[one]) & (free[one] != blanked[other])
            fine &= accept.keeps(own[one], rows[get]) & accept.keeps(own[other], rows[give])
            given[one[fine]], given[other[fine]] = get[fine], give[fine]
            waiting[one[fine]] = False
            left_over = waiting[who[at]]
            at, near = at[left_over], near[left_over]
            if not len(at):
                return

    def _alike(self, t: int, blanked: Places, given: Places, asking: Ints) -> Ints:
        """Return neighbours among completed records, by what all the rest predicts of a target."""
        from scipy.spatial import cKDTree

        plan, design = self.plan, self.design
        if t not in self._models:
            moments, target = centred(self.grams["drawn"]), plan.targets[t]
            names, ridge = plan.predictors[target], plan.question.ridge
            names = strongest(design, moments, target, names, ridge, plan.first)
            self._models[t] = fit_target(design, moments, target, names, plan.question)[1]
        codes = design.codes[blanked]
        for u, at in enumerate(self.places):
            codes[:, at] = design.codes[np.ix_(given[:, u], at)]
        predicted = self._models[t].predict(codes, np.arange(len(codes)))
        most = min(EXCHANGES + 1, len(codes))
        nearest = cKDTree(predicted).query(predicted[asking], most)[1].reshape(len(asking), most)
        return np.asarray(nearest, dtype=np.int64)


class _Source(NamedTuple):
    """Where a target's values come from: the model, and its donors with their places."""

    model: Model
    donors: Donors | Holders
    places: Places
    pools: _DonorPools


class _FoldModels:
    """Models of a pool's bootstrap without the records blanked in a fold, for all its subgroups."""

    def __init__(self, chain: Chain, fold: int) -> None:
        self._chain, self.fold = chain, fold
        self._moments: dict[str, CentredGram] = {}
        self._fitted: dict[tuple[int, tuple[str, ...]], tuple[Model, Model]] = {}

    def get(self, t: int, predictors: tuple[str, ...]) -> tuple[Model, Model]:
        """Return the models of a target and of its donors, fitted once."""
        if (t, predictors) not in self._fitted:
            self._fitted[t, predictors] = self.fit(t, predictors)
        return self._fitted[t, predictors]

    def fit(
        self, t: int, predictors: tuple[str, ...], gram: Floats | None = None
    ) -> tuple[Model, Model]:
        """Fit a target: return the model of its records and of its donors.

        By the sums of products of the bootstrap if no others are given.
        """
        chain, plan, design = self._chain, self._chain.plan, self._chain.design
        question, target = plan.question, plan.targets[t]
        self._moments = self._moments or chain.moments(self.fold)
        kind = (question.models or {}).get(target)
        moments = self._moments["drawn"] if gram is None else centred(gram)
        weights = chain.weights["drawn"]
        if kind in ("tree", "quantile"):
            weights = weights.copy()
            weights[chain.without(self.fold)] = 0
        if kind == "tree" and predictors and weights.any():  # a tree chooses by itself
            seed = int(chain.random.integers(1 << 31))
            tree = fit_tree(design, target, predictors, weights, seed)
            return tree, tree
        predictors = strongest(design, moments, target, predictors, question.ridge, plan.first)
        if kind == "quantile" and predictors:
            quantiles = self._quantiles(target, predictors, weights)
            return quantiles, quantiles
        variates, model = fit_target(design, moments, target, predictors, question)
        if question.donor_model != "refit" or not predictors:
            return model, model
        observed = self._moments["observed"]
        return model, refit(design, observed, target, predictors, variates, question)

    def _quantiles(self, target: str, predictors: tuple[str, ...], weights: Weights) -> Fitted:
        """Fit quantiles to the bootstrap, and take records out again by a step from there."""
        asked, chain = (target, predictors), self._chain
        design, question, every = chain.design, chain.plan.question, chain.weights["drawn"]
        if asked not in chain.quantiles:
            found = fit_quantiles(design, *asked, np.flatnonzero(every), every, question)
            chain.quantiles[asked] = found[0]
        rows, start = np.flatnonzero(weights), chain.quantiles[asked]
        return fit_quantiles(design, *asked, rows, weights, question, start)[1]


class _Fold:
    """One fold of a subgroup: its records blanked, the others observed."""

    def __init__(
        self,
        chain: Chain,
        models: _FoldModels,
        recipients: Places,
        donors: Places,
        random: np.random.Generator,
    ) -> None:
        self._chain, self._plan, self._design, self._models = (
            chain,
            chain.plan,
            chain.design,
            models,
        )
        self._recipients, self._donors, self._random = recipients, donors, random
        self._codes = self._design.codes[recipients]
        self._replace = self._plan.replace[chain.rows[recipients]]
        self._given = np.repeat(recipients[:, None], len(self._plan.targets), axis=1)
        self.free = self._given.copy()
        self._fitted: dict[tuple[int, bool], _Source] = {}

    def fill(self) -> Places:
        """Return for each recipient the donor of each target, by its place in the pool."""
        published = self._plan.question.procedure == "paper"
        (self._fill_singly if published else self._fill_in_turn)()
        self._repair()
        return self._given

    def _fill_in_turn(self) -> None:
        """Fill each target given those before it, then again in cycles, given all the others."""
        plan, gram = self._plan, None
        for t in range(len(plan.targets)):
            leader = plan.acceptance.leaders[t]
            if leader != t:  # parts of a sum come from one donor
                self._give(t, np.flatnonzero(self._replace[:, t]), leader)
                continue
            for who, predictors in self._known(t):
                for some, alike in self._kinds(t, who):
                    self._update(t, some, self._fit(t, predictors, gram, alike))
        for _ in range(plan.question.cycles):
            if plan.question.bootstrap == "all":
                gram = self._gram_of_all()
                self._fitted.clear()
            for t, target in enumerate(plan.targets):
                for who, alike in self._kinds(t, np.flatnonzero(self._replace[:, t])):
                    if (t, alike) not in self._fitted:  # unless a cycle before has done it
                        fitted = self._fit(t, plan.predictors[target], gram, alike)
                        self._fitted[t, alike] = fitted
                    self._update(t, who, self._fitted[t, alike])

    def _fill_singly(self) -> None:
        """Fill each target at random, then better in cycles, by itself (Hawala & Funk, 2.3)."""
        for t, target in enumerate(self._plan.targets):
            who, at = np.flatnonzero(self._replace[:, t]), self._chain.places[t]
            before = self._codes[:, at]
            self._given[who, t] = self._random.choice(self._donors, len(who))
            self._give(t, who, t)
            for _ in range(self._plan.question.cycles):
                known = self._plan.predictors[target]
                self._update(t, who, self._fit(t, known, self._gram_of_all(), False))
            self._codes[:, at] = before

    def _known(self, t: int) -> Iterator[tuple[Ints, tuple[str, ...]]]:
        """Group the recipients of a target by what is known of them: all but what comes later."""
        targets, who = self._plan.targets, np.flatnonzero(self._replace[:, t])
        later = self._replace[who, t + 1 :]
        if (later == later[:1]).all():
            patterns, number = later[:1], np.zeros(len(who), dtype=np.int64)
        else:
            patterns, number = np.unique(later, axis=0, return_inverse=True)
        for p, pattern in enumerate(patterns):
            unknown = {name for name, blank in zip(targets[t + 1 :], pattern, strict=True) if blank}
            known = [n for n in self._plan.predictors[targets[t]] if n not in unknown]
            yield who[number.ravel() == p], tuple(known)

    def _kinds(self, t: int, who: Ints) -> Iterator[tuple[Ints, bool]]:
        """Part the recipients by whether their donors must be marked as alike."""
        if self._plan.alike is None:
            yield who, False
            return
        marked = self._plan.alike[self._chain.rows[self._recipients[who]], t]
        for alike in (False, True):
            if (marked == alike).any():
                yield who[marked == alike], alike

    def _gram_of_all(self) -> Floats:
        """Draw all the pool's records anew, the filled ones as they are now (the paper's 3a)."""
        codes = self._design.codes.copy()
        codes[self._recipients] = self._codes
        everybody = np.arange(len(codes))
        drawn = self._random.integers(len(codes), size=len(codes))
        weights = np.bincount(drawn, minlength=len(codes)).astype(np.float64)
        return self._design.gram(everybody, weights, codes)

    def _fit(
        self, t: int, predictors: tuple[str, ...], gram: Floats | None, alike: bool
    ) -> _Source:
        """Fit a target, by the sums of products of the bootstrap if no others are given."""
        question, design, models = self._plan.question, self._design, self._models
        if predictors and self._is_drawn(self._plan.targets[t]):
            return self._fit_shares(t, predictors, alike)
        asked = t, predictors
        model, of_donors = models.get(*asked) if gram is None else models.fit(*asked, gram)
        places = self._givers(t, alike)
        pools = _DonorPools(self._plan.acceptance, t, self._chain.rows[places])
        predicted = np.column_stack([of_donors.predict(design.codes, places), pools.donors])
        asked_of = {"match": question.match, "neighbours": question.neighbours}
        # Not where recipients lie outside all common donors, nor for the leaves of a tree: they are
        # evenly spaced, so that two may be as near.
        inside = question.donors == "folds" and not isinstance(model, FittedTree)
        donors = Donors(predicted, **asked_of, in_plane=inside)
        return _Source(model, donors, places, pools)

    def _givers(self, t: int, alike: bool) -> Places:
        """Return the donors of a target: those marked as alike, if there must be and are."""
        if alike and self._plan.alike is not None:
            marked: Places = self._donors[self._plan.alike[self._chain.rows[self._donors], t]]
            if len(marked) >= LEAST_ALIKE:
                return marked
        return self._donors

    def _is_drawn(self, target: str) -> bool:
        """Tell whether a target's level is drawn from shares, instead of matched."""
        block = self._design.blocks[self._design.names.index(target)]
        few = not block.is_numeric and len(block.values) <= MOST_DRAWN
        asked = (self._plan.question.models or {}).get(target, "logistic" if few else "")
        return bool(asked == "logistic") and self._plan.question.procedure != "paper"

    def _fit_shares(self, t: int, predictors: tuple[str, ...], alike: bool) -> _Source:
        """Return the shares of a category's levels, and the donors who hold each."""
        design, places = self._design, self._givers(t, alike)
        model = self._chain.shared.shares(t, predictors, self._models.fold, alike)
        at = design.names.index(self._plan.targets[t])
        codes = design.codes[places, at]
        pools = _DonorPools(self._plan.acceptance, t, self._chain.rows[places])
        logs = self._chain.shared.logs(t, predictors, alike)[places]
        return _Source(model, Holders(codes, logs), places, pools)

    def _update(self, t: int, who: Ints, source: _Source) -> None:
        """Give recipients a new donor for one target."""
        rows = self._chain.rows
        tied = source.pools.place(rows[self._recipients[who]], rows[self._given[who]])
        predicted = np.column_stack([source.model.predict(self._codes, who), tied])
        chosen = source.donors.draw(predicted, self._random, 1)
        chosen = self._shifted(t, who, source, chosen)[:, 0]
        self.free[who, t] = source.places[chosen]
        if self._plan.acceptance.concerns(self._plan.targets[t]):
            chosen = self._acceptable(t, who, predicted, source, chosen)
        found = chosen >= 0
        self._given[who[found], t] = source.places[chosen[found]]
        self._give(t, who[found], t)

    def _give(self, t: int, who: Ints, leader: int) -> None:
        """Let recipients have a target of the donor of another one, and predict by it."""
        giver = self._given[who, leader]
        self._given[who, t] = giver
        at = self._chain.places[t]
        self._codes[who[:, None], at] = self._design.codes[giver[:, None], at]

    def _acceptable(
        self, t: int, who: Ints, predicted: npt.NDArray[np.float32], source: _Source, chosen: Ints
    ) -> Ints:
        """Offer more and more donors to the records whose choice is not allowed; -1 if none is."""
        donors = source.donors
        chosen = np.where(self._allows(t, who, source.places, chosen), chosen, -1)
        for count in OFFERS:
            left = np.flatnonzero(chosen < 0)
            if not len(left) or count // 8 >= len(donors):
                break
            offered = donors.draw(predicted[left], self._random, count)
            offered = self._shifted(t, who[left], source, offered)
            askers = np.repeat(who[left], offered.shape[1])
            fine = self._allows(t, askers, source.places, offered.ravel()).reshape(offered.shape)
            first = fine.argmax(axis=1)
            taken = np.take_along_axis(offered, first[:, None], axis=1)[:, 0]
            chosen[left] = np.where(fine.any(axis=1), taken, -1)
        return chosen

    def _shifted(self, t: int, who: Ints, source: _Source, chosen: Ints) -> Ints:
        """Where a target is ordered with another number, take how far a donor's are apart."""
        rows, acceptance, width = self._chain.rows, self._plan.acceptance, len(self._plan.targets)
        givers = rows[source.places]
        own = np.repeat(givers[:, None], width, axis=1)
        of_donors = acceptance.gap(t, givers, own)
        mine = acceptance.gap(t, rows[self._recipients[who]], rows[self._given[who]])
        if of_donors is None or mine is None:
            return chosen
        values, others = of_donors
        order = np.argsort(values)[: int((~np.isnan(values)).sum())]
        if not len(order):
            return chosen
        ordered, apart, base = values[order], (values - others)[chosen], mine[1][:, None]
        wanted = base + apart
        after = np.clip(np.searchsorted(ordered, wanted), 0, len(order) - 1)
        before = np.maximum(after - 1, 0)
        place = np.where(wanted - ordered[before] < ordered[after] - wanted, before, after)
        # The nearest may be on the other side of the record's own number.
        least, most = (np.searchsorted(ordered, base, side=side) for side in ("left", "right"))
        place = np.where(apart >= 0, np.maximum(place, least), np.minimum(place, most - 1))
        place = np.clip(place, 0, len(order) - 1)
        known = ~np.isnan(wanted) & (chosen >= 0)
        return np.where(known, order[place], chosen)

    def _allows(self, t: int, who: Ints, places: Places, chosen: Ints) -> Flags:
        rows = self._chain.rows
        return (chosen >= 0) & self._plan.acceptance.allows(
            rows[self._recipients[who]], rows[self._given[who]], t, rows[places[chosen]]
        )

    def _repair(self) -> None:
        """Give a record that breaks a rule all its targets of one donor, or else its own values."""
        rows, acceptance = self._chain.rows, self._plan.acceptance
        own = rows[self._recipients]
        broken = np.flatnonzero(~acceptance.keeps(own, rows[self._given]))
        for donor in self._random.permutation(self._donors)[: OFFERS[2]]:
            if not len(broken):
                return
            tried = np.where(self._replace[broken], donor, self._recipients[broken, None])
            fine = acceptance.keeps(own[broken], rows[tried])
            self._given[broken[fine]] = tried[fine]
            broken = broken[~fine]
        self._given[broken] = self._recipients[broken, None]


class _DonorPools:
    """Donors of a target apart by the choice of values that the rules leave them.

    A pool that is too small is not split from its neighbours. `donors` has columns to match on
    beside the prediction: the pool, if there are several, and tied numbers.
    """

    def __init__(self, acceptance: Acceptance, target: int, rows: Ints) -> None:
        self._acceptance, self._ties = acceptance, acceptance.ties(target, rows)
        self._steps: list[Ints] = []
        self.donors = self._columns([tie.own[rows] for tie in self._ties], len(rows))

    def place(self, rows: Ints, given: Ints) -> Floats:
        """Return the columns of records, with what they were given so far."""
        tied = [self._acceptance.tied(tie, rows, given) for tie in self._ties]
        return self._columns(tied, len(rows))

    def _columns(self, tied: Sequence[Array], count: int) -> Floats:
        pool, pools, numbers, step = np.zeros(count, dtype=np.int64), 1, [], 0
        for tie, value in zip(self._ties, tied, strict=True):
            if tie.is_number:
                numbers.append(TIED * value)
                continue
            keys = pool * MOST_CHOICES + value
            if step == len(self._steps):
                kept = np.bincount(keys, minlength=pools * MOST_CHOICES) >= LEAST_POOL
                before = np.arange(len(kept)) // MOST_CHOICES
                self._steps.append(np.where(kept, pools - 1 + np.cumsum(kept), before))
            pool, pools = self._steps[step][keys], int(self._steps[step].max()) + 1
            step += 1
        apart = [pool * ANOTHER_POOL] if step else []
        return np.array([*apart, *numbers], dtype=np.float64).reshape(-1, count).T


class Holders:
    """Donors by the level they hold: a level is drawn from its share, then any who hold it."""

    def __init__(self, codes: npt.NDArray[np.unsignedinteger], logs: Predictions) -> None:
        from keyhole.kernels import level_shares

        size = logs.shape[1]
        self._order = np.argsort(codes, kind="stable").astype(np.int32)
        self._bounds = np.searchsorted(codes[self._order], np.arange(size + 1))
        # The pool may be more ordinary than the donors: they have each level as often as they do.
        held = np.bincount(codes, minlength=size)
        shares = np.exp((logs - logs.max(axis=1, keepdims=True)).astype(np.float64))
        times = level_shares.fit_times(shares, held, ROUNDS, TINY)
        with np.errstate(divide="ignore"):
            self._offset = np.log(times)

    def __len__(self) -> int:
        return len(self._order)

    def draw(self, predictions: Predictions, random: np.random.Generator, count: int) -> Ints:
        """Name donors for each recipient, by the logarithms of the shares of its levels."""
        from keyhole.kernels import level_shares

        held = np.diff(self._bounds) > 0
        logs = predictions[:, : len(held)] + self._offset
        shares = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
        wanted = random.random((len(logs), count))
        if count == 1:
            # Records alike have draws that are spread out, so that levels come as often as due.
            likely = np.lexsort((shares[:, -1], logs.argmax(axis=1)))
            # Which of its neighbours' draws a record has is chance, or implicates would differ from
            # each other by one number alone.
            place = np.lexsort((random.random(len(logs)), np.arange(len(logs)) // NEIGHBOURS))
            wanted[likely, 0] = (random.random() + GOLDEN * place) % 1
        wanted *= shares[:, -1:]
        level = level_shares.levels(shares, wanted)
        first, past = self._bounds[level], self._bounds[level + 1]
        out: Ints = self._order[first + (random.random(level.shape) * (past - first)).astype(int)]
        return out


class Donors:
    """Donors with their predictions, one row a donor, in one or several dimensions.

    Predictions are compared in single precision, so that the last bits of a sum decide nothing.
    ``weighted`` draws with tricube weights by distance in one dimension, the closest in several.
    """

    def __init__(
        self, predictions: Predictions, *, match: Match, neighbours: int, in_plane: bool = True
    ) -> None:
        self._match, self._neighbours = match, neighbours
        rounded = predictions.astype(np.float32, copy=False)
        self._is_line = rounded.shape[1] == 1
        self._in_plane = rounded.shape[1] == 2 and in_plane
        if self._is_line:
            order = np.argsort(rounded[:, 0], kind="stable")
            self._points = rounded[order, 0]
            self._order = order.astype(np.int32)
            return
        # Donors with equal predictions are one point.
        order = np.lexsort(rounded.T[::-1] if self._in_plane else rounded.T)
        self._order, points = order.astype(np.int32), rounded[order]
        is_first = np.ones(len(points), dtype=np.bool_)
        is_first[1:] = (points[1:] != points[:-1]).any(axis=1)
        self._bounds = np.append(np.flatnonzero(is_first), len(points))
        self._points = points[is_first]
        self._tree: Any = None

    def __len__(self) -> int:
        return len(self._order)

    def _nearest(self, queries: Predictions, count: int) -> Ints:
        """Return the nearest points of each query, the nearest first."""
        from keyhole.kernels import nearest_donors

        if count == 1 and self._in_plane:
            found: Ints = nearest_donors.nearest_in_plane(self._points, queries)
            return found[:, None]
        if self._tree is None:
            from scipy.spatial import cKDTree

            # A tree cut at middles of space is made much sooner, and here as good to search.
            self._tree = cKDTree(self._points, balanced_tree=False, compact_nodes=False)
        near = self._tree.query(queries, k=count)[1]
        return np.asarray(near, dtype=np.int64).reshape(len(queries), count)

    def draw(self, predictions: Predictions, random: np.random.Generator, count: int) -> Ints:
        """Name donors for each recipient, the first choice first, -1 past the last."""
        from keyhole.kernels import nearest_donors

        queries = predictions.astype(np.float32, copy=False)
        wanted = max(count, self._neighbours) if self._match == "k-closest" else count
        wanted, draws = min(wanted, len(self)), random.random(len(queries))
        places: Ints
        if self._is_line:
            line = np.ascontiguousarray(queries[:, 0])
            places = nearest_donors.closest(self._points, line, wanted, draws)
        else:
            near = self._nearest(queries, min(wanted, len(self._points)))
            if wanted == 1:
                begin, end = self._bounds[near], self._bounds[near + 1]
                places = begin + (draws[:, None] * (end - begin)).astype(np.int64)
            else:
                places = nearest_donors.members(near, self._bounds, wanted, draws)
        if self._match == "k-closest":  # the closest few are put in random order
            few = min(self._neighbours, places.shape[1])
            order = np.argsort(random.random((len(places), few)), axis=1)
            places = places.copy()
            places[:, :few] = np.take_along_axis(places[:, :few], order, axis=1)
        elif self._match == "weighted" and self._is_line:
            proposals = random.random((len(queries), 2 * PROPOSALS))
            sums = np.concatenate([[0.0], np.cumsum(self._points)])
            places[:, 0] = nearest_donors.weighted(
                self._points, sums, queries[:, 0], REACH, places[:, 0], proposals
            )
        named = places[:, :count]
        out: Ints = np.where(named >= 0, self._order[named], -1)
        return out
