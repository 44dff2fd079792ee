"""Several codings of one construct held together, against people counted one by one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.partitions import canonical, meet, refines
from keyhole.environment.mapping.keys import TargetColumn, held_by
from keyhole.environment.mapping.mapping import map_class, map_pair
from keyhole.environment.mapping.public import combine_keys, map_public
from keyhole.environment.model import (
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
    Overlap,
    Source,
    Target,
)

PEOPLE = 7
AG = Construct("AG", "age")
answers = st.lists(st.integers(0, 3), min_size=PEOPLE, max_size=PEOPLE)


def told_apart(target, *held):
    """Group a target's categories that a person who tells the same may have: the slow way."""
    target, held = canonical(target), [canonical(one) for one in held]
    groups = list(range(target.max() + 1))
    for one in range(PEOPLE):
        for other in range(PEOPLE):
            if all(side[one] == side[other] for side in held):
                old, new = groups[target[one]], groups[target[other]]
                groups = [new if group == old else group for group in groups]
    return canonical(groups)


def listed(serial, partition):
    size = len(set(partition))
    return Coding(f"AG{size}.{serial:03d}", "AG", tuple(Category(f"c{k}") for k in range(size)))


def world(target, *held, people=False):
    """Codings of a few people, tied by whom they share; with everybody told apart on request."""
    parts = [canonical(one) for one in (target, *held)]
    codings = [listed(i + 1, part) for i, part in enumerate(parts)]
    overlaps, maps = [], []
    if people:
        codings.append(listed(99, range(PEOPLE)))
        maps = [
            CategoryMap(codings[-1].name, c.name, {f"c{i}": f"c{k}" for i, k in enumerate(part)})
            for c, part in zip(codings, parts, strict=False)
        ]
    else:
        for i, one in enumerate(parts):
            for j in range(i + 1, len(parts)):
                pairs = {(f"c{a}", f"c{b}") for a, b in zip(one, parts[j], strict=True)}
                overlaps.append(Overlap(codings[i].name, codings[j].name, frozenset(pairs)))
    names = [c.name for c in codings[: len(parts)]]
    return CodingGraph(Environment((AG,), tuple(codings), tuple(maps), tuple(overlaps))), names


def held(graph, names, told=()):
    return held_by(graph, TargetColumn("age", graph.node(names[0]), None, None), names[1:], told)


@settings(max_examples=150, deadline=None)
@given(answers, answers, answers)
def test_codings_held_together_tell_what_their_product_tells(target, one, other):
    found = held(*world(target, one, other, people=True))
    assert found.exact
    assert found.groups.tolist() == told_apart(target, one, other).tolist()


@settings(max_examples=150, deadline=None)
@given(answers, answers, answers, answers)
def test_without_the_people_the_answer_is_a_bound_that_says_so(target, one, other, third):
    found = held(*world(target, one, other, third))
    truth = told_apart(target, one, other, third)
    alone = [told_apart(target, part) for part in (one, other, third)]
    assert refines(truth, found.groups)
    assert refines(found.groups, meet(meet(alone[0], alone[1]), alone[2]))
    if found.exact:
        assert found.groups.tolist() == truth.tolist()


@settings(max_examples=100, deadline=None)
@given(answers, answers, st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_what_is_told_of_the_target_besides_counts_too(target, one, merged):
    graph, names = world(target, one, people=True)
    part = canonical(merged[: graph.node(names[0]).size])
    found = held(graph, names, [part])
    truth = told_apart(target, one, part[canonical(target)])
    assert found.groups.tolist() == truth.tolist()


def bands(*edges):
    return Intervals("number", edges=tuple(map(float, edges)))


@settings(max_examples=150, deadline=None)
@given(st.tuples(*[st.sets(st.integers(1, PEOPLE - 1), max_size=4)] * 3))
def test_crossing_intervals_are_cut_by_all_edges(cuts):
    spans = [bands(0, *sorted(cut), PEOPLE) for cut in cuts]
    codings = [
        Coding(f"AG{len(span.edges) - 1}.{i + 1:03d}", "AG", intervals=span)
        for i, span in enumerate(spans)
    ]
    graph = CodingGraph(Environment((AG,), tuple(codings)))
    found = held(graph, [c.name for c in codings])
    parts = [np.searchsorted(span.edges, np.arange(PEOPLE), side="right") for span in spans]
    assert found.exact
    assert found.groups.tolist() == told_apart(*parts).tolist()


def work():
    """Who works: two codings that each lump workers with others, and everybody told apart.

    The target has those who work and those who do not; ES2.002 lumps workers with pensioners,
    ES2.003 workers with students.
    """
    people = tuple(map(Category, ("employed", "retired", "student", "other")))
    codings = (
        Coding("ES4.001", "ES", people),
        *(Coding(f"ES2.00{i}", "ES", (Category("a"), Category("b"))) for i in (1, 2, 3)),
    )
    falls = {"ES2.001": "abbb", "ES2.002": "aabb", "ES2.003": "abab"}
    maps = tuple(
        CategoryMap("ES4.001", name, dict(zip((c.code for c in people), to, strict=True)))
        for name, to in falls.items()
    )
    target = Target("survey", None, (Field("works", coding="ES2.001"),))
    forms = (
        Form("Bank", fields=(Field("x", coding="ES2.002"), Field("y", coding="ES2.003"))),
        Form("Shop", sector="shop", fields=(Field("x", coding="ES2.002"),)),
    )
    sources = (Source("Register", fields=(Field("y", coding="ES2.003"),)),)
    return CodingGraph(
        Environment(
            (Construct("ES", "employment status"),), codings, maps,
            forms=forms, sources=sources, targets=(target,),
        )
    )  # fmt: skip


def test_a_form_that_asks_twice_tells_more_than_the_meet_of_its_joins():
    variable = map_pair(work(), "survey", "Bank").key[0]
    assert variable.groups == (0, 1)
    assert variable.exact
    assert variable.codings == ("ES2.002", "ES2.003")
    assert any("reveal more than each by itself" in text for text in variable.explanation)


def test_a_class_of_such_forms_holds_it_too():
    assert map_class(work(), "survey").key[0].groups == (0, 1)
    assert map_class(work(), "survey", sector="shop").key == ()


def test_stages_that_each_tell_nothing_tell_something_together():
    graph = work()
    shop = map_pair(graph, "survey", "Shop")
    register = map_public(graph, "survey", resources=9).mapping
    assert shop.key == register.key == ()
    assert shop.absent[0].codings == ("ES2.002",)
    both = combine_keys(graph, "survey", [shop, register]).mapping.key[0]
    assert (both.groups, both.exact, both.holders) == ((0, 1), True, 2)


def test_a_class_is_combined_by_the_partition_that_enough_forms_hold():
    """Ages by decades: the class tells one edge, the register another."""
    codings = (
        Coding("AG4.001", "AG", intervals=bands(0, 10, 20, 30, 40)),
        Coding("AG3.001", "AG", intervals=bands(0, 10, 25, 40)),
        Coding("AG3.002", "AG", intervals=bands(0, 15, 30, 40)),
    )
    graph = CodingGraph(
        Environment(
            (AG,),
            codings,
            forms=(Form("Bank", fields=(Field("b", coding="AG3.002"),)),),
            sources=(Source("Register", fields=(Field("b", coding="AG3.001"),)),),
            targets=(Target("survey", None, (Field("age", coding="AG4.001"),)),),
        )
    )
    held_class = map_class(graph, "survey")
    assert held_class.key[0].codings == ()
    register = map_public(graph, "survey", resources=9).mapping
    both = combine_keys(graph, "survey", [held_class, register]).mapping.key[0]
    assert both.groups == (0, 1, 1, 2)
    assert both.exact
