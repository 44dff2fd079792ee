"""Implicates: who may give to whom, and that nothing else changes."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from keyhole.core.options import bind
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.synthesis import chains
from keyhole.synthesis.chains import DrawingPlan
from keyhole.synthesis.constraints import Acceptance
from keyhole.synthesis.implicates import LARGE_POOL, _pools, draw_implicates
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.synthesise import synthesise

TARGETS = ("race1", "ms", "age", "income")
KEYS = ("sex", "homstate", *TARGETS)


@pytest.fixture(scope="module")
def people():
    return veterans_sample(3_000, seed=3)


def plan_of(data, replace, *, rules=None, must_change=None, targets=TARGETS, **options):
    predictors = {t: tuple(k for k in KEYS if k != t) for t in targets}
    acceptance = Acceptance(data, targets, rules, must_change)
    return DrawingPlan(targets, predictors, replace, bind(synthesise, options), acceptance)


def some(data, share=0.3, targets=4, seed=0):
    chosen = np.random.default_rng(seed).random(data.records) < share
    return np.repeat(chosen[:, None], targets, axis=1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"donors": "common"},
        {"match": "k-closest", "cycles": 1},
        {"match": "weighted", "donor_model": "refit"},
        {"bootstrap": "all", "cycles": 2, "folds": 2},
        {"models": {"income": "quantile", "age": "linear"}, "folds": 2},
        {"models": {"income": "tree", "ms": "tree"}, "cycles": 1, "folds": 3},
    ],
)
def test_donors_are_others_of_the_own_subgroup(people, options):
    replace = some(people)
    plan = plan_of(people, replace, **options)
    drawn = draw_implicates(people, plan, strata=["sex"], implicates=2, seed=1)
    assert_array_equal(drawn.rows, np.flatnonzero(replace[:, 0]))
    sex = people.codes("sex").values
    for donors in drawn.donors:
        assert (donors != drawn.rows[:, None]).all()
        assert_array_equal(sex[donors], np.repeat(sex[drawn.rows][:, None], 4, axis=1))
        if options.get("donors") == "common":
            assert not replace[donors].any()


def test_only_what_was_asked_for_changes(people):
    replace = some(people)
    replace[:, 1:3] &= np.random.default_rng(5).random((people.records, 2)) < 0.5
    drawn = draw_implicates(people, plan_of(people, replace), implicates=1, seed=2)
    made = drawn.frame(0)
    assert made.schema == people.frame.schema
    assert made.columns == people.frame.columns
    for t, name in enumerate(TARGETS):
        kept = ~replace[:, t]
        assert made[name].filter(kept).equals(people.frame[name].filter(kept))
        assert set(made[name].unique()) <= set(people.frame[name].unique())
        differs = (made[name] != people.frame[name]).to_numpy()
        assert differs[replace[:, t]].mean() > 0.05
    others = [c for c in made.columns if c not in TARGETS]
    assert made.select(others).equals(people.frame.select(others))


@pytest.mark.parametrize("alike", [False, True])
def test_what_else_of_a_record_is_replaced_predicts_a_target(alike):
    random, n = np.random.default_rng(5), 8_000
    replaced, both = random.random(n) < 0.2, random.random(n) < 0.4
    origin = np.where(replaced & both, "here", random.choice(["there", "elsewhere"], n))
    likely = np.where(replaced & both, 0.9, 0.1)
    race = np.where(random.random(n) < likely, "rare", "other")
    frame = pl.DataFrame({"race": race, "origin": origin, "x": random.integers(0, 5, n)})
    data = load(frame, kinds=dict.fromkeys(frame.columns, "category"))
    # The race is drawn while nothing is known of the origin, but that it is replaced.
    names = ("race", "origin")
    replace = np.column_stack([replaced, replaced & both])
    predictors = {"race": ("origin", "x"), "origin": ("race", "x")}
    acceptance = Acceptance(data, names, None, None)
    marks = replace if alike else None
    plan = DrawingPlan(names, predictors, replace, bind(synthesise, {}), acceptance, alike=marks)
    made = draw_implicates(data, plan, implicates=1, seed=3).frame(0)
    drawn = made.filter(replace[:, 1])
    share = (drawn["race"] == "rare").mean()
    assert abs(share - 0.9) < 0.03 if alike else share < 0.8


def test_the_seed_decides_and_threads_do_not(people, monkeypatch):
    plan = plan_of(people, some(people))
    one = draw_implicates(people, plan, strata=["sex"], implicates=3, seed=7)
    monkeypatch.setattr(
        "keyhole.synthesis.implicates.in_threads", lambda work, items: [work(i) for i in items]
    )
    again = draw_implicates(people, plan, strata=["sex"], implicates=3, seed=7)
    other = draw_implicates(people, plan, strata=["sex"], implicates=3, seed=8)
    for a, b, c in zip(one.donors, again.donors, other.donors, strict=True):
        assert_array_equal(a, b)
        assert (a != c).mean() > 0.5
    assert (one.donors[0] != one.donors[1]).mean() > 0.5


def test_the_placebo_is_as_far_from_those_released_as_another_seeds_implicate():
    """In a large pool those released share their folds: the nearest donor is mostly the same."""
    random, n = np.random.default_rng(4), LARGE_POOL + 500
    x = random.permutation(n)
    data = load(pl.DataFrame({"x": x, "y": 10 * x}), kinds={"x": "measure", "y": "measure"})
    blank, acceptance = (random.random(n) < 0.9)[:, None], Acceptance(data, ("y",), None, None)
    options = bind(synthesise, {"implicates": 3})
    plan = DrawingPlan(("y",), {"y": ("x",)}, blank, options, acceptance)
    *released, placebo = draw_implicates(data, plan, implicates=4, seed=1).donors
    constant = np.logical_and.reduce([one == released[0] for one in released])
    of_seeds = [draw_implicates(data, plan, implicates=1, seed=s).donors[0] for s in (2, 3, 4, 5)]
    others = np.mean([(one == released[0])[constant].mean() for one in of_seeds])
    met = (placebo == released[0])[constant].mean()
    assert met == pytest.approx(others, abs=4 * np.sqrt(1.25 / 4 / constant.sum()))
    assert others < 0.7


def test_no_rule_that_was_kept_is_broken():
    random = np.random.default_rng(9)
    age = random.integers(18, 90, 2_000)
    served = (age >= 65) & (random.random(2_000) < 0.6)
    retired = np.where(
        age > 70, "yes", np.where(age < 60, "no", random.choice(["yes", "no"], 2_000))
    )
    served[:3] = True
    age[:3] = 20
    frame = pl.DataFrame({"age": age, "vietnam": served.astype(int), "retired": retired})
    data = load(frame, kinds={"age": "measure", "vietnam": "category", "retired": "category"})
    rules = EditRules.parse(
        {"service": "vietnam = 1 => age >= 65", "rest": "retired = 'yes' => age >= 60"}
    )
    before = rules.broken(data)
    targets = ("age", "retired")
    plan = DrawingPlan(
        targets,
        {"age": ("vietnam", "retired"), "retired": ("vietnam", "age")},
        np.ones((2_000, 2), dtype=bool),
        bind(synthesise, {}),
        Acceptance(data, targets, rules, None),
    )
    drawn = draw_implicates(data, plan, implicates=2, seed=3)
    for i in range(2):
        after = rules.broken(load(drawn.frame(i)))
        assert before.any()
        assert not (after & ~before).any()
        assert (drawn.donors[i] != drawn.rows[:, None]).all(axis=1).mean() > 0.95


def test_a_rare_level_is_drawn_as_often_as_it_was_held():
    """A model of many predictors knows its own few records; others would never be given theirs."""
    random = np.random.default_rng(8)
    columns = {f"x{i}": random.integers(0, 25, 1_500) for i in range(8)}
    rare = np.where(np.arange(1_500) < 12, 2, random.integers(0, 2, 1_500))
    frame = pl.DataFrame({"level": rare, **columns})
    data = load(frame, kinds=dict.fromkeys(frame.columns, "category"))
    plan = DrawingPlan(
        ("level",),
        {"level": tuple(columns)},
        np.ones((1_500, 1), dtype=bool),
        bind(synthesise, {}),
        Acceptance(data, ("level",), None, None),
    )
    drawn = draw_implicates(data, plan, implicates=40, seed=1)
    counts = [(drawn.column(i, "level") == 2).sum() for i in range(40)]
    assert np.mean(counts) == pytest.approx(12, abs=2)


def test_who_must_change_does(people):
    replace = some(people)
    must = np.random.default_rng(1).random(people.records) < 0.5
    plan = plan_of(people, replace, must_change=must)
    drawn = draw_implicates(people, plan, strata=["sex"], implicates=1, seed=4)
    made, sex = drawn.frame(0), people.codes("sex").values
    assert (sex[drawn.donors[0]] == sex[drawn.rows][:, None]).all()
    for name in TARGETS:
        same = (made[name] == people.frame[name]).to_numpy()
        assert not same[replace[:, 0] & must].any()
        # Incomes are never equal by chance, the others are.
        assert name == "income" or same[replace[:, 0] & ~must].any()


def test_values_that_may_not_return_go_to_records_alike():
    """The relation of the target and what predicts it is kept, though nobody has its own value."""
    random = np.random.default_rng(5)
    abroad = random.random(4_000) < 0.3
    origin = np.where(abroad, random.integers(0, 4, 4_000), random.integers(3, 8, 4_000))
    data = load(pl.DataFrame({"abroad": abroad, "origin": origin.astype(str)}))
    replace = random.random((4_000, 1)) < 0.5
    acceptance = Acceptance(data, ("origin",), None, replace)
    question = bind(synthesise, {})
    plan = DrawingPlan(("origin",), {"origin": ("abroad",)}, replace, question, acceptance)
    made = draw_implicates(data, plan, implicates=1, seed=1).frame(0)
    assert not (made["origin"] == data.frame["origin"]).to_numpy()[replace[:, 0]].any()
    tables = [
        one.group_by("abroad", "origin").agg(pl.len().cast(pl.Int64)).sort("abroad", "origin")
        for one in (data.frame, made)
    ]
    common = [one.filter(pl.col("len") > 20) for one in tables]
    assert common[0].height == common[1].height == 9
    assert made.height - common[1]["len"].sum() <= 2  # of a level that nobody alike has
    assert ((common[0]["len"] - common[1]["len"]).abs() < 0.15 * common[0]["len"]).all()


def test_level_scores_are_of_the_value_given():
    """What is drawn after a target of many levels goes with its new value, not with its old one."""
    random = np.random.default_rng(6)
    place = random.integers(0, 20, 1_200)
    noise = {f"x{i}": random.integers(0, 9, 1_200).astype(str) for i in range(12)}
    frame = pl.DataFrame({"place": place.astype(str), "rent": place + random.random(1_200)} | noise)
    data = load(frame, kinds={"rent": "measure"})
    replace = np.repeat(random.random((1_200, 1)) < 0.5, 2, axis=1)
    targets, others = ("place", "rent"), tuple(noise)
    acceptance = Acceptance(data, targets, None, None)
    predictors = {"place": others, "rent": ("place", *others)}
    question = bind(synthesise, {})
    plan = DrawingPlan(targets, predictors, replace, question, acceptance, frozenset(targets))
    made = draw_implicates(data, plan, implicates=1, seed=1).frame(0)
    given = made.filter(pl.Series(replace[:, 0]))
    moved = (given["place"].cast(pl.Int64) - given["rent"]).abs()
    assert (moved < 2).mean() > 0.9


def test_a_small_subgroup_borrows_a_model_but_not_donors(people):
    replace = some(people)
    drawn = draw_implicates(
        people, plan_of(people, replace), strata=["homstate"], implicates=1, seed=1
    )
    assert 0 < drawn.borrowed <= drawn.subgroups
    state = people.codes("homstate").values
    given = drawn.donors[0]
    assert (state[given] == state[drawn.rows][:, None]).all()


def test_a_record_without_a_donor_keeps_its_values():
    frame = pl.DataFrame(
        {"g": ["a"] * 30 + ["b"], "x": [*range(30), 99], "y": [1, 2, 3] * 10 + [7]}
    )
    data = load(frame, kinds={"x": "measure", "y": "category", "g": "category"})
    replace = np.ones((31, 1), dtype=bool)
    plan = DrawingPlan(
        ("y",), {"y": ("x",)}, replace, bind(synthesise, {}), Acceptance(data, ("y",), None, None)
    )
    drawn = draw_implicates(data, plan, strata=["g"], implicates=1, seed=1)
    assert drawn.donors[0][-1, 0] == 30
    assert (drawn.donors[0][:-1, 0] != drawn.rows[:-1]).all()


def test_records_at_risk_take_from_those_at_risk(people):
    at_risk = some(people, 0.4)[:, 0]
    drawn = draw_implicates(
        people, plan_of(people, some(people, 0.4)), at_risk=at_risk, implicates=1, seed=1
    )
    assert at_risk[drawn.donors[0]].all()


def test_a_target_with_nothing_to_predict_it_is_drawn_at_random():
    data = load(pl.DataFrame({"x": ["a", "b", "c", "d"] * 100}))
    plan = DrawingPlan(
        ("x",), {"x": ()}, np.ones((400, 1), dtype=bool), bind(synthesise, {}),
        Acceptance(data, ("x",), None, None),
    )  # fmt: skip
    made = draw_implicates(data, plan, implicates=1, seed=1).frame(0)
    counts = made["x"].value_counts()["count"].to_list()
    assert len(counts) == 4
    assert min(counts) > 60


def test_missing_values_keep_their_share(people):
    gone = np.random.default_rng(6).random(people.records) < 0.25
    frame = people.frame.with_columns(
        pl.when(pl.Series(gone)).then(None).otherwise(pl.col("income")).alias("income"),
        pl.when(pl.Series(np.roll(gone, 7))).then(None).otherwise(pl.col("ms")).alias("ms"),
    )
    data = load(frame, kinds={v.name: v.kind for v in people.variables})
    made = draw_implicates(data, plan_of(data, some(data, 0.5)), implicates=1, seed=1).frame(0)
    for name in ("income", "ms"):
        assert made[name].null_count() == pytest.approx(frame[name].null_count(), rel=0.1)


@pytest.mark.parametrize(("share", "apart"), [(0.4, True), (0.05, False)])
def test_records_at_risk_share_a_model_with_each_other_if_there_are_enough(people, share, apart):
    at_risk = np.random.default_rng(5).random(people.records) < share
    plan = plan_of(people, np.repeat(at_risk[:, None], 4, axis=1))
    pools = list(_pools(people, plan, ["sex", "homstate"], at_risk))
    served = np.sort(np.concatenate([rows for pool in pools for rows in pool.subgroups]))
    assert len(np.unique(served)) == len(served)
    assert set(np.flatnonzero(at_risk)) <= set(served)
    assert all(pool.borrows for pool in pools)
    mine = [pool for pool in pools if any(at_risk[rows].all() for rows in pool.subgroups)]
    for pool in mine:
        few = sum(len(rows) for rows in pool.subgroups if not at_risk[rows].all())
        assert (at_risk[pool.rows].mean() > 0.9) == apart or few
        assert len(pool.rows) >= 250


def test_subgroups_that_borrow_are_described_and_progress_is_told(people):
    at_risk = np.random.default_rng(5).random(people.records) < 0.4
    plan = plan_of(people, np.repeat(at_risk[:, None], 4, axis=1))
    told: list[float] = []
    drawn = draw_implicates(
        people, plan, strata=["sex", "homstate"], at_risk=at_risk, implicates=1, seed=1,
        progress=told.append,
    )  # fmt: skip
    pools = list(_pools(people, plan, ["sex", "homstate"], at_risk))
    sizes = [(len(rows), bool(at_risk[rows].all()))
             for pool in pools if pool.borrows for rows in pool.subgroups]  # fmt: skip
    assert [(one.records, one.at_risk) for one in drawn.borrowing] == sizes
    assert {risky for _, risky in sizes} == {True, False}
    assert told == [sum(len(p.rows) for p in pools[: n + 1]) / sum(len(p.rows) for p in pools)
                    for n in range(len(pools))]  # fmt: skip
    calm = draw_implicates(people, plan, strata=["sex", "homstate"], implicates=1, seed=1)
    assert calm.borrowing
    assert not any(one.at_risk for one in calm.borrowing)


@pytest.mark.parametrize("enough", [3, 4])
def test_shares_are_fitted_to_records_that_a_fold_leaves_and_to_those_alike(monkeypatch, enough):
    """By hand: records 0 and 1 have a fold each, the others a third; some are marked as alike."""
    asked = []
    monkeypatch.setattr(chains, "fit_shares", lambda *given: asked.append(given) or len(asked))
    marks = np.zeros((8, 1), dtype=bool)
    marks[2 : 2 + enough] = True
    plan = SimpleNamespace(
        targets=("job",), alike=marks, question=SimpleNamespace(donors="folds", folds=3),
        replace=np.zeros((8, 1), dtype=bool),
    )  # fmt: skip
    plan.replace[:2] = True

    def folds():
        made = chains.Folds(plan, "design", np.arange(8), np.random.default_rng(1))
        made.number = np.array([0, 1, 2, 2, 2, 2, 2, 2])
        return partial(made.shares, 0, ("sex",))

    shares = folds()
    assert [shares(0, False), shares(1, False), shares(0, False), shares(0, True)] == [1, 2, 1, 3]
    assert [given[:3] for given in asked] == [("design", "job", ("sex",))] * 3
    rows = [given[3].tolist() for given in asked]
    assert rows[:2] == [[1, *range(2, 8)], [0, *range(2, 8)]]
    assert rows[2] == ([2, 3, 4, 5] if enough == chains.LEAST_ALIKE else rows[0])
    plan.alike = None
    folds()(0, True)
    assert asked[3][3].tolist() == rows[0]
    plan.question.donors = "common"
    folds()(0, False)
    assert asked[4][3].tolist() == [*range(2, 8)], "no record that is blanked in any fold"
