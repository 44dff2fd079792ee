"""The graph of codings: joins worked by hand, all paths, crossing codings, dates and ages."""

import datetime
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.codings.joins import compatibility, mint
from keyhole.environment.model import (
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Intervals,
    Overlap,
)
from keyhole.errors import InputError

ES = Construct("ES", "employment status")
AG = Construct("AG", "age")


def coding(name, *labels, aliases=(), **kinds):
    """A coding whose categories' codes are their labels; kinds by label."""
    categories = tuple(Category(label, kind=kinds.get(label, "value")) for label in labels)
    return Coding(name, name[:2], categories, aliases=aliases)


def falls(finer, coarser, text):
    """A map written as 'full part > employed, none > not'."""
    pairs = {}
    for part in text.split(","):
        codes, into = part.split(">")
        pairs |= dict.fromkeys(codes.split(), into.strip())
    return CategoryMap(finer, coarser, pairs)


def employment():
    """Six codings as on forms, and the two harmonised ones somebody drew.

    ES6.001 full part self unemployed retired student
    ES4.001 employee self unemployed inactive      (employee = full or part)
    ES3.001 full part not                          (full and part hold the self-employed too)
    ES3.101 working unemployed inactive
    ES2.101 working not
    """
    codings = (
        coding("ES6.001", "full", "part", "self", "unemployed", "retired", "student"),
        coding("ES4.001", "employee", "self", "unemployed", "inactive", aliases=("CS4.01",)),
        coding("ES3.001", "full", "part", "not"),
        coding("ES3.101", "working", "unemployed", "inactive"),
        coding("ES2.101", "working", "not"),
    )
    maps = (
        falls(
            "ES6.001",
            "ES4.001",
            "full part > employee, self > self, unemployed > unemployed,retired student > inactive",
        ),
        falls(
            "ES4.001",
            "ES3.101",
            "employee self > working, unemployed > unemployed, inactive > inactive",
        ),
        falls("ES3.101", "ES2.101", "working > working, unemployed inactive > not"),
        falls("ES3.001", "ES2.101", "full part > working, not > not"),
    )
    pairs = {("employee", "full"), ("employee", "part"), ("self", "full"), ("self", "part")}
    pairs |= {("unemployed", "not"), ("inactive", "not")}
    overlap = Overlap("ES4.001", "ES3.001", frozenset(pairs))
    return Environment((ES,), codings, maps, (overlap,))


def graph_of(*codings, maps=(), overlaps=(), constructs=(ES, AG)):
    return CodingGraph(Environment(constructs, codings, tuple(maps), tuple(overlaps)))


def test_paths_up_the_graph_compose():
    graph = CodingGraph(employment())
    assert graph.ancestors("ES6.001") == ("ES2.101", "ES3.101", "ES4.001")
    assert graph.descendants("ES2.101") == ("ES3.001", "ES3.101", "ES4.001", "ES6.001")
    assert graph.mapping("ES6.001", "ES2.101").tolist() == [0, 0, 0, 1, 1, 1]
    assert graph.path("ES6.001", "ES2.101") == ("ES6.001", "ES4.001", "ES3.101", "ES2.101")
    assert not graph.refines("ES3.101", "ES6.001")
    assert graph.refines("ES3.101", "ES3.101")


def test_an_alias_stands_for_its_coding():
    graph = CodingGraph(employment())
    assert graph.coding("CS4.01").name == "ES4.001"
    assert graph.mapping("ES6.001", "CS4.01").tolist() == [0, 0, 1, 2, 3, 3]
    with pytest.raises(InputError, match=r"'ES6.002' is not in the env.+ Did you mean 'ES6.001'"):
        graph.coding("ES6.002")


def test_the_join_of_a_coding_and_one_it_refines_is_the_coarser():
    join = CodingGraph(employment()).join("ES6.001", "ES3.101")
    assert (join.coding, join.stored, join.exact, join.size) == ("ES3.101", True, True, 3)
    assert join.groups_left.tolist() == [0, 0, 0, 1, 2, 2]
    assert join.labels == ("working", "unemployed", "inactive")
    assert join.categories_lost == 3
    assert join.lost == pytest.approx(np.log2(6) - join.entropy)
    assert "path: ES6.001 → ES4.001 → ES3.101" in join.explanation
    assert "'full' and 'part' and 'self' become 'working' (of ES6.001)" in join.explanation


def test_the_join_by_hand_of_codings_that_cross_below():
    """Employee and self both meet full and part: one group; the rest are 'not'."""
    graph = CodingGraph(employment())
    join = graph.join("ES4.001", "ES3.001")
    assert (join.coding, join.stored, join.exact) == ("ES2.101", True, True)
    assert join.groups_left.tolist() == [0, 0, 1, 1]
    assert join.groups_right.tolist() == [0, 0, 1]
    # Through ES4.001, which ES6.001 refines, the overlap is only known not to be exact.
    through = graph.join("ES6.001", "ES3.001")
    assert (through.coding, through.stored, through.exact) == ("ES2.101", True, False)
    assert "perhaps not the finest" in " ".join(through.explanation)


def diamond():
    """Two codings with two minimal common ancestors: their join is not stored."""
    codings = (
        coding("ES4.001", "a", "b", "c", "d"),
        coding("ES4.002", "p", "q", "r", "s"),
        coding("ES2.101", "ab", "cd"),
        coding("ES2.102", "ac", "bd"),
    )
    maps = (
        falls("ES4.001", "ES2.101", "a b > ab, c d > cd"),
        falls("ES4.001", "ES2.102", "a c > ac, b d > bd"),
        falls("ES4.002", "ES2.101", "p q > ab, r s > cd"),
        falls("ES4.002", "ES2.102", "p r > ac, q s > bd"),
    )
    return Environment((ES,), codings, maps)


def test_several_minimal_ancestors_mean_that_the_join_is_missing():
    graph = CodingGraph(diamond())
    assert graph.minimal_common_ancestors("ES4.001", "ES4.002") == ("ES2.101", "ES2.102")
    join = graph.join("ES4.001", "ES4.002")
    # Both ancestors together leave one possible partner for each category: nothing is merged.
    assert join.groups_left.tolist() == join.groups_right.tolist() == [0, 1, 2, 3]
    assert join.antichain == ("ES2.101", "ES2.102")
    assert (join.exact, join.categories_lost) == (False, 0)


def test_a_missing_join_is_minted_with_the_right_name_and_found_afterwards():
    pairs = {("a", "p"), ("b", "p"), ("c", "q"), ("c", "r")}
    overlap = Overlap("ES3.001", "ES3.002", frozenset(pairs))
    left, right = coding("ES3.001", "a", "b", "c"), coding("ES3.002", "p", "q", "r")
    graph = graph_of(left, right, coding("ES2.101", "x", "y"), overlaps=[overlap])
    join = graph.join("ES3.001", "ES3.002")
    assert (join.coding, join.stored, join.antichain) == ("ES2.102", False, ())
    minted = mint(graph, join, label="either")
    assert minted.coding.name == "ES2.102"
    assert [c.label for c in minted.coding.categories] == ["a or b", "c"]
    environment = replace(
        graph.environment,
        codings=(*graph.environment.codings, minted.coding),
        maps=minted.maps,
        overlaps=(overlap,),
    )
    again = CodingGraph(environment).join("ES3.001", "ES3.002")
    assert (again.coding, again.stored, again.antichain) == ("ES2.102", True, ("ES2.102",))
    assert again.groups_left.tolist() == join.groups_left.tolist()
    with pytest.raises(InputError, match=r"already exists: ES2.102"):
        mint(CodingGraph(environment), again)


def ages(name, *edges, **regular):
    return Coding(name, "AG", intervals=Intervals("number", edges=edges, **regular))


def births(unit, name, start=1900, stop=2020, step=0):
    first, last = datetime.date(start, 1, 1), datetime.date(stop, 1, 1)
    cut = Intervals("date", start=first.toordinal(), stop=last.toordinal(), unit=unit, step=step)
    return Coding(name, "AG", intervals=cut)


def test_crossing_decades_join_to_nothing_but_rule_out_most_pairs():
    decades = ages("AG10.001", start=0, stop=100, step=10)
    shifted = ages("AG11.001", -5, *range(5, 100, 10), 105)
    graph = graph_of(decades, shifted)
    join = graph.join("AG10.001", "AG11.001")
    assert (join.size, join.informative, join.exact) == (1, False, True)
    found = compatibility(graph, "AG10.001", "AG11.001")
    # Each decade meets two of the eleven shifted ones.
    assert found.ruled_out == pytest.approx(1 - 20 / 110)
    assert found.to_frame().height == 20


def test_bands_of_different_width_join_where_their_edges_meet():
    graph = graph_of(
        ages("AG6.001", start=0, stop=60, step=10), ages("AG4.001", start=0, stop=60, step=15)
    )
    join = graph.join("AG6.001", "AG4.001")
    assert (join.coding, join.stored, join.labels) == ("AG2.101", False, ("0-29", "30-59"))
    minted = mint(graph, join)
    assert minted.coding.intervals.edges == (0, 30, 60)
    environment = replace(
        graph.environment,
        codings=(*graph.environment.codings, minted.coding),
        maps=minted.maps,
    )
    again = CodingGraph(environment).join("AG6.001", "AG4.001")
    assert (again.coding, again.stored) == ("AG2.101", True)


def test_intervals_refine_only_what_they_lie_in():
    graph = graph_of(
        ages("AG1.001", 0, 100),
        ages("AG1.002", 0, 10),
        ages("AG2.001", 0, 10, 100),
        ages("AG3.001", 0, 10, 50, 100),
    )
    # What reaches beyond the other coding does not fall into its one category.
    assert not graph.refines("AG1.001", "AG1.002")
    assert graph.mapping("AG2.001", "AG1.002").tolist() == [0, -1]
    assert graph.mapping("AG3.001", "AG1.002").tolist() == [0, -1, -1]
    # AG2.001 refines AG1.002, which refines AG3.001, but outside AG1.002 that says nothing.
    assert graph.refines("AG1.002", "AG3.001")
    assert not graph.refines("AG2.001", "AG3.001")
    join = graph.join("AG3.001", "AG1.002")
    # Who records AG1.002 does not tell apart what lies outside it.
    assert join.groups_left.tolist() == [0, 1, 1]
    assert "'10-49', '50-99' of AG3.001 has no counterpart in AG1.002" in join.explanation


AS_OF = datetime.date(2020, 5, 17)


@pytest.mark.parametrize(
    "target",
    [
        ages("AG120.001", start=0, stop=120, step=1),
        ages("AG12.001", start=0, stop=120, step=10),
        ages("AG4.001", 0, 18, 40, 65, float("inf")),
    ],
)
def test_a_date_of_birth_harmonises_to_any_age(target):
    graph = graph_of(target, births("day", "AG43829.001"))
    assert graph.refines("AG43829.001", target.name, as_of=AS_OF)
    join = graph.join(target.name, "AG43829.001", as_of=AS_OF)
    assert (join.coding, join.stored, join.lost, join.exact) == (target.name, True, 0, True)
    born = datetime.date(1980, 5, 18).toordinal() - datetime.date(1900, 1, 1).toordinal()
    falls_into = graph.mapping("AG43829.001", target.name, as_of=AS_OF)[born]
    edges = graph.node(target.name).edges
    assert edges[falls_into] <= 39 < edges[falls_into + 1]


def test_a_year_of_birth_tells_ages_only_at_the_end_of_the_year():
    target = ages("AG120.001", start=0, stop=120, step=1)
    graph = graph_of(target, births("year", "AG120.002"))
    middle = graph.join("AG120.001", "AG120.002", as_of=AS_OF)
    assert not middle.informative
    assert compatibility(graph, "AG120.001", "AG120.002", as_of=AS_OF).ruled_out > 0.98
    end = graph.join("AG120.001", "AG120.002", as_of=datetime.date(2019, 12, 31))
    assert end.categories_lost == 0


def test_dates_and_ages_need_a_day():
    graph = graph_of(ages("AG2.001", 0, 18, 120), births("day", "AG43829.001"))
    join = graph.join("AG2.001", "AG43829.001")
    assert not join.resolved
    assert "as_of" in join.reason
    assert "unresolved" in join.summary()


def test_dates_go_up_through_ages_to_listed_bands():
    bands = coding("AG2.002", "young", "old")
    young = {str(age): "young" for age in range(40)} | {str(age): "old" for age in range(40, 120)}
    graph = graph_of(
        births("day", "AG43829.001"),
        ages("AG120.001", start=0, stop=120, step=1),
        bands,
        maps=[CategoryMap("AG120.001", "AG2.002", young)],
    )
    assert graph.path("AG43829.001", "AG2.002", as_of=AS_OF) == (
        "AG43829.001", "AG120.001", "AG2.002",
    )  # fmt: skip
    falls_into = graph.mapping("AG43829.001", "AG2.002", as_of=AS_OF)
    born = datetime.date(1980, 5, 17).toordinal() - datetime.date(1900, 1, 1).toordinal()
    assert falls_into[born] == 1
    assert falls_into[born + 1] == 0
    assert not graph.refines("AG43829.001", "AG2.002")


def test_not_stated_meets_only_its_own_kind():
    special = {"refused": "not stated", "na": "not applicable", "missing": "not stated"}
    fine = coding("ES5.001", "full", "part", "none", "refused", "na", **special)
    rough = coding("ES3.001", "yes", "no", "missing", **special)
    edge = falls("ES5.001", "ES3.001", "full part > yes, none > no")
    graph = graph_of(fine, rough, maps=[edge])
    assert graph.mapping("ES5.001", "ES3.001").tolist() == [0, 0, 1, 2, -1]
    join = graph.join("ES5.001", "ES3.001")
    assert join.groups_left.tolist() == [0, 0, 1, 2, 3]
    text = " ".join(join.explanation)
    assert "'refused' (not stated) is kept apart from all answers" in text
    assert "'na' (not applicable) is kept apart" in text


def test_other_meets_what_its_coding_does_not_list():
    left = coding("ES3.001", "a", "b", "rest", rest="other")
    right = coding("ES3.002", "p", "q", "r")
    overlap = Overlap("ES3.001", "ES3.002", frozenset({("a", "p"), ("b", "p")}))
    join = graph_of(left, right, overlaps=[overlap]).join("ES3.001", "ES3.002")
    assert join.groups_left.tolist() == [0, 0, 1]
    assert join.groups_right.tolist() == [0, 1, 1]


def test_other_beside_intervals_meets_what_lies_outside_them():
    working = Coding(
        "AG2.001", "AG", (Category("rest", kind="other"),), Intervals("number", edges=(18, 65))
    )
    graph = graph_of(working, ages("AG4.001", 0, 18, 40, 65, 120))
    join = graph.join("AG4.001", "AG2.001")
    assert join.groups_left.tolist() == [0, 1, 1, 0]


def test_composition_is_exact_only_through_a_coding_that_refines_a_side():
    """a | b against p | q, through a third coding."""
    left, right = coding("ES2.001", "a", "b"), coding("ES2.002", "p", "q")
    below = coding("ES3.001", "x", "y", "z")
    down = [
        falls("ES3.001", "ES2.001", "x > a, y z > b"),
        falls("ES3.001", "ES2.002", "x y > p, z > q"),
    ]
    exact = graph_of(left, right, below, maps=down).overlap("ES2.001", "ES2.002")
    assert (exact.basis, exact.exact, exact.via) == ("composed", True, ("ES3.001",))
    pairs = set(zip(exact.left.tolist(), exact.right.tolist(), strict=True))
    assert pairs == {(0, 0), (1, 0), (1, 1)}
    above = coding("ES2.003", "m", "n")
    up = [
        falls("ES2.001", "ES2.003", "a > m, b > n"),
        falls("ES2.002", "ES2.003", "p > m, q > n"),
    ]
    bound = graph_of(left, right, above, maps=up).join("ES2.001", "ES2.002")
    assert (bound.resolved, bound.exact, bound.size) == (True, False, 2)
    beside = [
        Overlap("ES2.001", "ES2.003", frozenset({("a", "m"), ("b", "m"), ("b", "n")})),
        Overlap("ES2.003", "ES2.002", frozenset({("m", "p"), ("n", "q")})),
    ]
    chained = graph_of(left, right, above, overlaps=beside).overlap("ES2.001", "ES2.002")
    assert (chained.basis, chained.exact) == ("composed", False)
    pairs = set(zip(chained.left.tolist(), chained.right.tolist(), strict=True))
    assert pairs == {(0, 0), (1, 0), (1, 1)}


def test_edges_without_pairs_are_unresolved():
    graph = graph_of(
        coding("ES2.001", "a", "b"),
        coding("ES2.002", "p", "q"),
        coding("ES2.101", "x", "y"),
        coding("ES2.003", "u", "v"),
        maps=[
            CategoryMap("ES2.001", "ES2.101", None),
            falls("ES2.002", "ES2.101", "p > x, q > y"),
        ],
    )
    join = graph.join("ES2.001", "ES2.002")
    assert not join.resolved
    assert "'ES2.001 -> ES2.101' does not pair the categories" in join.reason
    assert graph.mapping("ES2.001", "ES2.101") is None
    apart = graph.join("ES2.002", "ES2.003")
    assert "no map, overlap or intervals connect" in apart.reason
    with pytest.raises(InputError, match="unresolved join"):
        mint(graph, join)


def test_a_long_minted_coding_says_which_answers_are_not_stated():
    names = ["ES1101.001", "ES1101.002"]
    answers = [[f"{side}{i}" for i in range(1_100)] for side in "ab"]
    left, right = (
        coding(name, *labels, "none", none="not stated")
        for name, labels in zip(names, answers, strict=True)
    )
    pairs = {(a, b) for a, b in zip(*answers, strict=True)} | {("a0", "b1")}
    graph = graph_of(left, right, overlaps=[Overlap(*names, frozenset(pairs))])
    minted = mint(graph, graph.join(*names)).coding
    assert len(minted.categories) == 1_100
    assert [one.label for one in minted.categories if one.kind == "not stated"] == ["none"]


def test_free_text_tells_nothing_unless_it_can_be_coded():
    text, rough = Coding("ES0.001", "ES"), coding("ES2.001", "a", "b")
    alone = graph_of(text, rough).join("ES2.001", "ES0.001")
    assert "free text" in alone.reason
    coded = graph_of(text, rough, maps=[CategoryMap("ES0.001", "ES2.001", {})])
    join = coded.join("ES2.001", "ES0.001")
    assert (join.resolved, join.coding, join.exact, join.lost) == (True, "ES2.001", True, 0)
    assert "taken as coded into ES2.001" in join.explanation[0]


def test_codings_of_different_constructs_have_no_join():
    graph = graph_of(coding("ES2.001", "a", "b"), ages("AG2.001", 0, 18, 65))
    assert "different constructs" in graph.join("ES2.001", "AG2.001").reason
    assert graph.mapping("ES2.001", "AG2.001") is None


@settings(max_examples=15)
@given(st.randoms(use_true_random=False))
def test_insertion_order_does_not_matter(random):
    for environment in (employment(), diamond()):
        parts = {
            name: tuple(random.sample(getattr(environment, name), len(getattr(environment, name))))
            for name in ("codings", "maps", "overlaps")
        }
        one, other = CodingGraph(environment), CodingGraph(replace(environment, **parts))
        for left in one.family("ES"):
            for right in one.family("ES"):
                assert one.join(left, right).to_dict() == other.join(left, right).to_dict()


def brute_join(size, one, other):
    """Merge the categories of two functions on `size` people until nothing changes."""
    groups = list(range(size))
    for function in (one, other):
        for i in range(size):
            for j in range(size):
                if function[i] == function[j]:
                    groups = [groups[i] if g == groups[j] else g for g in groups]
    return groups


@st.composite
def recodings(draw):
    size = draw(st.integers(2, 6))
    functions = []
    for _ in range(draw(st.integers(2, 4))):
        groups = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
        names = {g: k for k, g in enumerate(dict.fromkeys(groups))}
        functions.append([names[g] for g in groups])
    return size, functions


@given(recodings())
def test_joins_below_a_common_refinement_are_those_of_the_people(case):
    """Each category of the finest coding is one person; joins must be those of the people."""
    size, functions = case
    people = coding(f"ES{size}.901".replace(".9", ".0"), *(f"i{k}" for k in range(size)))
    codings, maps = [people], []
    for number, function in enumerate(functions):
        count = max(function) + 1
        name = f"ES{count}.1{number + 1:02d}"
        codings.append(coding(name, *(f"c{k}" for k in range(count))))
        pairs = {f"i{i}": f"c{k}" for i, k in enumerate(function)}
        maps.append(CategoryMap(people.name, name, pairs))
    graph = graph_of(*codings, maps=maps)
    for one, f in zip(codings[1:], functions, strict=True):
        for other, g in zip(codings[1:], functions, strict=True):
            join = graph.join(one.name, other.name)
            groups = [int(join.groups_left[k]) for k in f]
            slow = brute_join(size, f, g)
            assert join.exact
            for i in range(size):
                for j in range(size):
                    assert (groups[i] == groups[j]) == (slow[i] == slow[j])
            assert [int(join.groups_right[k]) for k in g] == groups


def test_a_join_reads_well():
    join = CodingGraph(employment()).join("ES6.001", "ES3.101")
    text = join.summary()
    assert "Join of ES6.001 and ES3.101" in text
    assert "working" in text
    assert join.to_frame().height == 9
    plain = join.to_dict()
    assert plain["groups_left"] == [0, 0, 0, 1, 2, 2]
    assert "<table>" in join._repr_html_()


def span(*edges):
    return Intervals("number", edges=tuple(map(float, edges)))


def test_an_ancestor_that_is_reached_over_a_path_is_in_the_antichain():
    """What is listed beside intervals can only fall by a map, here over a third coding."""
    other = Category("x", "Other", "other")
    codings = (
        Coding("AG3.001", "AG", (other,), span(0, 10, 20)),
        coding("AG2.001", "p", "q"),
        coding("AG2.101", "in", "out"),
        Coding("AG3.101", "AG", (Category("y"), Category("z")), span(0, 20)),
    )
    maps = (
        falls("AG3.001", "AG2.101", "0-9 10-19 > in, x > out"),
        falls("AG2.101", "AG3.101", "in > 0-19, out > y"),
        falls("AG2.001", "AG3.101", "p > 0-19, q > y"),
    )
    graph = graph_of(*codings, maps=maps)
    assert graph.join("AG3.001", "AG2.001").antichain == ("AG3.101",)
    assert graph.mapping("AG3.001", "AG3.101").tolist() == [0, 0, 1]
    assert graph.path("AG3.001", "AG3.101") == ("AG3.001", "AG2.101", "AG3.101")


def test_free_text_has_the_ancestors_of_all_that_it_can_be_coded_into():
    codings = (
        coding("ES0.001"),
        coding("ES3.002", "a", "b", "c"),
        coding("ES2.001", "a", "b"),
        coding("ES2.002", "c", "d"),
        coding("ES2.101", "c", "d"),
        coding("ES2.102", "c", "d"),
    )
    maps = (
        CategoryMap("ES0.001", "ES2.001", {}),
        CategoryMap("ES0.001", "ES2.002", {}),
        falls("ES3.002", "ES2.101", "a b > c, c > d"),
        falls("ES2.001", "ES2.101", "a > c, b > d"),
        falls("ES3.002", "ES2.102", "a > c, b c > d"),
        falls("ES2.002", "ES2.102", "c > c, d > d"),
    )
    graph = graph_of(*codings, maps=maps)
    assert graph.join("ES3.002", "ES0.001").antichain == ("ES2.101", "ES2.102")


@st.composite
def drawn_graphs(draw):
    """Partitions of a line, as intervals or lists, with maps drawn between some that refine."""
    size, parts, codings, maps = 5, {}, [], []
    for serial in range(1, draw(st.integers(3, 6)) + 1):
        listed = draw(st.booleans())
        cuts = draw(st.lists(st.integers(0, 2 if listed else 1), min_size=size, max_size=size))
        values = cuts if listed else np.cumsum(cuts).tolist()
        names = {value: k for k, value in enumerate(dict.fromkeys(values))}
        part = [names[value] for value in values]
        name = f"AG{len(names)}.{serial:03d}"
        edges = [0, *(i for i in range(1, size) if part[i] != part[i - 1]), size]
        one = coding(name, *(f"c{k}" for k in range(len(names))))
        codings.append(one if listed else Coding(name, "AG", intervals=span(*edges)))
        parts[name] = part
    graph = graph_of(*codings)
    for one in parts:
        for other in parts:
            if one < other and not (graph.node(one).scale and graph.node(other).scale):
                for low, high in ((one, other), (other, one)):
                    pairs = dict(zip(parts[low], parts[high], strict=True))
                    total = [pairs[k] for k in parts[low]] == parts[high]
                    if total and draw(st.booleans()):
                        codes = graph.node(low).codes, graph.node(high).codes
                        made = {codes[0][a]: codes[1][b] for a, b in pairs.items()}
                        maps.append(CategoryMap(low, high, made))
                        break
    return codings, maps, parts


@settings(max_examples=150, deadline=None)
@given(drawn_graphs())
def test_the_antichain_is_that_of_brute_force(case):
    codings, maps, parts = case
    try:
        graph = graph_of(*codings, maps=maps)
    except InputError:  # two alike that were mapped in a circle
        return
    edges = {(m.finer, m.coarser) for m in maps}
    for one in parts:
        for other in parts:
            both = graph.node(one).scale and graph.node(other).scale
            pairs = dict(zip(parts[one], parts[other], strict=True))
            if both and one != other and [pairs[k] for k in parts[one]] == parts[other]:
                edges.add((one, other))
    above = {name: {name} for name in parts}
    for _ in parts:
        for low, high in edges:
            for name in parts:
                if low in above[name]:
                    above[name].add(high)
    for one in parts:
        for other in parts:
            common = above[one] & above[other]
            finest = {
                c
                for c in common
                if not any(c in above[d] and d not in above[c] for d in common - {c})
            }
            assert set(graph.minimal_common_ancestors(one, other)) == finest
            join = graph.join(one, other)
            assert not join.resolved or set(join.antichain) == finest


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ("x", "environment must be an Environment. Got str instead"),
        (None, "environment must be an Environment. Got NoneType instead"),
        (Environment(codings=(None,)), r"codings\[0\] must be a Coding"),
        (Environment(maps=None), "maps must be a tuple"),
        (Environment((ES,), (Coding("ES2.001", "ES", ("a", "b")),)), r"categories\[0\] must be"),
        (Environment((ES,), (Coding("ES2.001", "ES", intervals=(1, 2)),)), "intervals must be"),
        (Environment((Construct(None, "x"),), (Coding(None, "ES"),)), "letters of text"),
    ],
)
def test_what_is_no_environment_is_told(environment, told):
    with pytest.raises(InputError, match=told):
        CodingGraph(environment)


def test_steps_of_dates_that_no_calendar_has_are_refused():
    wild = Intervals("date", start=1, stop=100, step=1e300)
    with pytest.raises(InputError, match="step must be whole"):
        CodingGraph(Environment((AG,), (Coding("AG2.001", "AG", intervals=wild),)))
