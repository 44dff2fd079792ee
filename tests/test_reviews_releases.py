"""The attack of a review on other releases: what a synthesis does against it, and candidates."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reviews import edit, run

import keyhole
from keyhole.charts import percentage
from keyhole.data.examples import veterans
from keyhole.errors import InputError
from keyhole.reviews.dossier_chapters import score_in_words
from keyhole.reviews.stages.attacks import IMPLICATE_1
from keyhole.reviews.stages.products import LEAST, pool_bars
from keyhole.reviews.study_chapters import releases_chapter
from keyhole.synthesis.evaluation import TargetBars

pytestmark = pytest.mark.usefixtures("plain_charts")

REVIEW = """\
keys = ["sex", "age", "race1"]

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

[synthesis]
keys = ["sex", "age", "race1", "ms"]
targets = ["age", "race1"]
drop = ["household", "ag8r"]
implicates = 2
seed = 918273645
self_match = 50
formula = "income ~ age + sex"
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("world"), veterans(6_000, seed=3)
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


def text_frame(path):
    return pl.read_csv(path, infer_schema=False)


def test_the_attack_is_made_on_the_first_implicate_too(folder):
    found = run(folder)
    rows = found.results()["releases"]["comparison"]
    assert [(row["release"], row["metric"]) for row in rows] == [
        (IMPLICATE_1, "unicity"), (IMPLICATE_1, "taxicab"),
    ]  # fmt: skip
    # The ids stand in the same rows of the original.
    original = keyhole.load(folder / "veterans.csv")
    alone = keyhole.study(
        puf=folder / "out/synthesis/release/implicate-1.csv", ids_from=original,
        eif=folder / "external.csv", iuf=folder / "truth.csv", puf_id="puf_id", eif_id="eif_id",
        link=["age", "ms", "race1", "homstate"], numeric=["age"], strata="sex", metric="taxicab",
        permutations=5,
    )  # fmt: skip
    assert rows[1]["conditional_rate"] == alone.conditional_rate
    assert rows[1]["confirmed"] == alone.confirmed > 0


def test_the_report_says_before_and_after_and_on_which_key(folder):
    found = run(folder)
    page = found.report.read_text()
    before = found.results()["study-unicity"]["conditional_rate"]
    after = found.results()["releases"]["comparison"][0]["conditional_rate"]
    assert f"by unicity {percentage(before)} before and {percentage(after)} after" in page
    for text in ("The same attack on each release", "correct matches: by unicity",
                 "at risk on the key sex, age, race1, ms", "homstate, sex.",
                 "does not stop this attack",
                 "Conditional rate of the study by unicity, on implicate 1"):  # fmt: skip
        assert text in page, text
    on_implicate = [limit for limit in found.limits if "implicate 1" in limit.what]
    assert [limit.met for limit in on_implicate] == [False, False]
    assert not found.met


def test_an_attack_on_another_file_is_not_made_on_the_implicates(folder):
    (folder / "other.csv").write_bytes((folder / "veterans.csv").read_bytes())
    edit(folder, 'eif = "external.csv"', 'puf = "other.csv"\neif = "external.csv"')
    assert "releases" not in run(folder).results()


def test_a_second_run_attacks_nothing_and_another_seed_attacks_anew(folder):
    run(folder)
    assert set(run(folder).reused) == set(run(folder).records)
    edit(folder, "seed = 918273645", "seed = 5")
    found = run(folder)
    assert set(found.records) - set(found.reused) == {
        "synthesis", "releases", "remaining", "outgoing",
    }  # fmt: skip


def test_candidates_are_attacked_and_judged(folder):
    whole = text_frame(folder / "veterans.csv")
    whole.drop("homstate").write_csv(folder / "coarse.csv")
    edit(folder, "[synthesis]", '[study.candidates]\n"no state" = "coarse.csv"\n\n[synthesis]')
    found = run(folder)
    rows = found.results()["releases"]["comparison"]
    assert [row["release"] for row in rows] == ["no state"] * 2 + [IMPLICATE_1] * 2
    assert rows[0]["confirmed"] < found.results()["study-unicity"]["confirmed"]
    page = found.report.read_text()
    assert "no state: &#39;homstate&#39; is not in this release" in page
    assert "no state: coarse.csv" in page
    assert "candidate:no state" in found.content()["files"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda frame: frame.drop("puf_id"), "candidate 'bad': PUF id 'puf_id' is not a column"),
        (lambda frame: frame.drop("sex"), "candidate 'bad': stratum 'sex' is not a column"),
        (lambda frame: frame.with_columns(age=pl.lit("x")), "candidate 'bad': .*'age'"),
        (None, "bad.csv"),
    ],
)
def test_a_candidate_that_is_unfit_is_told_before_anything_runs(folder, change, said):
    if change is not None:
        change(text_frame(folder / "veterans.csv")).write_csv(folder / "bad.csv")
    edit(folder, "[synthesis]", '[study.candidates]\nbad = "bad.csv"\n\n[synthesis]')
    with pytest.raises(InputError, match=said):
        run(folder)
    assert not (folder / "out").exists()


def test_columns_to_drop_are_not_in_the_release(folder):
    run(folder)
    columns = text_frame(folder / "out/synthesis/release/implicate-1.csv").columns
    assert not {"household", "puf_id"} & set(columns)
    edit(folder, '"household", ', '"household", "age", ')
    with pytest.raises(InputError, match=r"drop and \[synthesis\] keys both name 'age'"):
        run(folder)


def test_a_column_that_names_records_is_refused_before_anything_runs(folder):
    edit(folder, '"household", "ag8r"]', '"ag8r"]')
    edit(folder, 'household = "household"\n', "")
    with pytest.raises(InputError, match="column 'household' is different in nearly every record"):
        run(folder)
    assert not (folder / "out").exists()


@pytest.mark.usefixtures("built_charts")
def test_the_synthesis_has_its_pictures_and_the_regression_its_table(folder):
    found = run(folder)
    drawn = set(found.records["synthesis"]["charts"])
    assert drawn == {f"synthesis-{one}" for one in ("distributions", "coefficients", "relations")}
    page = found.report.read_text()
    assert page.count("<figure>") >= len(drawn)
    assert "Regression: income ~ age + sex" in page
    edit(folder, 'formula = "income ~ age + sex"\n', "")
    run(folder)
    assert not (folder / "out/charts/synthesis-coefficients.svg").exists()


def test_what_was_asked_has_scores_rules_and_donors(folder):
    edit(folder, 'metrics = ["unicity", "taxicab"]', 'metrics = ["adhoc", "euclidean"]')
    edit(
        folder,
        "[synthesis]",
        """[study.scores]
age = { absolute = [[1, 5], [3, 2]] }
ms = { table = [["M", "W", 3]], same = 5 }
race1 = { exact = 5 }
homstate = { exact = 4 }

[synthesis]""",
    )
    (folder / "review.toml").write_text(
        (folder / "review.toml").read_text() + '\n[synthesis.rules]\nadult = "age >= 17"\n'
    )
    page = run(folder).report.read_text()
    for text in ("age: 5 up to a difference of 1, 2 up to 3", "adult: age &gt;= 17",
                 "study: metrics</th>", "synthesis: drop</th>"):  # fmt: skip
        assert text in page, text
    assert "a table of 1 pairs of values" in page
    assert score_in_words({"days": [[31, 5]], "beyond": 1}) == (
        "5 up to a difference in days of 31, 1 beyond"
    )


@settings(deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.booleans())
def test_no_bar_stands_for_few_records_and_nothing_is_lost(counts, ordered):
    records = sum(counts)
    shares = tuple(count / records for count in counts)
    labels = tuple(map(str, range(len(counts))))
    pooled = pool_bars(TargetBars("x", ordered, labels, *[shares] * 4), records)
    assert np.isclose(sum(pooled.original), 1)
    assert len(pooled.labels) == len(pooled.original) == len(pooled.highest)
    if len(pooled.labels) > 1:
        assert all(round(share * records) >= LEAST for share in pooled.original)


def test_a_truth_without_pairs_judges_nothing(folder):
    truth = text_frame(folder / "truth.csv").with_columns(eif_id=pl.lit(None, pl.String))
    truth.write_csv(folder / "truth.csv")
    found = run(folder)
    judged = [limit for limit in found.limits if "Conditional rate" in limit.what]
    assert len(judged) == 4, "two metrics, on the file and on an implicate"
    assert [(limit.met, limit.found) for limit in judged] == [(None, None)] * 4
    assert all("Not judged" in str(limit.remedy) for limit in judged)
    table = releases_chapter(found.review, found.by_stage()).wide[0]
    assert {row[-1] for row in table.rows} == {"not judged"}
    assert "no set is within" not in found.report.read_text()
