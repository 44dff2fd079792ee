"""Scenarios: the eleven points, TOML, presets, p(identification), and several side by side."""

import math
import tomllib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keyhole
from keyhole.data.examples import veterans, veterans_sample
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.exchange import environment_to_json, example_environment, from_json
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.environment.scenarios.scenarios import (
    POINTS,
    PRESETS,
    PublicStage,
    RestrictedStage,
    Scenario,
    p_identification,
    preset,
    read_scenarios,
    scenario_from_dict,
    scenario_to_toml,
    scenarios_from_dict,
)
from keyhole.errors import FileError, InputError, OptionError
from keyhole.exposure.scenarios import compare_scenarios

FRIEND = Scenario("friend", columns=["sex", "age"], p_attempt=(0.1, 0.5), reasons=("few care",))


@pytest.fixture(scope="module")
def graph():
    return CodingGraph(example_environment())


@pytest.fixture(scope="module")
def data():
    return veterans_sample(3000)


@pytest.fixture(scope="module")
def keys(graph, data):
    return [scenario_key(graph, one, data) for one in graph.environment.scenarios]


def test_there_are_eleven_points_in_elliot_and_dales_order():
    assert len(POINTS) == 11
    assert next(iter(POINTS)) == "motivation"
    assert list(POINTS)[-1] == "consequences"
    assert [words for words, _ in FRIEND.points] == list(POINTS.values())


def test_an_attempt_is_certain_unless_somebody_argues_otherwise():
    assert Scenario("x", columns=["a"]).p_attempt == (1, 1)
    assert "nobody has argued" in Scenario("x", columns=["a"]).attempt_words()
    with pytest.raises(InputError, match="must be argued"):
        Scenario("x", columns=["a"], p_attempt=(0.5, 1))
    with pytest.raises(InputError, match="must be argued"):
        Scenario("x", columns=["a"], p_attempt=0.5, reasons=("  ",))
    assert Scenario("x", columns=["a"], p_attempt=0.5, reasons=("why",)).p_attempt == (0.5, 0.5)


@pytest.mark.parametrize("bad", [(0.5, 0.1), (-0.1, 0.5), (0.5, 1.1), (math.nan, 1), "half", (1,)])
def test_a_probability_that_is_none_is_refused(bad):
    with pytest.raises(InputError, match="p_attempt must be"):
        Scenario("x", columns=["a"], p_attempt=bad, reasons=("why",))


def test_all_problems_of_a_scenario_are_told_at_once():
    with pytest.raises(InputError) as caught:
        Scenario(
            "x",
            restricted=RestrictedStage(form="F", sector="s", threshold=2),
            public=PublicStage(-1, ("seen",)),
            p_attempt=(2, 3),
        )
    assert len(caught.value.problems) == 5
    with pytest.raises(InputError, match="nothing defines its key"):
        Scenario("x")
    with pytest.raises(InputError, match="must have a name"):
        Scenario(" ", columns=["a"])


def test_presets_say_that_they_are_examples_and_can_be_edited():
    assert set(PRESETS) == {"nosy neighbour", "commercial database", "journalist", "register"}
    for one in PRESETS.values():
        assert one.example
        assert all(text for _, text in one.points)
        assert one.p_attempt == (1, 1)
        assert "example" in one.tables()[0].notes[-1]
    mine = preset("register", name="mine", example=False, motivation="money")
    assert (mine.name, mine.motivation, mine.example) == ("mine", "money", False)
    assert "example" not in " ".join(mine.tables()[0].notes)
    with pytest.raises(OptionError, match="Did you mean 'journalist'"):
        preset("jornalist")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
NAME = TEXT.filter(lambda text: text.strip() != "")
SHARES = st.floats(0, 1, allow_nan=False)
STAGES = st.one_of(
    st.builds(RestrictedStage, form=NAME),
    st.builds(
        RestrictedStage,
        sector=TEXT,
        purpose=TEXT,
        classifications=st.dictionaries(TEXT, TEXT, max_size=2),
        threshold=SHARES,
    ),
)
SCENARIOS = st.builds(
    lambda pair, **rest: Scenario(p_attempt=tuple(sorted(pair)), **rest),
    pair=st.tuples(SHARES, SHARES),
    name=NAME,
    **dict.fromkeys(POINTS, TEXT),
    restricted=st.lists(STAGES, max_size=2).map(tuple),
    public=st.none() | st.builds(PublicStage, st.integers(0, 12), st.just(("observed",))),
    columns=st.dictionaries(TEXT, TEXT, min_size=1, max_size=3),
    reasons=st.lists(NAME, min_size=1, max_size=2).map(tuple),
    example=st.booleans(),
)


@given(SCENARIOS)
def test_a_scenario_comes_back_from_toml(scenario):
    plain = tomllib.loads(scenario_to_toml(scenario))["scenario"]
    assert scenarios_from_dict(plain) == (scenario,)


def test_scenarios_come_back_from_json():
    environment = example_environment()
    again = from_json(environment_to_json(environment))
    assert sorted(again.scenarios, key=str) == sorted(environment.scenarios, key=str)


def test_toml_with_a_preset_changes_what_it_names_only():
    found = scenario_from_dict(
        {"preset": "journalist", "public": {"resources": 5}, "p_attempt": 0.5, "reasons": "why"},
        name="press",
    )
    assert found.name == "press"
    assert found.public == PublicStage(5)
    assert found.p_attempt == (0.5, 0.5)
    assert found.motivation == PRESETS["journalist"].motivation
    assert found.example


def test_toml_tells_all_problems_at_once_with_the_nearest_names():
    plain = {
        "motivaton": "x",
        "means": 3,
        "restricted": [{"sektor": "x"}, 7, {"threshold": "half"}],
        "public": {},
        "columns": {"a": 1},
        "p_attempt": ["low"],
        "reasons": [1],
        "example": "yes",
        "preset": "journalists",
    }
    with pytest.raises(InputError) as caught:
        scenario_from_dict(plain, name="x")
    text = str(caught.value)
    assert len(caught.value.problems) == 11
    assert "Did you mean 'motivation'?" in text
    assert "Did you mean 'sector'?" in text
    assert all(problem.startswith("scenario 'x': ") for problem in caught.value.problems)


def test_a_file_of_scenarios_is_read_or_refused(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("\ufeff[scenario.friend]\ncolumns = ['age']\n", encoding="utf-8")
    assert read_scenarios(path) == (Scenario("friend", columns=["age"]),)
    for text, message in [
        ("x = [1,,]", "at line 1, column 8"),
        ("x = 1", "has no scenario"),
        ("scenario = 3", "must be a table with one table a scenario"),
        ("[scenario]", "Got an empty table instead"),
        ("x = " + "[" * 100_000, "nested too deeply"),
        ("x = " + "9" * 5000, "more digits than can be read"),
        ("[scenario.x]\ncolumns = ['a']\np_attempt = 1" + "0" * 400, "from 0 to 1"),
        ("[scenario]\nx = 3", "Got other values instead"),
    ]:
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_scenarios(path)
    path.write_bytes(b"x = '\xff'")
    with pytest.raises(FileError, match="UTF-8"):
        read_scenarios(path)
    with pytest.raises(FileError, match="does not exist"):
        read_scenarios(tmp_path / "none.toml")


@given(st.tuples(SHARES, SHARES), st.tuples(SHARES, SHARES))
def test_p_identification_is_the_product_of_intervals(conditional, attempt):
    conditional, attempt = tuple(sorted(conditional)), tuple(sorted(attempt))
    scenario = Scenario("x", columns=["a"], p_attempt=attempt, reasons=("why",))
    found = p_identification(scenario, conditional)
    products = [c * a for c in conditional for a in attempt]
    assert found.probability == (min(products), max(products))
    assert found.basis == "as given"


def test_p_identification_takes_the_conditional_part_from_an_exposure(data):
    exposure = keyhole.risk(data, keys=["sex", "age", "homstate"])
    guess = p_identification(FRIEND, exposure)
    assert guess.conditional == (exposure.uniques / exposure.records, exposure.cr)
    assert "unique on the key" in guess.basis
    assert p_identification(FRIEND, exposure, figure="at risk").conditional[0] == exposure.rp
    weighted = keyhole.risk(data, keys=["sex", "age", "homstate"], weight="weight")
    matches = weighted.population.model.reidentifications
    expected = (matches.low / weighted.records, matches.high / weighted.records)
    assert p_identification(FRIEND, weighted).conditional == expected
    one_key = keyhole.risk(data, keys=["homstate"], weight="weight")  # which has no model
    assert p_identification(FRIEND, one_key).conditional[0] == one_key.population.global_risk
    assert p_identification(FRIEND, weighted, figure="guess").conditional == guess.conditional
    without = p_identification(FRIEND, exposure, figure="population")
    assert without.probability is None
    assert "not estimable" in without.summary()
    with pytest.raises(OptionError, match="figure must be one of 'guess'"):
        p_identification(FRIEND, exposure, figure="confirmed")


def test_coverage_and_divergence_change_figures_of_the_exposure_only(data):
    exposure = keyhole.risk(data, keys=["sex", "age", "homstate"])
    argued = replace(FRIEND, coverage=(0.5, 0.75), divergence=(0.1, 0.2), reasons=("a survey",))
    low, high = p_identification(FRIEND, exposure).conditional
    found = p_identification(argued, exposure)
    assert found.conditional == pytest.approx((low * 0.5 * 0.8, high * 0.75 * 0.9))
    assert found.to_dict()["coverage"] == [0.5, 0.75]
    assert "a coverage of 0.5 to 0.75" in found.summary()
    assert "Divergence: 0.1 to 0.2." in argued.tables()[0].notes
    assert p_identification(argued, 0.5).conditional == (0.5, 0.5)
    again = scenarios_from_dict(tomllib.loads(scenario_to_toml(argued))["scenario"])
    assert again == (argued,)
    with pytest.raises(InputError, match="coverage below 1 must be argued"):
        Scenario("x", columns=["a"], coverage=0.5)
    with pytest.raises(InputError, match="divergence must be a number from 0 to 1"):
        Scenario("x", columns=["a"], divergence=2)


def test_p_identification_takes_the_conditional_part_from_a_study():
    world = veterans(2000, seed=3)
    found = keyhole.study(
        puf=world.sample, eif=world.external, iuf=world.truth, puf_id="puf_id", eif_id="eif_id",
        link=["sex", "age", "homstate"], permutations=0,
    )  # fmt: skip
    given_ = p_identification(FRIEND, found)
    assert given_.conditional == found.rates.intervals["confirmed_rate"]
    assert given_.conditional[0] <= found.confirmed / found.puf_records <= given_.conditional[1]
    other = p_identification(FRIEND, found, figure="conditional")
    assert other.conditional == found.rates.intervals["conditional_rate"]
    assert "conditional rate" in other.basis


@pytest.mark.parametrize("bad", [2, -0.1, (0.5, 0.1), "x", None, True, (0.1, 0.2, 0.3)])
def test_what_is_no_probability_is_refused(bad):
    with pytest.raises(OptionError, match="conditional must be"):
        p_identification(FRIEND, bad)


def test_scenarios_side_by_side_and_the_worst_of_them(data, keys):
    found = compare_scenarios(data, keys, cutoff=2)
    assert [part.name for part in found.parts] == [key.name for key in keys]
    exposures = [keyhole.risk(key.microdata, keys=key.keys, cutoff=2) for key in keys]
    assert [part.exposure.rp for part in found.parts] == [one.rp for one in exposures]
    assert found.worst.exposure.rp == max(one.rp for one in exposures)
    smallest = np.min([one.f for one in exposures], axis=0)
    assert found.at_risk_in_any == (smallest < 2).mean()
    assert found.unique_in_any == (smallest == 1).mean()
    assert found.likeliest.name == "register"
    assert found.to_dict()["worst"] == "register"
    assert found.to_frame().height == len(keys)
    assert "Examples, not findings" in found.summary()
    assert found.plot().to_dict()["title"]["text"]


def test_a_scenario_with_an_empty_key_is_not_nothing_but_said(graph, data, keys):
    nobody = scenario_key(graph, Scenario("nobody", public=PublicStage(3)), data)
    assert nobody.keys == ()
    found = compare_scenarios(data, [nobody, keys[0]])
    assert found.parts[0].exposure is None
    assert found.worst.name == keys[0].name
    assert "the key is empty" in found.summary()
    assert found.to_dict()["scenarios"][0]["exposure"] is None
    assert compare_scenarios(data, [nobody]).worst is None
    with pytest.raises(OptionError, match="key of scenario 'nobody' is empty"):
        keyhole.risk(data, scenario=nobody)


def test_comparing_nothing_or_the_same_twice_is_refused(data, keys):
    with pytest.raises(OptionError, match="at least one"):
        compare_scenarios(data, [])
    with pytest.raises(OptionError, match="more than once"):
        compare_scenarios(data, [keys[0], keys[0]])
    with pytest.raises(OptionError, match="must be keys of scenarios"):
        compare_scenarios(data, [FRIEND])


def test_verbs_take_a_scenario_instead_of_keys(data, keys):
    key = next(one for one in keys if one.name == "commercial database")
    recoded = key.microdata
    plain = keyhole.risk(recoded, keys=key.keys)
    found = keyhole.risk(data, scenario=key)
    assert (found.rp, found.cr, found.scenario) == (plain.rp, plain.cr, key.name)
    assert found.to_dict()["scenario"] == key.name
    assert key.name in found.summary()
    assert (
        keyhole.uniques(data, scenario=key).by_size
        == keyhole.uniques(recoded, keys=key.keys).by_size
    )
    chosen = keyhole.select(data, scenario=key, keep=["sex"], limit=0.05)
    rest = [name for name in key.keys if name != "sex"]
    assert chosen.steps == keyhole.select(recoded, keep=["sex"], candidates=rest, limit=0.05).steps
    assert chosen.to_dict()["scenario"] == key.name
    sets = keyhole.frontier(data, scenario=key, candidates=rest[:3], limit=0.05).sets
    assert sets == keyhole.frontier(recoded, candidates=rest[:3], limit=0.05).sets


def test_keys_and_a_scenario_exclude_each_other(data, keys):
    with pytest.raises(OptionError, match="exclude each other"):
        keyhole.risk(data, keys=["sex"], scenario=keys[0])
    with pytest.raises(OptionError, match="keys must name at least one column, or give scenario"):
        keyhole.risk(data)
    with pytest.raises(
        OptionError, match="candidates must name at least one column, or give scenario"
    ):
        keyhole.select(data, limit=0.1)
    with pytest.raises(OptionError, match="Got a Scenario instead"):
        keyhole.risk(data, scenario=FRIEND)
    with pytest.raises(OptionError, match=r"'lsr', 'nbs' instead: nobody in it can match them"):
        keyhole.select(data, scenario=keys[0], candidates=["lsr|nbs", "sex"], limit=0.1)


def test_a_frame_can_be_measured_under_a_scenario(graph):
    frame = pl.DataFrame({"sex": [1, 2, 1, 1], "age": [30, 30, 41, 41]})
    key = scenario_key(graph, FRIEND, keyhole.load(frame), "veterans")
    assert keyhole.risk(frame, scenario=key).uniques == 2


def test_an_example_whose_attempt_is_argued_says_so():
    plain = {"preset": "register", "p_attempt": 0.2, "reasons": ["An audit said so."]}
    argued = scenario_from_dict(plain, name="ours")
    assert argued.likelihood_of_attempt == "An audit said so."
    assert "only p(attempt) was argued" in argued.tables()[0].notes[1]
    assert "not a finding about your file" in preset("register").tables()[0].notes[1]
