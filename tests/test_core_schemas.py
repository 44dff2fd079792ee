"""JSON Schemas of what verbs print: derived from their results, and kept in docs/schemas."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from keyhole.core.schemas import output_schema
from keyhole.core.verbs import VERBS

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"
# The results of a review hold those of its stages, each as its own verb prints it.
DERIVED = [
    path.stem for path in SCHEMAS.glob("*.json") if path.stem in VERBS and path.stem != "report"
]


@pytest.mark.parametrize("verb", DERIVED)
def test_the_schema_of_a_verb_is_current(request, verb):
    """`--record-goldens` writes it."""
    place = SCHEMAS / f"{verb}.json"
    schema = output_schema(verb)
    Draft202012Validator.check_schema(schema)
    text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    if request.config.getoption("--record-goldens"):
        place.write_text(text)
    assert place.read_text() == text, "run pytest --record-goldens tests/test_core_schemas.py"
