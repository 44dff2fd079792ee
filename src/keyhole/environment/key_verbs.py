"""Keys and joins of a store: ``keyhole environment map``, ``join`` and ``key``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from keyhole.core.kinds import Columns, File
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import ForceOption, Names
from keyhole.core.tables import Table
from keyhole.environment.opening import current_user, open_writing, read_place
from keyhole.environment.options import (
    AsOf,
    ClassOption,
    CodingName,
    FormName,
    PurposeOption,
    ResourcesOption,
    SectorOption,
    StorePlace,
    TargetName,
    ThresholdOption,
    Who,
    Why,
)
from keyhole.environment.outcome import VerbOutcome, written
from keyhole.errors import OptionError


@documented
def map_target(
    store: StorePlace,
    *,
    target: TargetName,
    form: FormName | None = None,
    sector: SectorOption = None,
    purpose: PurposeOption = None,
    class_: ClassOption = None,
    threshold: ThresholdOption = 0.0,
    resources: ResourcesOption | None = None,
    joint: Annotated[
        bool, Option("Find which key variables the same forms hold together.")
    ] = False,
    file: Annotated[
        Any, Option("The target's file: detail is measured on its records.", kind=File())
    ] = None,
    why: Why = False,
) -> VerbOutcome:
    """Find the key variables of a target that a form, a class of forms or public sources hold.

    With resources besides a form or class, both are combined: the intruder holds the one and
    looks up the other. With the target's file, detail is measured on its records.
    """
    from keyhole.environment.codings.graph import CodingGraph
    from keyhole.environment.mapping.joint import joint_keys
    from keyhole.environment.mapping.mapping import map_restricted
    from keyhole.environment.mapping.public import combine_keys, map_public

    asked = bind(map_target, locals())
    asked.require()
    graph = CodingGraph.of(store)
    weights = None if file is None else _weights(graph, target, Path(file))
    forms = {"sector": asked.sector, "purpose": asked.purpose}
    forms["classifications"] = asked.class_ or None
    of_class = {"threshold": asked.threshold, "weights": weights, **forms}
    found: Any = None
    if asked.joint:
        found = joint_keys(graph, target, **of_class)
    elif asked.resources is not None:
        found = map_public(graph, target, resources=asked.resources, weights=weights)
    if found is None:
        found = map_restricted(graph, target, form=asked.form, **of_class)
    elif not asked.joint and (asked.form is not None or any(forms.values())):
        held = map_restricted(graph, target, form=asked.form, **of_class)
        found = combine_keys(graph, target, [held, found.mapping], weights=weights)
    remark = "" if file is None else f"Bits are those of the records of {Path(file).name!r}."
    return VerbOutcome(found, why=_why(found) if why else None, remark=remark)


def map_target_problems(asked: Question) -> Iterator[Problem]:
    """Refuse a form beside a class of forms."""
    if asked.form is not None and (asked.joint or asked.sector or asked.purpose or asked.class_):
        yield Problem("{form} is one form; leave out {sector}, {purpose}, {class_} and {joint}.")


def _weights(graph: Any, target: str, file: Path) -> Any:
    from keyhole.data import load
    from keyhole.environment.scenarios.recoding import file_weights

    weights = file_weights(graph, target, load(file))
    if not weights:
        raise OptionError(
            f"{file.name!r} has no column of the target with values of its coding. Give the file "
            f"that the target describes."
        )
    return weights


def _why(found: Any) -> Table | None:
    from keyhole.environment.mapping.keys import KeyMapping

    mapping = getattr(found, "mapping", found)
    return mapping.why() if isinstance(mapping, KeyMapping) else None


@documented
def find_join(
    store: StorePlace,
    left: CodingName,
    right: CodingName,
    *,
    as_of: AsOf = None,
    mint: Annotated[bool, Option("Keep the join in the store, as a harmonised coding.")] = False,
    who: Who = None,
) -> VerbOutcome:
    """Find the finest coding to which two codings both lead."""
    from keyhole.environment.codings.graph import CodingGraph

    asked = bind(find_join, locals())
    asked.require()
    if not mint:
        return VerbOutcome(CodingGraph.of(store).join(left, right, as_of=asked.as_of))
    from keyhole.environment.codings.joins import mint as minting

    opened = open_writing(store)
    snapshot = opened.read()
    graph = CodingGraph.of(snapshot.environment)
    minted = minting(graph, graph.join(left, right, as_of=asked.as_of))
    environment = replace(
        snapshot.environment,
        codings=(*snapshot.environment.codings, minted.coding),
        maps=(*snapshot.environment.maps, *minted.maps),
    )
    note = f"join of {left} and {right}"[:400]
    after = opened.write(snapshot, environment, who=who or current_user(), note=note)
    found = CodingGraph.of(after.environment).join(left, right, as_of=asked.as_of)
    return VerbOutcome(found, (f"Minted {minted.coding.name}: {left} and {right} lead up to it",))


@documented
def find_key(
    store: StorePlace,
    scenario: Annotated[str, Option("A scenario of the store.", metavar="SCENARIO", argument=True)],
    *,
    target: TargetName,
    file: Annotated[
        Any, Option("The target's file, to be recoded to the key.", kind=File())
    ] = None,
    out: Annotated[
        str | os.PathLike[str] | None,
        Option("Where the recoded file goes: the columns of the key.", kind=File()),
    ] = None,
    keep: Annotated[
        Names | None,
        Option(
            "Columns of the file that are written beside the key, such as an id.",
            kind=Columns("keep"),
        ),
    ] = None,
    why: Why = False,
    force: ForceOption = False,
) -> VerbOutcome:
    """Find the key of a scenario, and write the target's file with the columns of the key only."""
    from keyhole.environment.scenarios.recoding import scenario_key, scenario_mapping

    asked = bind(find_key, locals())
    asked.require()
    environment = read_place(store)
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
        found, wrote = recoded.mapping, (written("recoded file", out),)
    return VerbOutcome(found, wrote, _why(found) if why else None)


def find_key_problems(asked: Question) -> Iterator[Problem]:
    """Refuse half of what the writing of a recoded file needs."""
    if asked.keep and asked.out is None:
        yield Problem("{keep} says what is written beside the key. Give {file} and {out} too.")
    elif (asked.file is None) != (asked.out is None):
        yield Problem("{file} and {out} go together: the file that is read, and the recoded one.")
