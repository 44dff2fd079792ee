"""The scenarios of a review: keys from a scenario, all of them side by side, the chapter."""

import json
import re

import pytest

import keyhole
from keyhole.data.examples import veterans_sample
from keyhole.environment.example.environment import example_environment
from keyhole.environment.exchange import write_environment
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.environment.store import open_store
from keyhole.errors import InputError
from keyhole.reviews.checks import read_review

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
    assert "Elliot, M. &amp; Dale, A." in page
    json.loads((found.folder / "results.json").read_text())


def test_a_second_run_reuses_and_a_changed_environment_computes_anew(folder):
    run(folder)
    again = run(folder)
    assert set(again.reused) == set(again.records)
    changed = example_environment()
    forms = tuple(form for form in changed.forms if form.name != "Online shop account")
    from dataclasses import replace

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
        ('reasons = ["few care"]', "", "line 11: .*must be argued"),
        ("label =", "lable =", "line 11: .*Did you mean 'label'"),
        ('keys = "scenario:commercial database"', 'keys = "sex"', "line 3: keys must be"),
        ('store = "env.json"', 'target = "x"', r"line 8: \[environment\] needs 'store'"),
        ('store = "env.json"', 'store = "env.json"\ntarget = "vets"', "Near it: 'veterans'"),
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

    from keyhole.reviews.settings import DataSettings, ExposureSettings, Review

    review = Review("t", Path(), "", DataSettings("f"), (), ExposureSettings(), scenarios=settings)
    assert "secret" not in json.dumps(review.to_dict())
