"""Derived columns are columns: every verb, on every engine, as if the file had them."""

from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

import keyhole
from keyhole.cli.main import app
from keyhole.data.examples import veterans
from keyhole.data.reading import load
from keyhole.engines.choose import open_records
from keyhole.engines.opening import DataFile
from keyhole.errors import InputError

LINES = {
    "decade": "band(age, 10)",
    "state_group": "pool(homstate, 60)",
    "who": "join(sex, decade)",
    "rich": "top(income, 90000)",
}
KEYS = ["decade", "state_group", "who", "race1"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    world = veterans(6000, seed=4)
    parts = {"puf": world.sample, "eif": world.external, "iuf": world.truth}
    for name, part in parts.items():
        frame = getattr(part, "frame", part)
        frame.write_csv(folder / f"{name}.csv")
    whole = keyhole.load(folder / "puf.csv", derive=LINES).frame
    whole.with_columns(pl.col(pl.Enum).cast(pl.String)).write_parquet(folder / "whole.parquet")
    return folder


def ask(*words: str) -> dict:
    answer = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def refused(*words: str) -> str:
    answer = CliRunner().invoke(app, list(map(str, words)))
    assert isinstance(answer.exception, InputError)
    return str(answer.exception)


def figures(found: object) -> object:
    if isinstance(found, list):
        return [figures(one) for one in found]
    apart = ("engine", "derived", "seconds", "notes")
    is_table = isinstance(found, dict)
    return {k: figures(v) for k, v in found.items() if k not in apart} if is_table else found


DERIVE = [word for name, text in LINES.items() for word in ("--derive", f"{name} = {text}")]


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize(
    "verb",
    [
        ["risk", "--keys", ",".join(KEYS)],
        ["risk", "--keys", "sex,race1", "--by", "state_group"],
        ["uniques", "--keys", ",".join(KEYS), "--max-size", "2"],
        ["frontier", "--candidates", ",".join(KEYS), "--limit", "0.2"],
        ["select", "--candidates", "age|decade,state_group,race1", "--limit", "0.2"],
    ],
    ids=lambda words: " ".join(words[:1]),
)
def test_a_derived_column_is_a_column(files, verb, engine):
    name, *options = verb
    derived = ask(name, files / "puf.csv", *options, *DERIVE, "--engine", engine)
    written = ask(name, files / "whole.parquet", *options)
    assert figures(derived) == figures(written)
    assert derived["derived"] == LINES


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_codes_on_disk_are_those_in_memory(files, tmp_path, suffix):
    path = tmp_path / f"people{suffix}"
    keyhole.load(files / "puf.csv").save(path)
    here = load(path, derive=LINES, columns=KEYS, roles={"who": "key"})
    there = open_records(path, engine="disk", derive=LINES, columns=KEYS, roles={"who": "key"})
    assert set(there.names) == set(here.names) == set(KEYS)
    assert there.role("key") == here.role("key")
    for name in KEYS:
        assert there.codes(name).levels.equals(here.codes(name).levels)
        assert there.codes(name).values.tolist() == here.codes(name).values.tolist()
        assert there.variable(name) == here.variable(name)


def test_tables_protection_and_synthesis_use_them(files, tmp_path):
    table = ask("table", files / "puf.csv", "--rows", "decade", "--cols", "sex", *DERIVE)
    assert table["derived"] == LINES
    plan = tmp_path / "plan.toml"
    plan.write_text('[[step]]\nmethod = "drop"\ncolumns = ["age"]\n')
    out = tmp_path / "out.csv"
    ask("protect", files / "puf.csv", "--plan", plan, "--out", out, "--keys", "decade,sex", *DERIVE)
    assert {"decade", "who"} <= {*keyhole.load(out).names}
    assert "age" not in keyhole.load(out).names
    made = ask(
        "synthesise", files / "puf.csv", "--keys", "decade,sex,race1", "--targets", "race1",
        "--strata", "decade", "--seed", "7", "--implicates", "2", "--out", tmp_path / "synthetic",
        "--derive", "decade = band(age, 20)", "--drop", "puf_id,household",
    )  # fmt: skip
    assert made["derived"] == {"decade": "band(age, 20)"}
    again = ask("tabulate", tmp_path / "synthetic" / "release", "--rows", "half",
                "--derive", 'half = prefix(decade, 1)')  # fmt: skip
    assert again["derived"] == {"half": "prefix(decade, 1)"}


def test_a_study_derives_in_each_file_what_the_first_one_counted(files):
    lines = {"decade": "band(age, 10)", "states": "pool(homstate, 60)"}
    reading = {"derive": lines}
    asked = {"puf_id": "puf_id", "eif_id": "eif_id", "link": ["sex", "decade", "states"],
             "metric": "unicity", "permutations": 0}  # fmt: skip
    parts = {name: DataFile(files / f"{name}.csv", reading) for name in ("puf", "eif", "iuf")}
    found = keyhole.study(**parts, **asked)
    puf = keyhole.load(files / "puf.csv")
    held = puf.frame["homstate"].value_counts()
    kept = held.filter(pl.col("count") >= 60)["homstate"].to_list()

    def by_hand(name: str) -> pl.DataFrame:
        frame = keyhole.load(files / f"{name}.csv").frame
        decade = (pl.col("age") // 10).cast(pl.String)
        states = pl.when(pl.col("homstate").is_in(kept)).then("homstate").otherwise(
            pl.when(pl.col("homstate").is_not_null()).then(pl.lit("other")))  # fmt: skip
        return frame.with_columns(decade=decade, states=states)

    twin = keyhole.study(puf=by_hand("puf"), eif=by_hand("eif"), iuf=files / "iuf.csv", **asked)
    assert found.rates == twin.rates


def test_what_no_file_has_is_told(files):
    words = ["study", "--puf", files / "puf.csv", "--eif", files / "eif.csv", "--iuf",
             files / "iuf.csv", "--puf-id", "puf_id", "--eif-id", "eif_id", "--link", "sex,decade",
             "--derive", "decade = band(agee, 10)"]  # fmt: skip
    assert "derive makes 'decade' from 'agee', which is a column of none" in refused(*words)


def test_spark_refuses(files):
    words = ["risk", str(files / "puf.csv"), "--keys", "decade", "--engine", "spark", *DERIVE]
    assert "engine must be memory or disk for derived columns (derive)" in refused(*words)


def test_text_says_what_was_derived(files):
    words = ["risk", str(files / "puf.csv"), "--keys", "decade", "--derive", LINES["decade"]]
    assert "'=' is expected" in refused(*words)  # a line has a name
    words[-1] = "decade = band(age, 10)"
    answer = CliRunner().invoke(app, words)
    assert answer.stdout.endswith("Derived: decade = band(age, 10).\n")


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_groups_of_several_columns_are_their_combinations(files, engine):
    found = ask("risk", files / "puf.csv", "--keys", "race1,ms", "--by", "sex,decade", *DERIVE,
                "--engine", engine)  # fmt: skip
    assert found["by"] == "sex, decade"
    whole = pl.read_parquet(files / "whole.parquet")
    twin = whole.group_by("sex", "decade").len()
    told = {one["group"]: one["records"] for one in found["groups"]}
    assert told == {f"{sex}, {decade}": n for sex, decade, n in twin.rows()}
    chosen = ask("select", files / "puf.csv", "--candidates", "race1,ms", "--limit", "0.5", "--by",
                 "sex,decade", *DERIVE, "--engine", engine)  # fmt: skip
    assert {one["group"] for one in chosen["groups"]} == {*told}
    alone = ask("risk", files / "puf.csv", "--keys", "race1,ms", "--by", "sex")
    assert alone["by"] == "sex"
