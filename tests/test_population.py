"""Exposure in the population against the published example, closed forms and slow twins."""

import json
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.errors import OptionError
from keyhole.exposure.population import (
    household_risk,
    individual_risk,
    intrusion_probability,
    measure_population,
    population_sizes,
    sampling_bound,
)

# The ten records of the SDC Practice Guide (IHSN): residence, gender, education, labour
# status and weight; then the published f, F and individual risk.
TEN = [
    ("Urban", "Female", "Secondary incomplete", "Employed", 180, 2, 360, 0.0054),
    ("Urban", "Female", "Secondary incomplete", "Employed", 180, 2, 360, 0.0054),
    ("Urban", "Female", "Primary incomplete", "Non-LF", 215, 1, 215, 0.0251),
    ("Urban", "Male", "Secondary complete", "Employed", 76, 2, 152, 0.0126),
    ("Rural", "Female", "Secondary complete", "Unemployed", 186, 1, 186, 0.0282),
    ("Urban", "Male", "Secondary complete", "Employed", 76, 2, 152, 0.0126),
    ("Urban", "Female", "Primary complete", "Non-LF", 180, 1, 180, 0.0290),
    ("Urban", "Male", "Post-secondary", "Unemployed", 215, 1, 215, 0.0251),
    ("Urban", "Female", "Secondary incomplete", "Non-LF", 186, 2, 262, 0.0074),
    ("Urban", "Female", "Secondary incomplete", "Non-LF", 76, 2, 262, 0.0074),
]
PATTERNS = [row[:4] for row in TEN]
CELLS = np.array([sorted(set(PATTERNS)).index(pattern) for pattern in PATTERNS])
SIZES = np.array([PATTERNS.count(pattern) for pattern in PATTERNS])
WEIGHTS = np.array([row[4] for row in TEN], dtype=float)


def by_summation(f: int, ratio: float) -> float:
    """Add up 1/F over the negative binomial distribution of F until nothing is left."""
    total, left, size = 0.0, 1.0, f
    while left > 1e-13:
        log_ways = math.lgamma(size) - math.lgamma(f) - math.lgamma(size - f + 1)
        rest = (size - f) * math.log1p(-ratio) if size > f else 0.0
        chance = math.exp(log_ways + f * math.log(ratio) + rest)
        total, left, size = total + chance / size, left - chance, size + 1
        if size > f / ratio and chance < 1e-18:
            break
    return total


def by_closed_form(f: int, ratio: float) -> float:
    """Write out the first three sizes, in two hundred digits so that nothing cancels."""
    with localcontext() as context:
        context.prec = 200
        p = Decimal(ratio)
        q, log = 1 - p, p.ln()
        if f == 1:
            return float(-p / q * log)
        if f == 2:
            return float(p / q + (p / q) ** 2 * log)
        return float(p / (2 * q**3) * (q * (3 * q - 2) - 2 * p * p * log))


def test_the_ten_records_of_the_guide() -> None:
    result = measure_population(SIZES, cells=CELLS, weights=WEIGHTS)
    assert SIZES.tolist() == [row[5] for row in TEN]
    assert result.population.tolist() == [row[6] for row in TEN]
    assert result.risk.round(4).tolist() == [row[7] for row in TEN]
    assert result.sampling_fraction == pytest.approx(10 / 1570)
    assert result.dis_probability == pytest.approx(4 * 10 / (4 * 10 + 2 * 3 * 1560))


def test_the_ten_records_do_not_tell_the_two_variants_apart() -> None:
    people = population_sizes(CELLS, WEIGHTS)
    exact = individual_risk(SIZES, people)
    assert np.array_equal(exact, individual_risk(SIZES, people, approximation="sdcmicro"))


@pytest.mark.parametrize("f", [1, 2, 3])
@pytest.mark.parametrize(
    "ratio", [1e-12, 1e-6, 0.01, 0.3, 0.499999, 0.5, 0.75, 0.999, 1 - 1e-9, 1 - 2**-52]
)
def test_exact_risk_equals_the_closed_forms_near_nought_and_one(f: int, ratio: float) -> None:
    people = f / ratio
    risk = individual_risk([f], [people])[0]
    assert risk == pytest.approx(by_closed_form(f, f / people), rel=1e-12)


@given(st.integers(1, 60), st.floats(0.02, 0.999))
def test_exact_risk_equals_the_summed_distribution(f: int, ratio: float) -> None:
    people = f / ratio
    risk = individual_risk([f], [people])[0]
    assert risk == pytest.approx(by_summation(f, f / people), rel=1e-8)


@pytest.mark.parametrize("f", [19, 20, 21, 22, 100, 10_000, 10**7])
def test_large_cells_tend_to_their_limits(f: int) -> None:
    rare, whole = individual_risk([f, f], [f * 1e12, f])
    assert rare == pytest.approx(1e-12 / (f - 1), rel=1e-9)
    assert whole == pytest.approx(1 / f, rel=1e-15)


@given(st.integers(2, 40), st.floats(1e-9, 1 - 1e-9))
def test_recurrence_holds_on_both_sides_of_the_switch(f: int, ratio: float) -> None:
    now, after = individual_risk([f, f + 1], [f / ratio, (f + 1) / ratio])
    assert ratio / f == pytest.approx((1 - ratio) * after + ratio * now, rel=1e-9)


@given(st.integers(1, 10**6), st.floats(1.0, 1e8))
def test_risk_lies_between_one_over_population_and_one_over_sample(f: int, spread: float) -> None:
    people = f * spread
    exact = individual_risk([f], [people])[0]
    short = individual_risk([f], [people], approximation="sdcmicro")[0]
    assert 1 / people * (1 - 1e-9) <= exact <= 1 / f * (1 + 1e-9)
    assert exact * (1 - 1e-12) <= short <= 1 / f * (1 + 1e-9)


@given(st.integers(1, 1000), st.floats(1.0, 1e6), st.floats(1.001, 10))
def test_risk_falls_as_the_population_cell_grows(f: int, spread: float, more: float) -> None:
    risk = individual_risk([f, f], [f * spread, f * spread * more])
    assert risk[1] < risk[0]


@given(st.integers(1, 1000), st.floats(0.0001, 1.0))
def test_risk_falls_as_the_sample_cell_grows(f: int, ratio: float) -> None:
    risk = individual_risk([f, f + 1], [f / ratio, (f + 1) / ratio])
    assert risk[1] < risk[0]


def test_sdcmicro_differs_from_three_records_on() -> None:
    risk = individual_risk([3, 3], [30, 30], approximation="sdcmicro")
    assert risk[0] == pytest.approx(0.1 / (3 - 0.9))
    assert risk[0] > individual_risk([3], [30])[0]


def test_without_weights_the_risk_is_one_over_f_and_the_sum_counts_the_cells() -> None:
    result = measure_population(SIZES, cells=CELLS)
    assert result.risk.tolist() == (1 / SIZES).tolist()
    assert result.expected_reidentifications == pytest.approx(7)
    assert (result.population, result.sampling_fraction, result.dis_probability) == (None,) * 3
    assert any("neither weights" in note for note in result.notes)


@given(st.lists(st.tuples(st.integers(-3, 3), st.floats(1, 500)), min_size=1, max_size=30))
def test_population_sizes_equal_a_slow_twin(rows: list[tuple[int, float]]) -> None:
    cells, weights = zip(*rows, strict=True)
    slow = [sum(w for c, w in rows if c == cell) for cell in cells]
    assert population_sizes(cells, weights).tolist() == pytest.approx(slow)


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1)), min_size=1, max_size=30))
def test_household_risk_equals_a_slow_twin(rows: list[tuple[int, float]]) -> None:
    households, risks = zip(*rows, strict=True)
    slow = [1 - math.prod(1 - r for h, r in rows if h == home) for home in households]
    result = household_risk(risks, households)
    assert result.tolist() == pytest.approx(slow, abs=1e-12)
    assert (result >= np.array(risks) - 1e-12).all()


def test_household_risk_is_certain_with_a_certain_member_and_keeps_tiny_risks() -> None:
    assert household_risk([1.0, 0.2], [1, 1]).tolist() == [1.0, 1.0]
    assert household_risk([1e-18, 1e-18], [5, 5])[0] == pytest.approx(2e-18)


def test_members_without_a_risk_add_nothing_to_their_household() -> None:
    result = household_risk([0.5, np.nan, np.nan], [1, 1, 2])
    assert result[:2].tolist() == [0.5, 0.5]
    assert np.isnan(result[2])


@pytest.mark.parametrize(
    ("uniques", "pairs", "fraction", "expected"),
    [(6, 1, 0.25, 0.5), (4, 0, 1.0, 1.0), (0, 3, 0.01, 0.0), (5, 7, 1.0, 1.0)],
)
def test_intrusion_probability_by_hand(
    uniques: int, pairs: int, fraction: float, expected: float
) -> None:
    assert intrusion_probability(uniques, pairs, fraction) == (expected, "")


@pytest.mark.parametrize(
    ("uniques", "pairs", "fraction", "reason"),
    [
        (0, 0, 0.5, "no cell"),
        (4, 0, 0.01, "exactly two"),
        (3, 2, 1.5, "fewer people"),
        (0, 2, 1.0, "whole population"),
    ],
)
def test_intrusion_probability_says_why_it_cannot_be_estimated(
    uniques: int, pairs: int, fraction: float, reason: str
) -> None:
    value, why = intrusion_probability(uniques, pairs, fraction)
    assert value is None
    assert reason in why


def test_sampling_bound_is_the_fraction_and_never_above_one() -> None:
    assert (sampling_bound(0.025), sampling_bound(1), sampling_bound(1.2)) == (0.025, 1.0, 1.0)


def test_a_fraction_equals_equal_weights() -> None:
    by_fraction = measure_population(SIZES, fraction=0.02)
    by_weight = measure_population(SIZES, cells=CELLS, weights=np.full(10, 50.0))
    assert by_fraction.risk == pytest.approx(by_weight.risk, rel=1e-13)
    assert by_fraction.dis_probability == pytest.approx(by_weight.dis_probability)


@given(st.permutations(range(10)), st.integers(-5, 10**12))
def test_order_and_names_of_cells_do_not_matter(order: list[int], shift: int) -> None:
    plain = measure_population(SIZES, cells=CELLS, weights=WEIGHTS, households=CELLS)
    turn = np.array(order)
    mixed = measure_population(
        SIZES[turn],
        cells=CELLS[turn] * 7 + shift,
        weights=WEIGHTS[turn],
        households=CELLS[turn] - shift,
    )
    assert mixed.risk.tolist() == plain.risk[turn].tolist()
    assert mixed.household == pytest.approx(plain.household[turn])
    assert mixed.global_risk == pytest.approx(plain.global_risk)
    assert plain.household_global_risk > plain.global_risk


def test_weights_that_add_to_less_than_the_cell_are_noted() -> None:
    result = measure_population([2, 2, 1], cells=[0, 0, 1], weights=[0.5, 0.5, 20])
    assert result.risk[:2].tolist() == [0.5, 0.5]
    assert result.population.tolist() == [1.0, 1.0, 20.0]
    assert any(note.startswith("2 records are in cells whose weights") for note in result.notes)


def test_weights_of_less_than_a_person_leave_the_match_not_estimable() -> None:
    result = measure_population([1, 1], cells=[0, 1], weights=[0.5, 0.5])
    assert result.sampling_fraction == 2.0
    assert result.sampling_bound == 1.0
    assert result.dis_probability is None
    assert any("fewer people" in note for note in result.notes)


def test_weights_of_exactly_one_are_a_census_without_a_note() -> None:
    result = measure_population(SIZES, cells=CELLS, weights=np.ones(10))
    assert result.risk.tolist() == (1 / SIZES).tolist()
    assert result.notes == ()


def test_records_not_counted_have_no_risk() -> None:
    result = measure_population([1, 0, 1], cells=[0, -1, 1], weights=[10, 30, 10])
    assert np.isnan([result.risk[1], result.population[1]]).all()
    assert (result.records, result.counted) == (3, 2)
    assert result.global_risk == pytest.approx(result.risk[0])
    assert any(note.startswith("1 records were not counted") for note in result.notes)


def test_a_file_without_a_counted_record_has_no_figures() -> None:
    result = measure_population([0, 0], fraction=0.1, households=[1, 1])
    figures = result.to_dict()
    assert figures["expected_reidentifications"] is None
    assert figures["max_individual_risk"] is None
    assert figures["household_global_risk"] is None


def test_population_sizes_of_overlapping_cells_are_taken_as_given() -> None:
    result = measure_population([2, 2], population=[40, 60], weights=[20, 30])
    assert result.population.tolist() == [40.0, 60.0]
    assert result.sampling_fraction == pytest.approx(2 / 50)


def test_result_prints_and_becomes_plain_values() -> None:
    result = measure_population(SIZES, cells=CELLS, weights=WEIGHTS, households=CELLS)
    figures = json.loads(json.dumps(result.to_dict()))
    assert figures["records"] == 10
    assert figures["global_risk"] == pytest.approx(figures["expected_reidentifications"] / 10)
    assert result.to_frame().columns == ["F", "risk", "household_risk"]
    assert "probability that a unique match is correct" in repr(result)
    plain = measure_population(SIZES, fraction=np.float64(0.1))
    assert type(plain.to_dict()["sampling_fraction"]) is float
    assert "household_global_risk" not in plain.to_dict()
    assert "not estimable" in repr(measure_population(SIZES))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: individual_risk([1.5], [3]), "f must be whole"),
        (lambda: individual_risk([-1]), "f must be whole"),
        (lambda: individual_risk([1, 2], [3]), "F must be"),
        (lambda: individual_risk([1], [np.nan]), "F must be"),
        (lambda: individual_risk([1], [np.inf]), "F must be"),
        (lambda: individual_risk([1], approximation="rough"), "approximation must be"),
        (lambda: population_sizes([1, 2], [3]), "weights must be given"),
        (lambda: population_sizes([1, 2], [3, np.nan]), "weights must be finite"),
        (lambda: population_sizes([1, 2], [0, 0]), "not all be 0"),
        (lambda: household_risk([0.5], [1, 2]), "one value a record"),
        (lambda: household_risk([1.5], [1]), "between 0 and 1"),
        (lambda: intrusion_probability(-1, 0, 0.5), "uniques and pairs"),
        (lambda: intrusion_probability(1, 0, 0), "fraction must be above 0"),
        (lambda: sampling_bound(0), "fraction must be above 0"),
    ],
)
def test_bad_arguments_are_refused(call: object, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        call()


def test_weights_that_add_to_more_than_any_number_are_refused() -> None:
    with pytest.raises(OptionError, match="weights must be finite, also together"):
        measure_population([1, 1], cells=[0, 1], weights=[1e308, 1e308])
