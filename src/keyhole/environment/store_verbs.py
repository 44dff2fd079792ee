"""Stores: ``keyhole environment init``, ``export``, ``remove`` and ``tie``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from keyhole.core.files import write_whole
from keyhole.core.kinds import File
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import ForceOption
from keyhole.environment.model import Environment
from keyhole.environment.opening import current_user, open_writing, read_place
from keyhole.environment.options import CodingName, StoreFile, StorePlace, Who
from keyhole.environment.outcome import VerbOutcome, written
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.environment.store import Store


def store_written(given: str | os.PathLike[str], opened: Store) -> str:
    """Say which store was written; a URL without its password."""
    return written("store", opened.place if "://" in os.fspath(given) else given)


@documented
def init_store(
    store: StoreFile,
    *,
    example: Annotated[bool, Option("Begin with the example environment.")] = False,
    from_: Annotated[
        str | os.PathLike[str] | None,
        Option("Begin with an exported environment.", kind=File(), metavar="ENV.json"),
    ] = None,
    who: Who = None,
) -> VerbOutcome:
    """Make a store, empty or with something to begin with."""
    from keyhole.environment.exchange import read_environment
    from keyhole.environment.listing import list_environment

    bind(init_store, locals()).require()
    environment = Environment()
    if example:
        from keyhole.environment.example import example_environment

        environment = example_environment()
    elif from_ is not None:
        environment = read_environment(from_)
    opened = open_writing(store, create=True)
    snapshot = opened.read()
    if not opened.created and snapshot.environment != Environment():
        raise OptionError(
            f"{opened.place} must be a new store. Got one with content instead: give another "
            f"name, or add to it by `keyhole environment import`."
        )
    snapshot = opened.write(snapshot, environment, who=who or current_user(), note="init")
    return VerbOutcome(list_environment(snapshot.environment), (store_written(store, opened),))


def init_store_problems(asked: Question) -> Iterator[Problem]:
    """Refuse two beginnings."""
    if asked.example and asked.from_ is not None:
        yield Problem("{example} and {from_} exclude each other. Give one of them.")


@documented
def export_environment(
    store: StorePlace,
    out: Annotated[
        str | os.PathLike[str],
        Option(
            "ENV.json for the whole environment, FORMS.csv for its forms.",
            kind=File(),
            metavar="OUT",
            argument=True,
        ),
    ],
    *,
    force: ForceOption = False,
) -> VerbOutcome:
    """Write the whole environment as one JSON file, or its forms as a table."""
    from keyhole.environment.exchange import write_environment
    from keyhole.environment.importers.table import write_forms

    bind(export_environment, locals()).require()
    whole = Path(out).suffix.lower() == ".json"
    (write_environment if whole else write_forms)(read_place(store), out, force=force)
    return VerbOutcome(None, (written("environment" if whole else "forms", out),))


def export_environment_problems(asked: Question) -> Iterator[Problem]:
    """Refuse files of other sorts."""
    if asked.out is not None and Path(asked.out).suffix.lower() not in (".json", ".csv"):
        yield Problem("OUT must end in .json (everything) or .csv (the forms).")


@documented
def remove_thing(
    store: StoreFile,
    kind: Annotated[
        str,
        Option(
            "construct, coding, map, overlap, organisation, form, source, target or scenario.",
            metavar="KIND",
            argument=True,
        ),
    ],
    name: Annotated[
        str,
        Option(
            "Its name: a construct's letters, 'A -> B' of a map, 'A ~ B' of an overlap.",
            metavar="NAME",
            argument=True,
        ),
    ],
    *,
    who: Who = None,
) -> VerbOutcome:
    """Remove a thing from the store, unless something uses it."""
    from keyhole.environment.listing import list_environment
    from keyhole.environment.removing import remove

    bind(remove_thing, locals()).require()
    opened = open_writing(store)
    snapshot = opened.read()
    environment = remove(snapshot.environment, kind, name)
    note = f"removal of {kind} {name}"[:400]
    snapshot = opened.write(snapshot, environment, who=who or current_user(), note=note)
    return VerbOutcome(list_environment(snapshot.environment), (store_written(store, opened),))


@documented
def tie(
    store: StorePlace,
    left: CodingName,
    right: CodingName,
    pairs: Annotated[
        str | os.PathLike[str] | None,
        Option(
            "The relation (finer, coarser or overlap) and its pairs.",
            kind=File(),
            metavar="[PAIRS.toml]",
            argument=True,
        ),
    ] = None,
    *,
    propose: Annotated[
        str | os.PathLike[str] | None,
        Option(
            "Write what codes and labels suggest to a file to be edited; nothing is kept.",
            kind=File(),
            metavar="FILE.toml",
        ),
    ] = None,
    replace: Annotated[bool, Option("Remove what ties the two codings already.")] = False,
    who: Who = None,
    force: ForceOption = False,
) -> VerbOutcome:
    """Say by hand how the categories of two codings go together, and show their join.

    A tie is finer (each category of the first coding falls into one of the second), coarser, or
    an overlap: then a pair of categories is what one person can be.
    """
    from keyhole.environment.adding.decisions import read_tie_file, tie_to_toml
    from keyhole.environment.adding.placing import propose_tie, tie_codings
    from keyhole.environment.codings.graph import CodingGraph

    bind(tie, locals()).require()
    if propose is not None:
        text = tie_to_toml(left, propose_tie(read_place(store), left, right))
        with write_whole(propose, force=force) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return VerbOutcome(None, (written("proposal", propose),))
    given = read_tie_file(pairs or "")
    opened = open_writing(store)
    snapshot = opened.read()
    environment = tie_codings(
        snapshot.environment, left, right, given.relation, given.pairs, replace_old=replace
    )
    note = f"tie of {left} and {right}"[:400]
    snapshot = opened.write(snapshot, environment, who=who or current_user(), note=note)
    found = CodingGraph(snapshot.environment).join(left, right)
    return VerbOutcome(found, (store_written(store, opened),))


def tie_problems(asked: Question) -> Iterator[Problem]:
    """Refuse neither and both of pairs and a proposal."""
    if (asked.pairs is None) == (asked.propose is None):
        yield Problem(
            "give PAIRS.toml, or {propose} FILE.toml to have one written that can be edited."
        )
