"""The example environment: whole, sound, and matched to the example world."""

import datetime

from keyhole.data.examples import KEYS, veterans, veterans_sample
from keyhole.environment.codings.categories import parse_name, size_of
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.exchange import environment_to_json, example_environment, from_json
from keyhole.environment.mapping.mapping import map_pair
from keyhole.environment.mapping.public import resource_band, resource_index
from keyhole.environment.scenarios.recoding import column_positions
from keyhole.environment.soundness import ordered

ENVIRONMENT = example_environment()
GRAPH = CodingGraph(ENVIRONMENT)


def test_it_has_the_size_that_is_promised():
    assert len(ENVIRONMENT.forms) == 15
    assert len({form.sector for form in ENVIRONMENT.forms}) == 5
    assert len(ENVIRONMENT.sources) == 8
    assert len(ENVIRONMENT.constructs) >= 12
    assert len(ENVIRONMENT.scenarios) == 5
    assert all(scenario.example for scenario in ENVIRONMENT.scenarios)


def test_names_tell_the_number_of_categories():
    for coding in ENVIRONMENT.codings:
        assert parse_name(coding.name).size == size_of(coding), coding.name
        assert parse_name(coding.name).letters == coding.construct


def test_every_coding_is_asked_or_stands_between_others():
    used = {
        GRAPH.node(field.coding).name
        for holder in (*ENVIRONMENT.forms, *ENVIRONMENT.sources, *ENVIRONMENT.targets)
        for field in holder.fields
        if field.coding is not None
    }
    unused = {coding.name for coding in ENVIRONMENT.codings} - used
    assert all(parse_name(name).harmonised for name in unused), unused


def test_the_target_is_the_example_world():
    (target,) = ENVIRONMENT.targets
    assert (target.name, target.as_of) == ("veterans", datetime.date(2024, 6, 30))
    names = {field.name for field in target.fields}
    assert names == {*KEYS, "age", "period", "area", "income"}


def test_all_values_of_the_world_are_in_the_targets_codings():
    world = veterans(20_000, seed=7)
    (target,) = ENVIRONMENT.targets
    for data in (veterans_sample(5_000), world.population, world.external):
        for field in target.fields:
            if field.name in data.names:
                positions = column_positions(data, field.name, GRAPH.node(field.coding))
                assert (positions >= 0).all(), field.name


def test_it_shows_crossing_unresolved_and_unstated_codings():
    survey = map_pair(GRAPH, "veterans", "Consumer lifestyle survey")
    absent = {part.column: part for part in survey.absent}
    assert "join to one category" in absent["ag8r"].reason
    assert absent["ag8r"].ruled_out > 0.5
    tax = map_pair(GRAPH, "veterans", "Income tax return")
    assert "unresolved" in next(p.reason for p in tax.surely.absent if p.column == "ms")
    assert "ms" in tax.upper.columns
    assert "ms" not in tax.lower.columns
    kinds = {category.kind for coding in ENVIRONMENT.codings for category in coding.categories}
    assert {"value", "other", "not stated"} <= kinds
    assert any(coding.open for coding in ENVIRONMENT.codings)


def test_living_together_merges_all_who_are_not_married():
    survey = map_pair(GRAPH, "veterans", "Consumer lifestyle survey")
    ms = survey.variable("ms")
    groups = dict(zip("MWDSN", ms.groups, strict=False))
    assert groups["W"] == groups["D"] == groups["S"] == groups["N"] != groups["M"]


def test_the_sources_cover_all_three_bands():
    bands = {resource_band(resource_index(source)) for source in ENVIRONMENT.sources}
    assert bands == {"low", "low-medium", "high-medium"}


def test_it_comes_back_from_json():
    assert from_json(environment_to_json(ENVIRONMENT)) == ordered(ENVIRONMENT)
