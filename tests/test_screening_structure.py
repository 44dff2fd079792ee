"""Structure: planted rules are found, noise has none, and counts agree with slow twins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.data import load
from keyhole.kernels.crosstab import empty_triples, fit_pairs, triple_table
from keyhole.screening.structure import condition, find_structure
from keyhole.synthesis.rules import EditRules

FILES = 100


def noise(seed: int) -> pl.DataFrame:
    """Make a file without structure: related categories and numbers, and blanks at random."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1_500, 4_000))
    common = random.normal(size=n)
    columns: dict[str, pl.Series] = {}
    for c in range(5):
        levels = int(random.integers(2, 7))
        pull = random.normal(size=levels) * random.choice([0.0, 0.5])
        chance = np.exp(np.outer(common, pull) + random.normal(size=levels))
        chance /= chance.sum(axis=1, keepdims=True)
        drawn = (chance.cumsum(axis=1) < random.random((n, 1))).sum(axis=1)
        columns[f"c{c}"] = pl.Series(np.minimum(drawn, levels - 1))
    for c in range(4):
        value = random.choice([0.0, 0.7]) * common + random.normal(size=n)
        columns[f"x{c}"] = pl.Series((value * 100).round().astype(int) + 1_000)
    columns["shift"] = columns["x0"] + pl.Series(random.normal(150, 60, n).round().astype(int))
    columns["gappy"] = pl.Series(random.integers(0, 50, n)).set(
        pl.Series(random.random(n) < 0.3), None
    )
    return pl.DataFrame(columns)


def test_noise_has_no_structure() -> None:
    """At most one file in a hundred may show anything: more than five of a hundred never."""
    shown = {seed: find_structure(load(noise(seed))) for seed in range(FILES)}
    found = [[one.rule for one in some] for some in shown.values() if some]
    assert len(found) <= 3, found


def planted(seed: int) -> tuple[pl.DataFrame, dict[str, pl.Expr]]:
    """Plant structure in noise; return the file, and for each what a record may not be."""
    random = np.random.default_rng(seed)
    frame = noise(seed)
    n = frame.height
    # Two groups that never meet, and three of which every two meet.
    frame = frame.with_columns(
        p=pl.Series(random.integers(0, 3, n)), q=pl.Series(random.integers(0, 3, n)),
        r=pl.Series(random.integers(0, 3, n)), s=pl.Series(random.integers(0, 3, n)),
    )  # fmt: skip
    while frame.filter(p=1, q=2).height or frame.filter(p=2, r=0, s=1).height:
        redo = ((pl.col("p") == 1) & (pl.col("q") == 2)) | (
            (pl.col("p") == 2) & (pl.col("r") == 0) & (pl.col("s") == 1)
        )
        fresh = pl.Series("fresh", random.integers(0, 3, n))
        frame = frame.with_columns(
            q=pl.when(redo & (pl.col("p") == 1)).then(fresh).otherwise("q"),
            s=pl.when(redo & (pl.col("p") == 2)).then(fresh).otherwise("s"),
        )
    wage = pl.Series("wage", random.integers(0, 80, n) * 1_000) * pl.Series(random.random(n) < 0.7)
    other = pl.Series((random.exponential(20_000, n)).round(-2).astype(int))
    other = other * pl.Series(random.random(n) < 0.6)
    rent = pl.Series("rent", random.integers(1, 30, n) * 100)
    few = pl.Series(random.random(n) < 0.002)  # exceptions
    frame = frame.with_columns(
        wage=wage.cast(pl.Int64), rent=rent, cost=pl.Series(random.integers(1, 900, n)),
        income=(wage + other).cast(pl.Int64),
        age=pl.Series(random.integers(18, 80, n)), sex=pl.Series(random.choice([*"fm"], n)),
    ).with_columns(
        income=pl.when(few).then(pl.col("wage") - 500).otherwise("income"),
        total=pl.col("rent") + pl.col("cost"),
        assets=pl.Series(random.integers(-50, 400, n)) * pl.Series(random.random(n) < 0.1),
    ).with_columns(
        all=pl.when(few.shift(1, fill_value=False)).then(7)
        .otherwise(pl.col("total") + pl.col("wage") + pl.col("assets")),
        child=pl.when((pl.col("sex") == "f") & (pl.col("age") <= 50)).then(
            pl.Series(random.integers(0, 3, n))
        ),
        period=pl.when(pl.col("age") >= 60).then(pl.Series(random.integers(0, 2, n))).otherwise(0),
        band=pl.col("age") // 10,
    )  # fmt: skip
    p, q, r, s = (pl.col(name) for name in "pqrs")
    never = {
        "pair": (p == 1) & (q == 2),
        "triple": (p == 2) & (r == 0) & (s == 1),
        "order": pl.col("wage") > pl.col("income") + 2_000,
        "sum": pl.col("total") != pl.col("rent") + pl.col("cost"),
        "sum of three": pl.col("all") != pl.col("total") + pl.col("wage") + pl.col("assets"),
        "routing": pl.col("child").is_not_null() & (pl.col("sex") == "m"),
        "blank": pl.col("child").is_null() & (pl.col("sex") == "f") & (pl.col("age") < 45),
        "range": (pl.col("period") == 1) & (pl.col("age") < 60),
        "determined": pl.col("band") != pl.col("age") // 10,
    }
    return frame, never


@pytest.mark.parametrize("part", range(5))
def test_planted_structure_is_found(part: int) -> None:
    """Every record that breaks what was planted breaks a rule that was found."""
    for seed in range(part, FILES, 5):
        frame, never = planted(1_000 + seed)
        data = load(frame, kinds={"age": "measure", "rent": "measure", "band": "category"})
        found = find_structure(data)
        rules = EditRules.parse({str(i): one.rule for i, one in enumerate(found)})
        # The file keeps what was found, with the exceptions that were counted.
        assert rules.broken(data).sum(axis=0).tolist() == [one.exceptions for one in found]
        shuffled = frame.select(
            pl.col(name).shuffle(seed=i) for i, name in enumerate(frame.columns)
        )
        broken = rules.broken(shuffled).any(axis=1)
        for name, breaks in never.items():
            wrong = shuffled.select(breaks.fill_null(value=False)).to_series().to_numpy()
            assert wrong.sum() >= 20, name
            missed = shuffled.filter(pl.Series(wrong & ~broken))
            assert missed.is_empty(), (seed, name)


def test_numbers_as_large_as_can_be_have_no_structure() -> None:
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({name: draw.integers(1, 50, 2000) * 1.7e306 for name in "ab"})
    frame = frame.with_columns(c=pl.col("a") + pl.col("b"))
    data = load(frame, kinds=dict.fromkeys("abc", "measure"))
    assert not find_structure(data)


def test_structures_read_as_sentences() -> None:
    """Each kind is a sentence and a rule."""
    frame, _ = planted(7)
    data = load(frame, kinds={"age": "measure", "rent": "measure", "band": "category"})
    by_kind = {one.kind: one for one in find_structure(data) if "band" not in one.columns[1:]}
    [order] = [one for one in find_structure(data) if one.rule == "wage <= income"]
    assert order.exceptions > 0
    assert order.sentence.startswith(f"wage <= income: {order.exceptions} exception")
    assert {one.rule for one in find_structure(data) if one.kind == "sum"} == {
        "total == rent + cost",
        "all == wage + total + assets",
    }
    assert "blank exactly where" in by_kind["routing"].sentence
    assert by_kind["determined"].sentence.startswith("band follows from age: no exception in")


codes = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=60
)


@given(codes)
def test_three_way_tables_and_their_fit(rows: list[tuple[int, int, int]]) -> None:
    """Cells are counted one by one, and the fit has the table's two-way margins."""
    columns = np.array(rows, dtype=np.uint8).T.copy()
    table = triple_table(columns[0], columns[1], columns[2], np.array([3, 4, 3]))
    for i, j, h in itertools.product(range(3), range(4), range(3)):
        assert table[i, j, h] == rows.count((i, j, h))
    fitted = fit_pairs(table)
    for axis in range(3):
        np.testing.assert_allclose(fitted.sum(axis), table.sum(axis), atol=0.02 * len(rows))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.5, 6))
def test_empty_triples_by_brute_force(seed: int, least: float) -> None:
    """The empty cells, and all cells tested, are those of a slow fit."""
    random = np.random.default_rng(seed)
    columns = np.stack([random.integers(0, size, 80) for size in (3, 2, 4)]).astype(np.uint8)
    table = np.zeros((3, 2, 4))
    np.add.at(table, tuple(columns), 1)
    fitted = np.ones_like(table)
    for _ in range(500):
        for axis in (2, 1, 0):
            have = fitted.sum(axis, keepdims=True)
            fitted = fitted * np.divide(
                table.sum(axis, keepdims=True), have, out=np.zeros_like(have), where=have > 0
            )
    sizes, others = np.array([3, 2, 4]), np.array([-1, -1, 3])
    cells, expected, tested = empty_triples(columns, sizes, others, np.array([[0, 1, 2]]), least)
    near = np.abs(fitted - least) < 0.05  # where the two fits may differ
    if near.any():
        return
    large = (fitted >= least) & (np.arange(4) != 3)
    assert tested == large.sum()
    slow = np.argwhere(large & (table == 0)).tolist()
    assert cells[:, 1:].tolist() == slow
    np.testing.assert_allclose(expected, [fitted[tuple(one)] for one in slow], atol=0.05)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_empty_pairs_by_brute_force(seed: int) -> None:
    """The pairs forbidden are those that nobody has and chance would make many of."""
    random = np.random.default_rng(seed)
    n = 1_200
    a, b = random.integers(0, 4, n), random.integers(0, 5, n)
    for _ in range(int(random.integers(0, 4))):
        i, j = random.integers(4), random.integers(5)
        keep = ~((a == i) & (b == j))
        a, b = a[keep], b[keep]
    frame = pl.DataFrame({"a": a, "b": b})
    rules = EditRules.parse([one.rule for one in find_structure(load(frame))])
    counts = dict.fromkeys(itertools.product(range(4), range(5)), 0)
    for pair in zip(a.tolist(), b.tolist(), strict=True):
        counts[pair] += 1
    every = pl.DataFrame(list(counts), schema=["a", "b"], orient="row")
    forbidden = rules.broken(every).any(axis=1) if len(rules) else np.zeros(20, dtype=bool)
    expected = [(a == i).sum() * (b == j).sum() / len(a) for i, j in counts]
    tested = sum(e >= math.log(1_000) for e in expected)
    for pair, no, e in zip(counts, forbidden, expected, strict=True):
        assert no == (counts[pair] == 0 and e >= math.log(max(tested, 1) * 1_000)), pair


@given(st.sets(st.integers(0, 6), min_size=1, max_size=6))
def test_conditions_say_their_codes(some: set[int]) -> None:
    """A condition holds for its own values and for no others."""
    for levels in (pl.Series([1, 2, 3, 5, 8, 13]), pl.Series([*"abcde", "it's"])):
        text = condition("x y", levels, sorted(some))
        rule = EditRules.parse([f"true => {text}"])
        frame = pl.DataFrame({"x y": levels.extend_constant(None, 1)})
        kept = ~rule.broken(frame)[:, 0]
        for code in range(6):
            assert kept[code] == (code in some)
