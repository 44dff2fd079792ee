"""The cheapest fix against recoding by hand, and dependence against textbook formulas."""

import datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import keyhole
from keyhole.data import load
from keyhole.data.columns import encode
from keyhole.data.examples import veterans_sample
from keyhole.errors import OptionError
from keyhole.exposure.cells import risk
from keyhole.exposure.fix import MADE, _Change, _line, cheapest_fix
from keyhole.screening.dependence import cramers_v, dependences


@pytest.fixture(scope="module")
def people():
    random = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "sex": random.integers(0, 2, 600),
            "age": random.integers(18, 98, 600),
            "state": [f"s{min(int(x), 19):02}" for x in random.exponential(4, 600)],
        }
    )


def test_dropping_equals_leaving_the_key_out(people):
    fixes = cheapest_fix(people, keys=["sex", "age", "state"], limit=0.2)
    assert fixes.needed
    for fix in (f for f in fixes.fixes if f.action == "drop"):
        rest = [n for n in people.columns if n != fix.variable]
        after = risk(people, keys=rest)
        assert (fix.rp, fix.cr) == (after.rp, after.cr)
        assert fix.price == pytest.approx(fixes.cr - after.cr)


def test_bands_and_top_codes_equal_recoding_by_hand(people):
    fixes = {(f.variable, f.detail): f for f in cheapest_fix(
        people, keys=["sex", "age"], limit=0.01).fixes}  # fmt: skip
    tens = risk(people.with_columns(pl.col("age") // 10), keys=["sex", "age"])
    assert fixes["age", "bands of 10"].rp == tens.rp
    bands = people.select(pl.col("age") // 10).n_unique()
    assert fixes["age", "bands of 10"].categories == bands
    top = next(f for f in fixes.values() if f.action == "top-code")
    cut = int(top.detail.split()[0])
    assert cut % 5 == 0, "cuts are round, so that they are nobody's value in particular"
    clipped = risk(people.with_columns(pl.col("age").clip(upper_bound=cut)), keys=["sex", "age"])
    assert (top.rp, top.cr) == (clipped.rp, clipped.cr)


def test_bands_are_tried_until_two_would_be_left():
    """Of 0 to 10 those of 5 are 0 to 4, 5 to 9 and 10; of 0 to 9 they are but two."""
    for last, wanted in ((10, ["bands of 2", "bands of 5"]), (9, ["bands of 2"])):
        data = load(pl.DataFrame({"age": [*range(last + 1)]}), kinds={"age": "measure"})
        fixes = cheapest_fix(data, keys=["age"], limit=0).fixes
        assert sorted(fix.detail for fix in fixes if fix.action == "regroup") == wanted


def test_a_tail_of_exactly_the_share_is_coded():
    """Five of a hundred are the highest 5 %, and begin at a round number; so are the lowest."""
    levels = [*range(1, 6), *range(20, 110), *range(115, 120)]
    fixes = cheapest_fix(pl.DataFrame({"age": levels}), keys=["age"], limit=0).fixes
    assert {"115 and above", "5 and below"} <= {fix.detail for fix in fixes}


def test_pooling_rare_categories_equals_recoding_by_hand(people):
    fixes = cheapest_fix(people, keys=["age", "state"], limit=0.01).fixes
    pool = next(f for f in fixes if f.action == "pool" and "below 5%" in f.detail)
    share = people["state"].value_counts(normalize=True)
    rare = share.filter(pl.col("proportion") < 0.05)["state"]
    pooled = people.with_columns(
        pl.when(pl.col("state").is_in(rare.to_list())).then(pl.lit("other")).otherwise("state")
    ).rename({"literal": "pooled"})
    after = risk(pooled, keys=["age", "pooled"])
    assert (pool.rp, pool.cr) == (after.rp, after.cr)


def test_the_best_meets_the_limit_at_the_lowest_price_or_comes_nearest(people):
    fixes = cheapest_fix(people, keys=["sex", "age", "state"], limit=0.3)
    meeting = [f for f in fixes.fixes if f.meets]
    assert fixes.best.price == min(f.price for f in meeting)
    hopeless = cheapest_fix(people, keys=["sex", "age", "state"], limit=0)
    assert not any(f.meets for f in hopeless.fixes)
    assert hopeless.best.rp == min(f.rp for f in hopeless.fixes)
    assert cheapest_fix(people, keys=["sex"], limit=0.5).best is None
    rp = fixes.rp  # which is no more than itself
    assert not cheapest_fix(people, keys=["sex", "age", "state"], limit=rp).needed


def test_missing_stays_a_category_of_its_own_in_every_change():
    frame = pl.DataFrame({"age": [None, 30, 31, 32, 33, 40, 41, 42] * 5, "x": [1] * 40})
    fix = next(
        f
        for f in cheapest_fix(frame.cast({"age": pl.Int64}), keys=["age", "x"], limit=0).fixes
        if f.action == "drop" and f.variable == "x"
    )
    assert fix.cr == 8 / 40


def test_bad_input_all_at_once(people):
    with pytest.raises(OptionError) as error:
        cheapest_fix(people, keys=["agee"], limit=2, cutoff=0)
    assert len(error.value.problems) == 3


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=12, max_size=80))
def test_cramers_v_is_the_textbook_formula(pairs):
    from scipy.stats import chi2_contingency

    a, b = np.array(pairs).T
    table = np.zeros((4, 4))
    np.add.at(table, (a, b), 1)
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    if min(table.shape) < 2:
        return
    n, (r, k) = len(pairs), table.shape
    phi2 = max(0, chi2_contingency(table, correction=False)[0] / n - (r - 1) * (k - 1) / (n - 1))
    least = min(k - (k - 1) ** 2 / (n - 1), r - (r - 1) ** 2 / (n - 1)) - 1
    rows, cols = np.nonzero(table)
    expected = min(1.0, np.sqrt(phi2 / least)) if least > 0 else 0.0
    ours = cramers_v(table[rows, cols].astype(np.int64), rows, cols)
    # Near zero the root magnifies the last bit of a difference, so squares are compared.
    assert ours**2 == pytest.approx(expected**2, abs=1e-9)


def test_dependences_find_recodes_and_leave_strangers_alone():
    veterans = veterans_sample(4000)
    names = ["age", "ag8r", "psx", "psrcd", "sex", "homstate"]
    found = {
        frozenset((d.first, d.second)): d
        for d in dependences({n: veterans.codes(n) for n in names})
    }
    assert found[frozenset(("age", "ag8r"))].determined == "ag8r"
    assert found[frozenset(("psx", "psrcd"))].determined == "psrcd"
    assert frozenset(("sex", "homstate")) not in found


def test_constant_and_nearly_unique_columns_say_nothing():
    columns = {
        "constant": encode(pl.Series([1] * 30)),
        "id": encode(pl.Series(range(30))),
        "sex": encode(pl.Series([0, 1] * 15)),
    }
    assert dependences(columns) == []


def test_sparse_and_dense_tables_agree(monkeypatch):
    random = np.random.default_rng(1)
    a = random.integers(0, 30, 900)
    columns = {"a": encode(pl.Series(a)), "b": encode(pl.Series(a + random.integers(0, 2, 900)))}
    dense = dependences(columns, nearly=0.1)
    monkeypatch.setattr("keyhole.screening.dependence.DENSE_CELLS", 0)
    assert dependences(columns, nearly=0.1) == dense


def test_times_of_the_day_are_regrouped():
    times = [datetime.time(i % 24, i % 60) for i in range(120)]
    frame = pl.DataFrame({"at": times, "sex": [0, 1] * 60})
    fixes = {f.detail: f for f in cheapest_fix(frame, keys=["at", "sex"], limit=0.1).fixes}
    hours = frame.with_columns(pl.col("at").dt.hour())
    assert fixes["hour"].cr == risk(hours, keys=["at", "sex"]).cr
    quarters = frame.with_columns(pl.col("at").dt.hour() // 6)
    assert fixes["quarter of the day"].categories == 4
    assert fixes["quarter of the day"].cr == risk(quarters, keys=["at", "sex"]).cr


def test_dates_are_regrouped_by_month_year_and_decade():
    days = [datetime.date(1975, 1, 1) + datetime.timedelta(97 * i) for i in range(120)]
    frame = pl.DataFrame({"born": [*days, None], "sex": [0, 1] * 60 + [0]})
    fixes = {f.detail: f for f in cheapest_fix(frame, keys=["born", "sex"], limit=0.1).fixes}
    born = pl.col("born").dt
    for unit, made in {
        "month and year": born.strftime("%Y-%m"),
        "year": born.year(),
        "decade": born.year() // 10,
    }.items():
        regrouped = risk(frame.with_columns(made), keys=["born", "sex"])
        assert (fixes[unit].cr, fixes[unit].rp) == (regrouped.cr, regrouped.rp)


@pytest.mark.parametrize(
    "far",
    [
        [np.inf, -np.inf],
        [1e308, -1e308],
        [1e308, 0.0],
        [1e299, -1e299],
        [9.3e18, 0.5],
        [5e-324, 1e-320],
    ],
)
def test_numbers_of_any_size_have_a_fix(far):
    frame = pl.DataFrame({"x": far + [float(i) for i in range(58)], "sex": [0, 1] * 30})
    data = load(frame, kinds={"x": "measure"})
    fixes = cheapest_fix(data, keys=["x", "sex"], limit=0.1)
    assert fixes.best is not None
    assert fixes.best.meets
    assert len(fixes.fixes) < 100


def test_durations_have_a_fix():
    frame = pl.DataFrame({"x": [datetime.timedelta(seconds=i) for i in range(60)]})
    assert cheapest_fix(frame, keys=["x"], limit=0.1).best.action == "drop"


@pytest.mark.parametrize(("keys", "limit"), [(None, 0.1), (["sex"], None), (["sex"], "few")])
def test_what_is_no_option_is_refused(people, keys, limit):
    with pytest.raises(OptionError, match="must be"):
        cheapest_fix(people, keys=keys, limit=limit)


@pytest.mark.parametrize(("limit", "words"), [(1.0, "within"), (0.0, "above")])
def test_a_fix_says_whether_one_is_needed(limit, words):
    people = pl.DataFrame({"sex": ["f", "m"] * 20, "age": list(range(40))})
    (table,) = cheapest_fix(people, keys=["sex", "age"], limit=limit).tables()
    assert f"{words} the limit of {limit:g}" in table.notes[0]
    assert ("Nothing needs fixing." in table.notes) == (words == "within")
    assert bool(table.rows) == (words == "above")


JOBS = st.lists(st.sampled_from([None, *"aaaaabbbccde"]), min_size=30, max_size=60)


@settings(max_examples=5, deadline=None)
@given(JOBS, st.integers(0, 999))
@example(["a"] * 15 + ["b"] * 3 + ["c", "d"] + [None] * 20, 1)
def test_every_change_is_carried_out_by_its_line(jobs, seed):
    """Also where values are missing, which count neither among the rare nor the common ones."""
    random = np.random.default_rng(seed)
    ages = random.choice([*range(20, 90), 250], len(jobs)).tolist()
    ages = [
        None if one is None and i % 2 else age
        for i, (one, age) in enumerate(zip(jobs, ages, strict=True))
    ]
    data = load(pl.DataFrame({"job": jobs, "age": ages}), kinds={"age": "measure"})
    for fix in cheapest_fix(data, keys=["job", "age"], limit=0.1).fixes:
        if fix.action != "drop":
            new = f"{fix.variable}_{MADE[fix.action]}"
            other = "age" if fix.variable == "job" else "job"
            found = risk(keyhole.derive(data, fix.line), keys=[other, new])
            assert (found.rp, found.cr) == (fix.rp, fix.cr), fix.line


def test_a_line_that_pools_counts_the_records_with_a_value():
    """Half of four known values are two, however many are missing."""
    codes = encode(pl.Series("job", ["a", "a", "b", "c", None, None]))
    change = _Change("pool", "", np.zeros(codes.size, dtype=np.int64), 0.5)
    assert _line("job", change, codes) == "job_pool = pool(job, 2)"
