"""What answers a search: RP and CR of a set, or of many neighbouring sets at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from keyhole.engines.protocol import Engine
from keyhole.selection.criteria import Exposed
from keyhole.selection.space import Move

__all__ = ["EngineEvaluator", "Evaluate", "evaluate_moves"]

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
