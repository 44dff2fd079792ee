"""What targets and other columns say together: kept, measured, never contradicted."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import keyhole
from keyhole.cli.main import run
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.errors import InputError, OptionError
from keyhole.synthesis import planning
from keyhole.synthesis.associations import (
    Association,
    Relations,
    associate,
    compare_relations,
    related,
)
from keyhole.synthesis.constancy import Constancy
from keyhole.synthesis.constraints import find_constraints, revealing_columns
from keyhole.synthesis.design import make_level_scores, scores_name
from keyhole.synthesis.evaluation import pool_rare
from keyhole.synthesis.goals import (
    GoalLimits,
    constancy_goals,
    differences_goal,
    exposure_goals,
    homogeneity_goal,
    relations_goal,
    rules_goal,
)
from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.remaining_risk import contradictions
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.targets import predicts

KEYS = ["sex", "age", "race1", "ms", "psx"]
TARGETS = ["age", "race1", "ms", "income"]
NAMED = ["puf_id", "household"]


@pytest.fixture(scope="module")
def people():
    return veterans_sample(6_000, seed=1)


@pytest.fixture(scope="module")
def made(people):
    return keyhole.synthesise(
        people, keys=KEYS, targets=TARGETS, strata=["sex"], implicates=2, seed=2718
    )


@pytest.fixture(scope="module")
def targeted(people):
    return keyhole.synthesise(
        people, keys=KEYS, targets=TARGETS, strata=["sex"], implicates=2, seed=2718, targeted=True
    )


def slow_chi2(a, b):
    table = np.zeros((a.max() + 1, b.max() + 1))
    for x, y in zip(a, b, strict=True):
        table[x, y] += 1
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    return ((table - expected) ** 2 / expected).sum(), (len(table) - 1) * (len(table.T) - 1)


@pytest.mark.parametrize("seed", range(5))
def test_the_statistic_is_that_of_the_whole_table(seed):
    random = np.random.default_rng(seed)
    a, b = random.integers(0, 7, 300), random.integers(0, 4, 300) * 2
    found = associate(a, b)
    assert (found.statistic, found.df) == pytest.approx(slow_chi2(a, b))
    assert associate(a * 0, b) == Association(0.0, 0.0, 0, 1)


def test_chance_is_what_unrelated_columns_reach():
    random = np.random.default_rng(1)
    tried = [associate(random.integers(0, 7, 900), random.integers(0, 9, 900)) for _ in range(300)]
    beyond = np.mean([one.v > replace(one, v=0.0).chance(900) for one in tried])
    assert 0.002 < beyond < 0.08


# Each record's own variables


def test_a_value_that_half_of_those_alike_have_may_return_to_them():
    """Six of ten born abroad are "a": the other four could not take it from all of them."""
    races = ["a"] * 6 + list("bcde") + list("bcdefbcdef") * 2 + ["a"] * 4
    born = ["abroad"] * 10 + ["here"] * 20 + ["here"] * 4
    data = keyhole.load(pl.DataFrame({"race": races * 2, "born": born * 2}))
    # The second half of the file is not at risk, and what is common there says nothing.
    at_risk = np.arange(data.records) < 34
    designation = SimpleNamespace(keys=("race",), at_risk=at_risk, level=at_risk * 1)
    choice = SimpleNamespace(targets=("race",), targeted=True, replace=np.ones((68, 1), bool))
    barred = planning._may_not_return(data, 0, designation, choice)
    assert barred.tolist() == [False] * 6 + [True] * 28 + [False] * 34


def test_what_makes_a_record_stand_out_never_returns(targeted, people):
    """Where it did, a quarter of the records were found again."""
    designation, choice, kept = targeted.designation, targeted.choice, 0
    for t, name in enumerate(choice.targets):
        codes = people.codes(name).values
        barred = planning._may_not_return(people, t, designation, choice)
        told = choice.replace[:, t] & designation.at_risk & ~barred
        assert told.mean() < 0.01  # half of those equal on another column have it
        blank = barred[targeted.implicates.rows]
        for donors in targeted.implicates.donors:
            kept += int((codes[donors[blank, t]] == codes[targeted.implicates.rows[blank]]).sum())
    stayed = [note for note in targeted.notes if "left unchanged" in note]
    assert kept <= (int(stayed[0].split()[0]) if stayed else 0) < 30
    assert targeted.evaluation.self_match.rate < 0.02
    assert targeted.evaluation.homogeneity.smallest > 0.05


def test_decoys_to_spare_are_put_back_and_nothing_is_drawn_twice(people, monkeypatch):
    draws = []
    plain = planning.draw_implicates
    monkeypatch.setattr(
        planning, "draw_implicates", lambda *a, **k: draws.append(plain(*a, **k)) or draws[-1]
    )
    options = {"keys": KEYS[:4], "targets": TARGETS[:3], "implicates": 3, "seed": 4}
    made = keyhole.synthesise(people, decoys=0.5, self_match=0, **options)
    assert len(draws) == 1
    found, drawn, before = made.designation, made.implicates, people.frame.select(TARGETS)
    frames = [made.frame(i).select(TARGETS) for i in (1, 2, 3)]
    same = ~found.changed
    assert all(frame.filter(same).equals(before.filter(same)) for frame in frames)
    seen = np.zeros(people.records, dtype=bool)
    for frame in frames[1:]:
        seen |= (frame.hash_rows() != frames[0].hash_rows()).to_numpy()
    unique = int((seen & found.at_risk).sum())  # with a cutoff of 2 all at risk are unique
    assert (seen & found.decoy).sum() == -(-unique // 2)  # exactly as many as are needed
    assert made.evaluation.visible.p_unique == pytest.approx(2 / 3, abs=1e-3)
    assert found.decoys == found.decoy.sum() < len(draws[0].rows) - found.risky
    assert set(drawn.rows.tolist()) == set(np.flatnonzero(found.changed).tolist())
    assert drawn.placebo.shape == drawn.donors[0].shape


def test_all_is_drawn_again_if_decoys_to_spare_are_too_few(people, monkeypatch):
    wanted = []
    plain = planning._draw
    monkeypatch.setattr(planning, "SPARE", 0.5)
    monkeypatch.setattr(planning, "_draw", lambda *a: wanted.append(a[1]) or plain(*a))
    options = {"keys": KEYS[:3], "targets": TARGETS[:2], "implicates": 2, "seed": 4}
    made = keyhole.synthesise(people, decoys=1, self_match=0, **options)
    assert wanted[0] == 0.5
    assert len(wanted) > 1
    assert made.evaluation.visible.p_unique > 0.5  # half of what was needed, every time
    assert len(wanted) == planning.ATTEMPTS


def test_what_nearly_follows_from_another_column_may_return():
    """Origin by birthplace: among ten of the island eight have one, elsewhere all are mixed."""
    born = np.array(["island"] * 10 + ["here"] * 40)
    origin = np.array(["b"] * 8 + ["a", "c"] + ["a", "b", "c", "d"] * 10)
    data = load(pl.DataFrame({"born": born, "origin": origin}))
    everybody = np.ones(50, dtype=np.bool_)
    designation = SimpleNamespace(keys=("origin",), at_risk=everybody, level=np.full(50, 3))
    choice = SimpleNamespace(targets=("origin",), targeted=True, replace=everybody[:, None])
    barred = planning._may_not_return(data, 0, designation, choice)
    assert (barred == ~((born == "island") & (origin == "b"))).all()


def test_bands_are_strata_that_are_not_released(people, tmp_path):
    banded = people.frame.with_columns(band=pl.col("age") // 20)
    asked = {"keys": ["sex", "age", "ms"], "targets": ["age", "ms"], "counted": ["ms"]}
    made = keyhole.synthesise(
        load(banded), **asked, strata=["band"], drop=["band", "ag8r", *NAMED], implicates=1, seed=1,
        out=tmp_path / "drawn", self_match=0,
    )  # fmt: skip
    (drawn,) = (tmp_path / "drawn" / "release").glob("implicate-1.*")
    assert "band" not in load(drawn).names
    assert (made.frame()["age"] // 20).equals(banded["band"])
    changed = made.evaluation.changed
    assert changed.variables == ("ms",)
    assert {len(row.shares) for row in changed.rows if row.shares} == {2}
    with pytest.raises(InputError, match="counted names 'sex', which is not among targets"):
        keyhole.synthesise(people, **{**asked, "counted": ["sex"]}, seed=1)


# Relations


def test_relations_of_targets_with_all_columns_are_kept(made):
    """Race and state, and race and ethnicity, lost half of their V while nobody looked."""
    found = {(one.target, one.column): one for one in made.evaluation.relations.pairs}
    for name in ("homstate", "ethnic"):
        one = found["race1", name]
        assert one.original > 0.13
        assert one.difference > -0.045
    assert made.evaluation.relations.largest <= 0.05


def test_what_would_be_lost_predicts_and_nothing_else_does(made):
    chosen = made.parameters["predictors"]
    assert {"homstate", "ethnic"} <= set(chosen["race1"])
    assert not {"cp", "lsr", "means"} & set(chosen["race1"])


def test_a_relation_that_is_lost_is_told_by_name(people):
    blind = {target: [n for n in KEYS if n != target] for target in TARGETS}
    made = keyhole.synthesise(
        people, keys=KEYS, targets=TARGETS, strata=["sex"], implicates=1, seed=2718,
        predictors=blind, self_match=0,
    )  # fmt: skip
    goal = next(one for one in made.evaluation.goals if one.goal.startswith("relations"))
    assert goal.met is False
    assert "race1 with homstate" in goal.advice
    lost = made.to_dict()["relations"]["pairs"][0]
    assert lost["difference"] < -0.05


def test_relations_are_those_of_the_files(made):
    one = next(p for p in made.evaluation.relations.pairs if (p.target, p.column) == ("ms", "sex"))
    drawn = [load(made.frame(i)) for i in (1, 2)]
    by_hand = [
        associate(*(f.codes(name).values.astype(int) for name in ("ms", "sex"))).v for f in drawn
    ]
    assert one.synthetic == pytest.approx(np.mean(by_hand))


def test_a_single_record_is_no_relation():
    """Of two columns that have nothing to do with each other, but for one record rare on both."""
    random = np.random.default_rng(8)
    a, b = (random.integers(0, 3, 5_000) for _ in range(2))
    a[0] = b[0] = 9
    data = load(pl.DataFrame({"a": a.astype(str), "b": b.astype(str)}))
    assert associate(a, b).v > 0.4
    swapped = Implicates(data, ("a",), np.arange(2), (np.array([[1], [0]], np.int32),) * 2, 1, 0)
    assert compare_relations(swapped).largest == pytest.approx(0, abs=0.01)


def test_a_gist_tells_what_the_levels_tell():
    random = np.random.default_rng(3)
    state = random.integers(0, 40, 20_000)
    race = (random.random(20_000) < state / 80).astype(int)
    data = load(pl.DataFrame({"state": state.astype(str), "race": race}))
    scores = make_level_scores(data, {"race": ["state"]}, dimensions=2)[
        scores_name("state", "race")
    ].scores
    share = np.array([race[state == int(s)].mean() for s in data.codes("state").levels])
    assert abs(np.corrcoef(scores[:, 0], share)[0, 1]) > 0.999


def test_related_columns_come_closest_first():
    random = np.random.default_rng(1)
    a = random.integers(0, 4, 2_000)
    frame = pl.DataFrame(
        {
            "a": a,
            "noisy": np.where(random.random(2_000) < 0.3, random.integers(0, 4, 2_000), a),
            "copy": a,
            "coin": random.integers(0, 2, 2_000),
        }
    )
    assert related(load(frame), "a", frame.columns) == ("copy", "noisy")


# Ties


def test_no_record_says_what_no_original_says(people, made):
    seen = set(zip(people.frame["age"], people.frame["ag8r"], strict=True))
    for i in (1, 2):
        assert set(zip(made.frame(i)["age"], made.frame(i)["ag8r"], strict=True)) <= seen
    assert made.to_dict()["visibly_changed"]["contradictions"] == []


def test_contradictions_are_counted_and_named():
    ages = [*range(20, 80)] * 5
    data = load(
        pl.DataFrame({"age": ages}).with_columns(band=pl.col("age") // 10), kinds={"age": "measure"}
    )
    constraints = find_constraints(data, ["age"], ["band"])
    rows = np.array([0, 1, 2])
    donors = (np.array([[59], [1], [5]], dtype=np.int32),)  # 20 becomes 79
    found = contradictions(Implicates(data, ("age",), rows, donors, 1, 0), constraints)
    assert [(one.target, one.column, one.records) for one in found] == [("age", "band", 1)]


def test_targets_tied_to_each_other_stay_together(people):
    made = keyhole.synthesise(
        people, keys=KEYS, targets=["age", "ag8r", "race1"], implicates=1, seed=3, self_match=0
    )
    seen = set(zip(people.frame["age"], people.frame["ag8r"], strict=True))
    now = made.frame(1)
    assert set(zip(now["age"], now["ag8r"], strict=True)) <= seen
    assert (now["ag8r"] != people.frame["ag8r"]).any()


def test_a_column_that_tells_a_target_is_refused(people):
    frame = people.frame.drop(NAMED).with_columns(born=2024 - pl.col("age"))
    with pytest.raises(InputError, match="'born' determines target 'age'"):
        keyhole.synthesise(frame, keys=KEYS, targets=["age"], implicates=1, seed=1)
    assert revealing_columns(people, ["age", "race1"], ["sex", "ag8r", "homstate", "race1"]) == []


@pytest.mark.parametrize(("pairs", "tells"), [(100, True), (99, False)])
def test_a_column_tells_a_target_if_half_the_records_have_another_alike(pairs, tells):
    """Of 200 records; of fewer nobody knows."""
    where = [f"p{i // 2}" for i in range(2 * pairs)] + [f"s{i}" for i in range(200 - 2 * pairs)]
    frame = pl.DataFrame({"where": where, "war": [name[1:][-1] for name in where]})
    kinds = {"where": "category", "war": "category"}
    found = [("war", "where")] if tells else []
    assert revealing_columns(load(frame, kinds=kinds), ["war"], frame.columns) == found
    assert revealing_columns(load(frame[2:], kinds=kinds), ["war"], frame.columns) == []


def test_a_tie_allows_what_its_groups_have_and_anything_beside_few_records():
    """Of numbers all between the ends; a category of sixty levels binds, one of more does not."""
    ages = [*range(20, 80)] * 5
    frame = pl.DataFrame({"age": ages[:-5], "rare": [0] * 295}).with_columns(
        band=pl.when(pl.int_range(295) < 4).then(9).otherwise(pl.col("age") // 10 - 2)
    )
    data = load(frame.filter(pl.col("age") != 33), kinds={"age": "measure", "band": "category"})
    (found,) = find_constraints(data, ["age"], ["age", "rare", "band"])
    levels = data.codes("age").levels
    for group, level in enumerate(data.codes("band").levels):
        seen = data.frame.filter(pl.col("band") == level)["age"]
        wanted = [len(seen) < 5 or seen.min() <= age <= seen.max() for age in levels]
        assert found.allowed[: len(levels), group].tolist() == wanted
    assert find_constraints(data.replace(frame=data.frame[:199]), ["age"], ["band"]) == ()
    assert find_constraints(data.replace(frame=data.frame[:200]), ["age"], ["band"])
    for levels in (60, 61):
        own = pl.DataFrame({"a": [i % levels for i in range(600)]}).with_columns(b=pl.col("a"))
        tied = find_constraints(load(own, kinds=dict.fromkeys("ab", "category")), ["a"], ["b"])
        assert len(tied) == (levels == 60)


def test_a_recode_of_cents_is_a_tie_though_every_value_is_there_once():
    income = np.random.default_rng(1).lognormal(10, 1, 3_000)
    frame = pl.DataFrame({"income": income, "class": np.digitize(income, [1e4, 3e4, 9e4])})
    assert [t.column for t in find_constraints(load(frame), ["income"], ["class"])] == ["class"]


# Identifiers


def test_what_names_records_is_refused_and_what_is_declared_stays_at_home(people, made, tmp_path):
    path = tmp_path / "people.csv"
    people.frame.write_csv(path)
    with pytest.raises(InputError, match="'puf_id' is different in nearly every record") as error:
        keyhole.synthesise(path, keys=KEYS, targets=["age"], seed=1, out=tmp_path / "made")
    assert "'household'" in str(error.value)
    assert not (tmp_path / "made").exists()
    out = made.save(tmp_path / "made")
    there = pl.read_parquet(out / "release" / "implicate-1.parquet").columns
    assert not {*NAMED} & {*there}
    assert made.to_dict()["withheld"] == NAMED
    assert "puf_id, household" in made.tables()[0].to_text()


def test_a_name_is_enough_to_be_refused(people):
    frame = people.frame.drop(NAMED).with_columns(ssn=pl.lit(0))
    asked = {"keys": KEYS, "targets": ["age"], "implicates": 1, "seed": 1, "self_match": 0}
    with pytest.raises(InputError, match="direct identifier"):
        keyhole.synthesise(frame, **asked)
    assert "ssn" in keyhole.synthesise(frame, allow=["ssn"], **asked).frame(1).columns


def test_a_key_or_target_cannot_be_dropped(people, tmp_path, capsys):
    path = tmp_path / "people.csv"
    people.frame.write_csv(path)
    words = ["synthesise", str(path), "--keys", "sex,age", "--targets", "age", "--seed", "1"]
    assert run([*words, "--drop", "age", "--out", str(tmp_path / "made")]) == 2
    told = capsys.readouterr().err
    assert "--drop and --keys both name 'age'" in told
    assert "'puf_id'" in told  # all that is wrong at once
    assert not (tmp_path / "made").exists()


# Targeted


def test_targeted_replacement_meets_its_goals(targeted):
    """Rare values were replaced by ordinary ones, and one value alone came back too often."""
    assert targeted.evaluation.homogeneity.smallest >= 0.05
    assert targeted.evaluation.exposure.worst <= 0.05
    assert targeted.evaluation.self_match.worst.rate <= 0.06
    replaced = targeted.choice.replace[targeted.designation.at_risk].sum(axis=1)
    assert replaced.min() == 2
    assert replaced.mean() < 2.2


def test_donors_of_targeted_records_are_alike(targeted):
    names, replace = targeted.choice.targets, targeted.choice.replace
    risky = targeted.designation.at_risk
    at = names.index("race1")
    rows = targeted.implicates.rows
    donors = targeted.implicates.donors[0][:, at]
    taken = donors[(donors != rows) & risky[rows]]
    assert replace[taken, at].mean() > 0.95


def test_advice_names_no_option_that_is_taken(targeted, made):
    found = targeted.evaluation
    asked = {"targeted": True, "change": 1, "graded": False, "donors": "folds", "cycles": 1}
    strict = GoalLimits(p=1.0, true_exposure=0.0, self_match=0.0)
    told = homogeneity_goal(found.homogeneity, strict, asked).advice
    assert "targeted" not in told.replace("without targeted", "")
    assert "common" not in told
    assert "cycles" not in told
    advice = exposure_goals(made.evaluation.exposure, strict, TARGETS, asked)[0].advice
    assert "without targeted" in advice
    assert "change 1" not in advice
    assert "=" not in told + advice
    after = exposure_goals(
        made.evaluation.exposure, strict, TARGETS, {**asked, "match": "closest"}
    )[-1]
    assert "match k-closest" in after.advice
    after = exposure_goals(
        made.evaluation.exposure, strict, TARGETS, {**asked, "match": "k-closest"}
    )[-1]
    assert "match k-closest" not in after.advice


@pytest.mark.parametrize(("right", "met"), [(10, True), (60, False)])
def test_constant_values_are_judged_by_the_placebo(right, met):
    found = Constancy(100, (), 100, right, 100, 10)
    goal, values = constancy_goals(found)
    assert (goal.met, values.met) == (met, True)
    assert goal.wanted == f"at most {found.bound:.4f}, the placebo's"
    alone, _ = constancy_goals(Constancy(100, (), 100, right, 0, 0))
    assert (alone.met, alone.wanted) == (False, "at most the placebo's")
    assert constancy_goals(Constancy(100, (), 0, 0, 100, 10))[0].met is None


# What cannot be judged, and what is said of small groups


def test_thousands_of_categories_are_pooled_or_not_judged():
    counts = np.full(3_500, 2)
    groups = pool_rare(counts)
    assert np.bincount(groups, counts).min() >= 25
    random = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"code": [f"c{i}" for i in random.integers(0, 3_000, 4_000)], "sex": ["f", "m"] * 2_000}
    )
    made = keyhole.synthesise(
        frame, keys=["code", "sex"], targets=["code"], implicates=1, seed=1, self_match=0
    )
    test = made.evaluation.homogeneity.tests[0].test
    assert test.categories <= 20
    assert any("too many to be tested" in note for note in made.evaluation.notes)


def test_too_few_changes_are_not_called_homogeneous(people):
    few = people.filter(np.arange(6_000) < 150)
    made = keyhole.synthesise(
        few, keys=["sex", "race1"], targets=["race1"], implicates=1, seed=1, self_match=0
    )
    [goal] = [one for one in made.evaluation.goals if one.goal.code == "goal.homogeneity"]
    assert goal.met is None
    assert "Too few" in goal.advice


def test_relations_without_anything_to_compare_are_not_judged():
    data = load(pl.DataFrame({"age": [*range(60)]}), kinds={"age": "measure"})
    one = Implicates(data, ("age",), np.array([0]), (np.array([[1]], dtype=np.int32),), 1, 0)
    assert relations_goal(compare_relations(one), GoalLimits()).met is None


def test_subgroups_that_borrow_are_named(people):
    made = keyhole.synthesise(
        people, keys=KEYS, targets=["age", "race1"], strata=["pow", "sex"], implicates=1, seed=1,
        self_match=0,
    )  # fmt: skip
    found = made.to_dict()
    assert len(found["borrowing"]) == found["borrowed"] > 0
    assert {"pow", "sex"} == set(found["borrowing"][0]["strata"])
    note = next(n for n in made.notes if "borrow" in n)
    named = [one for one in found["borrowing"] if one["records"] >= 3]
    assert f"({named[0]['records']:,} records" in note
    small = [one for one in found["borrowing"] if one["records"] < 3]
    assert f"{len(small)} more" in note if small else True


def test_all_that_is_wrong_with_rules_is_told(people, tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text('[rules]\na = "age >"\nb = "agee > 5"\n')
    with pytest.raises(InputError) as error:
        keyhole.synthesise(people, keys=KEYS, targets=["age"], rules=path, seed=1)
    assert "rule 'a'" in str(error.value)
    assert "'agee'" in str(error.value)
    assert EditRules.sound({"a": "age >"})[1]


def test_a_name_unlike_all_others_is_not_guessed_at(people):
    with pytest.raises(InputError) as error:
        keyhole.synthesise(people, keys=KEYS, targets=["nope"], seed=1)
    assert "Did you mean" not in str(error.value)


# What the analyst is told


def test_the_note_says_what_is_not_kept(made, tmp_path):
    note = (made.save(tmp_path / "out") / "release" / "analysts-note.md").read_text()
    assert "What is kept" in note
    weak = [one for one in made.evaluation.relations.beyond(0.02) if one.original > 0.05]
    assert all(f"`{one.target}` with `{one.column}`" in note for one in weak[:12])


def test_the_note_of_one_implicate_has_no_rules_of_combining(people, tmp_path):
    made = keyhole.synthesise(
        people, keys=KEYS, targets=["age"], implicates=1, seed=1, self_match=0, out=tmp_path / "one"
    )
    note = (tmp_path / "one" / "release" / "analysts-note.md").read_text()
    assert "too small" in note
    assert "Reiter" not in note
    assert "decoys 1" not in made.summary()
    assert "mean or mode of" not in made.summary()


def test_the_command_line_takes_what_the_advice_names(people, tmp_path, capsys):
    path = tmp_path / "people.csv"
    people.filter(np.arange(6_000) < 1_500).frame.write_csv(path)
    words = ["synthesise", str(path), "--keys", "sex,age,race1", "--targets", "age,race1"]
    words += ["--drop", "puf_id,household", "--implicates", "1", "--seed", "1", "--self-match", "0"]
    words += ["--cycles", "1", "--predictors", "age:sex|race1", "--crosses", "race1|sex"]
    words += ["--folds", "4", "--neighbours", "3", "--match", "k-closest", "--keep-order"]
    words += ["--relations", "0.1", "--out", str(tmp_path / "made"), "--json"]
    assert run(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert ["race1", "sex"] in [one["variables"] for one in told["homogeneity"]["tests"]]
    kept = json.loads((tmp_path / "made" / "internal" / "parameters.json").read_text())
    assert kept["predictors"]["age"] == ["sex", "race1"]
    assert (kept["cycles"], kept["folds"], kept["neighbours"]) == (1, 4, 3)
    assert kept["targets"] == ["age", "race1"]


def test_a_release_in_which_nothing_changed_is_refused(tmp_path):
    people = pl.DataFrame({"a": ["x"], "k": [1]})
    with pytest.raises(InputError, match="no record at risk could be given another value"):
        keyhole.synthesise(people, keys=["a", "k"], targets=["a"], seed=1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_name_cannot_break_out_of_the_note():
    from keyhole.synthesis.release import _quoted

    assert _quoted("a`\nb") == "`a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b`"


def test_more_decoys_than_any_file_has_are_refused():
    people = pl.DataFrame({"a": ["x", "y", "y", "y"], "k": [1, 2, 2, 2]})
    with pytest.raises(InputError, match="decoys must be a number from 0"):
        keyhole.synthesise(people, keys=["a", "k"], targets=["a"], decoys=1e308, seed=1)


def test_a_constant_column_and_an_empty_one_are_related_to_nothing():
    for a, b in (([0, 0, 0], [0, 1, 2]), ([0, 1, 2], [1, 1, 1]), ([], [])):
        found = associate(np.array(a, dtype=np.int64), np.array(b, dtype=np.int64))
        assert (found.v, found.statistic) == (0, 0)


def test_the_procedure_of_the_paper_fails_as_it_did(people, made):
    """Rare values are replaced by frequent ones and nothing comes back."""
    drawn = keyhole.synthesise(
        people, keys=KEYS, targets=TARGETS, strata=["sex"], implicates=1, seed=2718,
        procedure="paper", self_match=0,
    )  # fmt: skip
    asked = drawn.parameters
    assert (asked["procedure"], asked["donors"], asked["bootstrap"]) == ("paper", "common", "all")
    assert (asked["graded"], asked["structure"], asked["cycles"]) == (False, 0, 5)
    blanked = drawn.designation.at_risk
    assert not blanked[drawn.implicates.donors[0]].any()
    assert drawn.evaluation.homogeneity.smallest < 1e-6 < made.evaluation.homogeneity.smallest
    risky, before = people.frame.filter(blanked), people.frame
    white = [one["race1"].eq("B").mean() for one in (risky, drawn.frame().filter(blanked), before)]
    assert white[0] < white[2] < white[1]


def test_goals_are_met_at_their_very_limits():
    """And where they are not, the advice names what was measured and is not yet tried."""

    def rule(original, worst):
        return SimpleNamespace(original=original, worst=worst)

    assert rules_goal([]).met is None
    kept, worse = rules_goal([rule(3, 3), rule(0, 0)]), rules_goal([rule(3, 5), rule(4, 4)])
    assert (kept.met, kept.measured, kept.advice) == (True, 0, "")
    assert (worse.met, worse.measured) == (False, 2)
    assert worse.advice.startswith("1 of 2 rules.")

    def measured(name, difference):
        return SimpleNamespace(variable=name, standardised_difference=difference)

    shares = [SimpleNamespace(variable="c", largest=0.03)]
    found = SimpleNamespace(measures=[measured("a", -0.05), measured("b", None)], shares=shares)
    limits = GoalLimits(difference=0.02)
    for records, met, said in [(10**6, False, "a"), (1600, True, "Chance"), (1601, False, "a.")]:
        goal = differences_goal(found, limits, records)
        assert (goal.met, goal.measured) == (met, 0.05)
        assert goal.advice.startswith(said)
    assert differences_goal(found, GoalLimits(difference=0.05), 10**6).advice == ""

    def exposed(worst, again, implicates=2):
        return SimpleNamespace(
            worst=worst, reconstructed=again, implicates=[0] * implicates, keys=("a", "b")
        )

    first, again = exposure_goals(exposed(0.05, 0.06), GoalLimits(), ["a"])
    assert (first.met, again.met) == (True, False)
    assert "no equal values (change 1), or further key variables as targets (b)" in again.advice
    assert "Release fewer implicates" in again.advice
    asked = {"change": 1, "match": "k-closest"}
    (first, again) = exposure_goals(exposed(0.06, 0.0, 1), GoalLimits(), ["a", "b"], asked)
    assert (first.met, first.advice) == (False, "Try coarser keys.")
    assert (again.met, again.measured) == (None, None)
    assert again.advice == "With one implicate there is nothing to combine."
    nobody = exposure_goals(exposed(None, None), GoalLimits(), ["a"])
    assert {one.advice for one in nobody} == {"No record was unique on the key."}
    for name in ("p", "overlap"):
        with pytest.raises(OptionError, match=f"limit '{name}'"):
            GoalLimits(**{name: 1.01})


def test_columns_predict_by_their_levels_and_roles():
    many = pl.DataFrame({"a": [i % 100 for i in range(400)], "b": [i % 101 for i in range(400)]})
    frame = many.with_columns(c=pl.lit(1), d=pl.int_range(400) % 2, e=pl.int_range(400) % 2)
    data = load(frame, kinds=dict.fromkeys("abcde", "category"), roles={"e": "drop"})
    assert [name for name in "abcde" if predicts(data, name)] == ["a", "d"]


def test_columns_that_are_not_compared_are_named_where_there_are_any():
    notes = Relations((), 2, ("area", "job")).tables()[0].notes
    assert notes[-1] == "Not compared, with too few records a value: area, job."
    assert not any("Not compared" in one for one in Relations((), 2).tables()[0].notes)
