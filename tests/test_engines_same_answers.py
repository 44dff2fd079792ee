"""Every engine gives the answers of the memory engine, to the last count.

Another engine joins by its name in `ENGINES` and the options it needs in `where`.
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

ENGINES = ["disk"]
AWKWARD = ['say "hi"', "a,b", "two\nlines", " lead", "null", "NaN", "é😀", "O'Neil", "%s;--", "\\"]


def where(engine: str, folder: Path) -> dict[str, Any]:
    """Return the options that choose an engine."""
    return {"engine": engine, "memory": "500MB", "work_folder": folder}


@pytest.fixture(params=ENGINES)
def there(request, tmp_path):
    """The options that choose an engine to be compared with memory."""
    folder = tmp_path / "work"
    folder.mkdir()
    return where(request.param, folder)


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


@pytest.fixture(params=[".csv", ".tsv", ".parquet", ".arrow"])
def awkward(request, tmp_path):
    """A file of awkward columns, in each format that is read in pieces."""
    path = tmp_path / f"awkward{request.param}"
    typed = request.param in (".parquet", ".arrow")
    keyhole.load(awkward_table(typed=typed)).save(path)
    return path


def told(result: Any) -> dict[str, Any]:
    """Return what a result says, but for where it was counted."""
    return _without_engine(result.to_dict())


def _without_engine(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_engine(v) for k, v in value.items() if k != "engine"}
    return [_without_engine(v) for v in value] if isinstance(value, list) else value


def names_of(path: Path) -> list[str]:
    return list(keyhole.load(path).names)


@pytest.mark.parametrize("missing", ["own", "wildcard", "drop"])
def test_risk_on_awkward_columns(awkward, there, missing):
    names = names_of(awkward)
    for keys in (names, names[:3], names[-1:]):
        here = keyhole.risk(awkward, keys=keys, missing=missing, by="G")
        other = keyhole.risk(awkward, keys=keys, missing=missing, by="G", **there)
        assert told(other) == told(here)
        assert other.f.tolist() == here.f.tolist()
        assert other.engine == there["engine"]
        assert {g.exposure.engine for g in other.groups} == {there["engine"]}


@pytest.mark.parametrize("method", ["forward", "backward", "stepwise"])
def test_selection_on_awkward_columns(awkward, there, method):
    names = names_of(awkward)[:7]
    each = [(name,) for name in names[1:]]  # as one of its kind: a blank may be a name
    asked = {"keep": names[:1], "candidates": each, "method": method, "by": "G"}
    for limit in (0.1, 0.6):
        here = keyhole.select(awkward, limit=limit, **asked)
        other = keyhole.select(awkward, limit=limit, **asked, **there)
        assert told(other) == told(here)
        assert other.engine == there["engine"]


@pytest.fixture(scope="module")
def veterans(tmp_path_factory):
    path = tmp_path_factory.mktemp("veterans") / "veterans.csv"
    veterans_sample(3_000).save(path)
    return path


def test_alternatives_and_dependent_candidates(veterans, there):
    asked = {"candidates": ["age|ag8r", *KEYS[2:9]], "limit": 0.3, "skip_dependent": True}
    for method in ("forward", "backward"):
        here = keyhole.select(veterans, method=method, **asked)
        assert told(keyhole.select(veterans, method=method, **asked, **there)) == told(here)


def test_comparison(veterans, there):
    asked = {"candidates": KEYS[:6], "limits": (0.05, 0.2), "cutoffs": (2, 5)}
    assert told(keyhole.compare(veterans, **asked, **there)) == told(
        keyhole.compare(veterans, **asked)
    )


def test_frontier(veterans, there):
    asked = {"keep": KEYS[:1], "candidates": KEYS[1:8], "limit": 0.1}
    here, other = (keyhole.frontier(veterans, **asked, **more) for more in ({}, there))
    assert told(other) == told(here) | {"evaluated": other.evaluated}
    assert other.engine == there["engine"]


def test_minimal_uniques(veterans, there):
    asked = {"keys": KEYS[:8], "max_size": 3}
    here, other = (keyhole.uniques(veterans, **asked, **more) for more in ({}, there))
    assert told(other) == told(here)
    assert other.to_frame().equals(here.to_frame())


def test_drivers(veterans, there):
    for variables in (None, ["age", "ms"]):
        asked = {"keys": KEYS[:5], "variables": variables}
        here, other = (keyhole.drivers(veterans, **asked, **more) for more in ({}, there))
        assert told(other) == told(here)
        assert other.engine == there["engine"]


def test_the_cheapest_fix(veterans, there):
    asked = {"keys": ["age", "sex", "homstate"], "limit": 0.1}
    assert told(keyhole.cheapest_fix(veterans, **asked, **there)) == told(
        keyhole.cheapest_fix(veterans, **asked)
    )


def test_screening(veterans, there):
    assert told(keyhole.screen(veterans, **there)) == told(keyhole.screen(veterans))


@pytest.mark.parametrize("population", [{"weight": "weight"}, {"fraction": 0.1}])
def test_risk_in_the_population(veterans, there, population):
    asked = {"keys": KEYS[:4], "household": "household", **population}
    here, other = (keyhole.risk(veterans, **asked, **more) for more in ({}, there))
    assert told(other) == told(here)
    assert other.to_frame().equals(here.to_frame())


def test_keys_wider_than_a_word(there):
    random = np.random.default_rng(3)
    wide = {f"v{i}": random.integers(0, 3_000, 5_000) // 7 for i in range(9)}
    frame = pl.DataFrame({**wide, "few": random.integers(0, 3, 5_000)})
    asked = {"candidates": frame.columns, "limit": 1.0}
    here, other = (keyhole.select(frame, **asked, **more) for more in ({}, there))
    assert told(other) == told(here)
    back = {**asked, "limit": 0.0, "method": "backward"}
    assert told(keyhole.select(frame, **back, **there)) == told(keyhole.select(frame, **back))
    f = keyhole.risk(frame, keys=frame.columns, **there).f
    assert f.tolist() == keyhole.risk(frame, keys=frame.columns).f.tolist()


@settings(max_examples=25)
@given(
    rows=st.lists(
        st.tuples(*[st.one_of(st.none(), st.integers(0, 2))] * 4), min_size=1, max_size=40
    ),
    cutoff=st.integers(1, 4),
    engine=st.sampled_from(ENGINES),
)
def test_tallies_of_any_table(tmp_path_factory, rows, cutoff, engine):
    frame = pl.DataFrame(rows, schema=dict.fromkeys("abcd", pl.Int64), orient="row")
    here = engine_of(open_records(frame), "abcd")
    held = open_records(frame, **where(engine, tmp_path_factory.getbasetemp()))
    held.require(list("abcd"))
    other = engine_of(held, list("abcd"))
    for size in range(4):
        keys, rest = list("abcd")[:size], list("abcd")[size:]
        for counts in (here, other):
            assert counts.tally(keys, cutoff=cutoff) == here.tally(keys, cutoff=cutoff)
        added = other.tally_added(keys, rest, cutoff=cutoff)
        assert added == here.tally_added(keys, rest, cutoff=cutoff)
        removed = other.tally_removed(rest, rest, cutoff=cutoff)
        assert removed == here.tally_removed(rest, rest, cutoff=cutoff)
    for missing in ("own", "wildcard", "drop"):
        measured = other.measure(list("abcd"), missing=missing)
        assert measured.spectrum == here.measure(list("abcd"), missing=missing).spectrum
