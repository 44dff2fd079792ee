"""The commands and Python lines that do what the page of the environment does."""

from __future__ import annotations

import json
import shlex

from keyhole.core.equivalents import Equivalent
from keyhole.workbench.drafts import Draft
from keyhole.workbench.environments import STORE, Kept
from keyhole.workbench.view import View

__all__ = ["environment_lines"]

_OPEN = "from keyhole.environment import "


def environment_lines(view: View, place: Kept | None, draft: Draft | None) -> list[Equivalent]:
    """Write how the environment is made, listed, drawn and added to."""
    if place is None:
        return [_begun()]
    if place.kind == "json":
        return [_converted(place)]
    found = [_listed(place)]
    letters = view.query.get("construct")
    if letters:
        found.append(_drawn(place, letters))
    if draft is not None:
        found.append(_imported(view, place, draft))
    return found


def _begun() -> Equivalent:
    python = (
        f"{_OPEN}example_environment, open_store; "
        f"store = open_store({_text(STORE)}, create=True); "
        f'store.write(store.read(), example_environment(), who="me")'
    )
    return Equivalent(_command("init", "--store", STORE, "--example"), python)


def _converted(place: Kept) -> Equivalent:
    python = (
        f"{_OPEN}open_store, read_environment; "
        f"store = open_store({_text(STORE)}, create=True); "
        f'store.write(store.read(), read_environment({_text(place.name)}), who="me")'
    )
    return Equivalent(_command("init", "--store", STORE, "--from", place.name), python)


def _listed(place: Kept) -> Equivalent:
    python = f'{_OPEN}list_environment, open_store; list_environment({_read(place)}, "forms")'
    return Equivalent(_command("list", "--store", place.name, "forms"), python)


def _drawn(place: Kept, letters: str) -> Equivalent:
    python = f"{_OPEN}draw_graph, open_store; draw_graph({_read(place)}, {_text(letters)})"
    words = ("show", "--store", place.name, "--svg", "codings.svg", "--", letters)
    return Equivalent(_command(*words), python)


def _imported(view: View, place: Kept, draft: Draft) -> Equivalent:
    file = draft.file or view.review.data.file
    words = ["import", "--store", place.name, file, "--as", draft.what]
    words += ["--propose", "decisions.toml"]
    read = (
        f"read_forms({_text(file)})[0]"
        if draft.file
        else f"capture_microdata(keyhole.load({_text(file)}))"
    )
    exact = ", exact_codes=True" if draft.what == "target" else ""
    names = "open_store, propose, " + ("read_forms" if draft.file else "capture_microdata")
    return Equivalent(_command(*words), f"{_OPEN}{names}; propose({_read(place)}, {read}{exact})")


def _read(place: Kept) -> str:
    return f"open_store({_text(place.name)}, writing=False).read().environment"


def _command(*words: str) -> str:
    return shlex.join(("keyhole", "environment", *words))


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
