"""The scenarios of a review: keys from a scenario, all of them side by side, the chapter."""

import json
import re
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keyhole
from keyhole.charts import percentage
from keyhole.data.examples import veterans, veterans_sample
from keyhole.environment.exchange import example_environment, write_environment
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.environment.store import open_store
from keyhole.errors import InputError
from keyhole.reviews.checks import read_review
from keyhole.reviews.rendering import limit_percentage, percentage_beside, percentage_near, rate
from keyhole.reviews.verdict import Limit

DATA = veterans_sample(1500)
REVIEW = """
title = "Scenarios"
keys = "scenario:commercial database"
[data]
file = "people.csv"
[data.roles]
puf_id = "identifier"
[environment]
store = "env.json"
scenarios = ["commercial database", "register"]
[scenario.friend]
label = "A <b>friend</b>"
columns = ["sex", "age"]
p_attempt = [0.1, 0.5]
reasons = ["few care"]
[exposure]
limit = 0.01
[uniques]
max_size = 2
[selection]
limit = 0.05
[frontier]
"""


@pytest.fixture
def folder(tmp_path):
    DATA.save(tmp_path / "people.csv")
    write_environment(example_environment(), tmp_path / "env.json")
    return tmp_path


def run(folder, text=REVIEW, **options):
    (folder / "review.toml").write_text(text)
    return keyhole.review(folder / "review.toml", out=folder / "out", **options)


def test_all_stages_use_the_key_of_the_scenario(folder):
    found = run(folder)
    data = keyhole.load(folder / "people.csv")
    key = scenario_key(example_environment(), "commercial database", data)
    results = found.results()
    assert found.review.keys == key.keys
    assert results["exposure"]["rp"] == keyhole.risk(data, scenario=key).rp
    assert results["exposure"]["rp"] < keyhole.risk(data, keys=key.keys).rp
    uniques = keyhole.uniques(data, scenario=key, max_size=2).to_dict()
    assert results["uniques"]["by_size"] == uniques["by_size"]
    chosen = keyhole.select(data, scenario=key, limit=0.05)
    assert results["selection-forward"]["selected"] == list(chosen.selected)
    assert "fix" in results
    assert results["frontier"]["candidates"] == list(key.keys)


def test_scenarios_stand_side_by_side_with_the_worst_case(folder):
    result = run(folder).results()["scenarios"]
    names = [part["scenario"] for part in result["scenarios"]]
    assert names == ["friend", "commercial database", "register"]
    assert result["worst"] == "register"
    friend = result["scenarios"][0]["identification"]
    assert friend["p_attempt"] == [0.1, 0.5]
    low, high = friend["p_identification_given_attempt"]
    assert friend["p_identification"] == [0.1 * low, 0.5 * high]


def test_the_report_tells_the_stories_and_how_keys_were_derived(folder):
    found = run(folder)
    page = found.report.read_text()
    chapter = re.search(r'<section id="scenarios">(.*?)</section>', page, re.S).group(1)
    assert "A &lt;b&gt;friend&lt;/b&gt;" in chapter
    assert "<b>friend" not in chapter
    for words in ("Motivation", "Goals achievable by other means", "few care", "Consequences"):
        assert words in chapter
    assert "How this key was derived" in chapter
    assert "Not in the key" in chapter
    assert "Worst case: &#39;register&#39;" in chapter
    assert "This is an example that comes with keyhole" in chapter
    assert "<svg" in chapter
    assert "at the detail of scenario" in page
    assert "keys of the file at the detail of scenario" in page, "an assumption"
    named = "friend, commercial database, register"
    assert f'scenarios</th><td class="words">{named}</td>' in page
    assert "Elliot, M. &amp; Dale, A." in page
    json.loads((found.folder / "results.json").read_text())


def test_a_second_run_reuses_and_a_changed_environment_computes_anew(folder):
    run(folder)
    again = run(folder)
    assert set(again.reused) == set(again.records)
    changed = example_environment()
    forms = tuple(form for form in changed.forms if form.name != "Online shop account")
    write_environment(replace(changed, forms=forms), folder / "env.json", force=True)
    third = run(folder)
    assert "scenarios" not in third.reused
    assert "exposure" not in third.reused


def test_a_store_serves_as_well_as_a_file(folder):
    store = open_store(folder / "env.db", create=True)
    store.write(store.read(), example_environment(), who="ann")
    first = run(folder).results()["scenarios"]
    text = REVIEW.replace("env.json", "env.db")
    assert run(folder, text).results()["scenarios"] == first


def test_without_scenarios_named_all_of_the_environment_are_looked_at(folder):
    text = 'keys = ["sex", "age"]\n[data]\nfile = "people.csv"\n[environment]\nstore = "env.json"\n'
    found = run(folder, text)
    assert len(found.results()["scenarios"]["scenarios"]) == 5
    assert found.results()["exposure"]["keys"] == ["sex", "age"]
    assert found.results()["exposure"]["rp"] == keyhole.risk(DATA, keys=["sex", "age"]).rp


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("env.json", "none.json", r"line 9: .*none.json.* does not exist"),
        ("scenario:commercial database", "scenario:comercial database", "line 3: .*Did you mean"),
        ('"register"]', '"registers"]', "line 10: .*Did you mean 'register'"),
        ('["sex", "age"]', '["sexx"]', "line 11: .*has no column 'sexx'"),
        ('reasons = ["few care"]', "", "line 14: .*must be argued"),
        ("label =", "lable =", "line 12: .*Did you mean 'label'"),
        ('keys = "scenario:commercial database"', 'keys = "sex"', "line 3: keys must be"),
        ('store = "env.json"', 'target = "x"', r"line 8: \[environment\] needs 'store'"),
        ('store = "env.json"', 'store = "env.json"\ntarget = "vets"', "Did you mean 'veterans'"),
    ],
)
def test_problems_are_told_with_their_lines(folder, old, new, message):
    assert old in REVIEW
    (folder / "review.toml").write_text(REVIEW.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_review(folder / "review.toml")


def test_scenarios_without_an_environment_are_refused(folder):
    text = re.sub(r"\[environment\].*?(?=\[scenario)", "", REVIEW, flags=re.S)
    (folder / "review.toml").write_text(text)
    with pytest.raises(InputError, match=r"\[environment\] is missing"):
        read_review(folder / "review.toml")


def test_an_empty_key_cannot_be_the_reviews(folder):
    text = REVIEW.replace("scenario:commercial database", "scenario:nobody")
    text = text.replace("[exposure]", "[scenario.nobody]\npublic = { resources = 3 }\n[exposure]")
    (folder / "review.toml").write_text(text)
    with pytest.raises(InputError, match="key of scenario 'nobody' is empty"):
        read_review(folder / "review.toml")


def test_no_password_of_a_store_is_kept():
    from keyhole.reviews.settings import ScenarioSettings

    settings = ScenarioSettings("postgresql://ann:secret@host/env", None, ("x",))
    from pathlib import Path

    from keyhole.reviews.schema import question_of
    from keyhole.reviews.settings import DataSettings, Review

    exposure = question_of("exposure", {})
    review = Review("t", Path(), "", DataSettings("f"), (), exposure, scenarios=settings)
    assert "secret" not in json.dumps(review.to_dict())


# Limits

NOBODY = "[scenario.nobody]\npublic = { resources = 3 }\n[exposure]"


def test_the_limit_is_held_against_the_worst_scenario_too(folder):
    found = run(folder)
    scenarios = found.results()["scenarios"]
    keys, worst, *_ = found.limits
    assert keys.what == "RP(3) on the keys, the file as it is"
    assert worst.what == "RP(3) under the worst scenario, 'register'"
    (register,) = [s for s in scenarios["scenarios"] if s["scenario"] == "register"]
    assert worst.found == register["exposure"]["rp"] > worst.limit
    assert not worst.met
    assert list(worst.p_identification) == register["identification"]["p_identification"]
    assert 'keys = "scenario:register"' in worst.remedy
    stored = json.loads((folder / "out/results.json").read_text())["limits"][1]
    assert stored["scenario"] == "register"
    assert stored["p_identification"] == list(worst.p_identification)
    assert "worst scenario" in found.summary()
    page = found.report.read_text()
    glance = re.search(r'<dl class="glance".*?</dl>', page, re.S).group(0)
    # The serial number that the register has is not released.
    told = [one for one in found.results()["outgoing"]["keys"] if "scenario" in one["knows"]]
    most = max(told, key=lambda one: one["rp"])
    assert most["rp"] < worst.found
    shown = f'<dd class="risk">{percentage(most["rp"])}</dd><dd>on the key of scenario'
    assert f"<dt>RP(3) worst scenario</dt>{shown} &#39;friend&#39;; " in glance
    limits = re.search(r'<section id="limits".*?</section>', page, re.S).group(0)
    assert "RP(3) under the worst scenario, &#39;register&#39;" in limits


def test_a_worst_scenario_within_the_limit_is_met(folder):
    text = REVIEW.replace("limit = 0.01", "limit = 1.0")
    worst = run(folder, text).limits[1]
    assert (worst.met, worst.state, worst.verdict) == (True, "met", "Met")
    assert "keys =" not in worst.remedy


@pytest.mark.usefixtures("plain_charts")
def test_a_scenario_that_cannot_be_measured_is_not_judged(folder):
    text = REVIEW.replace("[exposure]", NOBODY).replace("limit = 0.01", "limit = 1.0")
    found = run(folder, text)
    (nobody,) = [limit for limit in found.limits if limit.scenario == "nobody"]
    assert (nobody.met, nobody.found, nobody.state) == (None, None, "unjudged")
    assert "the key is empty" in nobody.remedy
    assert not found.met, "what is not judged is not met"
    assert "not judged" in found.summary()
    page = found.report.read_text()
    assert '<span class="verdict">Not judged</span>' in page
    assert "nothing to compare with the limit of 100%" in page
    stored = json.loads((folder / "out/results.json").read_text())["limits"]
    assert [one["met"] for one in stored if one["scenario"] == "nobody"] == [None]


def test_no_limit_no_verdict(folder):
    found = run(folder, REVIEW.replace("limit = 0.01", "cutoff = 3"))
    assert not any(limit.scenario for limit in found.limits)
    assert "Worst case: " in found.report.read_text()


def test_a_share_at_its_limit_is_the_limit():
    assert Limit("RP", 0.1, 0.1, met=True).said == "10% against a limit of 10%"
    assert Limit("RP", 0.155, 0.1551, met=False).said == "15.51% against a limit of 15.5%"
    assert Limit("RP", 0.1, None, met=False).said == "no set is within the limit of 10%"


@given(st.integers(0, 1000), st.integers(0, 10**7))
def test_digits_tell_the_side_of_the_limit(thousandths, found):
    limit, share = thousandths / 1000, found / 10**7
    for text in (percentage_beside(share, limit), percentage_near(share, (limit, 0.5))):
        number = re.fullmatch(r"([\d.]+)%?", text)
        if number is None:
            words = {"just above": share > limit, "just below": share < limit,
                     "less than": share < 1e-4, "more than": share > 1 - 1e-4}  # fmt: skip
            assert words[" ".join(text.split()[:2])]
            continue
        shown = float(number[1])
        exact = float(limit_percentage(limit)[:-1])
        assert (shown > exact, shown < exact) == (share > limit, share < limit)
        assert len(text.rstrip("%").partition(".")[2]) <= 5


# A study on the key of a scenario

STUDY = """
keys = ["sex", "ag8r"]
[data]
file = "people.csv"
[environment]
store = "env.json"
scenarios = ["register"]
[study]
eif = "external.csv"
iuf = "truth.csv"
puf_id = "puf_id"
eif_id = "eif_id"
link = "scenario:veterans association"
strata = "sex"
metrics = ["unicity", "taxicab"]
permutations = 0
[study.candidates]
coarser = "coarser.csv"
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    path, made = tmp_path_factory.mktemp("world"), veterans(6000, seed=2)
    made.sample.save(path / "people.csv")
    made.external.save(path / "external.csv")
    made.truth.select(["puf_id", "eif_id"]).save(path / "truth.csv")
    coarser = pl.read_csv(path / "people.csv", infer_schema=False).drop("homstate")
    coarser.write_csv(path / "coarser.csv")
    write_environment(example_environment(), path / "env.json")
    return {one.name: one.read_bytes() for one in path.iterdir()}


@pytest.fixture
def attacked(tmp_path, world):
    for name, content in world.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.usefixtures("plain_charts")
def test_a_study_links_on_the_key_of_a_scenario(attacked):
    found = run(attacked, STUDY)
    data = keyhole.load(attacked / "people.csv")
    key = scenario_key(example_environment(), "veterans association", data)
    files = {part: attacked / f"{file}.csv" for part, file in
             (("puf", "people"), ("eif", "external"), ("iuf", "truth"))}  # fmt: skip
    alone = keyhole.study(**files, puf_id="puf_id", eif_id="eif_id", scenario=key, strata="sex",
                          permutations=0)  # fmt: skip
    result = found.results()["study-unicity"]
    assert result == json.loads(json.dumps(alone.to_dict()))
    assert result["scenario"] == "veterans association"
    assert "sex" in key.keys
    assert "sex" not in result["link"], "a stratum is not linked on"
    assert found.review.study.link == tuple(result["link"])
    names = [one["scenario"] for one in found.results()["scenarios"]["scenarios"]]
    assert names == ["register", "veterans association"]
    page = found.report.read_text()
    assert "at the detail of scenario &#39;veterans association&#39;" in page
    assert "p(identification) under scenario &#39;veterans association&#39; is" in page
    rows = found.results()["releases"]["comparison"]
    assert [row["release"] for row in rows] == ["coarser", "coarser"]
    assert "homstate" in rows[0]["warnings"][0]


@pytest.mark.usefixtures("plain_charts")
def test_a_changed_scenario_asks_the_study_anew(attacked):
    run(attacked, STUDY)
    assert set(run(attacked, STUDY).reused) >= {"study-unicity", "releases"}
    changed = example_environment()
    changed = replace(changed, forms=tuple(
        replace(form, fields=tuple(f for f in form.fields if f.coding is None or
                                   not f.coding.startswith("MS")))
        for form in changed.forms
    ))  # fmt: skip
    write_environment(changed, attacked / "env.json", force=True)
    again = run(attacked, STUDY)
    assert not {"study-unicity", "study-taxicab", "releases"} & set(again.reused)
    assert "exposure" in again.reused, "its keys are a list"
    assert "ms" not in again.results()["study-unicity"]["link"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scenario:veterans", "scenario:veteran", "line 13: scenario .*Did you mean"),
        ('"scenario:veterans association"', '"age"', "line 13: .*link must name at least two"),
        ('strata = "sex"', 'strata = "sex"\nnumeric = ["age"]', "line 13: .*Leave numeric out"),
        ('"coarser.csv"', '"finer.csv"', "line 18: .*finer.csv"),
        ("[study]\n", "[scenario.nobody]\npublic = { resources = 3 }\n[study]\n", None),
    ],
)
def test_problems_of_a_studys_scenario_are_told_with_their_lines(attacked, old, new, message):
    assert old in STUDY
    text = STUDY.replace(old, new)
    if message is None:
        text = text.replace("scenario:veterans association", "scenario:nobody")
        message = "line 15: link: the key of scenario 'nobody' is empty"
    (attacked / "review.toml").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_review(attacked / "review.toml")
    assert len(caught.value.problems) == 1, "told once"


def test_values_outside_the_coding_are_told_before_anything_runs(attacked):
    external = pl.read_csv(attacked / "external.csv", infer_schema=False)
    external.with_columns(homstate=pl.lit("nowhere")).write_csv(attacked / "external.csv")
    (attacked / "review.toml").write_text(STUDY)
    with pytest.raises(InputError, match=r"line 13: \[study\] column 'homstate' of 'external'"):
        read_review(attacked / "review.toml")


def test_a_study_on_a_scenario_needs_an_environment(attacked):
    text = re.sub(r"\[environment\].*?(?=\[study)", "", STUDY, flags=re.S)
    (attacked / "review.toml").write_text(text)
    with pytest.raises(InputError, match=r"line 10: \[environment\] is missing"):
        read_review(attacked / "review.toml")


def test_shares_beside_their_limit_have_as_many_digits_as_tell_the_side():
    assert [limit_percentage(x) for x in (0.1, 0.155, 0.0005)] == ["10%", "15.5%", "0.05%"]
    shares = (0, 0.0001, 0.0213, 0.05, 0.4, 0.99996, 1)
    told = ["0%", "0.01%", "2.1%", "5%", "40%", "more than 99.99%", "100%"]
    assert [rate(x) for x in shares] == told
    assert [rate(x, 0.1) for x in (0.10003, 0.1, 0.3458)] == ["10.003%", "10%", "35%"]
    shares = (0.3458, 0.1, 0.10003, 0.0999999999, 0, 0.0002, 1)
    told = ["35%", "10%", "10.003%", "just below 10%", "0%", "0.02%", "100%"]
    assert [percentage_beside(x, 0.1) for x in shares] == told
    shares = (0.4676, 0.0503, 0.05, 0.29996, 0.9984, -0.0312)
    told = ["47%", "5.03%", "5%", "29.996%", "99.84%", "−3.1%"]
    assert [percentage_near(x, (0.05, 0.3)) for x in shares] == told
    assert percentage_near(0.1551, [0.155]) == "15.51%"


@pytest.mark.usefixtures("plain_charts")
def test_an_environment_that_changed_is_named_by_verify(folder):
    """Two scenarios are of one file, one is of the review itself; a setting counts by itself."""
    short = REVIEW[: REVIEW.index("[uniques]")]
    run(folder, short)
    same = keyhole.verify(folder / "out")
    assert same.same
    assert {one.name for one in same.inputs} >= {"people.csv", "env.json"}
    assert [row[0] for row in same.to_frame().rows()] == [part.name for part in same.parts]
    assert same.to_frame()["figures"].sum() == same.figures > 0
    text = (folder / "env.json").read_text()
    (folder / "env.json").write_text(text.replace('"example": true', '"example": false', 1))
    changed = keyhole.verify(folder / "out")
    assert not changed.same
    assert [one.name for one in changed.inputs if not one.same] == ["env.json"]
    assert "env.json is another file" in changed.differences
