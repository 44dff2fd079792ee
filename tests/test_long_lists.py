"""Lists too long to be shown whole: how many entries they leave out is said, and only then."""

import re
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from keyhole.core.names import quoted
from keyhole.protection import results
from keyhole.protection.tables import hierarchies
from keyhole.protection.tables import result as table_result
from keyhole.reidentification import rates
from keyhole.reviews import drafting
from keyhole.screening import dependence_screening
from keyhole.selection import frontier


def sets_of_a_frontier(count):
    frame = pl.DataFrame({"a": [1] * 9, "b": [1, 2, 3] * 3})
    found = frontier.frontier(frame, candidates=["a", "b"], limit=0.1)
    return replace(found, sets=found.sets * count).tables()[1].notes


def parts_of_a_study(count):
    counts = dict.fromkeys(("pairs", "true_pairs", "suspected", "confirmed"), 9)
    part = SimpleNamespace(label="x", rates=SimpleNamespace(**counts, conditional_rate=0.5))
    return rates.part_table("Parts", "part", [part] * count).notes


LISTS = {
    "names": (10, lambda count: [quoted("x" * count)]),
    "codes": (5, lambda count: [hierarchies._few("x" * count)]),
    "variables": (results._MOST_TOLD, lambda count: [results.meaning("lost", "x" * count)]),
    "columns of a draft": (drafting._NAMED, lambda count: [drafting._some("x" * count)]),
    "dependences": (dependence_screening.SHOWN, lambda n: dependence_screening._cut([[""]] * n)),
    "margins": (table_result.AUDITED, table_result._more),
    "sets": (frontier.SHOWN, sets_of_a_frontier),
    "parts": (rates.SHOWN, parts_of_a_study),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_says_how_many_entries_it_leaves_out(name):
    most, written = LISTS[name]
    for left in (-1, 0, 1, 2):
        said = " ".join(written(most + left))
        assert re.findall(r"(-?\d+) more", said) == [str(left)] * (left > 0)
