"""Scores of special uniques and risk levels: the published example and slow twins."""

from itertools import combinations
from math import factorial, inf, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.errors import OptionError
from keyhole.exposure.levels import burdens, flag_causes, levels, summarise_levels
from keyhole.exposure.scores import (
    UniqueSets,
    carried_by,
    count_by_size,
    count_by_variable,
    dis_suda,
    score_by_size,
    smallest_sizes,
    suda_scores,
    summarise_contributions,
)

# The ten records of the SDC Practice Guide (IHSN): residence, gender, education, labour.
TEN = [
    ("Urban", "Female", "Secondary incomplete", "Employed"),
    ("Urban", "Female", "Secondary incomplete", "Employed"),
    ("Urban", "Female", "Primary incomplete", "Non-LF"),
    ("Urban", "Male", "Secondary complete", "Employed"),
    ("Rural", "Female", "Secondary complete", "Unemployed"),
    ("Urban", "Male", "Secondary complete", "Employed"),
    ("Urban", "Female", "Primary complete", "Non-LF"),
    ("Urban", "Male", "Post-secondary", "Unemployed"),
    ("Urban", "Female", "Secondary incomplete", "Non-LF"),
    ("Urban", "Female", "Secondary incomplete", "Non-LF"),
]


Found = list[tuple[int, tuple[int, ...]]]


def search(table: list[tuple], max_size: int) -> Found:
    """Find every minimal unique by looking at every subset of every record."""
    found = []
    for record, row in enumerate(table):
        minimal: list[tuple[int, ...]] = []
        for size in range(1, max_size + 1):
            for subset in combinations(range(len(row)), size):
                alike = sum(all(row[j] == other[j] for j in subset) for other in table)
                if alike == 1 and not any(set(small) < set(subset) for small in minimal):
                    minimal.append(subset)
        found += [(record, subset) for subset in minimal]
    return found


def as_sets(found: Found, records: int, variables: int, max_size: int) -> UniqueSets:
    owner = np.array([record for record, _ in found], dtype=np.int64)
    mask = np.array([sum(1 << j for j in subset) for _, subset in found], dtype=np.uint64)
    return UniqueSets(owner, mask, records=records, variables=variables, max_size=max_size)


def slow_score(size: int, variables: int, max_size: int, convention: str) -> float:
    if convention == "guide":
        return prod(variables - i for i in range(size, max_size + 1))
    if convention == "sdcmicro":
        return factorial(variables - size)
    ways = factorial(size) * factorial(variables - size) / factorial(variables)
    return (2 ** (variables - size) - 1) * ways


FOUND = search(TEN, 3)
SETS = as_sets(FOUND, 10, 4, 3)
COLUMNS = zip(*TEN, strict=True)
CODES = [np.unique(column, return_inverse=True)[1].astype(np.uint8) for column in COLUMNS]
SIZES = np.array([TEN.count(row) for row in TEN])

tables = st.integers(2, 5).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(0, 2)] * width), min_size=2, max_size=12)
)


def test_scores_of_the_ten_records_at_size_three() -> None:
    assert suda_scores(SETS).tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert suda_scores(SETS, "sdcmicro").tolist() == suda_scores(SETS).tolist()
    assert suda_scores(SETS, "ihsn").tolist() == [0, 0, 1.75, 0, 3.25, 0, 1.75, 2.75, 0, 0]


def test_dis_suda_of_the_ten_records() -> None:
    pairs = int((SIZES == 2).sum())
    result, reason = dis_suda(suda_scores(SETS, "ihsn"), pairs=pairs, variables=4)
    assert (pairs, reason) == (6, "")
    assert result.round(4).tolist() == [0, 0, 0.0051, 0, 0.0107, 0, 0.0051, 0.0088, 0, 0]


def test_counts_of_the_ten_records() -> None:
    assert count_by_size(SETS).tolist() == [4, 5, 0]
    assert count_by_variable(SETS).sum() == 4 + 2 * 5
    assert smallest_sizes(SETS).tolist() == [0, 0, 1, 0, 1, 0, 1, 1, 0, 0]


def contributions(sets: UniqueSets, variable: int, convention: str = "guide") -> np.ndarray:
    """Return what a variable carries of each record's score: of a level for each record."""
    codes = [np.arange(sets.records)] * sets.variables
    return summarise_contributions(sets, codes, convention)[variable].level_mean


def test_contributions_of_record_five_by_hand() -> None:
    # Rural alone (6); with secondary complete: female (2), unemployed (2); female and
    # unemployed (2).
    assert [subset for record, subset in FOUND if record == 4] == [(0,), (1, 2), (1, 3), (2, 3)]
    shares = [contributions(SETS, j)[4] for j in range(4)]
    assert shares == pytest.approx([6 / 12, 4 / 12, 4 / 12, 4 / 12])


def test_file_contributions_of_the_ten_records_by_hand() -> None:
    # Residence carries 6 of 12 for the rural record and 2 of 10 for the urban, unemployed one.
    residence, _, education, _ = summarise_contributions(SETS, CODES)
    assert residence.percent == pytest.approx(100 * (6 / 12 + 2 / 10 + 0 + 0) / 4)
    assert residence.score_percent == pytest.approx(100 * 8 / 34)
    assert residence.level_percent.tolist() == [75.0, 25.0]
    assert residence.level_mean.tolist() == pytest.approx([0.5, 0.2 / 3])
    # Nobody with secondary education incomplete has a score.
    assert np.isnan(education.level_mean).tolist() == [False, False, False, False, True]


def test_perfectly_correlated_keys_carry_the_same() -> None:
    table = [(a, b, b) for a, b in [(0, 0), (0, 0), (1, 0), (0, 1), (1, 2), (1, 2)]]
    sets = as_sets(search(table, 2), 6, 3, 2)
    codes = [np.array(column) for column in zip(*table, strict=True)]
    _, second, third = summarise_contributions(sets, codes)
    assert second.percent == third.percent
    assert second.level_mean.tolist() == pytest.approx(third.level_mean.tolist(), nan_ok=True)


@pytest.mark.parametrize("convention", ["guide", "sdcmicro", "ihsn"])
@given(tables, st.integers(1, 4))
def test_scores_equal_a_slow_twin(convention: str, table: list[tuple], most: int) -> None:
    variables = len(table[0])
    size = min(most, variables - 1)
    found = search(table, size)
    sets = as_sets(found, len(table), variables, size)
    scores = np.zeros(len(table))
    carried = np.zeros((len(table), variables))
    for record, subset in found:
        scores[record] += slow_score(len(subset), variables, size, convention)
        carried[record, list(subset)] += slow_score(len(subset), variables, size, convention)
    assert suda_scores(sets, convention) == pytest.approx(scores, rel=1e-14)
    sizes = [len(subset) for _, subset in found]
    assert count_by_size(sets).tolist() == [sizes.count(k) for k in range(1, size + 1)]
    for j in range(variables):
        assert count_by_variable(sets)[j] == sum(j in subset for _, subset in found)
        share = contributions(sets, j, convention)
        scored = scores > 0
        assert share[scored] == pytest.approx(carried[scored, j] / scores[scored])
        assert np.isnan(share[~scored]).all()


@given(tables)
def test_contributions_by_level_equal_a_slow_twin(table: list[tuple]) -> None:
    variables = len(table[0])
    sets = as_sets(search(table, variables - 1), len(table), variables, variables - 1)
    codes = [np.array(column, dtype=np.uint8) for column in zip(*table, strict=True)]
    scored = suda_scores(sets) > 0
    for j, found in enumerate(summarise_contributions(sets, codes)):
        share = contributions(sets, j)
        if not scored.any():
            assert (found.percent, found.score_percent) == (None, None)
            continue
        assert found.percent == pytest.approx(100 * share[scored].mean())
        for level in range(codes[j].max() + 1):
            at_level = share[scored & (codes[j] == level)]
            expected = at_level.mean() if at_level.size else np.nan
            assert found.level_mean[level] == pytest.approx(expected, nan_ok=True)
        total = 100 if share[scored].any() else np.nan
        assert found.level_percent.sum() == pytest.approx(total, nan_ok=True)


@given(tables)
def test_what_a_variable_carries_equals_a_slow_twin(table: list[tuple]) -> None:
    variables = len(table[0])
    found = search(table, variables)
    sets = as_sets(found, len(table), variables, variables)
    values = 2.0 ** np.arange(variables + 1)
    for j in range(variables):
        slow = [
            sum(values[len(s)] for r, s in found if r == i and j in s) for i in range(len(table))
        ]
        assert carried_by(sets, j, values).tolist() == slow


@given(tables)
def test_smallest_sizes_and_burdens_equal_a_slow_twin(table: list[tuple]) -> None:
    variables = len(table[0])
    found = search(table, variables)
    sets = as_sets(found, len(table), variables, variables)
    weights = np.linspace(0.5, 2, variables)
    smallest = [min((len(s) for r, s in found if r == i), default=0) for i in range(len(table))]
    burden = [
        min((sum(1 / weights[j] for j in s) for r, s in found if r == i), default=inf)
        for i in range(len(table))
    ]
    assert smallest_sizes(sets).tolist() == smallest
    assert burdens(sets, weights).tolist() == pytest.approx(burden)
    assert burdens(sets).tolist() == [size or inf for size in smallest]


def test_work_in_parts_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (suda_scores(SETS), count_by_size(SETS), count_by_variable(SETS), burdens(SETS))
    causes = flag_causes(SETS, levels(SIZES, SETS), CODES)
    monkeypatch.setattr("keyhole.exposure.scores.ROWS_AT_ONCE", 2)
    parted = (suda_scores(SETS), count_by_size(SETS), count_by_variable(SETS), burdens(SETS))
    for one, other in zip(whole, parted, strict=True):
        assert one.tolist() == other.tolist()
    again = flag_causes(SETS, levels(SIZES, SETS), CODES)
    assert [c.tolist() for c in again] == [c.tolist() for c in causes]


@given(st.permutations(range(len(FOUND))))
def test_order_of_the_minimal_uniques_does_not_matter(order: list[int]) -> None:
    mixed = as_sets([FOUND[i] for i in order], 10, 4, 3)
    assert suda_scores(mixed).tolist() == suda_scores(SETS).tolist()
    assert smallest_sizes(mixed).tolist() == smallest_sizes(SETS).tolist()


@pytest.mark.parametrize("variables", range(2, 65))
def test_conventions_agree_at_full_size_and_smaller_sets_score_more(variables: int) -> None:
    guide = score_by_size(variables, variables - 1)
    assert guide.tolist() == score_by_size(variables, variables - 1, "sdcmicro").tolist()
    assert np.isfinite(guide).all()
    assert (np.diff(guide[1:]) <= 0).all()
    if variables <= 19:
        assert guide[1:].tolist() == [factorial(variables - k) for k in range(1, variables)]


def test_guide_score_depends_on_the_size_searched_and_sdcmicro_does_not() -> None:
    assert score_by_size(6, 3).tolist() == [0, 5 * 4 * 3, 4 * 3, 3]
    assert score_by_size(6, 3, "sdcmicro").tolist() == [0, 120, 24, 6]


def test_a_unique_on_the_whole_key_scores_one_in_sdcmicro_and_nought_in_ihsn() -> None:
    sets = make(mask=[7], records=1, max_size=3)
    assert suda_scores(sets, "sdcmicro").tolist() == [1.0]
    assert suda_scores(sets, "ihsn").tolist() == [0.0]
    assert np.isnan(contributions(sets, 0, "ihsn")).all()
    with pytest.raises(OptionError, match="max_size must be 1 to 2"):
        suda_scores(sets)


def test_sixty_four_variables_use_every_bit() -> None:
    mask = np.array([1 << 63, 1 | 1 << 63], dtype=np.uint64)
    sets = UniqueSets(np.array([0, 1]), mask, records=2, variables=64, max_size=2)
    assert count_by_variable(sets).tolist() == [1] + [0] * 62 + [2]
    assert suda_scores(sets, "sdcmicro")[0] == float(factorial(63))
    assert burdens(sets, [1.0] * 63 + [2.0]).tolist() == [0.5, 1.5]


@given(
    st.lists(st.floats(0.01, 50), min_size=1, max_size=20),
    st.integers(1, 50),
    st.integers(2, 27),
    st.floats(0.001, 0.99),
)
def test_dis_suda_equals_its_formula_and_grows_with_the_score(
    scores: list[float], pairs: int, variables: int, fraction: float
) -> None:
    result, _ = dis_suda(scores, pairs=pairs, variables=variables, fraction=fraction)
    power = 1 + (8 - variables) / 20
    total = sum(s**-power for s in scores)
    slow = [1 / (1 + pairs * (1 - fraction) / fraction / (s**power * total)) for s in scores]
    assert result.tolist() == pytest.approx(slow, rel=1e-9)
    assert ((result > 0) & (result < 1)).all()
    assert (np.diff(result[np.argsort(scores)]) >= -1e-12).all()


def test_dis_suda_of_a_census_is_certain_and_without_a_score_nought() -> None:
    assert dis_suda([1.5, 0.0], pairs=2, variables=4, fraction=1)[0].tolist() == [1.0, 0.0]
    assert dis_suda([0.0], pairs=2, variables=4)[0].tolist() == [0.0]


@pytest.mark.parametrize(("pairs", "variables"), [(0, 4), (2, 28), (2, 40)])
def test_dis_suda_says_why_it_cannot_be_estimated(pairs: int, variables: int) -> None:
    result, reason = dis_suda([1.0], pairs=pairs, variables=variables)
    assert result is None
    assert reason


def test_a_file_without_minimal_uniques() -> None:
    sets = make(owner=[], mask=[], records=3)
    assert suda_scores(sets).tolist() == [0, 0, 0]
    assert count_by_size(sets).tolist() == [0, 0]
    assert burdens(sets).tolist() == [inf] * 3
    codes = [np.zeros(3, dtype=np.uint8)] * 3
    assert summarise_contributions(sets, codes)[0].percent is None
    summary = summarise_levels(levels([3, 3, 3], sets), sets, list("abc"), codes)
    assert summary.risk_set is None
    assert summary.to_dict()["risk_set"] is None
    assert summary.worst_variable is None
    assert "not estimable" in repr(summary)


def test_levels_of_the_ten_records() -> None:
    assert levels(SIZES, SETS).tolist() == [1, 1, 3, 1, 3, 1, 3, 3, 1, 1]
    assert levels(SIZES, SETS, cutoff=2).tolist() == [0, 0, 3, 0, 3, 0, 3, 3, 0, 0]


def test_levels_by_hand_at_the_cut_points() -> None:
    mask = [0b1, 0b11, 0b111, 0b1111]
    sets = UniqueSets(np.arange(4), np.array(mask), records=8, variables=5, max_size=4)
    f = [1, 1, 1, 1, 1, 2, 3, 0]
    assert levels(f, sets).tolist() == [3, 3, 2, 1, 1, 1, 0, 0]
    assert levels(f, sets, high=1, medium=1.5).tolist() == [3, 1, 1, 1, 1, 1, 0, 0]
    assert levels(f, sets, cutoff=4).tolist() == [3, 3, 2, 1, 1, 1, 1, 0]
    assert levels(f, sets, cutoff=1).tolist() == [3, 3, 2, 1, 1, 0, 0, 0]
    with pytest.raises(OptionError, match="cutoff must be a whole number of at least 1"):
        levels(f, sets, cutoff=0)
    assert levels(f, sets, weights=[2.0] * 5).tolist() == [3, 3, 3, 3, 1, 1, 0, 0]
    assert levels(f, sets, weights=[0.5] * 5).tolist() == [3, 1, 1, 1, 1, 1, 0, 0]


def test_burdens_that_miss_a_cut_by_rounding_meet_it() -> None:
    weights = [0.6, 2.0, 1.2]
    sets = make(mask=[7], records=1, max_size=3)
    assert burdens(sets, weights)[0] > 3
    assert levels([1], sets, weights=weights).tolist() == [2]


@given(tables, st.integers(0, 4), st.floats(1.0, 2.0))
def test_levels_never_fall_as_a_weight_grows(table: list[tuple], which: int, more: float) -> None:
    variables = len(table[0])
    sets = as_sets(search(table, variables), len(table), variables, variables)
    sizes = [table.count(row) for row in table]
    weights = np.ones(variables)
    before = levels(sizes, sets, weights=weights)
    weights[which % variables] = more
    assert (levels(sizes, sets, weights=weights) >= before).all()


def test_flags_of_the_ten_records_equal_a_slow_twin() -> None:
    level = levels(SIZES, SETS)
    for j, counts in enumerate(flag_causes(SETS, level, CODES)):
        hit = {record for record, subset in FOUND if j in subset}
        slow = [sum(CODES[j][record] == code for record in hit) for code in range(len(counts))]
        assert counts.tolist() == slow


def test_summary_names_the_worst_variable_and_category() -> None:
    # Age singles out records 0 to 2, two of them of its category 1.
    sets = make(range(4), [1, 1, 3, 2], records=5, variables=2)
    codes = [np.array([1, 1, 0, 2, 2], dtype=np.uint8), np.zeros(5, dtype=np.uint8)]
    level = levels([1, 1, 1, 1, 9], sets)
    summary = summarise_levels(level, sets, ["age", "sex"], codes)
    assert summary.to_dict() == {
        "levels": {"none": 1, "low": 0, "medium": 0, "high": 4},
        "risk_set": {"low": 0.0, "medium": 0.0, "high": 1.0},
        "flags": {"age": 3, "sex": 2},
        "worst_variable": "age",
        "worst_category": 1,
        "worst_category_flags": 2,
        "notes": [],
    }
    assert summary.to_frame()["records"].to_list() == [1, 0, 0, 4]
    assert summary.to_frame()["share"].to_list() == [None, 0.0, 0.0, 1.0]


def test_flags_below_the_asked_level_are_left_out() -> None:
    sets = UniqueSets(np.array([0, 1]), np.array([1, 15]), records=2, variables=4, max_size=4)
    codes = [np.zeros(2, dtype=np.uint8)] * 4
    level = levels([1, 1], sets)
    assert [int(c.sum()) for c in flag_causes(sets, level, codes)] == [2, 1, 1, 1]


def make(owner: object = (0,), mask: object = (1,), **changes: int) -> UniqueSets:
    options = {"records": 2, "variables": 3, "max_size": 2} | changes
    return UniqueSets(np.array(owner), np.array(mask), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make(owner=[2]), "owner must be a record's number"),
        (lambda: make(owner=[-1]), "owner must be a record's number"),
        (lambda: make(owner=[0, 1]), "as many of each"),
        (lambda: make(owner=[0.5]), "whole numbers"),
        (lambda: make(mask=[0]), "mask must hold"),
        (lambda: make(mask=[8]), "mask must hold"),
        (lambda: make(mask=[7]), "largest minimal unique"),
        (lambda: make(max_size=0), "max_size must be"),
        (lambda: make(max_size=4), "max_size must be"),
        (lambda: make(variables=0), "variables must be"),
        (lambda: make(variables=65), "variables must be"),
        (lambda: suda_scores(make(variables=1, max_size=1)), "not defined for one key"),
        (lambda: suda_scores(make(), "elliot"), "convention must be"),
        (lambda: score_by_size(4, 4), "max_size must be 1 to 3"),
        (lambda: score_by_size(65, 3), "at most 64"),
        (lambda: dis_suda([-1.0], pairs=1, variables=4), "scores must be"),
        (lambda: dis_suda([1.0], pairs=-1, variables=4), "pairs must be"),
        (lambda: dis_suda([1.0], pairs=1, variables=4, fraction=0), "fraction must be"),
        (lambda: levels([1], make()), "f must be given"),
        (lambda: levels([1, 1], make(), cutoff=0), "cutoff must be"),
        (lambda: levels([1, 1], make(), cutoff="3"), "cutoff must be"),
        (lambda: levels([1, 1], make(), high=4), "high and medium"),
        (lambda: levels([1, 1], make(), weights=[1, 1]), "weights must be above 0"),
        (lambda: levels([1, 1], make(), weights=[1, 1, 0]), "weights must be above 0"),
    ],
)
def test_bad_arguments_are_refused(call: object, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        call()
