"""``keyhole environment``: its verbs, in the order of the work."""

from __future__ import annotations

from collections.abc import Callable

import typer

from keyhole.cli.environment import asking, correcting, storing
from keyhole.cli.environment.importing import import_

__all__ = ["EXAMPLE", "app"]

EXAMPLE = "keyhole environment map --store ENV.db --target FILE --sector banking"

app = typer.Typer(
    name="environment",
    help="Say what an intruder could know: forms, codings, public sources, keys.",
    rich_markup_mode=None,
    no_args_is_help=True,
    epilog=f"\b\nExample:\n  {EXAMPLE}",
)

_VERBS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("init", storing.init),
    ("import", import_),
    ("export", storing.export),
    ("list", storing.list_),
    ("show", storing.show),
    ("tie", correcting.tie),
    ("remove", correcting.remove),
    ("history", storing.history),
    ("map", asking.map_),
    ("join", asking.join),
    ("key", asking.key),
    ("enhance", asking.enhance),
    ("trend", asking.trend),
)
for _name, _verb in _VERBS:
    app.command(_name)(_verb)
