"""The example world: the same everywhere, plausible, bound by its rules, and its truth true."""

import hashlib
from bisect import bisect_right
from itertools import accumulate

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.data.examples import KEYS, LINK, Settings, veterans, veterans_sample
from keyhole.data.examples.files import CODEBOOK, sampling_weights
from keyhole.data.examples.people import STATES, Draws, ShareTable, make_people
from keyhole.errors import OptionError

# fmt: off
LIN_GARIN = (
    "sex", "ag8r", "source", "pow", "ms", "psx", "aor", "homstate",
    "means", "nsurg", "nbs", "cp", "lsr", "ethnic", "race1", "psrcd",
)
CATEGORIES = (2, 8, 12, 3, 6, 8, 3, 54, 6, 6, 6, 8, 10, 7, 7, 5)

# The least age in 2024 of one who was 17 in the periods numbered 1 to 14.
LEAST_AGE = (18, 40, 66, 40, 66, 66, 86, 95, 86, 95, 95, 51, 77, 91)
VIETNAM = (3, 5, 6, 7, 8)
PEACETIME = (12, 13, 14)
PERIODS_OF_CODE = {
    "0": (7, 8, 9, 10), "2": (8, 10, 11), "4": (14,), "5": (13,), "7": VIETNAM, "8": (12,),
    "X": (2, 3, 4, 5), "Y": (1, 2, 3),
}
# fmt: on


@pytest.fixture(scope="module")
def world():
    return veterans(50_000, seed=11)


@pytest.fixture(scope="module")
def people(world):
    return world.population.frame


def fingerprint(frame):
    """Hash names and values, whatever the widths and the layout in memory."""
    digest = hashlib.sha256()
    for series in frame:
        values = ("" if value is None else str(value) for value in series)
        digest.update("\x1f".join([series.name, *values]).encode() + b"\x1e")
    return digest.hexdigest()[:16]


def test_content_is_the_same_on_every_machine():
    world = veterans(3_000, seed=7, years=2)
    found = {
        name: fingerprint(getattr(world, name).frame)
        for name in ("population", "sample", "external", "truth")
    }
    assert found == {
        "population": "534cc88a8b2402fe",
        "sample": "e98285bd62753e11",
        "external": "ad2f2b253171a078",
        "truth": "8334e0432ae399bb",
    }
    assert fingerprint(veterans_sample(3_000, seed=7).frame) == "e17e58999d9f3dc2"


def test_same_seed_same_world_other_seed_other_world():
    first, again, other = (veterans(2_000, seed=seed) for seed in (5, 5, 6))
    for name in ("population", "sample", "external", "truth"):
        assert getattr(first, name).frame.equals(getattr(again, name).frame)
        assert not getattr(first, name).frame.equals(getattr(other, name).frame)


def test_people_of_a_small_world_are_the_first_of_a_large_one():
    small, large = veterans_sample(500, seed=3).frame, veterans_sample(5_000, seed=3).frame
    assert small.equals(large.head(500))


def test_settings_of_one_file_leave_the_others_alone():
    plain = veterans(2_000, seed=2)
    spoiled = veterans(2_000, seed=2, error_rate=0.5, missing_rate=0.5, years=5)
    assert plain.sample.frame.equals(spoiled.sample.frame)
    assert plain.truth.frame.equals(spoiled.truth.frame)
    assert not plain.external.frame.equals(spoiled.external.frame)


@given(
    rows=st.lists(
        st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any), min_size=1, max_size=5
    ),
    seed=st.integers(0, 2**40),
)
def test_pick_equals_a_walk_along_the_table(rows, seed):
    draws = Draws(seed, 30).of("walk")
    condition = np.arange(30) % len(rows)
    found = ShareTable(rows).pick(draws, condition)
    for code, draw, row in zip(found, draws, condition, strict=True):
        bounds = [total * 2**20 // sum(rows[row]) for total in accumulate(rows[row])]
        assert code == bisect_right(bounds, int(draw) >> 12)
        assert rows[row][code] > 0


def test_sixteen_keys_and_the_columns_promised(world):
    assert KEYS == LIN_GARIN
    assert world.sample.role("key") == KEYS
    assert {"age", "income", "period", "area", "weight"} < set(world.sample.names)
    assert world.sample.role("identifier") == ("puf_id",)
    assert world.external.role("identifier") == ("eif_id",)
    assert world.sample.role("sensitive") == ("income",)
    assert veterans_sample(7).names == world.sample.names
    assert veterans_sample(7).records == 7


def test_sizes_of_the_categories(people):
    assert tuple(people[name].n_unique() for name in KEYS) == CATEGORIES


def test_every_value_is_in_the_codebook_with_a_label(world):
    for data in (world.population, world.sample, world.external):
        for variable in data.variables:
            known = CODEBOOK[variable.name].values
            assert variable.label
            if known:
                assert set(data.frame[variable.name].drop_nulls()) <= set(known)
            if variable.kind == "category" and variable.role == "key" and variable.name != "area":
                assert all(variable.value_labels[value] for value in known)


def test_text_codes_keep_their_leading_zeros(people):
    assert "01" in people["homstate"]
    assert set(people["area"].str.len_chars()) == {5}


def test_service_bounds_age(people):
    least = people.group_by("period").agg(pl.col("age").min())
    assert all(age >= LEAST_AGE[period - 1] for period, age in least.iter_rows())
    assert people.filter(pl.col("psx") == "7")["age"].min() >= 66


def test_the_period_on_file_is_one_of_the_periods_served(people):
    pairs = people.select("psx", "period").unique()
    assert all(period in PERIODS_OF_CODE[psx] for psx, period in pairs.iter_rows())


def test_captivity_only_in_war_and_exposure_only_in_the_vietnam_era(people):
    captives = people.filter(pl.col("pow") == "Y")
    assert captives.height > 20
    assert not captives["period"].is_in(PEACETIME).any()
    exposed = people.filter(pl.col("aor") == "Y")
    assert exposed.height > 4_000
    assert exposed["period"].is_in(VIETNAM).all()


def test_recoded_columns_are_functions_of_the_fine_ones(people):
    assert people["age"].is_between(18, 99).all()
    assert people.group_by("age").agg(pl.col("ag8r").n_unique())["ag8r"].max() == 1
    for first, group in zip((18, 25, 35, 45, 55, 65, 75, 85), range(1, 9), strict=True):
        assert people.filter(pl.col("ag8r") == group)["age"].min() == first
    assert people.group_by("psx").agg(pl.col("psrcd").n_unique())["psrcd"].max() == 1
    assert people["area"].str.slice(0, 2).equals(people["homstate"].alias("area"))


def test_couples_are_married_and_live_together(people):
    size = people.group_by("household").len()["len"]
    assert size.max() == 2
    pairs = people.filter(pl.len().over("household") == 2)
    assert 0.04 < pairs.height / people.height < 0.06
    assert (pairs["ms"] == "M").all()
    inside = pairs.group_by("household").agg(
        pl.col("sex", "area").n_unique(), (pl.col("age").max() - pl.col("age").min())
    )
    assert (inside["sex"] == 2).all()
    assert (inside["area"] == 1).all()
    assert inside["age"].max() <= 10


def share(frame, condition):
    return frame.select(condition.mean()).item()


# Weighted shares of veterans in the American Community Survey 2024, outside CA and TX.
SURVEY = [
    (pl.col("sex") == 2, 0.109),
    (pl.col("ag8r") == 1, 0.013),
    (pl.col("ag8r") == 3, 0.109),
    (pl.col("ag8r") == 6, 0.203),
    (pl.col("ag8r") == 7, 0.220),
    (pl.col("ag8r") == 8, 0.075),
    (pl.col("ms") == "M", 0.629),
    (pl.col("ms") == "W", 0.080),
    (pl.col("ms") == "D", 0.162),
    (pl.col("ms") == "N", 0.113),
    (pl.col("race1") == "9", 0.130),
    (pl.col("race1") == "8", 0.016),
    (pl.col("ethnic").is_in(["M", "P", "C", "O"]), 0.085),  # 0.067, and more in CA and TX
    (pl.col("income") < 25_000, 0.229),
    (pl.col("income") > 100_000, 0.196),
]


@pytest.mark.parametrize(("condition", "expected"), SURVEY, ids=lambda value: str(value)[:40])
def test_shares_are_those_of_the_survey(people, condition, expected):
    assert share(people, condition) == pytest.approx(expected, abs=0.015)


def test_main_associations(people):
    men, women = (people.filter(pl.col("sex") == code) for code in (1, 2))
    old = pl.col("ag8r") == 8
    assert share(women.filter(old), pl.col("ms") == "W") == pytest.approx(0.56, abs=0.15)
    assert share(men.filter(old), pl.col("ms") == "W") == pytest.approx(0.345, abs=0.03)
    median = {(sex, group): value for sex, group, value in _medians(people).iter_rows()}
    assert median[1, 4] == pytest.approx(78_000, rel=0.05)
    assert median[1, 7] == pytest.approx(45_200, rel=0.05)
    assert median[2, 4] == pytest.approx(60_000, rel=0.08)
    rated = pl.col("cp") <= 4
    assert share(people.filter(pl.col("psx") == "Y"), rated) > 0.4
    assert share(people.filter(pl.col("psx") == "5"), rated) < 0.2
    georgia, utah = (people.filter(pl.col("homstate") == code) for code in ("13", "49"))
    assert share(georgia, pl.col("race1") == "9") > 0.28
    assert share(utah, pl.col("race1") == "9") < 0.05
    pension = people.filter(pl.col("cp") == 6)["income"].median()
    assert pension < 0.6 * people["income"].median()


def _medians(people):
    return people.group_by("sex", "ag8r").agg(pl.col("income").median()).sort("sex", "ag8r")


def test_states_are_as_large_as_their_table_says(people):
    age = pl.col("age")
    bands = (age < 45, age.is_between(45, 69), age > 69)
    counts = [people.filter(band).height for band in bands]
    totals = [sum(state.veterans[band] for state in STATES) for band in range(3)]
    for state in STATES:
        expected = sum(counts[band] * state.veterans[band] / totals[band] for band in range(3))
        found = people.filter(pl.col("homstate") == state.fips).height
        assert abs(found - expected) < 6 * expected**0.5 + 1


def test_full_key_is_nearly_unique_and_the_plain_one_is_not(people):
    def exposure(keys):
        sizes = people.head(5_700).group_by(keys).len()["len"]
        return sizes.filter(sizes < 3).sum() / 5_700, len(sizes) / 5_700

    rp, cr = exposure(["sex", "ag8r", "pow"])
    assert rp < 0.005
    assert cr == pytest.approx(0.006, abs=0.002)
    rp, cr = exposure(KEYS)
    assert rp > 0.99
    assert cr == pytest.approx(0.99, abs=0.01)
    losses = {key: cr - exposure([k for k in KEYS if k != key])[1] for key in KEYS}
    assert max(losses, key=losses.__getitem__) == "homstate"
    assert losses["psrcd"] == 0


def test_sample_is_of_the_population(world, people):
    sample = world.sample.frame
    same = [name for name in sample.columns if name in people.columns and name != "household"]
    assert sample.select(same).equals(people[world.sample_rows.tolist()].select(same))
    assert len(set(world.sample_rows.tolist())) == world.sample.records == 5_000
    assert sample["puf_id"].to_list() == list(range(1, 5_001))


def test_sample_takes_whole_households_but_the_last(world, people):
    drawn = people[world.sample_rows.tolist()].group_by("household").len("drawn")
    whole = people.group_by("household").len("whole")
    broken = drawn.join(whole, on="household").filter(pl.col("drawn") < pl.col("whole"))
    assert broken.height <= 1
    pairs = world.sample.frame.filter(pl.len().over("household") == 2)
    assert pairs.height > 100
    assert pairs.group_by("household").agg(pl.col("area").n_unique())["area"].max() == 1


def test_weights_bring_the_sample_back_to_the_population(world, people):
    sample = world.sample.frame
    assert sample["weight"].sum() == people.height
    women = (sample["sex"] == 2).mean()
    weighted = sample.filter(pl.col("sex") == 2)["weight"].sum() / people.height
    assert women > 0.17
    assert weighted == pytest.approx(share(people, pl.col("sex") == 2), abs=0.006)


@given(
    strata=st.lists(st.sampled_from([3, 4, 8]), min_size=1, max_size=30),
    data=st.data(),
)
def test_weights_add_up_and_are_even_within_a_stratum(strata, data):
    rows = data.draw(st.lists(st.sampled_from(range(len(strata))), min_size=1, unique=True))
    weights = sampling_weights(np.array(strata), np.array(rows))
    assert weights.sum() == len(strata)
    assert weights.min() >= 1
    for kind in set(strata):
        mine = [w for w, row in zip(weights, rows, strict=True) if strata[row] == kind]
        assert not mine or max(mine) - min(mine) <= 1


def test_truth_pairs_are_the_same_persons(world, people):
    truth = world.truth.frame
    sampled = world.sample_rows[truth["puf_id"].to_numpy() - 1]
    outside = world.external_rows[truth["eif_id"].to_numpy() - 1]
    assert (sampled == outside).all()
    assert truth.height == len(set(world.sample_rows) & set(world.external_rows))
    assert truth.select(LINK).equals(people[sampled.tolist()].select(LINK))


def test_files_carry_nothing_that_points_back(world):
    assert "person" not in {*world.sample.names, *world.external.names, *world.truth.names}
    for rows in (world.sample_rows, world.external_rows):
        assert abs(np.corrcoef(rows, np.arange(len(rows)))[0, 1]) < 0.05
    with pytest.raises(ValueError, match="read-only"):
        world.sample_rows[0] = 0


@pytest.mark.parametrize(
    ("fraction", "external_fraction", "overlap"),
    [(0.1, 0.1, 0.5), (0.05, 0.4, 1.0), (0.3, 0.1, 0.2), (0.2, 0.2, 0.0), (1.0, 0.6, 0.6)],
)
def test_sizes_and_overlap_are_as_asked(fraction, external_fraction, overlap):
    world = veterans(2_000, fraction=fraction, external_fraction=external_fraction, overlap=overlap)
    assert world.sample.records == 2_000 * fraction
    assert world.external.records == 2_000 * external_fraction
    assert world.truth.records == 2_000 * fraction * overlap
    assert len(set(world.external_rows.tolist())) == world.external.records


@given(
    n=st.integers(1, 40),
    fraction=st.floats(0.01, 1),
    external_fraction=st.floats(0.01, 1),
    overlap=st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_any_settings_that_can_be_met_are_met(n, fraction, external_fraction, overlap):
    asked = {"fraction": fraction, "external_fraction": external_fraction, "overlap": overlap}
    try:
        world = veterans(n, **asked)
    except OptionError:
        shared = fraction * overlap
        assert shared > external_fraction or external_fraction > 1 - fraction + shared
        return
    sample, both, external = Settings(n=n, **asked).sizes()
    assert (world.sample.records, world.truth.records) == (sample, both)
    assert world.external.records == external
    assert 1 <= sample <= n
    assert both <= external <= both + n - sample
    assert abs(external - n * external_fraction) <= 2


@pytest.mark.parametrize("n", [1, 2, 10])
def test_tiny_worlds(n):
    world = veterans(n, seed=4)
    assert world.population.records == n
    assert world.sample.records == 1
    assert world.truth.records == world.external.records == 1
    assert world.sample.frame["weight"].sum() == n
    nobody = veterans(n, seed=4, overlap=0)
    assert nobody.truth.records == 0


def test_missing_rate_is_as_asked():
    external = veterans(20_000, external_fraction=0.5, missing_rate=0.2).external.frame
    for name in LINK:
        assert external[name].null_count() / external.height == pytest.approx(0.2, abs=0.015)
    assert external["ag8r"].is_null().equals(external["age"].is_null().alias("ag8r"))
    complete = veterans(500, missing_rate=0).external.frame
    assert sum(complete.null_count().row(0)) == 0
    empty = veterans(500, missing_rate=1).external.frame
    assert empty.select(pl.col(LINK).null_count().sum()).row(0) == (50,) * len(LINK)


def linked(**options):
    """Pair the external file with the truth about the same persons."""
    world = veterans(20_000, seed=8, fraction=0.5, external_fraction=0.5, overlap=1, **options)
    return world.truth.frame.join(world.external.frame, on="eif_id", suffix="_seen")


def test_without_error_ageing_and_gaps_the_external_file_is_the_truth():
    pairs = linked(error_rate=0, missing_rate=0, years=0)
    for name in LINK:
        assert pairs[name].equals(pairs[f"{name}_seen"].alias(name)), name


def test_error_rate_is_as_asked_and_an_error_is_never_the_right_value():
    pairs = linked(error_rate=0.1, missing_rate=0, years=0)
    for name in ("sex", "age", "ms", "ethnic", "race1", "area", "psx", "income"):
        wrong = (pairs[name] != pairs[f"{name}_seen"]).mean()
        assert wrong == pytest.approx(0.1, abs=0.012), name
    moved = (pairs["homstate"] != pairs["homstate_seen"]).mean()
    assert 0.01 < moved < 0.05
    always = linked(error_rate=1, missing_rate=0, years=0)
    for name in ("sex", "age", "ms", "ethnic", "race1", "area", "psx", "income"):
        assert (always[name] != always[f"{name}_seen"]).all(), name


@pytest.mark.parametrize("years", [1, 3])
def test_ageing_changes_what_time_changes(years):
    pairs = linked(error_rate=0, missing_rate=0, years=years)
    for name in ("sex", "ethnic", "race1", "psx"):
        assert pairs[name].equals(pairs[f"{name}_seen"].alias(name))
    older = pairs["age_seen"] - pairs["age"]
    assert set(older) == {years - 1, years, years + 1}
    assert older.mean() == pytest.approx(years, abs=0.05)
    for name, yearly in (("ms", 0.03), ("area", 0.08), ("income", 0.6)):
        changed = (pairs[name] != pairs[f"{name}_seen"]).mean()
        assert yearly / 2 < changed < yearly * years * 1.5, name
    never = pairs.filter(pl.col("ms") != "N")
    assert (never["ms_seen"] != "N").all()
    assert (pairs["area_seen"].str.slice(0, 2) == pairs["homstate_seen"]).all()


def test_all_problems_of_the_options_at_once():
    with pytest.raises(OptionError) as caught:
        veterans(0, seed=-1, fraction=0, overlap=2, error_rate="x", missing_rate=-0.1, years=1.5)
    named = [problem.split()[0] for problem in caught.value.problems]
    assert named == ["n", "seed", "fraction", "overlap", "error_rate", "missing_rate", "years"]
    assert all("must be" in p and "instead." in p for p in caught.value.problems)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"n": True}, "n"),
        ({"n": 2.0}, "n"),
        ({"n": "10"}, "n"),
        ({"n": 10**10}, "n"),
        ({"seed": None}, "seed"),
        ({"years": 11}, "years"),
        ({"fraction": float("nan")}, "fraction"),
        ({"external_fraction": 1.2}, "external_fraction"),
        ({"fraction": 0.5, "overlap": 0.9}, "overlap"),
        ({"fraction": 0.9, "external_fraction": 0.5, "overlap": 0}, "external_fraction"),
    ],
)
def test_each_problem_names_its_option(options, named):
    with pytest.raises(OptionError) as caught:
        veterans(**{"n": 100, **options})
    assert [problem.split()[0] for problem in caught.value.problems] == [named]


def test_sample_alone_checks_its_options_too():
    with pytest.raises(OptionError, match="n must be a whole number"):
        veterans_sample(0)


def test_numpy_numbers_are_numbers():
    world = veterans(np.int64(50), seed=np.uint8(3), fraction=np.float64(0.2))
    assert world.sample.frame.equals(veterans(50, seed=3, fraction=0.2).sample.frame)


def test_world_prints_sizes_and_no_values(world):
    assert "50,000" in repr(world)
    assert world.to_dict()["records"]["truth"] == 2_500
    assert world.to_frame().columns == ["file", "records"]


def test_streams_of_purposes_are_not_alike():
    draws = Draws(1, 4_000)
    first, second = (draws.of(name).astype(float) for name in ("sex", "age"))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.06
    assert abs(first.mean() / 2**31 - 1) < 0.05


def test_codes_are_small():
    people = make_people(100, seed=1)
    assert all(people[name].dtype == np.uint8 for name in KEYS)
