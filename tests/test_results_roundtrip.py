"""Results restored from what they print give the same again: over the JSON in goldens/."""

import importlib
import json
from pathlib import Path

import pytest

GOLDENS = Path(__file__).with_name("goldens")

# The first words of a golden's name, and the class of what it holds.
RESULTS = {
    "protect": "keyhole.protection.results.Protection",
    "table": "keyhole.protection.tables.result.ProtectedTable",
    "tabulate": "keyhole.utility.tabulation.Tabulation",
}
CASES = [
    pytest.param(path, place, id=path.stem)
    for path in sorted(GOLDENS.glob("*.json"))
    for verb, place in RESULTS.items()
    if path.stem.removeprefix("acs-").startswith(verb)
]


@pytest.mark.parametrize(("path", "place"), CASES)
def test_what_was_printed_is_restored(path, place):
    module, _, name = place.rpartition(".")
    printed = json.loads(path.read_text())["json"]
    restored = getattr(importlib.import_module(module), name).from_dict(printed)
    again = json.loads(json.dumps(restored.to_dict()))
    assert again == {name: printed[name] for name in again}
    assert set(printed) <= set(again)
