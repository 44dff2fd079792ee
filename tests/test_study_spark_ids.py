"""Ids of studies on Spark: a late one that is no number changes the type of all, as in memory."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from keyhole.data import load
from keyhole.errors import InputError
from keyhole.reidentification.study import study
from keyhole.spark import sources, study_files
from keyhole.spark.study import count_by_broadcast, count_by_stratum
from keyhole.spark.tasks import (
    ChangedError,
    ValueCoding,
    coder,
    pair_counter,
    text_reader,
    value_counter,
    without_words,
)

SIZE = 700
ASKED = {
    "puf_id": "p", "eif_id": "e", "link": ["a", "b", "c"], "strata": ["s"], "metric": "taxicab",
    "permutations": 20,
}  # fmt: skip
SECRET = "1234567x"


@pytest.fixture(autouse=True)
def short_glance(monkeypatch):
    """Let the first 600 values tell a type."""
    monkeypatch.setattr(sources, "GLANCE", 600)
    monkeypatch.setattr(study_files, "GLANCE", 600)


def made(puf_ids, eif_ids):
    """Three files of records that are alike, in another order in each."""
    random = np.random.default_rng(2)
    values = {name: random.integers(0, 6, SIZE) for name in "abc"} | {"s": np.arange(SIZE) % 2}
    puf = pl.DataFrame({"p": puf_ids, **values})
    eif = pl.DataFrame({"e": eif_ids, **values})
    # What comes late is late in the shuffled files as well.
    mixed = pl.concat([eif.head(SIZE - 5).sample(fraction=1, shuffle=True, seed=4), eif.tail(5)])
    return {"puf": puf, "eif": mixed, "iuf": pl.DataFrame({"p": puf_ids, "e": eif_ids})}


def numbers(*last, form="{}"):
    return [*(form.format(i + 1) for i in range(SIZE - len(last))), *last]


def paths_of(frames, folder, suffix=".csv"):
    for name, frame in frames.items():
        write = frame.write_csv if suffix == ".csv" else frame.write_parquet
        write(folder / f"{name}{suffix}")
    return {name: folder / f"{name}{suffix}" for name in frames}


@pytest.mark.parametrize(
    "ids",
    [
        numbers(SECRET),
        numbers("007"),
        numbers("7.0", "1e3"),
        numbers("99999999999999999999", "-5"),
        numbers("707.50", "1000.25", form="{}.5"),
        numbers("7.50", "07.5", form="{}.5"),
        numbers("1.12345678901234567", "1.12345678901234568", form="{}.5"),
    ],
    ids=["text", "zeros", "floats", "long", "decimals", "zero decimals", "digits"],
)
def test_late_ids_of_text_files_are_what_they_are_in_memory(ids, spark, tmp_path):
    files = paths_of(made(ids, ids), tmp_path)
    here = study(**files, **ASKED)
    there = study(**files, **ASKED, engine=spark)
    assert there.to_dict() == here.to_dict()
    assert here.overlap.records == SIZE
    assert here.baseline.confirmed


def test_a_missing_code_among_numbers_leaves_them_numbers(spark, tmp_path):
    files = made(numbers(), numbers())
    files["iuf"] = pl.concat([pl.DataFrame({"p": ["."], "e": ["2"]}), files["iuf"].slice(3)])
    paths = paths_of(files, tmp_path)
    here = {name: load(path, missing_codes=["."]) for name, path in paths.items()}
    there = {
        name: study_files.open_file(path, spark, name=name, missing_codes=["."])
        for name, path in paths.items()
    }
    assert study(**there, **ASKED, engine=spark).to_dict() == study(**here, **ASKED).to_dict()


def test_ids_that_come_late_are_numbers_all_the_same(spark, tmp_path):
    ids = numbers("707.50", "1000.25", form="{}.5")
    files = made(ids, ids)
    nobody = pl.DataFrame({"p": [None] * 650, "e": [None] * 650}, schema=files["iuf"].schema)
    files["iuf"] = pl.concat([nobody, files["iuf"].tail(40)])
    paths = paths_of(files, tmp_path)
    here = study(**paths, **ASKED)
    assert study(**paths, **ASKED, engine=spark).to_dict() == here.to_dict()
    assert here.overlap.records == 40


def test_ids_above_the_largest_long_are_put_in_order_as_in_memory(spark, tmp_path):
    ids = pl.Series([2**64 - 1 - i * 10**16 for i in range(SIZE)], dtype=pl.UInt64)
    files = paths_of(made(ids, ids), tmp_path, ".parquet")
    here = study(**files, **ASKED)
    assert study(**files, **ASKED, engine=spark).to_dict() == here.to_dict()
    assert here.overlap.records == SIZE


def test_a_text_that_a_note_calls_numbers_is_text_if_one_is_none(spark, tmp_path):
    frames = made(numbers(), numbers())
    for name in ("puf", "eif", "iuf"):
        text = frames[name].with_columns(pl.col(pl.String).replace("3", "."))
        text.write_csv(tmp_path / f"{name}.csv")
        data = load(tmp_path / f"{name}.csv", missing_codes=["."])
        # The note stays, and then a value is no number.
        kept = data.frame.with_columns(pl.col(pl.String).replace(".", SECRET))
        data.replace(frame=kept).save(tmp_path / f"{name}.parquet")
    files = {name: tmp_path / f"{name}.parquet" for name in frames}
    assert load(files["eif"]).variable("e").parsed == pl.Int64
    here = study(**files, **ASKED)
    assert study(**files, **ASKED, engine=spark).to_dict() == here.to_dict()


def test_shared_ids_are_told_as_in_memory(spark, tmp_path):
    files = paths_of(made(numbers("x", "x"), numbers("007", "007")), tmp_path)
    said = []
    for engine in ({}, {"engine": spark}):
        with pytest.raises(InputError) as caught:
            study(**files, **ASKED, **engine)
        said.append(caught.value.problems)
    assert said[0] == said[1]
    assert "x" not in said[0]


def test_an_error_of_a_task_keeps_its_words_to_itself(spark):
    from pyspark.errors import PySparkException

    frame = spark.createDataFrame([(1,)], "v0 int")
    task = coder([ValueCoding(pa.array([SECRET]), np.zeros(2, np.int32))])
    with pytest.raises(PySparkException) as caught:
        frame.mapInArrow(task, "c0 int").collect()
    assert SECRET not in str(caught.value)
    assert "ArrowInvalid" in str(caught.value)


class Quoting:
    """Whatever is asked of it fails and quotes an id."""

    def __getattr__(self, name):
        raise ValueError(SECRET)


@pytest.mark.parametrize(
    "task",
    [
        text_reader(["a"], ["a"]), value_counter(1),
        coder([ValueCoding(None, np.zeros(0, np.int32))]),
        pair_counter([(0, 0)], [1]), count_by_broadcast(Quoting(), None),
        study_files._unread([Quoting()], exact=True), study_files.StudyEncoding({}, {})._work({}),
    ],
)  # fmt: skip
def test_every_task_keeps_its_words_to_itself(task):
    def failing():
        raise ValueError(SECRET)
        yield

    with pytest.raises(RuntimeError, match=r"^ValueError$") as caught:
        list(task(failing()))
    assert caught.value.__suppress_context__


def test_so_do_the_tasks_of_groups():
    from keyhole.spark.synthesis import _drawing

    for call in (
        lambda: count_by_stratum(Quoting())((), None, None),
        lambda: _drawing(None, 1)((Quoting(), 1), None),
    ):
        with pytest.raises(RuntimeError, match=r"^ValueError$"):
            call()


def test_that_the_data_changed_is_said():
    with pytest.raises(ChangedError, match="changed while it was counted"), without_words():
        raise ChangedError
