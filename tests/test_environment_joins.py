"""The joins that were checked by hand: the table of the page, row by row."""

import datetime
from pathlib import Path

import numpy as np
import pytest

from keyhole.environment.codings.categories import Node, size_of
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.importers.fields import capture
from keyhole.environment.model import Category, Coding, Construct, Environment, Intervals, Overlap

PAGE = Path(__file__).parents[1] / "docs" / "methods" / "environment-joins.md"
DAY = datetime.date(2024, 1, 1)
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and line[2].islower()
][1:]


def coding(number, construct, text):
    """Make the coding that a form or file with these answers would have."""
    words = text.split()
    if text == "any number":
        held = (), Intervals("number")
    elif words[0] in ("whole", "months", "monthly"):  # whole numbers from and to
        low, high = map(int, words[-1].split("-"))
        factor = {"whole": 1, "months": 1 / 12, "monthly": 12}[words[0]]
        held = (), Intervals("number", start=low, stop=high + 1, step=1, factor=factor)
    elif text == "days of birth":
        ends = (datetime.date(year, 1, 1).toordinal() for year in (1900, 2024))
        held = (), Intervals("date", start=next(ends), stop=next(ends), step=1, unit="day")
    else:
        answers = [(str(i), label.strip()) for i, label in enumerate(text.split(";"), 1)]
        field = capture([construct], construct, options=answers, recognised=False)
        held = field.categories, field.intervals
    made = Coding("XX0.001", "XX", *held)
    return Coding(f"XX{size_of(made)}.{number:03}", "XX", *held)


def joined(construct, left, right):
    """Tell the join of two codings that nobody has tied, in the words of the page."""
    one, other = coding(1, construct, left), coding(2, construct, right)
    graph = CodingGraph(Environment((Construct("XX", construct),), (one, other)))
    join = graph.join(one.name, other.name, as_of=DAY)
    relation = graph.overlap(one.name, other.name, as_of=DAY)
    if not join.resolved:
        return "undecided"
    node = graph.node(one.name)
    leftovers = any("left over on both sides" in words for words in join.explanation)
    if leftovers:
        return "undecided"
    assert relation.exact or relation.basis == "wording" or graph.node(other.name).exact
    groups = np.unique(join.groups_left)
    if len(groups) == node.size:
        return "as the first"
    if len(np.unique(join.groups_left[node.substantive])) == 1:
        return "nothing"
    return "; ".join(
        " + ".join(node.labels[i] for i in np.flatnonzero(join.groups_left == k).tolist())
        if (join.groups_left == k).sum() < 9
        else f"{(join.groups_left == k).sum()} numbers"
        for k in groups
    )


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}-{i}" for i, row in enumerate(ROWS)])
def test_a_join_is_the_one_checked_by_hand_or_undecided(row):
    construct, left, right, checked, found = row
    got = joined(construct, left, right)
    assert got == (checked if found == "same" else found)
    assert found in ("same", "undecided")


def test_enough_joins_were_checked_of_every_sort():
    assert len(ROWS) >= 40
    sorts = {row[0] for row in ROWS}
    assert sorts >= {"race", "marital status", "education", "employment", "income", "count", "age"}
    assert sum(row[4] == "same" for row in ROWS) >= 27


def test_an_exact_number_and_a_unit_are_told_by_their_nodes():
    number = Node(Coding("IN1.001", "IN", (), Intervals("number")))
    bands = Node(Coding("IN2.001", "IN", (), Intervals("number", edges=(0, 10, 20))))
    listed = Node(Coding("IN1.002", "IN", (Category("a"),)))
    assert number.tells(bands)
    assert not number.tells(listed)
    assert not bands.tells(number)


def test_a_join_has_the_name_of_a_coding_only_where_it_has_its_categories():
    left = Coding("ES4.001", "ES", tuple(map(Category, ["none", "full", "part", "retired"])))
    right = Coding("ES3.001", "ES", tuple(map(Category, ["a", "b", "c"])))
    pairs = frozenset({("full", "a"), ("full", "b"), ("part", "a"), ("retired", "c")})
    overlaps = (Overlap("ES4.001", "ES3.001", pairs),)
    world = Environment((Construct("ES", "status"),), (left, right), overlaps=overlaps)
    found = CodingGraph(world).join("ES4.001", "ES3.001")
    assert found.groups_left.tolist() == [0, 1, 1, 2]
    assert found.groups_right.tolist() == [1, 1, 2]
    assert (found.coding, found.stored) == ("ES3.101", False)
