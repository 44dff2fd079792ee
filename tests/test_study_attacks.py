"""Attacks with a control: slow twins of every rate, files without and with risk, bad input."""

import math
from collections import Counter
from statistics import mean
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keyhole
from keyhole.cli.main import run
from keyhole.data.examples import veterans
from keyhole.errors import InputError
from keyhole.kernels.closest import LEAF, box, closest_row, matches
from keyhole.reidentification.attacks import (
    BEYOND,
    MISSING,
    best_guess,
    encode_people,
    multivariate,
    roc_area,
    typical,
    univariate,
)
from keyhole.reidentification.rates import Rates
from keyhole.reidentification.residual_risk import Trials, found_attack, residual_risk

ASKED = {
    "attacks": ["singled-out", "linked", "inferred", "present"],
    "link": ["a", "x"],
    "second_link": ["b", "y"],
    "secret": ["s"],
    "numeric": ["x", "y"],
}


# The kernel


def rows_of(most=4):
    cell = st.sampled_from([0.0, 1.0, 2.0, 0.25, 0.5, 9.0])
    return st.lists(st.tuples(*[cell] * most), min_size=1, max_size=40)


def far(one, other):
    total = 0.0
    for x, y in zip(one, other, strict=True):
        total += min(1.0, abs(x - y))
    return total


@given(rows_of(), rows_of())
def test_the_closest_row_is_that_of_all_comparisons(rows, queries):
    rows, queries = np.array(rows), np.array(queries)
    at, distances = closest_row(rows, box(rows), queries)
    for query, place, distance in zip(queries, at, distances, strict=True):
        every = [far(row, query) for row in rows]
        assert distance == min(every)
        assert place == every.index(min(every))  # of ties the first


def test_the_closest_row_of_a_larger_file_is_that_of_all_comparisons():
    rng = np.random.default_rng(5)
    rows = np.column_stack([rng.integers(0, 3, (2, 1500)).T, rng.random((1500, 2)) ** 2])
    queries = np.column_stack([rng.integers(0, 4, (2, 300)).T, rng.random((300, 2))])
    every = np.minimum(1, np.abs(queries[:, None] - rows[None])).cumsum(axis=2)[:, :, -1]
    at, distances = closest_row(rows, box(rows), queries)
    assert (at == every.argmin(axis=1)).all()
    assert (distances == every.min(axis=1)).all()


@given(rows_of())
def test_boxes_know_their_rows_and_are_divided_until_they_hold_few_or_equal_ones(rows):
    rows = np.array(rows * 3)
    boxes = box(rows)
    assert sorted(boxes.order) == [*range(len(rows))]
    assert (boxes.start[0], boxes.end[0]) == (0, len(rows))
    for start, end, low, high, first, left, right in zip(*boxes[1:], strict=True):
        held = boxes.order[start:end]
        assert (low == rows[held].min(axis=0)).all()
        assert (high == rows[held].max(axis=0)).all()
        assert first == held.min()
        if left < 0:
            assert len(held) <= LEAF or (low == high).all()
        else:
            assert right == left + 1
            parts = boxes.start[left], boxes.end[left], boxes.start[right], boxes.end[right]
            assert parts == (start, boxes.end[left], boxes.end[left], end)
            assert start < boxes.end[left] < end


@given(st.integers(0, 9999), st.integers(1, 120), st.booleans())
def test_of_rows_equally_near_the_first_but_the_own_one_is_found(seed, count, has_own):
    """On a grid there are many ties, within boxes of rows and between them."""
    rng = np.random.default_rng(seed)
    rows, queries = (rng.integers(0, 5, (size, 2)) / 4 for size in (count, 20))
    own = rng.integers(-1, count, 20) if has_own else np.full(20, -1)
    every = np.minimum(1, np.abs(queries[:, None] - rows[None])).sum(axis=2)
    every[own >= 0, own[own >= 0]] = np.inf
    at, distances = closest_row(rows, box(rows), queries, own if has_own else None)
    assert (distances == every.min(axis=1)).all()
    assert (at == np.where(np.isinf(distances), -1, every.argmin(axis=1))).all()


@given(rows_of(), st.integers(0, 2**32))
def test_predicates_are_counted_row_by_row(rows, seed):
    rng = np.random.default_rng(seed)
    rows = np.array(rows)
    columns = rng.integers(0, rows.shape[1], 6)
    ends = np.sort(rng.choice([0.0, 0.25, 1.0, 2.0], (2, 6)), axis=0)
    found = matches(rows, columns, ends[0], ends[1], np.array([0, 1, 3, 6]), 3)
    for p, (first, last) in enumerate([(0, 1), (1, 3), (3, 6)]):
        fitting = sum(
            all(ends[0][i] <= row[columns[i]] <= ends[1][i] for i in range(first, last))
            for row in rows
        )
        assert found[p] == min(fitting, 3)


# Slow twins of the attacks


@st.composite
def small_worlds(draw):
    """Three files with missing values and ties; numbers from 0 to 8, so that sums are exact."""
    seed = draw(st.integers(0, 2**32))
    missing = draw(st.sampled_from([0.0, 0.2]))
    rng = np.random.default_rng(seed)

    def some(count):
        values = {
            "a": rng.integers(0, 3, count).astype(str),
            "b": rng.integers(0, 4, count).astype(str),
            "s": rng.integers(0, 3, count).astype(str),
            "x": rng.integers(0, 9, count),
            "y": rng.integers(0, 17, count) / 2,
        }
        frame = pl.DataFrame(values)
        gone = {n: pl.Series(rng.random(count) < missing) for n in frame.columns}
        return frame.with_columns(
            pl.when(gone[n]).then(None).otherwise(pl.col(n)).alias(n) for n in frame.columns
        )

    fixed = pl.DataFrame({"a": ["0", "1"], "b": ["0", "1"], "s": ["0", "1"],
                          "x": [0, 8], "y": [0.0, 8.0]})  # fmt: skip
    files = [pl.concat([fixed, some(draw(st.integers(50, 60)))]) for _ in range(3)]
    if draw(st.booleans()):
        files[0] = files[1]
    return (*files, draw(st.integers(0, 100)))


def distance(one, other, names):
    """Gower's: categories agree or not, numbers by the range, which is 8."""
    total = 0.0
    for name in names:
        x, y = one[name], other[name]
        if x is None or y is None:
            total += x is not y
        elif name in ASKED["numeric"]:
            total += min(1.0, abs(x - y) / 8)
        else:
            total += x != y
    return total


def nearest_cell(person, release, names):
    """The records of the release with the same values as the first of those closest."""
    first = min(release, key=lambda row: distance(person, row, names))
    return [i for i, row in enumerate(release) if all(row[n] == first[n] for n in names)]


def in_order_of_ties(puf, seed):
    order = np.random.default_rng([seed, 99]).permutation(puf.height)
    return puf[order].to_dicts()


@settings(max_examples=40)
@given(small_worlds())
def test_linking_inferring_and_membership_equal_slow_twins(world):
    puf, original, control, seed = world
    found = keyhole.study(puf=puf, original=original, control=control, seed=seed, **ASKED)
    release = in_order_of_ties(puf, seed)

    def linked(people):
        pairs = [
            set(nearest_cell(one, release, ASKED["link"]))
            & set(nearest_cell(one, release, ASKED["second_link"]))
            for one in people.to_dicts()
        ]
        return mean(len(both) == 1 for both in pairs)

    told = [row for row in release if row["s"] is not None]

    def inferred(people):
        right = []
        for one in people.drop_nulls("s").to_dicts():
            cell = Counter(told[i]["s"] for i in nearest_cell(one, told, ASKED["link"]))
            guess = min(cell, key=lambda value: (-cell[value], value))
            right.append(guess == one["s"])
        return mean(right)

    frequent = Counter(row["s"] for row in told)
    guess = min(frequent, key=lambda value: (-frequent[value], value))
    for name, twin in (("linked", linked), ("inferred", inferred)):
        one = found.attacks[name]
        assert one.success == pytest.approx(twin(original), abs=1e-12)
        assert one.control == pytest.approx(twin(control), abs=1e-12)
    known = original.drop_nulls("s")["s"]
    assert found.attacks["inferred"].baseline == pytest.approx((known == guess).mean())

    names = ["a", "x", "b", "y", "s"]
    near = [
        [min(distance(one, row, names) for row in release) for one in people.to_dicts()]
        for people in (original, control)
    ]
    wins = [(i < o) + 0.5 * (i == o) for i in near[0] for o in near[1]]
    present = found.attacks["present"]
    assert present.roc_area == pytest.approx(mean(wins))
    assert present.success + present.control == pytest.approx(1)
    # The nearer half are called present: everybody nearer than some who are, whatever the ties.
    size = min(map(len, near))
    if len(near[0]) == len(near[1]):
        limit = sorted(near[0] + near[1])[size - 1]
        low = sum(one < limit for one in near[0])
        high = sum(one <= limit for one in near[0])
        assert low <= round(present.success * size) <= high


@settings(max_examples=40)
@given(small_worlds())
def test_predicates_fit_one_record_of_the_release(world):
    puf, original, control, seed = world
    data = [keyhole.load(one) for one in (puf, original, control)]
    from keyhole.reidentification.study import linking_question

    question = linking_question(puf=puf, original=original, seed=seed, **ASKED)
    people = encode_people(*data, question)
    for draw in (univariate, multivariate):
        made = draw(people, np.random.default_rng(seed))
        if made is None:
            continue
        for rows in (people.release, people.original):
            slow = []
            for first, last in zip(made.starts[:-1], made.starts[1:], strict=True):
                asked = range(first, last)
                fits = [
                    all(made.low[i] <= row[made.columns[i]] <= made.high[i] for i in asked)
                    for row in rows
                ]
                slow.append(sum(fits) == 1)
            assert made.isolate(rows).tolist() == slow
            if rows is people.release and draw is multivariate:
                assert all(slow)


@pytest.mark.parametrize("most", [1, 5, 12])
@pytest.mark.parametrize("draw", [univariate, multivariate])
def test_no_more_predicates_are_tried_than_asked(draw, most, monkeypatch):
    monkeypatch.setattr("keyhole.reidentification.attacks.PREDICATES", most)
    release = np.random.default_rng(1).random((60, 4))
    people = SimpleNamespace(release=release, names="abcd", numbers=np.full(4, True))
    made = draw(people, np.random.default_rng(2))
    assert len(made.starts) - 1 == made.isolate(release).sum() == most


@pytest.mark.parametrize("names", ["a", "ab"])
def test_one_column_has_no_predicates_on_several(names, monkeypatch):
    drawn = []
    for draw in (univariate, multivariate):
        kind = f"keyhole.reidentification.attacks.{draw.__name__}"
        monkeypatch.setattr(kind, lambda *_, name=draw.__name__: drawn.append(name))
    whole = pl.DataFrame({name: [f"{i}" for i in range(40)] for name in names})
    keyhole.study(puf=whole, original=whole, attacks="singled-out", link=[*names])
    assert drawn == ["univariate", "multivariate"][: len(names)]


def test_chance_links_two_sources_as_often_as_one_record_would_be_common():
    """All are alike to the first source: in common are those alike to the second, one record of
    ten people and two of thirty."""
    places = [f"p{i}" for i in range(10)] + [f"q{i // 2}" for i in range(30)]
    whole = pl.DataFrame({"a": ["u"] * 40, "c": ["v"] * 40, "b": places, "d": places})
    asked = {"attacks": "linked", "link": ["a", "c"], "second_link": ["b", "d"]}
    found = keyhole.study(puf=whole, original=whole, **asked).attacks["linked"]
    assert (found.success, found.baseline) == (0.25, 0.25)


def test_numbers_are_guessed_within_a_twentieth():
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 40, 900)
    income = np.round(np.exp(groups / 8 + 3), 2) * np.where(rng.random(900) < 0.1, 2, 1)
    whole = pl.DataFrame({"g": groups.astype(str), "h": groups % 3, "income": income})
    puf, people, outside = whole[:300], whole[300:600], whole[600:]
    asked = {"attacks": "inferred", "link": ["g", "h"], "secret": "income", "numeric": "income"}
    found = keyhole.study(puf=puf, original=people, control=outside, **asked).attacks["inferred"]
    cells = puf.group_by("g", "h").agg(pl.col("income").sort().get((pl.len() - 1) // 2))
    joined = people.join(cells, on=["g", "h"], how="inner", suffix="_guess")
    assert len(joined) == len(people)
    right = (joined["income_guess"] - joined["income"]).abs() <= 0.05 * joined["income"]
    assert found.success == right.mean()
    values = puf["income"].to_numpy()
    fits = [(abs(v - values) <= 0.05 * values).sum() for v in values]
    guess = best_guess(values, True)
    assert (abs(guess - values) <= 0.05 * values).sum() == max(fits)
    assert found.baseline == (abs(guess - people["income"]) <= 0.05 * people["income"]).mean()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1), st.booleans())
def test_the_typical_value_of_a_group_is_its_lower_median_or_most_frequent_code(pairs, is_number):
    names = sorted({group for group, _ in pairs})
    of = [sorted(value for group, value in pairs if group == name) for name in names]
    groups = np.array([names.index(group) for group, _ in pairs])
    values = np.array([float(value) for _, value in pairs])
    found = typical(values, groups, len(names), is_number)
    middle = [held[(len(held) - 1) // 2] for held in of]
    common = [max(sorted(set(held)), key=held.count) for held in of]
    assert found.tolist() == (middle if is_number else common)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=20), st.booleans())
def test_the_best_guess_is_right_most_often_and_the_lowest_such_value(values, is_number):
    values = np.array(values, dtype=float)
    width = 0.05 * values if is_number else 0.0
    right = {guess: int((np.abs(guess - values) <= width).sum()) for guess in values.tolist()}
    most = max(right.values())
    assert best_guess(values, is_number) == min(g for g, count in right.items() if count == most)


@pytest.mark.parametrize(("chance", "risk"), [(None, None), (0.1, 0.2), (0.2, None), (0.3, None)])
def test_finding_people_is_a_risk_where_it_is_better_than_chance(chance, risk):
    """A fifth of the records are found; without a control the risk is the share that is found."""
    baseline = chance and SimpleNamespace(confirmed_rate=chance, interval=(0.0, 0.4))
    found = found_attack(Rates(10, 4, 3, 2, 2), baseline)
    assert (found.success, found.baseline, found.risk) == (0.2, chance, risk)
    assert found.intervals["risk"] == (found.intervals["success"] if risk else None)
    assert found.intervals["baseline"] == (chance and (0.0, 0.4))
    assert len(found.notes) == 1 + (risk is None)


# Figures


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
    ],
)  # the last is Newcombe's (1998) example
def test_wilson_intervals_are_those_of_the_tables(hits, total, low, high):
    assert Trials(hits, total).interval == pytest.approx((low, high), abs=6e-5)


@given(st.integers(1, 400), st.integers(30, 400), st.data())
def test_the_interval_of_a_risk_holds_it_and_is_not_clipped_below(total, controls, data):
    attack = Trials(data.draw(st.integers(0, total)), total)
    control = Trials(data.draw(st.integers(0, controls - 1)), controls)
    risk, (low, high) = residual_risk(attack, control)
    a, c = attack.rate, control.rate
    assert risk == pytest.approx((a - c) / (1 - c))
    assert low <= risk <= high + 1e-12
    assert high <= 1
    if a < c:
        assert risk < 0


def test_the_interval_of_a_risk_covers_it():
    rng = np.random.default_rng(8)
    truth = (0.5 - 0.3) / (1 - 0.3)
    covered = 0
    for _ in range(1_000):
        ends = residual_risk(Trials(rng.binomial(200, 0.5), 200), Trials(rng.binomial(80, 0.3), 80))
        covered += ends[1][0] <= truth <= ends[1][1]
    assert covered >= 930


def test_the_roc_area_of_equal_and_of_separate_files():
    assert roc_area(np.zeros(9), np.zeros(5))[0] == 0.5
    assert roc_area(np.zeros(9), np.ones(5)) == (1.0, (1.0, 1.0))


# What the attacks must show


def people_of(count, seed):
    """A file in which the illness depends on age and sex, and incomes are people's own."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 90, count), rng.integers(0, 2, count)
    return pl.DataFrame(
        {
            "sex": sex.astype(str),
            "age": age,
            "state": rng.integers(0, 12, count).astype(str),
            "income": np.round(np.exp(rng.normal(10, 0.6, count))),
            "ill": ((age // 10 + sex + (rng.random(count) < 0.3)) % 4).astype(str),
        }
    )


EVERY = {
    "attacks": ("singled-out", "linked", "inferred", "present"),
    "link": ("sex", "age"),
    "second_link": ("state", "income"),
    "secret": "ill",
    "numeric": ("age", "income"),
}


def test_a_file_with_random_secrets_shows_no_residual_risk():
    quiet = 0
    for seed in range(200):
        whole = people_of(220, seed)
        people, outside = whole[:120], whole[120:]
        secret = np.random.default_rng(1_000 + seed).integers(0, 4, 120).astype(str)
        found = keyhole.study(
            puf=people.with_columns(ill=secret), original=people, control=outside, seed=seed,
            attacks="inferred", link=["sex", "age"], secret="ill", numeric="age",
        ).attacks["inferred"]  # fmt: skip
        low, high = found.intervals["risk"] or (0, 0)
        assert (found.risk is None) == bool(found.notes)
        quiet += low <= 0 <= high
    assert quiet >= 180


@pytest.mark.parametrize("attack", EVERY["attacks"])
def test_a_file_of_other_people_shows_no_residual_risk(attack):
    quiet = 0
    for seed in range(40):
        whole = people_of(600, seed)
        found = keyhole.study(
            puf=whole[:200], original=whole[200:400], control=whole[400:], seed=seed,
            **{**EVERY, "attacks": attack},
        ).attacks[attack]  # fmt: skip
        for part in found.parts.values() or [found]:
            low, high = part.intervals["risk"] or (0, 0)
            quiet += (low <= 0 <= high) / max(1, len(found.parts))
    assert quiet >= 36


@pytest.fixture(scope="module")
def copied():
    """The attacks on a copy, on a file with half of the values exchanged, and on other people."""
    whole = people_of(1_200, 4)
    people, outside, others = whole[:400], whole[400:800], whole[800:]
    rng = np.random.default_rng(6)
    half = people.with_columns(
        pl.when(pl.Series(rng.random(400) < 0.5))
        .then(pl.col(name).gather(rng.permutation(400)))
        .otherwise(pl.col(name))
        for name in people.columns
    )
    releases = {"copy": people, "half": half, "others": others}
    return {
        name: keyhole.study(puf=puf, original=people, control=outside, **EVERY)
        for name, puf in releases.items()
    }


@pytest.mark.parametrize("attack", EVERY["attacks"])
def test_a_copy_shows_the_largest_risk(copied, attack):
    risks = {name: found.attacks[attack].risk for name, found in copied.items()}
    assert risks["copy"] > max(risks["half"] or 0, risks["others"] or 0)
    assert copied["copy"].attacks[attack].intervals["risk"][0] > 0


def test_a_copy_is_present_and_linked_for_certain(copied):
    found = copied["copy"].attacks
    assert found["present"].success == found["present"].roc_area == 1
    assert found["linked"].success > 0.95
    assert found["linked"].control < 0.05


def test_the_order_of_records_does_not_matter_where_nothing_ties():
    whole = people_of(600, 4).with_columns(age=pl.int_range(600) / 7)
    asked = {**EVERY, "attacks": ("linked", "inferred", "present"), "link": ("age",)}
    puf, people, outside = whole[::3], whole[1::3], whole[2::3]
    first, second = (
        keyhole.study(puf=one, original=people, control=outside, **asked)
        for one in (puf, puf.reverse())
    )
    for name in ("linked", "inferred", "present"):
        assert first.attacks[name].success == second.attacks[name].success


# What cannot be estimated


def test_without_a_control_there_is_no_risk():
    people = people_of(200, 1)
    found = keyhole.study(puf=people, original=people, **EVERY)
    for attack in found.attacks.values():
        assert attack.control is attack.risk is None
        assert attack.intervals["risk"] is None
        assert "no control was given" in attack.notes[0]
    assert found.attacks["inferred"].success > found.attacks["inferred"].baseline
    assert found.attacks["present"].success is None
    assert found.to_dict()["notes"]


def test_too_few_controls_give_no_risk():
    people = people_of(200, 1)
    found = keyhole.study(puf=people, original=people, control=people_of(29, 2), **EVERY)
    assert all(one.control is one.risk is None for one in found.attacks.values())
    assert "29 controls are too few; at least 30 are needed" in found.summary()
    enough = keyhole.study(puf=people, original=people, control=people_of(30, 2), **EVERY)
    assert all(one.risk is not None for one in enough.attacks.values())


def test_a_secret_that_everybody_has_is_no_disclosure():
    people = people_of(300, 1).with_columns(ill=pl.lit("no"))
    asked = {**EVERY, "attacks": "inferred"}
    found = keyhole.study(puf=people, original=people, control=people.reverse(), **asked)
    inferred = found.attacks["inferred"]
    assert inferred.success == inferred.baseline == 1
    assert inferred.risk is None
    assert inferred.notes == ("risk is null: the attack is no better than its baseline",)


def test_coarse_files_have_no_predicate_that_fits_one_record():
    people = pl.DataFrame({"sex": ["f", "m"] * 50, "area": ["a", "a", "b", "b"] * 25})
    found = keyhole.study(
        puf=people,
        original=people,
        control=people.reverse(),
        attacks="singled-out",
        link=["sex", "area"],
    ).attacks["singled-out"]
    assert found.success is found.risk is None
    assert "no predicate fits exactly one record" in found.notes[0]


# The study as a whole


@pytest.fixture(scope="module")
def world():
    return veterans(2_000, seed=1)


def asked_of(world, **more):
    files = {"puf": world.sample, "eif": world.external, "iuf": world.truth}
    ids = {"puf_id": "puf_id", "eif_id": "eif_id", "permutations": 20, "metric": "taxicab"}
    return {**files, **ids, "link": ["sex", "age", "race1", "homstate"], **more}


def test_one_study_answers_all_questions(world):
    people, outside = world.sample.frame[:150], world.sample.frame[150:]
    plain = keyhole.study(**asked_of(world))
    whole = keyhole.study(
        **asked_of(world), attacks=["found", *EVERY["attacks"]], original=people, control=outside,
        second_link=["psx", "pow"], secret="ms",
    )  # fmt: skip
    assert list(whole.attacks) == ["found", *EVERY["attacks"]]
    said, before = whole.to_dict(), plain.to_dict()
    for name in before:
        if name not in ("notes", "warnings"):
            assert said[name] == before[name]
    assert "attacks" not in before
    found = whole.attacks["found"]
    assert found.success == plain.rates.confirmed_rate
    assert found.baseline == plain.baseline.confirmed_rate
    assert found.control is None
    assert found.risk == found.success
    for one in said["attacks"].values():
        assert {"success", "control", "baseline", "risk", "intervals"} <= set(one)
    again = type(whole).from_dict(said)
    assert again.attacks == whole.attacks
    assert "Attacks with a control" in whole.summary()


def test_found_alone_is_the_study_as_before(world):
    plain, named = (
        keyhole.study(**asked_of(world)),
        keyhole.study(**asked_of(world, attacks="found")),
    )
    assert plain.to_dict() == named.to_dict()


def test_seeds_repeat_and_differ():
    whole = people_of(400, 4)
    asked = {"puf": whole[:200], "original": whole[:200], "control": whole[200:], **EVERY}
    first, again, other = (keyhole.study(**asked, seed=seed).to_dict() for seed in (1, 1, 2))
    assert first == again
    assert first["attacks"]["singled-out"] != other["attacks"]["singled-out"]


def test_figures_are_in_frame_table_and_picture(copied):
    found = copied["half"]
    frame = found.to_frame()
    assert frame["attack"].to_list() == [
        "singled-out: univariate", "singled-out: multivariate", "linked", "inferred", "present",
    ]  # fmt: skip
    inferred = found.attacks["inferred"]
    row = frame.row(by_predicate=pl.col("attack") == "inferred", named=True)
    assert (row["risk_low"], row["risk_high"]) == inferred.intervals["risk"]
    worst = max(found.attacks["singled-out"].parts.values(), key=lambda one: one.risk or -math.inf)
    assert found.attacks["singled-out"].risk == worst.risk
    spec = found.plot().to_dict()
    text = str(spec)
    assert "The largest residual risk is" in text
    for words in ("people of the file", "people outside it", "naive guess"):
        assert words in text


# Bad input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attacks": "inferred", "secret": "ill"}, ["need original"]),
        ({"attacks": "inferred", "original": 1}, ["secret must name"]),
        ({"attacks": "linked", "original": 1}, ["second_link must name"]),
        ({"attacks": "inferred", "secret": "age", "original": 1}, ["both name 'age'"]),
        ({"attacks": "present", "original": 1, "numeric": "agee"}, ["'agee' must belong"]),
        ({"attacks": "stolen", "original": 1}, ["attacks must be", "or several"]),
        ({"secret": "ill"}, ["secret needs attacks", "eif must be", "puf_id must be"]),
        ({"attacks": ["found", "present"], "original": 1}, ["eif must be", "iuf must be"]),
        ({"attacks": "present", "original": 1, "link": ["age", "town"]}, ["'town'"]),
        ({"attacks": "present", "original": 1, "engine": "spark"}, ["engine must be"]),
        ({"attacks": "present", "original": 1, "metric": ["taxicab", "unicity"]}, ["one metric"]),
        (
            {
                "attacks": "present",
                "original": 1,
                "strata": "sex",
                "metric": "taxicab",
                "blank": "age",
                "permutations": 3,
                "eif": {"sex": [1]},
            },
            [
                "strata needs attacks found",
                "metric needs",
                "blank needs",
                "permutations needs",
                "eif needs attacks found",
            ],
        ),
    ],
)
def test_bad_input_is_told_at_once(options, words):
    people = people_of(50, 1)
    given = {"puf": people, "link": ["sex", "age"], **options}
    if "original" in options:
        given["original"] = people
    with pytest.raises(InputError) as caught:
        keyhole.study(**given)
    for word in words:
        assert word in str(caught.value)


def test_numbers_beyond_64_bits_are_numbers_of_all_three_files():
    numbers = [2**63 + 1000 * n for n in range(80)]
    whole = pl.DataFrame(
        {"a": pl.Series(numbers, dtype=pl.UInt64), "b": [n % 7 for n in range(80)]}
    )
    asked = {"attacks": ["present", "singled-out"], "link": ["a", "b"], "numeric": ["a"]}
    found = keyhole.study(puf=whole[:40], original=whole[:40], control=whole[40:], **asked)
    small = whole.with_columns(pl.col("a") - 2**63)
    again = keyhole.study(puf=small[:40], original=small[:40], control=small[40:], **asked)
    assert found.attacks["present"].success == again.attacks["present"].success == 1


def test_types_that_clash_are_told_without_values():
    people = people_of(50, 1)
    words = people.with_columns(age=pl.lit("forty-two"))
    with pytest.raises(InputError, match="must be of one type") as caught:
        keyhole.study(puf=people, original=words, control=words, attacks="present",
                      link=["sex", "age"])  # fmt: skip
    assert "forty-two" not in str(caught.value)


def test_the_command_line_names_flags_and_writes_nothing(tmp_path, capsys):
    path, picture = tmp_path / "people.csv", tmp_path / "attacks.svg"
    people_of(100, 1).write_csv(path)
    asked = ["study", "--puf", str(path), "--link", "sex,age", "--plot", str(picture)]
    assert run([*asked, "--attacks", "linked,inferred"]) == 2
    said = capsys.readouterr().err
    for words in ("need --original", "--second-link must name", "--secret must name"):
        assert words in said
    assert run(asked) == 2
    assert "--eif must be" in capsys.readouterr().err
    assert run([*asked, "--attacks", "present", "--original", str(path), "--pairs", "p.csv"]) == 2
    assert "--pairs needs --attacks found" in capsys.readouterr().err
    strange = ["--attacks", "stolen", "--original", "no.csv", "--control", "nor.csv"]
    assert run([*asked, *strange, "--secret", "ill", "--seed", "-1"]) == 2
    said = capsys.readouterr().err
    for words in ("--seed must be", "--attacks must be", "'no.csv' does not", "'nor.csv' does not"):
        assert words in said
    assert not picture.exists()
    assert run([*asked, "--attacks", "present", "--original", str(path), "--json"]) == 0
    assert picture.exists()


def test_a_control_that_is_the_original_is_refused():
    frame = pl.DataFrame({"a": list(range(60)), "b": [n % 7 for n in range(60)]})
    asked = {"attacks": ["present"], "link": ["a", "b"], "seed": 7}
    with pytest.raises(InputError, match="control must be people who are not in the file"):
        keyhole.study(puf=frame, original=frame, control=frame, **asked)


def test_a_missing_number_is_neither_the_smallest_nor_the_largest():
    """It is one value like any other: alone it singles out, and no value lies beyond it."""
    release = np.array([[0.1, 3.0], [0.5, 3.0], [0.5, 4.0], [MISSING, 4.0], [MISSING, 5.0]])
    people = SimpleNamespace(numbers=[True, False], release=release)
    found = univariate(people, np.random.default_rng(1))
    parts = (found.columns.tolist(), found.low.tolist(), found.high.tolist())
    rows = set(zip(*parts, strict=True))
    assert rows == {(0, 0.1, 0.1), (0, -BEYOND, 0.1), (0, 0.5, 1 + BEYOND), (1, 5.0, 5.0)}
    nobody = SimpleNamespace(numbers=[True], release=np.full((3, 1), MISSING))
    assert univariate(nobody, np.random.default_rng(1)) is None


def test_a_missing_number_is_asked_for_itself_among_several_columns():
    """Only the record without a number is alone on both columns."""
    release = np.array([[MISSING, 0.0]] + [[0.5, 0.0]] * 5 + [[0.5, 1.0]] * 5)
    people = SimpleNamespace(release=release, names="xb", numbers=np.array([True, False]))
    found = multivariate(people, np.random.default_rng(1))
    parts = (found.columns.tolist(), found.low.tolist(), found.high.tolist())
    assert [*zip(*parts, strict=True)] == [(0, MISSING, MISSING), (1, 0.0, 0.0)]
