"""``keyhole synthesise``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.output import Outputs, tell_written
from keyhole.cli.progress import working
from keyhole.cli.source import Source, be_quiet

__all__ = ["EXAMPLE", "synthesise"]

EXAMPLE = (
    "keyhole synthesise people.csv --keys sex,age,state --targets age,state "
    "--strata sex --seed 2718 --out protected"
)

Targets = Annotated[
    str,
    opt.columns("The columns whose values are replaced in exposed records.", show_default=False),
]
Drop = Annotated[
    str | None,
    opt.columns("Columns that stay at home, such as record numbers: in no model and no release."),
]
Allow = Annotated[
    str | None,
    opt.columns("Columns that go out although nearly every record has its own value in them."),
]
Strata = Annotated[
    str | None,
    opt.columns("Columns whose combinations are subgroups: donors are of the record's own."),
]
RulesFile = Annotated[
    Path | None,
    typer.Option("--rules", metavar="RULES.toml", help="Rules that no replaced record may break."),
]
Count = Annotated[int, opt.whole_number("implicates", "M", "How many implicates to draw.")]
Targeted = Annotated[
    bool,
    typer.Option("--targeted", help="In each record replace only what breaks its minimal uniques."),
]
Evenly = Annotated[
    bool,
    typer.Option(
        "--evenly", help="Replace all targets at every risk level; else low risk keeps one."
    ),
]
Decoys = Annotated[
    float,
    opt.number("decoys", "R", "So many common records for each one at risk are replaced too."),
]
Seed = Annotated[
    int,
    opt.whole_number(
        "seed", "N", "A secret whole number: keep it to yourself.", show_default=False
    ),
]
Cutoff = Annotated[
    int, opt.whole_number("cutoff", "C", "Records that share their key with fewer are at risk.")
]
Weight = Annotated[str | None, typer.Option(metavar="W", help="The column of sampling weights.")]
Least = Annotated[
    float | None,
    opt.number(
        "least probability",
        "P",
        "Only uniques that are unique in the population with at least this probability.",
    ),
]
Donors = Annotated[
    Literal["folds", "common"],
    typer.Option(help="Who gives values: all that are not blanked, by folds; or common records."),
]
Match = Annotated[
    Literal["closest", "k-closest", "weighted"],
    typer.Option(help="Which of the donors with close predictions."),
]
Change = Annotated[
    int,
    opt.whole_number(
        "change", "L", "From this risk level (1-3) on no equal value is given; 4: never mind."
    ),
]
Models = Annotated[
    str | None,
    typer.Option(
        metavar="A=MODEL,…", help="Models of single targets: canonical, linear or quantile."
    ),
]
Folds = Annotated[
    int, opt.whole_number("folds", "K", "How many folds the records to be replaced are dealt into.")
]
Neighbours = Annotated[
    int, opt.whole_number("neighbours", "K", "How many donors are close, with --match k-closest.")
]
Cycles = Annotated[
    int, opt.whole_number("cycles", "C", "Further rounds in which each target is drawn again.")
]
Predictors = Annotated[
    str | None,
    typer.Option(metavar="A:B|C,…", help="What predicts single targets, instead of the default."),
]
KeepOrder = Annotated[
    bool, typer.Option("--keep-order", help="Fill the targets in the order they are named.")
]
Relations = Annotated[
    float,
    opt.number("relations", "V", "How much a Cramér's V of target and other column may change."),
]
Crosses = Annotated[
    str | None,
    typer.Option(metavar="A|B,…", help="Cross-tabulations to test for homogeneity as well."),
]
Formula = Annotated[
    str | None,
    typer.Option(metavar="Y ~ A + B", help="A regression to compare before and after."),
]
SelfMatch = Annotated[
    int, opt.whole_number("self match", "N", "How many records to link to themselves; 0: none.")
]


def synthesise(
    file: opt.File,
    keys: opt.Keys,
    targets: Targets,
    seed: Seed,
    out: opt.Folder,
    strata: Strata = None,
    drop: Drop = None,
    allow: Allow = None,
    rules: RulesFile = None,
    implicates: Count = 5,
    targeted: Targeted = False,
    evenly: Evenly = False,
    decoys: Decoys = 0.0,
    cutoff: Cutoff = 2,
    weight: Weight = None,
    fraction: opt.Fraction = None,
    least_probability: Least = None,
    donors: Donors = "folds",
    folds: Folds = 5,
    match: Match = "closest",
    neighbours: Neighbours = 5,
    change: Change = 4,
    cycles: Cycles = 0,
    models: Models = None,
    predictors: Predictors = None,
    keep_order: KeepOrder = False,
    relations: Relations = 0.05,
    crosses: Crosses = None,
    formula: Formula = None,
    self_match: SelfMatch = 2_000,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.EngineOfTasks = "auto",
    master: opt.Master = None,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Replace what makes records stand out by values of others like them.

    DIR/release holds the implicates and a note for their analysts; DIR/internal holds the seed,
    who was at risk and what was measured, and stays with you.
    """
    # On Spark implicates are drawn; the file itself is read here.
    reading = "memory" if engine == "spark" else engine
    if engine == "spark":
        be_quiet()
    source = Source(file, missing_codes, kinds, reading, encoding, delimiter, sheet)
    outputs = Outputs(json, plot, None, force)
    with working("Synthesising") as report:
        from keyhole.synthesis.release import require_free
        from keyhole.synthesis.synthesise import synthesise as make

        problems = [*outputs.problems(file), *require_free(out, force)]
        if master is not None and engine != "spark":
            problems.append("--master is for --engine spark. Leave it out, or give that too.")
        options: dict[str, Any] = {
            "donors": donors,
            "folds": folds,
            "match": match,
            "neighbours": neighbours,
            "change": change,
            "cycles": cycles,
            "models": lists.models(models),
        }
        data = source.read((), problems)
        made = make(
            data,
            keys=lists.names(keys, "--keys"),
            targets=lists.names(targets, "--targets"),
            strata=lists.names(strata, "--strata"),
            drop=lists.names(drop, "--drop"),
            allow=lists.names(allow, "--allow"),
            rules=rules,
            implicates=implicates,
            targeted=targeted,
            graded=not evenly,
            decoys=decoys,
            seed=seed,
            cutoff=cutoff,
            weight=weight,
            fraction=fraction,
            least_probability=least_probability,
            predictors=lists.predictors(predictors),
            keep_order=keep_order,
            relations=relations,
            crosses=lists.candidates(crosses, "--crosses"),
            formula=formula,
            self_match=self_match,
            engine="spark" if engine == "spark" else "memory",
            master=master,
            progress=lambda share: report(share, 1.0),
            **options,
        )
        made.save(out, force=force)
    tell_written("release and what is internal", out)
    outputs.give(made)
