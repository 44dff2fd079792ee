"""Public sources by resource index, stages, what public data add, trends."""

import datetime
import json
import math

import pytest

from keyhole.environment.mapping.mapping import map_class, map_pair
from keyhole.environment.mapping.public import (
    combine_keys,
    enhance,
    map_public,
    resource_band,
    resource_index,
)
from keyhole.environment.model import (
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
    Source,
    Target,
)
from keyhole.environment.prevalence import matrix, trend
from keyhole.errors import InputError, OptionError


def coding(name, *labels):
    return Coding(name, name[:2], tuple(map(Category, labels)))


def fields(*codings, identifiers=()):
    named = [Field(f"f{i}", coding=c) for i, c in enumerate(codings)]
    return (*named, *(Field(kind, identifier=kind) for kind in identifiers))


def world():
    """A housing column of four categories; a form tells ab | cd, a source ac | bd."""
    codings = (
        coding("HO4.001", "a", "b", "c", "d"),
        coding("HO2.001", "ab", "cd"),
        coding("HO2.002", "ac", "bd"),
        coding("SX2.001", "f", "m"),
    )
    maps = (
        CategoryMap("HO4.001", "HO2.001", {"a": "ab", "b": "ab", "c": "cd", "d": "cd"}),
        CategoryMap("HO4.001", "HO2.002", {"a": "ac", "c": "ac", "b": "bd", "d": "bd"}),
    )
    forms = (
        Form("old", sector="shop", collected=datetime.date(2001, 3, 1), fields=fields("HO2.001")),
        Form(
            "new",
            sector="shop",
            collected=datetime.date(2003, 5, 1),
            fields=fields("HO4.001", "SX2.001", identifiers=["name"]),
        ),
        Form("newer", collected=datetime.date(2003, 9, 1), fields=fields("HO2.001")),
        Form("undated", fields=fields("SX2.001")),
    )
    sources = (
        Source("register", mode=1, scope=1, cost=2, fields=fields("HO2.002", identifiers=["name"])),
        Source("directory", mode=2, scope=2, cost=1, fields=fields("SX2.001")),
        Source("archive", mode=4, scope=3, cost=3, fields=fields("HO4.001")),
    )
    target = Target("t", None, (Field("house", coding="HO4.001"), Field("sex", coding="SX2.001")))
    constructs = (Construct("HO", "housing"), Construct("SX", "sex"))
    return Environment(constructs, codings, maps, (), (), forms, sources, (target,))


def test_the_papers_ranks_add_up_to_its_bands():
    """Table 4: 3-4 low, 5-7 low to medium, 8 and more high to medium."""
    for mode in range(1, 5):
        for scope in range(1, 4):
            for cost in range(1, 4):
                index = resource_index(Source("s", mode=mode, scope=scope, cost=cost))
                assert index == mode + scope + cost
                expected = "low" if index in (3, 4) else "high-medium"
                assert resource_band(index) == ("low-medium" if index in (5, 6, 7) else expected)
    with pytest.raises(OptionError, match="3 or more"):
        resource_band(2)


def test_resources_must_exceed_the_index():
    reached = {
        resources: [
            s.name for s in map_public(world(), "t", resources=resources).sources if s.reached
        ]
        for resources in (3, 4, 5, 5.5, 10, 11)
    }
    assert reached == {
        3: [],
        4: [],
        5: ["register"],
        5.5: ["register", "directory"],
        10: ["register", "directory"],
        11: ["register", "directory", "archive"],
    }


def test_the_public_key_is_what_reached_sources_tell():
    low = map_public(world(), "t", resources=5)
    assert [(v.column, v.coding) for v in low.key] == [("house", "HO2.002")]
    assert {a.column: a.reason for a in low.mapping.absent} == {
        "sex": "no source that is reached has it"
    }
    none = map_public(world(), "t", resources=3)
    assert none.key == ()
    assert none.mapping.absent[0].reason == "no source is reached"
    high = map_public(world(), "t", resources=11)
    assert [(v.column, v.coding, v.holders, v.of) for v in high.key] == [
        ("house", "HO4.001", 2, 3),
        ("sex", "SX2.001", 1, 3),
    ]
    text = high.summary()
    assert "A source is reached if the resources exceed its index." in text
    assert "can link them" in text
    json.dumps(high.to_dict())


def test_stages_together_know_the_meet():
    environment = world()
    restricted = map_pair(environment, "t", "old")
    public = map_public(environment, "t", resources=5)
    both = combine_keys(environment, "t", [restricted, public.mapping])
    house = both.key[0]
    # ab | cd and ac | bd together tell all four categories apart.
    assert (house.coding, house.groups, house.entropy) == ("HO4.001", (0, 1, 2, 3), 2.0)
    assert (house.holders, house.of) == (2, 2)
    assert "worst case" in both.summary()
    assert "together" in both.tables()[0].columns
    other = combine_keys(environment, "t", [public.mapping, restricted])
    assert other.key[0].groups == house.groups
    json.dumps(both.to_dict())


def test_stages_must_be_of_one_target():
    environment = world()
    with pytest.raises(InputError, match="answers for target 't'"):
        combine_keys(environment, "t", [])


def test_enhance_tells_what_public_data_add():
    found = enhance(world(), "t", resources=6, form="old")
    assert [(g.column, g.before, g.after, g.sources) for g in found.gains] == [
        ("house", 1.0, 2.0, ("register",)),
        ("sex", 0.0, 1.0, ("directory",)),
    ]
    assert found.identifiers == ("name",)
    assert found.to_frame()["gained"].to_list() == [1.0, 1.0]
    assert "What public sources add to form 'old'" in found.summary()
    # The new form has the names and everything else already.
    nothing = enhance(world(), "t", resources=6, form="new")
    assert (nothing.gains, nothing.identifiers) == ((), ())
    assert "They add nothing." in nothing.summary()
    shops = enhance(world(), "t", resources=6, sector="shop", threshold=1)
    assert [(g.column, g.before) for g in shops.gains] == [("house", 1.0), ("sex", 0.0)]
    with pytest.raises(OptionError, match="not both"):
        enhance(world(), "t", resources=6, form="old", sector="shop")


def test_weights_reach_every_stage():
    weights = {"house": {"a": 1, "b": 1, "c": 0, "d": 0}}
    found = enhance(world(), "t", resources=6, form="old", weights=weights)
    gain = next(g for g in found.gains if g.column == "house")
    assert (gain.before, gain.after) == (0.0, 1.0)


def test_trends_count_each_years_forms():
    found = trend(world())
    assert (found.years, found.undated) == ((2001, 2003), 1)
    rows = {(r.year, r.construct, r.coding): (r.forms, r.of) for r in found.rows}
    assert rows == {
        (2001, "HO", ""): (1, 1),
        (2001, "HO", "HO2.001"): (1, 1),
        (2003, "HO", ""): (2, 2),
        (2003, "HO", "HO2.001"): (1, 2),
        (2003, "HO", "HO4.001"): (1, 2),
        (2003, "SX", ""): (1, 2),
        (2003, "SX", "SX2.001"): (1, 2),
    }
    assert found.to_frame()["share"].to_list()[3] == 0.5
    assert "1 form without a date: not counted." in found.summary()
    json.dumps(found.to_dict())


def test_trends_of_a_class_and_a_construct():
    found = trend(world(), sector="shop", construct="SX")
    assert [(r.year, r.coding, r.share) for r in found.rows] == [
        (2003, "", 1.0),
        (2003, "SX2.001", 1.0),
    ]
    with pytest.raises(InputError, match="construct 'ZZ'"):
        trend(world(), construct="ZZ")


def test_entropy_is_in_bits():
    assert map_class(world(), "t").key[0].entropy == pytest.approx(math.log2(4))


def test_trends_of_sources_count_sources_by_year():
    fields = (Field("sex", coding="SX2.001"),)
    codings = (Coding("SX2.001", "SX", (Category("m"), Category("f"))),)
    sources = (
        Source("a", collected=datetime.date(2023, 1, 1), fields=fields),
        Source("b", collected=datetime.date(2023, 6, 1)),
        Source("c", fields=fields),
    )
    found = trend(Environment((Construct("SX", "sex"),), codings, sources=sources), of="sources")
    assert [(r.year, r.coding, r.forms, r.of) for r in found.rows] == [
        (2023, "", 1, 2), (2023, "SX2.001", 1, 2),
    ]  # fmt: skip
    assert (found.undated, found.to_dict()["what"]) == (1, "sources")
    assert found.plot().to_dict()["title"]["text"] == ["What the sources of each year ask"]
    with pytest.raises(OptionError, match="apply to forms"):
        trend(Environment(), of="sources", sector="health")


def test_classes_are_linked_by_constructs_whose_codings_join():
    tens = Coding("AG3.001", "AG", intervals=Intervals("number", edges=(0, 10, 20, 30)))
    shifted = Coding("AG2.001", "AG", intervals=Intervals("number", edges=(5, 15, 25)))
    any_age = Coding("AG1.001", "AG", intervals=Intervals("number"))
    sex = Coding("SX2.001", "SX", (Category("m"), Category("f")))

    def form(name, sector, *codings):
        fields = tuple(Field(one.name, coding=one.name) for one in codings)
        return Form(name, sector=sector, fields=fields)

    forms = form("1", "a", tens, sex), form("2", "b", shifted, sex), form("3", "c", any_age)
    named = Construct("AG", "age"), Construct("SX", "sex")
    world = Environment(named, (tens, shifted, any_age, sex), forms=forms)
    found = matrix(world)
    assert found.cells == ((2, 1, 1), (1, 2, 1), (1, 1, 1))
    assert found.constructs["a × b"] == ("SX",)  # ages cross: they join to one category
    assert found.constructs["b × c"] == ("AG",)
    assert found.to_frame().columns == ["class", "a", "b", "c"]
    held = matrix(world, construct="AG")
    assert held.columns == ("AG1.001", "AG2.001", "AG3.001")
    assert held.cells == ((0, 0, 1), (0, 1, 0), (1, 0, 0))
    assert "×" in held.summary()
    with pytest.raises(InputError, match="no classes to compare"):
        matrix(world, by="size")
