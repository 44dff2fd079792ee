"""What is wrong is told before Spark starts, which takes long; and by verbs that it cannot do."""

import json
import subprocess
import sys

import polars as pl
import pytest

import keyhole as package
from keyhole.cli.main import run
from keyhole.data.examples import veterans
from keyhole.errors import InputError

# Nothing of Spark may be loaded, whatever is wrong.
GUARDED = """
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = sys.modules["sqlglot"] = None
from keyhole.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    made = veterans(400, seed=1)
    made.sample.save(folder / "puf.csv")
    made.external.save(folder / "eif.parquet")
    made.truth.save(folder / "iuf.csv")
    (folder / "puf.sav").write_bytes(b"$FL2" + bytes(80))
    return folder


@pytest.fixture
def refused(capsys):
    def call(*words):
        code = run([str(word) for word in words])
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        return err

    return call


def _study(folder, **changed):
    given = {
        "puf": folder / "puf.csv", "eif": folder / "eif.parquet", "iuf": folder / "iuf.csv",
        "puf-id": "puf_id", "eif-id": "eif_id", "link": "race1,age", "engine": "spark",
    }  # fmt: skip
    given |= {name.replace("_", "-"): value for name, value in changed.items()}
    return ["study", *(str(word) for name, one in given.items() for word in (f"--{name}", one))]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"puf": "nowhere.csv", "iuf": "away.csv", "strata": "sexx", "permutations": -1},
         ["'nowhere.csv' does not exist", "'away.csv' does not", "permutations must", "'sexx'"]),
        ({"link": "rcae1,age", "eif_id": "nobody"},
         ["'rcae1' is not a column of 'puf'", "'rcae1' is not a column of 'eif'",
          "EIF id 'nobody' is not a column of 'eif'", "'nobody' is not a column of 'iuf'",
          "strata must name columns"]),
        ({}, ["strata must name columns to cut the work by, for unicity on Spark"]),
        ({"metric": "taxicab", "strata": "race1"}, ["a linking variable and a stratum"]),
        ({"strata": "sex", "kinds": "mood=text", "missing_codes": "luck:-9", "master": "here"},
         ["--kinds names 'mood'", "--missing-codes names 'luck'", "master must be local"]),
        ({"metric": "adhoc", "strata": "sex"}, ["--scores must say how each linking variable is"]),
        ({"metric": "adhoc", "strata": "sex", "scores": "away.toml"}, ["'away.toml'"]),
        ({"metric": "taxi", "strata": "sex"}, ["Did you mean 'taxicab'?"]),
        ({"eif": "hdfs:/host/eif", "strata": "sex"}, ["does not exist"]),
    ],
)  # fmt: skip
def test_a_study_tells_all_of_it_without_spark(world, refused, changed, told, monkeypatch):
    monkeypatch.setattr("keyhole.spark.session.open_session", None)
    said = refused(*_study(world, **changed))
    assert all(part in said for part in told)
    lines = said.removeprefix("keyhole: ").strip().split("\n")
    assert len(lines) == len(set(lines)) == len(told)


def test_a_study_in_python_tells_it_too(world, monkeypatch):
    monkeypatch.setattr("keyhole.spark.session.open_session", None)
    frame = pl.read_parquet(world / "eif.parquet")
    with pytest.raises(InputError) as caught:
        package.study(
            puf=world / "nowhere.csv", eif=frame, iuf=world / "iuf.csv", puf_id="puf_id",
            eif_id="nobody", link=["rcae1", "age"], strata="sex", seed=-1, engine="spark",
            blank="age",
        )  # fmt: skip
    said = "\n".join(caught.value.problems)
    for part in ("nowhere.csv", "'rcae1' is not a column of 'EIF'", "seed must", "for blank"):
        assert part in said


FILES = [
    ("risk", "--keys", "sex,agee"),
    ("drivers", "--keys", "sex,agee"),
    ("select", "--candidates", "sex,agee", "--limit", "0.1"),
    ("select", "--candidates", "sex,agee", "--limit", "0.1", "--compare"),
]


@pytest.mark.parametrize("words", FILES, ids=" ".join)
def test_files_are_looked_at_before_spark_runs(world, refused, words, monkeypatch):
    monkeypatch.setattr("keyhole.spark.session.open_session", None)
    spark = (*words[1:], "--engine", "spark")
    assert "does not exist" in refused(words[0], world / "away.parquet", *spark)
    assert "'agee' is not a column of 'puf'. Did you mean 'age'?" in refused(
        words[0], world / "puf.csv", *spark
    )
    assert "reads Parquet and text files" in refused(words[0], world / "puf.sav", *spark)
    said = refused(words[0], world / "away.csv", *spark, "--master", "here")
    assert all(part in said for part in ("does not exist", "master must"))
    said = refused(words[0], world / "puf.csv", *spark, "--kinds", "sex=mood", "--cutoff", "0")
    assert all(part in said for part in ("'agee'", "the kind of 'sex'", "cutoff"))


def test_candidates_are_offered_without_spark(world, refused, monkeypatch):
    monkeypatch.setattr("keyhole.spark.session.open_session", None)
    said = refused("select", world / "puf.csv", "--limit", "0.1", "--engine", "spark")
    assert all(part in said for part in ("columns of 'puf'", "'ag8r'"))


HERE = {
    "uniques": ("--keys", "sex,age"),
    "frontier": ("--candidates", "sex,age", "--limit", "0.1"),
}


@pytest.mark.parametrize("verb", HERE)
def test_verbs_that_spark_cannot_do_say_so_once(world, refused, verb, monkeypatch):
    monkeypatch.setattr("keyhole.spark.session.open_session", None)
    for where in (
        ("--master", "local[2]"), ("--engine", "spark"), ("--master", "here", "--engine", "spark"),
        ("--engine", "disk", "--master", "local[2]"),
    ):  # fmt: skip
        said = refused(verb, world / "puf.csv", *HERE[verb], *where)
        assert said.count("\n") == 1
        assert "engine must be memory or disk for" in said
    said = refused(verb, world / "puf.sav", *HERE[verb], "--engine", "spark")
    assert said.count("engine must be memory or disk for") == 1
    assert "reads Parquet" not in said
    said = refused(verb, world / "away.csv", *HERE[verb], "--engine", "spark")
    assert all(part in said for part in ("memory or disk", "does not exist"))


def test_the_frontier_offers_candidates_and_names_its_engines(world, refused, monkeypatch):
    monkeypatch.setattr("keyhole.spark.session.open_session", None)
    for where in (("--engine", "spark"), ("--master", "local[2]")):
        said = refused("frontier", world / "puf.csv", "--limit", "0.1", *where)
        assert all(part in said for part in ("memory or disk", "columns of 'puf'"))
        said = refused("frontier", world / "away.csv", "--limit", "0.1", *where)
        assert all(part in said for part in ("memory or disk", "does not exist"))


@pytest.mark.parametrize("verb", ["study", "risk", "select"])
def test_nothing_of_spark_is_loaded(world, verb):
    words = {
        "study": _study(world, iuf=world / "away.csv", link="race1,agee"),
        "risk": ["risk", world / "puf.csv", "--keys", "agee", "--engine", "spark"],
        "select": ["select", world / "away.csv", "--candidates", "sex", "--limit", "0",
                   "--engine", "spark", "--master", "local[2]"],
    }[verb]  # fmt: skip
    command = [sys.executable, "-c", GUARDED, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "'agee'" in done.stderr or "does not exist" in done.stderr


def test_what_is_fine_still_runs(world, spark, capsys):
    master = ["--master", spark.conf.get("spark.master")]
    assert run([*_study(world, strata="sex", permutations=0), *master, "--json"]) == 0
    there = json.loads(capsys.readouterr().out)
    here = [*_study(world, strata="sex", permutations=0, engine="memory"), "--json"]
    assert run(here) == 0
    known = ("suspected", "confirmed", "pairs")
    found = json.loads(capsys.readouterr().out)
    assert [there[name] for name in known] == [found[name] for name in known]
