"""The suspected pairs by SQL: a cross join in DuckDB, and Splink's scored comparisons.

Both keep of each PUF record the six pairs that cost least, one more than the cap: the sixth
tells which rank is not kept, so neither ranks all pairs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import duckdb
import numpy as np
import polars as pl

from benchmarks.rivals import CORES
from benchmarks.study_answers import Found, keep_ranks
from benchmarks.study_files import CAP
from keyhole.kernels.grading import FARTHEST, LOGISTIC, RELATIVE_BAND, TABLE
from keyhole.reidentification.scores import Costs, Graded
from keyhole.reidentification.variables import LinkCodes

Priced = list[tuple[str, float]]
"""Conditions on the columns l and r of a variable, and what a pair costs where one is the first
to hold; the last always does."""
NEAR = 1 + 1e-9


def frame_of(costs: Costs, file: str) -> pl.DataFrame:
    """Return a file as columns c0, c1 …, counted variables first, missing values null."""
    columns = []
    for category in costs.counted:
        codes = pl.Series(getattr(category, file)).cast(pl.UInt16)
        columns.append(codes.set(codes == category.missing, None))
    columns += [pl.Series(getattr(graded, file)).fill_nan(None) for graded in costs.graded]
    frame = pl.DataFrame({f"c{k}": column for k, column in enumerate(columns)})
    return frame.with_row_index("unique_id")


def prices(costs: Costs) -> Iterator[Priced]:
    """Yield for each column its prices, missing values first."""
    counted = [_gone(costs.absent), ("{l} = {r}", 0.0), ("TRUE", costs.differ)]
    yield from [counted] * len(costs.counted)
    for graded in costs.graded:
        if graded.kind != LOGISTIC:
            yield [
                _gone(graded.absent),
                *(_tabled(graded) if graded.kind == TABLE else _banded(graded)),
            ]


def _gone(price: float) -> tuple[str, float]:
    return "{l} IS NULL OR {r} IS NULL", price


def _banded(graded: Graded) -> Priced:
    share = "abs({l}) * " if graded.kind == RELATIVE_BAND else ""
    bands = [
        (f"abs({{l}} - {{r}}) <= {share}{limit * NEAR!r}", price)
        for limit, price in zip(graded.limits, graded.prices, strict=False)
    ]
    return [*bands, ("TRUE", graded.prices[-1])]


def _tabled(graded: Graded) -> Priced:
    """List the entries at each price, but the commonest."""
    levels, counts = np.unique(graded.table, return_counts=True)
    common, width = levels[counts.argmax()], graded.table.shape[1]
    listed = [
        (f"{{l}} * {width} + {{r}} IN ({', '.join(map(str, places.tolist()))})", float(price))
        for price, places in ((p, np.flatnonzero(graded.table == p)) for p in levels)
        if price != common
    ]
    return [*listed, ("TRUE", float(common))]


def _best(table: str, puf: str, eif: str, cost: str, where: str) -> str:
    """Return a query for the pairs of each PUF record that cost least."""
    return (
        f"SELECT puf, unnest(arg_min({{'eif': eif, 'cost': cost}}, cost, {CAP + 1}), "
        f"recursive := true) FROM (SELECT {puf} AS puf, {eif} AS eif, {cost} AS cost FROM {table}) "
        f"WHERE {where} GROUP BY puf"
    )


def _answer(connection: duckdb.DuckDBPyConnection, query: str) -> Found:
    """Run the query and apply the rank rule: a record's sixth pair stands for its whole rank."""
    found = connection.execute(query).fetchnumpy()
    return keep_ranks(*(np.asarray(found[n]).astype(np.int64) for n in ("puf", "eif", "cost")))


class DuckDB:
    """A cross join on all cores, its cost as one expression."""

    name: ClassVar[str] = "DuckDB"
    kind: ClassVar[str] = "sql"

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._connection = duckdb.connect(config={"threads": CORES})
        self._connection.execute("SET enable_progress_bar = false")
        for file in ("puf", "eif"):
            self._connection.register("given", frame_of(costs, file).to_arrow())
            self._connection.execute(f"CREATE TABLE {file} AS SELECT * FROM given")
            self._connection.unregister("given")

    def find(self, queries: int) -> Found:
        """Find the suspected pairs of the first so many PUF records."""
        costs = self._costs
        total = " + ".join([repr(costs.base), *self._terms()])
        cost = f"round({'sqrt' if costs.root else ''}({total}) * {costs.scale!r})"
        pairs = f"puf, eif WHERE puf.unique_id < {queries}"
        query = _best(pairs, "puf.unique_id", "eif.unique_id", cost, f"cost < {costs.bound}")
        return _answer(self._connection, query)

    def _terms(self) -> Iterator[str]:
        stepped = prices(self._costs)
        variables: list[LinkCodes | Graded] = [*self._costs.counted, *self._costs.graded]
        for k, variable in enumerate(variables):
            left, right = f"puf.c{k}", f"eif.c{k}"
            if isinstance(variable, LinkCodes) or variable.kind != LOGISTIC:
                cases = [
                    f"WHEN {condition.format(l=left, r=right)} THEN {price!r}"
                    for condition, price in next(stepped)
                ]
                yield f"CASE {' '.join(cases)} END"
            else:
                condition, price = _gone(variable.absent)
                square = f"pow(tanh(least(abs({left} - {right}), {FARTHEST!r}) / 2), 2)"
                gone = condition.format(l=left, r=right)
                yield f"CASE WHEN {gone} THEN {price!r} ELSE {square} END"


class Splink:
    """Splink on DuckDB: a comparison a variable, its levels weighing what they lack in cost.

    A match weight is the sum over variables of log2(m / u). With m / u = 2 to the power of
    (highest price - price) a threshold on the weight is one on the cost. Not for euclidean,
    whose distances have no levels. All pairs are compared: a rule that blocks would lose some.
    """

    name: ClassVar[str] = "Splink"
    kind: ClassVar[str] = "splink"

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._files = [frame_of(costs, file).to_arrow() for file in ("puf", "eif")]

    def find(self, queries: int) -> Found:
        """Find the suspected pairs of the first so many PUF records."""
        from splink import DuckDBAPI, Linker

        connection = duckdb.connect(config={"threads": CORES})
        connection.execute("SET enable_progress_bar = false")
        api, (puf, eif) = DuckDBAPI(connection=connection), self._files
        tables = [
            api.register(puf.slice(0, queries), dataset_display_name="a_puf"),
            api.register(eif, dataset_display_name="b_eif"),
        ]
        costs, most = self._costs, self._highest()
        least = most - (costs.bound - 0.5) / costs.scale
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            linker = Linker(tables, self._settings(), log_level="ERROR")
            found = linker.inference.predict(threshold_match_weight=least, warning_mode="never")
        cost = f"round(({most!r} - match_weight) * {costs.scale!r})"
        names = ("unique_id_l", "unique_id_r")
        return _answer(connection, _best(found.physical_name, *names, cost, "TRUE"))

    def _highest(self) -> float:
        """What a pair would cost at a match weight of 0."""
        return self._costs.base + sum(max(p for _, p in cases) for cases in prices(self._costs))

    def _settings(self) -> dict[str, Any]:
        return {
            "link_type": "link_only",
            "probability_two_random_records_match": 0.5,
            "blocking_rules_to_generate_predictions": ["1=1"],
            "retain_matching_columns": False,
            "comparisons": [
                {"output_column_name": f"c{k}", "comparison_levels": _levels(f"c{k}", cases)}
                for k, cases in enumerate(prices(self._costs))
            ],
        }


def _levels(column: str, cases: Priced) -> list[dict[str, Any]]:
    """Return Splink's levels; the probabilities are small enough for any price."""
    highest, rare = max(price for _, price in cases), 2.0**-8
    return [
        {
            "sql_condition": "ELSE"
            if condition == "TRUE"
            else condition.format(l=f"{column}_l", r=f"{column}_r"),
            "label_for_charts": str(number),
            "m_probability": rare * 2.0 ** (highest - price),
            "u_probability": rare,
        }
        for number, (condition, price) in enumerate(cases)
    ]
