"""Every engine gives the answers of the memory engine, to the last count.

Another engine joins by its name in `ENGINES` and the options it needs in `where`. What Spark
leaves to the others is in `test_engines_spark.py`; there a question takes a fraction of a second,
so that fewer are asked.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keyhole
from keyhole.data.examples import KEYS, veterans_sample
from keyhole.engines.choose import engine_of, open_records
from keyhole.errors import OptionError

ENGINES = ["disk", "spark"]
FORMATS = {"disk": [".csv", ".tsv", ".parquet", ".arrow"], "spark": [".csv", ".parquet"]}
AWKWARD = ['say "hi"', "a,b", "two\nlines", " lead", "null", "NaN", "é😀", "O'Neil", "%s;--", "\\"]


def where(engine: str, folder: Path) -> dict[str, Any]:
    """Return the options that choose an engine."""
    if engine == "spark":
        return {"engine": engine}
    return {"engine": engine, "memory": "500MB", "work_folder": folder}


@pytest.fixture(params=ENGINES)
def there(request, tmp_path):
    """The options that choose an engine to be compared with memory."""
    return _there(request.param, request, tmp_path)


def _there(engine: str, request, tmp_path: Path) -> dict[str, Any]:
    if engine == "spark":
        request.getfixturevalue("spark")  # a session that runs is used
    folder = tmp_path / "work"
    folder.mkdir()
    return where(engine, folder)


@pytest.fixture
def on_disk(tmp_path):
    """The options for what every engine but Spark can do."""
    return where("disk", tmp_path)


def awkward_table(records: int = 400, *, typed: bool) -> pl.DataFrame:
    """Make columns with hostile names and every kind of value, some missing in each."""
    random = np.random.default_rng(11)

    def drawn(values: list[Any]) -> list[Any]:
        weights = random.dirichlet(np.ones(len(values)))
        return [values[i] for i in random.choice(len(values), records, p=weights)]

    first = datetime.date(1900, 2, 28)
    columns: dict[str, Any] = {
        'a"b': drawn([*AWKWARD, None]),
        "select": drawn([1, 2, 3, -9, None]),
        "a;drop table x": drawn([0.5, 1.25, -3.75, None]),
        "ünï cödé": drawn([first + datetime.timedelta(days=d) for d in range(9)] + [None]),
        " ": drawn([True, False, None]),
        "big": drawn([2**53, 2**53 + 1, 2**62, -(2**60), None]),
        "zip": drawn(["02134", "10001", "00501", None]),
        "G": drawn(["x", "y", "z"]),
    }
    frame = pl.DataFrame(columns)
    if not typed:
        return frame
    money = pl.Series("money", drawn([Decimal("1.10"), Decimal("-7.00"), None]), pl.Decimal(10, 2))
    return frame.with_columns(
        pl.Series("zero", drawn([0.0, -0.0, float("nan"), 1e300, None])),
        money,
        pl.Series("sized", drawn(["s", "m", "l", None]), pl.Enum(["s", "m", "l"])),
        pl.Series("named", drawn(["p", "q", None])).cast(pl.Categorical),
        pl.Series("when", drawn([datetime.datetime(2020, 1, d, 3) for d in (1, 2)] + [None])),
        pl.Series("unsigned", drawn([2**64 - 1, 0, None]), pl.UInt64),
    )


@pytest.fixture(
    params=[(engine, form) for engine in ENGINES for form in FORMATS[engine]], ids="".join
)
def awkward(request, tmp_path):
    """A file of awkward columns, in each format an engine reads in pieces, and its options."""
    engine, form = request.param
    path = tmp_path / f"awkward{form}"
    typed = form in (".parquet", ".arrow")
    keyhole.load(awkward_table(typed=typed)).save(path)
    return path, _there(engine, request, tmp_path)


def told(result: Any) -> dict[str, Any]:
    """Return what a result says, but for where it was counted, and what only memory finds."""
    said = _without_engine(result.to_dict())
    return {name: value for name, value in said.items() if name != "structure"}


def _without_engine(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_engine(v) for k, v in value.items() if k != "engine"}
    return [_without_engine(v) for v in value] if isinstance(value, list) else value


def names_of(path: Path) -> list[str]:
    return list(keyhole.load(path).names)


@pytest.mark.parametrize("missing", ["own", "wildcard", "drop"])
def test_risk_on_awkward_columns(awkward, missing):
    path, there = awkward
    names, spark = names_of(path), there["engine"] == "spark"
    held = open_records(path, **there)
    if spark and missing == "wildcard":
        with pytest.raises(OptionError, match="engine must be memory or disk"):
            keyhole.risk(held, keys=names, missing=missing)
        return
    for keys in (names[:3], names, names[-1:]):
        by = None if spark and keys != names[:3] else "G"
        here = keyhole.risk(path, keys=keys, missing=missing, by=by)
        other = keyhole.risk(held, keys=keys, missing=missing, by=by)
        assert told(other) == told(here)
        assert spark or other.f.tolist() == here.f.tolist()
        assert other.engine == there["engine"]
        assert {g.exposure.engine for g in other.groups} <= {there["engine"]}


def test_levels_of_awkward_columns(awkward):
    path, there = awkward
    here, other = keyhole.load(path), open_records(path, **there)
    other.require(here.names)
    for name in here.names:
        assert other.variable(name) == here.variable(name)
        assert other.codes(name).levels.equals(here.codes(name).levels)
        assert other.codes(name).has_missing == here.codes(name).has_missing


@pytest.mark.parametrize("method", ["forward", "backward", "stepwise"])
def test_selection_on_awkward_columns(awkward, method):
    path, there = awkward
    names, spark = names_of(path)[:7], there["engine"] == "spark"
    each = [(name,) for name in names[1:]]  # as one of its kind: a blank may be a name
    asked = {"keep": names[:1], "candidates": each, "method": method}
    asked["by"] = "G" if method == "forward" or not spark else None
    held = open_records(path, **there)
    for limit in (0.6,) if spark else (0.1, 0.6):
        here = keyhole.select(path, limit=limit, **asked)
        other = keyhole.select(held, limit=limit, **asked)
        assert told(other) == told(here)
        assert other.engine == there["engine"]


@pytest.fixture(scope="module")
def veterans(tmp_path_factory):
    path = tmp_path_factory.mktemp("veterans") / "veterans.csv"
    veterans_sample(3_000).save(path)
    return path


def test_alternatives_and_dependent_candidates(veterans, there):
    asked = {"candidates": ["age|ag8r", *KEYS[2:9]], "limit": 0.3, "skip_dependent": True}
    held = open_records(veterans, **there)
    for method in ("forward",) if there["engine"] == "spark" else ("forward", "backward"):
        here = keyhole.select(veterans, method=method, **asked)
        assert told(keyhole.select(held, method=method, **asked)) == told(here)


def test_comparison(veterans, there):
    asked = {"candidates": KEYS[:6], "limit": (0.05, 0.2), "cutoff": (2, 5), "compare": True}
    if there["engine"] == "spark":
        asked = {"candidates": KEYS[:3], "limit": 0.05, "cutoff": (2, 5)}
        asked["method"] = ("forward", "backward")
    assert told(keyhole.select(veterans, **asked, **there)) == told(
        keyhole.select(veterans, **asked)
    )


def test_frontier(veterans, on_disk):
    asked = {"keep": KEYS[:1], "candidates": KEYS[1:8], "limit": 0.1}
    here, other = (keyhole.frontier(veterans, **asked, **more) for more in ({}, on_disk))
    assert told(other) == told(here) | {"evaluated": other.evaluated}
    assert other.engine == on_disk["engine"]


def test_minimal_uniques(veterans, on_disk):
    asked = {"keys": KEYS[:8], "max_size": 3}
    here, other = (keyhole.uniques(veterans, **asked, **more) for more in ({}, on_disk))
    assert told(other) == told(here)
    assert other.to_frame().equals(here.to_frame())


def test_drivers(veterans, there):
    for variables in (None, ["age", "ms"]):
        asked = {"keys": KEYS[:5], "variables": variables}
        here, other = (keyhole.drivers(veterans, **asked, **more) for more in ({}, there))
        assert told(other) == told(here)
        assert other.engine == there["engine"]


def test_attributes(veterans, there):
    asked = {"keys": KEYS[:3], "sensitive": ["means", "age"]}
    here, other = (keyhole.attributes(veterans, **asked, **more) for more in ({}, there))
    assert other.engine == there["engine"]
    numbers = [other.sensitive["age"].numbers, here.sensitive["age"].numbers]
    if there["engine"] == "spark":
        assert numbers[0] is None
        assert "not measured on Spark" in other.notes[-1]
    else:
        assert numbers[0] == numbers[1]
    for name, one in here.sensitive.items():
        mine, its = (
            {k: v for k, v in x.to_dict().items() if k != "numbers"}
            for x in (one, other.sensitive[name])
        )
        assert its.pop("l") == pytest.approx(mine.pop("l"))  # sums in another order
        for figure in ("t_closeness", "beta", "cap", "base_rate"):
            assert its.pop(figure) == pytest.approx(mine.pop(figure))
        assert its == mine
    assert (other.cells, other.rp, other.grid) == (here.cells, here.rp, here.grid)


def test_the_cheapest_fix(veterans, on_disk):
    asked = {"keys": ["age", "sex", "homstate"], "limit": 0.1}
    assert told(keyhole.cheapest_fix(veterans, **asked, **on_disk)) == told(
        keyhole.cheapest_fix(veterans, **asked)
    )


def test_screening(veterans, on_disk):
    assert told(keyhole.screen(veterans, **on_disk)) == told(keyhole.screen(veterans))


@pytest.mark.parametrize("population", [{"weight": "weight"}, {"fraction": 0.1}])
def test_risk_in_the_population(veterans, on_disk, population):
    asked = {"keys": KEYS[:4], "household": "household", **population}
    here, other = (keyhole.risk(veterans, **asked, **more) for more in ({}, on_disk))
    assert told(other) == told(here)
    assert other.to_frame().equals(here.to_frame())


def test_keys_wider_than_a_word(there):
    random = np.random.default_rng(3)
    records = 500 if there["engine"] == "spark" else 5_000
    wide = {f"v{i}": random.integers(0, 3_000, records) // 7 for i in range(9)}
    frame = pl.DataFrame({**wide, "few": random.integers(0, 3, records)})
    asked = {"candidates": frame.columns, "limit": 1.0}
    held = open_records(frame, **there)
    assert told(keyhole.select(held, **asked)) == told(keyhole.select(frame, **asked))
    back = {**asked, "limit": 0.9 if there["engine"] == "spark" else 0.0, "method": "backward"}
    assert told(keyhole.select(held, **back)) == told(keyhole.select(frame, **back))
    here, other = (keyhole.risk(data, keys=frame.columns) for data in (frame, held))
    assert told(other) == told(here)
    assert there["engine"] == "spark" or other.f.tolist() == here.f.tolist()


TABLES = st.lists(
    st.tuples(*[st.one_of(st.none(), st.integers(0, 2))] * 4), min_size=1, max_size=40
)


@settings(max_examples=25)
@given(rows=TABLES, cutoff=st.integers(1, 4))
def test_tallies_of_any_table_on_disk(tmp_path_factory, rows, cutoff):
    compare_tallies(rows, cutoff, where("disk", tmp_path_factory.getbasetemp()))


@settings(max_examples=3)
@given(rows=TABLES, cutoff=st.integers(1, 4))
def test_tallies_of_any_table_on_spark(spark, rows, cutoff):
    compare_tallies(rows, cutoff, {"engine": spark})


def compare_tallies(rows: list[Any], cutoff: int, there: dict[str, Any]) -> None:
    frame = pl.DataFrame(rows, schema=dict.fromkeys("abcd", pl.Int64), orient="row")
    here = engine_of(open_records(frame), "abcd")
    held = open_records(frame, **there)
    held.require(list("abcd"))
    other = engine_of(held, list("abcd"))
    for size in range(4):
        keys, rest = list("abcd")[:size], list("abcd")[size:]
        assert other.tally(keys, cutoff=cutoff) == here.tally(keys, cutoff=cutoff)
        added = other.tally_added(keys, rest, cutoff=cutoff)
        assert added == here.tally_added(keys, rest, cutoff=cutoff)
        removed = other.tally_removed(rest, rest, cutoff=cutoff)
        assert removed == here.tally_removed(rest, rest, cutoff=cutoff)
    for missing in ("own", "drop") if other.name == "spark" else ("own", "wildcard", "drop"):
        measured = other.measure(list("abcd"), missing=missing)
        assert measured.spectrum == here.measure(list("abcd"), missing=missing).spectrum
