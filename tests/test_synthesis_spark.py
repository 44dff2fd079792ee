"""Synthesis on Spark: the values of memory, whatever the number of tasks and their failures."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from keyhole.cli.main import app
from keyhole.core.options import bind
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.errors import OptionError
from keyhole.spark import synthesis as drawn_there
from keyhole.spark.synthesis import draw_on
from keyhole.synthesis.chains import DrawingPlan
from keyhole.synthesis.constraints import Acceptance, find_constraints
from keyhole.synthesis.implicates import draw_implicates
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.synthesise import synthesise

TARGETS = ("race1", "age", "income")
KEYS = ("sex", "homstate", *TARGETS)
ASKED = {"keys": ["sex", "age", "race1", "homstate"], "targets": ["age", "race1"], "seed": 11}


@pytest.fixture(scope="module")
def people():
    frame = veterans_sample(1_500, seed=3).frame
    return load(frame.select("sex", "ms", "ag8r", "age", "race1", "homstate", "psx", "income"))


def plan_of(data, **options):
    """Replace some targets of some records, by rules, constraints, and no equal values for some."""
    random = np.random.default_rng(0)
    blank = random.random((data.records, len(TARGETS))) < 0.3
    rules = EditRules.parse({"old": "ms is missing or age >= 20"})
    constraints = find_constraints(data, TARGETS, ["ag8r", "sex"])
    assert constraints
    acceptance = Acceptance(
        data, TARGETS, rules, random.random(data.records) < 0.2, constraints, blank
    )
    predictors = {t: tuple(k for k in KEYS if k != t) for t in TARGETS}
    plan = DrawingPlan(
        TARGETS, predictors, blank, bind(synthesise, options), acceptance, frozenset(KEYS)
    )
    return replace(plan, alike=blank & (random.random(data.records) < 0.5)[:, None])


def assert_same(one, other):
    assert_array_equal(one.rows, other.rows)
    for here, there in zip(one.donors, other.donors, strict=True):
        assert_array_equal(here, there)
    assert (one.donors[0] != one.rows[:, None]).any()


def asked_of(plan):
    some = plan.replace.all(axis=1)
    return {"strata": ["sex", "ms"], "at_risk": some, "implicates": 2, "seed": 7}


@pytest.fixture(scope="module")
def drawn(people):
    """What memory draws, and by which plan."""
    plan = plan_of(people, folds=3)
    return plan, draw_implicates(people, plan, **asked_of(plan))


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_the_number_of_tasks_changes_no_value(people, drawn, spark, partitions):
    plan, here = drawn
    settings = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
    before = {name: spark.conf.get(name) for name in settings}
    try:
        spark.conf.set(settings[0], "false")
        spark.conf.set(settings[1], str(partitions))
        there = draw_implicates(people, plan, **asked_of(plan), drawing=partial(draw_on, spark))
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert_same(here, there)
    assert here.borrowed == there.borrowed > 0


def test_a_task_that_fails_once_changes_no_value(people, spark, tmp_path, monkeypatch):
    marker = str(tmp_path / "failed")
    make = drawn_there._drawing

    def failing(recipe, seed):
        draw = make(recipe, seed)

        def fail_once(key, table):
            from pathlib import Path

            if not Path(marker).exists():
                Path(marker).touch()
                raise RuntimeError("once")
            return draw(key, table)

        return fail_once

    monkeypatch.setattr(drawn_there, "_drawing", failing)
    plan = plan_of(people, match="k-closest", donor_model="refit", folds=2)
    asked = {**asked_of(plan), "strata": ["sex"], "implicates": 1}
    here = draw_implicates(people, plan, **asked)
    assert_same(here, draw_implicates(people, plan, **asked, drawing=partial(draw_on, spark)))
    assert (tmp_path / "failed").exists()


def test_a_synthesis_on_spark_is_that_of_memory(people, spark):
    asked = {**ASKED, "strata": ["sex"], "implicates": 2, "decoys": 0.5, "self_match": 100}
    frame = spark.createDataFrame(people.frame.to_arrow())
    here, there = synthesise(people, **asked), synthesise(frame, **asked)
    for implicate in (1, 2):
        assert here.frame(implicate).equals(there.frame(implicate))
        assert not here.frame(implicate).equals(people.frame)
    assert here.to_dict() == there.to_dict()


def test_a_folder_of_parquet_is_synthesised(people, spark, tmp_path):
    for part in range(2):
        people.frame.slice(750 * part, 750).write_parquet(tmp_path / f"{part}.parquet")
    asked = {**ASKED, "implicates": 1, "self_match": 0}
    there = synthesise(tmp_path, **asked, engine=spark)
    assert there.frame(1).sort("age", "income").height == people.records
    (tmp_path / "more.csv").write_text("a\n1\n")
    with pytest.raises(OptionError, match="Parquet"):
        synthesise(tmp_path, **asked, engine=spark)


def test_the_command_draws_on_spark(people, spark, tmp_path):
    file = people.save(tmp_path / "people.csv")
    words = ["synthesise", str(file), "--keys", "sex,age,race1,homstate", "--targets", "age,race1",
             "--seed", "11", "--implicates", "1", "--self-match", "0", "--json"]  # fmt: skip
    where = ["--engine", "spark", "--master", spark.conf.get("spark.master")]
    for place, more in (("here", []), ("there", where)):
        ran = CliRunner().invoke(app, [*words, "--out", str(tmp_path / place), *more])
        assert ran.exit_code == 0, ran.output
        assert json.loads(ran.stdout)["replaced"] > 0
    made = [tmp_path / place / "release" / "implicate-1.csv" for place in ("here", "there")]
    assert made[0].read_bytes() == made[1].read_bytes() != file.read_bytes()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"engine": "disk"}, "engine must be one of 'auto', 'memory', 'spark'"),
        ({"engine": "memory", "master": "local"}, "master is for counting on Spark"),
        ({"engine": "spark", "master": "locall"}, "master must be local"),
        ({"engine": "sparkk"}, "engine must be one of"),
    ],
)
def test_a_place_that_makes_no_sense_is_told(asked, said):
    with pytest.raises(OptionError, match=said):
        synthesise(pl.DataFrame({"a": [1]}), keys=["a"], targets=["a"], seed=1, **asked)
