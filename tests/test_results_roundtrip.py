"""Results restored from what they print give the same again: over the JSON in goldens/."""

import json
from pathlib import Path

import pytest

from keyhole.core.verbs import imported

GOLDENS = Path(__file__).with_name("goldens")

# The first words of a golden's name, and the class of what it holds.
RESULTS = {
    "protect": "keyhole.protection.results.Protection",
    "table": "keyhole.protection.tables.result.ProtectedTable",
    "tabulate": "keyhole.utility.tabulation.Tabulation",
    "study": "keyhole.reidentification.result.Study",
}
STUDIES = "keyhole.reidentification.compare.StudyComparison"
OTHERS = {
    "study-metrics": STUDIES,
    "study-candidates": STUDIES,
    "study-scenario": None,  # p(identification) stands beside it, and is not restored
}
CASES = [
    pytest.param(path, OTHERS.get(path.stem, place), id=path.stem)
    for path in sorted(GOLDENS.glob("*.json"))
    for verb, place in RESULTS.items()
    if path.stem.removeprefix("acs-").startswith(verb) and OTHERS.get(path.stem, place)
]
STAGES = {
    "study-unicity": "keyhole.reidentification.result.Study",
    "study-euclidean": "keyhole.reidentification.result.Study",
    "releases": "keyhole.reviews.attacking.Attacked",
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
