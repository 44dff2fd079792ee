"""``keyhole environment import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from keyhole.cli import options as opt
from keyhole.cli.environment.common import (
    Classes,
    Purpose,
    Sector,
    StorePlace,
    Who,
    open_writing,
    tell_store,
    user,
)
from keyhole.cli.environment.following import Wanted, follow
from keyhole.cli.environment.gathering import Attributes, gather
from keyhole.cli.environment.scenarios import add_scenarios
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.errors import OptionError

__all__ = ["import_"]

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...",
        show_default=False,
        help="Forms: JSON Schema, a REDCap dictionary, XLSForm, DDI, labels of SPSS, Stata or "
        "SAS, SDMX, or a table of keyhole's own layout. A target: the file that may go out. "
        "Scenarios: TOML. Left out with --form: what waits in the store.",
    ),
]
As = Annotated[
    Literal["form", "source", "target", "scenario"],
    typer.Option("--as", help="What the files are.", metavar="form|source|target|scenario"),
]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="What to call the form, source or target.")
]
Form = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Of a file with several forms, this one; without a file, the form (or source, or "
        "target, with --as) of the store whose waiting fields are decided on.",
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="json schema, redcap, xlsform, ddi, labels, sdmx or table; found out if left out.",
    ),
]
Organisation = Annotated[str | None, typer.Option(metavar="O", help="Who collects.")]
Collected = Annotated[str | None, typer.Option(metavar="DAY", help="When, as 2024-05-31.")]
Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="LABELS.csv", help="Labels of a target's columns: name, label, code, category."
    ),
]
Accept = Annotated[
    float,
    opt.number("accept", "S", "Proposals of this score or more are taken; the others wait."),
]
Decisions = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml", help="What a person decided on the fields of one form, instead."
    ),
]
Propose = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help="Write the proposals for one form to a file to be edited and given as --decisions; "
        "nothing is kept.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would be done; nothing is kept.")
]
Ranks = Annotated[
    str | None,
    typer.Option(
        metavar="M,S,C", help="Of a source: the ranks of mode (1-4), scope and cost (1-3)."
    ),
]
Typed = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="F,O,C",
        help="Of a source: formal or informal; collected, self-disclosed, observed or secondary; "
        "compelled or voluntary.",
    ),
]
Coverage = Annotated[str | None, typer.Option(metavar="TEXT", help="Of a source: whom it covers.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Take the place of what has the same name.")
]


def import_(
    store: StorePlace,
    files: Files = None,
    as_: As = "form",
    name: Name = None,
    form: Form = None,
    kind: Kind = None,
    organisation: Organisation = None,
    sector: Sector = None,
    purpose: Purpose = None,
    class_: Classes = None,
    collected: Collected = None,
    ranks: Ranks = None,
    type_: Typed = None,
    coverage: Coverage = None,
    labels: Labels = None,
    accept: Accept = 0.8,
    propose: Propose = None,
    decisions: Decisions = None,
    replace: Replace = False,
    dry_run: DryRun = False,
    who: Who = None,
    encoding: opt.Encoding = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Add forms, a public source, a target or scenarios; or decide on fields that wait.

    It is proposed where each field belongs, and said why. Fields whose best proposal scores lower
    than asked are kept without a coding and listed; nothing is merged without being said.
    """
    if propose is not None and decisions is not None:
        raise OptionError("--propose writes what --decisions reads. Give one of them.")
    if not files and form is None:
        raise OptionError("give files to import, or --form with the name of a form of the store.")
    with working("Importing"):
        opened = open_writing(store)
        snapshot = opened.read()
        if as_ == "scenario":
            _require_plain(form, name, propose, decisions)
            found, environment, note = add_scenarios(snapshot.environment, files or [], replace)
        else:
            said = Attributes(organisation, sector, purpose, class_, collected)
            captured = gather(snapshot.environment, files, as_, kind, labels, encoding, said,
                              form, name, waiting=decisions is None)  # fmt: skip
            wanted = Wanted(as_, not files, accept, propose, decisions, replace, force,
                            (ranks, type_, coverage))  # fmt: skip
            found, environment, note = follow(snapshot.environment, captured, wanted)
        kept = not dry_run and propose is None
        if kept:
            opened.write(snapshot, environment, who=user(who), note=note[:400])
    Outputs(json).give(found)
    if kept:
        tell_store(store, opened.place)


def _require_plain(*given: object) -> None:
    if any(one is not None for one in given):
        raise OptionError(
            "--form, --name, --propose and --decisions are of forms, sources and targets. A "
            "scenario has its name in its file."
        )
