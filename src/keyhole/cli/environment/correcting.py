"""``keyhole environment remove`` and ``tie``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyhole.cli import options as opt
from keyhole.cli.environment.common import StorePlace, Who, open_writing, read, tell_store, user
from keyhole.cli.output import Outputs, tell_written
from keyhole.cli.progress import working
from keyhole.errors import OptionError

__all__ = ["remove", "tie"]

Kind = Annotated[
    str,
    typer.Argument(
        metavar="KIND",
        show_default=False,
        help="construct, coding, map, overlap, organisation, form, source, target or scenario.",
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        show_default=False,
        help="Its name: a construct's letters, 'A -> B' of a map, 'A ~ B' of an overlap.",
    ),
]
Coding = Annotated[str, typer.Argument(metavar="CODING", show_default=False, help="A coding.")]
Pairs = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PAIRS.toml]", help="The relation (finer, coarser or overlap) and its pairs."
    ),
]
Propose = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help="Write what codes and labels suggest to a file to be edited; nothing is kept.",
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Take out what ties the two codings already.")
]


def remove(
    store: StorePlace, kind: Kind, name: Name, who: Who = None, json: opt.Json = False
) -> None:
    """Take a thing out of the store, unless something uses it."""
    with working("Removing"):
        from keyhole.environment.listing import list_environment
        from keyhole.environment.removing import remove as without

        opened = open_writing(store)
        snapshot = opened.read()
        environment = without(snapshot.environment, kind, name)
        note = f"removal of {kind} {name}"[:400]
        snapshot = opened.write(snapshot, environment, who=user(who), note=note)
    Outputs(json).give(list_environment(snapshot.environment))
    tell_store(store, opened.place)


def tie(
    store: StorePlace,
    left: Coding,
    right: Coding,
    pairs: Pairs = None,
    propose: Propose = None,
    replace: Replace = False,
    who: Who = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Say by hand how the categories of two codings go together, and show their join.

    A tie is finer (each category of the first coding falls into one of the second), coarser, or
    an overlap: then a pair of categories is what one person can be.
    """
    if (pairs is None) == (propose is None):
        raise OptionError(
            "give PAIRS.toml, or --propose FILE.toml to have one written that can be edited."
        )
    with working("Tying"):
        if propose is not None:
            _propose(store, left, right, propose, force)
            return
        from keyhole.environment.adding.tying import read_tie_file, tie_codings
        from keyhole.environment.codings.graph import CodingGraph

        assert pairs is not None
        given = read_tie_file(pairs)
        opened = open_writing(store)
        snapshot = opened.read()
        environment = tie_codings(
            snapshot.environment, left, right, given.relation, given.pairs, replace_old=replace
        )
        note = f"tie of {left} and {right}"[:400]
        snapshot = opened.write(snapshot, environment, who=user(who), note=note)
        found = CodingGraph(snapshot.environment).join(left, right)
    Outputs(json).give(found)
    tell_store(store, opened.place)


def _propose(store: str, left: str, right: str, path: Path, force: bool) -> None:
    from keyhole.core.files import write_whole
    from keyhole.environment.adding.tying import propose_tie, tie_to_toml

    text = tie_to_toml(left, propose_tie(read(store), left, right))
    with write_whole(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")
    tell_written("proposal", path)
