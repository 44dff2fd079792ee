"""Drawing keeps the structure of a file, and what is constant tells no more than a placebo."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keyhole
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.errors import OptionError
from keyhole.synthesis import constraints
from keyhole.synthesis.constancy import constancy
from keyhole.synthesis.constraints import Acceptance, Constraint, lead_sums
from keyhole.synthesis.designate import designate
from keyhole.synthesis.implicates import Implicates
from keyhole.synthesis.rules import EditRules

KINDS = {"age": "measure", "wage": "measure", "income": "measure", "rent": "measure"}


def people(seed: int = 1, n: int = 2_500) -> pl.DataFrame:
    """Make people with routing, an order with exceptions, a range, and a sum."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, n)
    wage = random.integers(0, 60, n) * 1_000 * (random.random(n) < 0.7)
    more = random.exponential(9_000, n).round(-2).astype(int) * (random.random(n) < 0.6)
    more = np.where(random.random(n) < 0.003, -700, more)
    frame = pl.DataFrame(
        {
            "sex": random.choice([*"fm"], n),
            "age": age,
            "race": random.choice(4, n, p=[0.6, 0.2, 0.15, 0.05]),
            "wage": wage,
            "income": wage + more,
            "rent": random.integers(1, 30, n) * 100,
            "cost": random.integers(1, 90, n) * 10,
            "war": np.where(age >= 60, random.integers(0, 2, n), 0),
        }
    )
    child = pl.Series(random.integers(0, 3, n))
    return frame.with_columns(
        child=pl.when((pl.col("sex") == "f") & (pl.col("age") <= 50)).then(child),
        total=pl.col("rent") + pl.col("cost"),
    )


def wrong(frame: pl.DataFrame) -> dict[str, int]:
    """Count contradictions by plain Polars."""
    may = (pl.col("sex") == "f") & (pl.col("age") <= 50)
    return {
        "child": frame.filter(pl.col("child").is_not_null() != may).height,
        "war": frame.filter((pl.col("war") == 1) & (pl.col("age") < 60)).height,
        "income": frame.filter(pl.col("wage") > pl.col("income")).height,
        "total": frame.filter(pl.col("total") != pl.col("rent") + pl.col("cost")).height,
    }


def draw(frame: pl.DataFrame, targets: list[str], **options: object) -> keyhole.synthesis.Synthesis:
    keys = ["sex", "age", "race"]
    kinds = options.pop("kinds", KINDS)
    asked = {"self_match": 0, "implicates": 3, "seed": 5, "allow": frame.columns, **options}
    return keyhole.synthesise(load(frame, kinds=kinds), keys=keys, targets=targets, **asked)


def test_structure_is_kept_without_being_asked_for() -> None:
    frame = people()
    before = wrong(frame)
    assert before["income"] > 0
    made = draw(frame, ["age", "race", "income"])
    for implicate in (1, 2, 3):
        after = wrong(made.frame(implicate))
        assert all(after[name] <= before[name] for name in before), (before, after)
    [goal] = [one for one in made.evaluation.goals if one.goal.code == "goal.rules"]
    assert goal.met is True
    assert goal.measured == 0
    assert all(one.worst <= one.original for one in made.evaluation.rules)
    mean = [made.frame(i)["income"].mean() for i in (1, 2, 3)]
    assert abs(np.mean(mean) / frame["income"].mean() - 1) < 0.02


def test_without_structure_records_contradict_themselves() -> None:
    made = draw(people(), ["age", "race", "income"], structure=0, related=1)
    after = wrong(made.frame(1))
    assert after["child"] + after["war"] > 0
    assert not made.evaluation.rules


@pytest.mark.parametrize("targets", [["age", "total"], ["age", "cost"], ["age", "rent", "cost"]])
def test_what_makes_a_sum_with_a_target_is_drawn_with_it(targets: list[str]) -> None:
    frame = people().with_columns(all=pl.col("total") + pl.col("wage"))
    kinds = KINDS | dict.fromkeys(["cost", "total", "all"], "measure")
    made = draw(frame, targets, kinds=kinds)
    assert set(made.targets) == {"age", "rent", "cost", "total", "wage", "all"}
    [note] = [one for one in made.notes if getattr(one, "code", "") == "synthesis.sums"]
    assert set(note.split(": ")[1].replace(" and ", ", ").split(", ")) == {
        name for name in made.targets if name not in targets
    }
    for implicate in (1, 2, 3):
        after = made.frame(implicate)
        assert wrong(after)["total"] == 0
        assert after.filter(pl.col("all") != pl.col("total") + pl.col("wage")).height == 0
        assert (after["total"] != frame["total"]).sum() > 50
    with pytest.raises(OptionError, match="'total' makes a sum with targets"):
        draw(frame, ["age", "cost"], strata=["total"])


def test_rules_found_can_be_edited(tmp_path) -> None:
    made = draw(people(), ["age", "income"], out=tmp_path / "out")
    path = tmp_path / "out" / "internal" / "rules.toml"
    rules = EditRules.read(path)
    assert rules.names == tuple(one.name for one in made.evaluation.rules)
    again = draw(people(), ["age", "income"], rules=path, structure=0)
    assert again.frame(2).equals(made.frame(2))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_tables_of_rules_answer_as_rules_do(seed: int) -> None:
    """What is looked up in tables is what the rules say of the records."""
    random = np.random.default_rng(seed)
    data = load(people(seed, 120), kinds=KINDS)
    rules = EditRules.parse(
        ["wage <= income", "child is missing or sex == 'f'", "age >= 60 or war == 0",
         "(race == 1 and war == 1) => age > 65"]
    )  # fmt: skip
    targets = ("age", "income", "war")
    replace = random.random((120, 3)) < 0.6
    replace = None if seed % 3 == 0 else replace
    fast = Acceptance(data, targets, rules, None, (), replace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constraints, "MOST_CELLS", 0)
        slow = Acceptance(data, targets, rules, None, (), replace)
    rows, given_ = random.integers(120, size=90), random.integers(120, size=(90, 3))
    donors = random.integers(120, size=90)
    np.testing.assert_array_equal(fast.keeps(rows, given_), slow.keeps(rows, given_))
    for target in range(3):
        args = (rows, given_, target, donors)
        np.testing.assert_array_equal(fast.allows(*args), slow.allows(*args))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_constraints_and_ties_are_those_of_a_slow_twin(seed: int) -> None:
    """Looked up record by record: with what it was given, unless a value is still to come."""
    random = np.random.default_rng(seed)
    data = load(people(seed, 120), kinds=KINDS)
    targets, replace = ("age", "war"), random.random((120, 2)) < 0.6
    about = [("age", "race"), ("age", "war"), ("war", "sex")]
    codes = {name: data.codes(name).values.astype(int) for name in ("age", "war", "race", "sex")}
    held = [
        Constraint(a, b, codes[b], random.random((data.codes(a).size, codes[b].max() + 1)) < 0.7)
        for a, b in about
    ]
    rules = EditRules.parse(["age >= 65 or war == 0"])  # some break it
    accept = Acceptance(data, targets, rules, None, held, replace)
    rows, given_ = random.integers(120, size=90), random.integers(120, size=(90, 2))

    def wanted(given: np.ndarray, done: int, which: str | None) -> list[bool]:
        out = []
        for row, own in zip(rows, given, strict=True):
            source = {name: own[t] for t, name in enumerate(targets)}
            value = {name: codes[name][source.get(name, row)] for name in codes}
            later = {name for t, name in enumerate(targets) if t > done and replace[row, t]}
            out.append(all(
                one.allowed[value[one.target], value[one.column]]
                for one in held
                if which in (None, one.target, one.column) and not later & {one.target, one.column}
            ))  # fmt: skip
        return out

    whole = Acceptance(data, targets, rules, None, (), replace)
    expected = whole.keeps(rows, given_) & wanted(given_, 2, None)
    np.testing.assert_array_equal(accept.keeps(rows, given_), expected)
    donors = random.integers(120, size=90)
    for t, name in enumerate(targets):
        changed = given_.copy()
        changed[:, t] = donors
        expected = whole.allows(rows, given_, t, donors) & wanted(changed, t, name)
        np.testing.assert_array_equal(accept.allows(rows, given_, t, donors), expected)
    # Who may be at war follows from the age that a record was given.
    (tie,) = accept.ties(1, np.arange(120))
    own = data.column("age").to_numpy() >= 65
    choices = accept.tied(tie, rows, given_)
    assert [len(np.unique(choices[own[given_[:, 0]] == old])) for old in (False, True)] == [1, 1]
    everybody = np.arange(120)
    same = accept.tied(tie, everybody, np.repeat(everybody[:, None], 2, axis=1))
    np.testing.assert_array_equal(tie.own, same)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_constancy_by_brute_force(seed: int) -> None:
    """Constant values and links by them, record by record."""
    random = np.random.default_rng(seed)
    n = 30
    columns = {name: random.integers(0, size, n) for name, size in (("a", 3), ("b", 4), ("c", 3))}
    data = load(pl.DataFrame(columns))
    found = designate(data, keys=["a", "b", "c"], seed=1)
    rows = np.flatnonzero(random.random(n) < 0.5)
    if not len(rows):
        return
    every = [
        np.where(random.random((len(rows), 2)) < 0.6, rows[:, None],
                 random.integers(n, size=(len(rows), 2))).astype(np.int32)
        for _ in range(3)
    ]  # fmt: skip
    made = Implicates(data, ("a", "b"), rows, tuple(every[:2]), 1, 0, placebo=every[2])
    told = constancy(made, found)
    counts = {"seen": 0, "a": [0, 0, 0], "b": [0, 0, 0], "links": [[0, 0], [0, 0]]}
    truth = {name: values.tolist() for name, values in columns.items()}
    fake = {name: list(values) for name, values in truth.items()}
    for place, row in enumerate(rows):
        for t, name in enumerate("ab"):
            fake[name][row] = truth[name][every[2][place, t]]
    for place, row in enumerate(rows):
        drawn = {
            name: {truth[name][one[place, t]] for one in every[:2]} for t, name in enumerate("ab")
        }
        if all(len(values) == 1 for values in drawn.values()):
            continue
        counts["seen"] += 1
        known = {"c": truth["c"][row]}
        for name, values in drawn.items():
            if len(values) == 1:
                known[name] = next(iter(values))
                counts[name][0] += 1
                counts[name][1] += known[name] == truth[name][row]
                counts[name][2] += known[name] == fake[name][row]
        for which, file in enumerate((truth, fake)):
            alike = [i for i in range(n) if all(file[k][i] == v for k, v in known.items())]
            counts["links"][which][0] += len(alike) == 1
            counts["links"][which][1] += alike == [row]
    assert told is not None
    assert told.records == counts["seen"]
    assert [[o.constant, o.true, o.placebo] for o in told.targets] == [counts["a"], counts["b"]]
    links = [[told.claims, told.right], [told.placebo_claims, told.placebo_right]]
    assert links == counts["links"]


def test_the_level_decides_what_may_return() -> None:
    """A number of the key never from a medium risk on, a varied category never to a high one."""
    random = np.random.default_rng(4)
    n = 3_000
    frame = pl.DataFrame(
        {
            "sex": random.choice([*"fm"], n),
            "age": random.integers(18, 90, n),
            "job": random.choice(12, n),
            "race": random.choice(3, n, p=[0.8, 0.15, 0.05]),
            "pay": random.integers(0, 40, n) * 100,
        }
    )
    data = load(frame, kinds={"age": "measure", "pay": "measure", "job": "category"})
    made = keyhole.synthesise(
        data, keys=["sex", "age", "job", "race"], targets=["age", "job", "race", "pay"], seed=3,
        implicates=3, self_match=0, structure=0,
    )  # fmt: skip
    level = made.designation.level
    drawn = [made.frame(i) for i in (1, 2, 3)]
    same = {
        name: [np.mean([(one[name] == frame[name]).to_numpy()[level == at].mean() for one in drawn])
               for at in (1, 2, 3)]
        for name in ("age", "job", "race", "pay")
    }  # fmt: skip
    assert (level == 1).sum() == 0 or same["age"][0] > 0
    assert same["age"][1:] == [0, 0]
    assert same["job"][1] > 0
    assert same["job"][2] == 0
    assert min(same["race"][1:]) > 0.2
    assert same["pay"][1] > 0


def test_decoys_are_given_values_of_common_records() -> None:
    """Unique records that are not designated would make the file rarer than it was."""
    data, keys = veterans_sample(3_000, seed=2), ["sex", "age", "ms", "race1"]
    made = keyhole.synthesise(
        data, keys=keys, targets=["age", "ms", "race1"], weight="weight", least_probability=0.3,
        decoys=1, seed=4, implicates=2, self_match=0, structure=0,
    )  # fmt: skip
    common = data.frame.select(pl.len().over(keys)).to_series().to_numpy() > 1
    drawn, decoy = made.implicates, made.designation.decoy
    assert (~common & ~made.designation.at_risk).sum() > 50
    for donors in drawn.donors:
        assert common[donors[decoy[drawn.rows]]].mean() > 0.99


def test_sums_that_share_a_target_are_drawn_together():
    rules = EditRules.parse(["b + d == c", "e == a + b"])
    assert lead_sums(rules, [*"fabcde"]) == [0, 1, 1, 1, 1, 1]
