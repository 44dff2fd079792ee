"""Protections that draw, and microaggregation: what they keep, against slow twins."""

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.data import Variable, load
from keyhole.data.examples import veterans_sample
from keyhole.data.microdata import Microdata
from keyhole.errors import InputError, OptionError
from keyhole.exposure.cells import risk
from keyhole.kernels.mdav import LEAF, mdav, plant, take
from keyhole.kernels.nearest_donors import rank_partners
from keyhole.protection.methods.leaving_out import sample
from keyhole.protection.methods.microaggregation import microaggregate
from keyhole.protection.methods.noise import _mirrored, add_noise
from keyhole.protection.methods.pram import make_invariant, pram
from keyhole.protection.methods.swapping import rank_swap, swap_records

KEYS = ["sex", "ag8r", "race1", "ms"]


def people(**columns):
    return load(pl.DataFrame(columns))


def table(data, *names):
    return Counter(data.frame.select(names).rows())


@pytest.mark.parametrize(
    "work",
    [
        lambda d, s: add_noise(d, columns=["income"], size=0.2, seed=s),
        lambda d, s: rank_swap(d, columns=["income"], share=0.05, seed=s),
        lambda d, s: swap_records(d, area=["homstate"], match=["sex"], keys=KEYS, seed=s),
        lambda d, s: pram(d, column="ms", p=0.7, seed=s),
        lambda d, s: sample(d, fraction=0.3, seed=s),
    ],
)
def test_the_same_seed_gives_the_same_file_and_another_another(work):
    data = veterans_sample(400, seed=2)
    frame = data.frame.clone()
    assert work(data, 5).data.frame.equals(work(data, 5).data.frame)
    assert not work(data, 5).data.frame.equals(work(data, 6).data.frame)
    assert data.frame.equals(frame)  # what was given is untouched


# Noise


def two_measures(n, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(50, 10, n)
    return people(x=x, y=0.8 * x + generator.normal(0, 6, n) + 100)


@pytest.mark.parametrize("kind", ["additive", "correlated"])
@pytest.mark.parametrize("rescale", [False, True])
def test_noise_keeps_means_and_what_it_promises_of_covariances(kind, rescale):
    n, size = 40_000, 0.5
    data = two_measures(n)
    made = add_noise(data, columns=["x", "y"], size=size, kind=kind, rescale=rescale, seed=3)
    old, new = (d.frame.to_numpy() for d in (data, made.data))
    sd = old.std(axis=0)
    # Six standard errors: of a mean, and of a covariance of normal variables.
    assert np.abs(new.mean(axis=0) - old.mean(axis=0)).max() < 6 * size * sd.max() / math.sqrt(n)
    shrunk = 1 + size**2 if rescale else 1
    wanted = np.cov(old.T) + size**2 * (np.cov(old.T) if kind == "correlated" else np.diag(sd**2))
    bound = 6 * 2 * (1 + size**2) * np.outer(sd, sd) / math.sqrt(n)
    assert (np.abs(np.cov(new.T) - wanted / shrunk) < bound).all()


def test_multiplicative_noise_keeps_sign_zero_and_mean():
    n, size = 40_000, 0.3
    data = people(x=np.concatenate([np.zeros(n // 4), np.full(n - n // 4, -200.0)]))
    made = add_noise(data, columns=["x"], size=size, kind="multiplicative", seed=1)
    ratio = made.data.frame["x"].to_numpy()[n // 4 :] / -200
    assert (made.data.frame["x"].to_numpy()[: n // 4] == 0).all()
    assert (ratio > 0).all()
    assert abs(ratio.mean() - 1) < 6 * size / math.sqrt(len(ratio))
    assert abs(ratio.std() - size) < 0.02


def test_noise_keeps_missing_values_whole_numbers_bounds_and_codes():
    frame = pl.DataFrame({"age": [*[40] * 300, -9, None, *range(38, 43)]})
    data = Microdata(frame, [Variable("age", "measure", missing_codes=(-9, 41))])
    made = add_noise(data, columns=["age"], size=2, low=30, high=45, seed=4)
    new = made.data.frame["age"]
    assert new.dtype == pl.Int64
    assert new[300] == -9
    assert new[301] is None
    assert made.data.column("age").null_count() == data.column("age").null_count()
    known = made.data.column("age").drop_nulls()
    assert known.min() >= 30
    assert known.max() <= 46  # 45, or past a code
    with pytest.raises(OptionError, match="lie outside"):
        add_noise(data, columns=["age"], size=2, low=40, seed=4)
    with pytest.raises(OptionError, match="must hold numbers"):
        add_noise(people(x=[*"ab"]), columns=["x"], size=1, seed=1)


def test_bounds_of_noise_may_be_the_ends_of_a_column_but_not_within_it():
    data = people(x=[1.0, 2.0, 3.0, 4.0], still=[7.0] * 4)
    for low, high, said in [
        (1.5, 4, "1 of its values lies"),
        (2.5, 3.5, "3 of its values lie"),
        (4, 4, "low must be below high"),
    ]:
        with pytest.raises(OptionError, match=said):
            add_noise(data, columns=["x"], size=1, low=low, high=high, seed=1)
    made = add_noise(data, columns=["x", "still"], size=9, low=1, high=7, seed=1)
    assert made.data.frame["x"].is_between(1, 7).all()
    assert made.notes == ("column 'still' does not vary",)
    free = add_noise(people(x=[0.0, 1.0, 4.0]), columns=["x"], size=3, seed=4)
    assert free.data.frame["x"].min() >= 0
    assert free.notes == ("column 'x' has no negative values, and got none: mirrored at 0",)
    for kind in ("additive", "correlated"):
        add_noise(data, columns=["x"], size=1, kind=kind, rescale=True, seed=1)
    with pytest.raises(OptionError, match="rescale can only be used with additive and correlated"):
        add_noise(data, columns=["x"], size=1, kind="multiplicative", rescale=True, seed=1)


@pytest.mark.parametrize("known", [2, 3])
def test_correlated_noise_needs_three_complete_records(known):
    columns = {"x": [1.0, 2.0, 4.0, None], "y": [3.0, 1.0, 1.0, 2.0]}
    data = load(pl.DataFrame(columns)[4 - known - 1 :] if known == 2 else pl.DataFrame(columns))
    if known == 3:
        assert add_noise(data, columns=[*"xy"], size=1, kind="correlated", seed=1).changed == 7
        return
    with pytest.raises(OptionError, match="needs 3 or more records"):
        add_noise(data, columns=[*"xy"], size=1, kind="correlated", seed=1)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=9), st.floats(-9, -1), st.floats(1, 9))
def test_noise_beyond_a_bound_is_mirrored_at_it(numbers, low, high):
    found = _mirrored(np.array(numbers), low, high)
    for number, made in zip(numbers, found, strict=True):
        number = 2 * low - number if number < low else number
        number = 2 * high - number if number > high else number
        assert made == min(max(number, low), high)
    assert _mirrored(np.array(numbers), -np.inf, np.inf).tolist() == numbers


# Swapping


@given(st.integers(1, 40), st.integers(1, 45), st.integers(0, 1000))
def test_partners_are_near_and_mutual(count, window, seed):
    partner = rank_partners(window, np.random.default_rng(seed).random(count))
    assert (partner[partner] == np.arange(count)).all()
    assert np.abs(partner - np.arange(count)).max() <= window
    alone = partner == np.arange(count)
    # Nobody is alone while a free one is within reach.
    gaps = np.diff(np.flatnonzero(alone))
    assert (gaps > window).all()


@given(
    st.lists(st.integers(0, 20) | st.none(), min_size=2, max_size=60),
    st.floats(0.01, 0.5),
    st.integers(0, 99),
)
def test_rank_swapping_keeps_the_distribution_exactly(numbers, share, seed):
    data = load(pl.DataFrame({"x": numbers}, schema={"x": pl.Int64}))
    made = rank_swap(data, columns=["x"], share=share, seed=seed)
    assert table(made.data, "x") == table(data, "x")
    new = made.data.frame["x"].to_list()
    assert [n is None for n in new] == [n is None for n in numbers]
    known = sorted(n for n in numbers if n is not None)
    window = max(1, int(share * len(known)))
    for old, now in zip(numbers, new, strict=True):
        if old is not None and old != now:
            low, high = sorted((old, now))
            apart = known.index(high) - (len(known) - 1 - known[::-1].index(low))
            assert apart <= window
    assert made.changed == sum(a != b for a, b in zip(numbers, new, strict=True))


def test_rank_swapping_refuses_text():
    with pytest.raises(OptionError, match="must hold numbers or dates"):
        rank_swap(people(x=[*"abc"]), columns=["x"], share=0.5, seed=1)


def test_targeted_swapping_keeps_tables_by_match_and_moves_those_at_risk():
    data = veterans_sample(2_000, seed=4)
    options = {"area": ["homstate", "area"], "match": ["sex", "ag8r"]}
    made = swap_records(data, **options, keys=[*KEYS, "homstate"], cutoff=2, seed=8)
    names = ("homstate", "area", "sex", "ag8r")
    assert table(made.data, *names) == table(data, *names)
    others = [name for name in data.names if name not in options["area"]]
    assert made.data.frame.select(others).equals(data.frame.select(others))
    moved = (made.data.frame["area"] != data.frame["area"]).to_numpy()
    at_risk = risk(data, keys=[*KEYS, "homstate"]).f < 2
    assert moved[at_risk].mean() > 0.9
    again = swap_records(data, **options, keys=[*KEYS, "homstate"], cutoff=2, relax=True, seed=8)
    assert (again.data.frame["area"] != data.frame["area"]).to_numpy()[at_risk].all()
    assert table(again.data, "homstate", "area") == table(data, "homstate", "area")


@pytest.mark.parametrize(("share", "moved"), [(None, 4), (0.2, 4), (0.4, 8), (0.37, 8), (1, 20)])
def test_others_are_swapped_until_a_share_of_the_records_is(share, moved):
    """Two of twenty are at risk, and each is swapped with another."""
    data = people(area=[*"ab"] * 10, sex=["f"] * 20, key=[1, 3, 2, *[3] * 17])
    made = swap_records(data, area="area", match="sex", keys="key", share=share, seed=2)
    assert (data.frame["area"] != made.data.frame["area"]).sum() == moved == made.changed
    assert [note.values for note in made.notes] == [
        {"records": moved}, {"at_risk": 2, "stuck": 0},
    ]  # fmt: skip


def test_partners_agree_on_the_match_and_lie_elsewhere():
    data = people(area=[*"aabb"], sex=[*"fmfm"], who=[0, 1, 2, 3])
    made = swap_records(data, area="area", match="sex", share=1.0, seed=1)
    assert made.data.frame["area"].to_list() == [*"bbaa"]
    with pytest.raises(OptionError, match="two or more areas"):
        swap_records(people(area=[1, 1], sex=[1, 2]), area="area", match="sex", share=0.5, seed=1)
    with pytest.raises(OptionError, match="who is to be swapped"):
        swap_records(data, area="area", match="sex", seed=1)
    with pytest.raises(OptionError, match="an area and a match"):
        swap_records(data, area="area", match="area", share=0.1, seed=1)


# Microaggregation


def slow_mdav(points, k):
    """MDAV as it is written: all records left are looked at for every group."""
    left, group, number = list(range(len(points))), {}, 0

    def apart(i, centre):
        return float(((points[i] - centre) ** 2).sum())

    def close(start):
        others = sorted((i for i in left if i != start), key=lambda i: (apart(i, points[start]), i))
        for i in [start, *others[: k - 1]]:
            left.remove(i)
            group[i] = number

    while len(left) >= 2 * k:
        both = len(left) >= 3 * k
        centre = points[left].sum(axis=0) / len(left)
        start = max(left, key=lambda i: (apart(i, centre), -i))
        close(start)
        number += 1
        if both:
            close(max(left, key=lambda i: (apart(i, points[start]), -i)))
            number += 1
    group |= dict.fromkeys(left, number)
    return [group[i] for i in range(len(points))]


@given(st.integers(2, 6), st.integers(0, 300), st.integers(1, 3), st.integers(0, 999))
def test_mdav_is_its_slow_twin(k, more, sides, seed):
    generator = np.random.default_rng(seed)
    points = generator.integers(0, generator.integers(2, 40), (k + more, sides)).astype(float)
    assert mdav(points, k).tolist() == slow_mdav(points, k)


@given(st.integers(1, 300), st.integers(1, 3), st.integers(0, 2**16))
def test_boxes_are_halved_on_their_widest_side_and_shrink_as_records_go(count, sides, seed):
    generator = np.random.default_rng(seed)
    points = generator.integers(0, 99, (count, sides)).astype(float)
    tree = plant(points)
    nodes = 2 * tree.leaves - 1
    assert LEAF * tree.leaves >= count > LEAF * tree.leaves // 2 or tree.leaves == 1
    gone: set[int] = set()
    for records in [[], *np.array_split(generator.permutation(count)[: count // 2], 4)]:
        for record in records:
            take(tree, record)
            gone.add(record)
        held = [set() for _ in range(nodes)]
        for node in reversed(range(nodes)):
            leaf, left = node - (tree.leaves - 1), tree.alive[node]
            children = held[2 * node + 1 : 2 * node + 3]
            held[node] = {*tree.records[leaf, :left]} if leaf >= 0 else set().union(*children)
            rows = points[sorted(held[node])]
            assert left == len(rows)
            assert (tree.low[node] == rows.min(axis=0, initial=np.inf)).all()
            assert (tree.high[node] == rows.max(axis=0, initial=-np.inf)).all()
            if leaf >= 0:
                assert (points[tree.records[leaf, :left]] == tree.points[leaf, :, :left].T).all()
            elif not gone:
                one, other = (points[sorted(child)] for child in children)
                assert 0 <= len(other) - len(one) <= 1
                side = np.argmax(np.ptp(rows, axis=0))
                assert one[:, side].max() <= other[:, side].min()
        assert held[0] == set(range(count)) - gone


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=4, max_size=80),
    st.integers(2, 4),
    st.booleans(),
)
def test_groups_have_k_records_and_the_mean_stays(rows, k, separately):
    frame = pl.DataFrame({"x": [float(a) for a, _ in rows], "y": [b for _, b in rows]})
    made = microaggregate(load(frame), columns=["x", "y"], k=k, separately=separately)
    new = made.data.frame
    dominated = any("replaced by medians" in note for note in made.notes)
    for name in ("x", "y"):
        assert dominated or new[name].mean() == pytest.approx(frame[name].mean())
        if separately:
            assert new[name].value_counts()["count"].min() >= k
    if not separately:
        assert new.group_by("x", "y").len()["len"].min() >= k


def test_microaggregation_stays_within_strata_and_spares_records_that_miss_a_value():
    data = people(sex=[*"fmfmfm"], pay=[1.0, 100.0, 3.0, 200.0, None, 300.0])
    made = microaggregate(data, columns=["pay"], k=2, by=["sex"])
    assert made.data.frame["pay"].to_list() == [2.0, 200.0, 2.0, 200.0, None, 200.0]
    assert "1 record with a missing value" in made.notes[1]
    median = microaggregate(data, columns=["pay"], k=5, replace="median")
    assert set(median.data.frame["pay"].drop_nulls()) == {100.0}


def test_a_mean_that_one_record_makes_is_a_median():
    made = microaggregate(people(pay=[6, 7, 100]), columns=["pay"], k=3)
    assert made.data.frame["pay"].to_list() == [7, 7, 7]
    assert made.notes[-1].startswith("1 mean was replaced by medians")
    made = microaggregate(people(pay=[60, 70, 100]), columns=["pay"], k=3)
    assert made.data.frame["pay"].to_list() == [pytest.approx(230 / 3)] * 3


def test_microaggregation_rounds_if_asked_to():
    data = people(age=[30, 31, 50, 55])
    assert microaggregate(data, columns=["age"], k=2).data.frame["age"].to_list() == [
        30.5, 30.5, 52.5, 52.5,
    ]  # fmt: skip
    whole = microaggregate(data, columns=["age"], k=2, whole=True).data.frame["age"]
    assert whole.to_list() == [30, 30, 52, 52]
    assert whole.dtype == pl.Int64


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 1}, "k must be a whole number of at least 2"),
        ({"k": 9}, "k must be at most the 4 records of the file. Got 9 instead"),
        ({"k": 3, "by": ["sex"]}, "2 strata have fewer than 3"),
        ({"k": 2, "columns": ["sex"]}, "must hold numbers"),
        ({"k": 2, "by": ["x"]}, "'x' is named in by and in columns"),
    ],
)
def test_microaggregation_that_is_refused(options, message):
    data = people(x=[1, 2, 3, 4], sex=[*"ffmm"])
    with pytest.raises(OptionError, match=message):
        microaggregate(data, **{"columns": ["x"], **options})


# PRAM


@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=6), st.floats(0.05, 0.95), st.integers(0, 9)
)
def test_the_invariant_matrix_keeps_expected_frequencies(counts, p, seed):
    counts = np.array(counts, dtype=float)
    matrix = np.random.default_rng(seed).random((len(counts), len(counts))) + p * np.eye(
        len(counts)
    )
    matrix /= matrix.sum(axis=1, keepdims=True)
    found = make_invariant(matrix, counts)
    assert found.sum(axis=1) == pytest.approx(1)
    assert (found >= 0).all()
    assert counts @ found == pytest.approx(counts)


def test_pram_gives_the_expected_frequencies_and_shows_its_matrix_to_nobody():
    levels, shares, n = [*"abc"], [0.6, 0.3, 0.1], 30_000
    column = np.repeat(levels, [int(s * n) for s in shares])
    made = pram(people(x=column), column="x", p=0.6, invariant=True, seed=2)
    matrix = made.internal["matrix"]
    for level, share, place in zip(levels, shares, range(3), strict=True):
        # The variance of a sum of independent draws, six standard deviations of it.
        spread = sum(
            s * n * matrix[i, place] * (1 - matrix[i, place]) for i, s in enumerate(shares)
        )
        assert abs((made.data.frame["x"] == level).sum() - share * n) < 6 * math.sqrt(spread)
    assert "matrix" not in made.to_dict()
    assert f"{matrix[0, 0]:.3f}" not in repr(made)
    plain = pram(people(x=column), column="x", p=0.6, seed=2)
    assert abs(plain.changed / n - 0.4) < 6 * math.sqrt(0.24 / n)
    assert plain.internal["matrix"].tolist()[0] == pytest.approx([0.6, 0.2, 0.2])


def test_a_matrix_is_followed_and_missing_values_stay():
    data = people(x=["1", "2", None, "2"])
    swap = {"1": {"2": 1.0, "7": 0.0}, "2": {"1": 1}, "7": {"7": 1.0}}
    with pytest.raises(OptionError, match="lead only to categories"):
        pram(data, column="x", matrix=swap, seed=1)
    del swap["7"]
    assert pram(data, column="x", matrix=swap, seed=1).data.frame["x"].to_list() == [
        "2", "1", None, "1",
    ]  # fmt: skip
    with pytest.raises(OptionError, match="misses 1 of 2"):
        pram(data, column="x", matrix={"1": {"1": 1.0}}, seed=1)
    with pytest.raises(OptionError, match="row '1' of matrix must add to 1"):
        pram(data, column="x", matrix={"1": {"2": 0.5}, "2": {"1": 1.0}}, seed=1)
    with pytest.raises(OptionError, match="lead only to categories"):
        pram(data, column="x", matrix={"1": {"9": 1.0}, "2": {"1": 1.0}}, seed=1)
    with pytest.raises(OptionError, match="exactly one of 'matrix', 'p'"):
        pram(data, column="x", seed=1)


def test_frequent_categories_are_more_likely_if_asked_for():
    made = pram(people(x=[*"aaabbc"]), column="x", p=0.4, spread="frequent", seed=1)
    assert made.internal["matrix"][2].tolist() == pytest.approx([0.36, 0.24, 0.4])


# Sampling


@given(
    st.lists(st.sampled_from("abc"), min_size=2, max_size=80),
    st.floats(0.05, 0.95),
    st.integers(0, 99),
)
def test_samples_have_their_size_in_every_stratum(strata, fraction, seed):
    data = people(s=strata, who=range(len(strata)))
    size = int(np.rint(fraction * len(strata)))
    if not 1 <= size < len(strata):
        with pytest.raises(OptionError, match="the sample must have"):
            sample(data, fraction=fraction, by=["s"], seed=seed)
        return
    made = sample(data, fraction=fraction, by=["s"], seed=seed)
    assert made.data.records == size == len(strata) - made.left_out
    who = made.data.frame["who"].to_list()
    assert who == sorted(set(who))
    share = size / len(strata)
    for level, count in Counter(strata).items():
        kept = made.data.frame["s"].to_list().count(level)
        assert abs(kept - count * share) < 1


def test_weights_of_a_sample_add_to_the_population():
    data = people(s=[*"aaaabb"] * 5, w=[2.0] * 30)
    made = sample(data, size=15, by=["s"], weight="w", seed=3)
    assert made.data.frame["w"].sum() == pytest.approx(60)
    with pytest.raises(InputError, match="must have no missing values"):
        sample(people(w=[1.0, None, 2.0]), size=1, weight="w", seed=1)


def test_every_record_is_equally_likely_to_be_sampled():
    data, times = people(x=range(10)), 3_000
    hits = sum(
        (
            np.bincount(sample(data, size=3, seed=s).data.frame["x"], minlength=10)
            for s in range(times)
        ),
        start=np.zeros(10),
    )
    assert np.abs(hits / times - 0.3).max() < 6 * math.sqrt(0.21 / times)


@pytest.mark.parametrize(
    "matrix", [{"1": [1.0], "2": {"2": 1.0}}, {"1": {"1": -0.5, "2": 1.5}, "2": {"2": 1.0}}, {}]
)
def test_what_is_no_matrix_of_probabilities_is_refused(matrix):
    with pytest.raises(OptionError, match="matrix must be"):
        pram(people(x=[1, 2, 2]), column="x", matrix=matrix, seed=1)


@pytest.mark.parametrize("records", [49, 50])
def test_pram_says_what_was_kept_and_least_of_a_frequent_category(records):
    """Of a category with fewer than fifty records the share would tell of them."""
    column = pl.Series(["a"] * records + ["b"] * 20 + [None])
    made = pram(people(x=column), column="x", p=0.5, invariant=True, seed=3)
    same = (made.data.frame["x"] == column).drop_nulls()
    (note,) = made.notes
    assert (note.code == "pram.kept.frequent") == (records == 50)
    assert note.values["share"] == same.mean()
    assert note.values["changed"] == (~same).sum() == made.changed
    if records == 50:
        assert note.values["least"] == same[:50].mean()


def test_pram_refuses_a_column_of_too_many_categories():
    with pytest.raises(OptionError, match="from 2 to 2,000 categories"):
        pram(people(x=[f"p{i}" for i in range(2_500)]), column="x", p=0.5, seed=1)
