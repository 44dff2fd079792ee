"""The attack of a review on its protected file: the same attack, before and after."""

import polars as pl
import pytest
from tests.reviews import edit, run

import keyhole
from keyhole.charts import percentage
from keyhole.data.examples import veterans
from keyhole.reviews.stages.attacks import PROTECTED
from keyhole.reviews.stages.products import ROWS, read_rows

pytestmark = pytest.mark.usefixtures("plain_charts")

REVIEW = """\
keys = ["sex", "ag8r", "race1"]

[release]
product = "protection"

[data]
file = "veterans.csv"

[data.roles]
puf_id = "identifier"
household = "household"

[study]
eif = "external.csv"
iuf = "truth.csv"
puf_id = "puf_id"
eif_id = "eif_id"
link = ["age", "ms", "race1", "homstate"]
numeric = ["age"]
strata = "sex"
metrics = ["unicity", "taxicab"]
permutations = 5
limit = 0.1

[protection]
seed = 918273645

[[protection.step]]
method = "drop"
columns = ["puf_id", "household", "area"]

[[protection.step]]
method = "top-code"
column = "age"
value = 70

[[protection.step]]
method = "recode"
column = "ms"
map = { W = "formerly", D = "formerly", S = "formerly" }
keep_rest = true

[[protection.step]]
method = "suppress"
keys = ["sex", "ag8r", "race1"]
k = 3
"""
ASKED = {
    "puf_id": "puf_id", "eif_id": "eif_id", "link": ["age", "ms", "race1", "homstate"],
    "numeric": ["age"], "strata": "sex", "permutations": 5,
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("world"), veterans(4_000, seed=3)
    made.sample.save(folder / "veterans.csv")
    made.external.save(folder / "external.csv")
    made.truth.select(["puf_id", "eif_id"]).save(folder / "truth.csv")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path, world):
    for name, content in world.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def rows_of(found):
    return [row for row in found.results()["releases"]["comparison"] if row["release"] == PROTECTED]


def released(folder):
    """Return the protected file with the ids of its records, found without keyhole."""
    frame = pl.read_csv(folder / "out/protection/release/protected.csv")
    places = pl.read_csv(folder / "out" / "protection" / ROWS).to_series() - 1
    return frame.with_columns(pl.read_csv(folder / "veterans.csv")["puf_id"][places])


def coded(folder):
    """Return the intruder's file, coded by hand as the plan codes the released one."""
    return pl.read_csv(folder / "external.csv").with_columns(
        age=pl.when(pl.col("age") > 70).then(70).otherwise("age"),
        ms=pl.col("ms").replace(dict.fromkeys("WDS", "formerly")),
    )


def test_the_rows_of_a_protected_file_are_those_of_the_original(folder):
    run(folder)
    original = pl.read_csv(folder / "veterans.csv")
    after = released(folder)
    assert sorted(read_rows(folder / "out" / "protection" / ROWS)) == list(range(original.height))
    both = after.join(original, on="puf_id", how="left", maintain_order="left", suffix="_before")
    # What the plan does not touch is the same person's; the order tells nothing.
    assert both["income"].equals(both["income_before"])
    assert both["homstate"].equals(both["homstate_before"])
    assert after["puf_id"].to_list() != original["puf_id"].to_list()
    assert "puf_id" not in pl.read_csv(folder / "out/protection/release/protected.csv").columns


def test_the_attack_is_made_on_the_protected_file_by_one_who_codes_alike(folder):
    found = run(folder)
    rows = rows_of(found)
    assert [row["metric"] for row in rows] == ["unicity", "taxicab"]
    for row in rows:
        alone = keyhole.study(puf=released(folder), eif=coded(folder), iuf=folder / "truth.csv",
                              metric=row["metric"], **ASKED)  # fmt: skip
        assert row["conditional_rate"] == alone.conditional_rate
        assert row["confirmed"] == alone.confirmed > 0
        # Who does not code alike finds fewer: it matters.
        plain = keyhole.study(puf=released(folder), eif=pl.read_csv(folder / "external.csv"),
                              iuf=folder / "truth.csv", metric=row["metric"], **ASKED)  # fmt: skip
        assert plain.confirmed != row["confirmed"]
    assert found.results()["releases"]["coded_alike"] == ["age", "ms"]


def test_the_report_says_before_and_after_the_protection(folder):
    found = run(folder)
    page = found.report.read_text()
    after = rows_of(found)[0]["conditional_rate"]
    for text in (percentage(after), "The same attack on each release", "after the protection",
                 "is assumed to code age, ms in the intruder’s own file in the same way",
                 "Conditional rate of the study by unicity"):  # fmt: skip
        assert text in page, text
    judged = [limit for limit in found.limits if "on the protected file" in limit.what]
    assert [limit.found for limit in judged] == [row["conditional_rate"] for row in rows_of(found)]


def test_a_sample_is_attacked_with_the_truth_about_its_own_records(folder):
    edit(folder, "[[protection.step]]\nmethod = \"suppress\"",
         '[[protection.step]]\nmethod = "sample"\nfraction = 0.5\n\n'
         '[[protection.step]]\nmethod = "suppress"')  # fmt: skip
    found = run(folder)
    after = released(folder)
    assert after.height == round(pl.read_csv(folder / "veterans.csv").height / 2)
    truth = pl.read_csv(folder / "truth.csv")
    truth = truth.filter(
        truth["puf_id"].is_null() | truth["puf_id"].is_in(after["puf_id"].implode())
    )
    alone = keyhole.study(puf=after, eif=coded(folder), iuf=truth, metric="taxicab", **ASKED)
    assert rows_of(found)[1]["confirmed"] == alone.confirmed
    assert rows_of(found)[1]["conditional_rate"] == alone.conditional_rate


def test_numbers_that_became_ranges_are_linked_as_categories(folder):
    edit(folder, 'method = "top-code"\ncolumn = "age"\nvalue = 70',
         'method = "recode"\ncolumn = "age"\nwidth = 10')  # fmt: skip
    found = run(folder)
    eif = (
        coded(folder)
        .with_columns(age=pl.read_csv(folder / "external.csv")["age"] // 10 * 10)
        .with_columns(age=pl.format("{}-{}", "age", pl.col("age") + 9))
    )
    asked = {**ASKED, "numeric": []}
    puf = released(folder)
    assert set(puf["age"].drop_nulls()) & set(eif["age"].drop_nulls())
    alone = keyhole.study(puf=puf, eif=eif, iuf=folder / "truth.csv", metric="unicity", **asked)
    assert rows_of(found)[0]["conditional_rate"] == alone.conditional_rate


def test_what_cannot_be_attacked_says_why_and_is_not_judged(folder):
    edit(folder, 'metrics = ["unicity", "taxicab"]', 'metrics = ["adhoc"]')
    edit(folder, 'method = "top-code"\ncolumn = "age"\nvalue = 70',
         'method = "recode"\ncolumn = "age"\nwidth = 10')  # fmt: skip
    edit(folder, "[protection]\n", """[study.scores]
age = { absolute = [[1, 5], [3, 2]] }
ms = { exact = 5 }
race1 = { exact = 5 }
homstate = { exact = 4 }

[protection]
""")  # fmt: skip
    found = run(folder)
    assert not rows_of(found)
    (left,) = found.results()["releases"]["not_attacked"]
    assert (left["release"], left["metric"]) == (PROTECTED, "adhoc")
    assert "The attack by adhoc cannot be made" in found.report.read_text()
    (judged,) = [limit for limit in found.limits if "on the protected file" in limit.what]
    assert judged.met is None


def test_another_plan_attacks_anew_and_the_same_does_not(folder):
    run(folder)
    again = run(folder)
    assert set(again.reused) == set(again.records)
    edit(folder, "value = 70", "value = 65")
    found = run(folder)
    assert {"protection", "releases"} <= set(found.records) - set(found.reused)


def test_a_protected_file_without_its_rows_is_made_again(folder):
    run(folder)
    (folder / "out" / "protection" / ROWS).write_text("row\nx\n")
    found = run(folder)
    assert "protection" not in found.reused
    assert keyhole.verify(folder / "out").differences == ()
