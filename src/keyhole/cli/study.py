"""``keyhole study``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from keyhole.cli import lists
from keyhole.cli import options as opt
from keyhole.cli.output import Outputs, tell_written
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
PufId = Annotated[str, opt.columns("The columns that name a PUF record.", show_default=False)]
EifId = Annotated[str, opt.columns("The columns that name an EIF record.", show_default=False)]
Link = Annotated[
    str,
    opt.columns(
        "The linking variables, which both files have under the same names.", show_default=False
    ),
]
Numeric = Annotated[str | None, opt.columns("Those of them that are numbers, not categories.")]
Metric = Annotated[
    Literal["unicity", "taxicab", "euclidean", "adhoc"],
    typer.Option(help="How pairs are suspected."),
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
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.Engine = "memory",
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
    files = _Files(
        tuple(
            Source(file, None, None, engine, encoding, delimiter, sheet) for file in (puf, eif, iuf)
        ),
        lists.codes(missing_codes),
        lists.kinds(kinds),
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
    """The three files, of which the same may be declared."""

    sources: tuple[Source, ...]
    codes: Mapping[str, Sequence[str]]
    kinds: Mapping[str, str]

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
            found = self._unknown_names(data)
        if found:
            raise kind(dict.fromkeys(found))
        return [self._declared(one) for one in data]

    def _unknown_names(self, data: Sequence[Microdata]) -> list[str]:
        known = {name for one in data for name in one.names} | {"*"}
        named = [("--missing-codes", name) for name in self.codes]
        named += [("--kinds", name) for name in self.kinds]
        return [
            f"{option} names {name!r}, which is a column of none of the files."
            for option, name in named
            if name not in known
        ]

    def _declared(self, data: Microdata) -> Microdata:
        from keyhole.data import load

        codes = {name: codes for name, codes in self.codes.items() if name in {*data.names, "*"}}
        kinds = {name: kind for name, kind in self.kinds.items() if name in data.names}
        return load(data, missing_codes=codes, kinds=kinds) if codes or kinds else data


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
    tell_written("pairs", path)
