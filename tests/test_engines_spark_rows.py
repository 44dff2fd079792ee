"""Tallying on Spark: many keys in one query, by rows that are left out and gathered on the way."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keyhole
from keyhole.data.examples import KEYS, veterans_sample
from keyhole.engines.choose import engine_of, open_records
from keyhole.engines.protocol import Tally
from keyhole.errors import RunError
from keyhole.spark import data
from keyhole.spark.sql import ViewField, word_layout

PEOPLE = veterans_sample(600).select(KEYS[:8])


def counted(table: pl.DataFrame, key: frozenset[str], cutoff: int) -> Tally:
    """Count a key the slow and obvious way."""
    cells = Counter(table.select(sorted(key)).rows()) if key else Counter({(): len(table)})
    return Tally(len(table), len(cells), sum(n for n in cells.values() if n < cutoff))


@given(st.lists(st.integers(1, 9), max_size=9), st.integers(0, 2**32))
def test_packed_columns_are_told_apart(sizes, seed):
    fields = [ViewField(f"c{place}", size) for place, size in enumerate(sizes)]
    random = np.random.default_rng(seed)
    rows = [tuple(random.integers(0, size) for size in sizes) for _ in range(50)]
    packed = word_layout(fields)
    assert [name for word in packed for name in word] == [field.name for field in fields]
    words = {
        row: tuple(sum(int(row[int(n[1:])]) * by for n, by in word.items()) for word in packed)
        for row in rows
    }
    assert len(set(words.values())) == len(words)


@given(st.lists(st.integers(1, 2**31), max_size=12))
def test_packed_columns_fit_a_whole_number(sizes):
    fields = [ViewField(f"c{place}", size) for place, size in enumerate(sizes)]
    held = {field.name: field.size or 0 for field in fields}
    for word in word_layout(fields):
        assert sum((held[name] - 1) * by for name, by in word.items()) < 2**62


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("cutoff", [1, 3])
def test_a_key_that_grows_leaves_records_behind(cutoff):
    spark = engine_of(open_records(PEOPLE, engine="spark"), PEOPLE.names)
    names = list(PEOPLE.names)
    left = []
    for size in range(len(names)):
        found = spark.tally_added(names[:size], names[size:], cutoff=cutoff)
        keys = [frozenset((*names[:size], name)) for name in names[size:]]
        assert found == [counted(PEOPLE.frame, key, cutoff) for key in keys]
        left.append((spark._rows.number, spark._rows.settled))
    assert left[0] == (600, 0)
    assert left[-1][0] < 600
    assert sum(left[-1]) == 600
    # Another key begins with all the records again.
    assert spark.tally(names[-1:], cutoff=3) == counted(PEOPLE.frame, frozenset(names[-1:]), 3)
    assert spark._rows.number == 600


@pytest.mark.usefixtures("spark")
def test_a_key_that_shrinks_merges_records():
    spark = engine_of(open_records(PEOPLE, engine="spark"), PEOPLE.names)
    names = list(PEOPLE.names)
    spark.tally(names, cutoff=3)
    for size in range(len(names), 0, -1):
        found = spark.tally_removed(names[:size], names[:size], cutoff=3)
        keys = [frozenset(names[:size]) - {name} for name in names[:size]]
        assert found == [counted(PEOPLE.frame, key, 3) for key in keys]
    assert spark._rows.weighted
    assert spark._rows.number < 300


@pytest.mark.usefixtures("spark")
def test_a_key_that_grows_and_then_shrinks():
    spark = engine_of(open_records(PEOPLE, engine="spark"), PEOPLE.names)
    names = list(PEOPLE.names)
    for size in range(4, 8):
        spark.tally_added(names[:size], names[size:], cutoff=3)
    assert spark._rows.settled
    for size in (8, 7):
        found = spark.tally_removed(names[:size], names[6:size], cutoff=3)
        keys = [frozenset(names[:size]) - {name} for name in names[6:size]]
        assert found == [counted(PEOPLE.frame, key, 3) for key in keys]
    found = spark.tally_removed(names[:6], names[:6], cutoff=3)
    assert found == [counted(PEOPLE.frame, frozenset(names[:6]) - {n}, 3) for n in names[:6]]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("method", ["forward", "backward"])
def test_columns_of_values_among_columns_of_codes(spark, monkeypatch, method):
    monkeypatch.setattr(data, "MOST_LEVELS", 4)
    random = np.random.default_rng(8)
    table = pl.DataFrame(
        {
            "many": random.integers(0, 30, 90),
            "real": random.choice([0.0, -0.0, float("nan"), 1.5, -9.0, 2.5, 7.25], 90),
            "text": random.choice(["", "a", "b", "c", "d", "none"], 90),
            "few": random.choice(["x", "y", None], 90).tolist(),
            "fewer": random.choice([True, False], 90),
        }
    )
    frame = spark.createDataFrame(table.to_arrow(compat_level=pl.CompatLevel.oldest()))
    asked = {"candidates": table.columns, "limit": 1.0, "method": method}
    here, other = keyhole.select(table, **asked), keyhole.select(frame, **asked)
    assert other.steps == here.steps
    assert other.step_tables == here.step_tables


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("ask", ["tally", "measure"])
def test_a_frame_that_is_other_records_every_time(spark, ask):
    def some(batches):
        import os

        for batch in batches:
            yield batch.slice(0, 1 + int.from_bytes(os.urandom(2)) % batch.num_rows)

    whole = spark.range(10_000).selectExpr("id % 7 a", "id % 5 b").coalesce(1)
    held = open_records(whole.mapInArrow(some, "a long, b long"))
    engine = engine_of(held, ["a", "b"])
    with pytest.raises(RunError, match="the data changed while it was counted"):
        engine.tally(["a", "b"], cutoff=3) if ask == "tally" else engine.measure(["a", "b"])


@pytest.mark.usefixtures("spark")
def test_more_columns_than_are_looked_at_in_one_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "AT_ONCE", 3)
    path = PEOPLE.save(tmp_path / "people.csv")
    here, other = keyhole.load(path), open_records(path, engine="spark")
    other.require(KEYS[:8])
    for name in KEYS[:8]:
        assert other.variable(name) == here.variable(name)
        assert other.codes(name).levels.equals(here.codes(name).levels)


@pytest.mark.usefixtures("spark")
def test_a_frame_that_loses_values_after_they_were_counted(spark, tmp_path):
    mark = tmp_path / "seen"

    def blanked(batches):
        import pyarrow as pa

        again = mark.exists()
        mark.touch()
        for batch in batches:
            values = pa.nulls(batch.num_rows, pa.int64()) if again else batch.column(0)
            yield pa.RecordBatch.from_arrays([values], names=["a"])

    whole = spark.range(100).selectExpr("id % 7 a").coalesce(1)
    with pytest.raises(RunError, match="the data changed while it was counted"):
        keyhole.risk(whole.mapInArrow(blanked, "a long"), keys=["a"])
