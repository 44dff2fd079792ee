"""Pictures of an environment: the coding graph, and prevalence."""

import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.charts import lay_out, reduce_edges
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.exchange import example_environment
from keyhole.environment.model import (
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
)
from keyhole.environment.prevalence import draw_graph, prevalence, prevalence_chart
from keyhole.errors import InputError

SVG = "{http://www.w3.org/2000/svg}"


def shapes(picture, kind):
    return [e for e in ET.fromstring(picture).iter(SVG + kind) if e.get("class") == "coding"]


def test_captured_codings_are_circles_and_harmonised_ones_boxes():
    graph = CodingGraph(example_environment())
    for construct in graph.environment.constructs:
        picture = draw_graph(graph, construct.letters)
        family = graph.family(construct.letters)
        boxes = [name for name in family if name.split(".")[1].startswith("1")]
        assert len(shapes(picture, "rect")) == len(boxes)
        assert len(shapes(picture, "circle")) == len(family) - len(boxes)
        for name in family:
            assert f">{name}</text>" in picture


def test_the_same_environment_gives_the_same_picture():
    environment = example_environment()
    turned = Environment(
        **{
            name: getattr(environment, name)[::-1]
            for name in ("constructs", "codings", "maps", "overlaps", "forms", "targets")
        }
    )
    assert draw_graph(environment, "MS") == draw_graph(turned, "MS")


def test_labels_are_escaped_and_carry_no_control_characters():
    bad = "</text><script>alert(1)</script>\x1b\" onload='x'"
    coding = Coding("XX1.001", "XX", (Category("a", bad),), label=bad)
    environment = Environment((Construct("XX", bad),), (coding,))
    picture = draw_graph(environment, "XX")
    assert "<script" not in picture
    assert "\x1b" not in picture
    assert not [e for e in ET.fromstring(picture).iter() if e.get("onload")]


def test_many_codings_are_cut_to_those_most_asked():
    intervals = [Intervals("number", edges=(0, float(i), 500)) for i in range(1, 101)]
    codings = tuple(Coding(f"AG2.{i:03}", "AG", intervals=one) for i, one in enumerate(intervals))
    forms = (Form("f", fields=(Field("age", coding="AG2.077"),)),)
    environment = Environment((Construct("AG", "age"),), codings, forms=forms)
    picture = draw_graph(environment, "AG")
    assert len(shapes(picture, "circle")) == 60
    assert ">AG2.077</text>" in picture
    assert "40 more" in picture


def test_a_construct_without_codings_is_refused_with_what_there_is():
    with pytest.raises(InputError, match="There are AG"):
        draw_graph(Environment((Construct("AG", "age"),)), "XX")


def test_unresolved_edges_are_dashed():
    codings = (
        Coding("XX2.001", "XX", (Category("a"), Category("b"))),
        Coding("XX2.002", "XX", (Category("c"), Category("d"))),
    )
    environment = Environment(
        (Construct("XX", "x"),), codings, (CategoryMap("XX2.001", "XX2.002"),)
    )
    legend = draw_graph(Environment((Construct("XX", "x"),), codings), "XX")
    picture = draw_graph(environment, "XX")
    assert picture.count('"6 4"') == legend.count('"6 4"') + 1


NAMES = "abcdefgh"
ORDERS = st.sets(st.sampled_from(list(combinations(NAMES, 2))), max_size=16)


@given(ORDERS)
def test_reduced_edges_reach_what_the_whole_order_does(pairs):
    above = {n: closure(n, pairs) for n in NAMES}
    edges = reduce_edges(above)
    assert {n: closure(n, edges) for n in NAMES} == above
    for edge in edges:
        rest = [one for one in edges if one != edge]
        assert edge[1] not in closure(edge[0], rest)


def closure(name, pairs):
    found, todo = set(), [name]
    while todo:
        here = todo.pop()
        for one, other in pairs:
            if one == here and other not in found:
                found.add(other)
                todo.append(other)
    return found


@given(ORDERS)
def test_nodes_of_a_layer_stand_apart_and_edges_go_up(pairs):
    edges = reduce_edges({n: closure(n, pairs) for n in NAMES})
    found = lay_out(NAMES, edges)
    for (x1, y1), (x2, y2) in combinations(found.places.values(), 2):
        assert y1 != y2 or abs(x1 - x2) >= 0.99
    for finer, coarser in edges:
        assert found.places[finer][1] > found.places[coarser][1]
        bends = found.bends[finer, coarser]
        span = range(found.places[finer][1] - 1, found.places[coarser][1], -1)
        assert [layer for _, layer in bends] == list(span)
    assert all(0 <= x <= found.width for x, _ in found.places.values())


def test_two_equal_codings_do_not_go_in_a_circle():
    assert reduce_edges({"a": ["b"], "b": ["a"]}) == (("a", "b"),)


def test_prevalence_counts_the_forms_that_ask_a_construct():
    environment = example_environment()
    found = prevalence(environment)
    assert found["GE", "government"] == (4, 4)
    assert found["RC", "government"] == (1, 4)
    assert sum(of for (letters, _), (_, of) in found.items() if letters == "AG") == 15
    spec = prevalence_chart(environment).to_dict()
    (values,) = (
        (d for d in spec["datasets"].values()) if "datasets" in spec else [spec["data"]["values"]]
    )
    assert len(values) == len(found)


def test_prevalence_of_nothing_is_refused():
    with pytest.raises(InputError, match="no forms"):
        prevalence_chart(Environment())
