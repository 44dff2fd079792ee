"""Mapping a target against a form and against classes of forms, by hand and by brute force."""

import datetime
import itertools
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.joins import mint
from keyhole.environment.mapping.mapping import finest, map_class, map_pair
from keyhole.environment.model import (
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
    Organisation,
    Target,
)
from keyhole.errors import InputError, OptionError

CONSTRUCTS = (Construct("ES", "employment status"), Construct("AG", "age"), Construct("SX", "sex"))


def coding(name, *labels, **kinds):
    categories = tuple(Category(label, kind=kinds.get(label, "value")) for label in labels)
    return Coding(name, name[:2], categories)


def into(finer, coarser, *groups):
    """A map by the coarser coding's codes: ('working', 'full part self')."""
    pairs = {code: group for group, codes in groups for code in codes.split()}
    return CategoryMap(finer, coarser, pairs)


def form(name, *codings, sector="banking", identifiers=(), **attributes):
    fields = [Field(f"f{i}", coding=c) for i, c in enumerate(codings)]
    fields += [Field(kind, identifier=kind) for kind in identifiers]
    return Form(name, sector=sector, fields=tuple(fields), **attributes)


def world():
    """Employment in four codings, age, sex; three banks and a charity."""
    years = Intervals("number", start=0, stop=100, step=1)
    decades = Intervals("number", start=0, stop=100, step=10)
    shifted = Intervals("number", edges=(0, *range(5, 100, 10), 100))
    born = Intervals(
        "date",
        start=datetime.date(1900, 1, 1).toordinal(),
        stop=datetime.date(2020, 1, 1).toordinal(),
        unit="day",
    )
    codings = (
        coding("ES6.001", "full", "part", "self", "unemployed", "retired", "student"),
        coding("ES4.001", "employee", "self", "unemployed", "inactive"),
        coding("ES3.101", "working", "unemployed", "inactive"),
        coding("ES2.101", "working", "not"),
        Coding("AG100.001", "AG", intervals=years),
        Coding("AG10.001", "AG", intervals=decades),
        Coding("AG11.001", "AG", intervals=shifted),
        Coding("AG43829.001", "AG", intervals=born),
        coding("SX2.001", "f", "m"),
    )
    maps = (
        into(
            "ES6.001", "ES4.001",
            ("employee", "full part"), ("self", "self"), ("unemployed", "unemployed"),
            ("inactive", "retired student"),
        ),
        into(
            "ES4.001", "ES3.101",
            ("working", "employee self"), ("unemployed", "unemployed"), ("inactive", "inactive"),
        ),
        into("ES3.101", "ES2.101", ("working", "working"), ("not", "unemployed inactive")),
    )  # fmt: skip
    forms = (
        form("Bank A", "ES4.001", "AG43829.001", identifiers=["name", "ssn"]),
        form("Bank B", "ES3.101", "AG10.001", identifiers=["name"]),
        form("Bank C", "ES2.101", "AG11.001", "SX2.001"),
        form("Charity", "ES6.001", sector="charity"),
    )
    columns = (
        Field("status", coding="ES6.001"),
        Field("age", coding="AG10.001"),
        Field("sex", coding="SX2.001"),
        Field("name", identifier="name"),
        Field("note"),
    )
    target = Target("survey", datetime.date(2020, 5, 17), columns)
    return Environment(CONSTRUCTS, codings, maps, forms=forms, targets=(target,))


def test_a_pair_maps_to_the_joins():
    mapping = map_pair(world(), "survey", "Bank A")
    assert [(v.column, v.coding, v.stored) for v in mapping.key] == [
        ("status", "ES4.001", True),
        ("age", "AG10.001", True),
    ]
    status = mapping.variable("status")
    assert status.groups == (0, 0, 1, 2, 3, 3)
    assert status.labels == ("employee", "self", "unemployed", "inactive")
    assert status.entropy + status.lost == pytest.approx(math.log2(6))
    assert "form 'Bank A' holds ES4.001" in status.explanation
    assert "'full' and 'part' become 'employee'" in status.explanation
    assert mapping.variable("age").lost == 0
    assert mapping.identifiers == {"name": 1, "ssn": 1}
    reasons = {a.column: a.reason for a in mapping.absent}
    assert reasons["sex"] == "form 'Bank A' does not ask it"
    assert "direct identifier" in reasons["name"]
    assert "coding is not decided" in reasons["note"]


def test_codings_that_cross_are_not_in_the_key_but_say_what_they_rule_out():
    mapping = map_pair(world(), "survey", "Bank C")
    absent = next(a for a in mapping.absent if a.column == "age")
    assert absent.ruled_out == pytest.approx(1 - 20 / 110)
    assert "join to one category; yet 82% of the pairs are ruled out" in absent.reason


def test_threshold_zero_takes_what_any_form_has():
    mapping = map_class(world(), "survey", sector="banking", threshold=0)
    assert (mapping.forms, mapping.needed) == (3, 1)
    assert [(v.column, v.coding, v.holders) for v in mapping.key] == [
        ("status", "ES4.001", 1),
        ("age", "AG10.001", 2),
        ("sex", "SX2.001", 1),
    ]


def test_threshold_one_takes_what_all_forms_have_or_harmonise_to():
    mapping = map_class(world(), "survey", sector="banking", threshold=1)
    assert mapping.needed == 3
    assert [(v.column, v.coding, v.holders, v.of) for v in mapping.key] == [
        ("status", "ES2.101", 3, 3)
    ]
    reasons = {a.column: a.reason for a in mapping.absent}
    assert "3 forms ask it, 2 so that answers can be distinguished" in reasons["age"]
    assert "1 form asks it" in reasons["sex"]


def test_finer_codings_count_for_coarser_ones():
    mapping = map_class(world(), "survey", sector="banking", threshold=0.5)
    assert mapping.needed == 2
    status = mapping.variable("status")
    assert (status.coding, status.holders) == ("ES3.101", 2)
    assert "2 of 3 forms hold it at this detail or finer" in status.explanation[0]
    assert any("'Bank A'" in text for text in status.explanation)
    assert any("ES6.001 → ES4.001 → ES3.101" in text for text in status.explanation)


def test_two_crossing_forms_leave_an_antichain_and_their_join_is_minted():
    codings = (
        coding("ES4.001", "a", "b", "c", "d"),
        coding("ES3.001", "ab", "c", "d"),
        coding("ES3.002", "a", "b", "cd"),
    )
    maps = (
        into("ES4.001", "ES3.001", ("ab", "a b"), ("c", "c"), ("d", "d")),
        into("ES4.001", "ES3.002", ("a", "a"), ("b", "b"), ("cd", "c d")),
    )
    forms = (form("one", "ES3.001"), form("two", "ES3.002"))
    target = Target("t", None, (Field("status", coding="ES4.001"),))
    graph = CodingGraph(Environment(CONSTRUCTS, codings, maps, forms=forms, targets=(target,)))
    any_form = map_class(graph, "t", threshold=0).key[0]
    assert (any_form.coding, any_form.antichain) == ("ES3.001", ("ES3.001", "ES3.002"))
    heavy = map_class(graph, "t", weights={"status": {"a": 5, "b": 5, "c": 1, "d": 1}}).key[0]
    assert heavy.coding == "ES3.002"
    both = map_class(graph, "t", threshold=1).key[0]
    assert (both.coding, both.stored, both.groups) == ("ES2.101", False, (0, 0, 1, 1))
    assert both.labels == ("a or b", "c or d")
    minted = mint(graph, graph.join("ES3.001", "ES3.002"))
    assert minted.coding.name == "ES2.101"
    more = replace(
        graph.environment,
        codings=(*codings, minted.coding),
        maps=(*maps, *minted.maps),
    )
    again = map_class(more, "t", threshold=1).key[0]
    assert (again.coding, again.stored) == ("ES2.101", True)


def test_a_form_that_asks_twice_holds_the_meet():
    environment = world()
    forms = (form("both", "AG10.001", "AG11.001"),)
    target = Target("t", None, (Field("age", coding="AG100.001"),))
    environment = replace(environment, forms=forms, targets=(target,))
    found = map_pair(environment, "t", "both").key[0]
    assert (len(found.labels), found.labels[:3], found.stored) == (
        20,
        ("0-4", "5-9", "10-14"),
        False,
    )
    assert any("are held together" in text for text in found.explanation)


def test_groups_of_special_categories_make_no_key():
    fine = coding("ES3.001", "yes", "no", "gone", gone="not stated")
    rough = coding("ES2.001", "any", "lost", lost="not stated")
    edge = into("ES3.001", "ES2.001", ("any", "yes no"), ("lost", "gone"))
    target = Target("t", None, (Field("status", coding="ES3.001"),))
    environment = Environment(
        CONSTRUCTS, (fine, rough), (edge,), forms=(form("f", "ES2.001"),), targets=(target,)
    )
    for mapping in (map_pair(environment, "t", "f"), map_class(environment, "t")):
        assert mapping.key == ()
        assert mapping.absent[0].column == "status"


def test_unresolved_edges_are_told():
    codings = (coding("ES2.001", "a", "b"), coding("ES2.002", "p", "q"))
    maps = (CategoryMap("ES2.001", "ES2.002", None),)
    target = Target("t", None, (Field("status", coding="ES2.001"),))
    environment = Environment(
        CONSTRUCTS, codings, maps, forms=(form("f", "ES2.002"),), targets=(target,)
    )
    for mapping in (map_pair(environment, "t", "f"), map_class(environment, "t")):
        surely = mapping.surely.absent[0].reason
        assert surely.startswith("unresolved: the map 'ES2.001 -> ES2.002'")
        assert (mapping.lower.columns, mapping.upper.columns) == ((), ("status",))
        assert mapping.undecided[0].reason.startswith("the map 'ES2.001 -> ES2.002'")


def test_classes_by_purpose_and_further_classifications():
    environment = world()
    forms = [
        replace(environment.forms[0], sector="", organisation="A", purpose="loan"),
        replace(environment.forms[1], classifications={"region": "North"}),
        *environment.forms[2:],
    ]
    environment = replace(
        environment, forms=tuple(forms), organisations=(Organisation("A", "Banking"),)
    )
    assert map_class(environment, "survey", sector="banking").forms == 3
    assert map_class(environment, "survey", purpose="loan").forms == 1
    assert map_class(environment, "survey", classifications={"region": "north"}).forms == 1
    assert map_class(environment, "survey").forms == 4
    with pytest.raises(InputError, match="There are sector: 'Banking', 'banking', 'charity'"):
        map_class(environment, "survey", sector="retail")


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), True])
def test_thresholds_must_be_shares(threshold):
    with pytest.raises(OptionError, match="threshold must be from 0 to 1"):
        map_class(world(), "survey", threshold=threshold)


def test_weights_must_fit():
    with pytest.raises(InputError, match="no column 'job'"):
        map_class(world(), "survey", weights={"job": {"full": 1}})
    with pytest.raises(InputError, match="'fulll' is not among its codes"):
        map_class(world(), "survey", weights={"status": {"fulll": 1}})
    with pytest.raises(InputError, match="not all 0"):
        map_class(world(), "survey", weights={"status": {"full": 0}})


def test_an_answer_reads_well_and_is_plain():
    import json

    mapping = map_class(world(), "survey", sector="banking", threshold=0.5)
    text = mapping.summary() + mapping.why().to_text()
    for part in ("Key of survey against forms with sector 'banking'", "Not in the key", "Why"):
        assert part in text
    assert "2 or more hold it (threshold 0.5)" in text
    json.dumps(mapping.to_dict())
    assert mapping.to_frame()["coding"].to_list() == ["ES3.101", "AG10.001"]
    assert "<table>" in mapping._repr_html_()


# --- against brute force -------------------------------------------------------------------


def all_partitions(size):
    found = [()]
    for _ in range(size):
        found = [(*p, k) for p in found for k in range(max(p, default=-1) + 2)]
    return found


def slow_refines(finer, coarser):
    size = range(len(finer))
    return all(coarser[i] == coarser[j] for i in size for j in size if finer[i] == finer[j])


def slow_entropy(partition):
    counts = [partition.count(k) for k in set(partition)]
    return -sum(c / len(partition) * math.log2(c / len(partition)) for c in counts)


def slow_joined(target, other, size):
    """The target's categories, merged where some category of the other meets both."""
    count = max(target) + 1
    groups = list(range(count))
    for i in range(size):
        for j in range(size):
            if other[i] == other[j]:
                a, b = groups[target[i]], groups[target[j]]
                groups = [min(a, b) if g in (a, b) else g for g in groups]
    return groups


@st.composite
def worlds(draw):
    """People, codings as functions of people, a target's coding, and forms' codings."""
    size = draw(st.integers(2, 6))
    functions = []
    for _ in range(draw(st.integers(1, 5))):
        groups = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
        names = {g: k for k, g in enumerate(dict.fromkeys(groups))}
        functions.append(tuple(names[g] for g in groups))
    every = range(len(functions))
    target = draw(st.sampled_from(every))
    forms = draw(
        st.lists(st.sets(st.sampled_from(every), max_size=2), min_size=1, max_size=7), label="forms"
    )
    return size, functions, target, forms


def environment_of(size, functions, target, forms):
    people = coding(f"ES{size}.001", *(f"i{k}" for k in range(size)))
    codings, maps = [people], []
    for number, function in enumerate(functions):
        count = max(function) + 1
        codings.append(coding(f"ES{count}.1{number + 1:02d}", *(f"c{k}" for k in range(count))))
        pairs = {f"i{i}": f"c{k}" for i, k in enumerate(function)}
        maps.append(CategoryMap(people.name, codings[-1].name, pairs))
    names = [c.name for c in codings[1:]]
    made = [
        form(f"form {i}", *(names[k] for k in sorted(chosen))) for i, chosen in enumerate(forms)
    ]
    aim = Target("t", None, (Field("status", coding=names[target]),))
    return Environment(CONSTRUCTS, tuple(codings), tuple(maps), forms=tuple(made), targets=(aim,))


def slow_class(size, functions, target, forms, needed):
    """All minimal partitions of the target's categories that enough forms hold."""
    held = []
    for chosen in forms:
        told = [tuple(functions[k][i] for k in chosen) for i in range(size)]  # all at once
        held.append(slow_joined(functions[target], told, size) if chosen else None)
    every = all_partitions(max(functions[target]) + 1)
    enough = [
        p
        for p in every
        if max(p) > 0 and sum(1 for h in held if h is not None and slow_refines(h, p)) >= needed
    ]
    return [p for p in enough if not any(q != p and slow_refines(q, p) for q in enough)]


@settings(max_examples=120)
@given(worlds(), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
def test_a_class_is_mapped_as_by_brute_force(case, threshold):
    size, functions, target, forms = case
    mapping = map_class(environment_of(*case), "t", threshold=threshold)
    needed = max(math.ceil(threshold * len(forms)), 1)
    assert mapping.needed == needed
    expected = slow_class(size, functions, target, forms, needed)
    if not expected:
        assert mapping.key == ()
        return
    found = mapping.key[0]
    best = max((round(slow_entropy(p), 9), max(p) + 1) for p in expected)
    assert found.groups in expected
    assert (round(found.entropy, 9), len(found.labels)) == best
    assert len(found.antichain) == len(expected)
    assert found.holders >= needed


@settings(max_examples=40)
@given(worlds(), st.randoms(use_true_random=False))
def test_insertion_order_does_not_matter(case, random):
    environment = environment_of(*case)
    shuffled = replace(
        environment,
        **{
            name: tuple(random.sample(getattr(environment, name), len(getattr(environment, name))))
            for name in ("codings", "maps", "forms", "constructs")
        },
    )
    for threshold in (0.0, 0.5, 1.0):
        one = map_class(environment, "t", threshold=threshold)
        other = map_class(shuffled, "t", threshold=threshold)
        assert one.to_dict() == other.to_dict()
    for number in range(len(environment.forms)):
        one = map_pair(environment, "t", f"form {number}")
        assert one.to_dict() == map_pair(shuffled, "t", f"form {number}").to_dict()


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 51), st.integers(1, 3)), min_size=1, max_size=6), st.data()
)
def test_the_search_finds_all_minimal_partitions(held, data):
    every = all_partitions(5)
    needed = data.draw(st.integers(1, sum(count for _, count in held)), label="needed")
    partitions = [np.array(every[k]) for k, _ in held]
    counts = [count for _, count in held]
    enough = [
        p
        for p in every
        if max(p) > 0 and sum(c for k, c in held if slow_refines(every[k], p)) >= needed
    ]
    minimal = {p for p in enough if not any(q != p and slow_refines(q, p) for q in enough)}
    found, complete = finest(partitions, counts, needed, substantive=np.ones(5, dtype=bool))
    assert complete
    assert {tuple(p.tolist()) for p in found} == minimal


def test_a_search_that_gives_up_says_so(monkeypatch):
    from keyhole.environment.mapping import mapping

    monkeypatch.setattr(mapping, "BUDGET", 0)
    random = np.random.default_rng(1)
    partitions = [_pair_merged(24, *pair) for pair in random.integers(0, 24, (40, 2))]
    counts, answers = [1] * len(partitions), np.ones(24, dtype=bool)
    assert not mapping.finest(partitions, counts, 20, substantive=answers)[1]


def _pair_merged(size, one, other):
    from keyhole.environment.codings.partitions import canonical

    labels = np.arange(size)
    labels[other] = labels[one]
    return canonical(labels)


def calls_of(work):
    """Return how many functions of Python are called, and what comes of it."""
    calls = itertools.count()
    sys.setprofile(lambda _, event, __: next(calls) if event == "call" else None)
    try:
        found = work()
    finally:
        sys.setprofile(None)
    return next(calls), found


def test_many_forms_are_mapped_by_their_codings_not_one_by_one():
    environment = world()
    once, often = (
        CodingGraph(replace(environment, forms=tuple(forms)))
        for forms in (
            environment.forms,
            [replace(f, name=f"{f.name} {k}") for f in environment.forms for k in range(5_000)],
        )
    )
    few, _ = calls_of(lambda: map_class(once, "survey", threshold=0.2))
    many, mapping = calls_of(lambda: map_class(often, "survey", threshold=0.2))
    assert many - few < 20 * 20_000  # a form is looked up and listed, and no more
    assert mapping.forms == 20_000
