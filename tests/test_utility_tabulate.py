"""Tabulations from implicates: by hand, against slow twins, and what must be refused."""

import itertools
import json
import math
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole import load
from keyhole.core.codec import plain_values
from keyhole.data.implicates import find_implicates
from keyhole.errors import ColumnError, FileError, InputError, OptionError
from keyhole.utility import combine, tabulate

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schemas" / "tabulate.json").read_text())


def made(seed: int, n: int = 80) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "state": rng.choice(["a", "b", "c"], n),
            "sex": rng.choice([1, 2], n),
            "weight": rng.uniform(1, 9, n),
            "income": rng.normal(50, 10, n),
        }
    )


IMPLICATES = [made(seed) for seed in range(3)]


def slow(frames, value_of) -> dict:
    """Combine cell by cell; `value_of(frame, mask)` estimates one cell and its variance."""
    cells = sorted({key for frame in frames for key in frame.select("state", "sex").rows()})
    found = {}
    for state, sex in cells:
        pairs = [
            value_of(frame, ((frame["state"] == state) & (frame["sex"] == sex)).to_numpy())
            for frame in frames
        ]
        found[state, sex] = combine(*zip(*pairs, strict=True))
    return found


def count(frame, mask):
    n, p = frame.height, mask.mean()
    return n * p, n * p * (1 - p)


def total(frame, mask):
    z = [w if inside else 0.0 for w, inside in zip(frame["weight"], mask, strict=True)]
    n, centre = len(z), sum(z) / len(z)
    return sum(z), n / (n - 1) * sum((one - centre) ** 2 for one in z)


def mean(frame, mask):
    n, w, y = frame.height, frame["weight"].to_numpy()[mask], frame["income"].to_numpy()[mask]
    centre = sum(w * y) / sum(w)
    errors = [wi * (yi - centre) / sum(w) for wi, yi in zip(w, y, strict=True)]
    return centre, n / (n - 1) * sum(one**2 for one in errors)


def plain_mean(frame, mask):
    return mean(frame.with_columns(weight=pl.lit(1.0)), mask)


@pytest.mark.parametrize(
    ("options", "value_of"),
    [
        ({}, count),
        ({"weight": "weight"}, total),
        ({"weight": "weight", "mean": "income"}, mean),
        ({"mean": "income"}, plain_mean),
    ],
)
def test_cells_equal_a_slow_twin(options, value_of):
    found = tabulate(IMPLICATES, rows="state", cols="sex", level=0.9, **options)
    twin = slow(IMPLICATES, value_of)
    cells = {(row["state"], row["sex"]): row for row in found.to_frame().to_dicts()}
    assert list(cells) == sorted(twin)
    for key, row in cells.items():
        assert row["estimate"] == pytest.approx(twin[key].estimate)
        assert row["se"] == pytest.approx(twin[key].se)
        assert row["df"] == pytest.approx(twin[key].df)
        assert row["high"] - row["estimate"] > 0


def test_a_count_by_hand():
    # Shares of f: 1/2 and 1/4 of 4: counts 2 and 1; variances 4·¼ = 1 and 4·3/16 = 0.75.
    # q̄ = 1.5, v̄ = 0.875, b = 0.5, T = 1.125, df = (1 + 0.875/0.25)² = 20.25.
    frames = [pl.DataFrame({"sex": sexes}) for sexes in (list("ffmm"), list("fmmm"))]
    first = tabulate(frames, rows="sex").to_dict()["cells"][0]
    assert first["sex"] == "f"
    assert first["estimate"] == 1.5
    assert first["se"] == pytest.approx(math.sqrt(1.125))
    assert first["df"] == pytest.approx(20.25)


def test_equal_weights_differ_from_counts_by_n_over_n_less_one():
    frames = [frame.with_columns(weight=pl.lit(1)) for frame in IMPLICATES]
    counted = tabulate(frames[:2], rows="state")
    weighed = tabulate(frames[:2], rows="state", weight="weight")
    assert weighed.to_frame()["estimate"].to_list() == counted.to_frame()["estimate"].to_list()
    within = [combine(*zip(*[count(f, (f["state"] == "a").to_numpy()) for f in frames[:2]],
                           strict=True)).within][0]  # fmt: skip
    difference = weighed.to_frame()["se"][0] ** 2 - counted.to_frame()["se"][0] ** 2
    assert difference == pytest.approx(within / 79)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=6, max_size=6), min_size=2, max_size=4))
def test_counts_add_up_to_the_records(columns):
    found = tabulate([pl.DataFrame({"x": values}) for values in columns], rows="x").to_frame()
    assert found["estimate"].sum() == pytest.approx(6)
    assert found["x"].to_list() == sorted(set(itertools.chain(*columns)))


def test_cells_are_those_of_any_implicate():
    frames = [pl.DataFrame({"x": values}) for values in (["a", "a", "b"], ["a", "a", "c"])]
    cells = {row["x"]: row["estimate"] for row in tabulate(frames, rows="x").to_dict()["cells"]}
    assert cells == {"a": 2, "b": 0.5, "c": 0.5}


def test_missing_values_are_a_cell_of_their_own():
    frame = pl.DataFrame({"x": ["a", None, None], "y": [1, 1, None]})
    found = tabulate([frame, frame], rows=["x", "y"])
    assert found.to_frame().select("x", "y", "estimate").rows() == [
        ("a", 1, 1.0), (None, 1, 1.0), (None, None, 1.0),
    ]  # fmt: skip
    assert "missing" in found.summary()
    coded = tabulate([frame.fill_null("?")] * 2, rows="x", missing_codes=["?"])
    assert coded.to_frame()["x"].to_list() == ["a", None]


def test_a_mean_leaves_out_missing_values_and_says_so():
    frame = pl.DataFrame({"x": ["a"] * 4, "y": [1.0, 3.0, None, float("nan")]})
    found = tabulate([frame, frame], rows="x", mean="y")
    assert found.to_frame()["estimate"][0] == 2
    assert any("2 records of an implicate have no value of 'y'" in note for note in found.notes)


def test_a_mean_that_an_implicate_does_not_have_is_not_estimable():
    full = pl.DataFrame({"x": ["a", "a", "b", "b", "c"], "y": [1.0, 2.0, 3.0, 4.0, 9.0]})
    found = tabulate([full, full.with_columns(x=pl.Series(list("aaaac")))], rows="x", mean="y")
    a, b, c = found.to_dict()["cells"]
    assert a["se"] is not None
    assert (b["estimate"], b["se"], b["df"]) == (None, None, None)
    assert (c["estimate"], c["se"]) == (9, None)
    said = " ".join(found.notes)
    assert "the mean of 1 cell is not estimable" in said
    assert "the standard error of 1 cell is not estimable" in said


def test_implicates_that_agree_have_infinite_degrees_of_freedom():
    found = tabulate([IMPLICATES[0]] * 3, rows="state")
    assert all(math.isinf(df) for df in found.to_frame()["df"])
    assert {cell["df"] for cell in found.to_dict()["cells"]} == {None}
    assert any("df is infinite" in note for note in found.notes)
    assert "infinite" in found.summary()


def test_one_implicate_has_the_errors_of_an_ordinary_file_and_says_so():
    found = tabulate(IMPLICATES[0], rows="state")
    assert found.implicates == 1
    assert found.to_frame()["estimate"].sum() == 80
    _, variance = count(IMPLICATES[0], (IMPLICATES[0]["state"] == "a").to_numpy())
    assert found.to_frame()["se"][0] == pytest.approx(math.sqrt(variance))
    assert any("somewhat too short" in note for note in found.notes)
    assert "somewhat too short" in found.summary()
    assert found.plot().to_dict()


def test_types_that_differ_between_implicates_meet():
    numbers = tabulate([pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": [1.0, 2.0]})], rows="x")
    assert numbers.to_frame()["estimate"].to_list() == [1, 1]
    mixed = tabulate([pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": ["1", "02"]})], rows="x")
    assert mixed.to_frame()["x"].to_list() == ["02", "1", "2"]


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "sav", "dta", "xlsx", "arrow"])
def test_a_folder_in_any_format(tmp_path, form):
    for place, frame in enumerate(IMPLICATES, 1):
        load(frame).save(tmp_path / f"implicate-{place}.{form}")
    (tmp_path / "codebook.csv").write_text("not,an,implicate\n")
    found = tabulate(tmp_path, rows="state", cols="sex", weight="weight")
    wanted = tabulate(IMPLICATES, rows="state", cols="sex", weight="weight")
    for name in ("estimate", "se", "df"):
        assert found.to_frame()[name].to_list() == pytest.approx(wanted.to_frame()[name].to_list())


def test_files_are_taken_by_their_numbers(tmp_path):
    for place in range(1, 12):
        (tmp_path / f"implicate-{place}.csv").write_text("x\n1\n")
    names = [path.stem for path in find_implicates(tmp_path)]
    assert names == [f"implicate-{place}" for place in range(1, 12)]


def test_a_folder_that_is_no_release_is_explained(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        tabulate(tmp_path / "nowhere", rows="x")
    (tmp_path / "release").mkdir()
    with pytest.raises(FileError, match=r"Give '.*release'"):
        tabulate(tmp_path, rows="x")
    for name in ("implicate-1.csv", "implicate-1.tsv", "implicate-4.csv"):
        (tmp_path / "release" / name).write_text("x\n1\n")
    with pytest.raises(FileError) as caught:
        tabulate(tmp_path / "release", rows="x")
    assert "'implicate-1' more than once" in caught.value.problems[0]
    assert "lacks 'implicate-2', 'implicate-3'" in caught.value.problems[1]
    with pytest.raises(FileError, match="at least one"):
        tabulate([], rows="x")


def test_implicates_that_do_not_belong_together_are_one_error():
    first, second, third = IMPLICATES
    with pytest.raises(ColumnError) as caught:
        tabulate([first, second.drop("income"), third.head(79)], rows="state")
    assert len(caught.value.problems) == 2
    assert "differ in 'income'" in caught.value.problems[0]
    assert "Got 80 and 79" in caught.value.problems[1]


def test_all_problems_at_once_and_an_absent_column_once():
    with pytest.raises(InputError) as caught:
        tabulate(IMPLICATES, rows=["stat", "sex"], cols="sex", level=0)
    problems = caught.value.problems
    assert len(problems) == 3
    assert "level" in problems[0]
    assert "'sex' is in rows and cols" in problems[1]
    assert "'stat' is not a column of 'implicate-1'. Did you mean 'state'?" in problems[2]
    with pytest.raises(InputError) as caught:
        tabulate([f.with_columns(weight=-pl.col("weight")) for f in IMPLICATES[:1]],
                 rows="state", weight="weight", mean="state")  # fmt: skip
    assert "weight 'weight'" in caught.value.problems[0]
    assert "column 'state' of 'implicate-1' must hold numbers" in caught.value.problems[1]


def test_bad_options():
    with pytest.raises(OptionError, match="rows must be a list of at least one column name"):
        tabulate(IMPLICATES, rows=[])
    with pytest.raises(OptionError, match="rename"):
        tabulate([pl.DataFrame({"se": [1]})], rows="se")
    with pytest.raises(ColumnError, match="no records"):
        tabulate([pl.DataFrame({"x": []})], rows="x")
    infinite = pl.DataFrame({"x": [1, 1], "y": [1.0, math.inf]})
    with pytest.raises(ColumnError, match="finite"):
        tabulate([infinite], rows="x", mean="y")


def test_the_dictionary_has_the_agreed_shape():
    for options in ({}, {"cols": "sex", "weight": "weight", "mean": "income"}):
        found = plain_values(tabulate(IMPLICATES, rows="state", **options).to_dict())
        jsonschema.validate(found, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"cells": [{"estimate": 1}]}, SCHEMA)


def test_a_table_with_columns_is_crossed_unless_it_is_too_wide():
    crossed = tabulate(IMPLICATES, rows="state", cols="sex").tables()[0]
    assert crossed.columns == ["state", "sex: 1", "sex: 2", "total"]
    assert [row[0] for row in crossed.rows] == ["a", "b", "c", "total"]
    assert "(" in crossed.rows[0][1]
    wide = [frame.with_row_index("row") for frame in IMPLICATES]
    listed = tabulate(wide, rows="state", cols="row").tables()[0]
    assert listed.columns[:3] == ["state", "row", "estimate"]
    assert any("more rows" in note for note in listed.notes)


def test_a_cross_table_with_gaps_and_missing_heads():
    frame = pl.DataFrame({"x": ["a", "b", None], "y": [None, "u", "v"]})
    table = tabulate([frame, frame], rows="x", cols="y").tables()[0]
    assert table.columns == ["x", "y: u", "y: v", "y: missing", "total"]
    assert [row[0] for row in table.rows] == ["a", "b", "missing", "total"]
    assert table.rows[0][1] == ""


def test_the_picture_has_a_bar_and_a_whisker_for_each_cell():
    spec = tabulate(IMPLICATES, rows="state", cols="sex", weight="weight").plot().to_dict()
    bars, whiskers = spec["layer"]
    (rows,) = spec["datasets"].values()
    assert len(rows) == 6
    assert all(row["low"] < row["estimate"] < row["high"] for row in rows)
    assert bars["mark"]["type"] == "bar"
    assert whiskers["mark"]["type"] == "rule"


# What a new user's pass found


def test_no_interval_of_a_count_is_below_zero_or_beyond_the_records():
    rare = [frame.with_columns(rare=pl.int_range(80) < k) for k, frame in enumerate(IMPLICATES)]
    for weight in (None, "weight"):
        cells = tabulate(rare, rows="rare", weight=weight).to_frame()
        assert (cells["low"] > 0).all()
        assert (cells["low"] <= cells["estimate"]).all()
        assert (cells["estimate"] <= cells["high"]).all()
    assert (tabulate(rare, rows="rare").to_frame()["high"] <= 80).all()


def test_a_logit_interval_by_hand():
    # One implicate, 20 of 80: logit(1/4) ± 1.96 · sqrt(15) / (80 · 3/16).
    frame = pl.DataFrame({"x": ["a"] * 20 + ["b"] * 60})
    low, high = tabulate(frame, rows="x").to_frame().select("low", "high").row(0)
    step = 1.959964 * math.sqrt(80 * 0.25 * 0.75) / (80 * 0.1875)
    centre = math.log(0.25 / 0.75)
    assert low == pytest.approx(80 / (1 + math.exp(-(centre - step))), rel=1e-5)
    assert high == pytest.approx(80 / (1 + math.exp(-(centre + step))), rel=1e-5)


def test_margins_are_tables_of_their_own():
    found = tabulate(IMPLICATES, rows="state", cols="sex", weight="weight", mean="income")
    for side, names in (("rows", "state"), ("cols", "sex")):
        alone = tabulate(IMPLICATES, rows=names, weight="weight", mean="income").to_frame()
        assert found.margins[side].equals(alone)
    told = plain_values(found.to_dict())
    jsonschema.validate(told, SCHEMA)
    assert {name: len(rows) for name, rows in told["margins"].items()} == {
        "rows": 3, "cols": 2, "total": 1,
    }  # fmt: skip
    assert list(tabulate(IMPLICATES, rows="state").margins) == ["total"]


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("share", ["table", "rows", "cols"])
def test_shares_equal_a_slow_twin(share, weight):
    found = tabulate(IMPLICATES, rows="state", cols="sex", weight=weight, share=share)

    def part(frame, mask):
        inside = np.ones(len(mask), dtype=bool)
        names = {"table": [], "rows": ["state"], "cols": ["sex"]}[share]
        for name in names:
            inside &= (frame[name] == frame.filter(pl.Series(mask))[name][0]).to_numpy()
        w = frame["weight"].to_numpy() if weight else np.ones(len(mask))
        w, d = w[inside], mask[inside].astype(float)
        p, n = sum(w * d) / sum(w), len(mask)
        return p, n / (n - 1) * sum((w * (d - p) / sum(w)) ** 2)

    twin = slow(IMPLICATES, part)
    for row in found.to_frame().to_dicts():
        assert row["estimate"] == pytest.approx(twin[row["state"], row["sex"]].estimate)
        assert row["se"] == pytest.approx(twin[row["state"], row["sex"]].se)
        assert 0 < row["low"] < row["high"] < 1
    whole = {"table": 1, "rows": 3, "cols": 2}[share]
    assert found.to_frame()["estimate"].sum() == pytest.approx(whole)
    assert found.plot().to_dict()


def test_what_is_not_estimable_is_a_dash_with_one_note():
    full = pl.DataFrame({"x": list("aabbc"), "z": list("uvuvu"), "y": [1.0, 2.0, 3.0, 4.0, 9.0]})
    text = tabulate([full, full], rows="x", cols="z", mean="y").summary()
    assert "not estimable)" not in text
    assert "(–)" in text
    assert text.count("– is not estimable.") == 1


def test_all_figures_of_a_table_have_as_many_decimals():
    frames = [frame.with_columns(income=pl.col("income") * 37) for frame in IMPLICATES]
    for options in ({"weight": "weight"}, {"mean": "income"}, {"share": "table"}, {}):
        table = tabulate(frames, rows="state", **options).tables()[0]
        figures = [row[i] for row in table.rows for i in (1, 2, 4, 5)]
        assert len({len(figure.partition(".")[2]) for figure in figures}) == 1


def test_the_same_problem_of_all_implicates_is_told_once():
    with pytest.raises(InputError) as caught:
        tabulate(IMPLICATES, rows="sex", mean="state", weight="state")
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"share": "all"}, "share must be one of 'table', 'rows', 'cols'"),
        ({"share": "rows"}, "share of rows needs cols too"),
        ({"share": "table", "mean": "income"}, "cannot both be asked for"),
    ],
)
def test_shares_that_cannot_be(options, said):
    with pytest.raises(OptionError, match=said):
        tabulate(IMPLICATES, rows="state", **options)


@pytest.mark.parametrize("number", ["0", "101", "99999999999"])
def test_implicates_are_numbered_from_one(tmp_path, number):
    for name in ("implicate-1.csv", f"implicate-{number}.csv"):
        (tmp_path / name).write_text("x\n1\n")
    with pytest.raises(FileError, match="numbered from 1 to 100"):
        find_implicates(tmp_path)
