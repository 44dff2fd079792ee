"""Forms as JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.environment.importers.fields import YES_NO
from keyhole.environment.importers.json_schema import capture_schema
from keyhole.environment.importers.reading import read_forms
from keyhole.environment.model import CapturedField
from keyhole.errors import InputError


def fields_of(properties: dict[str, Any], **more: Any) -> dict[str, CapturedField]:
    form = capture_schema({"properties": properties, **more})
    assert len({one.name for one in form.fields}) == len(form.fields)
    return {one.name: one for one in form.fields}


def codes(field: CapturedField) -> list[str]:
    return [one.code for one in field.categories]


def test_nested_objects_become_paths() -> None:
    state = {"type": "string", "enum": ["AL", "AK"], "enumNames": ["Alabama", "Alaska"]}
    address = {"type": "object", "properties": {"state": state, "street": {"type": "string"}}}
    found = fields_of({"veteranAddress": address, "state": state})
    assert list(found) == ["veteranAddress.state", "veteranAddress.street", "state"]
    assert found["veteranAddress.state"].label == "veteran address state"
    assert found["veteranAddress.state"].path == "veteranAddress/state"
    assert [one.label for one in found["state"].categories] == ["Alabama", "Alaska"]
    assert found["veteranAddress.street"].identifier == "address"


def test_references_are_followed_within_the_document() -> None:
    document = {
        "properties": {
            "a": {"$ref": "#/definitions/sex"},
            "b": {"$ref": "#/$defs/deep~1name"},
            "c": {"allOf": [{"$ref": "#/definitions/sex"}, {"title": "Sex of the spouse"}]},
        },
        "definitions": {"sex": {"enum": ["F", "M"]}},
        "$defs": {"deep/name": {"$ref": "#/definitions/sex"}},
    }
    form = capture_schema(document)
    assert [codes(one) for one in form.fields] == [["F", "M"]] * 3
    assert form.fields[2].label == "Sex of the spouse"


def test_a_definition_that_contains_itself_is_read_once() -> None:
    person = {"properties": {"sex": {"enum": ["F", "M"]}, "child": {"$ref": "#/definitions/p"}}}
    form = capture_schema(
        {"properties": {"a": {"$ref": "#/definitions/p"}}, "definitions": {"p": person}}
    )
    assert [one.name for one in form.fields] == ["a.sex", "a.child"]
    assert any("contains itself" in note for note in form.notes)


def test_references_out_of_the_document_and_to_nothing_are_all_told() -> None:
    with pytest.raises(InputError) as caught:
        fields_of(
            {"a": {"$ref": "https://x.org/a.json"}, "b": {"$ref": "#/none"}, "c": {"$ref": "b"}}
        )
    assert len(caught.value.problems) == 3


def test_a_broken_reference_is_noted_and_the_rest_is_read() -> None:
    broken = {"$ref": "#/none"}
    document = {"properties": {"a": broken, "sex": {"enum": ["F", "M"]}}}
    form = capture_schema(document)
    assert [one.name for one in form.fields] == ["a", "sex"]
    assert any("leads to nothing" in note for note in form.notes)


def test_alternatives_are_joined() -> None:
    branches = [
        {"properties": {"country": {"enum": ["CAN"]}, "state": {"enum": ["AB", "BC"]}}},
        {"properties": {"country": {"enum": ["USA"]}, "state": {"enum": ["AL"]}}},
        {"properties": {"country": {"not": {"enum": ["CAN", "USA"]}}, "state": {"type": "string"}}},
    ]
    address = {"oneOf": branches, "properties": {"city": {"type": "string"}}}
    found = fields_of({"a": address}, anyOf=[{"required": ["a"]}, {"required": ["b"]}])
    assert codes(found["a.country"]) == ["CAN", "USA", "other"]
    assert codes(found["a.state"]) == ["AB", "BC", "AL", "other"]
    assert found["a.state"].categories[-1].kind == "other"
    assert found["a.city"].categories == ()


def test_what_holds_only_in_a_case_is_asked_too() -> None:
    then = {"properties": {"spouseSex": {"enum": ["F", "M"]}}}
    found = fields_of({"married": {"type": "boolean"}}, **{"if": {}, "then": then})
    assert list(found) == ["married", "spouseSex"]


def test_all_of_keeps_what_both_allow() -> None:
    both = {"allOf": [{"enum": ["a", "b", "c"]}, {"enum": ["b", "c", "d"]}]}
    assert codes(fields_of({"x": both})["x"]) == ["b", "c"]


def test_booleans_constants_and_titled_choices() -> None:
    titled = {"oneOf": [{"const": 1, "title": "One"}, {"const": 2, "title": "Two"}]}
    found = fields_of(
        {"a": {"type": "boolean"}, "b": {"enum": [True, False]}, "c": titled, "d": {"const": "x"}}
    )
    assert found["a"].categories == found["b"].categories == YES_NO
    assert [(one.code, one.label) for one in found["c"].categories] == [("1", "One"), ("2", "Two")]
    assert found["c"].label == "c"
    assert codes(found["d"]) == ["x"]


def test_a_list_of_choices_becomes_yes_and_no_for_each() -> None:
    race = {"type": "array", "items": {"enum": ["white", "blackOrAfrican"]}, "title": "Race"}
    found = fields_of({"race": race})
    assert list(found) == ["race.white", "race.blackOrAfrican"]
    assert [one.label for one in found.values()] == ["Race: white", "Race: black or african"]
    assert [one.option for one in found.values()] == ["white", "black or african"]
    answers = [one.label for one in found["race.white"].categories]
    assert answers == ["white", "Not white"]


def test_a_list_of_objects_is_descended_once() -> None:
    child = {
        "properties": {
            "birthDate": {"type": "string", "format": "date"},
            "sex": {"enum": ["F", "M"]},
        }
    }
    found = fields_of({"children": {"type": "array", "items": child}})
    assert list(found) == ["children.birthDate", "children.sex"]


@pytest.mark.parametrize(
    ("schema", "unit"),
    [
        ({"type": "string", "format": "date"}, "day"),
        ({"pattern": r"^(\d{4}|XXXX)-(0[1-9]|1[0-2]|XX)-(0[1-9]|[1-2][0-9]|3[0-1]|XX)$"}, "day"),
        ({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, "day"),
        ({"type": "string", "pattern": r"^\d{4}-(0[1-9]|1[0-2])$"}, "month"),
        ({"type": "string"}, "day"),  # its name says so
        ({"type": "string", "pattern": r"^[A-Z]{3}$"}, None),
    ],
)
def test_dates_are_intervals_by_the_detail_asked(schema: dict[str, Any], unit: str | None) -> None:
    field = fields_of({"dateOfBirth": schema})["dateOfBirth"]
    assert (field.intervals.unit if field.intervals else None) == unit


def test_numbers_are_intervals() -> None:
    found = fields_of(
        {
            "dependents": {"type": "integer", "minimum": 0, "maximum": 20},
            "age": {"type": "integer"},
            "graduationYear": {"type": "integer", "minimum": 1950},
            "income": {"type": "number", "minimum": 0, "maximum": 9999999.99},
            "amount": {"type": "string", "pattern": r"^\d+(\.\d{1,2})?$"},
            "ageBand": {"enum": ["18-64", "65+"]},
        }
    )
    spans = {name: one.intervals for name, one in found.items()}
    assert all(spans.values())
    assert (spans["dependents"].start, spans["dependents"].stop) == (0, 21)  # type: ignore[union-attr]
    assert spans["age"].stop == 121  # type: ignore[union-attr]
    assert spans["graduationYear"].unit == "year"  # type: ignore[union-attr]
    assert spans["income"].exact  # type: ignore[union-attr]
    assert spans["ageBand"].edges[0] == 18  # type: ignore[union-attr]


def test_what_belongs_to_the_page_is_left_out() -> None:
    form = capture_schema(
        {"properties": {"view:intro": {"type": "string"}, "a": {"type": "string"}}}
    )
    assert [one.name for one in form.fields] == ["a"]
    assert any("view:" in note for note in form.notes)


def test_identifiers_are_apart_and_yes_no_is_none() -> None:
    found = fields_of(
        {
            "fullName": {
                "properties": {"first": {"type": "string"}, "suffix": {"enum": ["Jr.", "Sr."]}}
            },
            "email": {"type": "boolean"},
            "contactBy": {"enum": ["phone", "email"]},
            "ssn": {"type": "string"},
        }
    )
    assert {name: one.identifier for name, one in found.items()} == {
        "fullName.first": "name",
        "fullName.suffix": "name",
        "email": None,
        "contactBy": None,
        "ssn": "ssn",
    }


def test_fields_of_one_name_are_kept_apart() -> None:
    form = capture_schema(
        {"properties": {"a.b": {"type": "string"}, "a": {"properties": {"b": {}}}}}
    )
    assert [one.name for one in form.fields] == ["a.b", "a.b~2"]


def test_markup_and_formulas_stay_text() -> None:
    label = "<script>alert(1)</script> =cmd|' /C calc'!A0"
    found = fields_of({"x": {"title": label, "enum": ["=1+1", "<b>"]}})["x"]
    assert found.label == label
    assert codes(found) == ["=1+1", "<b>"]


def test_what_no_store_keeps_is_replaced() -> None:
    found = fields_of({"a\0": {"title": "b\ud800", "enum": ["c\0", "d"]}})["a\ufffd"]
    assert found.label == "b\ufffd"
    assert codes(found) == ["c\ufffd", "d"]


def test_references_that_repeat_one_another_end() -> None:
    definitions: dict[str, Any] = {
        f"d{n}": {"properties": {s: {"$ref": f"#/definitions/d{n + 1}"} for s in "xy"}}
        for n in range(40)
    }
    with pytest.raises(InputError, match="unfold"):
        fields_of({"a": {"$ref": "#/definitions/d0"}}, definitions={**definitions, "d40": {}})


def test_attributes_given_go_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "10-10-schema.json"
    path.write_text(
        json.dumps({"title": "Health benefits", "properties": {"a": {"type": "string"}}})
    )
    (form,) = read_forms(path, organisation="VA", sector="health", collected="2024-05-31")
    assert (form.form.name, form.form.purpose) == ("10-10", "")
    assert form.notes == ("Its title is 'Health benefits'.",)
    assert (form.form.organisation, str(form.form.collected)) == ("VA", "2024-05-31")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
TELLING = {"properties", "items", "enum", "enumNames", "const", "type", "$ref", "format", "pattern"}
JOINING = {"anyOf", "oneOf", "allOf", "then", "else", "not", "dependencies", "definitions"}
OTHERS = {"title", "minimum", "maximum", "multipleOf", "a", "b", "ssn", "date"}
KEYS = st.sampled_from(sorted(TELLING | JOINING | OTHERS))
VALUES = st.sampled_from(
    ["#", "#/definitions/a", "#/properties/a", "string", "integer", "object", "array", "date"]
)
DOCUMENTS = st.recursive(
    SCALARS | VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(KEYS, DOCUMENTS, max_size=5), DOCUMENTS)
def test_no_document_brings_anything_down(document: dict[str, Any], properties: Any) -> None:
    try:
        form = capture_schema({**document, "properties": properties})
    except InputError:
        return
    assert len({one.name for one in form.fields}) == len(form.fields) > 0
