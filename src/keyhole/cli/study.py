"""``keyhole study``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.output import Outputs, tell_written
from keyhole.cli.progress import working
from keyhole.cli.scenario import AskedScenario, ScenarioName, StorePlace, TargetName
from keyhole.cli.study_files import Reading, StudyData, StudyFiles, name_releases
from keyhole.cli.study_spark import attack_on_spark

if TYPE_CHECKING:
    from keyhole.reidentification.result import Study

__all__ = ["EXAMPLE", "study"]

EXAMPLE = (
    "keyhole study --puf puf.csv --eif eif.csv --iuf iuf.csv --puf-id puf_id --eif-id eif_id "
    "--link sex,age,state --numeric age --metric taxicab"
)

MASTER = "--master is for --engine spark. Leave it out, or give that too."
METRICS = ("unicity", "taxicab", "euclidean", "adhoc")

Puf = Annotated[
    list[str],
    typer.Option(
        metavar="[NAME=]FILE",
        show_default=False,
        help="The file to be released (PUF). Given several times, the candidates are compared; "
        "the folder of a synthesis stands for its first implicate.",
    ),
]
IdsFrom = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="For a PUF without ids, like an implicate: the file it was made from, which has them "
        "in the same rows.",
    ),
]
Blank = Annotated[
    str | None,
    opt.columns(
        "Linking variables that the PUF may lack: taken as missing in every record. Of several "
        "candidates each may lack what another has."
    ),
]
Eif = Annotated[
    Path,
    typer.Option(metavar="FILE", show_default=False, help="The intruder's file (EIF)."),
]
Iuf = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="The internal file (IUF): the ids of both, a row for each pair that is one person. "
        "If it has linking variables too, these are the values before perturbation.",
    ),
]
PufId = Annotated[str, opt.columns("The columns that name a PUF record.", show_default=False)]
EifId = Annotated[str, opt.columns("The columns that name an EIF record.", show_default=False)]
Link = Annotated[
    str | None,
    opt.columns(
        "The linking variables, which both files have under the same names; or give --scenario."
    ),
]
Numeric = Annotated[str | None, opt.columns("Those of them that are numbers, not categories.")]
Metric = Annotated[
    str,
    typer.Option(
        metavar="M,…",
        help="How pairs are suspected: unicity, taxicab, euclidean or adhoc. Several, with commas, "
        "are compared.",
    ),
]
Alpha = Annotated[
    float, opt.number("alpha", "A", "What a missing value costs, for taxicab and euclidean.")
]
Threshold = Annotated[
    Literal["published", "derived"],
    typer.Option(help="The threshold as published, or as it follows from the euclidean metric."),
]
Cuts = Annotated[
    Literal["puf", "each"],
    typer.Option(help="Whose fifths numbers are cut into, for unicity and taxicab."),
]
Scores = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A TOML file that scores agreement from 0 to 5, for adhoc."),
]
Orders = Annotated[
    Literal["all", "highest"],
    typer.Option(help="Which sets of linking variables are tried, for unicity."),
]
RankCap = Annotated[
    int,
    opt.whole_number(
        "rank cap", "N", "Ranks are kept while they hold at most this many pairs of a PUF record."
    ),
]
Strata = Annotated[str | None, opt.columns("Variables within whose categories records are linked.")]
Permutations = Annotated[
    int,
    opt.whole_number(
        "permutations",
        "N",
        "How often ids are dealt out at random, to see what chance would confirm; 0 for never.",
    ),
]
Seed = Annotated[int, opt.whole_number("seed", "N", "The seed of the permutations.")]
PairsFile = Annotated[
    Path | None,
    typer.Option(
        metavar="OUT",
        help="Write the suspected pairs with their ids to a .csv, .parquet and so on.",
    ),
]


def study(
    puf: Puf,
    eif: Eif,
    iuf: Iuf,
    puf_id: PufId,
    eif_id: EifId,
    link: Link = None,
    scenario: ScenarioName = None,
    store: StorePlace = None,
    target: TargetName = None,
    numeric: Numeric = None,
    metric: Metric = "unicity",
    alpha: Alpha = 0.5,
    threshold: Threshold = "published",
    cuts: Cuts = "puf",
    scores: Scores = None,
    orders: Orders = "all",
    rank_cap: RankCap = 5,
    strata: Strata = None,
    permutations: Permutations = 200,
    seed: Seed = 1,
    ids_from: IdsFrom = None,
    blank: Blank = None,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.EngineOfTasks = "auto",
    master: opt.Master = None,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    pairs: PairsFile = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Attack the file with an intruder's, and see who is found.

    Suspected are the PUF records that the metric pairs with the EIF, confirmed those of them
    whose pair is true; the conditional rate, the one over the other, is what a release hangs on.
    """
    releases, problems = name_releases(puf, folders=engine == "spark")
    files = StudyFiles(releases, eif, iuf, ids_from)
    reading = Reading(
        engine, encoding, delimiter, sheet, lists.codes(missing_codes), lists.kinds(kinds)
    )
    ids = lists.names(puf_id, "--puf-id"), lists.names(eif_id, "--eif-id")
    metrics = lists.names(metric, "--metric")
    linking, within = lists.names(link, "--link"), lists.names(strata, "--strata")
    outputs = Outputs(json, plot, None, force)
    asked_scenario = AskedScenario.parse(scenario, store, target)
    with working("Study:") as report:
        several = len(releases) > 1 or len(metrics) > 1
        problems += _output_problems(outputs, pairs, files.paths, ids)
        problems += _metric_problems(metrics, scores, pairs if several else None)
        gone = lists.names(blank, "--blank")
        if asked_scenario is None and not linking:
            problems.append("--link must name the linking variables, or give --scenario.")
        asked: dict[str, Any] = {
            "puf_id": ids[0], "eif_id": ids[1], "link": linking, "strata": within,
            "numeric": lists.names(numeric, "--numeric"), "alpha": alpha, "threshold": threshold,
            "cuts": cuts, "scores": scores, "orders": orders, "rank_cap": rank_cap,
            "permutations": permutations, "seed": seed, "progress": report,
        }  # fmt: skip
        more: dict[str, Any] = {}
        if engine == "spark":
            not_there = {"comparing studies": several, "--scenario": scenario, "--blank": gone,
                         "--pairs": pairs, "--ids-from": ids_from, "--sheet": sheet}  # fmt: skip
            asked["metric"] = ", ".join(metrics)
            found: Any = attack_on_spark(
                files, reading, asked, problems, master=master, not_there=not_there
            )
        else:
            problems += [MASTER] if master is not None else []
            keyed, asked["blank"] = asked_scenario is not None, gone
            shared = (*linking, *within)
            data = files.read(
                reading, ids, shared, problems, whole=bool(gone) or keyed, all_of_eif=keyed
            )
            found, more = _attack_here(data, metrics, asked, asked_scenario)
    if pairs is not None:
        _write_pairs(found, pairs, force)
    outputs.give(found, more=more)


def _attack_here(
    data: StudyData, metrics: Sequence[str], asked: dict[str, Any], scenario: AskedScenario | None
) -> tuple[Any, dict[str, Any]]:
    """Attack in memory; return what was found, and with a scenario what it says of it."""
    from keyhole.reidentification.compare import compare_studies
    from keyhole.reidentification.study import study as attack

    asked |= {"eif": data.eif, "iuf": data.iuf, "ids_from": data.ids}
    key = None if scenario is None else scenario.key(next(iter(data.pufs.values())))
    if key is not None:
        asked["scenario"] = key
    if len(data.pufs) > 1 or len(metrics) > 1:
        # Of studies that are compared each would have its own identification.
        return compare_studies(data.pufs, metrics=metrics, **asked), {}
    (puf,) = data.pufs.values()
    found = attack(puf=puf, metric=metrics[0], **asked)  # type: ignore[arg-type]
    return found, {} if key is None else {"identification": key.identification(found)}


def _metric_problems(metrics: Sequence[str], scores: Path | None, pairs: Path | None) -> list[str]:
    from keyhole.core.names import nearest

    problems = []
    for name in metrics:
        if name not in METRICS:
            near = nearest(name, list(METRICS), most=1)
            remedy = f" Did you mean {near[0]}?" if near else ""
            problems.append(
                f"metric must be one of {', '.join(METRICS)}. Got {name!r} instead.{remedy}"
            )
    if not metrics:
        problems.append(f"metric must be one of {', '.join(METRICS)}. Got none instead.")
    if "adhoc" in metrics and scores is None:
        problems.append(
            "--scores must name a TOML file that says how each linking variable is scored, for "
            "--metric adhoc. Got none instead: write one, like 'sex = { exact = 5 }'."
        )
    if pairs is not None:
        problems.append("--pairs needs one --puf and one --metric. Leave it out, or the others.")
    return problems


def _output_problems(
    outputs: Outputs, pairs: Path | None, files: Sequence[Path], ids: tuple[tuple[str, ...], ...]
) -> list[str]:
    columns = [*ids[0], *ids[1], "score", "rank", "confirmed"]
    written = Outputs(records=pairs, force=outputs.force)
    problems = []
    for file in files:
        problems += outputs.problems(file)
        for text in written.problems(file, columns):
            problems.append(text.replace("--records", "--pairs", 1))
    return list(dict.fromkeys(problems))


def _write_pairs(found: Study, path: Path, force: bool) -> None:
    from keyhole.data import load

    load(found.pairs_frame()).save(path, force=force)
    tell_written("pairs", path)
