"""Results restored from what they print give the same again: goldens, and fresh ones."""

import json
from pathlib import Path

import pytest

import keyhole
from keyhole.core.verbs import imported
from keyhole.data.examples import veterans_sample
from keyhole.environment.exchange import example_environment
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.exposure.fix import cheapest_fix
from keyhole.exposure.loglinear import population_uniques
from keyhole.exposure.scenarios import compare_scenarios

GOLDENS = Path(__file__).with_name("goldens")

# The first words of a golden's name, and the class of what it holds.
RESULTS = {
    "protect": "keyhole.protection.results.Protection",
    "table": "keyhole.protection.tables.result.ProtectedTable",
    "tabulate": "keyhole.utility.tabulation.Tabulation",
    "study": "keyhole.reidentification.result.Study",
    "synthesise": "keyhole.synthesis.release.Synthesis",
}
STUDIES = "keyhole.reidentification.compare.StudyComparison"
OTHERS = {"study-metrics": STUDIES, "study-candidates": STUDIES}
OTHERS["study-attacks"] = "keyhole.reidentification.residual_risk.Attacks"
CASES = [
    pytest.param(path, OTHERS.get(path.stem, place), id=path.stem)
    for path in sorted(GOLDENS.glob("*.json"))
    for verb, place in RESULTS.items()
    if path.stem.removeprefix("acs-").startswith(verb)
]
STAGES = {
    "study-unicity": "keyhole.reidentification.result.Study",
    "study-euclidean": "keyhole.reidentification.result.Study",
    "synthesis": "keyhole.synthesis.release.Synthesis",
    "releases": "keyhole.reviews.stages.attacks.Attacked",
}


@pytest.mark.parametrize(("path", "place"), CASES)
def test_what_was_printed_is_restored(path, place):
    check_restored(json.loads(path.read_text())["json"], place)


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_review_stored_is_restored(stage):
    stored = json.loads((GOLDENS / "review.json").read_text())["json"]["stages"]
    check_restored(stored[stage], STAGES[stage])


def check_restored(printed, place):
    restored = imported(place).from_dict(printed)
    again = json.loads(json.dumps(restored.to_dict()))
    assert again == {name: printed[name] for name in again}
    assert set(printed) <= set(again)


KEYS = ["sex", "ag8r", "ms"]
CHOICE = {"keep": ["sex"], "candidates": ["pow", "ms|homstate", "ag8r"]}


def scenarios(data):
    environment, names = example_environment(), ["commercial database", "register"]
    return [scenario_key(environment, name, data) for name in names]


BY_RECORD = ("risk", "uniques", "population uniques")
FRESH = {
    "risk": lambda data: keyhole.risk(data, keys=KEYS),
    "risk in the population": lambda data: keyhole.risk(
        data, keys=KEYS, weight="weight", household="household", by="sex", limit=0.01
    ),
    "risk without the missing": lambda data: keyhole.risk(data, keys=KEYS, missing="drop"),
    "risk of a scenario": lambda data: keyhole.risk(data, scenario=scenarios(data)[0]),
    "risk of scenarios": lambda data: compare_scenarios(data, scenarios(data)),
    "uniques": lambda data: keyhole.uniques(data, keys=KEYS),
    "uniques of one key": lambda data: keyhole.uniques(data, keys=["sex"]),
    "drivers": lambda data: keyhole.drivers(data, keys=KEYS),
    "population uniques": lambda data: population_uniques(data, keys=KEYS, fraction=0.1),
    "attributes": lambda data: keyhole.attributes(data, keys=KEYS, sensitive=["pow"]),
    "cheapest fix": lambda data: cheapest_fix(data, keys=KEYS, limit=0.001),
    "select": lambda data: keyhole.select(data, **CHOICE, limit=0.05),
    "select nothing": lambda data: keyhole.select(data, **CHOICE, limit=0, cutoff=5000),
    "select by groups": lambda data: keyhole.select(data, **CHOICE, limit=0.05, by="sex"),
    "selections compared": lambda data: keyhole.select(data, **CHOICE, limit=[0.01, 0.2]),
    "frontier": lambda data: keyhole.frontier(data, **CHOICE, limit=0.05),
    "solve": lambda data: keyhole.solve(data, keys=KEYS, limit=0.01, suppress=0.01),
    "screen": lambda data: keyhole.screen(data, keys=KEYS),
    "dependences": lambda data: keyhole.screen(data, only_dependences=True),
}


@pytest.fixture(scope="module")
def data():
    return veterans_sample(1_000)


@pytest.mark.parametrize("name", FRESH)
def test_a_restored_result_gives_the_same_json(data, name):
    found = FRESH[name](data)
    stored = json.loads(json.dumps(found.to_dict()))
    again = type(found).from_dict(stored)
    assert json.loads(json.dumps(again.to_dict())) == stored
    if name == "risk of scenarios":  # whose keys themselves are not stored
        assert again.tables() == found.tables()
    frame = found.to_frame()
    if name.startswith(BY_RECORD) and name != "risk of scenarios":  # which is not stored
        assert frame.height == data.records
    elif name != "screen":
        assert frame.equals(again.to_frame())
        assert frame.height or name == "select nothing"
