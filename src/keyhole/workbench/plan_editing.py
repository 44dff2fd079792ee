"""Changes of the plan in a review file: its steps brought in, moved, and variables taken."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.workbench import editing


def bring_in(document: TOMLDocument, steps: Sequence[Mapping[str, Any]]) -> None:
    """Write the steps of a plan that has a file of its own into the review, which then has it.

    The file stays as it is: others may use it.
    """
    section: Any = document.get("protection", {})
    if "plan" not in section:
        return
    editing.remove_setting(document, "protection", "plan")
    for step in steps:
        editing.add_step(document, step)


def move_step(document: TOMLDocument, number: int, to: int) -> None:
    r"""Move a step, counted from 0; the comments between steps stay where they are.

    Examples
    --------
    >>> review = editing.parse_review(
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
    leads = [step.trivia.indent for step in steps]
    moved = steps[number]
    del steps[number]
    steps.insert(to, moved)
    for step, lead in zip(steps, leads, strict=True):
        step.trivia.indent = lead


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
        editing.replace_step(document, old[0], step)
    else:
        editing.add_step(document, step)


def _drops_only(step: Mapping[str, Any], candidates: Collection[str]) -> bool:
    if step.get("method") != "drop":
        return False
    named = step.get("columns", step.get("column", []))
    listed = [named] if isinstance(named, str) else list(named)
    return bool(listed) and all(name in candidates for name in listed)
