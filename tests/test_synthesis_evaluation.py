"""The evaluation of a synthesis on cases worked by hand, and against slow twins."""

import dataclasses
import json
from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.charts import save_chart
from keyhole.core.options import bind
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.errors import OptionError
from keyhole.synthesis import regressions
from keyhole.synthesis.chains import DrawingPlan
from keyhole.synthesis.changes import (
    LevelChanges,
    _steps,
    changes_after_attack,
    changes_by_level,
    count_changes,
    reconstruct,
)
from keyhole.synthesis.constraints import Acceptance
from keyhole.synthesis.designate import designate
from keyhole.synthesis.evaluation import MOST_CATEGORIES, _bins, _categories, evaluate, target_bars
from keyhole.synthesis.goals import (
    GoalLimits,
    correlations_goal,
    decoy_goal,
    homogeneity_goal,
    monotone_goal,
    regressions_goals,
    subgroups_goals,
)
from keyhole.synthesis.implicates import Implicates, draw_implicates
from keyhole.synthesis.regressions import (
    Regression,
    Regressions,
    SubgroupMean,
    SubgroupMeans,
    compare_regressions,
    compare_subgroups,
    fit_linear,
)
from keyhole.synthesis.remaining_risk import (
    VisibleChanges,
    match_to_self,
    true_exposure,
    visibly_changed,
)
from keyhole.synthesis.synthesise import synthesise
from keyhole.utility import Correlations, Distributions, combine
from keyhole.utility.coefficients import interval_overlap
from keyhole.utility.moments import Correlation

KINDS = {"sex": "category", "age": "measure", "state": "category"}


def made_of(data, targets, rows, *donors):
    """Implicates with the donors given, one list of lists an implicate."""
    given_ = tuple(np.array(one, dtype=np.int32) for one in donors)
    return Implicates(data, tuple(targets), np.array(rows, dtype=np.int64), given_, 1, 0)


def levelled(data, keys, level, **more):
    """A designation whose levels are given; 0 is not at risk."""
    found = designate(data, keys=keys, seed=1, **more)
    given_ = np.array(level, dtype=np.uint8)
    return dataclasses.replace(found, level=given_, at_risk=given_ > 0)


@pytest.fixture
def six():
    """Six people: 0 and 1 alike, 2 to 5 alone on sex, age and state."""
    frame = pl.DataFrame(
        {
            "sex": ["f", "f", "f", "m", "m", "m"],
            "age": [30, 30, 40, 40, 50, 60],
            "state": ["a", "a", "a", "b", None, "b"],
        }
    )
    return load(frame, kinds=KINDS)


# Changes by level


def test_changes_are_counted_by_value_and_a_missing_value_is_one(six):
    made = made_of(
        six,
        ["age", "state"],
        [2, 3, 4, 5],
        [[3, 0], [0, 4], [0, 0], [5, 5]],  # 40 from another is no change; state b to missing is
        [[2, 2], [4, 3], [4, 3], [0, 2]],
    )
    assert count_changes(made, ["age", "state"]).tolist() == [
        [0, 0, 0, 2, 2, 0],
        [0, 0, 0, 1, 1, 2],
    ]
    assert count_changes(made, ["state"]).tolist() == [[0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 1, 1]]


def test_table_1_by_hand(six):
    made = made_of(
        six,
        ["age", "state"],
        [2, 3, 4, 5],
        [[3, 0], [0, 4], [0, 0], [5, 5]],
        [[2, 2], [4, 3], [4, 3], [0, 2]],
    )
    found = levelled(six, ["sex", "age", "state"], [0, 0, 1, 1, 3, 3])
    counted = changes_by_level(made, found, ["age", "state"])
    low, medium, high = counted.rows
    assert low == LevelChanges("low", 2, 0.5, (0.5, 0.0, 0.5), 1.0)
    assert medium == LevelChanges("medium", 0, 0.0, None, None)
    assert high == LevelChanges("high", 2, 0.5, (0.5, 0.0, 0.5), 1.0)
    assert counted.average[0].shares == (0.5, 0.25, 0.25)
    assert counted.average[2].shares == (0.25, 0.25, 0.5)
    assert counted.average[2].mean == pytest.approx(1.25)


def test_records_at_risk_that_were_not_replaced_count_as_unchanged(six):
    made = made_of(six, ["age"], [5], [[0]])
    found = levelled(six, ["sex", "age"], [0, 0, 2, 2, 2, 2])
    assert changes_by_level(made, found, ["age"]).rows[1].shares == (0.75, 0.25)


def test_the_frame_has_the_shape_of_the_published_tables(six):
    made = made_of(six, ["age", "state"], [5], [[0, 0]])
    found = levelled(six, ["sex", "age"], [0, 0, 0, 0, 0, 3])
    frame = changes_by_level(made, found, ["age", "state"]).to_frame()
    published = ["table", "risk_level", "share_of_risk_set", "changed_0", "changed_1", "changed_2"]
    assert frame.columns == [*published, "mean"]
    assert frame["risk_level"].to_list() == ["low", "medium", "high"]
    assert frame.row(2)[2:] == (1.0, 0.0, 0.0, 1.0, 2.0)


# The mean or mode attack


def guesses(values, drawn, kind, seed=1):
    """The guess for one record beside a file that has all the values."""
    data = load(pl.DataFrame({"x": values}), kinds={"x": kind})
    made = made_of(data, ["x"], [0], *[[[row]] for row in drawn])
    codes = reconstruct(made, seed=seed)["x"]
    at = int(codes.values[0])
    levels = data.codes("x").levels.to_list()
    if at < len(levels):
        return levels[at]
    return None if at < data.codes("x").size else "new"


def test_means_are_rounded_to_the_decimals_seen():
    assert guesses([30, 40, 50, 41], [0, 1, 2], "measure") == 40
    assert guesses([30, 41, 50], [0, 0, 1, 2], "measure") == "new"  # 37.75 is 38: nobody's
    assert guesses([1.5, 2.0, 1.8, 9.0], [0, 1, 1], "measure") == 1.8  # 1.83
    assert guesses([1.25, 2.0, 1.8, 9.0], [0, 1, 1], "measure") == "new"  # 1.75
    assert guesses([1.25, 2.0, 1.75, 9.0], [0, 1, 1], "measure") == 1.75


def test_numbers_as_large_as_can_be_are_guessed_without_a_warning():
    assert guesses([1e308, 5e-324, 0.5], [0, 0], "measure") == 1e308
    assert guesses([1e300, 5e-324, 0.5], [2, 2], "measure") == 0.5
    assert guesses([-1.7e308, 1.7e308], [0, 0], "measure") == -1.7e308


def test_numbers_as_large_as_can_be_are_drawn_as_categories():
    data = load(pl.DataFrame({"x": np.linspace(-1, 1, 30) * 1.7e308}), kinds={"x": "measure"})
    bars = target_bars(made_of(data, ["x"], [0], [[1]]), "x")
    assert not bars.ordered
    assert sum(bars.original) == pytest.approx(1)


def test_a_number_that_all_implicates_agree_on_is_kept_exactly():
    assert guesses([1 / 3, 0.1, 7.0], [1, 1, 1], "measure") == 0.1
    assert guesses([float("inf"), 2.0, 3.0], [0, 0], "measure") == float("inf")


def test_missing_numbers_are_outvoted_or_believed():
    assert guesses([10, None, 30, 20], [0, 2, 1], "measure") == 20
    assert guesses([10, None, 30, 20], [1, 1, 2], "measure") is None
    assert guesses([10, None, 30, 20], [1, 1], "measure") is None
    assert guesses([10, None, 30, 20], [1, 2], "measure") == 30  # half of them: a number


def test_modes_and_their_ties():
    assert guesses(["a", "b", "c"], [0, 1, 1], "category") == "b"
    assert guesses(["a", None, "c"], [1, 1, 2], "category") is None
    ties = Counter(guesses(["a", "b", "c"], [0, 0, 1, 1, 2], "category", s) for s in range(200))
    assert set(ties) == {"a", "b"}
    assert 60 < ties["a"] < 140
    again = [guesses(["a", "b", "c"], [0, 1, 2], "category", 5) for _ in range(3)]
    assert len(set(again)) == 1


def test_dates_are_guessed_by_mode():
    days = pl.Series(["2001-01-01", "2003-01-01", "2002-01-01"]).str.to_date()
    assert str(guesses(days, [0, 1, 1], "date")) == "2003-01-01"


def test_table_2_by_hand(six):
    made = made_of(
        six, ["age", "state"], [4, 5], [[2, 0], [0, 0]], [[5, 4], [2, 4]], [[4, 4], [5, 3]]
    )
    found = levelled(six, ["sex", "age"], [0, 0, 0, 0, 2, 2])
    guessed = reconstruct(made, seed=1)
    # Record 4: ages 40, 60, 50 make 50 as before; states a, missing, missing make missing as
    # before. Record 5: ages 30, 40, 60 make 43; states a, missing, b tie.
    assert guessed["age"].values[4] == six.codes("age").values[4]
    assert guessed["age"].values[5] >= six.codes("age").size
    table = changes_after_attack(made, found, guessed, ["age"])
    assert table.rows[1].shares == (0.5, 0.5)
    table = changes_after_attack(made, found, guessed, ["age", "state"])
    assert table.rows[1].shares[0] == 0.5


@given(
    st.lists(st.one_of(st.none(), st.integers(-300, 300)), min_size=2, max_size=12),
    st.data(),
)
def test_the_attack_equals_a_slow_twin(tenths, data):
    values = [None if x is None else x / 10 for x in tenths]
    rows = st.lists(st.integers(0, len(values) - 1), min_size=3, max_size=3)
    drawn = data.draw(st.lists(rows, min_size=1, max_size=6))
    who = [0, 1, len(values) - 1] if len(values) > 2 else [0, 1, 1]
    who = sorted(set(who))
    file = load(pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)}), kinds={"x": "measure"})
    made = made_of(file, ["x"], who, *[[[row] for row in one[: len(who)]] for one in drawn])
    changed = reconstruct(made, seed=0)["x"].values != file.codes("x").values
    whole = all(x % 10 == 0 for x in tenths if x is not None)
    for place, record in enumerate(who):
        got = [tenths[one[place]] for one in drawn]
        there = [Decimal(x) for x in got if x is not None]
        guess = None
        if 2 * len(there) >= len(got) and there:
            unit = Decimal(10 if whole else 1)
            mean = sum(there) / len(there) / unit
            guess = int(mean.quantize(Decimal(1), ROUND_HALF_EVEN) * unit)
        assert changed[record] == (guess != tenths[record])


# True exposure and what shows


def test_true_exposure_by_hand(six):
    keys = ["sex", "age", "state"]
    # 2 takes its age from 3, which is equal: still itself. 3 becomes somebody new who is alone.
    # 4 becomes 60, alone as before but not with its key. 5 becomes 30 of m: alone, not its key.
    made = made_of(six, ["age"], [2, 3, 4, 5], [[3], [0], [5], [0]])
    found = designate(six, keys=keys, seed=1)
    after = true_exposure(made, found, reconstruct(made, seed=1)).implicates[0]
    assert (after.unique_before, after.still) == (4, 1)
    assert after.exposure == 0.25
    # 3 and 5 are both m, 30, b now: not alone.
    assert (after.unique_after, after.nobody, after.laid_bare) == (2, 0.5, 0)


def test_a_unique_that_gets_company_is_no_longer_exposed(six):
    # 0 takes the age of 2, so that 2, unchanged, has company; 1 is laid bare.
    made = made_of(six, ["age"], [0], [[2]])
    found = designate(six, keys=["sex", "age", "state"], seed=1)
    after = true_exposure(made, found, reconstruct(made, seed=1)).implicates[0]
    assert (after.still, after.laid_bare, after.nobody) == (3, 0.25, 0)
    assert after.unique_after == 4


def test_true_exposure_of_the_reconstruction(six):
    # No implicate has record 5's age, but their mean does.
    made = made_of(six, ["age"], [5], [[4]], [[0]])
    frame = six.frame.with_columns(age=pl.Series([30, 30, 40, 40, 90, 60]))
    made = dataclasses.replace(made, data=load(frame, kinds=KINDS))
    found = designate(made.data, keys=["sex", "age"], seed=1)
    exposure = true_exposure(made, found, reconstruct(made, seed=1))
    was = int((found.level > 0).sum())
    assert exposure.worst == pytest.approx((was - 1) / was)
    assert exposure.reconstructed == 1.0


def test_only_the_designated_count_where_only_likely_ones_are_protected(six):
    made = made_of(six, ["age"], [5], [[0]])
    found = levelled(six, ["sex", "age"], [0, 0, 0, 0, 0, 3])
    guessed = reconstruct(made, seed=1)
    assert true_exposure(made, found, guessed).worst == 0.75
    likely = dataclasses.replace(found, least_probability=0.5)
    assert true_exposure(made, likely, guessed).worst == 0.0


def test_what_shows_by_hand(six):
    # Record 0 differs between implicates, 2 and 5 too, 3 is changed alike in both.
    made = made_of(six, ["age"], [0, 2, 3, 5], [[2], [0], [0], [4]], [[0], [4], [1], [5]])
    found = designate(six, keys=["sex", "age", "state"], seed=1)
    seen = visibly_changed(made, found)
    assert (seen.records, seen.replaced) == (3, 4)
    assert seen.p_unique == pytest.approx(2 / 3)


def test_with_one_implicate_nothing_shows(six):
    made = made_of(six, ["age"], [5], [[0]])
    seen = visibly_changed(made, designate(six, keys=["sex", "age"], seed=1))
    assert seen.p_unique is None
    assert seen.notes


def test_two_codes_for_missing_are_seen_to_differ():
    frame = pl.DataFrame({"x": [1, -8, -9, 2], "y": [1, 2, 3, 4]})
    data = load(frame, missing_codes={"x": [-8, -9]})
    made = made_of(data, ["x"], [0], [[1]], [[2]])
    assert visibly_changed(made, designate(data, keys=["x", "y"], seed=1)).records == 1


# Self-match


@pytest.fixture(scope="module")
def world():
    return veterans_sample(1_500)


KEYS = ("sex", "age", "race1", "homstate", "ms")
TARGETS = ("age", "race1", "ms")


def drawn(data, found, implicates=3, **options):
    plan = DrawingPlan(
        targets=TARGETS,
        predictors={t: tuple(k for k in KEYS if k != t) for t in TARGETS},
        replace=np.repeat(found.changed[:, None], len(TARGETS), axis=1),
        question=bind(synthesise, options),
        acceptance=Acceptance(data, TARGETS, None, None),
    )
    return draw_implicates(data, plan, strata=("sex",), implicates=implicates, seed=1)


@pytest.fixture(scope="module")
def made(world):
    found = designate(world, keys=KEYS, decoys=0.3, seed=1)
    return drawn(world, found), found


def test_who_is_not_changed_links_to_itself(world):
    found = designate(world, keys=KEYS, seed=1)
    rows = np.flatnonzero(found.at_risk)
    made = made_of(world, ["age"], rows, rows[:, None])
    linked = match_to_self(made, found, most=50, seed=1)
    assert {one.metric: one.rate for one in linked.metrics} == {"taxicab": 1, "unicity": 1}
    assert all(one.baseline.unchanged == 1 for one in linked.metrics)
    assert all(one.baseline.chance < 0.01 for one in linked.metrics)
    assert not any("unicity was left out" in note for note in linked.notes)


def test_who_is_changed_does_not(made):
    linked = match_to_self(*made, most=200, seed=1)
    taxicab = linked.metrics[0]
    assert taxicab.records == 200
    assert taxicab.rate < 0.2 < taxicab.baseline.unchanged
    low, high = taxicab.interval
    assert low <= taxicab.rate <= high
    assert "drawn at random" in " ".join(linked.notes)


def test_self_match_says_why_it_is_not_there(world):
    found = designate(world, keys=["age"], seed=1)
    rows = np.flatnonzero(found.at_risk)
    made = made_of(world, ["age"], rows, rows[:, None])
    assert "two key variables" in match_to_self(made, found, most=50, seed=1).notes[0]
    assert match_to_self(made, found, most=0, seed=1).worst is None


def test_keys_missing_in_all_records_drawn_do_not_link():
    """Four people at risk have no job: two keys link them; without an area too, one cannot."""
    people = {
        "age": [*range(20, 24), *range(30, 50)],
        "area": [*"abcd", *"efghijklmnopqrstuvwx"],
        "job": [None] * 4 + ["none"] * 20,
    }
    rows = np.arange(4)
    for names, rate in ((("age", "area", "job"), 1.0), (("age", "job"), 0.0)):
        kinds = dict.fromkeys(names, "category")
        data = load(pl.DataFrame({name: people[name] for name in names}), kinds=kinds)
        found = levelled(data, list(names), [1] * 4 + [0] * 20)
        linked = match_to_self(made_of(data, ["age"], rows, rows[:, None]), found, most=9, seed=1)
        assert [one.rate for one in linked.metrics] == [rate, rate]


# Goals


def table_of(*means, records=100):
    names = ("low", "medium", "high")
    sizes = [records] * 3 if isinstance(records, int) else records
    rows = [
        LevelChanges(name, size, size / sum(sizes), (0.0, 1.0), mean)
        for name, size, mean in zip(names, sizes, means, strict=True)
    ]
    return tuple(rows)


def test_change_must_not_fall_with_the_level():
    assert monotone_goal(table_of(1.0, 1.0, 1.2)).met is True
    assert monotone_goal(table_of(1.0, 1.3, 1.2)).met is False
    assert "change 2" in monotone_goal(table_of(1.0, 1.3, 1.2)).advice


def test_levels_of_few_records_are_not_judged():
    goal = monotone_goal(table_of(1.0, 1.3, 1.2, records=(100, 100, 29)))
    assert goal.met is True
    assert "high" in goal.advice
    assert monotone_goal(table_of(1.0, 1.3, 1.2, records=(5, 100, 29))).met is None


def test_decoys_must_reach_the_level_asked_for(six):
    found = designate(six, keys=["sex", "age"], decoys=1.0, seed=1)
    assert decoy_goal(VisibleChanges.counted(20, 20, 10, 10), found).met is True
    few = dataclasses.replace(found, decoy=np.zeros(6, dtype=bool))
    goal = decoy_goal(VisibleChanges.counted(20, 20, 11, 11), few)
    assert goal.met is False
    assert "decoys 1.23" in goal.advice  # 9 decoys show for 11 uniques: 11 / 9 as many
    assert decoy_goal(VisibleChanges.counted(5), found).met is None
    assert (
        decoy_goal(
            VisibleChanges.counted(20, 20, 11, 11), dataclasses.replace(few, decoys_asked=0.0)
        ).met
        is None
    )


def test_limits_are_shares():
    with pytest.raises(OptionError, match="true_exposure"):
        GoalLimits(true_exposure=5)


# The whole


@pytest.fixture(scope="module")
def evaluation(made):
    return evaluate(
        *made,
        crosses=[("sex", "ms")],
        formula="income ~ age + C(ms)",
        self_match=100,
        seed=1,
    )


def test_the_figures_are_plain_values(evaluation):
    figures = evaluation.to_dict()
    wanted = ["changed_by_level", "mean_mode_attack", "homogeneity", "moments", "true_exposure"]
    wanted += ["visibly_changed", "self_match", "correlations", "propensity", "coefficients"]
    assert set(wanted) | {"goals", "notes"} <= set(figures)
    json.dumps(figures, allow_nan=False)
    assert figures["changed_by_level"]["variables"] == list(TARGETS)
    assert len(figures["changed_by_level"]["average"]) == 3
    assert len(figures["goals"]) == 16
    tested = {tuple(one["variables"]) for one in figures["homogeneity"]["tests"]}
    assert tested == {*((t,) for t in TARGETS), ("sex", "ms")}
    assert evaluation.to_frame()["table"].n_unique() == 3
    assert evaluation.to_frame().height == 3 * len(figures["changed_by_level"]["average"])
    assert evaluation.relations.to_frame().height == len(evaluation.relations.pairs)
    assert evaluation.regressions.to_frame().height == len(evaluation.regressions.models)


def test_the_goals_follow_the_figures(evaluation):
    figures = evaluation.to_dict()
    goals = {one["goal"].split(" (")[0]: one for one in figures["goals"]}
    smallest = min(one["adjusted"] for one in figures["homogeneity"]["tests"])
    assert goals["homogeneity"]["measured"] == smallest
    assert goals["homogeneity"]["met"] == (smallest >= 0.05)
    assert goals["true exposure"]["measured"] == max(
        one["true_exposure"] for one in figures["true_exposure"]["implicates"]
    )
    assert goals["mean number changed"]["measured"] == [
        row["mean"] for row in figures["changed_by_level"]["average"]
    ]


def test_a_failed_test_names_its_variable(evaluation):
    goal = homogeneity_goal(evaluation.homogeneity, GoalLimits(p=1.0))
    assert goal.met == (evaluation.homogeneity.smallest >= 1.0)
    tests = evaluation.homogeneity.tests
    worse = dataclasses.replace(tests[0], adjusted=0.001)
    found = dataclasses.replace(evaluation.homogeneity, tests=(worse, *tests[1:]))
    goal = homogeneity_goal(found, GoalLimits())
    assert goal.met is False
    assert tests[0].name in goal.advice


@pytest.mark.parametrize(("changed", "met"), [(5, None), (6, True)])
def test_a_distribution_is_judged_from_two_changes_a_degree_of_freedom(evaluation, changed, met):
    one = evaluation.homogeneity.tests[0]
    test = dataclasses.replace(one.test, changed=changed, df=3, categories=4)
    found = Distributions((dataclasses.replace(one, test=test, adjusted=0.9),), 10)
    goal = homogeneity_goal(found, GoalLimits())
    assert (goal.met, goal.advice.startswith("Too few")) == (met, met is None)


def test_the_same_seed_gives_the_same_evaluation(made, evaluation):
    again = evaluate(*made, self_match=100, seed=1)
    assert again.mean_mode == evaluation.mean_mode
    assert again.self_match == evaluation.self_match


def test_progress_rises_to_one(made):
    seen = []
    evaluate(*made, self_match=10, seed=1, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_correlations_of_pairs_without_a_target_are_left_out(evaluation):
    pairs = evaluation.correlations.pairs
    assert pairs
    assert all(one.first in TARGETS or one.second in TARGETS for one in pairs)


def test_pictures_are_drawn(evaluation, tmp_path):
    for name, chart in evaluation.plots().items():
        assert save_chart(chart, tmp_path / f"{name}.png").stat().st_size > 5_000
    titles = evaluation.plot().to_dict()["title"]["text"]
    assert "variables changed" in " ".join(titles)


def test_one_implicate_is_evaluated_too(world):
    found = designate(world, keys=KEYS, seed=1)
    evaluation = evaluate(drawn(world, found, implicates=1), found, self_match=50, seed=1)
    figures = evaluation.to_dict()
    assert figures["visibly_changed"]["p_unique"] is None
    assert figures["changed_by_level"]["rows"] == figures["mean_mode_attack"]["rows"]
    attack = next(one for one in figures["goals"] if "attack" in one["goal"])
    assert (attack["met"], attack["measured"]) == (None, None)
    assert "one implicate" in attack["advice"].lower()
    assert "mean or mode" not in evaluation.exposure.summary()
    assert evaluation.plots()
    assert "Goals" in evaluation.summary()


# What must not be told


def test_rare_categories_and_extreme_numbers_are_not_named():
    random = np.random.default_rng(1)
    job = np.array(["clerk"] * 100 + ["nurse"] * 98 + ["astronaut", "astronaut"])
    income = random.integers(20, 60, 200) * 1000.0
    income[0] = 7_654_321.0
    ship = np.array(["submarine"] * 2 + ["carrier", "frigate"] * 99)
    area = random.integers(1, 6, 200)
    frame = pl.DataFrame({"job": job, "income": income, "area": area, "ship": ship})
    data = load(frame, kinds={"job": "category", "income": "measure", "area": "category"})
    found = designate(data, keys=["job", "income", "area"], seed=1)
    rows = np.flatnonzero(found.at_risk)
    donors = [random.permutation(rows)[:, None].repeat(2, axis=1) for _ in range(2)]
    made = made_of(data, ["job", "income"], rows, *donors)
    evaluation = evaluate(made, found, formula="income ~ C(ship)", self_match=20, seed=1)
    charts = json.dumps([chart.to_dict() for chart in evaluation.plots().values()])
    told = evaluation.summary() + json.dumps(evaluation.to_dict()) + charts
    assert [one.name for one in evaluation.coefficients.coefficients] == [
        "Intercept",
        "C(ship)[T.frigate]",
        "C(ship)[a rare category]",
    ]
    assert "astronaut" not in told
    assert "submarine" not in told
    assert "7654321" not in told
    assert "7,654" not in told
    assert "nurse" in charts
    bars = target_bars(made, "job")
    assert bars.labels == ("clerk", "nurse", "1 other")
    assert sum(bars.synthetic) == pytest.approx(1)


def test_bars_of_numbers_hold_every_record(made):
    bars = target_bars(made[0], "age")
    assert bars.ordered
    assert sum(bars.original) == pytest.approx(1)
    assert min(share for share in bars.original if share) * 1_500 >= 3
    assert all(
        a <= b <= c for a, b, c in zip(bars.lowest, bars.synthetic, bars.highest, strict=True)
    )


def test_bars_of_numbers_are_wider_where_fine_ones_hold_few():
    """Fifty each of 0 to 29, two of 37, a hundred of 60: only bars of 20 hide the two."""
    ages = [*list(range(30)) * 50, 37, 37, *[60] * 100]
    data = load(pl.DataFrame({"age": ages}), kinds={"age": "measure"})
    bars = target_bars(made_of(data, ["age"], [0], [[1]]), "age")
    held = [round(share * len(ages)) for share in bars.original]
    assert [count for count in held if count] == [1000, 502, 100]


# Bad questions


def test_a_model_that_cannot_be_fitted_costs_nothing_else(made):
    evaluation = evaluate(*made, formula="age ~ age + I(age)", self_match=0, seed=1)
    assert evaluation.coefficients is None
    assert any("not estimable" in note for note in evaluation.notes)


def test_the_panels_of_the_distributions_ask_for_one_legend():
    random = np.random.default_rng(2)
    columns = {name: random.integers(1, 6, 120) for name in ("job", "area", "ship")}
    data = load(pl.DataFrame(columns), kinds=dict.fromkeys(columns, "category"))
    found = designate(data, keys=list(columns), seed=1)
    rows = np.flatnonzero(found.at_risk)
    donors = random.permutation(rows)[:, None].repeat(3, axis=1)
    evaluation = evaluate(made_of(data, list(columns), rows, donors), found, self_match=20, seed=1)
    panels = evaluation.plots()["distributions"].to_dict()["concat"]
    asked = [layer["encoding"]["color"] for panel in panels for layer in panel["layer"]
             if "color" in layer["encoding"]]  # fmt: skip
    assert len(panels) == 3
    # Vega warns of panels that share a scale and ask for different legends.
    assert all(one["legend"] == asked[0]["legend"] is not None for one in asked)


# Regressions chosen from the data


def test_regressions_are_those_of_statsmodels(monkeypatch):
    """Every number is found again by formulas on the files, combined by hand."""
    import statsmodels.formula.api as smf

    random = np.random.default_rng(8)
    n = 900
    frame = pl.DataFrame({"race": random.choice([*"aaabbc"], n), "age": random.integers(20, 70, n)})
    frame = frame.with_columns(
        pay=pl.Series(random.normal(size=n) + frame["age"].to_numpy() / 20),
        sick=pl.Series(random.random(n) < 0.3).cast(pl.Int64),
    )
    frame = frame.with_columns(
        pay=pl.when(pl.Series(random.random(n) < 0.1)).then(None).otherwise(pl.col("pay"))
    )
    data = load(frame, kinds={"age": "measure", "pay": "measure", "sick": "category"})
    rows = np.sort(random.choice(n, 400, replace=False))
    donors = tuple(random.integers(n, size=(400, 2)).astype(np.int32) for _ in range(3))
    made = Implicates(data, ("race", "age"), rows, donors, 1, 0)
    found = compare_regressions(made, ["race", "age"])
    assert {one.outcome for one in found.models} == {
        "pay", "sick", "age", "race, its level 1 by size", "race, its level 2 by size",
    }  # fmt: skip
    spread = float(frame["age"].std(ddof=0))
    files = [frame, *(made.frame(i) for i in range(3))]
    plain = [
        one.with_columns(age=(pl.col("age") - frame["age"].mean()) / spread).to_pandas()
        for one in files
    ]
    formula = "pay ~ C(race == 'b') + C(race == 'c') + age"
    first, *rest = (smf.ols(formula, one).fit() for one in plain)
    q = np.stack([fit.params.to_numpy()[1:] for fit in rest])
    v = np.stack([fit.bse.to_numpy()[1:] ** 2 for fit in rest])
    combined = combine(q, v)
    before = first.params.to_numpy()[1:]
    inside = (combined.low <= before) & (before <= combined.high)
    [one] = [one for one in found.models if one.outcome == "pay"]
    assert (one.coefficients, one.kept) == (3, int(inside.sum()))
    off = np.abs(combined.estimate - before) / first.bse.to_numpy()[1:]
    assert one.largest == pytest.approx(float(off.max()))
    half = 1.959964 * first.bse.to_numpy()[1:]
    overlaps = [
        interval_overlap((b - h, b + h), (low, high))
        for b, h, low, high in zip(before, half, combined.low, combined.high, strict=True)
    ]
    assert one.overlap == pytest.approx(np.mean(overlaps), abs=1e-6)
    assert found.kept == sum(m.kept for m in found.models) / found.coefficients
    alone = compare_regressions(dataclasses.replace(made, donors=donors[:1]), ["race"])
    assert (alone.models, alone.kept, alone.overlap) == ((), None, None)
    monkeypatch.setattr(regressions, "LEAST_SUBGROUP", 1_000)
    assert compare_subgroups(made) == SubgroupMeans((), 0, 0)  # there are fewer records
    monkeypatch.setattr(regressions, "LEAST_SUBGROUP", 250)
    monkeypatch.setattr(regressions, "SHOWN", 1_000)
    compared = compare_subgroups(made)
    assert len(compared.means) == compared.compared
    terms = {"age": pl.col("age").cast(pl.Float64)}
    for place, level in enumerate("ab", 1):
        terms[f"race, its level {place} by size"] = (pl.col("race") == level).cast(pl.Float64)
    wanted, inside = {}, 0
    for name, column, level in [
        *(("age", "race", level) for level in "ab"),
        *((name, "sick", level) for name in terms for level in (0, 1)),
    ]:
        here = [
            one.filter(pl.col(column) == level).select(terms[name]).to_series() for one in files
        ]
        before, *after = here
        means = np.array([one.mean() for one in after])
        # The variance of all implicates together, since their means differ a little.
        pooled = np.mean([(one**2).mean() for one in after]) - means.mean() ** 2
        variance = (before.var(ddof=0) + pooled) / 2
        off, reach = abs(means.mean() - before.mean()), 0.0
        for tests in (compared.compared, 1):
            own = combine(means, [variance / len(before)] * 3, level=1 - 0.05 / tests).estimates
            if tests > 1:
                reach = own["high"][0] - own["estimate"][0]
        inside += off <= own["high"][0] - own["estimate"][0]
        figures = np.array([means.mean() - before.mean(), reach]) / np.sqrt(variance)
        wanted[name, column, str(level)] = pytest.approx(figures.tolist())
    got = {
        (one.target, one.column, one.level): [one.difference, one.reach] for one in compared.means
    }
    assert got == wanted
    assert compared.inside == inside
    outside = [abs(one.difference) for one in compared.means if not one.kept]
    assert outside == sorted(outside, reverse=True)
    assert all(one.kept for one in compared.means[len(outside) :])
    assert compared.largest == max(outside, default=0.0)
    assert compared.kept == compared.inside / compared.compared


def test_a_subgroup_is_judged_by_its_interval_and_by_a_tolerance():
    def judge(*means, inside=9):
        found = SubgroupMeans(tuple(SubgroupMean("age", "race", *one) for one in means), 10, inside)
        return [goal.met for goal in subgroups_goals(found, GoalLimits())]

    small, off = ("a", 120, 0.3, 0.4), ("b", 5_000, -0.2, 0.05)
    assert judge(small) == [True, True]  # chance alone may do so
    assert judge(("c", 90_000, 0.08, 0.01)) == [True, True]  # within the tolerance
    assert judge(off, small) == [True, False]
    assert judge(small, inside=8) == [False, True]
    found = SubgroupMeans((SubgroupMean("age", "race", *off),), 10, 9)
    assert found.largest == 0.2
    assert "age where race is b." in subgroups_goals(found, GoalLimits())[1].advice
    nothing = subgroups_goals(SubgroupMeans((), 0, 0), GoalLimits())
    assert [goal.met for goal in nothing] == [None, None]


def test_a_model_with_a_column_that_follows_is_not_fitted():
    x = np.column_stack([np.ones(200), np.arange(200.0), 2 * np.arange(200.0)])
    assert fit_linear(x, np.arange(200.0)) is None
    assert fit_linear(x[:30, :2], np.arange(30.0)) is None
    assert fit_linear(x[:, :2], np.arange(200.0) * 3)[0] == pytest.approx([3.0])


def test_of_many_models_ten_are_shown():
    models = tuple(Regression(f"y{i}", 4, 3, 0.5, 2.0) for i in range(11))
    [table] = Regressions(models, 2).tables()
    assert [row[0] for row in table.rows] == [f"y{i}" for i in range(10)]
    assert table.notes[-1] == "10 of 11 models: those that differ most."
    [table] = Regressions(models[:10], 2).tables()
    assert (len(table.rows), len(table.notes)) == (10, 1)


def test_goals_of_regressions_and_correlations_name_what_to_try():
    limits = GoalLimits()
    bad, good = Regression("pay", 10, 5, 0.4, 9.0), Regression("age", 10, 10, 0.9, 1.0)
    kept, overlap = regressions_goals(Regressions((bad, good), 2), limits)
    assert (kept.measured, kept.met, overlap.met) == (0.75, False, False)
    assert kept.advice.startswith("pay. Let more columns predict")
    assert all(goal.met for goal in regressions_goals(Regressions((good,), 2), limits))
    assert [goal.met for goal in regressions_goals(Regressions((), 1), limits)] == [None, None]
    pair = Correlation("age", "pay", "pearson", 0.5, 0.42)
    for records, met in ((10_000, False), (100, True)):
        goal = correlations_goal(Correlations((pair,), 2), limits, records)
        assert (goal.met, goal.measured) == (met, pytest.approx(0.08))
        assert goal.advice
    assert correlations_goal(Correlations((), 2), limits, 100).met is None


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([0.5, 1.25], [50, 125]),
        ([1.0, 3.0], [1, 3]),
        ([1e-9, 3e-9], [1, 3]),
        ([1e-10, 3e-10], None),
        ([0.1, np.inf], None),
        ([1e-9], [1]),
    ],
)
def test_numbers_are_whole_in_units_of_their_last_decimal(values, steps):
    found, whole = _steps(pl.Series(values))
    assert whole == (steps is not None)
    assert found.tolist() == (values if steps is None else steps)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=15), st.integers(0, 4))
def test_only_categories_of_three_records_or_more_have_a_bar_of_their_own(sizes, missing):
    values = [f"v{i:02}" for i, size in enumerate(sizes) for _ in range(size)] + [None] * missing
    data = load(pl.DataFrame({"a": values}, schema={"a": pl.String}))
    codes = data.codes("a")
    counts = np.bincount(codes.values, minlength=codes.size).astype(float)
    places, labels = _categories(data, "a", counts, codes)
    each = dict(zip([*codes.levels, "missing"], counts, strict=False))
    frequent = sorted(
        (name for name in each if each[name] >= 3), key=lambda n: (-each[n], n == "missing")
    )
    named = [name for name in each if name in frequent[:MOST_CATEGORIES]]
    others = len(each) - len(named)
    ends = [f"{others} other{'s' * (others > 1)}"] if others else []
    assert labels == named + ends
    shown = [labels[place] for place in places]
    assert shown == [name if name in named else ends[0] for name in each]


@given(st.lists(st.integers(1, 400), min_size=30, max_size=90), st.integers(0, 2))
def test_no_bin_of_numbers_has_one_or_two_records(numbers, missing):
    data = load(pl.DataFrame({"a": [*numbers, *([None] * missing)]}, schema={"a": pl.Int64}))
    codes = data.codes("a")
    counts = np.bincount(codes.values, minlength=codes.size).astype(float)
    levels = codes.levels.cast(pl.Float64).to_numpy()
    places, labels = _bins(levels, counts, codes)
    held = Counter(places[: len(levels)].repeat(counts[: len(levels)].astype(int)).tolist())
    assert set(held.values()).isdisjoint({1, 2})
    assert (labels[-1] == "missing") == bool(missing)
    for level, place in zip(levels, places, strict=False):
        label = labels[place]
        if label.startswith("below"):
            assert level < float(label[6:])
        elif label != "all":
            assert level >= float(label.removesuffix(" or more"))


def test_bins_of_three_records_are_as_fine_as_those_of_more():
    found = []
    for records in (2, 3, 30):
        codes = load(pl.DataFrame({"a": [*range(20)] * records})).codes("a")
        found.append(_bins(np.arange(20.0), np.full(20, float(records)), codes)[1])
    assert found[1] == found[2]
    assert len(found[0]) < len(found[1]) == 21


def test_a_model_has_twenty_records_a_coefficient():
    random = np.random.default_rng(1)
    x, y = random.normal(size=(60, 3)), random.normal(size=60)
    slopes, _ = regressions.fit_linear(x, y)
    assert slopes == pytest.approx(np.linalg.lstsq(x, y, rcond=None)[0][1:])
    assert regressions.fit_linear(x[1:], y[1:]) is None
