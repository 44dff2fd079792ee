"""What the verbs of the environment share: the store, and who is working."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keyhole.cli import lists
from keyhole.cli.output import tell_written
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.environment.model import Environment
    from keyhole.environment.store import Store

__all__ = [
    "Classes",
    "Purpose",
    "Sector",
    "StorePlace",
    "Threshold",
    "Who",
    "classes",
    "open_writing",
    "read",
    "tell_store",
    "user",
]

StorePlace = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="ENV.db",
        show_default=False,
        help="The store: an SQLite file, or the URL of a PostgreSQL database. Verbs that only "
        "read take an exported ENV.json too.",
    ),
]
Who = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who is working, for the history; the user if left out."),
]
Sector = Annotated[str | None, typer.Option(metavar="S", help="The forms of this sector.")]
Purpose = Annotated[str | None, typer.Option(metavar="P", help="The forms of this purpose.")]
Classes = Annotated[
    str | None,
    typer.Option(
        "--class", metavar="SCHEME=VALUE,...", help="The forms of these further classifications."
    ),
]
Threshold = Annotated[
    float,
    typer.Option(
        metavar="T",
        parser=lambda text: lists.number(text, option="threshold", kind=float),
        help="The share of the forms that must hold a coding: 0 is any one, 1 is all of them.",
    ),
]


def read(place: str) -> Environment:
    """Read a store, or an exported environment, without changing it."""
    from keyhole.environment.opening import read_place

    return read_place(place)


def open_writing(place: str, *, create: bool = False) -> Store:
    """Open a store to be written; only `init` makes one."""
    from keyhole.environment.opening import is_exported
    from keyhole.environment.store import open_store

    if is_exported(place):
        raise OptionError(
            f"{place!r} is an exported environment, which is only read. Make a store of it first: "
            f"keyhole environment init --store ENV.db --from {Path(place).name}."
        )
    return open_store(place, create=create)


def tell_store(given: str, place: str) -> None:
    """Say which store was written; a URL without its password."""
    tell_written("store", Path(place if "://" in given else given))


def user(who: str | None) -> str:
    """Return who is working."""
    import getpass

    if who is not None:
        return who
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # nobody has this number here
        return "unknown"


def classes(text: str | None) -> dict[str, str]:
    """Read further classifications, ``SCHEME=VALUE`` with commas between them."""
    pairs = [part.partition("=") for part in lists.names(text, "--class")]
    if any(not sign or not scheme or not value for scheme, sign, value in pairs):
        raise OptionError("--class must be SCHEME=VALUE, with commas between several.")
    return {scheme: value for scheme, _, value in pairs}
