"""``keyhole environment map``, ``join``, ``key``, ``enhance`` and ``trend``."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.environment.common import (
    Classes,
    Purpose,
    Sector,
    StorePlace,
    Threshold,
    Who,
    classes,
    open_writing,
    read,
    user,
)
from keyhole.cli.output import Outputs, tell_written
from keyhole.cli.progress import working
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.results import Result

__all__ = ["enhance", "join", "key", "map_", "trend"]

Target = Annotated[
    str, typer.Option(metavar="T", show_default=False, help="The file that may be released.")
]
Form = Annotated[str | None, typer.Option(metavar="F", help="One form.")]
Resources = Annotated[
    int | None,
    opt.whole_number(
        "resources", "R", "The intruder's resources: public sources of a lower index are at hand."
    ),
]
NeededResources = Annotated[
    int,
    opt.whole_number(
        "resources",
        "R",
        "The intruder's resources: public sources of a lower index are at hand.",
        show_default=False,
    ),
]
Joint = Annotated[
    bool, typer.Option("--joint", help="Tell which key variables the same forms hold together.")
]
Coding = Annotated[str, typer.Argument(metavar="CODING", show_default=False, help="A coding.")]
Day = Annotated[
    str | None,
    typer.Option(metavar="DAY", help="The day on which dates of birth are ages, as 2024-05-31."),
]
Mint = Annotated[
    bool, typer.Option("--mint", help="Keep the join in the store, as a harmonised coding.")
]
Scenario = Annotated[
    str, typer.Argument(metavar="SCENARIO", show_default=False, help="A scenario of the store.")
]
File = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="The target's file, to be recoded to the key."),
]
Weighed = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", help="The target's file: detail is measured on its records."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where the recoded file goes: the columns of the key."),
]
KeepColumns = Annotated[
    str | None, opt.columns("Columns of the file that are written beside the key, such as an id.")
]
Why = Annotated[
    bool,
    typer.Option(
        "--why", help="Say of each key variable which forms, which way up, which categories merged."
    ),
]
Construct = Annotated[str | None, typer.Option(metavar="LETTERS", help="Only this construct.")]


def map_(
    store: StorePlace,
    target: Target,
    form: Form = None,
    sector: Sector = None,
    purpose: Purpose = None,
    class_: Classes = None,
    threshold: Threshold = 0.0,
    resources: Resources = None,
    joint: Joint = False,
    file: Weighed = None,
    why: Why = False,
    json: opt.Json = False,
) -> None:
    """Find the key variables of a target that a form, a class of forms or public sources hold.

    With resources besides a form or class, both are combined: the intruder holds the one and
    looks up the other. With the target's file, detail is measured on its records.
    """
    chosen = {"sector": sector, "purpose": purpose, "classifications": classes(class_) or None}
    if form is not None and (joint or any(chosen.values())):
        raise OptionError("--form is one form; leave out --sector, --purpose, --class and --joint.")
    with working("Mapping"):
        graph, weights = _weighed(read(store), target, file)
        found = _map(graph, target, form, chosen, threshold, resources, joint, weights)
    told = _why(found) if why else ""
    if file is not None:
        told = "\n\n".join(filter(None, [told, f"Bits are those of the records of {file.name!r}."]))
    Outputs(json).give(found, tables=told)


def _weighed(environment: Any, target: str, file: Path | None) -> tuple[Any, Any]:
    """Return the graph, and the counts of the target's file if there is one."""
    from keyhole.environment.codings.graph import CodingGraph

    graph = CodingGraph.of(environment)
    if file is None:
        return graph, None
    from keyhole.data import load
    from keyhole.environment.scenarios.recoding import file_weights

    weights = file_weights(graph, target, load(file))
    if not weights:
        raise OptionError(
            f"{file.name!r} has no column of the target with values of its coding. Give the file "
            f"that the target describes."
        )
    return graph, weights


def _why(found: Result) -> str:
    from keyhole.environment.mapping.answers import KeyMapping

    mapping = getattr(found, "mapping", found)
    return mapping.why().to_text() if isinstance(mapping, KeyMapping) else ""


def _map(
    graph: Any,
    target: str,
    form: str | None,
    chosen: dict[str, Any],
    threshold: float,
    resources: int | None,
    joint: bool,
    weights: Any,
) -> Result:
    from keyhole.environment.mapping.joint import joint_keys
    from keyhole.environment.mapping.mapping import map_class, map_pair
    from keyhole.environment.mapping.public import map_public
    from keyhole.environment.mapping.stages import combine

    if joint:
        return joint_keys(graph, target, threshold=threshold, weights=weights, **chosen)
    only_public = resources is not None and form is None and not any(chosen.values())
    if resources is not None and only_public:
        return map_public(graph, target, resources=resources, weights=weights)
    if form is not None:
        held = map_pair(graph, target, form, weights=weights)
    else:
        held = map_class(graph, target, threshold=threshold, weights=weights, **chosen)
    if resources is None:
        return held
    public = map_public(graph, target, resources=resources, weights=weights)
    return combine(graph, target, [held, public.mapping], weights=weights)


def join(
    store: StorePlace,
    left: Coding,
    right: Coding,
    as_of: Day = None,
    mint: Mint = False,
    who: Who = None,
    json: opt.Json = False,
) -> None:
    """Find the finest coding to which two codings both lead."""
    with working("Joining"):
        if mint:
            found, name = _keep(store, left, right, _day(as_of), user(who))
        else:
            from keyhole.environment.codings.graph import CodingGraph

            found, name = CodingGraph.of(read(store)).join(left, right, as_of=_day(as_of)), ""
    Outputs(json).give(found)
    if name and sys.stderr is not None:
        print(f"Minted {name}: {left} and {right} lead up to it", file=sys.stderr)


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise OptionError("--as-of must be a day, as 2024-05-31.") from None


def _keep(store: str, left: str, right: str, day: date | None, who: str) -> tuple[Result, str]:
    """Mint the join, and return it as the store has it now, with its name."""
    from dataclasses import replace

    from keyhole.environment.codings.graph import CodingGraph
    from keyhole.environment.codings.minting import mint

    opened = open_writing(store)
    snapshot = opened.read()
    graph = CodingGraph.of(snapshot.environment)
    minted = mint(graph, graph.join(left, right, as_of=day))
    environment = replace(
        snapshot.environment,
        codings=(*snapshot.environment.codings, minted.coding),
        maps=(*snapshot.environment.maps, *minted.maps),
    )
    after = opened.write(snapshot, environment, who=who, note=f"join of {left} and {right}"[:400])
    found = CodingGraph.of(after.environment).join(left, right, as_of=day)
    return found, minted.coding.name


def key(
    store: StorePlace,
    scenario: Scenario,
    target: Target,
    file: File = None,
    out: Out = None,
    keep: KeepColumns = None,
    why: Why = False,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Find the key of a scenario, and write the target's file with the columns of the key only."""
    if keep is not None and out is None:
        raise OptionError("--keep says what is written beside the key. Give --file and --out too.")
    if (file is None) != (out is None):
        raise OptionError(
            "--file and --out go together: the file that is read, and the recoded one."
        )
    with working("Finding the key"):
        from keyhole.environment.scenarios.recoding import scenario_key, scenario_mapping

        environment = read(store)
        found = scenario_mapping(environment, scenario, target)
        if file is not None and out is not None:
            from keyhole.data import load

            recoded = scenario_key(environment, scenario, load(file), target)
            kept = recoded.microdata.require(lists.names(keep, "--keep"), purpose="--keep")
            columns = [*kept, *(one for one in recoded.keys if one not in kept)]
            if not columns:
                raise OptionError("the key is empty, so that there is no column to be written.")
            recoded.microdata.select(columns).save(out, force=force)
            found = recoded.mapping
            tell_written("recoded file", out)
    Outputs(json).give(found, tables=_why(found) if why else "")


def enhance(
    store: StorePlace,
    target: Target,
    resources: NeededResources,
    form: Form = None,
    sector: Sector = None,
    purpose: Purpose = None,
    class_: Classes = None,
    threshold: Threshold = 0.0,
    json: opt.Json = False,
) -> None:
    """Tell what public sources would add to what a form or class of forms holds."""
    with working("Mapping"):
        from keyhole.environment.mapping.enhancement import enhance as find

        found = find(
            read(store), target, resources=resources, form=form, sector=sector, purpose=purpose,
            classifications=classes(class_) or None, threshold=threshold,
        )  # fmt: skip
    Outputs(json).give(found)


def trend(
    store: StorePlace,
    sector: Sector = None,
    purpose: Purpose = None,
    class_: Classes = None,
    construct: Construct = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Tell by year which share of the forms asks each construct."""
    outputs = Outputs(json, plot, None, force)
    with working("Counting"):
        from keyhole.environment.mapping.trends import trend as find

        found = find(
            read(store), sector=sector, purpose=purpose,
            classifications=classes(class_) or None, construct=construct,
        )  # fmt: skip
    outputs.give(found)
