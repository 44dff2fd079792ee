"""A protected file must not give itself away: forms, what stays, order, goals, seeds, labels."""

import json

import numpy as np
import polars as pl
import pyreadstat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

import keyhole
from keyhole.data import Microdata, Variable, load
from keyhole.data.examples import veterans_sample
from keyhole.errors import OptionError
from keyhole.protection.apply import apply_plan, protect
from keyhole.protection.methods.extremes import top_code
from keyhole.protection.methods.microaggregation import microaggregate
from keyhole.protection.methods.noise import add_noise
from keyhole.protection.methods.pram import pram
from keyhole.protection.methods.rounding import round_to_base
from keyhole.protection.methods.swapping import rank_swap
from keyhole.protection.plan import Plan

SEED = 2**61 + 12_345
KEYS = ["sex", "ag8r", "race1", "ms", "homstate"]


@pytest.fixture(scope="module")
def people():
    return veterans_sample(2000)


def told(found, column):
    return [text for text in found.warnings if f"of {column!r}" in text]


# One form


def text_column(cells, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("\n".join(["x,y", *(f"{cell},1" for cell in cells)]) + "\n")
    return load(path, missing_codes=["N"])


@pytest.mark.parametrize(
    "work",
    [
        lambda data: top_code(data, column="x", value=100_000),
        lambda data: round_to_base(data, column="x", base=1000),
        lambda data: microaggregate(data, columns=["x"], k=3),
        lambda data: rank_swap(data, columns=["x"], share=0.5, seed=1),
        lambda data: pram(data, column="x", p=0.5, seed=1),
    ],
)
@pytest.mark.parametrize("forms", [["{}.0"], ["{}.0", "{}", "{}.00"], ["{}.50"]])
def test_what_is_new_is_not_told_by_how_it_is_written(tmp_path, work, forms):
    numbers = [90_000, 100_000, 250_100, 100_000, 80_000, 250_100] * 4
    cells = [forms[i % len(forms)].format(x) for i, x in enumerate(numbers)]
    data = text_column([*cells, "N"], tmp_path)
    assert data.frame["x"].dtype == pl.String
    made = work(data)
    assert made.changed
    new = made.data.frame["x"]
    assert new[-1] == "N"
    values = made.data.column("x")
    assert values.dtype.is_numeric()
    written = {(value, text) for value, text in zip(values, new, strict=True) if value is not None}
    assert len(written) == len({value for value, _ in written}), "one value, one text"
    places = {len(text.partition(".")[2]) for _, text in written if "." in text}
    whole = all(value == int(value) for value, _ in written)
    assert len(places) <= 1 or not whole


# What can be read off


def test_what_stays_is_held_against_what_goes_out_not_the_original():
    generator = np.random.default_rng(3)
    county = generator.integers(0, 30, 900)
    frame = pl.DataFrame({"county": county, "state": county // 3, "sex": county % 2,
                          "age": generator.integers(20, 80, 900)})  # fmt: skip
    suppress = {"method": "suppress", "keys": ["state", "sex"], "k": 50, "missing": "own"}
    swap = {"method": "swap-records", "area": ["state", "county"], "match": ["sex"], "share": 0.5}
    both = apply_plan(frame, [swap, suppress], keys=["state", "sex"], seed=SEED)
    assert [text for text in told(both, "state") if "'county'" in text], "they moved together"
    coarse = {"method": "recode", "column": "state", "cuts": [5]}
    found = apply_plan(frame, [coarse, {**suppress, "k": 300}], keys=["state", "sex"])
    assert [text for text in told(found, "state") if "'county'" in text]
    assert found.read_off.rp >= found.after.rp


def test_rp_after_reading_off_is_that_of_the_file_filled_in(people):
    keys = ["sex", "ms", "homstate"]
    step = {"method": "suppress", "keys": keys, "k": 3, "missing": "own", "never": keys[:1]}
    data = people.select([name for name in people.names if name not in ("household", "puf_id")])
    done = apply_plan(data, [step], keys=keys)
    assert done.after.rp == 0
    assert told(done, "homstate")
    assert not told(done, "ms")
    filled = done.data.frame.with_columns(people.frame["homstate"])
    assert done.read_off.rp == keyhole.risk(filled, keys=keys, missing="own").rp > 0.02
    assert f"RP(3) is {100 * done.read_off.rp:.4g}%, not 0%" in done.summary()
    assert done.to_dict()["read_off"]["rp"] == done.read_off.rp
    found = keyhole.ledger(data, [step], keys=keys, limit=0.02)
    assert found.last.rp == 0
    assert found.meets is False
    assert "including recoverable values, above the limit" in found.summary()


@pytest.mark.parametrize(
    "step",
    [
        {"method": "pram", "column": "homstate", "p": 0.8},
        {"method": "swap-records", "area": ["homstate"], "match": ["sex"], "share": 0.2},
        {"method": "rank-swap", "columns": ["ag8r"], "share": 0.4},
        {"method": "drop", "columns": ["homstate"]},
        {"method": "noise", "columns": ["ag8r"], "size": 0.5},
        {"method": "recode", "column": "ag8r", "width": 4},
    ],
    ids=lambda step: step["method"],
)
def test_what_any_method_hid_and_a_column_tells_is_said(people, step):
    data = people.select([n for n in people.names if n not in ("puf_id", "household")])
    column, by = ("ag8r", "age") if "ag8r" in str(step) else ("homstate", "area")
    assert [text for text in told(apply_plan(data, [step], seed=SEED), column) if by in text]
    without = [{"method": "drop", "columns": [by]}, step]
    assert not [text for text in told(apply_plan(data, without, seed=SEED), column) if by in text]


def test_two_columns_that_tell_a_third_together():
    generator = np.random.default_rng(4)
    a, b = generator.integers(0, 6, (2, 600))
    frame = pl.DataFrame({"a": a, "b": b, "sum": a + b})
    found = apply_plan(frame, [{"method": "drop", "columns": ["sum"]}])
    assert found.warnings == (
        "'a' and 'b', which are retained, together reveal the values of 'sum' though it was "
        "dropped: drop one, or protect it in the same way",
    )


@given(st.integers(0, 2**30))
@settings(max_examples=25, deadline=None)
def test_strangers_tell_nothing(seed):
    generator = np.random.default_rng(seed)
    frame = pl.DataFrame({f"c{i}": generator.integers(0, 2 + 3 * i, 300) for i in range(6)})
    steps = [
        {"method": "suppress", "keys": ["c1", "c2", "c3"], "k": 3},
        {"method": "pram", "column": "c4", "p": 0.7},
        {"method": "drop", "columns": ["c0"]},
    ]
    found = apply_plan(frame, steps, seed=SEED)
    assert not [text for text in found.warnings if "tell" in text]


# Order


def test_the_order_tells_nothing_unless_it_is_kept(people, tmp_path):
    data = people.select(["homstate", "sex", "ms", "race1"])
    data = data.replace(frame=data.frame.sort("homstate", "sex"))
    step = {"method": "suppress", "keys": ["homstate", "sex", "ms", "race1"], "k": 3}
    done = protect(data, plan=[step], out=tmp_path / "out.csv", seed=SEED)
    assert not done.warnings
    assert done.data.frame["sex"].equals(data.frame["sex"]) or done.data.records == data.records
    written = pl.read_csv(tmp_path / "out.csv")
    assert written["homstate"].drop_nulls().is_sorted() is False
    assert sorted(map(repr, written.rows())) == sorted(
        map(repr, pl.read_csv(done.data.frame.write_csv().encode()).rows())
    )
    again = protect(data, plan=[step], out=tmp_path / "again.csv", seed=SEED)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    assert again.release().frame.equals(done.release().frame)
    kept = apply_plan(data, {"keep_order": True, "step": [step]}, seed=SEED)
    assert kept.release().frame.equals(kept.data.frame)
    assert [text for text in kept.warnings if text.startswith("the order of the records reveals")]
    assert Plan.parse(kept.plan.to_toml()).keep_order


def test_numbers_of_records_give_the_order_back(people):
    data = people.select(["puf_id", "homstate", "sex"])
    frame = data.frame.sort("homstate").with_columns(pl.Series("puf_id", range(data.records)))
    data = data.replace(frame=frame)
    done = apply_plan(data, [{"method": "pram", "column": "homstate", "p": 0.8}], seed=SEED)
    assert told(done, "homstate")[0].startswith("the order of the records by 'puf_id'")


def test_the_order_does_not_need_a_seed(people):
    step = {"method": "drop", "columns": ["puf_id"]}
    one, other = (apply_plan(people, [step]).release() for _ in range(2))
    assert one.frame.equals(other.frame)
    assert not one.frame["household"].equals(people.frame["household"])


# Goals


@pytest.mark.parametrize(
    "later",
    [{"method": "pram", "column": "ms", "p": 0.7}, {"method": "sample", "fraction": 0.3}],
    ids=lambda step: step["method"],
)
def test_a_goal_that_a_later_step_undoes_is_told(people, later):
    suppress = {"method": "suppress", "keys": ["sex", "ms", "race1"], "k": 3}
    done = apply_plan(people, [suppress, later], seed=SEED)
    rp = keyhole.risk(done.data, keys=["sex", "ms", "race1"]).rp
    assert rp > 0
    goal = next(text for text in done.warnings if "its goal k = 3 no longer holds" in text)
    assert f"{100 * rp:.4g}%" in goal
    assert done.steps[0].notes[-1] == f"RP(3) of the released file is {100 * rp:.4g}%"
    assert done.to_dict()["warnings"] == list(done.warnings)
    first = apply_plan(people, [later, suppress], seed=SEED)
    assert not [text for text in first.warnings if "goal" in text]


def test_areas_below_the_threshold_in_what_goes_out_are_told(people):
    step = {"method": "geographic-threshold", "column": "homstate", "threshold": 60,
            "ordered": True}  # fmt: skip
    data = people.select(["homstate", "sex"])
    done = apply_plan(data, [step])
    assert not done.warnings
    new = apply_plan(data.filter(np.arange(data.records) < 500), done.plan)
    assert [text for text in new.warnings if "below the threshold of 60" in text]
    sampled = apply_plan(data, [step, {"method": "sample", "fraction": 0.2}], seed=SEED)
    assert [text for text in sampled.warnings if "below the threshold of 60" in text]


def test_a_kept_column_that_splits_merged_areas_is_told(people):
    data = people.select(["homstate", "area", "sex"])
    step = {"method": "geographic-threshold", "column": "area", "threshold": 30, "ordered": True}
    done = apply_plan(data, [step])
    assert [text for text in done.warnings if "'homstate', which is released, splits" in text]
    assert not [text for text in done.warnings if "'sex'" in text]


# Seeds


def test_one_seed_does_not_cancel_out_over_options_or_files(people):
    def noise(size, data=people):
        step = {"method": "noise", "columns": ["income"], "size": size}
        made = apply_plan(data, [step], seed=SEED).data.frame["income"].to_numpy().astype(float)
        return (made - data.frame["income"].to_numpy()) / size

    assert abs(np.corrcoef(noise(0.5), noise(0.2))[0, 1]) < 0.2
    other = people.replace(frame=people.frame.with_columns(pl.col("income") + 1000))
    assert abs(np.corrcoef(noise(0.5), noise(0.5, other))[0, 1]) < 0.2
    assert np.array_equal(noise(0.5), noise(0.5))


def test_a_small_seed_is_told(people):
    step = {"method": "pram", "column": "ms", "p": 0.8}
    assert "can be guessed by trying" in apply_plan(people, [step], seed=7).warnings[-1]
    assert "7" not in apply_plan(people, [step], seed=7).warnings[-1].replace("2**63", "")
    assert not apply_plan(people.select(["ms"]), [step], seed=SEED).warnings
    drop = {"method": "drop", "columns": ["puf_id"]}
    assert not apply_plan(people, [drop], seed=7).warnings, "it draws nothing"


# Missing codes, bounds


@pytest.mark.parametrize("highest", [999.0, float("inf"), 1.7976931348623157e308])
def test_noise_stays_out_of_missing_ranges(highest):
    ages = np.random.default_rng(0).integers(18, 90, 500)
    known = Variable("age", "measure", missing_ranges=((90.0, highest),))
    data = Microdata(pl.DataFrame({"age": [*ages.tolist(), 98, 99]}), [known])
    new = add_noise(data, columns=["age"], size=0.5, seed=1).data.frame["age"]
    assert new[-2:].to_list() == [98, 99]
    assert new[:500].max() < 90
    assert (new[:500] == 89).mean() < 0.2, "mirrored, not heaped up"


def test_noise_makes_no_negative_incomes():
    income = np.random.default_rng(1).integers(0, 2000, 400)
    made = add_noise(load(pl.DataFrame({"income": income})), columns=["income"], size=1, seed=2)
    assert made.data.frame["income"].min() >= 0
    assert made.notes == ("column 'income' has no negative values, and got none: mirrored at 0",)
    signed = load(pl.DataFrame({"gain": income - 1000}))
    assert not add_noise(signed, columns=["gain"], size=1, seed=2).notes


def test_a_mean_that_one_record_makes_is_not_told():
    data = load(pl.DataFrame({"pay": [1, 2, 3, 6, 7, 100]}), kinds={"pay": "measure"})
    made = top_code(data, column="pay", value=5, replace="mean")
    assert made.data.frame["pay"].to_list() == [1, 2, 3, 7, 7, 7]


# What a file says of values it no longer has


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("kind", ["enum", "categorical"])
def test_dictionaries_have_no_categories_that_no_record_has(tmp_path, suffix, kind):
    jobs = ["clerk"] * 10 + ["farmer"] * 10 + ["astronaut"]
    dtype = pl.Enum(["astronaut", "clerk", "farmer"]) if kind == "enum" else pl.Categorical()
    frame = pl.DataFrame({"job": pl.Series(jobs, dtype=dtype), "age": range(21)})
    path = tmp_path / f"out{suffix}"
    protect(frame, plan=[{"method": "suppress", "keys": ["job"], "k": 3}], out=path, seed=SEED)
    table = parquet.read_table(path) if suffix == ".parquet" else feather.read_table(path)
    assert "astronaut" not in str(table.schema)
    for chunk in table["job"].chunks:
        held = chunk.dictionary if hasattr(chunk, "dictionary") else chunk
        assert set(held.to_pylist()) <= {"clerk", "farmer", None}
    assert table["job"].null_count == 3


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_labels_of_values_that_no_record_has_stay_at_home(tmp_path, suffix):
    frame = pl.DataFrame(
        {"job": [1.0] * 10 + [2.0] * 10 + [3.0], "age": [float(x) for x in range(21)]}
    )
    labels = {1: "clerk", 2: "farmer", 3: "astronaut", 4: "secret"}
    pyreadstat.write_sav(frame, str(tmp_path / "in.sav"), variable_value_labels={"job": labels},
                         file_label="of the office", note="for us")  # fmt: skip
    path = tmp_path / f"out{suffix}"
    plan = [{"method": "suppress", "keys": ["job"], "k": 3}]
    done = protect(tmp_path / "in.sav", plan=plan, out=path)
    read = pyreadstat.read_sav if suffix == ".sav" else pyreadstat.read_dta
    _, about = read(str(path))
    assert set(about.variable_value_labels["job"].values()) == {"clerk", "farmer"}
    assert not about.file_label
    assert not about.notes
    assert "the file's own label and notes are left out" in done.notes


def test_pandas_categories_are_those_that_occur():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"job": pandas.Categorical(["a"] * 5 + ["b"] * 5 + ["c"])})
    done = apply_plan(frame, [{"method": "suppress", "keys": ["job"], "k": 3}])
    assert set(done.release().to_native()["job"].cat.categories) == {"a", "b"}


# What is told


def test_both_readings_of_a_missing_value_are_told(people):
    plan = [{"method": "drop", "columns": ["area", "age"]},
            {"method": "suppress", "keys": KEYS, "k": 3, "missing": "wildcard"}]  # fmt: skip
    data = people.select([*KEYS, "area", "age"])
    found = keyhole.ledger(data, plan, keys=KEYS, limit=0.05, missing="wildcard")
    last = found.last
    assert last.rp == last.rp_wildcard == 0
    assert last.rp_own == keyhole.risk(found.protection.data, keys=KEYS, missing="own").rp > 0.05
    assert "only where a missing value matches every value" in found.verdict
    assert "RP own" in found.summary()
    both = keyhole.compare_plans(data, {"a": plan, "b": plan[:1]}, keys=KEYS, limit=0.05,
                                 missing="wildcard")  # fmt: skip
    assert "RP own" in both.summary()
    assert "A missing key matches every value" in both.summary()
    assert "a: RP(3) is" in both.summary()


def test_identifiers_and_weights_are_no_information(tmp_path):
    veterans_sample(400).save(tmp_path / "in.csv")
    plan = [{"method": "drop", "columns": ["puf_id", "household", "weight"]},
            {"method": "top-code", "column": "age", "value": 80}]  # fmt: skip
    found = keyhole.ledger(tmp_path / "in.csv", plan, keys=["sex"], weight="weight")
    assert found.targets == ("sex", "age")


def test_an_invariant_matrix_says_what_it_keeps(people):
    made = pram(people, column="ms", p=0.8, invariant=True, seed=3)
    kept = 1 - made.changed / people.records
    assert made.notes[0].startswith(f"{kept:.0%} of the values were kept; in the")
    assert not pram(people, column="ms", p=0.8, seed=3).notes


def test_a_step_that_changes_nothing_says_so(people):
    done = apply_plan(people, [{"method": "top-code", "column": "age", "value": 200}])
    assert "changed nothing" in done.steps[0].notes
    assert "Step 1: changed nothing." in done.summary()


def test_a_rise_of_rp_by_noise_is_told(people):
    keys = ["sex", "age"]
    found = keyhole.ledger(people, [{"method": "noise", "columns": ["age"], "size": 0.3}],
                           keys=keys, seed=SEED)  # fmt: skip
    assert found.last.rp > found.lines[0].rp
    assert [text for text in found.warnings if "RP is higher than before" in text]


def test_cr_is_labelled_where_cells_are_counted_otherwise(people):
    plan = [{"method": "suppress", "keys": KEYS, "k": 3}]
    done = apply_plan(people, plan, keys=KEYS, missing="wildcard")
    assert "CR (mean of 1/f)" in done.summary()
    own = apply_plan(people, [{"method": "drop", "columns": ["area"]}], keys=KEYS)
    assert "CR (mean" not in own.summary()


def test_a_plan_that_was_told_can_be_read_but_not_carried_out(people):
    steps = [
        {"method": "noise", "columns": ["income"], "size": 0.37},
        {"method": "pram", "column": "ms", "matrix": {"M": {"M": 0.37, "S": 0.63}}},
    ]
    text = Plan.parse(steps).told()
    assert "0.37" not in text
    assert text.count("kept internal") == 2
    read = Plan.parse(text)
    assert [step.columns for step in read.steps] == [("income",), ("ms",)]
    with pytest.raises(OptionError, match="size must be a number above 0"):
        apply_plan(people, read, seed=SEED)
    assert "kept internal" in json.dumps(read.told())
