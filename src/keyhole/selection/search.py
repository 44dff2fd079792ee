"""Forward, backward and stepwise selection of variables.

Lin & Garin, "Methods of Selecting Variables in Data Disclosure". Each search walks from set to set
by the smallest criterion and stops at a limit on RP. Where the paper's text and its printed runs
disagree, the runs are followed; the documentation's page on selection lists the places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from keyhole.core.kinds import Amounts, Number, kind_problems
from keyhole.errors import OptionError
from keyhole.selection.criteria import (
    Criterion,
    Evaluate,
    Exposed,
    Move,
    Space,
    evaluate_moves,
    named_criterion,
    ratio,
)
from keyhole.selection.result import (
    CandidateRow,
    MethodName,
    Reason,
    Selection,
    Step,
    StepTable,
    Stopped,
)

# The published stepwise run drops at 35% and adds to 55%.
DROP_SHARE = 0.65
TIE = 1e-9

StepProgress = Callable[[str], None]
Allows = Callable[[tuple[str, ...]], bool]


class _Walk:
    """The state of one search: the set it stands at, and what it has seen."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Check what a search is given, and begin at what is kept."""
        share = Number(low=0, high=1)
        problems = kind_problems("limit", share, given["limit"])
        for name, kind in (("drop_limit", share), ("values", Amounts("variable"))):
            if given.get(name) is not None:
                problems += kind_problems(name, kind, given[name])
        if problems:
            raise OptionError(problems)
        self.evaluate: Evaluate = given["evaluate"]
        self.space = Space.parse(given["keep"], given["candidates"])
        self.criterion: Criterion = given["criterion"] or named_criterion()
        self.values: Mapping[str, float] = given["values"] or {}
        self.progress: StepProgress | None = given["progress"]
        self.allows: Allows = given["allows"] or (lambda _: True)
        self.current = self.space.keep
        self.exposed: Exposed | None = None
        self.steps: list[Step] = []
        self.tables: list[StepTable] = []
        self.count = {"F": 0, "B": 0}

    def look(self, letter: str, moves: Sequence[Move], barred: str | None = None) -> _Look:
        """Evaluate the moves, note the table, and find the winner (never the barred variable)."""
        name = f"{letter}{self.count[letter] + 1}"
        if self.progress is not None:
            self.progress(name)
        found = evaluate_moves(self.evaluate, self.current, moves)
        rows = [self._row(letter, m, e) for m, e in zip(moves, found, strict=True)]
        self.tables.append(StepTable(name, tuple(rows)))
        # The winner; where RP is 0 throughout, of the tied ones that which keeps most detail.
        free = [i for i, move in enumerate(moves) if move.removed != barred or barred is None]
        figures = [self._figure(letter, moves[i], found[i]) for i in free]
        least = min(figures)
        tied = [i for i, f in zip(free, figures, strict=True) if f <= least + TIE]
        best = tied[0]
        if found[best].rp == 0:
            best = max(tied, key=lambda i: (found[i].cr, -i))
        return _Look(name, moves[best], found[best], rows[best])

    def _row(self, letter: str, move: Move, exposed: Exposed) -> CandidateRow:
        there = ratio(exposed.rp, exposed.cr)
        alpha: float | None = self.criterion.figure(exposed.rp, exposed.cr)
        if self.criterion.is_ratio:
            # Formula (1); its baseline is 1 in the first step, and 0 leaves it undefined.
            here = 1.0 if self.exposed is None else ratio(self.exposed.rp, self.exposed.cr)
            top, bottom = (there, here) if letter == "F" else (here, there)
            alpha = top / bottom if bottom > 0 else None
        return CandidateRow(move.variable, alpha, exposed.rp, exposed.cr, there)

    def _figure(self, letter: str, move: Move, exposed: Exposed) -> float:
        figure = self.criterion.figure(exposed.rp, exposed.cr)
        if math.isnan(figure):
            return math.inf
        name = (move.added if letter == "F" else move.removed) or move.variable
        value = self.values.get(name, 1.0)
        # A valued variable should look better to add and worse to remove, whatever the sign.
        return figure / value if (letter == "F") == (figure >= 0) else figure * value

    def take(self, letter: str, look: _Look) -> None:
        """Go where the winner leads."""
        move, row = look.move, look.row
        self.current, self.exposed = move.variables, look.exposed
        self.count[letter] += 1
        self.steps.append(
            Step(look.name, move.variable, move.variables, row.alpha, row.rp, row.cr, row.ratio)
        )

    def exhausted(self, letter: str) -> Stopped:
        """Stop because no candidate is left."""
        return Stopped(f"{letter}{self.count[letter] + 1}", None, "exhausted", None, None)

    def here(self) -> Exposed:
        """Return RP and CR of the set where the search stands, evaluating it if need be."""
        if self.exposed is None:
            self.exposed = self.evaluate(self.current)
        return self.exposed


class _Look(NamedTuple):
    """A step looked at: its name and the winner."""

    name: str
    move: Move
    exposed: Exposed
    row: CandidateRow

    def stopped(self, reason: Reason) -> Stopped:
        return Stopped(self.name, self.move.variable, reason, self.exposed.rp, self.exposed.cr)


def _one_way(walk: _Walk, letter: str, method: MethodName, limit: float) -> Selection:
    """Add, or remove, until the next step would cross the limit."""
    adds = letter == "F"
    while moves := (walk.space.additions if adds else walk.space.removals)(walk.current):
        look = walk.look(letter, moves)
        allowed = walk.allows(look.move.variables)
        if look.exposed.rp > limit if adds else (look.exposed.rp < limit and allowed):
            return _finish(walk, method, limit, None, look.stopped("limit"))
        if adds and not allowed:
            return _finish(walk, method, limit, None, look.stopped("attributes"))
        walk.take(letter, look)
    return _finish(walk, method, limit, None, walk.exhausted(letter))


def forward(
    evaluate: Evaluate,
    *,
    keep: Iterable[str],
    candidates: Iterable[str | Sequence[str]],
    limit: float,
    criterion: Criterion | None = None,
    values: Mapping[str, float] | None = None,
    progress: StepProgress | None = None,
    allows: Allows | None = None,
) -> Selection:
    """Add variables one at a time while RP stays within the limit.

    Parameters
    ----------
    evaluate
        Answers a tuple of variables with an object that has `rp` and `cr`.
    keep
        Variables already decided.
    candidates
        Variables that may be added; `"age|age10"` are alternatives of one.
    limit
        RP above this stops the search, and the variable is not entered.
    criterion
        What is made small; RP / CR by default.
    values
        What a variable is worth to the data's users (1 if not named): its figure is divided
        by it.
    progress
        Called with the name of each step before it is evaluated.
    allows
        Tells whether a set is within a further limit, one that no superset of a set beyond it
        meets; a variable that leads beyond it is not entered either.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> rp = {("a",): 0.1, ("b",): 0.2, ("a", "b"): 0.4}
    >>> evaluate = lambda s: SimpleNamespace(rp=rp[s], cr=0.5)
    >>> forward(evaluate, keep=[], candidates=["a", "b"], limit=0.3).selected
    ('a',)
    """
    return _one_way(_Walk(locals()), "F", "forward", limit)


def backward(
    evaluate: Evaluate,
    *,
    keep: Iterable[str],
    candidates: Iterable[str | Sequence[str]],
    limit: float,
    criterion: Criterion | None = None,
    values: Mapping[str, float] | None = None,
    progress: StepProgress | None = None,
    allows: Allows | None = None,
) -> Selection:
    """Start from all variables and remove one at a time while RP stays at or above the limit.

    The parameters are those of `forward`. As in the published run the set where the search
    stops lies just above the limit; `within_limit` goes on with the same rule.
    """
    walk = _Walk(locals())
    walk.current = walk.space.fullest
    return _one_way(walk, "B", "backward", limit)


def stepwise(
    evaluate: Evaluate,
    *,
    keep: Iterable[str],
    candidates: Iterable[str | Sequence[str]],
    limit: float,
    drop_limit: float | None = None,
    criterion: Criterion | None = None,
    values: Mapping[str, float] | None = None,
    progress: StepProgress | None = None,
    allows: Allows | None = None,
) -> Selection:
    """Add as forward does, but before each addition remove while RP is at the drop limit.

    The parameters are those of `forward`, and `drop_limit`: from this RP on variables are
    removed, never the one entered last; 0.65 of the limit by default.
    """
    walk = _Walk(locals())
    drop = DROP_SHARE * limit if drop_limit is None else drop_limit
    seen = {frozenset(walk.current)}
    entered: str | None = None
    while True:
        removed, cycle = _remove_pass(walk, drop, entered, seen)
        if cycle is not None:
            return _finish(walk, "stepwise", limit, drop, cycle)
        moves = walk.space.additions(walk.current)
        if not moves:
            return _finish(walk, "stepwise", limit, drop, walk.exhausted("F"))
        look = walk.look("F", moves)
        reason: Reason | None = None
        if look.exposed.rp > limit:
            reason = "limit"
        elif not walk.allows(look.move.variables):
            reason = "attributes"
        elif look.move.added in removed:
            reason = "reentry"
        elif frozenset(look.move.variables) in seen:
            reason = "cycle"
        if reason is not None:
            return _finish(walk, "stepwise", limit, drop, look.stopped(reason))
        walk.take("F", look)
        seen.add(frozenset(walk.current))
        entered = look.move.added


def _remove_pass(
    walk: _Walk, drop: float, entered: str | None, seen: set[frozenset[str]]
) -> tuple[set[str | None], Stopped | None]:
    """Remove while RP is at the drop limit; return what was removed, and a stop on a cycle."""
    removed: set[str | None] = set()
    while True:
        moves = walk.space.removals(walk.current)
        if not any(m.removed != entered for m in moves) or walk.here().rp < drop:
            return removed, None
        look = walk.look("B", moves, barred=entered)
        if look.exposed.rp < drop:
            return removed, None
        if frozenset(look.move.variables) in seen:
            return removed, look.stopped("cycle")
        walk.take("B", look)
        seen.add(frozenset(walk.current))
        removed.add(look.move.removed)


def _finish(
    walk: _Walk, method: MethodName, limit: float, drop_limit: float | None, stopped: Stopped
) -> Selection:
    # `within_limit` goes on from here by the same rule: what was seen until now is the search. The
    # empty set is not evaluated: `select` refuses it where even that is beyond the limit.
    steps, tables, selected = tuple(walk.steps), tuple(walk.tables), walk.current
    within: tuple[str, ...] | None = selected
    while walk.current and (walk.here().rp > limit or not walk.allows(walk.current)):
        moves = walk.space.removals(walk.current)
        if not moves:
            within = None
            break
        walk.take("B", walk.look("B", moves))
        within = walk.current
    warnings = []
    if drop_limit is not None and drop_limit >= limit:
        warnings.append(
            f"the drop limit {drop_limit:g} is not below the limit {limit:g}: "
            "nothing is ever removed. Give a smaller drop limit."
        )
    return Selection(
        method=method,
        criterion=walk.criterion.name,
        keep=walk.space.keep,
        candidates=walk.space.groups,
        limit=limit,
        drop_limit=drop_limit,
        selected=selected,
        within_limit=within,
        steps=steps,
        stopped=stopped,
        step_tables=tables,
        warnings=tuple(warnings),
    ).with_notes()


SEARCHES = {"forward": forward, "backward": backward, "stepwise": stepwise}
METHODS = tuple(SEARCHES)
