"""Lines of a plan that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from keyhole.core.names import quoted, shown

if TYPE_CHECKING:
    from keyhole.protection.steps import Step

__all__ = ["conflicts"]


def conflicts(steps: Mapping[int, Step]) -> list[str]:
    """Return what is wrong with steps beside each other, by their numbers.

    A column that is dropped is not there for later steps; the same treatment of the same column
    twice is most likely a leftover; labels have no order.
    """
    dropped: dict[str, int] = {}
    treated: dict[tuple[str, str], int] = {}
    labelled: dict[str, int] = {}
    found = []
    for number, step in steps.items():
        method, options = step.entry.method, step.effective
        named = method.columns(options)
        found += [
            f"step {number} ({step.method}): column {shown(name)} is dropped in step "
            f"{dropped[name]}{' already' if step.method == 'drop' else ''}. Leave one of the steps "
            f"out."
            for name in named
            if name in dropped
        ]
        found += list(_twice(number, step, treated, dropped))
        if method.needs_order:
            found += [
                f"step {number} ({step.method}): column {shown(name)} holds labels since step "
                f"{labelled[name]}, which have no order. Change the order of the steps."
                for name in step.columns
                if name in labelled
            ]
        if step.method == "drop":
            dropped |= {name: number for name in step.columns if name not in dropped}
        if method.makes_labels(options):
            labelled |= {name: number for name in step.columns if name not in labelled}
    return found


def _twice(
    number: int, step: Step, treated: dict[tuple[str, str], int], dropped: Mapping[str, int]
) -> Iterator[str]:
    if step.entry.method.repeats:
        return
    if step.method == "sample":
        before = treated.setdefault(("sample", ""), number)
        if before != number:
            yield f"step {number} (sample): step {before} samples already. Leave one of them out."
        return
    again: dict[int, list[str]] = {}
    for name in step.columns:
        before = treated.setdefault((step.method, name), number)
        if before != number and name not in dropped:
            again.setdefault(before, []).append(name)
    for before, names in again.items():
        yield (
            f"step {number} ({step.method}): {quoted(names)} is treated so in step {before} "
            f"already. Leave one of them out."
        )
