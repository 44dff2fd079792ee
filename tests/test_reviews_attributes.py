"""Attribute disclosure in a review: chapter, verdict, and figures recounted from the files."""

import json
import random

import polars as pl
import pytest
from tests.reviews import ILL_IS_SENSITIVE

import keyhole
from keyhole.errors import InputError

pytestmark = pytest.mark.usefixtures("plain_charts")

REVIEW = f"""\
keys = ["sex", "age", "region"]
[release]
drop = ["serial"]
[data]
file = "people.csv"
[data.roles]
{ILL_IS_SENSITIVE}limit = 0.1
"""
SYNTHESIS = """\
[synthesis]
targets = ["ill", "age"]
keys = ["sex", "age", "region", "ill"]
seed = 9007199254740993
implicates = 3
"""


@pytest.fixture
def folder(tmp_path):
    draw = random.Random(11)
    rows = []
    for i in range(400):
        sex, age, region = draw.choice("fm"), draw.randrange(20, 80, 5), draw.choice("nesw")
        # Everybody in the north has it, and of the others a fifth.
        ill = "yes" if region == "n" or draw.random() < 0.2 else draw.choice(["no", None])
        rows.append((f"P{i:05d}", sex, age, region, ill, "1"))
    names = ["serial", "sex", "age", "region", "ill", "same"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "people.csv")
    return tmp_path


def reviewed(folder, text=REVIEW, name="out"):
    (folder / "review.toml").write_text(text)
    return keyhole.review(folder / "review.toml", out=folder / name)


def reason(found, column="ill"):
    (one,) = [r for r in found.verdict.reasons if r.what == f"Attribute disclosure: {column}"]
    return one


def homogeneous(frame, keys, column):
    """Return the records in cells with one value, and those of them in cells of three or more."""
    cells = frame.group_by(keys).agg(pl.len().alias("n"), pl.col(column).n_unique().alias("k"))
    one = cells.filter(pl.col("k") == 1)
    return one["n"].sum(), one.filter(pl.col("n") >= 3)["n"].sum()


def test_the_report_says_in_a_sentence_what_is_learnt_without_finding_anybody(folder):
    found = reviewed(folder)
    source = pl.read_csv(folder / "people.csv")
    told, hidden = homogeneous(source, ["sex", "age", "region"], "ill")
    assert hidden > 50
    page = (folder / "out/report.html").read_text()
    sentence = (
        f"{hidden} records are in cells of three or more that all share one value of ill: "
        "anybody who knows the key learns it without identifying a record."
    )
    assert sentence in page
    one = found.results()["attributes"]["sensitive"]["ill"]
    assert (one["homogeneous_records"], one["hidden_by_rp"]) == (told, hidden)


def test_levels_of_a_variable_that_is_tabulated_are_left_to_the_table(folder):
    found = reviewed(folder)
    levels = found.results()["attributes"]["sensitive"]["ill"]["levels"]
    assert "region" in {one["column"] for one in levels}
    told = (one for one in levels if one["column"] == "region")
    count = f">{next(told)['homogeneous']:,}</td>"
    assert count in (folder / "out/report.html").read_text()
    reviewed(folder, REVIEW + '[[table]]\nrows = "region"\n', "tabled")
    page = (folder / "tabled/report.html").read_text()
    assert "Levels that disclose most" in page
    assert count not in page


def test_the_release_is_judged_on_its_files_and_a_coarser_one_is_met(folder):
    found = reviewed(folder)
    file = pl.read_csv(folder / "out" / found.results()["outgoing"]["files"][0])
    told, _ = homogeneous(file, ["sex", "age", "region"], "ill")
    assert reason(found).answer == "not_met"
    assert reason(found).found == pytest.approx(told / file.height)
    assert "homogeneous_limit" in reason(found).remedy
    assert found.verdict.answer == "not_met"
    kept = reviewed(folder, REVIEW.replace('["serial"]', '["serial", "age", "region"]'), "less")
    assert reason(kept).answer == "met"
    assert reason(kept).found == 0


def test_implicates_count_people_whose_own_value_is_told(folder):
    found = reviewed(folder, REVIEW + SYNTHESIS)
    keys = ["sex", "age", "region"]
    source = pl.read_csv(folder / "people.csv")
    shares = []
    for place in (1, 2, 3):
        made = pl.read_csv(folder / f"out/synthesis/release/implicate-{place}.csv")
        cells = made.group_by(keys).agg(pl.col("ill").n_unique().alias("k"), pl.col("ill").first())
        both = source.join(cells.filter(pl.col("k") == 1), on=keys, how="inner", suffix="_told")
        own = both.filter(pl.col("ill").eq_missing(pl.col("ill_told"))).height
        shares.append(own / source.height)
    (row,) = [
        one for one in found.results()["attributes-released"]["rows"] if one["knows"] == "the keys"
    ]
    assert row["right"] == pytest.approx(max(shares))
    assert 0 < row["right"] != row["homogeneous"]


def test_a_value_everybody_has_and_a_column_left_out_are_no_disclosure(folder):
    text = REVIEW.replace('["serial"]', '["serial", "ill"]')
    text = text.replace("[attributes]", '[attributes]\nsensitive = ["ill", "same"]')
    found = reviewed(folder, text)
    assert [reason(found, name).answer for name in ("ill", "same")] == ["met", "met"]
    assert reason(found).said == "it is not released"
    assert reason(found, "same").found == 0
    page = (folder / "out/report.html").read_text()
    assert "All records have one value of same: it is not a secret" in page


def test_without_a_limit_it_is_not_judged_and_without_a_section_roles_ask(folder):
    found = reviewed(folder, REVIEW.replace("[attributes]\nlimit = 0.1\n", ""))
    assert reason(found).answer == "not_judged"
    assert "Set limit in [attributes]" in reason(found).remedy
    none = reviewed(folder, REVIEW.partition("[data.roles]")[0], "none")
    assert "attributes" not in none.results()
    assert "attributes" not in json.loads((folder / "none/results.json").read_text())["settings"]


def test_small_counts_are_hidden(folder):
    rows = [("f", "a")] + [("m", v) for v in "ab" * 20] + [("x", v) for v in "ab" * 20]
    pl.DataFrame(rows, schema=["sex", "ill"], orient="row").write_csv(folder / "few.csv")
    text = """\
    keys = ["sex"]
    [data]
    file = "few.csv"
    [exposure]
    limit = 0.5
    [attributes]
    sensitive = ["ill"]
    limit = 0.5
    """
    found = reviewed(folder, text)
    assert "fewer than 3 records" in reason(found).said
    page = (folder / "out/report.html").read_text()
    chapter = page.partition('id="attributes"')[2].partition("</section>")[0]
    assert "&lt;3" in chapter
    assert "0.0123" not in chapter  # 1 of 81
    assert "1.2%" not in chapter
    assert "1.2%" not in reason(found).said


def test_what_is_wrong_with_the_section_is_told_on_its_line(folder):
    with pytest.raises(InputError) as wrong:
        reviewed(folder, REVIEW.replace("[attributes]", '[attributes]\nsensitive = ["sex"]'))
    assert "line 11: [attributes] sensitive must not be keys" in str(wrong.value)
    with pytest.raises(InputError, match="needs 'sensitive'"):
        reviewed(folder, REVIEW.replace('ill = "sensitive"', 'ill = "stratum"'))
    with pytest.raises(InputError, match="'il' is not a column"):
        reviewed(folder, REVIEW.replace("[attributes]", '[attributes]\nsensitive = ["il"]'))
