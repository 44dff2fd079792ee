"""The stage [study] of a review: the attack, its chapter in the report, its resume."""

import json
import re

import polars as pl
import pytest
from tests.reviews import edit, problems, run

import keyhole
from keyhole.charts import percentage
from keyhole.data.examples import veterans

REVIEW = """\
keys = ["sex", "ag8r"]

[data]
file = "veterans.csv"

[study]
eif = "external.csv"
iuf = "truth.csv"
puf_id = "puf_id"
eif_id = ["eif_id"]
link = ["age", "ms", "race1", "homstate", "income"]
numeric = ["age", "income"]
strata = "sex"
metrics = ["unicity", "taxicab"]
permutations = 20
limit = 0.9
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("world"), veterans(6_000, seed=3)
    made.sample.save(folder / "veterans.csv")
    made.external.save(folder / "external.csv")
    made.truth.save(folder / "truth.csv")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path, world):
    for name, content in world.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def computed(found):
    return set(found.records) - set(found.reused)


@pytest.mark.usefixtures("plain_charts")
def test_the_figures_are_those_of_the_verb(folder):
    found = run(folder)
    alone = keyhole.study(
        puf=folder / "veterans.csv",
        eif=folder / "external.csv",
        iuf=folder / "truth.csv",
        puf_id="puf_id",
        eif_id="eif_id",
        link=["age", "ms", "race1", "homstate", "income"],
        numeric=["age", "income"],
        strata="sex",
        metric="taxicab",
        permutations=20,
    )
    assert found.results()["study-taxicab"] == json.loads(json.dumps(alone.to_dict()))
    assert {limit.what.split()[6] for limit in found.limits} == {"unicity", "taxicab"}
    assert found.files["eif"]["file"] == "external.csv"
    assert found.content()["files"]["puf"] == found.content()["files"]["data"]


def test_the_chapter_tells_rates_verdict_and_caveats_but_nobody(folder):
    ids = pl.read_csv(folder / "veterans.csv")["puf_id"]
    assert ids.is_unique().all()
    for name, column in (("veterans", "puf_id"), ("truth", "puf_id"), ("truth", "eif_id"),
                         ("external", "eif_id")):  # fmt: skip
        data = pl.read_csv(folder / f"{name}.csv", infer_schema=False)
        marked = data.with_columns(pl.format("ID{}Q", pl.col(column)).alias(column))
        marked.write_csv(folder / f"{name}.csv")
    found = run(folder)
    page = found.report.read_text()
    study = found.results()["study-unicity"]
    assert percentage(study["conditional_rate"]) in page
    assert study["verdict"][0].replace("'", "&#39;") in page
    assert "No proof of safety" in page
    assert "Metrics, side by side" in page
    assert "Effect of the perturbation" not in page, "there is none"
    assert page.count("<svg role=") == 3
    for path in (folder / "out").rglob("*"):
        if path.is_file():
            assert not re.search(rb"ID\d+Q", path.read_bytes()), path


@pytest.mark.usefixtures("plain_charts")
def test_a_second_run_computes_nothing_and_an_edit_what_it_touches(folder):
    run(folder)
    assert computed(run(folder)) == set()
    edit(folder, "limit = 0.9", "limit = 0.8\nrank_cap = 4")
    assert computed(run(folder)) == {"study-taxicab"}, "unicity has no ranks"
    edit(folder, "rank_cap = 4", "orders = 'highest'\nrank_cap = 4")
    assert computed(run(folder)) == {"study-unicity"}
    text = (folder / "external.csv").read_text().splitlines()
    (folder / "external.csv").write_text("\n".join([text[0], *reversed(text[1:])]) + "\n")
    assert computed(run(folder)) == {"study-unicity", "study-taxicab"}
    (folder / "review.toml").write_text(REVIEW[: REVIEW.index("[study]")])
    run(folder)
    assert not list((folder / "out").rglob("*study*"))


@pytest.mark.usefixtures("plain_charts")
def test_adhoc_scores_stand_in_the_file_or_in_their_own(folder):
    scores = "age = {absolute = [[1, 5], [3, 3]]}\n" + "".join(
        f"{name} = {{exact = 5}}\n" for name in ("ms", "race1", "homstate", "income")
    )
    edit(folder, 'metrics = ["unicity", "taxicab"]', 'metric = "adhoc"')
    edit(folder, "limit = 0.9\n", f"[study.scores]\n{scores}")
    inside = run(folder).results()["study-adhoc"]
    assert inside["suspected"] > 0
    (folder / "scores.toml").write_text(scores)
    edit(folder, f"[study.scores]\n{scores}", 'scores = "scores.toml"\n')
    found = run(folder)
    assert "study-adhoc" in found.reused, "it is the same question"
    assert found.results()["study-adhoc"] == inside


@pytest.mark.usefixtures("plain_charts")
def test_another_file_may_be_attacked_than_the_one_under_review(folder):
    frame = pl.read_csv(folder / "veterans.csv", infer_schema=False)
    frame.with_columns(age=pl.col("age").cast(int) // 20 * 20).write_csv(folder / "coarse.csv")
    before = run(folder).results()["study-unicity"]["confirmed"]
    edit(folder, 'eif = "ext', 'puf = "coarse.csv"\neif = "ext')
    found = run(folder)
    assert found.results()["study-unicity"]["confirmed"] < before
    assert found.results()["study-unicity"]["perturbation"] is not None
    page = found.report.read_text()
    assert "Effect of the perturbation" in page
    assert "coarse.csv" in page, "its hash is there"


@pytest.mark.usefixtures("plain_charts")
def test_small_strata_are_not_named(folder):
    frames = {}
    for name in ("veterans", "external"):
        data = pl.read_csv(folder / f"{name}.csv", infer_schema=False)
        label = [f"region {i % 3}" for i in range(data.height - 1)] + ["ATOLL"]
        frames[name] = data.with_columns(region=pl.Series(label))
        frames[name].write_csv(folder / f"{name}.csv")
    edit(folder, 'strata = "sex"', 'strata = ["region"]')
    page = run(folder).report.read_text()
    assert "ATOLL" not in page
    assert "groups with fewer than 3 records (1 group)" in page
    edit(folder, 'strata = ["region"]', 'strata = ["region"]\nnamed_groups = ["ATOLL"]')
    found = run(folder)
    assert computed(found) == set()
    row = re.search(r'<th scope="row">ATOLL</th>(.*?)</tr>', found.report.read_text()).group(1)
    assert re.findall(r">([^<>]*)</td>", row) == ["&lt;3", "", "", "", ""]


@pytest.mark.usefixtures("plain_charts")
def test_tables_by_the_same_column_withhold_the_same_group(folder):
    for name in ("veterans", "external"):
        data = pl.read_csv(folder / f"{name}.csv", infer_schema=False)
        label = [f"region {min(i % 7, 2)}" for i in range(data.height - 1)] + ["ATOLL"]
        data.with_columns(region=pl.Series(label)).write_csv(folder / f"{name}.csv")
    edit(folder, 'strata = "sex"', 'strata = ["region"]')
    edit(
        folder,
        "[study]",
        '[exposure]\nby = "region"\n[selection]\nby = "region"\nlimit = 0.9\n[study]',
    )
    edit(folder, 'keys = ["sex", "ag8r"]', 'keys = ["sex", "age", "race1"]')
    page = run(folder).report.read_text()
    rows = re.findall(r'<th scope="row">(region \d)</th><td class="figure">([^<]*)</td>', page)
    assert len(rows) == 12, "by exposure, selection and two metrics"
    assert len(set(rows)) == 3
    assert [size for _, size in set(rows)].count("withheld") == 1


@pytest.mark.usefixtures("plain_charts")
def test_the_limit_is_on_the_conditional_rate(folder):
    edit(folder, "limit = 0.9", "limit = 0.0")
    found = run(folder)
    assert [limit.met for limit in found.limits] == [False, False]
    rate = found.results()["study-unicity"]["conditional_rate"]
    high = found.results()["study-unicity"]["intervals"]["conditional_rate"][1]
    edit(folder, "limit = 0.0", f"limit = {(rate + high) / 2:.4f}")
    limit = run(folder).limits[0]
    assert limit.met
    assert limit.remedy.startswith("Uncertain: the 95% interval")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('eif = "external.csv"\n', "", "[study] needs 'eif'"),
        ('eif = "external.csv"', 'eif = "nobody.csv"', "line 7: "),
        (
            'link = ["age"',
            'link = ["agee"',
            "linking variable 'agee' is not a column",
        ),
        ('puf_id = "puf_id"', 'puf_id = "pufid"', "Did you mean 'puf_id'?"),
        ('puf_id = "puf_id"', 'puf_id = "ms"', "line 6: "),
        ('numeric = ["age", "income"]', 'numeric = ["sex"]', "numeric 'sex' must belong to a"),
        ('strata = "sex"', 'strata = ["age"]', "link and strata both name 'age'"),
        (
            '["unicity", "taxicab"]',
            '["adhoc"]',
            "scored, for metrics adhoc. Got none",
        ),
        ("limit = 0.9", 'scores = "none.toml"', "scores"),
        (
            "limit = 0.9",
            "scores = { age = { exact = 5 } }",
            "[study] scores can only be used with metrics adhoc",
        ),
        ('["unicity", "taxicab"]', '["unicity", "taxi"]', "metrics must be one of"),
        ("permutations = 20", "permutations = -1", "permutations must be a whole number"),
        ("permutations = 20", "alpha = 0", "alpha must be a number above 0"),
        ("permutations = 20", "missing_codes = { aeg = [-9] }", "a column of none of the files"),
        ("permutations = 20", 'named_groups = ["x"]\nmetric = "taxicab"', "Give one of them"),
        ('link = ["age", "ms", "race1", "homstate", "income"]', 'link = ["age"]', "at least two"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(folder, old, new, said):
    assert said in problems(folder, old, new)


def test_linking_values_that_never_meet_are_told(folder):
    data = pl.read_csv(folder / "external.csv", infer_schema=False)
    data.with_columns(ms=pl.lit("zz")).write_csv(folder / "external.csv")
    text = problems(folder, "permutations = 20", "permutations = 0")
    assert "linking variable 'ms' must have a value in common" in text
    assert text.count("value in common") == 1
