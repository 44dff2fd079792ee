"""Registry of verbs: everything that lists verbs lists them from here.

A verb is registered by a dotted path and a summary line, so that nothing is imported before it is
asked for. Its options are in the signature of its function (`keyhole.core.options`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Output:
    """A file or folder that a verb writes on the command line; functions are dotted paths."""

    name: str
    metavar: str
    help: str
    method: str  # of the result, called with the path and `force`
    what: str  # is written, in a word or two for "Wrote the … to"
    required: bool = False
    problems: str = ""  # what stands in the way, from the path and `force`; else any file will do
    is_data: bool = False  # a file of records, in a format that its extension names
    needs: str = ""  # why it cannot be written, from the question
    more_formats: tuple[str, ...] = ()  # extensions besides those of files of records


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb."""

    path: str  # where its function is: `package.module.function`
    summary: str  # what it does, in a line of `keyhole --help`
    example: str  # a command that can be typed
    stage: str = ""  # the section of a review file that asks for it
    engines: tuple[str, ...] = ("memory",)
    method: str = ""  # the page of the documentation that states its method
    records: tuple[str, ...] = ()  # the columns that `--records` writes, a row for each record
    # By option, the columns that are written besides where it is given.
    more_records: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    picture: bool = True  # its result can be drawn
    outputs: tuple[Output, ...] = ()  # what else it writes
    verdict: str = ""  # the attribute of its result that decides the exit code:
    failing: int = 1  # this, if it is false
    returns: bool = True  # it returns a result to be printed
    aside: str = "aside"  # the method of its result, if any, for what is told on standard error
    called: str = ""  # on the command line, where that is not the name of its function
    instead: str = ""  # the option with which another text is printed, and not JSON
    verbs: tuple[Verb, ...] = ()  # those of a group, which has no function of its own

    @property
    def name(self) -> str:
        """What it is called, in Python and on the command line."""
        return self.called or self.path.rpartition(".")[2]

    def function(self) -> Callable[..., Any]:
        """Import the function."""
        function: Callable[..., Any] = imported(self.path)
        return function


def imported(path: str) -> Any:
    """Import what a dotted path names."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


HERE = ("memory", "disk")
EVERYWHERE = ("memory", "disk", "spark")


def _part(path: str, summary: str, example: str, picture: bool = False, **facts: Any) -> Verb:
    """Return a verb of the environment; its example begins with what it is called."""
    shown, called = f"keyhole environment {example}", example.partition(" ")[0]
    path = f"keyhole.environment.{path}"
    return Verb(path, summary, shown, picture=picture, called=called, **facts)


_ENVIRONMENT = (
    _part(
        "verbs.init_store",
        "Make a store, empty or with something to begin with.",
        "init --store ENV.db --example",
    ),
    _part(
        "matching.importing.import_files",
        "Add forms, a public source, a target or scenarios; or resolve pending fields.",
        "import --store ENV.db form.json --sector banking",
    ),
    _part(
        "verbs.export_environment",
        "Write the whole environment as one JSON file, or its forms as a table.",
        "export --store ENV.db --out ENV.json",
        returns=False,
    ),
    _part(
        "listing.list_environment",
        "List what the environment holds.",
        "list --store ENV.db forms",
        picture=True,
    ),
    _part(
        "listing.show",
        "Show one construct, coding, form, source, target or scenario.",
        "show --store ENV.db AG --plot codings.svg",
        instead="toml",
    ),
    _part(
        "verbs.tie",
        "State how the categories of two codings correspond, and show their join.",
        "tie --store ENV.db AG5.001 AG7.001 pairs.toml",
    ),
    _part(
        "verbs.remove_thing",
        "Remove something from the store, unless it is in use.",
        "remove --store ENV.db form 'Membership form'",
    ),
    _part(
        "matching.importing.undo",
        "Undo a change of the store: an import, decisions, a tie or a removal.",
        "undo --store ENV.db",
    ),
    _part("listing.history", "List who changed what, and when.", "history --store ENV.db"),
    _part(
        "mapping.undecided.waiting",
        "List the fields of all forms that need a decision, one line per distinct text.",
        "waiting --store ENV.db --target FILE",
    ),
    _part(
        "verbs.map_target",
        "Find the key variables of a target that forms or public sources hold.",
        "map --store ENV.db --target FILE --sector banking",
    ),
    _part(
        "verbs.find_join",
        "Find the finest coding to which two codings both lead.",
        "join --store ENV.db AG5.001 AG7.001",
    ),
    _part(
        "verbs.coding_ladder",
        "List where the categories of a coding fall in coarser ones.",
        "ladder --store ENV.db GE54.001 --out states.csv",
    ),
    _part(
        "verbs.find_key",
        "Find the key of a scenario, and recode the target's file to it.",
        "key --store ENV.db journalist --target FILE",
    ),
    _part(
        "mapping.public.enhance",
        "Find what public sources would add to what a form or class of forms holds.",
        "enhance --store ENV.db --target FILE --resources 6",
    ),
    _part(
        "prevalence.trend",
        "Count, for each year, the share of its forms or sources that ask each construct.",
        "trend --store ENV.db --sector banking",
        picture=True,
    ),
    _part(
        "prevalence.matrix",
        "Count constructs on which two classes of forms can be linked, or list forms by coding.",
        "matrix --store ENV.db --by sector",
    ),
)

_REGISTERED = (
    Verb(
        "keyhole.environment",
        "Find out what an intruder could know: forms, codings, public sources, keys.",
        "keyhole environment map --store ENV.db --target FILE --sector banking",
        method="environment",
        verbs=_ENVIRONMENT,
    ),
    Verb(
        "keyhole.screening.screen.screen",
        "Find identifiers, Safe Harbor items and dependent columns.",
        "keyhole screen people.csv --keys sex,age,state",
        stage="screen",
        engines=EVERYWHERE,
        method="screening",
    ),
    Verb(
        "keyhole.exposure.cells.risk",
        "Measure how exposed the records are on a key.",
        "keyhole risk people.csv --keys sex,age,state --weight wt --records exposed.csv",
        stage="exposure",
        engines=EVERYWHERE,
        method="exposure",
        records=("f",),
        more_records={"weight": ("F", "risk"), "fraction": ("F", "risk")},
    ),
    Verb(
        "keyhole.exposure.attributes.attributes",
        "Measure attribute disclosure: what the key reveals about sensitive columns.",
        "keyhole attributes people.csv --keys sex,age,state --sensitive income,illness",
        stage="attributes",
        engines=EVERYWHERE,
        method="attributes",
    ),
    Verb(
        "keyhole.exposure.uniques.uniques",
        "Find minimal uniques: the sets of keys that single records out (SUDA).",
        "keyhole uniques people.csv --keys sex,age,state,race --max-size 3",
        stage="uniques",
        engines=HERE,
        method="minimal-uniques",
        records=("score", "dis_suda", "smallest", "level"),
    ),
    Verb(
        "keyhole.exposure.drivers.drivers",
        "Find which categories put records into small cells.",
        "keyhole drivers people.csv --keys sex,age,state --plot forest.svg",
        stage="drivers",
        engines=EVERYWHERE,
        method="drivers",
    ),
    Verb(
        "keyhole.selection.select.select",
        "Choose the variables that can be released, step by step.",
        """keyhole select people.csv --keep sex --candidates 'age|age10,state' --limit 0.05
Several methods, limits or cutoffs are compared in one table:
  keyhole select people.csv --candidates sex,age,state --limit 0.05,0.1 --compare""",
        stage="selection",
        engines=EVERYWHERE,
        method="selection",
    ),
    Verb(
        "keyhole.selection.frontier.frontier",
        "Find all maximal sets of variables within a limit.",
        "keyhole frontier people.csv --keep sex --candidates age,state,race --limit 0.05",
        stage="frontier",
        engines=HERE,
        method="frontier",
    ),
    Verb(
        "keyhole.selection.solve.solve",
        "Find the best release within the limits.",
        "keyhole solve people.csv --keys sex,age,state --limit 0.05 --out release.csv",
        engines=HERE,
        method="solve",
        outputs=(
            Output(
                "out",
                "FILE",
                "Write the release, in the format given by its extension.",
                "save",
                "outgoing file",
                is_data=True,
            ),
            Output(
                "plan_out",
                "PLAN.toml",
                "Write the plan: the columns to derive and those to drop.",
                "save_plan",
                "plan",
            ),
        ),
    ),
    Verb(
        "keyhole.protection.tables.table",
        "Publish a table of counts or sums in which no cell is unsafe.",
        "keyhole table people.csv --rows state --cols sex --threshold 3 --out table.csv",
        stage="table",
        method="tables",
        outputs=(
            Output(
                "out",
                "FILE",
                "Write the table that may be published, one row per cell; .xlsx adds a formatted "
                "sheet, and .json is JSON-stat.",
                "save",
                "table",
                is_data=True,
                more_formats=(".json",),
            ),
            Output(
                "register",
                "FILE",
                "Write a register of the tables published so far, this one included, for --against "
                "of the next. Keep it internal.",
                "save_register",
                "register",
            ),
            Output(
                "internal",
                "FILE",
                "Write the audit, one row per cell with true values: keep it as safe as the data.",
                "save_internal",
                "audit",
                is_data=True,
            ),
        ),
        aside="internal_summary",
    ),
    Verb(
        "keyhole.protection.apply.protect",
        "Carry out a plan of protections and write the protected file.",
        "keyhole protect people.csv --plan plan.toml --out protected.csv --keys sex,age,state",
        stage="protection",
        method="protection",
        outputs=(
            Output(
                "out",
                "FILE",
                "Write the protected file, in the format given by its extension.",
                "save",
                "protected file",
                required=True,
                is_data=True,
            ),
            Output(
                "fitted",
                "OUT.toml",
                "Write the plan with the values found in the data, to repeat it on other data. "
                "Keep it internal.",
                "save_fitted",
                "fitted plan",
            ),
        ),
    ),
    Verb(
        "keyhole.synthesis.synthesise.synthesise",
        "Replace values that make records stand out with plausible ones.",
        "keyhole synthesise people.csv --keys sex,age,state --targets age,state "
        "--strata sex --seed 2718 --out protected",
        stage="synthesis",
        engines=("memory", "spark"),
        method="synthesis",
        outputs=(
            Output(
                "out",
                "DIR",
                "The folder to write release and internal to.",
                "save",
                "release and what is internal",
                required=True,
                problems="keyhole.synthesis.release.require_free",
            ),
        ),
    ),
    Verb(
        "keyhole.utility.tabulation.tabulate",
        "Tabulate a synthetic release, with standard errors.",
        "keyhole tabulate DIR/release --rows state --cols sex --weight weight --mean income",
        stage="tabulate",
        method="synthesis",
    ),
    Verb(
        "keyhole.reidentification.study.study",
        "Attack the file with an intruder's file and count correct matches.",
        "keyhole study --puf puf.csv --eif eif.csv --iuf iuf.csv --puf-id puf_id --eif-id eif_id "
        "--link sex,age,state --numeric age --metric taxicab",
        stage="study",
        engines=("memory", "spark"),
        method="study",
        outputs=(
            Output(
                "pairs",
                "OUT",
                "Write the suspected pairs with their ids to a .csv, .parquet and so on.",
                "save_pairs",
                "pairs",
                is_data=True,
                needs="keyhole.reidentification.study.pairs_problems",
            ),
        ),
    ),
    Verb(
        "keyhole.reviews.drafting.init",
        "Draft a review file from a data file.",
        "keyhole init people.csv",
        picture=False,
    ),
    Verb(
        "keyhole.reviews.runner.review",
        "Run a review file and write the dossier.",
        "keyhole review review.toml --out findings",
        picture=False,
        verdict="passed",
        failing=3,
    ),
    Verb(
        "keyhole.reviews.verifying.verify",
        "Recompute every figure of a dossier and name what differs.",
        "keyhole verify findings",
        picture=False,
        verdict="same",
    ),
    Verb(
        "keyhole.reviews.report.report",
        "Write a review's dossier and public note again.",
        "keyhole report findings",
        picture=False,
    ),
    Verb(
        "keyhole.reviews.demo.demo",
        "Run keyhole on a made-up file of veterans.",
        "keyhole demo --out demo",
        picture=False,
    ),
    Verb(
        "keyhole.workbench.server.serve",
        "Open the workbench in the browser, on this machine only.",
        "keyhole serve demo",
        picture=False,
        returns=False,
    ),
    Verb(
        "keyhole.published.certificate.selftest",
        "Rerun the published examples and print a certificate.",
        "keyhole selftest",
        picture=False,
        verdict="passed",
    ),
)

VERBS: dict[str, Verb] = {verb.name: verb for verb in _REGISTERED}
"""The verbs in the order of the work."""


def verb_named(name: str) -> Verb:
    """Return a verb by its name; one of a group by both names."""
    head, _, part = name.partition(" ")
    return {one.name: one for one in VERBS[head].verbs}[part] if part else VERBS[head]
