"""Hidden counts: a reader who solves for whole numbers that agree with all shown finds none."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

import keyhole
from keyhole.core.options import bind
from keyhole.errors import OptionError
from keyhole.reidentification.rates import Rates
from keyhole.reviews.count_sheets import CountSheet
from keyhole.reviews.group_tables import enter_groups, enter_tables, exposure_by_group
from keyhole.reviews.study_chapters import pair_tables, strata_table

SMALLEST = 3


class Reader:
    """A reader who solves for whole numbers that agree with all that is shown."""

    def __init__(self, names):
        self.place = {name: i for i, name in enumerate(names)}
        self.rows, self.least, self.most = [], [], []

    def learns(self, parts, least, most):
        row = np.zeros(len(self.place))
        for name, times in parts.items():
            row[self.place[name]] = times
        self.rows.append(row)
        self.least.append(least)
        self.most.append(most)

    def knows(self, parts):
        """Tell whether a sum of counts can be one number only."""
        aim = np.zeros(len(self.place))
        for name, times in parts.items():
            aim[self.place[name]] = times
        shown = LinearConstraint(np.array(self.rows), self.least, self.most)
        ends = []
        for sign in (1, -1):
            found = milp(sign * aim, constraints=shown, integrality=np.ones(len(aim)),
                         bounds=Bounds(0, np.inf))  # fmt: skip
            if found.status == 3:  # without end
                return False
            assert found.success, "the truth itself agrees with all that is shown"
            ends.append(round(sign * found.fun))
        return ends[0] == ends[1]


def read(text, size=None):
    """What a cell of a report says of a count."""
    if text in ("", "withheld"):
        return 0, np.inf
    if text.startswith("<"):
        return 0, int(text[1:]) - 1
    if "–" in text:
        low, high = (float(part) / 100 * size for part in text.rstrip("%").split("–"))
        return np.ceil(low - 1e-9), np.floor(high + 1e-9)
    if text.endswith("%"):
        rate, half = float(text[:-1]) / 100, 0.00005
        return (rate - half) * size, (rate + half) * size
    return int(text.replace(",", "")), int(text.replace(",", ""))


CELLS = st.one_of(
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.lists(st.sampled_from([1, 1, 2, 3, 9]), min_size=2, max_size=25),
    st.lists(st.sampled_from([2, 5, 9, 14, 20]), min_size=1, max_size=12),
)
# The records, the uniques, the cells of two and the larger cells of each group make up the rest.
PARTS = {"records": {"n": 1}, "uniques": {"u": 1}, "risky": {"u": 1, "d": 2},
         "cells": {"u": 1, "d": 1, "t": 1}}  # fmt: skip


def figures(cells):
    return {"records": sum(cells), "uniques": cells.count(1),
            "risky": sum(c for c in cells if c < 3), "cells": len(cells)}  # fmt: skip


@settings(deadline=None, max_examples=80)
@given(st.lists(CELLS, min_size=2, max_size=5))
@example([[1] * 12 + [2] * 6 + [9] * 5, [1, 20, 20], [2], [1] * 9 + [2] * 5 + [7] * 4])
@example([[1, 1, 2, 2, 9, 9] * 4, [2, 2, 2, 9, 9, 9, 9], [1]])
@example([[1] * 30 + [2] * 20 + [9] * 40, [1] * 8 + [2] * 6 + [9] * 4, [1, 20, 30, 40], [1], [2]])
def test_no_small_count_of_a_group_can_be_worked_out(groups):
    check_groups(groups)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(CELLS, min_size=3, max_size=5),
    st.sampled_from([{}, {"threshold": 12}, {"protect": "round"}, {"protect": "cell-key"}]),
)
@example([[9] * 10, [9] * 2, [1], [2]], {})
@example([[1] * 30, [2] * 20, [2]], {"protect": "cell-key"})
def test_a_table_beside_it_does_not_help(groups, options):
    """What the table suppresses the report does not show, and what it shows is known."""
    check_groups(groups, options | {"rows": "where", "seed": 1})


def check_groups(groups, options=None):
    rows = [
        {"where": f"g{i}", "age": f"{i}-{k}"}
        for i, cells in enumerate(groups)
        for k, size in enumerate(cells)
        for _ in range(size)
    ]
    found = keyhole.risk(pl.DataFrame(rows), keys=["age"], by="where", name_small_groups=True)
    sheet, published = CountSheet(SMALLEST), {}
    if options is not None:
        try:
            made = keyhole.table(pl.DataFrame(rows), **options)
        except OptionError:  # nothing is published
            return
        enter_tables(sheet, [(made, bind(keyhole.table, options))])
        published = {cell["where"]: cell["value"] for cell in made.cells if "where" in cell}
    reach = {"round": 4, "cell-key": 5}.get((options or {}).get("protect"), 0)
    table = exposure_by_group(sheet, found)
    shown = {row[0]: row[1:] for row in table.cells}
    entered = sheet.groups["where"]
    left = [one for i, one in enumerate(entered.sizes) if i not in entered.suppressed]
    if "unknown" in {one.state for one in left} or not entered.named:
        return  # nothing is told but the totals
    known = [figures(cells) for cells in groups]
    pooled = ["" if entered.suppressed else "<3", "", "", ""]
    rows = [shown.get(f"g{i}", pooled) for i in range(len(groups))]
    # With what a table tells to within `reach`, None of what it suppresses.
    told = [published.get(f"g{i}", 0 if reach else None) for i in range(len(groups))]
    reader = reader_of(known, rows, told, reach)
    before = None if options is None else reader_of(known, [[""] * 4] * len(rows), told, reach)
    for i, one in enumerate(known):
        small = [name for name in ("records", "uniques", "risky") if 0 < one[name] < SMALLEST]
        hidden = ["records"] if published.get(f"g{i}", 0) is None else []
        for name in dict.fromkeys(small + hidden):
            parts = {(i, part): times for part, times in PARTS[name].items()}
            if reader.knows(parts):  # unless the table and the file's totals tell it anyway
                assert before is not None, (name, i, shown)
                assert before.knows(parts), (name, i, shown, published)


@pytest.mark.parametrize(
    ("options", "by", "own", "named"),
    [
        ({}, "where", True, [0]),
        ({}, "where, sex", True, []),  # parts of what the table suppresses
        ({}, "where, sex", False, [0, 1]),  # of another file
        ({}, "sex", True, [0, 1]),
        ({"protect": "none"}, "where", True, [0, 1]),
        ({"weight": "weight"}, "where", True, [0, 1]),
        ({"magnitude": "weight"}, "where", True, [0, 1]),
    ],
)
def test_groups_that_a_table_tells_of_are_named_as_it_does(options, by, own, named):
    people = pl.DataFrame({"where": ["a"] * 40 + ["b"] * 9 + ["c"] + ["d"] * 2, "weight": 2.0})
    sheet = CountSheet(SMALLEST)
    asked = {"rows": "where", **options}
    enter_tables(sheet, [(keyhole.table(people, **asked), bind(keyhole.table, asked))])
    sizes = [("a", 40), ("b", 9), ("c", 1), ("d", 2)]
    groups = enter_groups(sheet, by, sizes, own=own)
    assert groups.named == named
    assert (str(groups.sizes[0]), groups.is_described(0, 1)) == (
        ("40", True) if named else ("withheld", False)
    )


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, ["40", "withheld", "withheld", "withheld"]),
        ({"threshold": 2}, ["40", "9", "withheld", "withheld"]),
        ({"protect": "round"}, ["40", "9", "<3", "<3"]),
        ({"protect": "none"}, ["40", "9", "<3", "<3"]),
    ],
)
def test_a_small_group_is_shown_only_if_a_table_shows_it(options, shown):
    people = pl.DataFrame({"where": ["a"] * 40 + ["b"] * 9 + ["c"] + ["d"] * 2})
    sheet, asked = CountSheet(SMALLEST), {"rows": "where", **options}
    enter_tables(sheet, [(keyhole.table(people, **asked), bind(keyhole.table, asked))])
    groups = enter_groups(sheet, "where", [("a", 40), ("b", 9), ("c", 1), ("d", 2)])
    assert [str(one) for one in groups.sizes] == shown
    other = CountSheet(SMALLEST)
    other.published["where"] = [({"a": 1, "b": 5}, 0)]  # a group of one, in a table of totals
    assert [str(one) for one in enter_groups(other, "where", [("a", 1), ("b", 5)]).sizes] == [
        "1",
        "5",
    ]


def reader_of(known, rows, told, reach):
    """A reader of the rows, of a table and of the totals of the file."""
    reader = Reader([(i, part) for i in range(len(known)) for part in "nudt"])
    total = sum(one["records"] for one in known)
    for i, (one, texts) in enumerate(zip(known, rows, strict=True)):
        low, high = read(texts[0])
        least = SMALLEST if texts[0] == "withheld" else 1
        reader.learns({(i, "n"): 1}, max(low, least), high)
        if told[i] is not None:
            reader.learns({(i, "n"): 1}, told[i] - reach, told[i] + reach)
        rest = {(i, "n"): 1, (i, "u"): -1, (i, "d"): -2}
        reader.learns({**rest, (i, "t"): -3}, 0, np.inf)
        reader.learns({**rest, (i, "t"): -total}, -np.inf, 0)
        for name, text in zip(("uniques", "risky", "cells"), texts[1:], strict=True):
            parts = {(i, part): times for part, times in PARTS[name].items()}
            if not text.endswith("%") or texts[0].isdigit():
                reader.learns(parts, *read(text, one["records"]))
    for name, parts in PARTS.items():
        every = {(i, p): times for i in range(len(known)) for p, times in parts.items()}
        total = sum(one[name] for one in known)
        reader.learns(every, total, total)
    return reader


STRATUM = st.integers(1, 40).flatmap(
    lambda records: st.integers(0, records).flatmap(
        lambda suspected: st.tuples(st.just(records), st.just(suspected), st.integers(0, suspected))
    )
)


@settings(deadline=None, max_examples=80)
@given(st.lists(STRATUM, min_size=2, max_size=6))
def test_no_small_count_of_a_stratum_can_be_worked_out(strata):
    parts = [
        SimpleNamespace(label=f"s{i}", rates=Rates(records, suspected, suspected, confirmed, 0))
        for i, (records, suspected, confirmed) in enumerate(strata)
    ]
    linkage = SimpleNamespace(strata=("state",))
    study = SimpleNamespace(by_stratum=parts, linkage=linkage, gaps=None)
    sheet = CountSheet(SMALLEST)
    table = strata_table(study, sheet, SimpleNamespace(puf=None, named_groups=()))
    rows = {row[0]: row[1:] for row in table.cells}
    if "unknown" in {size.state for size in sheet.groups["state"].sizes}:
        return  # nothing is told but the totals
    reader = Reader([(i, what) for i in range(len(strata)) for what in range(3)])
    for i, (_, suspected, _) in enumerate(strata):
        texts = rows.get(f"s{i}", ["<3", "", "", "", ""])
        reader.learns({(i, 0): 1}, 1, np.inf)
        for what in range(3):
            low, high = read(texts[what])
            least = SMALLEST if texts[what] == "withheld" else low
            reader.learns({(i, what): 1}, least, high)
        reader.learns({(i, 0): 1, (i, 1): -1}, 0, np.inf)
        reader.learns({(i, 1): 1, (i, 2): -1}, 0, np.inf)
        if texts[3].endswith("%") and texts[1].isdigit():
            reader.learns({(i, 2): 1}, *read(texts[3], suspected))
    for what in range(3):
        total = sum(one[what] for one in strata)
        reader.learns({(i, what): 1 for i in range(len(strata))}, total, total)
    for i, counts in enumerate(strata):
        for what, count in enumerate(counts):
            if 0 < count < SMALLEST:
                assert not reader.knows({(i, what): 1}), (i, what, rows)


PAIRS = st.lists(
    st.tuples(st.sets(st.integers(0, 3), min_size=1), st.booleans(), st.integers(1, 2)),
    min_size=3,
    max_size=30,
)


@settings(deadline=None, max_examples=80)
@given(PAIRS)
@example([({0, 1, 2, 3}, True, 1)] * 20 + [({0, 1, 2}, False, 1)] * 3 + [({0}, True, 2)])
def test_no_small_count_of_pairs_can_be_worked_out(pairs):
    """The tables by agreement, by rank and by variable are of the same pairs."""
    check_pairs(pairs)


def test_no_small_count_of_nine_pairs_can_be_worked_out():
    few = [({0, 1}, True, 2), ({0, 1, 2, 3}, True, 2), ({2}, False, 2), ({0, 1, 2}, False, 1)]
    few += [({0, 1, 2}, True, 2), ({2}, False, 1), ({1, 3}, False, 1), ({0}, True, 1)]
    check_pairs([*few, ({0, 1, 2, 3}, False, 1)])


def check_pairs(pairs):

    def parts(number):
        labels = sorted({number(pair) for pair in pairs})
        return [
            SimpleNamespace(label=n, rates=Rates(0, len(own), 0, 0, sum(p[1] for p in own)))
            for n in labels
            for own in [[pair for pair in pairs if number(pair) == n]]
        ]

    by_agreement, by_rank = parts(lambda pair: len(pair[0])), parts(lambda pair: pair[2])
    every, right = len(pairs), sum(pair[1] for pair in pairs)
    uses = [
        SimpleNamespace(
            variable=f"v{v}",
            pairs_agreeing=sum(v in p[0] for p in pairs),
            true_pairs_agreeing=sum(v in p[0] and p[1] for p in pairs),
        )
        for v in range(4)
    ]
    study = SimpleNamespace(
        by_agreement=by_agreement, by_place=by_rank, by_variables=uses, is_by_unicity=False,
        rates=Rates(0, every, 0, 0, right), linkage=SimpleNamespace(agreeing_in_words="")
    )  # fmt: skip
    sheet = CountSheet(SMALLEST)
    tables = [table.cells for table in pair_tables(study, sheet)]
    if "unknown" in {one.state for one in sheet.counts if one.value and one.state != "exact"} and (
        all("withheld" in row for table in tables[:2] for row in table)
    ):
        return
    # What a pair is: the variables it agrees on, whether it is true, and its rank.
    kinds = [(frozenset(v), true, rank) for n in range(1, 5) for v in combinations(range(4), n)
             for true in (False, True) for rank in (1, 2)]  # fmt: skip
    names = [(t, i, w) for t in range(2) for i in range(len(tables[t])) for w in range(2)]
    names += [(2, v, w) for v in range(4) for w in range(2)]
    reader = Reader([*names, *kinds])

    def is_counted(kind, name):
        table, place, only_true = name
        inside = [
            lambda: len(kind[0]) == by_agreement[place].label,
            lambda: kind[2] == by_rank[place].label,
            lambda: place in kind[0],
        ][table]()
        return inside and (kind[1] or not only_true)

    for name in names:
        reader.learns({name: -1, **{kind: 1 for kind in kinds if is_counted(kind, name)}}, 0, 0)
    for only_true, total in enumerate((every, right)):
        reader.learns({kind: 1 for kind in kinds if kind[1] or not only_true}, total, total)
    for t, known in enumerate((by_agreement, by_rank)):
        for i, (row, part) in enumerate(zip(tables[t], known, strict=True)):
            for w in range(2):
                low, high = read(row[1 + w])
                reader.learns({(t, i, w): 1}, max(low, SMALLEST * (row[1 + w] == "withheld")), high)
            if row[3].endswith("%") and row[1].isdigit():
                reader.learns({(t, i, 1): 1}, *read(row[3], part.rates.pairs))
            elif row[3].endswith("%"):  # of a hidden number
                low, high = read(row[3], 1)
                reader.learns({(t, i, 1): 1, (t, i, 0): -low}, 0, np.inf)
                reader.learns({(t, i, 1): 1, (t, i, 0): -high}, -np.inf, 0)
    for v, row in enumerate(tables[2]):
        for w, total in enumerate((every, right)):
            if row[1 + w].endswith("%"):
                reader.learns({(2, v, w): 1}, *read(row[1 + w], total))
    for t, known in enumerate((by_agreement, by_rank)):
        for i, part in enumerate(known):
            for w, count in enumerate((part.rates.pairs, part.rates.true_pairs)):
                if 0 < count < SMALLEST:
                    assert not reader.knows({(t, i, w): 1}), (t, i, w, tables)


def test_the_share_in_the_smallest_set_is_that_of_the_study():
    study = SimpleNamespace(
        by_agreement=[SimpleNamespace(label=2, rates=Rates(0, 900, 0, 0, 800))],
        by_place=[SimpleNamespace(label=1, rates=Rates(0, 900, 0, 0, 800))],
        by_variables=[
            SimpleNamespace(variable=name, pairs_agreeing=900, true_pairs_agreeing=800,
                            share_in_smallest_subset=part)
            for name, part in (("sex", 0.25), ("age", 0.75))
        ],
        is_by_unicity=True,
        rates=Rates(0, 900, 0, 0, 800),
        linkage=SimpleNamespace(agreeing_in_words=""),
    )  # fmt: skip
    *_, uses = pair_tables(study, CountSheet(SMALLEST))
    assert [[str(cell) for cell in row] for row in uses.cells] == [
        ["sex", "100%", "100%", "25%"], ["age", "100%", "100%", "75%"],
    ]  # fmt: skip
