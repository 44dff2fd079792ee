"""What a search compares and where it may go: criteria, evaluators, variables and further limits.

A criterion is a function of RP and CR, less being better; an evaluator answers with RP and CR of a
set, or of many neighbouring sets at once. Limits on attribute disclosure (homogeneous cells, l, t
and CAP) prune a search as RP does, since each figure only becomes worse as variables are added or
become finer: the parts of a homogeneous cell are homogeneous, a part has no more values than the
whole, one of the parts is at least as far from the file, and CAP is a mean of squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Protocol

from keyhole.core.kinds import Choice, require_list
from keyhole.core.names import quoted, repeated
from keyhole.core.options import Problem, Question
from keyhole.core.shared import scenario_problems, sensitive_problems
from keyhole.engines import MemoryEngine
from keyhole.engines.choose import local_engine
from keyhole.engines.opening import open_for
from keyhole.engines.protocol import Engine, Records
from keyhole.errors import OptionError
from keyhole.exposure.attributes_cells import (
    SensitiveCodes,
    ToldFigures,
    sensitive_by_role,
    told_figures,
)

CRITERIA = ("ratio", "difference")


class Exposed(Protocol):
    """Anything that knows its risk proportion and its cell ratio."""

    @property
    def rp(self) -> float:
        """Share of records in cells smaller than the cutoff."""

    @property
    def cr(self) -> float:
        """Non-empty cells over records."""


@dataclass(frozen=True, slots=True)
class CriterionName(Choice):
    """A criterion by name; in Python also a `Criterion` of any function."""

    words: tuple[str, ...] = CRITERIA

    def fault(self, value: Any) -> str | None:
        """Accept a name or a `Criterion`."""
        return None if isinstance(value, Criterion) else Choice.fault(self, value)


def ratio(rp: float, cr: float) -> float:
    """Return RP / CR; a set without cells has no ratio and loses every comparison."""
    return rp / cr if cr > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Criterion:
    """A named function of RP and CR; the smallest figure wins.

    Examples
    --------
    >>> Criterion("rp alone", lambda rp, cr: rp).figure(0.3, 0.4)
    0.3
    """

    name: str
    figure: Callable[[float, float], float]

    @property
    def is_ratio(self) -> bool:
        """Whether this is the paper's own criterion, for which α is printed."""
        return self.name == "ratio"


def named_criterion(name: str = "ratio", *, cr_weight: float = 0.5) -> Criterion:
    """Return the criterion of that name.

    Parameters
    ----------
    name
        `ratio`: RP / CR, equivalent to Lin & Garin's α. `difference`: RP - `cr_weight`·CR.
    cr_weight
        Weight of CR in `difference`. The paper found 1 not to work and 0.5 to work.

    Examples
    --------
    >>> named_criterion("difference").figure(0.75, 0.5)
    0.5
    """
    if name == "ratio":
        return Criterion("ratio", ratio)
    if name == "difference":
        return Criterion("difference", lambda rp, cr: rp - cr_weight * cr)
    raise OptionError(f"criterion must be one of {', '.join(CRITERIA)}. Got {name!r} instead.")


@dataclass(frozen=True, slots=True)
class Move:
    """A step a search may take: the variable it is named for, and the set it leads to."""

    variable: str
    variables: tuple[str, ...]
    added: str | None = None
    removed: str | None = None


@dataclass(frozen=True, slots=True)
class Space:
    """The variables already decided, and the candidates, each with its alternatives.

    A candidate with regrouped alternatives lists them from the finest to the coarsest; at most one
    of them is taken.
    """

    keep: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, keep: Iterable[str], candidates: Iterable[str | Sequence[str]]) -> Space:
        """Read candidates; `"age|age10"` or `("age", "age10")` are alternatives of one variable."""
        groups = tuple(
            tuple(part.strip() for part in c.split("|"))
            if isinstance(c, str)
            else require_list(c, "a candidate's alternatives")
            for c in require_list(candidates, "candidates")
        )
        space = cls(require_list(keep, "keep"), groups)
        twice = sorted(repeated(space.names))
        problems = [f"variable {n!r} is listed twice. Name it once." for n in twice]
        if not all(all(group) for group in groups) or not all(space.keep):
            problems.append("a variable's name is empty. Check the commas and bars of the lists.")
        if problems:
            raise OptionError(problems)
        return space

    @property
    def names(self) -> tuple[str, ...]:
        """Every variable that may be in a set, in the order declared."""
        return self.keep + tuple(name for group in self.groups for name in group)

    @property
    def fullest(self) -> tuple[str, ...]:
        """The set where backward starts: everything, each candidate at its finest."""
        return self.keep + tuple(group[0] for group in self.groups)

    def additions(self, current: Sequence[str]) -> list[Move]:
        """Return the moves that add a candidate none of whose alternatives is in."""
        held = set(current)
        return [
            Move(name, (*current, name), added=name)
            for group in self.groups
            if not held.intersection(group)
            for name in group
        ]

    def removals(self, current: Sequence[str]) -> list[Move]:
        """Return the moves that remove a candidate or put a coarser alternative in its place."""
        moves = []
        for group in self.groups:
            for place, name in enumerate(group):
                if name in current:
                    rest = tuple(v for v in current if v != name)
                    for coarser in group[place + 1 :]:
                        swapped = tuple(coarser if v == name else v for v in current)
                        moves.append(Move(f"{name} → {coarser}", swapped, coarser, name))
                    moves.append(Move(name, rest, removed=name))
        return moves


Evaluate = Callable[[tuple[str, ...]], Exposed]


class EngineEvaluator:
    """Answers from an engine's counts, at one cutoff; for many neighbours of a set at once.

    It remembers them: a stepwise search begins as a forward one.
    """

    def __init__(self, engine: Engine, *, cutoff: int) -> None:
        self._tally = partial(engine.tally, cutoff=cutoff)
        self.added = cache(partial(engine.tally_added, cutoff=cutoff))
        self.removed = cache(partial(engine.tally_removed, cutoff=cutoff))

    def __call__(self, variables: tuple[str, ...]) -> Exposed:
        """Answer for one set."""
        return self._tally(variables)


def evaluate_moves(
    evaluate: Evaluate, base: tuple[str, ...], moves: Sequence[Move]
) -> list[Exposed]:
    """Evaluate where each move from the base leads, together where the evaluator can."""
    answers: dict[Move, Exposed] = {}
    if isinstance(evaluate, EngineEvaluator):
        adding = [m for m in moves if m.removed is None]
        taking = [m for m in moves if m.added is None]
        for group, ask in ((adding, evaluate.added), (taking, evaluate.removed)):
            if group:
                names = tuple(m.added or m.removed or "" for m in group)
                answers.update(zip(group, ask(base, names), strict=True))
    return [answers[m] if m in answers else evaluate(m.variables) for m in moves]


def choice_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with the variables of a search, whatever the data."""
    yield from scenario_problems(question, instead_of="candidates", beside=True)
    names = _names(question)
    yield from limit_problems(question, names)
    for name in repeated(names):
        template = "{candidates} and {keep} must name each variable once. "
        yield Problem(template + "Got {0!r} twice instead.", name)
    if question.candidates:
        others = [name for name in question.values["values"] or () if name not in names]
        if others:
            yield Problem("{values} names {0}, which is not a candidate.", quoted(others))


def open_choice(
    question: Question, data: Any, *, needs_values_for: str = ""
) -> tuple[Records, Question, Any]:
    """Open the data of a search; return it with the question and the key of its scenario, if any.

    With a scenario the data is recoded, and the columns of its key are the candidates if none
    are named.
    """
    limited = "a limit on attribute disclosure" if limits_of(question) else ""
    opened: Any = open_for(
        question,
        data,
        needs_values_for=needs_values_for or limited,
        every_column=bool(limited),
        offers="candidates",
    )
    limits = AttributeLimits.of(question, opened, _names(question))
    if limits is not None:
        limits.require()
    if not question.scenario:
        return opened, question, None
    from keyhole.environment.scenarios.recoding import scenario_keys

    (key,) = scenario_keys(question, opened)
    strange = [name for name in _names(question) if name not in key.keys]
    if strange:
        must = "{keep} and {candidates} must be in the key of scenario {0!r}. Got {1} instead: "
        why = "nobody in it can match them, so leave them out here."
        raise OptionError(Problem(must + why, key.name, quoted(strange)))
    rest = tuple((name,) for name in key.keys if name not in question.keep)
    question = question.replace(candidates=question.candidates or rest)
    if not question.candidates:
        must = "{keep} must leave a candidate. Got the whole key of the scenario instead."
        raise OptionError(Problem(must))
    return key.recode(opened), question, key


def _names(question: Question) -> list[str]:
    return [*question.keep, *(name for group in question.candidates or () for name in group)]


LIMITS = {
    "homogeneous_limit": "homogeneous",
    "diversity_limit": "l",
    "closeness_limit": "t_closeness",
    "cap_limit": "cap",
}
"""By option the figure that it limits; l from below, the others from above."""
ROUNDING = 1e-12
NAMED = "{homogeneous_limit}, {diversity_limit}, {closeness_limit} or {cap_limit}"


def limits_of(question: Question) -> dict[str, float]:
    """Return the limits on attribute disclosure that a question has, by option."""
    given = {name: question.values[name] for name in LIMITS}
    return {name: limit for name, limit in given.items() if limit is not None}


def limit_problems(question: Question, keys: Sequence[str]) -> Iterator[Problem]:
    """Say what is wrong with limits on attribute disclosure, whatever the data."""
    if question.sensitive and not limits_of(question):
        yield Problem(f"{{sensitive}} needs {NAMED}. Give a limit, or leave it out.")
    yield from sensitive_problems(question, keys)


@dataclass(frozen=True, slots=True, eq=False)
class AttributeLimits:
    """Limits on what a key tells of sensitive columns, and the engine that counts its cells."""

    engine: MemoryEngine
    sensitive: Mapping[str, SensitiveCodes]
    limits: Mapping[str, float]
    _found: dict[frozenset[str], dict[str, ToldFigures]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        question: Question,
        data: Records,
        names: Sequence[str],
        engine: MemoryEngine | None = None,
    ) -> AttributeLimits | None:
        """Return the limits of a question on keys among some variables, if it has any."""
        limits = limits_of(question)
        if not limits:
            return None
        sensitive = question.sensitive or sensitive_by_role(data, names)
        if not sensitive:
            names = ", ".join(f"{{{name}}}" for name in limits)
            needs = " needs {sensitive}: no column has the role sensitive."
            raise OptionError(Problem(names + needs))
        codes = {name: SensitiveCodes.of(data, name) for name in sensitive}
        return cls(engine or local_engine(data, names), codes, limits)

    def require(self) -> None:
        """Raise which limits cannot be met, whatever is released."""
        problems = [
            Problem(
                f"{{{option}}} cannot be met: {LIMITS[option]} of {{0!r}} is {{1:.4g}} without any "
                f"key. Give a limit of {'no more' if LIMITS[option] == 'l' else 'no less'} than "
                "that, or leave the column out of {sensitive}.",
                name,
                getattr(found, LIMITS[option]),
            )
            for name, found in self.figures(()).items()
            for option in self.beyond(name, found)
        ]
        if problems:
            raise OptionError(problems)

    def figures(self, variables: Sequence[str]) -> dict[str, ToldFigures]:
        """Return what a key tells of each sensitive column."""
        key = frozenset(variables)
        if key not in self._found:
            self._found[key] = told_figures(self.engine, tuple(variables), self.sensitive)
        return self._found[key]

    def beyond(self, name: str, found: ToldFigures) -> list[str]:
        """Return the limits that what is told of a column exceeds; one value tells nothing."""
        if self.sensitive[name].tells_nothing:
            return []
        exceeded = []
        for option, limit in self.limits.items():
            value, is_least = getattr(found, LIMITS[option]), option == "diversity_limit"
            if value is not None and (value < limit if is_least else value > limit + ROUNDING):
                exceeded.append(option)
        return exceeded

    def allows(self, variables: Sequence[str]) -> bool:
        """Tell whether a key is within the limits."""
        found = self.figures(variables)
        return not any(self.beyond(name, one) for name, one in found.items())

    def bounds(self) -> list[float]:
        """Return the limits as `beyond_limits` takes them."""
        most, records = self.limits, self.engine.records
        return [
            (most.get("homogeneous_limit", math.inf) + ROUNDING) * records,
            most.get("diversity_limit", 1),
            most.get("closeness_limit", math.inf) + ROUNDING,
            (most.get("cap_limit", math.inf) + ROUNDING) * records,
        ]


def told_notes(found: Mapping[str, ToldFigures] | None) -> list[str]:
    """Say what a set of variables tells of sensitive columns."""
    return [
        f"{name}: {100 * one.homogeneous:.1f}% of the records in homogeneous cells, l at least "
        f"{one.l}, t at most {'unknown' if one.t_closeness is None else f'{one.t_closeness:.2f}'}, "
        f"CAP {one.cap:.2f}."
        for name, one in (found or {}).items()
    ]
