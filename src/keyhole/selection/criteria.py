"""What a search compares and where it may go: criteria, evaluators, and the space of variables.

A criterion is a function of RP and CR, less being better; an evaluator answers with RP and CR of
a set, or of many neighbouring sets at once; the space has the variables kept, and the candidates
with their alternatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from keyhole.core.kinds import Choice, require_list
from keyhole.core.names import quoted, repeated
from keyhole.core.options import Problem, Question
from keyhole.core.shared import scenario_problems
from keyhole.engines.opening import open_for
from keyhole.engines.protocol import Engine, Records
from keyhole.errors import OptionError
from keyhole.selection.attribute_limits import AttributeLimits, limit_problems, limits_of

CRITERIA = ("ratio", "difference")


class Exposed(Protocol):
    """Anything that knows its risk proportion and its cell ratio."""

    @property
    def rp(self) -> float:
        """Share of records in cells smaller than the cutoff."""
        ...

    @property
    def cr(self) -> float:
        """Non-empty cells over records."""
        ...


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
        names = space.names
        twice = sorted({n for n in names if names.count(n) > 1})
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


@runtime_checkable
class _Batch(Protocol):
    """An evaluator that answers for all the neighbours of a set at once."""

    def added(self, base: tuple[str, ...], names: Sequence[str]) -> Sequence[Exposed]: ...

    def removed(self, base: tuple[str, ...], names: Sequence[str]) -> Sequence[Exposed]: ...


class EngineEvaluator:
    """Answers from an engine's counts, at one cutoff."""

    def __init__(self, engine: Engine, *, cutoff: int) -> None:
        self._engine, self._cutoff = engine, cutoff

    def __call__(self, variables: tuple[str, ...]) -> Exposed:
        """Answer for one set."""
        return self._engine.tally(variables, cutoff=self._cutoff)

    def added(self, base: tuple[str, ...], names: Sequence[str]) -> Sequence[Exposed]:
        """Answer for the base with each name added in turn."""
        return self._engine.tally_added(base, names, cutoff=self._cutoff)

    def removed(self, base: tuple[str, ...], names: Sequence[str]) -> Sequence[Exposed]:
        """Answer for the base with each name left out in turn."""
        return self._engine.tally_removed(base, names, cutoff=self._cutoff)


def evaluate_moves(
    evaluate: Evaluate, base: tuple[str, ...], moves: Sequence[Move]
) -> list[Exposed]:
    """Evaluate where each move from the base leads, together where the evaluator can."""
    answers: dict[Move, Exposed] = {}
    if isinstance(evaluate, _Batch):
        adding = [m for m in moves if m.removed is None]
        taking = [m for m in moves if m.added is None]
        for group, ask in ((adding, evaluate.added), (taking, evaluate.removed)):
            if group:
                names = [m.added or m.removed or "" for m in group]
                answers.update(zip(group, ask(base, names), strict=True))
    return [answers[m] if m in answers else evaluate(m.variables) for m in moves]


def choice_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with the variables of a search, whatever the data."""
    yield from scenario_problems(question, instead_of="candidates", beside=True)
    names = _names(question)
    yield from limit_problems(question, names)
    for name in repeated(names):
        yield Problem(
            "{candidates} and {keep} must name each variable once. Got {0!r} twice instead.", name
        )
    if question.candidates:
        others = [name for name in question.values["values"] or () if name not in names]
        if others:
            yield Problem("{values} names {0}, not a candidate.", quoted(others))


def open_choice(
    question: Question, data: Any, *, needs_values_for: str = ""
) -> tuple[Records, Question, Any]:
    """Open the data of a search; return it with the question and the key of its scenario, if any.

    With a scenario the data is recoded, and the columns of its key are the candidates if none
    are named.
    """
    opened: Any = open_for(
        question,
        data,
        needs_values_for=needs_values_for
        or ("a limit on attribute disclosure" if limits_of(question) else ""),
        needs_memory_for="a scenario's recoding" if question.scenario else "",
        every_column=bool(question.scenario) or bool(limits_of(question)),
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
        raise OptionError(
            Problem(
                "{keep} and {candidates} must be in the key of scenario {0!r}. Got {1} instead: "
                "nobody in it can match them, so leave them out here.",
                key.name,
                quoted(strange),
            )
        )
    rest = tuple((name,) for name in key.keys if name not in question.keep)
    question = question.replace(candidates=question.candidates or rest)
    if not question.candidates:
        raise OptionError(
            Problem("{keep} must leave a candidate. Got the whole key of the scenario instead.")
        )
    return key.recode(opened), question, key


def _names(question: Question) -> list[str]:
    return [*question.keep, *(name for group in question.candidates or () for name in group)]
