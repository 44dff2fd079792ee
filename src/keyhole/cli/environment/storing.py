"""``keyhole environment init``, ``export``, ``list``, ``show`` and ``history``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keyhole.cli import options as opt
from keyhole.cli.environment.common import (
    StorePlace,
    Who,
    open_writing,
    read,
    tell_store,
    user,
)
from keyhole.cli.output import Outputs, tell_written
from keyhole.cli.progress import working
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.environment.model import Environment

__all__ = ["export", "history", "init", "list_", "show"]

Example = Annotated[bool, typer.Option("--example", help="Begin with the example environment.")]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="ENV.json", help="Begin with an exported environment."),
]
What = Annotated[
    str,
    typer.Argument(
        metavar="[WHAT]",
        help="overview, constructs, codings, organisations, forms, sources, targets or scenarios.",
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        show_default=False,
        help="A construct's letters, or a coding, form, source, target or scenario by name.",
    ),
]
Graph = Annotated[
    Path | None,
    typer.Option(
        "--plot", "--svg", metavar="FILE.svg", help="Draw the graph of a construct's codings."
    ),
]
Heat = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.svg",
        help="Draw which share of each sector's forms asks each construct (.svg, .png or .html).",
    ),
]
Toml = Annotated[
    bool,
    typer.Option(
        "--toml", help="Write a scenario as TOML, to be edited and imported with --as scenario."
    ),
]
To = Annotated[
    Path,
    typer.Argument(
        metavar="OUT",
        show_default=False,
        help="ENV.json for the whole environment, FORMS.csv for its forms.",
    ),
]


def init(
    store: StorePlace,
    example: Example = False,
    begin: From = None,
    who: Who = None,
    json: opt.Json = False,
) -> None:
    """Make a store, empty or with something to begin with."""
    if example and begin is not None:
        raise OptionError("--example and --from exclude each other. Give one of them.")
    with working("Making the store"):
        from keyhole.environment.exchange import read_environment
        from keyhole.environment.listing import list_environment
        from keyhole.environment.model import Environment

        environment = Environment()
        if example:
            from keyhole.environment.example.environment import example_environment

            environment = example_environment()
        elif begin is not None:
            environment = read_environment(begin)
        opened = open_writing(store, create=True)
        snapshot = opened.read()
        if not opened.created and snapshot.environment != Environment():
            raise OptionError(
                f"{opened.place} must be a new store. Got one with content instead: give another "
                f"name, or add to it by `keyhole environment import`."
            )
        snapshot = opened.write(snapshot, environment, who=user(who), note="init")
    Outputs(json).give(list_environment(snapshot.environment))
    tell_store(store, opened.place)


def export(store: StorePlace, out: To, force: opt.Force = False) -> None:
    """Write the whole environment as one JSON file, or its forms as a table."""
    if out.suffix.lower() not in (".json", ".csv"):
        raise OptionError("OUT must end in .json (everything) or .csv (the forms).")
    with working("Exporting"):
        from keyhole.environment.exchange import write_environment, write_forms

        write = write_environment if out.suffix.lower() == ".json" else write_forms
        write(read(store), out, force=force)
    tell_written("environment" if out.suffix.lower() == ".json" else "forms", out)


def list_(
    store: StorePlace,
    what: What = "overview",
    plot: Heat = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """List what the environment holds."""
    with working("Reading the store"):
        from keyhole.environment.listing import list_environment

        environment = read(store)
        found = list_environment(environment, what)
        if plot is not None:
            from keyhole.charts import save_chart
            from keyhole.environment.pictures.charts import prevalence_chart

            save_chart(prevalence_chart(environment), plot, force=force)
            tell_written("picture", plot)
    Outputs(json).give(found)


def show(
    store: StorePlace,
    name: Name,
    plot: Graph = None,
    toml: Toml = False,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Show one thing of the environment."""
    if toml and json:
        raise OptionError("--toml and --json exclude each other. Give one of them.")
    with working("Reading the store"):
        from keyhole.environment.listing import show as find

        environment = read(store)
        found = find(environment, name)
        if plot is not None:
            _draw(environment, found.kind, found.name, plot, force)
        text = _toml(environment, found.kind, found.name) if toml else ""
    if toml:
        print(text, end="")
    else:
        Outputs(json).give(found)


def _toml(environment: Environment, kind: str, name: str) -> str:
    from keyhole.environment.scenarios.files import scenario_to_toml

    if kind != "scenario":
        raise OptionError("--toml writes scenarios. Name one, or leave it out.")
    return scenario_to_toml(next(one for one in environment.scenarios if one.name == name))


def _draw(environment: Environment, kind: str, name: str, svg: Path, force: bool) -> None:
    from keyhole.core.files import write_whole
    from keyhole.environment.pictures.drawing import draw_graph

    if kind != "construct" or svg.suffix.lower() != ".svg":
        raise OptionError(
            "--plot draws the codings of a construct: name its letters, and a .svg file."
        )
    drawing = draw_graph(environment, name)
    with write_whole(svg, force=force) as temporary:
        temporary.write_text(drawing, encoding="utf-8")
    tell_written("drawing", svg)


def history(
    store: StorePlace,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only of what has this name.")
    ] = None,
    json: opt.Json = False,
) -> None:
    """Tell who changed what, and when."""
    with working("Reading the store"):
        from keyhole.environment.facts import changes_told
        from keyhole.environment.listing import CHANGED, Listing
        from keyhole.environment.opening import is_exported
        from keyhole.environment.store import open_store

        if is_exported(store):
            raise OptionError("an exported environment has no history. Give the store itself.")
        changes = open_store(store, writing=False).history(name=name)
        rows = tuple(
            (
                c.number, f"{c.when:%Y-%m-%d %H:%M:%S}", c.who, c.action, c.kind, c.name,
                changes_told(c.before, c.after), c.note,
            )
            for c in changes
        )  # fmt: skip
    columns = ("number", "when (UTC)", "who", "action", "kind", "name", CHANGED, "note")
    Outputs(json).give(Listing("history", columns, rows))
