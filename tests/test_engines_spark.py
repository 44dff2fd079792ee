"""The Spark engine: what it reads, what it leaves to others, and what it says when it cannot."""

from __future__ import annotations

import gc
import json
import re
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import keyhole
from keyhole.cli.main import run
from keyhole.data.examples import KEYS, veterans_sample
from keyhole.engines.choose import engine_of, open_records
from keyhole.errors import ColumnError, FileError, InputError, OptionError, RunError
from keyhole.screening.dependence import dependences, dependences_of
from keyhole.spark import data, session, sql
from keyhole.spark.data import attach_sizes
from keyhole.spark.session import open_session

pytestmark = pytest.mark.usefixtures("spark")


def told(result: Any) -> dict[str, Any]:
    """Return what a result says, but for where it was counted."""
    return {k: v for k, v in result.to_dict().items() if k != "engine"}


@pytest.fixture(scope="module")
def veterans(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("veterans") / "veterans.parquet"
    veterans_sample(2_000).save(path)
    return path


def kept_on_the_cluster(spark) -> int:
    return spark.sparkContext._jsc.getPersistentRDDs().size()


# What it reads.


@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_a_folder_of_files(tmp_path, form):
    data = veterans_sample(900).select(KEYS[:4])
    folder = tmp_path / "parts"
    (folder / "more").mkdir(parents=True)
    for place, name in enumerate(("a", "b", "more/c")):
        part = data.filter(np.arange(900) % 3 == place)
        part.save(folder / f"{name}{form}")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.crc").write_bytes(b"x")
    found = keyhole.risk(str(folder), keys=KEYS[:4], engine="spark")
    assert told(found) == told(keyhole.risk(data, keys=KEYS[:4]))


def test_a_frame_of_sparks_own_and_a_session(spark, veterans):
    frame = spark.read.parquet(str(veterans))
    here = keyhole.risk(veterans, keys=KEYS[:3])
    assert told(keyhole.risk(frame, keys=KEYS[:3])) == told(here)
    found = keyhole.risk(veterans, keys=KEYS[:3], engine=spark)
    assert (told(found), found.engine) == (told(here), "spark")
    with pytest.raises(OptionError, match="engine must be spark for a frame of Spark's own"):
        keyhole.risk(frame, keys=KEYS[:3], engine="disk")


def test_an_address_that_spark_reads(veterans):
    found = keyhole.risk(f"file://{veterans}", keys=KEYS[:3], engine="spark")
    assert told(found) == told(keyhole.risk(veterans, keys=KEYS[:3]))


def test_names_that_differ_in_case_alone_or_are_hostile(spark):
    rows = [(1, "x", None), (1, "y", 2), (2, "y", 2)]
    names = ["a", "A", "`; drop table t --"]
    frame = spark.createDataFrame(rows, "p int, q string, r int").toDF(*names)
    table = pl.DataFrame(rows, schema=names, orient="row")
    for keys in (["A"], names):
        assert told(keyhole.risk(frame, keys=keys)) == told(keyhole.risk(table, keys=keys))


def test_missing_codes_are_one_level_with_what_is_missing(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n-9,f\n,f\n34,m\n34.0,m\n.,m\n")
    codes = {"age": [-9, "."]}
    other, here = (
        open_records(path, engine=engine, missing_codes=codes) for engine in ("spark", "memory")
    )
    assert other.codes("age").levels.equals(here.codes("age").levels)
    assert told(keyhole.risk(other, keys=["age"])) == told(keyhole.risk(here, keys=["age"]))
    assert keyhole.risk(other, keys=["age"]).cells == 2


def test_types_that_only_later_records_tell(tmp_path):
    """The first 500 records tell the type, or the first that are not missing."""
    path = tmp_path / "later.csv"
    late = [""] * 10_400 + ["1.5", "1.50", "2"]
    text = ["1"] * 600 + ["1.5", "1.50"] + ["7"] * (len(late) - 602)
    path.write_text("late,text\n" + "\n".join(f"{a},{b}" for a, b in zip(late, text, strict=True)))
    here, other = keyhole.load(path), open_records(path, engine="spark")
    other.require(["late", "text"])
    for name in ("late", "text"):
        assert other.variable(name) == here.variable(name)
        assert other.codes(name).levels.equals(here.codes(name).levels)


@pytest.mark.parametrize("packed", [True, False])
def test_texts_that_are_packed_or_in_another_encoding(tmp_path, packed):
    plain = pl.DataFrame({"näme": ["é", "ü", "é", None], "n": [1, 2, 3, 3]})
    path = tmp_path / ("people.csv.gz" if packed else "people.csv")
    if packed:
        keyhole.load(plain).save(path)
    else:
        path.write_bytes("näme,n\né,1\nü,2\né,3\n,3\n".encode("cp1252"))
    options = {} if packed else {"encoding": "cp1252"}
    data = open_records(path, engine="spark", **options)
    assert told(keyhole.risk(data, keys=["näme"])) == told(keyhole.risk(plain, keys=["näme"]))


# Columns with too many levels to be coded.


def test_a_column_with_many_levels_stays_as_it_is(spark, monkeypatch):
    monkeypatch.setattr(data, "MOST_LEVELS", 3)
    random = np.random.default_rng(5)
    table = pl.DataFrame(
        {
            "id": random.integers(0, 40, 60),
            "real": random.choice([0.0, -0.0, float("nan"), 1.5, -9.0, 2.5], 60),
            "text": random.choice(["", "a", "b", "c", "none"], 60),
            "few": random.choice(["x", "y", None], 60),
        }
    )
    codes = {"real": [-9], "text": ["none"]}
    frame = spark.createDataFrame(table.to_arrow(compat_level=pl.CompatLevel.oldest()))
    held = open_records(frame, missing_codes=codes)
    here = open_records(table, missing_codes=codes)
    for keys in (["real"], ["text"], table.columns):
        for missing in ("own", "drop"):
            other = keyhole.risk(held, keys=keys, missing=missing)
            assert told(other) == told(keyhole.risk(here, keys=keys, missing=missing))
    asked = {"candidates": table.columns, "limit": 0.5}
    chosen = keyhole.select(held, **asked)
    assert chosen.selected == keyhole.select(here, **asked).selected
    assert any("too many levels to compare" in warning for warning in chosen.warnings)
    with pytest.raises(OptionError, match=r"'id' has .* too many to be told"):
        keyhole.drivers(held, keys=["few", "id"])


def test_zero_has_one_name_on_every_engine(tmp_path):
    path = tmp_path / "people.parquet"
    for values in ([-0.0, 0.0, 1.5, 1.5, -0.0], [0.0, -0.0, 1.5, 1.5, 0.0]):
        pl.DataFrame({"real": values, "b": [1, 2, 1, 2, 2]}).write_parquet(path)
        found = [
            keyhole.drivers(path, keys=["real", "b"], engine=engine).to_dict() | {"engine": ""}
            for engine in ("memory", "disk", "spark")
        ]
        assert found[0] == found[1] == found[2]
        assert "-0.0" not in str(found)


def test_a_text_with_many_levels_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "MOST_LEVELS", 3)
    path = tmp_path / "people.csv"
    path.write_text("id,sex\n" + "\n".join(f"{n},f" for n in range(9)))
    with pytest.raises(InputError, match=r"'id' has more than 3 different values.*Parquet"):
        keyhole.risk(path, keys=["sex", "id"], engine="spark")


def test_more_keys_than_one_query_tallies(monkeypatch):
    monkeypatch.setattr(sql, "MOST_KEYS", 2)
    table = pl.DataFrame(
        {name: np.random.default_rng(i).integers(0, 3, 40) for i, name in enumerate("abcde")}
    )
    here, other = (
        engine_of(open_records(table, engine=engine), list("abcde"))
        for engine in ("memory", "spark")
    )
    assert other.tally_added("a", "bcde", cutoff=3) == here.tally_added("a", "bcde", cutoff=3)
    assert other.tally_removed("abcde", "abcde", cutoff=3) == here.tally_removed(
        "abcde", "abcde", cutoff=3
    )


# What is done on the cluster.


def test_a_step_of_a_selection_is_at_most_two_jobs(spark, veterans):
    tracker, group = spark.sparkContext.statusTracker(), "a selection"
    spark.sparkContext.setJobGroup(group, "counted by a test")
    held = open_records(veterans, engine="spark")
    held.require(KEYS[:7])
    jobs = []
    asked = {"keep": KEYS[:1], "candidates": KEYS[1:7], "limit": 0.4, "method": "stepwise"}
    found = keyhole.select(
        held, progress=lambda _: jobs.append(len(tracker.getJobIdsForGroup(group))), **asked
    )
    jobs.append(len(tracker.getJobIdsForGroup(group)))
    steps = np.diff(jobs)
    assert len(steps) == len(found.step_tables) >= 4
    assert steps.min() >= 1
    assert steps.max() <= 2


def test_a_task_that_fails_once(spark, veterans, tmp_path):
    """Local[2,2] gives every task a second try."""
    mark = tmp_path / "failed"

    def fails_once(batches):
        for batch in batches:
            if batch.num_rows and not mark.exists():
                mark.touch()
                raise OSError("the machine was switched off")
            yield batch

    sound = spark.read.parquet(str(veterans))
    frame = sound.mapInArrow(fails_once, sound.schema)
    asked = {"candidates": KEYS[:5], "limit": 0.3}
    assert told(keyhole.select(frame, **asked)) == told(keyhole.select(veterans, **asked))
    assert mark.exists()


def test_a_task_that_always_fails(spark):
    def fails(batches):
        for _ in batches:
            raise OSError("secret 739173")
        yield pa.RecordBatch.from_pydict({"a": [1]})

    with pytest.raises(RunError, match="Spark could not count the records") as caught:
        keyhole.risk(spark.range(3).mapInArrow(fails, "a long"), keys=["a"])
    assert "739173" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_nothing_is_kept_afterwards(spark, veterans):
    gc.collect()  # what errors of other tests hold
    before, views = kept_on_the_cluster(spark), spark.sql("SHOW VIEWS").count()
    held = open_records(veterans, engine="spark")
    keyhole.risk(held, keys=KEYS[:2], by="sex")
    keyhole.risk(held, keys=KEYS[:3])  # one more column: all are encoded anew
    assert kept_on_the_cluster(spark) == before + 1
    del held
    assert kept_on_the_cluster(spark) == before
    assert spark.sql("SHOW VIEWS").count() == views


def test_sizes_attached_to_the_records(spark, veterans):
    for missing in ("own", "drop"):
        held = open_records(veterans, engine="spark")
        frame = attach_sizes(held, keys=KEYS[:4], missing=missing)
        here = veterans_sample(2_000).frame.with_columns(
            f=keyhole.risk(veterans, keys=KEYS[:4], missing=missing).f
        )
        assert frame.columns == here.columns
        theirs = Counter(map(tuple, frame.select(*KEYS[:4], "f").collect()))
        assert theirs == Counter(here.select(*KEYS[:4], "f").iter_rows())
    with pytest.raises(OptionError, match=r"attach_sizes of keyhole.spark.data"):
        keyhole.risk(held, keys=KEYS[:2]).to_frame()
    with pytest.raises(OptionError, match="data must be what open_records gives"):
        attach_sizes(veterans, keys=KEYS[:2])
    with pytest.raises(OptionError, match="column 'f' already"):
        attach_sizes(open_records(spark.range(3).toDF("f")), keys=["f"])


def test_dependent_columns(veterans, monkeypatch):
    table = veterans_sample(2_000)
    names = ["age", "ag8r", "sex", "ms", "homstate"]
    here = dependences({name: table.codes(name) for name in names})
    found, unknown = dependences_of(open_records(veterans, engine="spark"), names)
    assert [(d.first, d.second, d.determined, d.cramers_v, d.equivalent) for d in found] == [
        (d.first, d.second, d.determined, d.cramers_v, d.equivalent) for d in here
    ]
    assert found
    assert not unknown
    monkeypatch.setattr(data, "CELLS_AT_ONCE", 100)
    monkeypatch.setattr(data, "MOST_CELLS", 300)
    some, unknown = dependences_of(open_records(veterans, engine="spark"), names)
    assert {(d.first, d.second) for d in some} < {(d.first, d.second) for d in found}
    assert any("'age' and 'ag8r' have too many levels" in one for one in unknown)


# What it says when it cannot.


@pytest.mark.parametrize(
    ("ask", "asked"),
    [
        (keyhole.uniques, {"keys": KEYS[:2]}),
        (keyhole.frontier, {"candidates": KEYS[:2], "limit": 0.1}),
        (keyhole.cheapest_fix, {"keys": KEYS[:2], "limit": 0.1}),
        (keyhole.screen, {}),
        (keyhole.risk, {"keys": KEYS[:2], "missing": "wildcard"}),
        (keyhole.risk, {"keys": KEYS[:2], "weight": "weight"}),
        (keyhole.risk, {"keys": KEYS[:2], "household": "household"}),
    ],
)
def test_what_other_engines_can_do(spark, veterans, ask, asked):
    held = open_records(veterans, engine="spark")
    ways = [(veterans, {"engine": "spark"}), (veterans, {"engine": spark}), (held, {})]
    for source, where in [*ways, (spark.read.parquet(str(veterans)), {})]:
        with pytest.raises(OptionError, match="engine must be memory or disk for"):
            ask(source, **asked, **where)


def test_single_records_are_out_of_reach(veterans):
    held = open_records(veterans, engine="spark")
    for ask in (
        lambda: held.column("sex"),
        lambda: held.weights("weight"),
        lambda: held.filter(np.ones(2_000, dtype=bool)),
        lambda: held.codes("sex").values,
        lambda: engine_of(held, ["sex"]).measure(["sex"]).sizes(),
        lambda: engine_of(held, ["sex"]).measure(["sex"]).numbers(),
    ):
        with pytest.raises(OptionError, match="engine must be memory or disk for"):
            ask()


def test_no_java(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(OptionError, match=r"needs Java 17 or newer.*JAVA_HOME"):
        open_session()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OptionError, match="needs Java 17"):
        open_session()


def test_no_pyspark_and_all_problems_at_once(monkeypatch, tmp_path):
    monkeypatch.setattr("keyhole.core.extras.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(OptionError, match=r"pip install 'keyhole\[spark\]'") as caught:
        open_session("locale")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("wrong", ["locale", "local[0]", "local[x]", "spark://host", "", 3])
def test_a_wrong_master(veterans, wrong):
    with pytest.raises(OptionError, match=r"master must be (local\[\*\]|text)"):
        keyhole.risk(veterans, keys=["sex"], engine="spark", master=wrong)


def test_masters_of_others(spark, veterans, monkeypatch):
    with pytest.raises(OptionError, match=r"session that runs already, 'local.2,2.'"):
        keyhole.risk(veterans, keys=["sex"], engine="spark", master="local[7]")
    with pytest.raises(OptionError, match="master must be left out where a Spark session"):
        keyhole.risk(veterans, keys=["sex"], engine=spark, master="local[2,2]")
    monkeypatch.setattr("keyhole.spark.session._running", lambda _: None)
    with pytest.raises(OptionError, match="a Spark master that answers"):
        open_session("spark://127.0.0.1:1")
    with pytest.raises(OptionError, match="master is for counting on Spark"):
        keyhole.risk(veterans, keys=["sex"], master="local[2]")


def test_a_session_that_is_none(spark):
    with pytest.raises(OptionError, match=r"must be a Spark session. Got str instead"):
        open_session(session="local")
    context = spark.sparkContext
    held, context._jsc = context._jsc, None
    try:
        with pytest.raises(OptionError, match="Got one that was stopped"):
            open_session(session=spark)
    finally:
        context._jsc = held


def test_settings_of_a_new_session(monkeypatch):
    assert session._settings("local[2]")["spark.driver.bindAddress"] == "127.0.0.1"
    assert session._settings("local[2]")["spark.sql.shuffle.partitions"] == "16"
    assert {"spark.driver.bindAddress", "spark.sql.shuffle.partitions"}.isdisjoint(
        session._settings("yarn")
    )
    assert session._settings(None)["spark.sql.session.timeZone"] == "UTC"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as spark-submit does
    assert session._settings(None) == {}


def test_a_session_where_nobody_names_a_master_is_this_machines_own(monkeypatch, tmp_path):
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert session._default_master() == "local[*]"
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert session._default_master() is None


def test_what_spark_writes_on_this_machine_is_nobody_elses():
    folder = Path(session._settings("local[2]")["spark.local.dir"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "spark.local.dir" not in session._settings("yarn")


def test_workers_run_the_python_of_the_driver(spark):
    def tell(batches):
        import sys

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    rows = spark.range(1).mapInArrow(tell, "python string").collect()
    assert {row["python"] for row in rows} == {sys.executable}


def test_other_engines_do_not_need_what_spark_needs():
    asked = "import keyhole, sys; keyhole.risk({'a': [1, 2]}, keys=['a'], by='a')"
    asked += "; sys.exit(bool({'pyspark', 'sqlglot', 'py4j'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


def test_a_cluster_of_two_executors_gives_the_answer_of_memory(veterans):
    """Executors in processes of their own: what they need is sent to them, not shared."""
    asked = {"candidates": list(KEYS[:4]), "limit": 0.05}
    programme = (
        "import json, keyhole, sys; print(json.dumps(keyhole.select(sys.argv[1], engine='spark', "
        "master='local-cluster[2,1,1024]', **json.loads(sys.argv[2])).to_dict(), default=str))"
    )
    command = [sys.executable, "-c", programme, str(veterans), json.dumps(asked)]
    found = json.loads(subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL))
    expected = json.loads(json.dumps(keyhole.select(veterans, **asked).to_dict(), default=str))
    assert found.pop("engine") == "spark"
    assert expected.pop("engine") == "memory"
    assert found["steps"] == expected["steps"]
    assert found["tables"] == expected["tables"]
    assert found["selected"] == expected["selected"]


def test_memory_is_for_the_disk(veterans, tmp_path):
    for option in ({"memory": "1GB"}, {"work_folder": tmp_path}):
        with pytest.raises(OptionError, match="are for counting on disk"):
            keyhole.risk(veterans, keys=["sex"], engine="spark", **option)


def test_paths_that_cannot_be_read(tmp_path, veterans, monkeypatch):
    def ask(path):
        keyhole.risk(path, keys=["sex"], engine="spark")

    with pytest.raises(FileError, match="does not exist"):
        ask(tmp_path / "none.csv")
    with pytest.raises(FileError, match="has no files in it"):
        ask(tmp_path)
    with pytest.raises(FileError, match=r"'nowhere' cannot be read by Spark.*PATH_NOT_FOUND"):
        ask("file:///nowhere")
    veterans_sample(20).save(tmp_path / "people.sav")
    with pytest.raises(OptionError, match=r"reads Parquet and text files.*use engine disk"):
        ask(tmp_path / "people.sav")
    with pytest.raises(ColumnError, match="'sexx' is not"):
        open_records(veterans, engine="spark", columns=["sexx"])

    def refuse(*_, **__):  # as the system would, were the tests not run by root
        raise PermissionError(13, "denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match="permission denied"):
        ask(veterans)
    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(FileError, match="cannot be read: permission denied"):
        ask(tmp_path)


def test_texts_that_do_not_parse(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a.csv").write_text("sex,age\n" + "f,3\n" * 20_000)
    (folder / "b.csv").write_text("sex,age\nf,3\nm\n")
    with pytest.raises(FileError, match=r"'b.csv'.* line 3"):
        keyhole.risk(folder, keys=["sex"], engine="spark")
    (folder / "b.csv").write_text("age,sex\n3,f\n")
    with pytest.raises(FileError, match=r"'b.csv' must have the same columns"):
        keyhole.risk(folder, keys=["sex"], engine="spark")


def test_columns_that_hold_lists(spark):
    frame = spark.createDataFrame([([1],), ([2],)], "lists array<int>")
    with pytest.raises(ColumnError, match="must hold one value in each cell"):
        keyhole.risk(frame, keys=["lists"])


def test_no_records(spark):
    empty = spark.createDataFrame([], "sex string, age int")
    with pytest.raises(FileError, match="no records"):
        keyhole.risk(empty, keys=["sex"])


# The command line.


def test_the_command_line(veterans, capsys):
    asked = ["select", str(veterans), "--candidates", "sex,ms,homstate", "--limit", "0.1", "--json"]
    assert run([*asked, "--engine", "spark", "--master", "local[2,2]"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert run(asked) == 0
    assert found == json.loads(capsys.readouterr().out) | {"engine": "spark"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("risk {} --keys sex --master local[2]", "master is for counting on Spark.*--engine spark"),
        ("risk {} --keys sex --engine spark --memory 1GB", "are for counting on disk"),
        ("risk {} --keys sex --engine spark --master here", "master must be"),
        ("risk {} --keys sex --engine spark --records o.csv", r"one row per record \(--records\)"),
        ("risk {} --keys sex --engine spark --limit 0.1", r"the cheapest fix \(limit\)"),
        ("risk hdfs://host/people.parquet --keys sex --engine spark", "Got an address instead"),
        ("uniques {} --keys sex,ms --engine spark", "memory or disk for minimal uniques"),
        (
            "frontier {} --candidates sex,ms --limit 0.1 --engine spark",
            "memory or disk for the fro",
        ),
        ("screen {} --engine spark", "memory or disk for examining what columns hold"),
    ],
)
def test_the_command_line_says_what_is_wrong(veterans, capsys, asked, said):
    assert run(asked.replace("{}", str(veterans)).split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("keyhole: ") == 1
    assert re.search(said, err)


def test_masters_paths_and_names_are_told():
    from keyhole.spark.sources import called, escaped

    masters = ("local", "local[3,2]", "local-cluster[2,3,1024]")
    assert [session._cores(one) for one in masters] == [1, 3, 6]
    assert [session.master_problems(one) == [] for one in ("local[2]", "locall")] == [True, False]
    assert called("hdfs://host/census/2020.parquet") == "2020"
    assert escaped(Path("people[1].parquet")) == r"people\[1\].parquet"
