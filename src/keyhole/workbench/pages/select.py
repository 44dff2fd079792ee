"""Select: which variables can go out, step by step, and taking one of the sets found."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent
from keyhole.reviews.names import alternatives
from keyhole.reviews.schema import METHODS
from keyhole.reviews.settings import SelectionSettings
from keyhole.selection.criteria import CRITERIA
from keyhole.selection.result import ASSUMPTION
from keyhole.workbench import editing
from keyhole.workbench.commands import equivalent
from keyhole.workbench.editing import in_order
from keyhole.workbench.page import Change, Form, Page, View
from keyhole.workbench.taking import frontier_sets, path_of, released, take

__all__ = ["SELECT"]

Groups = Sequence[Sequence[str]]
STAGES = (
    *(f"selection-{method}" for method in METHODS),
    "comparison", "frontier", "proposal", "alternative", "paths",
)  # fmt: skip
# Columns of these roles are nothing that an analyst chooses.
NOT_OFFERED = ("identifier", "household", "weight", "drop")


def _context(view: View) -> dict[str, Any]:
    chosen = _chosen(view)
    named = {name for group in chosen.candidates for name in group} | set(chosen.keep)
    taken = released(view)
    return {
        "chosen": chosen,
        "columns": [
            one for one in view.data.variables if one.name in named or one.role not in NOT_OFFERED
        ],
        "single": [name for group in chosen.candidates for name in group],
        "alternatives": [_written(group) for group in chosen.candidates if len(group) > 1],
        "methods": METHODS,
        "assumption": ASSUMPTION,
        "criteria": CRITERIA,
        "searches": [
            (method, path_of(view, method)) for method in chosen.methods if view.review.selection
        ],
        "sets": frontier_sets(view),
        "frontier": view.result("frontier"),
        "taken": None if taken is None else [n for n in view.data.names if n in taken],
        "equivalents": _equivalents(view, chosen) if view.review.selection else [],
    }


def _chosen(view: View) -> SelectionSettings:
    """Return the selection, or what one would begin with."""
    review = view.review
    if review.selection is not None:
        return review.selection
    limit = 0.1 if review.exposure.limit is None else review.exposure.limit
    offered = [name for name in review.keys if name in view.data.names]
    return SelectionSettings(limit=limit, candidates=tuple((name,) for name in offered))


def _written(group: Sequence[str]) -> str:
    """Write alternatives as they are typed; a name with a bar or a quote stands in quotes."""
    return "|".join(
        '"' + name.replace('"', '""') + '"' if set(name) & set('|"') else name for name in group
    )


def _search(view: View, form: Form) -> Change:
    """Take the form; what it does not show, and what it leaves as it was, stays unsaid."""
    now, chosen = view.review.selection, _chosen(view)
    groups, methods = _groups(form, chosen.candidates), _methods(form)
    keep = in_order(form.texts("keep"), view.review.keys if now is None else now.keep)

    def edit(document: TOMLDocument) -> None:
        if now is None or groups != [list(group) for group in now.candidates]:
            editing.put(document, "selection", "candidates", [_candidate(g) for g in groups])
        if now is None or tuple(methods) != now.methods:
            editing.remove(document, "selection", "method")
            editing.put(document, "selection", "methods", methods)
        for name, value in _settings(form, chosen).items():
            editing.put(document, "selection", name, value)
        editing.put(document, "selection", "keep", keep)
        if form.flag("frontier"):
            editing.take_section(document, "frontier", {"seconds": form.number("seconds")})
        else:
            editing.remove(document, "frontier")

    return Change("the search for variables", edit)


def _settings(form: Form, chosen: SelectionSettings) -> dict[str, Any]:
    weight, criterion = form.number("cr_weight"), form.text("criterion")
    return {
        "limit": form.share("limit"),
        "drop_limit": form.share("drop_limit"),
        "criterion": criterion if criterion != "ratio" or chosen.criterion != "ratio" else None,
        "cr_weight": weight if weight not in (None, 0.5) else None,
        "skip_dependent": form.flag("skip_dependent") or None,
        "limits": [_share(one) for one in _listed(form, "limits")],
        "cutoffs": [_number(one) for one in _listed(form, "cutoffs")],
    }


def _listed(form: Form, name: str) -> list[str]:
    return [one.strip() for one in (form.text(name) or "").split(",") if one.strip()]


def _number(text: str) -> Any:
    return Form({"": [text]}).number("")


def _share(text: str) -> Any:
    return Form({"": [text.removesuffix("%")]}).share("")


def _methods(form: Form) -> list[str]:
    """Return the methods ticked, the one that proposes leading."""
    first = form.text("first")
    ticked = form.texts("methods")
    return list(dict.fromkeys([*([first] if first else []), *ticked]))


def _groups(form: Form, before: Groups) -> list[list[str]]:
    """Return the candidates in groups of alternatives; those there before keep their order."""
    lines = (form.text("alternatives") or "").splitlines()
    groups = [[one.strip() for one in alternatives(line)] for line in lines if line.strip()]
    several = {name for group in groups for name in group}
    groups += [[name] for name in form.texts("candidates") if name not in several]
    order = {name: place for place, group in enumerate(before) for name in group}
    return sorted(groups, key=lambda group: min(order.get(name, len(order)) for name in group))


def _candidate(group: Sequence[str]) -> Any:
    """Write a candidate as a review file has it: a list where a name holds a bar or a quote."""
    plain = not any(set(name) & set('|"') for name in group)
    return "|".join(group) if plain else list(group)


def _leave(view: View, form: Form) -> Change:  # noqa: ARG001
    def edit(document: TOMLDocument) -> None:
        editing.remove(document, "selection")
        editing.remove(document, "frontier")

    return Change("no search for variables", edit)


def _equivalents(view: View, chosen: SelectionSettings) -> list[Equivalent]:
    file, cutoff = view.review.data.file, view.review.exposure.cutoff
    found = []
    for method in chosen.methods:
        options = {
            "method": method,
            "limit": chosen.limit,
            "cutoff": cutoff,
            "drop_limit": chosen.drop_limit if method == "stepwise" else None,
            "criterion": chosen.criterion if chosen.criterion != "ratio" else None,
            "cr_weight": chosen.cr_weight if chosen.criterion != "ratio" else None,
            "skip_dependent": chosen.skip_dependent,
            "by": chosen.by,
        }
        found.append(_both("select", file, chosen, options))
    if view.review.frontier is not None:
        given = view.review.frontier
        options = {"limit": given.limit, "cutoff": cutoff, "seconds": given.seconds}
        found.append(_both("frontier", file, chosen, options))
    return found


def _both(verb: str, file: str, chosen: SelectionSettings, options: dict[str, Any]) -> Equivalent:
    """Write a search: in a command names with marks stand in quotes, in Python in lists."""
    typed = {
        "keep": ",".join(_quoted(name) for name in chosen.keep),
        "candidates": ",".join("|".join(map(_quoted, group)) for group in chosen.candidates),
    }
    called = {
        "keep": list(chosen.keep),
        "candidates": [_in_python(group) for group in chosen.candidates],
    }
    command = equivalent(verb, file, {**typed, **options}).command
    python = equivalent(verb, file, {**called, **options}).python
    if chosen.values:
        worth = ",".join(f"{_quoted(name)}={value:g}" for name, value in chosen.values.items())
        command += f" --values {shlex.quote(worth)}"
        python = python.removesuffix(")") + f", values={dict(chosen.values)!r})"
    return Equivalent(command, python)


def _quoted(name: str) -> str:
    marked = set(name) & set(',|"=') or name != name.strip()
    return '"' + name.replace('"', '""') + '"' if marked else name


def _in_python(group: Sequence[str]) -> Any:
    return group[0] if len(group) == 1 and "|" not in group[0] else list(group)


SELECT = Page(
    "select",
    "Select",
    STAGES,
    _context,
    {"search": _search, "take": take, "leave": _leave},
)
