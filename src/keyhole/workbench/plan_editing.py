"""Changes of the plan in a review file: its steps brought in, moved, and variables taken."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.toml_document import TOMLDocument

from keyhole.workbench import editing

__all__ = ["append_step", "bring_in", "drop_candidates", "move_step"]


def bring_in(document: TOMLDocument, steps: Sequence[Mapping[str, Any]]) -> None:
    """Write the steps of a plan that has a file of its own into the review, which then has it.

    The file stays as it is: others may use it.
    """
    section: Any = document.get("protection", {})
    if "plan" not in section:
        return
    editing.remove(document, "protection", "plan")
    for step in steps:
        append_step(document, step)


def append_step(document: TOMLDocument, step: Mapping[str, Any]) -> None:
    r"""Add a step to the plan, above what stands there for the section that follows.

    Examples
    --------
    >>> review = editing.parse(
    ...     '[[protection.step]]\nmethod = "drop"\n\n# of the study\n[study]\n'
    ... )
    >>> append_step(review, {"method": "round"})
    >>> print(review.as_string().strip())
    [[protection.step]]
    method = "drop"
    <BLANKLINE>
    [[protection.step]]
    method = "round"
    <BLANKLINE>
    # of the study
    [study]
    """
    section: Any = document.get("protection", {})
    there = section.get("step", [])
    last = there[-1] if len(there) else None
    tail = [] if last is None else _tail(last)
    editing.add_step(document, step)
    if last is not None:
        steps: Any = document["protection"]["step"]
        last.value.add(tomlkit.nl())
        steps[-1].value.body.extend(tail or [(None, tomlkit.nl())])


def move_step(document: TOMLDocument, number: int, to: int) -> None:
    r"""Move a step, counted from 0; the comments between steps stay where they are.

    Examples
    --------
    >>> review = editing.parse(
    ...     '[[protection.step]]\nmethod = "drop"\n[[protection.step]]\nmethod = "round"\n'
    ...     '# of the study\n[study]\n'
    ... )
    >>> move_step(review, 1, 0)
    >>> print(review.as_string().strip())
    [[protection.step]]
    method = "round"
    [[protection.step]]
    method = "drop"
    # of the study
    [study]
    """
    protection: Any = document["protection"]
    steps = protection["step"]
    tails = [_tail(step) for step in steps]
    moved = steps[number]
    del steps[number]
    steps.insert(to, moved)
    for step, tail in zip(steps, tails, strict=True):
        step.value.body.extend(tail)


def _tail(step: Any) -> list[Any]:
    """Take off what stands below a step and above the next: comments and empty lines."""
    body = step.value.body
    tail: list[Any] = []
    while body and body[-1][0] is None:
        tail.insert(0, body.pop())
    return tail


def drop_candidates(
    document: TOMLDocument, left: Sequence[str], candidates: Collection[str]
) -> None:
    """Have the plan drop the candidates that are left, in place of what it dropped of them.

    Parameters
    ----------
    document
        The review file; its plan is in it.
    left
        The candidates that do not go out.
    candidates
        All of them: a step that drops nothing else is the one to be replaced.
    """
    section: Any = document.get("protection", {})
    steps = section.get("step", [])
    old = [i for i, step in enumerate(steps) if _drops_only(step, candidates)]
    for place in reversed(old[1:] if left else old):
        editing.remove_step(document, place)
    if not left:
        return
    step = {"method": "drop", "columns": list(left)}
    if old:
        tail = _tail(steps[old[0]])
        editing.replace_step(document, old[0], step)
        document["protection"]["step"][old[0]].value.body.extend(tail)
    else:
        append_step(document, step)


def _drops_only(step: Mapping[str, Any], candidates: Collection[str]) -> bool:
    if step.get("method") != "drop":
        return False
    named = step.get("columns", step.get("column", []))
    listed = [named] if isinstance(named, str) else list(named)
    return bool(listed) and all(name in candidates for name in listed)
