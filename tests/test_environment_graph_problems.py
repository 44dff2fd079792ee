"""What is refused: maps that are not total, circles, paths that disagree, names taken twice."""

import pytest

from keyhole.environment.codings.graph import CodingGraph
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
from keyhole.errors import InputError

ES = Construct("ES", "employment status")


def coding(name, *labels, aliases=(), **kinds):
    categories = tuple(Category(label, kind=kinds.get(label, "value")) for label in labels)
    return Coding(name, "ES", categories, aliases=aliases)


A = coding("ES3.001", "a", "b", "c")
B = coding("ES2.001", "x", "y")
C = coding("ES2.002", "p", "q")
GOOD = CategoryMap("ES3.001", "ES2.001", {"a": "x", "b": "x", "c": "y"})


def problems(*codings, maps=(), overlaps=(), **parts):
    environment = Environment(
        parts.pop("constructs", (ES,)), codings, tuple(maps), tuple(overlaps), **parts
    )
    with pytest.raises(InputError) as caught:
        CodingGraph(environment)
    return caught.value.problems


def test_a_map_must_be_total_and_know_its_codes():
    found = problems(
        A, B, C,
        maps=[
            CategoryMap("ES3.001", "ES2.001", {"a": "x", "b": "y"}),
            CategoryMap("ES3.001", "ES2.002", {"a": "p", "b": "z", "c": "q", "d": "q"}),
        ],
    )  # fmt: skip
    text = "\n".join(found)
    assert len(found) == 3
    assert "map ES3.001 -> ES2.001: a map must be total; it does not say where 'c' fall" in text
    assert "'d' is not among the codes of ES3.001" in text
    assert "'z' is not among the codes of ES2.002" in text


def test_two_maps_between_the_same_codings_are_no_function():
    other = CategoryMap("ES3.001", "ES2.001", {"a": "y", "b": "x", "c": "y"})
    assert "2 have this name" in problems(A, B, maps=[GOOD, other])[0]


def test_not_stated_needs_one_home():
    fine = coding("ES3.001", "a", "b", "gone", gone="not stated")
    rough = coding("ES4.001", "x", "y", "refused", "lost", refused="not stated", lost="not stated")
    edge = CategoryMap("ES3.001", "ES4.001", {"a": "x", "b": "y"})
    assert "several categories for 'not stated'" in problems(fine, rough, maps=[edge])[0]


def test_circles_are_named_whole():
    same = {"x": "p", "y": "q"}
    back = {"p": "x", "q": "y"}
    found = problems(
        B,
        C,
        maps=[CategoryMap("ES2.001", "ES2.002", same), CategoryMap("ES2.002", "ES2.001", back)],
    )
    assert found == (
        "the maps form a cycle through 'ES2.001', 'ES2.002'; no coding can be coarser than itself.",
    )
    assert "itself" in problems(B, maps=[CategoryMap("ES2.001", "ES2.001", None)])[0]
    silent = [CategoryMap("ES2.001", "ES2.002", None), CategoryMap("ES2.002", "ES2.001", None)]
    assert "cycle" in problems(B, C, maps=silent)[0]


def test_a_long_circle_is_found_at_once():
    codings = [coding(f"ES2.0{k:02d}", "x", "y") for k in range(1, 80)]
    same = {"x": "x", "y": "y"}
    names = [c.name for c in codings]
    maps = [CategoryMap(a, b, same) for a, b in zip(names, [*names[1:], names[0]], strict=True)]
    assert "and 69 more" in problems(*codings, maps=maps)[0]


def test_paths_that_disagree_are_refused_with_the_category():
    maps = [
        GOOD,
        CategoryMap("ES3.001", "ES2.002", {"a": "p", "b": "p", "c": "q"}),
        CategoryMap("ES2.001", "ES2.003", {"x": "m", "y": "n"}),
        CategoryMap("ES2.002", "ES2.003", {"p": "n", "q": "m"}),
    ]
    found = problems(A, B, C, coding("ES2.003", "m", "n"), maps=maps)
    assert found == (
        "the paths from ES3.001 to ES2.003 disagree: 'a' falls into 'm' by one and into 'n' by"
        " another (and 2 more categories).",
    )


def test_an_overlap_must_not_contradict_the_maps():
    wrong = Overlap("ES3.001", "ES2.001", frozenset({("a", "x"), ("b", "y"), ("c", "y")}))
    assert "contradicts the maps" in problems(A, B, maps=[GOOD], overlaps=[wrong])[0]
    right = Overlap("ES2.001", "ES3.001", frozenset({("x", "a"), ("x", "b"), ("y", "c")}))
    CodingGraph(Environment((ES,), (A, B), (GOOD,), (right,)))


def test_overlaps_must_know_their_codes():
    wrong = Overlap("ES3.001", "ES2.001", frozenset({("a", "nowhere"), ("zz", "x")}))
    text = "\n".join(problems(A, B, overlaps=[wrong]))
    assert "'zz' is not among the codes of ES3.001" in text
    assert "'nowhere' is not among the codes of ES2.001" in text


def test_names_must_be_the_papers_and_say_the_size():
    assert "'.', 0 or 1, serial" in problems(coding("employment", "a", "b"))[0]
    assert "its name says 3 categories, but it has 2" in problems(coding("ES3.001", "a", "b"))[0]
    strange = Coding("XX2.001", "ES", B.categories)
    assert "its letters must be 'ES'" in problems(strange)[0]
    lost = Coding("YY2.001", "YY", B.categories)
    assert "its construct 'YY', which does not exist" in problems(lost)[0]


def test_nothing_is_there_twice():
    twin = coding("ES2.002", "p", "q", aliases=("ES2.001",))
    assert "coding 'ES2.001': 2 have this name or alias" in problems(B, twin)[0]
    assert "construct 'ES': 2 have this name" in problems(constructs=(ES, ES))[0]
    assert "the codes 'a' are listed twice" in problems(coding("ES2.001", "a", "a"))[0]
    assert "form 'f': 2 have this name" in problems(B, forms=(Form("f"), Form("f")))[0]
    column = Field("c", coding="ES2.001")
    assert "are listed twice" in problems(B, targets=(Target("t", None, (column, column)),))[0]


def test_fields_must_name_codings_that_are_there_and_ranks_must_be_ranks():
    form = Form("bank", fields=(Field("job", coding="ES9.001"),))
    source = Source("register", mode=5, cost=0)
    text = "\n".join(problems(B, forms=(form,), sources=(source,)))
    assert "form 'bank' has as the coding of its field 'job' 'ES9.001', which does not" in text
    assert "mode must be a rank from 1 to 4. Got 5 instead." in text
    assert "cost must be a rank from 1 to 3. Got 0 instead." in text


def test_intervals_that_do_not_nest_are_no_map():
    wide = Coding("ES2.001", "ES", intervals=Intervals("number", edges=(0, 10, 20)))
    other = Coding("ES2.002", "ES", intervals=Intervals("number", edges=(0, 15, 20)))
    fine = Coding("ES4.001", "ES", intervals=Intervals("number", edges=(0, 5, 10, 15, 20)))
    days = Coding("ES1.001", "ES", intervals=Intervals("date", edges=(700000, 700001)))
    assert "fall into several" in problems(wide, other, maps=[CategoryMap("ES2.001", "ES2.002")])[0]
    wrong = {"0-4": "0-9", "5-9": "10-19", "10-14": "10-19", "15-19": "10-19"}
    edge = CategoryMap("ES4.001", "ES2.001", wrong)
    assert "contradict the intervals" in problems(wide, fine, maps=[edge])[0]
    dated = CategoryMap("ES1.001", "ES2.001", {"1917-07-15": "0-9"})
    assert "according to the day" in problems(wide, days, maps=[dated])[0]
    CodingGraph(Environment((ES,), (wide, fine), (CategoryMap("ES4.001", "ES2.001"),)))


def test_all_problems_come_at_once():
    found = problems(
        coding("ES3.001", "a", "b"),
        coding("ES2.001", "a", "a"),
        forms=(Form("f", fields=(Field("x", coding="ES7.001"),)),),
    )
    assert len(found) == 3


def test_a_hundred_thousand_categories():
    many = 100_000
    fine = Coding(f"ES{many}.001", "ES", tuple(Category(f"f{i}") for i in range(many)))
    twin = Coding(f"ES{many}.002", "ES", tuple(Category(f"t{i}") for i in range(many)))
    rough = Coding("ES10.001", "ES", tuple(Category(f"r{i}") for i in range(10)))
    maps = [
        CategoryMap(fine.name, "ES10.001", {f"f{i}": f"r{i % 10}" for i in range(many)}),
        CategoryMap(twin.name, "ES10.001", {f"t{i}": f"r{i // 10_000}" for i in range(many)}),
    ]
    graph = CodingGraph(Environment((ES,), (fine, twin, rough), tuple(maps)))
    join = graph.join(fine.name, "ES10.001")
    assert (join.coding, join.size) == ("ES10.001", 10)
    # Ten thousand million pairs are possible between the two; none of them is listed.
    both = graph.join(fine.name, twin.name)
    assert not both.resolved
    assert "too many pairs through ES10.001" in both.reason
    stored = Overlap(fine.name, twin.name, frozenset((f"f{i}", f"t{i}") for i in range(many)))
    exact = CodingGraph(Environment((ES,), (fine, twin), (), (stored,)))
    assert exact.join(fine.name, twin.name).categories_lost == 0
