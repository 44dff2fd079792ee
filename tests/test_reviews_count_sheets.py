"""Count sheets: what is shown leaves every small count at least two values."""

import itertools
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.reviews.count_sheets import BANDS, WITHHELD, CountSheet

MOST = 7


def possible(text, floor, least):
    """Say which numbers a reader who knows the rule reads out of a count's text."""
    if text == WITHHELD:
        return set(range(max(floor, least), MOST + 6))
    if text.startswith("<"):
        return set(range(floor, int(text[1:])))
    return {int(text)}


def fits(text, part, whole):
    """Say whether a rate's text can be that of two numbers."""
    if text in (WITHHELD, "not estimable"):
        return True
    if "–" in text:
        low, high = (float(end) / 100 for end in text.rstrip("%").split("–"))
        return low * whole - 1e-9 <= part <= high * whole + 1e-9
    return whole > 0 and abs(part / whole - float(text.rstrip("%")) / 100) <= 0.00005 + 1e-9


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.integers(1, MOST).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
        min_size=2,
        max_size=3,
    )
)
def test_no_small_count_can_be_worked_out(rows):
    """Every table that agrees with what is shown is tried: sizes, parts, and their shares."""
    sheet = CountSheet(3)
    sizes = [sheet.count(size, floor=1) for size, _ in rows]
    parts = [sheet.count(part, of=size) for (_, part), size in zip(rows, sizes, strict=True)]
    rates = [sheet.rate(part, size) for part, size in zip(parts, sizes, strict=True)]
    totals = [sum(size for size, _ in rows), sum(part for _, part in rows)]
    sheet.add_up(sizes, totals[0])
    sheet.add_up(parts, totals[1])
    texts = [(str(s), str(p), str(r)) for s, p, r in zip(sizes, parts, rates, strict=True)]
    # Small counts are withheld only where nothing else helps; then "withheld" says nothing.
    hidden = [text for row, shown in zip(rows, texts, strict=True)
              for n, text in zip(row, shown[:2], strict=True) if n < 3]  # fmt: skip
    least = 0 if WITHHELD in hidden else 3
    choices = [
        [
            (size, part)
            for size in possible(s, 1, least)
            for part in possible(p, 0, least)
            if part <= size and fits(r, part, size)
        ]
        for s, p, r in texts
    ]
    tables = [
        table
        for table in itertools.product(*choices)
        if [sum(column) for column in zip(*table, strict=True)] == totals
    ]
    assert tuple(rows) in tables
    if all(text == WITHHELD for shown in texts for text in shown[:2]):
        return  # only the totals are told
    for i, (size, part) in enumerate(rows):
        if 0 < size < 3:
            assert len({table[i][0] for table in tables}) > 1, texts
        if 0 < part < 3:
            assert len({table[i][1] for table in tables}) > 1, texts


def test_linked_tables_are_protected_together():
    """Pairs by the number of variables they agree on, and by variable: memberships link them."""
    sheet = CountSheet(3)
    agreeing = {5: sheet.count(40), 4: sheet.count(19), 3: sheet.count(4), 2: sheet.count(2)}
    sheet.add_up(agreeing.values(), 65)
    variables = [sheet.count(n, of=sheet.total(65)) for n in (64, 63, 60, 59, 46)]
    memberships = sum(number * count.value for number, count in agreeing.items())
    assert memberships == sum(count.value for count in variables)
    sheet.weigh_up(
        [*((count, number) for number, count in agreeing.items()), *((v, -1) for v in variables)], 0
    )
    shown = [str(count) for count in (*agreeing.values(), *variables)]
    assert shown[3] == "<3"
    assert sum(text == WITHHELD for text in shown) >= 2


def test_two_tiny_groups_do_not_blank_a_table():
    sheet = CountSheet(3)
    sizes = [sheet.count(size, floor=1) for size in (1, 1, 7, 500, 80)]
    sheet.add_up(sizes, 589)
    assert [str(size) for size in sizes] == ["<3", "<3", WITHHELD, "500", "80"]


def test_totals_of_the_file_are_shown():
    sheet = CountSheet(3)
    assert str(sheet.total(2)) == "2"


def test_a_sheet_takes_nothing_more_once_it_is_read():
    import pytest

    sheet = CountSheet(3)
    assert str(sheet.count(5)) == "5"
    with pytest.raises(RuntimeError):
        sheet.count(3)


def test_bands_hold_several_counts():
    sheet = CountSheet(3)
    whole = sheet.total(40)
    rate = sheet.rate(sheet.count(1, of=whole), whole)
    low, high = map(int, re.fullmatch(r"(\d+)–(\d+)%", str(rate)).groups())
    assert (high - low) / 100 * 40 >= 6
    assert high - low in BANDS


def test_being_one_or_two_short_of_a_whole_must_stay_uncertain():
    sheet = CountSheet(3)
    for short in range(5):
        sheet.count(9 - short, of=sheet.count(9))
    assert [(of.value, part.value) for (of, _), (part, _) in sheet._targets()] == [(9, 8), (9, 7)]
    small = [sheet.count(value) for value in range(5)]
    single = [terms for terms in sheet._targets() if len(terms) == 1]
    assert single == [((small[1], 1),), ((small[2], 1),)]
