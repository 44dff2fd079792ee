"""Whole variables: columns that must never be real are drawn for every record."""

import json
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import keyhole
from keyhole.core import extras
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.errors import InputError, OptionError
from keyhole.synthesis.design import make_design
from keyhole.synthesis.marginals import compare_marginals, density_differences
from keyhole.synthesis.trees import LEAF, fit_tree

ASKED = {"keys": ["sex", "age", "race1"], "targets": ["age", "race1", "income", "ms"], "seed": 5}
WHOLE = ["income", "ms"]


@pytest.fixture(scope="module")
def people():
    return veterans_sample(2_500, seed=3)


@pytest.fixture(
    scope="module", params=[{}, {"income": "tree", "ms": "tree"}], ids=["spline", "tree"]
)
def made(request, people):
    return keyhole.synthesise(people, **ASKED, whole=WHOLE, models=request.param, implicates=3)


def test_every_record_has_the_value_of_another(made, people):
    drawn, at_risk = made.implicates, made.designation.at_risk
    assert drawn.whole == made.choice.whole == tuple(n for n in made.targets if n in WHOLE)
    assert_array_equal(drawn.rows, np.arange(people.records))
    for donors in (*drawn.donors, drawn.placebo):
        for t, name in enumerate(drawn.targets):
            own = donors[:, t] == drawn.rows
            assert not own.any() if name in WHOLE else own[~at_risk].all()


def test_a_value_is_true_no_more_often_than_that_of_anybody_alike(made, people):
    """Of a placebo, which nobody is, as many values are met as of the truth."""
    drawn = made.implicates
    for name in WHOLE:
        t, codes = drawn.targets.index(name), people.codes(name).values
        placebo = codes[drawn.placebo[:, t]]
        true, met = (
            np.mean([codes[donors[:, t]] == one for donors in drawn.donors])
            for one in (codes, placebo)
        )
        spread = np.sqrt(met * (1 - met) / people.records) + 1 / people.records
        assert true < met + 4 * spread
        assert true < 1.3 * np.mean(codes == np.random.default_rng(0).permutation(codes)) + 0.01


def test_only_targets_change_and_the_result_is_that_of_the_seed(made, people):
    again = keyhole.synthesise(
        people, **ASKED, whole=WHOLE, models=made.parameters["models"], implicates=3
    )
    for i in range(1, 4):
        assert made.frame(i).equals(again.frame(i))
        assert made.frame(i).drop(ASKED["targets"]).equals(people.frame.drop(ASKED["targets"]))
    assert not made.frame(1).equals(made.frame(2))


def test_rules_distributions_and_relations_are_kept(made):
    missed = [goal.goal for goal in made.evaluation.goals if goal.met is False]
    assert not [name for name in missed if "rules" in name or "homogeneity" in name], missed
    assert made.evaluation.homogeneity.smallest > 0.05
    for one in made.evaluation.correlations.pairs:
        assert abs(one.difference) < 0.1


def test_who_was_at_risk_is_judged_by_what_is_not_drawn_for_all(made):
    """Everybody's income changes, and tells nobody who was designated."""
    found = made.evaluation
    assert found.visible.records <= made.at_risk < made.records
    assert found.constancy.records == found.visible.records
    assert found.changed.variables == tuple(n for n in made.targets if n not in WHOLE)


def test_the_release_says_which_columns_are_synthetic_throughout(made, tmp_path):
    out = made.save(tmp_path / "out")
    note = (out / "release" / "analysts-note.md").read_text()
    told = {name: "`" + "` and `".join(n for n in made.targets if (n in WHOLE) == name) + "`"
            for name in (True, False)}  # fmt: skip
    assert f"records values of {told[False]} were replaced" in note
    assert f"Of\n{told[True]} every value was replaced, in all records" in note
    assert ("leaves of trees" in note) == bool(made.parameters["models"])
    assert "T = ū + b/m" in note
    book = json.loads((out / "release" / "codebook.json").read_text())["variables"]
    assert {one["name"] for one in book if one.get("is_synthetic")} == set(WHOLE)
    assert json.loads((out / "internal" / "parameters.json").read_text())["whole"] == WHOLE


def test_a_sum_is_drawn_as_a_whole():
    random = np.random.default_rng(0)
    rent, cost = random.integers(1, 900, (2, 600)) * (random.random((2, 600)) < 0.8)
    frame = pl.DataFrame({"rent": rent, "cost": cost, "total": rent + cost})
    frame = frame.with_columns(
        area=pl.Series(random.integers(0, 30, 600)).cast(pl.String),
        age=pl.Series(random.integers(18, 90, 600)),
    )
    made = keyhole.synthesise(
        frame, keys=["area", "age"], targets=["age", "rent"], whole=["rent"], implicates=2, seed=1
    )
    assert set(made.choice.whole) == {"rent", "cost", "total"}
    for i in (1, 2):
        drawn = made.frame(i)
        assert (drawn["rent"] + drawn["cost"] == drawn["total"]).all()
        assert (drawn["rent"] != frame["rent"]).mean() > 0.6


def test_nobody_need_be_at_risk():
    frame = pl.DataFrame({"sex": [*"fm"] * 200, "pay": np.arange(400) % 97})
    made = keyhole.synthesise(frame, keys=["sex"], targets=["pay"], whole=["pay"], seed=1)
    assert (made.at_risk, made.replaced) == (0, 400)
    assert all((donors[:, 0] != made.implicates.rows).all() for donors in made.implicates.donors)
    assert made.summary()


def test_where_no_donor_keeps_the_rules_a_value_is_another_s_all_the_same():
    """Alone in a stratum there is no donor: the true value would be the only one left."""
    random = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"area": ["a"] * 150 + ["b"] * 149 + ["c"], "age": random.integers(18, 90, 300),
         "pay": random.integers(0, 10**6, 300)}
    )  # fmt: skip
    asked = {"keys": ["area", "age"], "targets": ["pay", "age"], "strata": ["area"], "seed": 3}
    made = keyhole.synthesise(frame, **asked, whole=["pay"], implicates=2, self_match=0)
    for i in (1, 2):
        assert made.frame(i)["pay"][299] != frame["pay"][299]
        assert made.frame(i)["age"][299] == frame["age"][299]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"whole": ["cp"]}, "whole names 'cp', which is not among targets"),
        ({"whole": ["nowhere"]}, "nowhere"),
        ({"whole": ["income"], "donors": "common"}, "whole needs donors by folds"),
        ({"whole": ["income"], "procedure": "paper"}, "whole needs donors by folds"),
        ({"whole": ["income", "income"]}, "income"),
        ({"models": {"ms": "quantile"}}, "models of 'ms' must be logistic, canonical or tree"),
    ],
)
def test_bad_options_are_told(people, more, message):
    with pytest.raises(InputError, match=message):
        keyhole.synthesise(people, **ASKED, **more)


@pytest.mark.parametrize(
    ("column", "message"),
    [([3] * 60, "'x', which has a single value"), ([None] * 60, "'x' is missing everywhere")],
)
def test_what_cannot_be_drawn_is_told(column, message):
    frame = pl.DataFrame({"a": [*range(30)] * 2, "x": pl.Series(column, dtype=pl.Int64)})
    with pytest.raises(InputError, match=message) as told:
        keyhole.synthesise(frame, keys=["a"], targets=["x"], whole=["x"], seed=1)
    assert "3" not in str(told.value)


def test_trees_without_scikit_learn_name_their_extra(people, monkeypatch):
    found = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda m: None if m == "sklearn" else found(m))
    with pytest.raises(OptionError, match=r"pip install 'keyhole\[trees\]'"):
        keyhole.synthesise(people, **ASKED, models={"income": "tree"})


# Trees


def test_a_tree_sees_what_an_additive_model_does_not():
    """The target is whether two columns differ: neither says anything by itself."""
    random = np.random.default_rng(0)
    a, b = random.integers(0, 2, (2, 400))
    y = np.where(a != b, "yes", "no")
    data = load(pl.DataFrame({"a": a, "b": b, "y": y}), kinds=dict.fromkeys("ab", "category"))
    design = make_design(data, ("y", "a", "b"), np.arange(400), knots=5)
    tree = fit_tree(design, "y", ("a", "b"), np.ones(400), seed=1)
    places = tree.predict(design.codes, np.arange(400))[:, 0]
    for place in np.unique(places):
        assert len(set(y[places == place])) == 1
    assert len(np.unique(places)) == 4


def test_leaves_have_enough_records_of_the_bootstrap_and_missing_is_apart():
    random = np.random.default_rng(1)
    x = random.integers(0, 50, 500)
    y = np.where(x < 20, None, x * 2 + random.integers(0, 3, 500))
    data = load(pl.DataFrame({"x": x, "y": pl.Series(y.tolist(), dtype=pl.Int64)}))
    design = make_design(data, ("y", "x"), np.arange(500), knots=5)
    weights = random.integers(0, 3, 500).astype(np.float32)
    tree = fit_tree(design, "y", ("x",), weights, seed=1)
    places = tree.predict(design.codes, np.arange(500))[:, 0]
    blank = x < 20
    assert not set(places[blank]) & set(places[~blank])
    counts = np.unique(places[weights > 0], return_counts=True)[1]
    assert counts.min() >= LEAF
    assert 0 < places.min() <= places.max() <= 50


# Marginals


def test_density_difference_by_hand():
    """Shares 1/2, 1/4, 1/4 and 0 become 1/4 each: half of a quarter and three quarters moved."""
    a, b = np.array([[0, 0, 0, 1], [0, 0, 1, 1]]), np.array([[0, 0, 1, 0], [0, 1, 0, 1]])
    assert density_differences([a, b]).tolist() == [0.5]
    other = np.array([[0, 0], [1, 1], [0, 0]])
    assert density_differences([other]).tolist() == [2.0, 0.0]


@pytest.fixture(scope="module")
def marginals(made):
    seed, relations = ASKED["seed"], made.evaluation.relations
    return compare_marginals(made.implicates, made.keys, relations, seed=seed)


def test_marginals_are_those_of_a_slow_twin(made, people, marginals):
    """Of coarse columns, group by group in Polars."""
    names = ["sex", "race1", "ms", "ethnic"]
    found = {tuple(sorted(one.columns)): one for one in marginals}
    for columns in combinations(names, 3):
        if not set(columns) & set(made.targets):
            continue
        gaps = []
        for i in range(1, 4):
            sides = [
                frame.group_by(columns).agg(pl.len() / people.records)
                for frame in (people.frame, made.frame(i))
            ]
            joined = sides[0].join(sides[1], on=columns, how="full", nulls_equal=True)
            gap = joined["len"].fill_null(0) - joined["len_right"].fill_null(0)
            gaps.append(gap.abs().sum())
        one = found[tuple(sorted(columns))]
        assert one.difference == pytest.approx(np.mean(gaps))
        assert 0 < one.chance < 1


def test_score_is_that_of_the_mean_difference(made, marginals):
    found = made.evaluation.marginals
    differences = [one.difference for one in marginals]
    assert found.score == pytest.approx((2 - np.mean(differences)) * 500)
    assert found.score > found.chance - 60
    assert [one.difference for one in found.worst] == sorted(differences, reverse=True)[:10]
    mine = [one.difference for one in marginals if "income" in one.columns]
    (income,) = (one for one in found.columns if one.columns == ("income",))
    assert income.difference == pytest.approx(np.mean(mine))
    assert found.count == len(marginals)


def test_the_picture_shows_marginals_and_relations(made):
    chart = made.evaluation.plots()["relations"].to_dict()
    bars, cells = chart["hconcat"]
    assert "k-marginal score" in " ".join(chart["title"]["text"])
    drawn, held = (chart["datasets"][one["data"]["name"]] for one in (bars, cells))
    assert {row["column"] for row in drawn} >= set(made.targets)
    changes = {(row["target"], row["column"]): row["difference"] for row in held}
    assert changes["ms", "income"] == changes["income", "ms"]
