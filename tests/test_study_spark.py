"""Studies on Spark: the answers of memory, whatever the number of tasks and their failures."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from keyhole.cli.main import app
from keyhole.data import load
from keyhole.data.examples import veterans
from keyhole.errors import InputError, OptionError
from keyhole.reidentification.linkage import text_ids
from keyhole.reidentification.study import study
from keyhole.reidentification.variables import LinkValues, quintiles, z_scores
from keyhole.spark import study as spark_study
from keyhole.spark.study import count_by_stratum

IDS = {"puf_id": "puf_id", "eif_id": "eif_id"}
SCORES = {
    "race1": {"exact": 4},
    "age": {"absolute": [[0, 5], [2, 3]]},
    "income": {"relative": [[0.05, 5], [0.1, 3]]},
    "ms": {"table": [["1", "2", 3]], "same": 5},
}
ASKED = {
    "unicity": {"link": ["race1", "age", "ms", "psx"], "numeric": ["age"]},
    "taxicab": {"link": ["race1", "age", "ms", "psx"], "numeric": ["age"], "cuts": "each"},
    "adhoc": {"link": list(SCORES), "scores": SCORES},
}


@pytest.fixture(scope="module")
def world():
    """Three files; the EIF's records are in no order, and a state is -9 here and there."""
    made = veterans(6_000, seed=1)
    puf, eif = made.sample.frame, made.external.frame.sample(fraction=1, shuffle=True, seed=3)
    eif = eif.with_columns(ag8r=pl.when(pl.col("age") % 11 == 0).then(-9).otherwise("ag8r"))
    iuf = made.truth.frame.select("puf_id", "eif_id")
    return {"puf": puf, "eif": load(eif, missing_codes={"ag8r": [-9]}), "iuf": iuf}


@pytest.fixture
def many_tasks(spark):
    """Let Spark not put small partitions together again."""
    settings = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
    before = {name: spark.conf.get(name) for name in settings}
    spark.conf.set(settings[0], "false")
    yield lambda count: spark.conf.set(settings[1], str(count))
    for name, value in before.items():
        spark.conf.set(name, value)


def both(world, spark, **asked):
    """Ask memory and Spark."""
    asked = {**IDS, "permutations": 10, **asked}
    return study(**world, **asked), study(**world, **asked, engine=spark)


def test_a_study_in_strata_is_that_of_memory(world, spark):
    here, there = both(world, spark, metric="unicity", strata=["sex", "ag8r"], **ASKED["unicity"])
    assert there.to_dict() == here.to_dict()
    assert there.summary() == here.summary()
    assert here.confirmed
    assert len(here.by_stratum) > 5
    assert here.baseline.confirmed


def test_without_strata_the_eif_goes_to_every_worker(world, spark):
    frame = spark.createDataFrame(world["puf"].to_arrow()).repartition(3)
    asked = {"metric": "taxicab", "link": ["sex", "race1", "age", "ms", "psx"], "numeric": ["age"]}
    here = study(**world, **IDS, **asked, permutations=10)
    there = study(**{**world, "puf": frame}, **IDS, **asked, permutations=10)
    assert there.to_dict() == here.to_dict()
    assert there.engine == "spark"
    assert here.confirmed


def test_the_number_of_tasks_changes_nothing(world, spark, many_tasks):
    asked = {"metric": "taxicab", "strata": ["sex", "ag8r"], **ASKED["taxicab"], **IDS}
    here = study(**world, **asked, permutations=10)
    assert here.baseline.confirmed
    for count in (1, 3, 7):
        many_tasks(count)
        there = study(**world, **asked, permutations=10, engine=spark)
        assert there.to_dict() == here.to_dict()


def test_a_task_that_fails_once_changes_nothing(world, spark, tmp_path, monkeypatch):
    marker = str(tmp_path / "failed")

    def failing(block):
        count = count_by_stratum(block)

        def fail_once(key, puf, eif):
            from pathlib import Path

            if not Path(marker).exists():
                Path(marker).touch()
                raise RuntimeError("once")
            return count(key, puf, eif)

        return fail_once

    monkeypatch.setattr(spark_study, "count_by_stratum", failing)
    here, there = both(world, spark, metric="adhoc", strata=["sex"], **ASKED["adhoc"])
    assert (tmp_path / "failed").exists()
    assert there.to_dict() == here.to_dict()
    assert here.confirmed


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    """Files with hostile names, ids of two columns, dates, truth values and texts."""
    folder = tmp_path_factory.mktemp("awkward")
    random = np.random.default_rng(5)
    size = 300
    days = pl.Series(np.datetime64("1950-01-01") + random.integers(0, 40, size)).cast(pl.Date)
    puf = pl.DataFrame(
        {
            "id`1": np.arange(size) // 10, "id.2": [f"0{i % 10}" for i in range(size)],
            "a.b`c": random.choice(["x", "", "ü;\"\n", "'--", None], size).tolist(),
            "day": days, "vet": random.random(size) < 0.5,
            "sum $": np.round(random.random(size) * 5, 1),
            "by me": random.choice(["-9", "1"], size),
        }
    )  # fmt: skip
    eif = puf.sample(fraction=0.8, seed=1, shuffle=True).with_columns(
        pl.col("sum $").cast(pl.Float32), e=pl.int_range(pl.len()) * 1.0
    )
    iuf = eif.select("id`1", "id.2", pl.col("e").cast(pl.Int32))
    puf.write_parquet(folder / "puf.parquet")
    (folder / "eif").mkdir()
    for part, start in enumerate(range(0, eif.height, 100)):
        eif.drop("id`1", "id.2").slice(start, 100).write_parquet(folder / "eif" / f"{part}.parquet")
    iuf.write_csv(folder / "iuf.csv")
    return folder, puf, eif.drop("id`1", "id.2"), iuf


def test_awkward_files_are_studied_where_they_lie(awkward, spark):
    folder, puf, eif, iuf = awkward
    asked = {
        "puf_id": ["id`1", "id.2"], "eif_id": "e", "link": ["a.b`c", "day", "vet", "sum $"],
        "numeric": ["day", "sum $"], "strata": ["by me"], "metric": "euclidean", "permutations": 5,
    }  # fmt: skip
    here = study(puf=puf, eif=eif, iuf=load(folder / "iuf.csv"), **asked)
    files = {"puf": folder / "puf.parquet", "eif": folder / "eif", "iuf": folder / "iuf.csv"}
    there = study(**files, **asked, engine=spark)
    assert there.to_dict() == here.to_dict()
    assert here.confirmed
    assert iuf.height == here.overlap.records


def test_the_command_runs_where_spark_does(awkward, spark):
    folder, *_ = awkward
    words = ["study", "--puf", folder / "puf.parquet", "--iuf", folder / "iuf.csv",
             "--puf-id", "id`1,id.2", "--eif-id", "e", "--link", "a.b`c,day,vet",
             "--strata", "by me", "--missing-codes", "by me:-9", "--json"]  # fmt: skip
    frame = pl.read_parquet(folder / "eif" / "*.parquet")
    frame.write_parquet(folder / "whole.parquet")
    here = CliRunner().invoke(app, [*map(str, words), "--eif", str(folder / "whole.parquet")])
    there = CliRunner().invoke(
        app, [*map(str, words), "--eif", str(folder / "eif"), "--engine", "spark",
              "--master", spark.conf.get("spark.master")],
    )  # fmt: skip
    assert there.exit_code == 0, there.output
    assert json.loads(there.stdout) == json.loads(here.stdout)
    assert json.loads(here.stdout)["unlinked"]["puf"]["missing_stratum"]


def problems_of(world, **asked):
    with pytest.raises(InputError) as caught:
        study(**world, **{**IDS, **asked})
    return caught.value.problems


@pytest.mark.parametrize(
    "wrong",
    [
        {"eif": lambda frame: frame.vstack(frame.head(2))},
        {"puf": lambda frame: frame.with_columns(puf_id=pl.col("puf_id").replace(1, None))},
        {"iuf": lambda frame: frame.with_columns(pl.col("eif_id") + 100_000)},
        {"puf": lambda frame: frame.with_columns(race1=pl.lit(None, pl.String))},
        {"eif": lambda frame: frame.with_columns(sex=pl.lit(7, pl.Int16))},
        {"puf": lambda frame: frame.clear()},
        {"iuf": lambda frame: frame.clear()},
    ],
)
def test_bad_files_are_told_as_in_memory(wrong, world, spark):
    files = {name: load(data).frame for name, data in world.items()}
    files = {name: wrong.get(name, lambda frame: frame)(one) for name, one in files.items()}
    asked = {"link": ["race1", "age"], "strata": ["sex"]}
    assert problems_of(files, **asked, engine=spark) == problems_of(files, **asked)


def test_bad_questions_are_told_all_at_once(world, spark):
    asked = {"link": ["rcae1", "age"], "strata": ["age"], "puf_id": "nobody", "engine": spark}
    said = "\n".join(problems_of(world, **asked))
    for word in ("'rcae1'", "'age': a linking variable and a stratum", "'nobody'"):
        assert word in said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "strata must name columns .* for unicity on Spark.*the memory engine"),
        ({"metric": "taxicab"}, "strata must name columns .* too many .*the memory engine"),
        ({"blank": ["age"]}, "engine must be memory for blank"),
        ({"ids_from": {"p": [1]}}, "engine must be memory for ids_from"),
        ({"engine": "disk"}, "engine must be one of 'auto', 'memory', 'spark'"),
        ({"engine": "memory", "master": "local"}, "master is for"),
        ({"permutations": -1, "strata": ["sex"]}, "permutations must be"),
    ],
)
def test_what_spark_cannot_do_names_the_engine_that_can(asked, said, world, spark, monkeypatch):
    monkeypatch.setattr(spark_study, "BROADCAST", 1)
    with pytest.raises(InputError, match=said):
        study(**world, **{**IDS, "link": ["race1", "age"], "engine": spark, **asked})


def test_pairs_and_what_was_perturbed_stay_with_memory(world, spark):
    iuf = world["iuf"].with_columns(race1=pl.lit("9"))
    asked = {"link": ["race1", "age"], "strata": ["sex"], "permutations": 0}
    found = study(**{**world, "iuf": iuf}, **IDS, **asked, engine=spark)
    assert found.perturbation is None
    assert found.baseline is None
    assert "'race1' in the IUF" in found.warnings[-1]
    with pytest.raises(OptionError, match="engine must be memory for the pairs"):
        found.pairs_frame()
    assert "concat" not in found.plot().to_dict()


COUNTED = st.lists(
    st.tuples(st.floats(-1e9, 1e9), st.integers(1, 5)), min_size=2, max_size=12,
    unique_by=lambda one: one[0],
)  # fmt: skip


@given(COUNTED, st.randoms())
def test_values_with_counts_scale_like_records(counted, random):
    values, counts = np.array([v for v, _ in counted]), np.array([c for _, c in counted])
    order = list(range(int(counts.sum())))
    random.shuffle(order)
    records = np.repeat(values, counts)[order]
    whole = LinkValues("x", records, values)
    short = LinkValues("x", values, values, (counts, np.ones_like(counts)))
    for scale in (quintiles, z_scores):
        assert scale(short).eif.tolist() == scale(whole).eif.tolist()


def test_ids_are_one_text_where_they_are_equal():
    assert text_ids([pl.Series([7.0, 7.5, None])]).to_list() == ["7", "7.5", None]
    one = text_ids([pl.Series(["a1", "a"]), pl.Series(["b", "1b"])]).to_list()
    assert len(set(one)) == 2
