"""Words and small figures that tables and messages of the environment are made of."""

import pytest

from keyhole.environment.exchange import environment_to_json, from_json, is_exported
from keyhole.environment.listing import changes_told, in_words
from keyhole.environment.mapping.mapping import class_of, needed_of
from keyhole.environment.model import Construct, Environment
from keyhole.environment.options import Day
from keyhole.environment.scenarios.recoding import code_text
from keyhole.environment.scenarios.scenarios import resource_problems, scenario_from_dict
from keyhole.environment.store import place_of_store
from keyhole.environment.wording import short
from keyhole.errors import FileError, InputError


def test_values_are_written_as_a_person_would():
    assert [in_words(value) for value in (None, ("a", "b"), {"size": "large"}, True)] == [
        *("", "a; b", "size: large", "yes")
    ]
    assert [code_text(value) for value in (3, 3.0, "03", True)] == ["3", "3", "03", "true"]
    assert (short("sex"), len(short("a" * 200)), short("a" * 200)[-2:]) == ("sex", 60, "a…")


def test_a_change_is_told_attribute_by_attribute():
    old = {"name": "claim", "fields": [{"name": "sex"}, {"name": "age", "label": "Age"}]}
    new = {"name": "claim", "sector": "health", "fields": [{"name": "sex", "coding": "SX2.001"}]}
    assert changes_told(old, new) == (
        "sector: nothing → health; fields, sex, coding: nothing → SX2.001; fields, age: removed"
    )


def test_a_threshold_asks_for_whole_forms():
    asked = [(0, 8), (0.1, 30), (0.5, 5), (1, 8)]
    assert [needed_of(*one) for one in asked] == [1, 3, 3, 8]
    assert class_of(classifications={"sector": "health"}) == {"sector": "health", "purpose": None}


def test_places_days_and_resources():
    places = ("env.json", "env.db", "postgresql://host/a.json")
    assert [is_exported(place) for place in places] == [True, False, False]
    place = place_of_store("PostgreSQL://ann:secret@registry/environment")
    assert str(place) == "'postgresql://registry/environment'"
    assert (Day().fault("2024-05-31"), Day().fault("July")) == (None, "a day, as 2024-05-31")
    assert [len(resource_problems(given)) for given in (6, -1, "6")] == [0, 1, 1]


def test_an_environment_is_a_line_a_thing():
    text = environment_to_json(Environment(constructs=(Construct("SX", "sex"),)))
    assert text == (
        '{"keyhole_environment": 2,\n "constructs": [\n  {"letters": "SX", "name": "sex"}]}\n'
    )
    with pytest.raises(FileError) as caught:
        from_json('{"keyhole_environment": 1, "organisations": [{"nam": "Registry"}]}')
    assert caught.value.problems == (
        "'environment': organisations[0].'nam' is unknown. Did you mean 'name'?",
        "'environment': organisations[0].name is missing. Give it.",
    )


def test_unknown_attributes_of_a_scenario_are_told_with_those_that_are_missing():
    with pytest.raises(InputError) as caught:
        scenario_from_dict({"motivaton": "", "public": {"resource": 3}, "name": "y"}, name="x")
    assert caught.value.problems == (
        "scenario 'x': 'motivaton' is unknown. Did you mean 'motivation'?",
        "scenario 'x': public.'resource' is unknown. Did you mean 'resources'?",
        "scenario 'x': public.resources is missing. Give it.",
        "scenario 'x': 'name' is unknown. The head of the table names the scenario.",
    )
