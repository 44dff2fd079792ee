"""Recoding a file to the key of a scenario."""

import datetime
from bisect import bisect_right

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keyhole
from keyhole.data import Variable, load
from keyhole.data.examples import veterans, veterans_sample
from keyhole.data.microdata import Microdata
from keyhole.environment.codings.categories import Node
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.exchange import example_environment
from keyhole.environment.importers.microdata import capture_microdata
from keyhole.environment.model import (
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
    Target,
)
from keyhole.environment.scenarios.recoding import (
    column_positions,
    level_positions,
    scenario_key,
    scenario_mapping,
)
from keyhole.environment.scenarios.scenarios import PublicStage, RestrictedStage, Scenario
from keyhole.errors import ColumnError, InputError

INF = float("inf")
CLASSES = Coding(
    "ES4.001",
    "ES",
    (
        Category("1", "full time"),
        Category("2", "part time"),
        Category("3", "none"),
        Category("9", "refused", "not stated"),
    ),
)
JOB = Coding("ES2.001", "ES", (Category("y", "job"), Category("n", "no job")))
YEARS = Coding("AG100.001", "AG", intervals=Intervals("number", start=0, stop=100, step=1))
BANDS = Coding("AG3.001", "AG", intervals=Intervals("number", edges=(0, 18, 65, INF)))
ENVIRONMENT = Environment(
    constructs=(Construct("ES", "employment"), Construct("AG", "age")),
    codings=(CLASSES, JOB, YEARS, BANDS),
    maps=(CategoryMap("ES4.001", "ES2.001", {"1": "y", "2": "y", "3": "n"}),),
    forms=(
        Form("shop", fields=(Field("job", coding="ES2.001"), Field("age", coding="AG3.001"))),
        Form("bank", fields=(Field("job", coding="ES4.001"), Field("age", coding="AG100.001"))),
    ),
    targets=(
        Target("file", fields=(Field("esr", coding="ES4.001"), Field("age", coding="AG100.001"))),
    ),
)
SHOP = Scenario("shop", restricted=RestrictedStage(form="shop"))
BANK = Scenario("bank", restricted=RestrictedStage(form="bank"))


def file(**columns):
    return load(pl.DataFrame(columns))


def test_columns_become_the_groups_that_the_form_holds():
    data = file(esr=[1, 2, 3, 9, None], age=[17, 18, 64, 65, 99], other=list("abcde"))
    key = scenario_key(ENVIRONMENT, SHOP, data, "file")
    assert key.keys == ("esr", "age")
    assert key.microdata.column("esr").to_list() == ["job", "job", "no job", "refused", None]
    assert key.microdata.column("age").to_list() == ["0-17", "18-64", "18-64", "65+", "65+"]
    assert key.microdata.column("other").to_list() == list("abcde")
    assert key.microdata.names == data.names
    assert "Missing values stay missing in 'esr'." in key.notes


def test_the_file_itself_is_left_as_it_was():
    data = file(esr=[1, 2], age=[3, 4])
    scenario_key(ENVIRONMENT, SHOP, data, "file")
    assert data.frame.rows() == [(1, 3), (2, 4)]


def test_a_form_at_the_same_detail_keeps_every_category_apart():
    data = file(esr=[1, 2, 3, 9], age=[1, 2, 3, 4])
    key = scenario_key(ENVIRONMENT, BANK, data, "file")
    assert key.microdata.codes("esr").size == 4
    assert keyhole.risk(data, scenario=key).rp == keyhole.risk(data, keys=["esr", "age"]).rp


def test_unknown_values_are_counted_and_never_shown():
    data = file(esr=[1, 77, 77, None], age=[1, 2, 3, 4321])
    with pytest.raises(ColumnError) as caught:
        scenario_key(ENVIRONMENT, SHOP, data, "file")
    first, second = caught.value.problems
    assert "column 'esr'" in first
    assert "Got 2 of 4" in first
    assert "declare them as missing codes" in first
    assert "column 'age'" in second
    assert "Got 1 of 4" in second
    assert "77" not in str(caught.value)
    assert "4321" not in str(caught.value)


def test_declared_missing_codes_are_missing():
    frame = pl.DataFrame({"esr": ["1", "-7", "3"], "age": [20, 30, -9]})
    data = load(frame, missing_codes={"esr": [-7], "age": [-9]})
    key = scenario_key(ENVIRONMENT, SHOP, data, "file")
    assert key.microdata.column("esr").to_list() == ["job", None, "no job"]
    assert key.microdata.column("age").to_list() == ["18-64", "18-64", None]


def test_a_label_that_looks_like_a_missing_code_stays_a_value():
    # An age of nine years is the group "9"; 9 meant missing in another coding of the column.
    frame = pl.DataFrame({"esr": [1, 2], "age": ["9", "x"]})
    data = load(frame, missing_codes={"age": ["x"]})
    key = scenario_key(ENVIRONMENT, BANK, data, "file")
    assert key.microdata.column("age").to_list() == ["9", None]
    assert key.microdata.variable("age").missing_codes == ()


def test_groups_of_the_same_name_are_not_merged():
    twins = Coding("ES2.002", "ES", (Category("1", "Other"), Category("2", "Other", "other")))
    environment = Environment(
        (Construct("ES", "employment"),),
        (twins,),
        targets=(Target("file", fields=(Field("esr", coding="ES2.002"),)),),
    )
    scenario = Scenario("x", columns=["esr"])
    key = scenario_key(environment, scenario, file(esr=[1, 2, 1]))
    assert key.microdata.column("esr").to_list() == ["Other", "Other (2)", "Other"]


def test_a_key_column_that_the_file_lacks_is_named():
    with pytest.raises(ColumnError, match="key column 'age' is not a column"):
        scenario_key(ENVIRONMENT, SHOP, file(esr=[1, 2]), "file")


def test_a_column_that_is_not_in_the_key_may_hold_anything():
    scenario = Scenario("x", columns=["esr"])
    key = scenario_key(ENVIRONMENT, scenario, file(esr=[1, 2], age=[-5, 4000]), "file")
    assert key.microdata.column("age").to_list() == [-5, 4000]


def test_stages_are_combined_and_named_columns_have_the_detail_that_is_said():
    scenario = Scenario("x", restricted=(RestrictedStage(form="shop"),), columns={"esr": ""})
    key = scenario_key(ENVIRONMENT, scenario, file(esr=[1, 2, 3], age=[3, 30, 70]), "file")
    assert [v.coding for v in key.mapping.key] == ["ES4.001", "AG3.001"]
    assert len(key.stages) == 2
    coarse = Scenario("y", columns={"age": "AG3.001"})
    found = scenario_mapping(ENVIRONMENT, coarse, "file")
    assert [(v.column, v.coding) for v in found.key] == [("age", "AG3.001")]


def test_a_named_column_that_cannot_be_in_a_key_is_refused_with_the_reason():
    scenario = Scenario("x", columns=["ag", "name"])
    target = Target(
        "file", fields=(Field("age", coding="AG100.001"), Field("name", identifier="name"))
    )
    with pytest.raises(InputError) as caught:
        scenario_key(ENVIRONMENT, scenario, file(age=[1]), target)
    assert "Did you mean 'age'?" in caught.value.problems[0]
    assert "direct identifier" in caught.value.problems[1]


def test_only_sources_of_the_origins_named_are_held():
    environment = example_environment()
    all_, seen = PublicStage(8), PublicStage(8, ("observed",))
    wide = scenario_mapping(environment, Scenario("a", public=all_))
    narrow = scenario_mapping(environment, Scenario("b", public=seen))
    assert "pow" in wide.columns
    assert "pow" not in narrow.columns
    assert "observed" in narrow.against


def test_scenarios_and_targets_go_by_name():
    environment = example_environment()
    data = veterans_sample(50)
    assert scenario_key(environment, "register", data).name == "register"
    with pytest.raises(InputError, match="Did you mean 'register'"):
        scenario_key(environment, "registers", data)
    with pytest.raises(InputError, match="target must be named"):
        scenario_key(Environment(), Scenario("x", columns=["a"]), data)


def test_the_intruders_copy_is_recoded_alike_where_it_has_the_columns():
    world = veterans(3000, seed=4)
    key = scenario_key(example_environment(), "veterans association", world.sample)
    external = key.recode(world.external, partial=True)
    shared = [name for name in key.keys if name in world.external.names]
    assert len(shared) >= 5
    for name in shared:
        assert external.codes(name).size <= len(key.mapping.variable(name).labels) + 1
    assert external.column("cp" if "cp" in external.names else "eif_id").len() == 300
    with pytest.raises(ColumnError, match="key column 'pow'"):
        key.recode(world.external)


def test_the_key_is_at_most_as_exposed_as_the_columns_themselves():
    data = veterans_sample(2000)
    environment = CodingGraph(example_environment())
    for scenario in environment.environment.scenarios:
        key = scenario_key(environment, scenario, data)
        whole = keyhole.risk(data, keys=key.keys)
        found = keyhole.risk(data, scenario=key)
        assert found.rp <= whole.rp
        assert found.cells <= whole.cells


def test_labelled_bands_go_by_their_label():
    labels = {1: "Under 25", 2: "25-34", 3: "35 and over", 9: "Refused"}
    variable = Variable("age", "category", value_labels=labels)
    coding = Coding(
        "AG4.001",
        "AG",
        (Category("9", "Refused", "not stated"),),
        Intervals("number", edges=(0, 25, 35, INF)),
    )
    found = level_positions(pl.Series([1, 2, 3, 8, 9]), variable, Node(coding))
    assert found.tolist() == [0, 1, 2, -1, 3]


def test_captured_microdata_positions_are_those_of_its_capture():
    data = veterans_sample(300)
    for field in capture_microdata(data).fields:
        if field.identifier is not None:
            continue
        coding = Coding("XX1.001", "XX", field.categories, field.intervals)
        positions = column_positions(data, field.name, Node(coding))
        assert (positions >= 0).all(), field.name


NUMBERS = st.lists(st.one_of(st.none(), st.floats(-50, 150, allow_nan=False)), min_size=1)
EDGES = st.lists(st.integers(-40, 140), min_size=2, max_size=6, unique=True).map(sorted)


@given(NUMBERS, EDGES)
@settings(max_examples=60, deadline=None)
def test_numbers_fall_where_a_plain_search_puts_them(values, edges):
    data = load(pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)}), kinds={"x": "measure"})
    node = Node(
        Coding("XX1.001", "XX", intervals=Intervals("number", edges=tuple(map(float, edges))))
    )
    found = column_positions(data, "x", node).tolist()
    for value, position in zip(values, found, strict=True):
        if value is None:
            assert position == node.size
        elif edges[0] <= value < edges[-1]:
            assert position == bisect_right(edges, value) - 1
        else:
            assert position == -1


DAYS = st.lists(st.dates(datetime.date(1950, 1, 1), datetime.date(2020, 12, 31)), min_size=1)


@given(DAYS, st.sampled_from(["day", "month", "year"]))
@settings(max_examples=40, deadline=None)
def test_dates_fall_into_their_day_month_or_year(days, unit):
    start, stop = datetime.date(1960, 1, 1), datetime.date(2010, 1, 1)
    intervals = Intervals("date", start=start.toordinal(), stop=stop.toordinal(), step=1, unit=unit)
    coding = Coding("XX1.001", "XX", intervals=intervals)
    frame = pl.DataFrame({"x": days})
    data = Microdata(frame, (Variable("x", "date"),))
    found = column_positions(data, "x", Node(coding)).tolist()
    labels = Node(coding).codes
    width = {"day": 10, "month": 7, "year": 4}[unit]
    for day, position in zip(days, found, strict=True):
        inside = start <= day < stop
        assert position >= 0 if inside else position == -1
        assert not inside or labels[position] == day.isoformat()[:width]


def test_years_and_dates_in_text_are_dates_too():
    intervals = Intervals(
        "date",
        start=datetime.date(1980, 1, 1).toordinal(),
        stop=datetime.date(1990, 1, 1).toordinal(),
        step=1,
        unit="year",
    )
    node = Node(Coding("XX10.001", "XX", intervals=intervals))
    years = level_positions(pl.Series([1980, 1989, 1990, 0]), Variable("x", "measure"), node)
    assert years.tolist() == [0, 9, -1, -1]
    texts = pl.Series(["1980-12-31", "1981-01-01", "soon"])
    assert level_positions(texts, Variable("x", "text"), node).tolist() == [0, 1, -1]


def test_a_study_can_be_made_on_the_key_of_a_scenario():
    world = veterans(3000, seed=5)
    key = scenario_key(example_environment(), "veterans association", world.sample)
    ids = {"iuf": world.truth, "puf_id": "puf_id", "eif_id": "eif_id", "permutations": 0}
    found = keyhole.study(puf=world.sample, eif=world.external, scenario=key, **ids)
    shared = [name for name in key.keys if name in world.external.names]
    assert list(found.linkage.link) == shared
    puf, eif = key.recode(world.sample), key.recode(world.external, partial=True)
    plain = keyhole.study(puf=puf, eif=eif, link=shared, **ids)
    assert (found.suspected, found.confirmed) == (plain.suspected, plain.confirmed)
    finer = keyhole.study(puf=world.sample, eif=world.external, link=shared, **ids)
    assert (found.suspected, found.confirmed) != (finer.suspected, finer.confirmed)


def test_codes_of_bands_without_labels_are_not_taken_for_numbers():
    # 1 to 3 for under 18, 18 to 64 and 65 on; as ages all would be children.
    coarse = Target("file", fields=(Field("age", coding="AG3.001"),))
    scenario = Scenario("x", columns=["age"])
    data = file(age=[1, 2, 3])
    with pytest.raises(ColumnError, match="small whole numbers that all lie in one") as caught:
        scenario_key(ENVIRONMENT, scenario, data, coarse)
    assert "labels" in str(caught.value)
    labels = {1: "Under 18", 2: "18-64", 3: "65 and over"}
    told = data.with_variables([Variable("age", "category", value_labels=labels)])
    key = scenario_key(ENVIRONMENT, scenario, told, coarse)
    assert key.microdata.column("age").to_list() == ["0-17", "18-64", "65+"]


def test_a_file_that_is_recoded_already_may_be_given_again():
    data = file(esr=[1, 2, 3, 9], age=[1, 20, 30, 70])
    key = scenario_key(ENVIRONMENT, SHOP, data, "file")
    copy = load(key.microdata.frame)
    assert key.recode(copy).column("age").to_list() == key.microdata.column("age").to_list()
    found = keyhole.risk(key.microdata.filter([True, True, True, False]), scenario=key)
    assert found.records == 3
