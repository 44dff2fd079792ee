"""The command and the Python line that set the scenarios of a review side by side."""

from __future__ import annotations

import json
import shlex

from keyhole.workbench.commands import Equivalent, review_lines
from keyhole.workbench.environments import kept
from keyhole.workbench.view import View

__all__ = ["scenario_lines"]


def scenario_lines(view: View, own: tuple[str, ...]) -> list[Equivalent]:
    """Write how scenarios of the environment are measured; the review's own need the review."""
    settings = view.review.scenarios
    if settings is None:
        return []
    stored = [name for name in settings.names if name not in own]
    same = [_measured(view, stored)] if stored else []
    if own or not stored:
        same.append(review_lines(view.project.path.name, view.project.results.name))
    return same


def _measured(view: View, names: list[str]) -> Equivalent:
    settings = view.review.scenarios
    assert settings is not None
    place = kept(view.project, settings.store)
    cutoff, file = view.review.exposure.cutoff, view.review.data.file
    words = ["keyhole", "risk", file, "--store", place.name]
    for name in names:
        # A name with a comma goes in quotes: it would be taken for two.
        words += ["--scenario", f'"{name}"' if "," in name else name]
    if settings.target is not None:
        words += ["--target", settings.target]
    words += ["--cutoff", str(cutoff)]
    target = f", {_text(settings.target)}" if settings.target is not None else ""
    python = (
        "from keyhole.environment import scenario_key; "
        "from keyhole.environment.opening import read_place; "
        "from keyhole.exposure.scenarios import compare_scenarios; "
        f"data, environment = keyhole.load({_text(file)}), read_place({_text(place.name)}); "
        f"compare_scenarios(data, [scenario_key(environment, name, data{target}) "
        f"for name in [{', '.join(map(_text, names))}]], cutoff={cutoff})"
    )
    return Equivalent(shlex.join(words), python)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
