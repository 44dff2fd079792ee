"""Which records are designated for synthesis, and which of their values are replaced."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.data import load
from keyhole.data.examples import veterans, veterans_sample
from keyhole.errors import FileError, OptionError
from keyhole.exposure.uniques import uniques
from keyhole.synthesis.designate import designate
from keyhole.synthesis.synthesise import synthesise
from keyhole.synthesis.targets import choose_targets, default_predictors, order_targets

KEYS = ["sex", "ag8r", "ms", "race1", "homstate"]
SAMPLE = veterans_sample(2_000, seed=3)


def small(seed: int, records: int = 40, variables: int = 4) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    levels = generator.integers(2, 6, size=variables)
    names = "abcdef"[:variables]
    return pl.DataFrame(
        {n: generator.integers(k, size=records) for n, k in zip(names, levels, strict=True)}
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_at_risk_are_rare_fingerprints(seed: int, cutoff: int) -> None:
    frame = small(seed)
    found = designate(frame, keys=frame.columns, cutoff=cutoff, seed=1)
    prints = ["|".join(map(str, row)) for row in frame.iter_rows()]
    times = Counter(prints)
    assert found.at_risk.tolist() == [times[p] < cutoff for p in prints]
    assert ((found.level > 0) == found.at_risk).all()
    assert not found.decoy.any()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_levels_are_by_the_fewest_variables_that_single_out(seed: int) -> None:
    frame = small(seed)
    found = designate(frame, keys=frame.columns, seed=1)
    rows = frame.rows()
    for i, row in enumerate(rows):
        sizes = [
            len(kept)
            for size in range(1, 5)
            for kept in itertools.combinations(range(4), size)
            if sum(all(other[v] == row[v] for v in kept) for other in rows) == 1
        ]
        expected = 0 if not sizes else 3 if sizes[0] <= 2 else 2 if sizes[0] == 3 else 1
        assert found.level[i] == expected


def test_levels_are_those_of_the_minimal_uniques() -> None:
    one = designate(SAMPLE, keys=KEYS, seed=1)
    assert (one.level == uniques(SAMPLE, keys=KEYS, max_size=5, cutoff=2).level).all()
    assert "unique on 1 or 2 variables" in repr(one)


@pytest.mark.parametrize("ratio", [0.0, 0.25, 1.0, 2.0])
def test_decoys_are_common_and_as_many_as_asked(ratio: float) -> None:
    keys = ["sex", "ag8r", "race1", "ms"]
    found = designate(SAMPLE, keys=keys, decoys=ratio, seed=5)
    risky = int(found.at_risk.sum())
    assert found.decoy.sum() == round(ratio * risky)
    assert not (found.decoy & found.at_risk).any()
    assert found.risk_given_changed == pytest.approx(1 / (1 + ratio), abs=0.01)
    assert (found.changed == found.at_risk | found.decoy).all()
    assert found.to_dict()["risk_given_changed"] == found.risk_given_changed
    again = designate(SAMPLE, keys=keys, decoys=ratio, seed=5)
    other = designate(SAMPLE, keys=keys, decoys=ratio, seed=6)
    assert (found.decoy == again.decoy).all()
    assert ratio == 0 or (found.decoy != other.decoy).any()


def test_decoys_are_any_common_record() -> None:
    """Over many seeds every common record is drawn about as often."""
    frame = pl.DataFrame({"a": [*range(10), *[99] * 30]})
    drawn = sum(
        designate(frame, keys=["a"], decoys=1, seed=s).decoy.astype(int) for s in range(400)
    )
    assert (drawn[:10] == 0).all()
    assert abs(drawn[10:] - 400 / 3).max() < 45


def test_too_few_common_records_are_said() -> None:
    frame = pl.DataFrame({"a": [1, 2, 3, 4, 4]})
    found = designate(frame, keys=["a"], decoys=5, seed=1)
    assert found.decoy.sum() == 2
    assert any("only 2 common records" in note for note in found.notes)


def test_nobody_and_everybody_at_risk_are_said() -> None:
    same = designate(pl.DataFrame({"a": [1, 1], "b": [2, 2]}), keys=["a", "b"], decoys=1, seed=1)
    assert not same.changed.any()
    assert same.risk_given_changed is None
    assert any("no record is at risk" in note for note in same.notes)
    assert "not estimable" in repr(same)
    all_of_them = designate(pl.DataFrame({"a": [1, 2]}), keys=["a"], decoys=1, seed=1)
    assert all_of_them.at_risk.all()
    assert not all_of_them.decoy.any()
    assert any("every record is at risk" in note for note in all_of_them.notes)


def test_least_probability_keeps_the_likely_population_uniques() -> None:
    world = veterans(50_000, seed=2)
    keys = ["sex", "age", "ms", "homstate"]
    wide = designate(world.sample, keys=keys, weight="weight", seed=1)
    narrow = designate(
        world.sample, keys=keys, weight="weight", least_probability=0.5, cutoff=3, seed=1
    )
    likely = np.nan_to_num(wide.probability) >= 0.5
    assert (narrow.at_risk == likely).all()
    assert 0 < narrow.at_risk.sum() < wide.at_risk.sum() / 2
    assert (narrow.level[~narrow.at_risk] == 0).all()
    assert wide.sampling_bound == pytest.approx(0.1, abs=0.01)
    assert np.isnan(wide.probability[~wide.at_risk]).all()
    # Records that are no longer at risk are still rare: they are no decoys.
    mixed = designate(
        world.sample, keys=keys, weight="weight", least_probability=0.5, decoys=1, seed=1
    )
    assert not (mixed.decoy & wide.at_risk).any()


def test_what_flags_is_told_but_small_categories_are_not_named() -> None:
    frame = pl.DataFrame(
        {"who": ["hermit"] * 2 + ["crowd"] * 20, "age": [1, 2, *range(3, 13), *[50] * 10]}
    )
    found = designate(frame, keys=["who", "age"], seed=1)
    causes = {cause.variable: cause for cause in found.causes}
    assert found.causes[0].variable == "age"
    assert causes["age"].flags == 12
    assert causes["age"].category is None
    assert causes["age"].category_flags is None
    shown = repr(found) + found._repr_html_() + str(found.to_dict())
    assert "hermit" not in shown


def test_the_category_that_flags_most_is_named_by_its_label() -> None:
    found = designate(SAMPLE, keys=KEYS, seed=1)
    worst = found.causes[0]
    counts = [c.flags for c in found.causes]
    assert counts == sorted(counts, reverse=True)
    assert worst.category_flags >= 3
    labels = SAMPLE.variable(worst.variable).value_labels
    levels = SAMPLE.codes(worst.variable).levels.to_list()
    assert worst.category in [str(labels.get(level, level)) for level in levels]


def test_the_seed_is_in_nothing_that_is_printed() -> None:
    found = designate(SAMPLE, keys=KEYS, decoys=1, seed=987_654_321)
    assert found.seed == 987_654_321
    shown = repr(found) + found._repr_html_() + str(found.to_dict()) + str(found.to_frame())
    assert "987654321" not in shown
    assert "987,654,321" not in shown


def test_the_frame_has_a_row_a_record() -> None:
    plain = designate(SAMPLE, keys=KEYS, seed=1).to_frame()
    assert plain.columns == ["at_risk", "decoy", "level"]
    known = designate(SAMPLE, keys=KEYS, fraction=0.1, seed=1).to_frame()
    assert known.height == SAMPLE.records
    assert known.filter(~pl.col("at_risk"))["probability"].null_count() == (
        known.height - known["at_risk"].sum()
    )


def test_many_keys_are_searched_in_part() -> None:
    keys = list(SAMPLE.role("key"))[:12]
    found = designate(SAMPLE, keys=keys, seed=1)
    assert found.sets.max_size == 4
    assert any("up to 4 of 12" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"keys": ["x"]}, "not a column"),
        ({"keys": []}, "at least one"),
        ({"cutoff": 1}, "cutoff must be a whole number of at least 2"),
        ({"decoys": -1}, "decoys"),
        ({"decoys": float("inf")}, "decoys"),
        ({"least_probability": 0.5}, "needs a weight"),
        ({"least_probability": 2, "fraction": 0.1}, "least probability"),
        ({"weight": "a", "fraction": 0.1}, "leave one of them out"),
        ({"fraction": 5}, "fraction"),
        ({"max_size": 9}, "max_size"),
        ({"seed": -1}, "seed"),
        ({"seed": "s3cret"}, "seed must be"),
    ],
)
def test_bad_options(options: dict, says: str) -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": [1, 1]})
    with pytest.raises(OptionError, match=says) as caught:
        designate(frame, **{"keys": ["a", "b"], "seed": 1, **options})
    assert "s3cret" not in str(caught.value)


def test_a_file_without_records() -> None:
    with pytest.raises(FileError, match="no records"):
        designate(pl.DataFrame({"a": pl.Series([], dtype=pl.Int64)}), keys=["a"], seed=1)


# Targets.


def test_the_same_set_for_all() -> None:
    found = designate(SAMPLE, keys=KEYS, decoys=0.5, seed=1)
    chosen = choose_targets(SAMPLE, found, targets=["ms", "income"])
    assert chosen.replace.shape == (SAMPLE.records, 2)
    assert (chosen.replace == found.changed[:, None]).all()


def smallest_breaking(sets: list[set[str]], targets: list[str]) -> int:
    """Try all sets of targets, the smallest first."""
    for size in range(len(targets) + 1):
        for some in itertools.combinations(targets, size):
            if all(held & set(some) for held in sets):
                return size
    raise AssertionError


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sets(st.sampled_from("abcde"), min_size=1), st.integers(2, 3))
def test_targeted_sets_break_all_minimal_uniques_with_the_fewest(
    seed: int, wanted: set[str], cutoff: int
) -> None:
    frame = small(seed, records=60, variables=5)
    data, targets = load(frame), sorted(wanted)
    found = designate(data, keys=frame.columns, cutoff=cutoff, seed=seed)
    chosen = choose_targets(data, found, targets=targets, targeted=True)
    lost = records_lost = 0
    for record in range(60):
        taken = {t for t, on in zip(targets, chosen.replace[record], strict=True) if on}
        masks = found.sets.mask[found.sets.owner == record].tolist()
        sets = [{n for j, n in enumerate(frame.columns) if m >> j & 1} for m in masks]
        breakable = [held & wanted for held in sets if held & wanted]
        lost += len(sets) - len(breakable)
        records_lost += len(sets) > len(breakable)
        assert all(held & taken for held in breakable)
        fewest = smallest_breaking(breakable, targets) if breakable else 1
        # A single value comes back too often: a second one of the key goes with it.
        wanted_size = min(max(fewest, 2), len(targets)) * int(found.at_risk[record])
        assert len(taken) == wanted_size
    assert (chosen.unbroken_sets, chosen.unbroken_records) == (lost, records_lost)
    assert bool(lost) == any("contain no target" in note for note in chosen.notes)


def test_of_equally_small_sets_those_in_most_minimal_uniques_are_taken() -> None:
    """Record 0 is alone on (a, b), (a, c) and (b, c, d): a and d are in fewer of them."""
    rows = [(0, 0, 0, 0), (0, 1, 1, 1), (1, 0, 0, 1), (0, 1, 2, 0), (1, 0, 2, 0), (1, 1, 0, 0)]
    data = load(pl.DataFrame(rows + rows[1:], schema=[*"abcd"], orient="row"))
    seen = set()
    for seed in range(100):
        found = designate(data, keys=[*"abcd"], seed=seed)
        masks = sorted(found.sets.mask[found.sets.owner == 0].tolist())
        assert masks == [0b0011, 0b0101, 0b1110]
        chosen = choose_targets(data, found, targets=[*"abcd"], targeted=True)
        seen.add("".join(t for t, on in zip("abcd", chosen.replace[0], strict=True) if on))
    assert seen == {"ab", "ac", "bc"}


def test_decoys_are_changed_like_the_records_at_risk() -> None:
    found = designate(SAMPLE, keys=KEYS[:4], decoys=1, seed=4)
    chosen = choose_targets(SAMPLE, found, targets=KEYS[:4], targeted=True)
    risky, decoy = chosen.replace[found.at_risk], chosen.replace[found.decoy]
    assert {tuple(row) for row in decoy} <= {tuple(row) for row in risky}
    assert decoy.any(axis=1).all()
    spread = np.sqrt(0.25 / len(decoy))
    assert (abs(risky.mean(axis=0) - decoy.mean(axis=0)) < 5 * spread).all()
    assert not chosen.replace[~found.changed].any()
    again = choose_targets(SAMPLE, found, targets=KEYS[:4], targeted=True)
    assert (again.replace == chosen.replace).all()


def test_higher_levels_have_more_replaced() -> None:
    data = veterans_sample(20_000, seed=1)
    keys = ["sex", "age", "ms", "race1", "ethnic", "homstate"]
    found = designate(data, keys=keys, seed=1)
    chosen = choose_targets(data, found, targets=["age", "ms", "race1", "ethnic"], targeted=True)
    counts = chosen.replace.sum(axis=1)
    means = [counts[found.level == level].mean() for level in range(4)]
    assert means[0] == 0 < means[1] < means[2] < means[3]


def test_targets_outside_the_key_are_spared_and_said() -> None:
    found = designate(SAMPLE, keys=KEYS, seed=1)
    chosen = choose_targets(SAMPLE, found, targets=["income", "ms"], targeted=True)
    assert not chosen.replace[:, 0].any()
    assert any("'income' is in no key" in note for note in chosen.notes)


def test_nobody_at_risk_has_nothing_replaced() -> None:
    data = load(pl.DataFrame({"a": [1, 1]}))
    found = designate(data, keys=["a"], seed=1)
    assert not choose_targets(data, found, targets=["a"], targeted=True).replace.any()


@pytest.mark.parametrize(
    ("targets", "targeted", "says"),
    [
        ([], False, "at least one"),
        (["zzz"], False, "target 'zzz'"),
        (["ms", "ms"], False, "once. Got 'ms', 'ms' instead"),
        (["income"], True, "at least one of keys if targeted"),
        ([f"v{i}" for i in range(17)], True, "at most 16 if targeted"),
    ],
)
def test_bad_targets(targets: list[str], targeted: bool, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        synthesise(SAMPLE, keys=KEYS, targets=targets, targeted=targeted, seed=1)


def test_sixteen_targets_can_be_tried() -> None:
    keys = list(SAMPLE.role("key"))
    found = designate(SAMPLE, keys=keys, max_size=2, seed=1)
    chosen = choose_targets(SAMPLE, found, targets=keys, targeted=True)
    assert chosen.replace[found.at_risk].any(axis=1).all()


def test_targets_are_ordered_by_what_is_there_then_by_levels() -> None:
    frame = pl.DataFrame(
        {"many": [1, 2, 3, 4], "few": [1, 1, 2, 2], "holes": [1, None, None, 1], "also": [*"aabb"]}
    )
    data = load(frame)
    assert order_targets(data, frame.columns) == ("few", "also", "many", "holes")


def test_a_target_in_the_key_is_predicted_by_less() -> None:
    words = [f"free text number {i} of a long story" for i in range(300)]
    frame = pl.DataFrame(
        {
            "sex": ["m", "f"] * 150,
            "age": range(300),
            "code": [f"c{i}" for i in range(150)] * 2,
            "same": ["x"] * 300,
            "story": words,
            "pay": [float(i % 70) for i in range(300)],
            "region": ["n", "s", "w"] * 100,
            "tax": [float(i % 7) for i in range(300)],
            "id": range(300),
        }
    )
    data = load(frame, roles={"id": "identifier"}, kinds={"story": "text", "code": "category"})
    found = default_predictors(
        data, keys=["sex", "age", "code", "same", "story", "id"], targets=["age", "pay"],
        strata=["region", "sex"],
    )  # fmt: skip
    assert found == {"age": ("sex", "pay", "region"), "pay": ("sex", "age", "region", "tax")}


@pytest.mark.parametrize(("alone", "named"), [(2, (None, None)), (3, ("1", 3))])
def test_a_category_is_named_from_three_flagged_records_on(alone, named):
    rows = [(0, i) for i in range(alone)] * 3 + [(1, i) for i in range(alone)]
    frame = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    first, second = designate(frame, keys=["a", "b"], seed=1).causes
    assert (first.variable, first.flags) == ("a", alone)
    assert (first.category, first.category_flags) == named
    assert (second.flags, second.category) == (alone, None)
