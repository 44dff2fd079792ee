"""``keyhole study``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from keyhole.cli import lists
from keyhole.cli.options import (
    Delimiter,
    Encoding,
    Engine,
    Force,
    Json,
    MissingCodes,
    Plot,
    Sheet,
)
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.source import Source
from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.data import Microdata
    from keyhole.reidentification.result import Study

__all__ = ["EXAMPLE", "study"]

EXAMPLE = (
    "keyhole study --puf puf.csv --eif eif.csv --iuf iuf.csv --puf-id puf_id --eif-id eif_id "
    "--link sex,age,state --numeric age --metric taxicab"
)

Puf = Annotated[
    Path,
    typer.Option(metavar="FILE", show_default=False, help="The file to be released (PUF)."),
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
PufId = Annotated[
    str,
    typer.Option(metavar="A,B,…", show_default=False, help="The columns that name a PUF record."),
]
EifId = Annotated[
    str,
    typer.Option(metavar="A,B,…", show_default=False, help="The columns that name an EIF record."),
]
Link = Annotated[
    str,
    typer.Option(
        metavar="A,B,…",
        show_default=False,
        help="The linking variables, which both files have under the same names.",
    ),
]
Numeric = Annotated[
    str | None,
    typer.Option(metavar="A,B,…", help="Those of them that are numbers, not categories."),
]
Metric = Annotated[
    Literal["unicity", "taxicab", "euclidean", "adhoc"],
    typer.Option(help="How pairs are suspected."),
]
Alpha = Annotated[
    float,
    typer.Option(
        metavar="A",
        parser=partial(lists.number, option="alpha", kind=float),
        help="What a missing value costs, for taxicab and euclidean.",
    ),
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
    typer.Option(
        metavar="N",
        parser=partial(lists.number, option="rank cap", kind=int),
        help="Ranks are kept while they hold at most this many pairs of a PUF record.",
    ),
]
Strata = Annotated[
    str | None,
    typer.Option(metavar="A,B,…", help="Variables within whose categories records are linked."),
]
Permutations = Annotated[
    int,
    typer.Option(
        metavar="N",
        parser=partial(lists.number, option="permutations", kind=int),
        help="How often ids are dealt out at random, to see what chance would confirm; 0 for "
        "never.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        parser=partial(lists.number, option="seed", kind=int),
        help="The seed of the permutations.",
    ),
]
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
    link: Link,
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
    missing_codes: MissingCodes = None,
    engine: Engine = "memory",
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    pairs: PairsFile = None,
    plot: Plot = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Attack the file with an intruder's, and see who is found.

    Suspected are the PUF records that the metric pairs with the EIF, confirmed those of them
    whose pair is true; the conditional rate, the one over the other, is what a release hangs on.
    """
    files = _Files(
        tuple(Source(file, None, engine, encoding, delimiter, sheet) for file in (puf, eif, iuf)),
        lists.codes(missing_codes),
    )
    ids = lists.names(puf_id, "--puf-id"), lists.names(eif_id, "--eif-id")
    linking = lists.names(link, "--link")
    within = lists.names(strata, "--strata")
    outputs = Outputs(json, plot, None, force)
    with working("Studying") as report:
        from keyhole.reidentification.study import study as attack

        problems = _output_problems(outputs, pairs, (puf, eif, iuf), ids)
        problems += _score_problems(metric, scores)
        data = files.read(ids, (*linking, *within), problems)
        found = attack(
            puf=data[0], eif=data[1], iuf=data[2], puf_id=ids[0], eif_id=ids[1], link=linking,
            numeric=lists.names(numeric, "--numeric"), metric=metric, alpha=alpha,
            threshold=threshold, cuts=cuts, scores=scores, orders=orders, rank_cap=rank_cap,
            strata=within, permutations=permutations, seed=seed, progress=report,
        )  # fmt: skip
    if pairs is not None:
        _write_pairs(found, pairs, force)
    outputs.give(found)


@dataclass(frozen=True, slots=True)
class _Files:
    """The three files, which may use the same missing codes."""

    sources: tuple[Source, ...]
    codes: Mapping[str, Sequence[str]]

    def read(
        self, ids: tuple[tuple[str, ...], ...], shared: Iterable[str], problems: Sequence[str]
    ) -> list[Microdata]:
        """Read the columns that are needed of each; all that is wrong is told at once."""
        both = tuple(shared)
        wanted: tuple[tuple[str, ...], ...] = ((*ids[0], *both), (*ids[1], *both), ())
        found, data = list(problems), []
        kind: type[InputError] = OptionError
        for source, columns in zip(self.sources, wanted, strict=True):
            try:
                data.append(source.read(columns))
            except InputError as error:
                kind = type(error)
                found += error.problems
        if not found:
            found = self._unknown_codes(data)
        if found:
            raise kind(dict.fromkeys(found))
        return [self._coded(one) for one in data]

    def _unknown_codes(self, data: Sequence[Microdata]) -> list[str]:
        known = {name for one in data for name in one.names} | {"*"}
        return [
            f"--missing-codes names {name!r}, which is a column of none of the files."
            for name in self.codes
            if name not in known
        ]

    def _coded(self, data: Microdata) -> Microdata:
        from keyhole.data import load

        mine = {name: codes for name, codes in self.codes.items() if name in {*data.names, "*"}}
        return load(data, missing_codes=mine) if mine else data


def _score_problems(metric: str, scores: Path | None) -> list[str]:
    if metric != "adhoc" or scores is not None:
        return []
    return [
        "--scores must name a TOML file that says how each linking variable is scored, for "
        "--metric adhoc. Got none instead: write one, like 'sex = { exact = 5 }'."
    ]


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
