"""The verb `solve`: find the best release of a file within the limits."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from keyhole.core import shared
from keyhole.core.kinds import Amounts, Columns, Kind, Number, Place, TableOrFile, split_words
from keyhole.core.names import quoted
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import Names
from keyhole.engines import Records
from keyhole.engines.choose import backend_of, engine_notes, local_engine
from keyhole.engines.memory import Progress
from keyhole.engines.opening import open_for
from keyhole.errors import InputError, OptionError, RunError
from keyhole.exposure.attributes_cells import sensitive_by_role, told_figures
from keyhole.selection.criteria import (
    NAMED,
    AttributeLimits,
    EngineEvaluator,
    limit_problems,
    limits_of,
)
from keyhole.selection.ladders import LadderCodes, declared_ladders, encode_ladder, made_ladder
from keyhole.selection.releasing import Outgoing
from keyhole.selection.search import backward
from keyhole.selection.solution import FurtherKey, Release, ReleasedColumn, Solution
from keyhole.selection.solving import NOT_BEYOND, KeyCells, LadderSearch, Point, Steps, ToldCells
from keyhole.selection.treating import KeyLimit, Patterns, Treatment

# Gains are whole numbers of this fineness, so that equal utilities are equal.
SCALE = 10**12
GIVEN_BACK = " Values are restored where this puts no more records at risk."
# Records are sorted into classes by the keys they are at risk on: two to this power at most.
MOST_KEYS = 8


SHARE = Number(low=0, high=1)


@dataclass(frozen=True, slots=True)
class KeyLimits(Kind):
    """Further keys, each with the highest RP on it."""

    purpose: str = "key"

    metavar: ClassVar[str] = "A|B=0.02,…"
    widget: ClassVar[str] = "lines"

    def fault(self, value: Any) -> str | None:
        """Accept tables of `keys` and `limit`, or pairs."""
        pairs = _pairs(value)
        fit = pairs is not None and not any(
            Columns().fault(keys) or SHARE.fault(limit) for keys, limit in pairs
        )
        what = "a list of keys with their limits, each a table of `keys` and `limit`, from 0 to 1"
        return None if fit else what

    def unfit(self, value: Any) -> list[Any]:
        """Return the limits that are none, with their keys."""
        wrong = {
            "|".join(Columns().settle(keys)): limit
            for keys, limit in _pairs(value) or ()
            if not Columns().fault(keys) and SHARE.fault(limit)
        }
        return Amounts(each=SHARE).unfit(wrong) if wrong else [value]

    def settle(self, value: Any) -> tuple[tuple[tuple[str, ...], float], ...]:
        """Return pairs of a key and its limit."""
        return tuple((Columns().settle(keys), float(x)) for keys, x in _pairs(value) or ())

    def read(self, text: str) -> Any:
        """Read keys as they are typed."""
        found = []
        for part in split_words(text, ",", plain=False) if text.strip() else ():
            names, *rest = split_words(part, "=", plain=False)
            if len(rest) != 1:
                raise ValueError(part)
            found.append((tuple(split_words(names, "|")), Number().read(rest[0])))
        return found

    def write(self, value: Any) -> str:
        """Write keys as `read` reads them."""
        written = [("|".join(Columns().write([n]) for n in keys), limit) for keys, limit in value]
        return ",".join(f"{names}={Number().write(limit)}" for names, limit in written)

    def shortest(self, value: Any) -> Any:
        """Return tables, as a review file has them."""
        return [{"keys": list(keys), "limit": limit} for keys, limit in value]

    def schema(self) -> dict[str, Any]:
        """Describe the tables."""
        properties = {"keys": Columns().schema(), "limit": SHARE.schema()}
        one = {"type": "object", "properties": properties, "required": ["keys", "limit"]}
        return {"type": "array", "items": one}

    def columns(self, value: Any) -> Iterator[tuple[Place, str]]:
        """Yield the columns of the keys."""
        for place, (keys, _) in enumerate(self.settle(value)):
            yield from (((place,), name) for name in keys)


def _pairs(value: Any) -> list[tuple[Any, Any]] | None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    found = []
    for item in value:
        if isinstance(item, Mapping) and set(item) == {"keys", "limit"}:
            item = (item["keys"], item["limit"])
        if isinstance(item, str | Mapping) or not isinstance(item, Sequence) or len(item) != 2:
            return None
        found.append((item[0], item[1]))
    return found


def _share(doing: str, then: str = "") -> Option:
    text = f"{doing} records at risk where the limit needs it, at most this share of the records."
    return Option(text + then, low=0, below=1)


@documented
def solve(
    data: Any,
    *,
    keys: Annotated[
        Names,
        Option(
            "The quasi-identifiers that may be released, each at a level of its ladder or not at "
            "all.",
            kind=Columns("key"),
        ),
    ],
    limit: shared.Limit,
    must: Annotated[
        Names, Option("Keys that must be released, at any level.", kind=Columns("must", least=0))
    ] = (),
    limits: Annotated[
        Any,
        Option(
            "Further keys, some of the columns, with limits of their own: `sex|age=0.02`.",
            kind=KeyLimits(),
        ),
    ] = (),
    ladders: Annotated[
        Any,
        Option(
            "The levels of each column, finest first: a TOML file, or a table, with `[column] "
            "levels = [{name, derive}, …]`. Columns without one get a default ladder for their "
            "kind.",
            kind=TableOrFile("a TOML file of ladders, or a table of them by column"),
            metavar="LADDERS.toml",
        ),
    ] = None,
    cutoff: shared.Cutoff = 3,
    suppress: Annotated[float, _share("Blank the keys of", GIVEN_BACK)] = 0.0,
    remove: Annotated[float, _share("Remove")] = 0.0,
    worth: Annotated[
        Mapping[str, float] | None,
        Option(
            "What columns are worth to the data's users; 1 if not named.", kind=Amounts("worth")
        ),
    ] = None,
    sensitive: shared.Sensitive = None,
    homogeneous_limit: shared.HomogeneousLimit = None,
    diversity_limit: shared.DiversityLimit = None,
    closeness_limit: shared.ClosenessLimit = None,
    cap_limit: shared.CapLimit = None,
    weight: Annotated[
        str | None,
        Option(
            "The column of sampling weights: where records are removed, those of the others are "
            "scaled up to keep their sum.",
            column="weight",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        Option(
            "Stop after about this time with the best release found so far and a bound on "
            "utility; the result says that it is not complete.",
            above=0,
        ),
    ] = None,
    evaluations: Annotated[
        int | None,
        Option(
            "Stop after counting about this many sets, with the best release found so far; unlike "
            "a time, it gives the same release on every machine.",
            low=1,
        ),
    ] = None,
    progress: Progress | None = None,
    engine: shared.EngineOption = "auto",
    memory: shared.MemorySize = None,
    work_folder: shared.WorkFolder = None,
    master: shared.Master = None,
) -> Solution:
    """Find the best release within the limits.

    Every column has a ladder of nested levels, from the column as it is to leaving it out. All
    combinations are searched, exactly, for the one with the most utility whose RP is within the
    limit, counted on all released keys together, with missing values as a category of their own.

    Notes
    -----
    Utility is Σ worth·H(level)/H(finest) / Σ worth, H being the entropy in the source, and 0 for
    what is left out. `progress` is called with the percentage of the combinations settled, and
    100.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> found = solve(veterans_sample(2000), keys=["sex", "age", "race1", "homstate"], limit=0.05)
    >>> found.complete, found.combinations, found.left_out
    (True, 168, ('age',))
    >>> [column.level for column in found.columns]
    ['sex', 'pool(race1, 200)', 'homstate']
    """
    question = bind(solve, locals())
    opened: Any = open_for(
        question, data, needs_values_for="the best release", every_column=True, offers="keys"
    )
    if question.weight is not None:
        opened.weights(question.weight)  # says what is wrong with them
    asked = SolveAsked.of(question, opened)
    if not asked.may_be_met:
        raise OptionError(asked.unmet(question))
    search = asked.search(time.monotonic() + (seconds or math.inf), progress)
    if not search.stairs.points and not search.complete:
        raise RunError("no release was found in the time given. Allow more time.")
    if not search.stairs.points:
        raise OptionError(asked.unmet(question))
    return asked.solution(search)


def solve_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `solve` that depend on each other."""
    keys = question.keys or ()
    ladders, wrong = declared_ladders(question.ladders)
    for problem in wrong:
        yield Problem("{ladders}: {0}", problem)
    if not keys:
        return
    named = {
        "must": question.must,
        "worth": tuple(question.worth or ()),
        "limits": tuple(dict.fromkeys(name for key, _ in question.limits for name in key)),
        "ladders": tuple(ladders),
    }
    for option, names in named.items():
        others = [name for name in names if name not in keys]
        if others:
            template = f"{{{option}}} names {{0}}, not one of {{keys}}. Add it, or leave it out."
            yield Problem(template, quoted(others))
    yield from limit_problems(question, keys)
    if limits_of(question) and (question.suppress or question.remove):
        why = "a blanked or removed record may make another cell homogeneous. Leave one of them "
        why += "out, and protect the release later."
        yield Problem(f"{NAMED} cannot be used with {{suppress}} or {{remove}}: {why}")
    if question.weight in keys:
        yield Problem("{weight} must not be one of {keys}. Leave it out of one of the two.")
    if (count := len(question.limits)) >= MOST_KEYS:
        template = "{limits} must be at most {0} keys. Got {1} instead."
        yield Problem(template, MOST_KEYS - 1, count)


def unmet_limits(question: Question, data: Records) -> Problem | None:
    """Say so where no release can meet a limit, from the required columns alone.

    A review says it before anything runs.
    """
    must = question.must
    by_role = sensitive_by_role(data, question.keys) if limits_of(question) else ()
    least = question.replace(
        keys=must or question.keys[:1],
        limits=tuple((tuple(n for n in key if n in must), x) for key, x in question.limits),
        sensitive=question.sensitive or by_role or None,
    )
    asked = SolveAsked.of(least, data)
    return None if asked.may_be_met else asked.unmet(question)


@dataclass(frozen=True, slots=True, eq=False)
class SolveAsked:
    """A question with its data in codes: ladders, distinct patterns, keys and allowances."""

    question: Question
    data: Records
    ladders: tuple[LadderCodes, ...]
    patterns: Patterns
    keys: tuple[KeyLimit, ...]
    suppress: int
    remove: int
    limits: AttributeLimits | None = None
    told: tuple[ToldCells, ...] = ()

    @classmethod
    def of(cls, question: Question, data: Records) -> SolveAsked:
        """Encode the data of a question."""
        names = question.keys
        ladders = _encoded(question, data)
        worth = _worth(question)
        steps = [
            Steps(
                one.tables,
                tuple(round(SCALE * x * w / sum(worth)) for x in one.shares()),
                name in question.must,
            )
            for name, one, w in zip(names, ladders, worth, strict=True)
        ]
        as_is = {n: x.codes for n, x in zip(names, ladders, strict=True)}
        engine = local_engine(data, as_is)
        table = engine.patterns(names)
        codes = [table.codes(name) for name in names]
        order = np.lexsort(codes[::-1])
        patterns = Patterns(
            [c[order] for c in codes], table.records[order], steps, [x.missing for x in ladders]
        )
        places = {name: place for place, name in enumerate(names)}
        further = [KeyLimit(tuple(places[n] for n in key), x) for key, x in question.limits]
        every = KeyLimit(tuple(range(len(names))), question.limit)
        shares = (math.floor(x * data.records + 1e-9) for x in (question.suppress, question.remove))
        asked = cls(question, data, ladders, patterns, (every, *further), *shares)
        # The cells that show what is told of sensitive columns.
        limits = AttributeLimits.of(question, data, names, engine)
        if limits is None:
            return asked
        limits.require()
        told = []
        for name, one in limits.sensitive.items():
            if one.tells_nothing:
                continue
            table = local_engine(data, {**as_is, name: data.codes(name)}).patterns([*names, name])
            by_key = {v: table.codes(key) for v, key in enumerate(names)}
            held = (table.codes(name), table.records)
            told.append(ToldCells(by_key, *held, steps, one, limits.bounds()))
        return dataclasses.replace(asked, limits=limits, told=tuple(told))

    def tells(self, rungs: Sequence[int]) -> bool:
        """Tell whether a release is beyond a limit on attribute disclosure."""
        for cells in self.told:
            for v, rung in enumerate(rungs):
                cells = cells.at(v, rung, {})
            if cells.at_risk:
                return True
        return False

    @property
    def steps(self) -> Sequence[Steps]:
        """The ladders in codes."""
        return self.patterns.ladders

    def search(self, deadline: float, progress: Progress | None) -> LadderSearch:
        """Search all combinations, until the deadline."""
        # Columns with many codes make small cells soonest.
        order = sorted(range(len(self.steps)), key=lambda v: -self.steps[v].tables.shape[1])
        codes, cutoff = self.patterns.codes, self.question.cutoff
        cells = [
            KeyCells(
                {v: codes[v] for v in order if v in key.columns},
                self.patterns.records,
                dict(enumerate(self.steps)),
                cutoff,
            )
            for key in self.keys
        ]
        allowed = (self.data.records, cutoff, self.suppress, self.remove)
        bounds = [key.bound(*allowed) for key in self.keys]
        bounds += [NOT_BEYOND] * len(self.told)
        most = self.question.evaluations or math.inf
        search = LadderSearch(self.steps, order, bounds, self._ties, deadline, most, progress)
        search.run([*cells, *self.told])
        return search

    def _ties(self, rungs: tuple[int, ...]) -> tuple[float, ...] | None:
        found = self.treated(rungs, self.suppress, self.remove)
        return None if found is None else (found.treated, max(found.rps))

    def treated(self, rungs: Sequence[int], suppress: int, remove: int) -> Treatment | None:
        """Treat the fewest records of a release, if that meets the limits.

        Blanked records may make a cell homogeneous: none are with a limit on that.
        """
        if self.tells(rungs):
            return None
        node = self.patterns.node(rungs, self.keys)
        return node.treated(self.keys, self.question.cutoff, suppress, remove)

    @property
    def least(self) -> list[int]:
        """The least risky release: what is required at its coarsest, all else left out."""
        return [len(one.tables) - one.must for one in self.steps]

    @property
    def may_be_met(self) -> bool:
        """Whether that release is within the limits, or may be once records are treated."""
        allowed = (self.data.records, self.question.cutoff, self.suppress, self.remove)
        found = self.patterns.node(self.least, self.keys).outcome(self.question.cutoff)
        pairs = zip(found.at_risk, self.keys, strict=True)
        within = all(at_risk <= key.bound(*allowed).treatable for at_risk, key in pairs)
        return within and not self.tells(self.least)

    def unmet(self, question: Question) -> Problem:
        """Say which limit of the question the least risky release is beyond, and what to do."""
        alone = "even with only {0} released, at the coarsest levels,"
        if self.tells(self.least):
            more = f"{alone} more than that is learnt about a sensitive column. "
            remedy = "Give another limit, or require fewer columns ({must})."
            return Problem(f"{NAMED} cannot be met: {more}{remedy}", quoted(question.must))
        found = self.patterns.node(self.least, self.keys).outcome(question.cutoff)
        worst = max(range(len(self.keys)), key=lambda k: found.rps[k] - self.keys[k].limit)
        named = f" on {quoted(question.limits[worst - 1][0])}" if worst else ""
        remedy = (
            "require fewer columns ({must}), declare coarser levels ({ladders}), or allow more "
            "with {suppress} or {remove}."
        )
        if not question.must:  # all records are alike then, and still too few
            alone = "even with every key left out, since the file has fewer records than {cutoff},"
            remedy = "or lower {cutoff}."
        rp = f"{alone} RP{{1}} is {{2:.4g}}%, above {{3:.4g}}%. Raise the limit, {remedy}"
        option, limit = "limits" if worst else "limit", self.keys[worst].limit
        names, risk = quoted(question.must), 100 * found.rps[worst]
        return Problem(f"{{{option}}} cannot be met: {rp}", names, named, risk, 100 * limit)

    def release(self, rungs: Sequence[int], found: Treatment) -> Release:
        """Return a release with its figures."""
        worth = _worth(self.question)
        chosen = list(zip(self.question.keys, self.ladders, rungs, strict=True))
        shares = [ladder.shares()[rung] for _, ladder, rung in chosen]
        utility = math.fsum(w * x for w, x in zip(worth, shares, strict=True)) / math.fsum(worth)
        columns = tuple(
            ReleasedColumn(name, made.level, made.name, share)
            for (name, ladder, rung), share in zip(chosen, shares, strict=True)
            for made in ladder.ladder.rungs[rung : rung + 1]  # none if it is left out
        )
        return Release(
            columns=columns,
            rp=found.rps[0],
            utility=utility,
            suppressed=found.suppressed_records,
            removed=found.removed_records,
            kept_utility=utility * (1 - found.treated / self.data.records),
        )

    def solution(self, search: LadderSearch) -> Solution:
        """Return the result: the best release, the Pareto points, and the greedy plans."""
        question, points = self.question, search.stairs.points
        best = points[-1]
        treatment = self._treatment(best)
        outgoing = Outgoing.of(
            self.data, question, self.ladders, best.rungs, self.patterns, treatment
        )
        tally = outgoing.tally()
        warnings, read_off = outgoing.read_off()
        mine = self.release(best.rungs, treatment)
        bound = max(mine.utility, (search.open_gain or 0) / SCALE)
        further = zip(question.limits, treatment.rps[1:], strict=True)
        told = None
        if self.limits is not None:
            engine = local_engine(self.data, outgoing.codes)
            told = told_figures(engine, tuple(outgoing.codes), self.limits.sensitive)
        notes = [*engine_notes(self.data)]
        if outgoing.unheld:
            notes.append(
                "rp_if_known is null for columns with more different values than memory holds"
            )
        return Solution(
            keys=question.keys,
            must=question.must,
            limit=question.limit,
            cutoff=question.cutoff,
            records=self.data.records,
            complete=search.complete,
            combinations=search.combinations,
            evaluated=search.evaluated,
            rp=tally.rp,
            cr=tally.cr,
            utility=mine.utility,
            bound=mine.utility if search.complete else min(bound, 1.0),
            columns=mine.columns,
            left_out=(
                *(n for n in question.keys if n not in {c.name for c in mine.columns}),
                *(n for n in outgoing.finer if n not in outgoing.identifiers),
            ),
            identifiers=outgoing.identifiers,
            not_counted=outgoing.not_counted(),
            suppressed=mine.suppressed,
            suppressed_values=sum(int(np.count_nonzero(x)) for x in outgoing.blanked.values()),
            removed=mine.removed,
            kept_utility=mine.kept_utility,
            weight_factor=outgoing.weight_factor,
            further=tuple(FurtherKey(key, limit, rp) for (key, limit), rp in further),
            sensitive=told,
            frontier=tuple(self.release(p.rungs, self._treatment(p)) for p in points),
            greedy=self._greedy(),
            ladders={
                name: tuple(rung.level for rung in one.ladder.rungs)
                for name, one in zip(question.keys, self.ladders, strict=True)
            },
            notes=tuple(notes),
            read_off=None if read_off is None else read_off.rp,
            warnings=warnings,
            engine=backend_of(self.data).name,
            weight=question.weight,
            make=outgoing.made,
        )

    def _treatment(self, point: Point) -> Treatment:
        suppress, remove = (self.suppress, self.remove) if point.rest else (0, 0)
        found = self.treated(point.rungs, suppress, remove)
        if found is None:
            raise RunError("the counts of the search and of the release differ.")
        return found

    def _greedy(self) -> dict[str, Release | None]:
        """Return what simpler plans release: none of them is exact."""
        names, records = self.question.keys, self.data.records
        as_is = {n: x.codes for n, x in zip(names, self.ladders, strict=True)}
        evaluate = EngineEvaluator(local_engine(self.data, as_is), cutoff=self.question.cutoff)
        rest = [(name,) for name in names if name not in self.question.must]
        kept: Sequence[str] | None = self.question.must
        if rest:
            must, limit = self.question.must, self.question.limit
            allows = None if self.limits is None else self.limits.allows
            kept = backward(
                evaluate, keep=must, candidates=rest, limit=limit, allows=allows
            ).within_limit
        finest = [0] * len(names)
        each = zip(names, self.steps, strict=True)
        chosen = [0 if name in (kept or ()) else len(one.tables) for name, one in each]
        plans = {
            "backward": (chosen, None if kept is None else self.treated(chosen, 0, 0)),
            "classical": self._coarsened(),
            "suppression": (finest, self.treated(finest, 0 if self.told else records, 0)),
        }
        return {
            name: None if found is None else self.release(rungs, found)
            for name, (rungs, found) in plans.items()
        }

    def _coarsened(self) -> tuple[list[int], Treatment | None]:
        """Coarsen the column with the most categories by a rung until the limits are met."""
        rungs = [0] * len(self.steps)
        while True:
            found = self.treated(rungs, 0, 0)
            if found is not None:
                return rungs, found
            free = [v for v, s in enumerate(self.steps) if rungs[v] + s.must < len(s.tables)]
            if not free:
                return rungs, None
            sizes = {v: len(np.unique(self.steps[v].tables[rungs[v]])) for v in free}
            rungs[max(free, key=lambda v: sizes[v])] += 1


def _worth(question: Question) -> list[float]:
    return [float((question.worth or {}).get(name, 1)) for name in question.keys]


def _encoded(question: Question, data: Records) -> tuple[LadderCodes, ...]:
    """Encode the ladders of the keys; raise everything that is wrong with them at once."""
    declared, _ = declared_ladders(question.ladders)
    storage = backend_of(data).storage
    found, problems = [], []
    taken = set(data.names)
    named = [rung.name for one in declared.values() for rung in one.rungs]
    for name in question.keys:
        ladder = declared.get(name) or made_ladder(data, name, named)
        clashes = [r.name for r in ladder.rungs if r.derive and r.name in taken]
        problems += [f"the ladder of column {name!r}: {n!r} is a column already." for n in clashes]
        try:
            found.append(encode_ladder(data, ladder, storage))
        except InputError as error:
            problems += error.problems
    if problems:
        raise OptionError(dict.fromkeys(problems))
    return tuple(found)
