"""Rules of households: found where they are planted, none in noise, counted as by hand."""

import numpy as np
import polars as pl
import pytest

import keyhole
from keyhole.data import load
from keyhole.screening.households import HouseholdRule, Households, search_households
from keyhole.screening.structure import find_structure

CATEGORIES = {"state": "category", "tenure": "category"}


def families(seed: int = 1, count: int = 500, wrong: int = 0) -> pl.DataFrame:
    """Make households: a reference person, at most one spouse, children, now and then a parent.

    In so many households that are `wrong` the last member lives in another state.
    """
    random, rows = np.random.default_rng(seed), []
    for number in range(count):
        state, tenure, age = (int(random.integers(*ends)) for ends in ((20,), (3,), (25, 80)))
        mine = [("ref", age)]
        mine += [("spouse", age + int(random.integers(-6, 6)))] if random.random() < 0.6 else []
        mine += [
            ("child", max(0, age - int(random.integers(18, 40))))
            for _ in range(random.integers(1, 4))
        ]
        mine += [("parent", age + int(random.integers(17, 35)))] if random.random() < 0.4 else []
        for place, (relation, years) in enumerate(mine):
            moved = number < wrong and place == len(mine) - 1
            rows.append((number, relation, state + moved, tenure, years, int(random.integers(2))))
    names = ["home", "relation", "state", "tenure", "age", "sex"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(
        pl.col("sex").cast(pl.String)
    )


def read(frame: pl.DataFrame, role: str = "household"):
    return load(frame, roles={"home": role}, kinds=CATEGORIES)


def rules_of(data):
    found = [one for one in find_structure(data) if one.kind in ("household", "kinship")]
    assert len({one.rule for one in found}) == len(found)
    return {one.rule: one for one in found}


def test_planted_rules_are_found_with_their_exceptions():
    frame = families(wrong=2)
    found = rules_of(read(frame))
    assert set(found) == {
        "state is the same for all members of home",
        "tenure is the same for all members of home",
        "exactly one member of home has relation == 'ref'",
        "at most one member of home has relation == 'spouse'",
        "at most one member of home has relation == 'parent'",
        "age where relation == 'ref' is above age where relation == 'child', within home",
        "age where relation == 'spouse' is above age where relation == 'child', within home",
        "age where relation == 'parent' is above age where relation == 'ref', within home",
        "age where relation == 'parent' is above age where relation == 'spouse', within home",
    }
    state = found["state is the same for all members of home"]
    assert (state.support, state.exceptions, state.columns) == (500, 2, ("state", "home"))
    assert state.sentence.startswith(
        "state is the same for all members of home: 2 exceptions in 500 households, where chance"
    )
    pairs = found["age where relation == 'ref' is above age where relation == 'child', within home"]
    assert pairs.support == frame.filter(pl.col("relation") == "child").height
    assert f"in {pairs.support:,} pairs of members" in pairs.sentence


def test_nothing_is_said_without_a_household_or_among_single_people():
    assert not rules_of(read(families(), role="identifier"))
    alone = families().unique("home", maintain_order=True)
    assert not rules_of(read(alone))


@pytest.mark.parametrize("seed", range(40))
def test_noise_has_no_rules(seed):
    """Values dealt out anew, and a number that only the relationship says something of."""
    random, frame = np.random.default_rng(seed), families(seed, 250)
    dealt = [frame[name].gather(random.permutation(frame.height)) for name in frame.columns[1:]]
    young = pl.when(pl.col("relation") == "child").then(0).otherwise(25)
    noise = frame.with_columns(dealt).with_columns(
        score=young + pl.Series(random.integers(0, 40, frame.height))
    )
    assert not rules_of(read(noise))


def test_an_order_that_follows_from_the_relationship_alone_is_none():
    """All children are younger than all reference persons: households add nothing."""
    frame = families().with_columns(
        age=pl.when(pl.col("relation") == "child").then(pl.col("age") % 15).otherwise(30)
    )
    assert not [rule for rule in rules_of(read(frame)) if rule.startswith("age")]


def slow(frame: pl.DataFrame, rule: HouseholdRule, levels: list) -> tuple[int, int]:
    """Count household by household, in plain Python."""
    about = broken = 0
    for (home,), members in frame.group_by("home"):
        if home is None:
            continue
        held = members["relation"].to_list()
        if rule.says == "above":
            first, second = (levels[code] for code in rule.codes)
            ages = list(zip(held, members["age"].to_list(), strict=True))
            heads = [age for relation, age in ages if relation == first and age is not None]
            others = [age for relation, age in ages if relation == second and age is not None]
            about += len(others) * bool(heads)
            broken += sum(min(heads) <= age for age in others) if heads else 0
            continue
        times = held.count(levels[rule.codes[0]]) if rule.codes else 0
        about += 1 if rule.says == "one" else len(held) > 1
        broken += {"same": len(set(held)) > 1, "one": times != 1, "at most one": times > 1}[
            rule.says
        ]
    return about, broken


@pytest.mark.parametrize("seed", range(20))
def test_counts_are_those_of_a_slow_twin(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 60))
    frame = pl.DataFrame(
        {"home": random.integers(0, 15, n), "relation": random.choice([*"abc"], n),
         "age": random.integers(0, 6, n)}
    )  # fmt: skip
    frame = frame.with_columns(
        pl.when(pl.Series(random.random(n) > 0.1)).then(pl.col(name)).alias(name)
        for name in frame.columns
    )
    data = load(frame, roles={"home": "household"}, kinds={"age": "measure", "home": "category"})
    households, levels = Households(data, "home"), data.codes("relation").levels.to_list()
    drawn = {name: data.codes(name).values for name in ("relation", "age")}
    rules = [HouseholdRule("same", "relation")]
    for code in range(len(levels)):
        rules += [HouseholdRule(says, "relation", (code,)) for says in ("one", "at most one")]
        rules += [
            HouseholdRule("above", "relation", (code, other), "age")
            for other in range(len(levels))
            if other != code
        ]
    for rule in rules:
        assert households.count(rule, drawn) == slow(frame, rule, levels), rule


def test_each_implicate_is_counted_against_the_original():
    data = read(families(wrong=2))
    made = keyhole.synthesise(
        data, keys=["state", "age", "sex"], targets=["state", "age"], implicates=2, seed=1
    )
    counts = {one.rule: one for one in made.evaluation.households}
    state = counts["state is the same for all members of home"]
    assert state.original == 2
    for i, broken in enumerate(state.implicates, 1):
        by_hand = made.frame(i).group_by("home").agg(pl.col("state").n_unique() > 1)
        assert broken == by_hand["state"].sum()
    assert not [rule for rule in counts if "tenure" in rule or "exactly" in rule]
    assert "Rules of households" in made.summary()
    assert "household" not in {name.split(":")[0] for name in made.parameters["rules"]}
    none = keyhole.synthesise(
        data, keys=["state", "age", "sex"], targets=["state", "age"], implicates=1, seed=1,
        structure=0,
    )  # fmt: skip
    assert none.evaluation.households == ()


def test_rules_are_about_the_columns_asked_for():
    data = read(families())
    found = search_households(data, ["state", "relation", "age"], frozenset(["age"]))
    assert found
    assert {rule.number for rule in found} == {"age"}
