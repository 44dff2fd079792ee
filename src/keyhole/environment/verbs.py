"""Verbs on stores, keys and joins: ``keyhole environment init``, ``map``, ``key`` and others.

What a verb works with is imported in it, so that its ``--help`` waits for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.core.kinds import Columns, File
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import ForceOption, Names
from keyhole.core.tables import Table
from keyhole.environment import exchange, options
from keyhole.environment.model import Environment
from keyhole.errors import OptionError
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl

    from keyhole.environment.store import Store


def store_written(given: options.AnyPath, opened: Store) -> str:
    """Say which store was written; a URL without its password."""
    return options.written("store", opened.place if "://" in os.fspath(given) else given)


def _changed(
    store: options.AnyPath, who: str | None, note: str, change: Callable[[Environment], Environment]
) -> tuple[Environment, str]:
    """Write what a change makes of a store's environment; say what it holds now, and where."""
    opened = exchange.open_writing(store)
    snapshot = opened.read()
    environment = change(snapshot.environment)
    after = opened.write(snapshot, environment, who=who or exchange.current_user(), note=note[:400])
    return after.environment, store_written(store, opened)


@documented
def init_store(
    store: options.StoreFile,
    *,
    example: Annotated[bool, Option("Begin with the example environment.")] = False,
    from_: Annotated[
        options.AnyPath | None,
        options.file_option("Begin with an exported environment.", "ENV.json"),
    ] = None,
    who: options.Who = None,
) -> options.VerbOutcome:
    """Make a store, empty or with something to begin with."""
    from keyhole.environment.listing import list_environment

    bind(init_store, locals()).require()
    environment = Environment() if from_ is None else exchange.read_environment(from_)
    environment = exchange.example_environment() if example else environment
    opened = exchange.open_writing(store, create=True)
    snapshot = opened.read()
    if not opened.created and snapshot.environment != Environment():
        raise OptionError(
            f"{opened.place} must be a new store. Got one with content instead: give another "
            f"name, or add to it by `keyhole environment import`."
        )
    held = opened.write(snapshot, environment, who=who or exchange.current_user(), note="init")
    wrote = store_written(store, opened)
    return options.VerbOutcome(list_environment(held.environment), (wrote,))


def init_store_problems(asked: Question) -> Iterator[Problem]:
    """Refuse two beginnings."""
    if asked.example and asked.from_ is not None:
        yield Problem("{example} and {from_} exclude each other. Give one of them.")


@documented
def export_environment(
    store: options.StorePlace,
    out: Annotated[
        options.AnyPath,
        options.file_option("ENV.json for the whole environment, FORMS.csv for its forms.", "OUT"),
    ],
    *,
    force: ForceOption = False,
) -> options.VerbOutcome:
    """Write the whole environment as one JSON file, or its forms as a table."""
    from keyhole.environment.importers.table import write_forms

    bind(export_environment, locals()).require()
    whole = Path(out).suffix.lower() == ".json"
    (exchange.write_environment if whole else write_forms)(
        exchange.read_place(store), out, force=force
    )
    return options.VerbOutcome(None, (options.written("environment" if whole else "forms", out),))


def export_environment_problems(asked: Question) -> Iterator[Problem]:
    """Refuse files of other sorts."""
    if asked.out is not None and Path(asked.out).suffix.lower() not in (".json", ".csv"):
        yield Problem("{out} must end in .json (everything) or .csv (the forms).")


@documented
def remove_thing(
    store: options.StoreFile,
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
    who: options.Who = None,
) -> options.VerbOutcome:
    """Remove something from the store, unless it is in use."""
    from keyhole.environment.listing import list_environment
    from keyhole.environment.soundness import remove

    bind(remove_thing, locals()).require()
    note = f"removal of {kind} {name}"
    after, wrote = _changed(store, who, note, lambda held: remove(held, kind, name))
    return options.VerbOutcome(list_environment(after), (wrote,))


@documented
def tie(
    store: options.StorePlace,
    left: options.CodingName,
    right: options.CodingName,
    pairs: Annotated[
        options.AnyPath | None,
        options.file_option(
            "The relation (finer, coarser or overlap) and its pairs.", "[PAIRS.toml]", argument=True
        ),
    ] = None,
    *,
    propose: Annotated[
        options.AnyPath | None,
        options.file_option(
            "Write the pairs that codes and labels suggest to a file to be edited; nothing is "
            "stored.",
            "FILE.toml",
        ),
    ] = None,
    replace: Annotated[bool, Option("Replace an existing tie of the two codings.")] = False,
    who: options.Who = None,
    force: ForceOption = False,
) -> options.VerbOutcome:
    """State how the categories of two codings correspond, and show their join.

    A tie is finer (each category of the first coding falls into one of the second), coarser, or
    an overlap: then a pair of categories is what one person can be.
    """
    from keyhole.environment.codings.graph import CodingGraph
    from keyhole.environment.matching.placing import propose_tie, tie_codings
    from keyhole.environment.matching.proposals import read_tie_file, tie_to_toml

    bind(tie, locals()).require()
    if propose is not None:
        text = tie_to_toml(left, propose_tie(exchange.read_place(store), left, right))
        told = options.written("proposal", propose, text, force=force)
        return options.VerbOutcome(None, (told,))
    given = read_tie_file(pairs or "")

    def tied(held: Environment) -> Environment:
        return tie_codings(held, left, right, given.relation, given.pairs, replace_old=replace)

    after, wrote = _changed(store, who, f"tie of {left} and {right}", tied)
    return options.VerbOutcome(CodingGraph(after).join(left, right), (wrote,))


def tie_problems(asked: Question) -> Iterator[Problem]:
    """Refuse neither and both of pairs and a proposal."""
    if (asked.pairs is None) == (asked.propose is None):
        yield Problem("give PAIRS.toml, or {propose} FILE.toml to have one written for editing.")


@documented
def map_target(
    store: options.StorePlace,
    *,
    target: options.TargetName,
    form: options.FormName | None = None,
    sector: options.SectorOption = None,
    purpose: options.PurposeOption = None,
    class_: options.ClassOption = None,
    threshold: options.ThresholdOption = 0.0,
    resources: options.ResourcesOption | None = None,
    joint: Annotated[
        bool, Option("Find which key variables the same forms hold together.")
    ] = False,
    file: Annotated[
        Any, Option("The target's file: detail is measured on its records.", kind=File())
    ] = None,
    why: options.Why = False,
) -> options.VerbOutcome:
    """Find the key variables of a target that a form, a class of forms or public sources hold.

    With resources besides a form or class, both are combined: the intruder holds the one and
    looks up the other. With the target's file, detail is measured on its records.
    """
    from keyhole.data import load
    from keyhole.environment.codings.graph import CodingGraph
    from keyhole.environment.mapping.mapping import joint_keys, map_restricted
    from keyhole.environment.mapping.public import combine_keys, map_public
    from keyhole.environment.scenarios.recoding import file_weights

    asked = bind(map_target, locals())
    asked.require()
    graph = CodingGraph.of(store)
    weights, remark = None, ""
    if file is not None:
        weights = file_weights(graph, target, load(file))
        remark = f"Bits are those of the records of {Path(file).name!r}."
        if not weights:
            raise OptionError(
                f"{Path(file).name!r} has no column of the target with values of its coding. Give "
                f"the file that the target describes."
            )
    forms = {"sector": asked.sector, "purpose": asked.purpose, "classifications": asked.class_}
    of_class: Any = {"threshold": asked.threshold, "weights": weights, **forms}
    found: Any = None
    if asked.resources is not None and not asked.joint:
        found = map_public(graph, target, resources=asked.resources, weights=weights)
    if asked.joint:
        found = joint_keys(graph, target, **of_class)
    elif found is None or asked.form is not None or any(forms.values()):
        held = map_restricted(graph, target, form=asked.form, **of_class)
        both = found and combine_keys(graph, target, [held, found.mapping], weights=weights)
        found = both or held
    told = getattr(found, "mapping", found).why() if why else None
    return options.VerbOutcome(found, why=told, remark=remark)


def map_target_problems(asked: Question) -> Iterator[Problem]:
    """Refuse a form beside a class of forms."""
    if asked.form is not None and (asked.joint or asked.sector or asked.purpose or asked.class_):
        yield Problem("{form} is one form; leave out {sector}, {purpose}, {class_} and {joint}.")


@documented
def find_join(
    store: options.StorePlace,
    left: options.CodingName,
    right: options.CodingName,
    *,
    as_of: options.AsOf = None,
    mint: Annotated[bool, Option("Keep the join in the store, as a harmonised coding.")] = False,
    who: options.Who = None,
) -> options.VerbOutcome:
    """Find the finest coding to which two codings both lead."""
    from keyhole.environment.codings.graph import CodingGraph

    asked = bind(find_join, locals())
    asked.require()
    if not mint:
        return options.VerbOutcome(CodingGraph.of(store).join(left, right, as_of=asked.as_of))
    from keyhole.environment.codings.joins import mint as minting

    def with_join(held: Environment) -> Environment:
        graph = CodingGraph.of(held)
        minted = minting(graph, graph.join(left, right, as_of=asked.as_of))
        codings, maps = (*held.codings, minted.coding), (*held.maps, *minted.maps)
        return replace(held, codings=codings, maps=maps)

    after, _ = _changed(store, who, f"join of {left} and {right}", with_join)
    found = CodingGraph.of(after).join(left, right, as_of=asked.as_of)
    return options.VerbOutcome(found, (f"Minted {found.coding}: {left} and {right} lead up to it",))


@documented
def find_key(
    store: options.StorePlace,
    scenario: Annotated[str, Option("A scenario of the store.", metavar="SCENARIO", argument=True)],
    *,
    target: options.TargetName,
    file: Annotated[
        Any, Option("The target's file, to be recoded to the key.", kind=File())
    ] = None,
    out: Annotated[
        options.AnyPath | None,
        options.file_option("Where the recoded file goes: the columns of the key."),
    ] = None,
    keep: Annotated[
        Names | None,
        Option("Columns of the file written beside the key, such as an id.", kind=Columns("keep")),
    ] = None,
    why: options.Why = False,
    force: ForceOption = False,
) -> options.VerbOutcome:
    """Find the key of a scenario, and write the target's file with the columns of the key only."""
    from keyhole.environment.scenarios.recoding import scenario_key, scenario_mapping

    asked = bind(find_key, locals())
    asked.require()
    environment = exchange.read_place(store)
    found = scenario_mapping(environment, scenario, target)
    wrote: tuple[str, ...] = ()
    if file is not None and out is not None:
        from keyhole.data import load

        recoded = scenario_key(environment, scenario, load(file), target)
        kept = recoded.microdata.require(asked.keep or (), purpose="keep")
        columns = [*kept, *(one for one in recoded.keys if one not in kept)]
        if not columns:
            raise OptionError("the key is empty, so that there is no column to be written.")
        recoded.microdata.select(columns).save(out, force=force)
        found, wrote = recoded.mapping, (options.written("recoded file", out),)
    return options.VerbOutcome(found, wrote, found.why() if why else None)


def find_key_problems(asked: Question) -> Iterator[Problem]:
    """Refuse half of what the writing of a recoded file needs."""
    if asked.keep and asked.out is None:
        yield Problem("{keep} says what is written beside the key. Give {file} and {out} too.")
    elif (asked.file is None) != (asked.out is None):
        yield Problem("{file} and {out} go together: the file that is read, and the recoded one.")


@dataclass(frozen=True, slots=True, repr=False)
class CodingLadder(Result):
    """The codes of a coding, each with its label in every coarser coding, finest first."""

    coding: str
    coarser: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a category: its code, then its category in each coarser coding."""
        import polars as pl

        schema = dict.fromkeys([self.coding, *self.coarser], pl.String)
        return pl.DataFrame(self.categories, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return one row a category."""
        rows = [list(one) for one in self.categories]
        return [Table(f"Ladder of {self.coding}", [self.coding, *self.coarser], rows)]


@documented
def coding_ladder(
    store: options.StorePlace,
    coding: options.CodingName,
    *,
    out: Annotated[
        options.AnyPath | None,
        options.file_option("A CSV file, for `map(column, FILE, to=CODING)` of a derived column."),
    ] = None,
    force: ForceOption = False,
) -> options.VerbOutcome:
    """List where the categories of a coding fall in coarser ones, as a file for derived columns."""
    bind(coding_ladder, locals()).require()
    found = ladder_of(store, coding)
    if out is None:
        return options.VerbOutcome(found)
    told = options.written("ladder", out, found.to_frame().write_csv(), force=force)
    return options.VerbOutcome(found, (told,))


def ladder_of(environment: Any, coding: str) -> CodingLadder:
    """Return the ladder of a coding of an environment, or of its store."""
    from keyhole.environment.codings.graph import CodingGraph

    graph = CodingGraph.of(environment)
    finest = graph.node(coding)
    columns, kept = [list(finest.codes)], []
    nodes = sorted(map(graph.node, graph.ancestors(coding)), key=lambda n: (-n.size, n.name))
    for node in nodes:
        places = graph.mapping(coding, node.name)
        if places is not None and (places >= 0).all():
            columns.append([node.labels[place] for place in places])
            kept.append(node.name)
    if not kept:
        raise OptionError(f"coding {coding!r} leads to no coarser one. Add one, or its join.")
    return CodingLadder(finest.name, tuple(kept), tuple(zip(*columns, strict=True)))
