"""Attribute disclosure: every measure against a slow twin, and tables worked by hand."""

import json
import math
import random
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise
from tempfile import TemporaryDirectory
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

import keyhole
from keyhole.cli.main import run
from keyhole.engines import partition
from keyhole.engines.choose import local_engine
from keyhole.errors import InputError, OptionError
from keyhole.exposure.attributes_cells import AttributeCells
from keyhole.kernels.attributes import count_values
from keyhole.results import share

GOLDEN = (math.sqrt(5) - 1) / 2  # no difference of whole numbers lies on this boundary
ANSWERS = st.sampled_from([None, "a", "b", "c"])
frames = st.lists(
    st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([0, 1]), ANSWERS, st.integers(0, 4)),
    min_size=1,
    max_size=25,
).map(
    lambda rows: pl.DataFrame(
        rows, schema={"k": pl.Int64, "j": pl.Int64, "s": pl.String, "x": pl.Int64}, orient="row"
    )
)


def by_cell(frame, keys, column):
    """The slow twin begins here: the values of each cell."""
    cells = defaultdict(list)
    for row in frame.iter_rows(named=True):
        cells[tuple(row[k] for k in keys)].append(row[column])
    return list(cells.values())


def slow(frame, keys, column, cutoff=3):
    cells, n = by_cell(frame, keys, column), frame.height
    whole = Counter(frame[column].to_list())
    alone = [c for c in cells if len(set(c)) == 1]
    share = {v: Fraction(k, n) for v, k in whole.items()}

    def equal(cell):
        mine = Counter(cell)
        return sum(abs(Fraction(mine[v], len(cell)) - share[v]) for v in whole) / 2

    def entropy(cell):
        return -sum(k / len(cell) * math.log(k / len(cell)) for k in Counter(cell).values())

    return {
        "homogeneous_records": sum(map(len, alone)),
        "homogeneous_cells": len(alone),
        "uncommon_records": sum(len(c) for c in alone if whole[c[0]] < max(whole.values())),
        "hidden_by_rp": sum(len(c) for c in alone if len(c) >= cutoff),
        "distinct": min(len(set(c)) for c in cells),
        "entropy": math.exp(min(map(entropy, cells))),
        "t": float(max(map(equal, cells))),
        "beta": max(
            float((Fraction(k, len(c)) - share[v]) / share[v])
            for c in cells
            for v, k in Counter(c).items()
        ),
        "cap": float(sum(Fraction(k * k, len(c)) for c in cells for k in Counter(c).values()) / n),
        "base_rate": float(sum(s * s for s in share.values())),
    }


def cells_of_patterns(data, keys, names):
    return {name: AttributeCells(data, keys, name=name) for name in names}


@pytest.mark.parametrize("by_column", [AttributeCells.by_column, cells_of_patterns])
@settings(max_examples=100, deadline=None)
@given(frames, st.sampled_from([["k"], ["k", "j"]]))
def test_every_measure_equals_its_slow_twin(by_column, frame, keys):
    with patch.object(AttributeCells, "by_column", by_column):
        found = keyhole.attributes(frame, keys=keys, sensitive=["s"]).sensitive["s"]
    twin = slow(frame, keys, "s")
    assert found.homogeneous_records == twin["homogeneous_records"]
    assert found.homogeneous == twin["homogeneous_records"] / frame.height
    assert found.homogeneous_cells == twin["homogeneous_cells"]
    assert found.uncommon_records == twin["uncommon_records"]
    assert found.hidden_by_rp == twin["hidden_by_rp"]
    assert found.l.distinct == twin["distinct"]
    assert found.l.entropy == pytest.approx(twin["entropy"])
    assert found.t_closeness == pytest.approx(twin["t"])
    assert found.beta == pytest.approx(twin["beta"])
    assert found.cap == pytest.approx(twin["cap"])
    assert found.base_rate == pytest.approx(twin["base_rate"])


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**40, 2**63]), max_size=60),
    st.sampled_from([1, 24]),
    st.booleans(),
)
def test_words_are_sorted(words, times, shared):
    before = partition.WORDS_TO_SHARE, partition.ROWS_TO_SHARE, partition.WORKERS
    if shared:
        partition.WORDS_TO_SHARE, partition.ROWS_TO_SHARE, partition.WORKERS = 1, 1, 3
    try:
        found = np.array(words * times, dtype=np.uint64)
        partition.sort_in_threads(found)
        assert found.tolist() == sorted(words * times)
    finally:
        partition.WORDS_TO_SHARE, partition.ROWS_TO_SHARE, partition.WORKERS = before


@given(frames)
def test_records_lie_in_the_order_of_their_cells(frame):
    data = keyhole.load(frame)
    starts, order, beside = local_engine(data, ["k", "j", "s"]).by_cell(["k", "j"], ["s"])
    rows = order()
    words, (shift, bits) = beside["s"]
    codes = (words.astype(np.int64) >> shift) & (1 << bits) - 1
    assert codes.tolist() == data.codes("s").values[rows].tolist()
    cells = [frame.select("k", "j")[rows[a:b].tolist()].rows() for a, b in pairwise(starts)]
    assert sorted(rows.tolist()) == list(range(frame.height))
    assert all(len({*cell}) == 1 for cell in cells)
    assert len({cell[0] for cell in cells}) == len(cells)


@settings(max_examples=100, deadline=None)
@given(frames, st.sampled_from(["equal", "ordered"]))
def test_a_further_key_never_tells_less(frame, distance):
    """What the page on the method says of the measures that prune a search."""
    coarse, fine = (
        keyhole.attributes(frame, keys=keys, sensitive=["s"], distance=distance).sensitive["s"]
        for keys in (["k"], ["k", "j"])
    )
    rises = ("homogeneous", "uncommon_records", "cap", "beta", "t_closeness")
    for name in rises:
        before, after = getattr(coarse, name), getattr(fine, name)
        assert before is None or after >= before - 1e-9
    assert fine.l.distinct <= coarse.l.distinct
    assert fine.l.entropy <= coarse.l.entropy + 1e-9


AGES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, None, 1, 2, 4, 9])), min_size=2)


@settings(max_examples=60, deadline=None)
@given(AGES.filter(lambda rows: any(x is not None for _, x in rows)))
def test_an_ordered_distance_leaves_missing_values_out(rows):
    frame = pl.DataFrame(rows, schema={"k": pl.Int64, "x": pl.Int64}, orient="row")
    found = keyhole.attributes(frame, keys=["k"], sensitive=["x"], distance="ordered")
    known = [x for _, x in rows if x is not None]
    values = sorted(set(known))

    def moved(cell):
        gap = total = Fraction(0)
        for v in values:
            gap += Fraction(cell.count(v), len(cell)) - Fraction(known.count(v), len(known))
            total += abs(gap)
        return total / max(len(values) - 1, 1)

    cells = [[x for x in cell if x is not None] for cell in by_cell(frame, ["k"], "x")]
    furthest = max(moved(cell) for cell in cells if cell)
    assert found.sensitive["x"].t_closeness == pytest.approx(float(furthest))


@settings(max_examples=100, deadline=None)
@given(frames)
def test_ordered_distance_and_recursive_diversity_equal_their_slow_twins(frame):
    found = keyhole.attributes(
        frame, keys=["k"], sensitive=["x"], distance="ordered", diversity=2, recursion=2
    ).sensitive["x"]
    cells, n = by_cell(frame, ["k"], "x"), frame.height
    values = sorted(set(frame["x"]))
    steps = len(values) - 1

    def moved(cell):
        gap = total = Fraction(0)
        for v in values:
            gap += Fraction(cell.count(v), len(cell)) - Fraction(frame["x"].to_list().count(v), n)
            total += abs(gap)
        return total / steps if steps else Fraction(0)

    assert found.t_closeness == pytest.approx(float(max(map(moved, cells))))
    short = {s.measure: s for s in found.short}
    few = [
        c
        for c in cells
        if Counter(c).most_common(1)[0][1] >= 2 * (len(c) - max(Counter(c).values()))
    ]
    assert short["recursive diversity, c ="].records == sum(map(len, few))
    far = [c for c in cells if moved(c) > Fraction(1, 5)]
    assert short["t of"].cells == len(far)
    assert short["t of"].records == sum(map(len, far))


@settings(max_examples=80, deadline=None)
@given(frames)
def test_numbers_near_each_other_equal_their_slow_twin(frame):
    frame = frame.with_columns(pl.col("x").cast(pl.Float64) * 10)
    found = (
        keyhole.attributes(
            keyhole.load(frame, kinds={"x": "measure"}),
            keys=["k"],
            sensitive=["x"],
            tolerance=GOLDEN,
        )
        .sensitive["x"]
        .numbers
    )
    spread = frame["x"].std() or 0.0
    cells = by_cell(frame, ["k"], "x")
    near = sum(
        sum(abs(a - b) <= GOLDEN * spread for b in cell) / len(cell) for cell in cells for a in cell
    )
    assert found.within == pytest.approx(near / frame.height)
    narrow = [c for c in cells if max(c) - min(c) <= 2 * GOLDEN * spread]
    assert found.narrow_records == sum(map(len, narrow))
    ruled = [c for c in cells if len(c) > 1 and sum(c) and max(c) / sum(c) > 0.5]
    assert found.dominated_records == sum(map(len, ruled))


@settings(max_examples=60, deadline=None)
@given(frames)
def test_the_grid_counts_the_levels_of_two_keys(frame):
    found = keyhole.attributes(frame, keys=["k", "j"], sensitive=["s"], cutoff=3)
    if found.grid is None:
        assert 1 in (frame["k"].n_unique(), frame["j"].n_unique(), frame["s"].n_unique()) or (
            not found.sensitive["s"].hidden_by_rp
        )
        return
    assert found.plot().to_dict()
    rows = {(one.row, one.column): (one.records, one.homogeneous) for one in found.grid.cells}
    down, across = found.grid.rows, found.grid.columns
    expected = {}
    for (y, x), part in frame.group_by([down, across]):
        if part.height >= 3:  # both keys: each pair of levels is one cell
            words = tuple("(missing)" if one is None else str(one) for one in (y, x))
            expected[words] = (part.height, part.height if part["s"].n_unique() == 1 else 0)
    assert rows == expected


def test_the_table_of_machanavajjhala_et_al():
    """Their 4-anonymous table of twelve patients (2007, figure 2): the third block has cancer."""
    frame = pl.DataFrame(
        {
            "zip": ["130**"] * 4 + ["1485*"] * 4 + ["130*"] * 4,
            "age": ["<30"] * 4 + [">=40"] * 4 + ["3*"] * 4,
            "condition": ["heart", "heart", "viral", "viral", "cancer", "heart", "viral", "viral"]
            + ["cancer"] * 4,
        }
    )
    found = keyhole.attributes(frame, keys=["zip", "age"], sensitive=["condition"])
    one = found.sensitive["condition"]
    assert found.rp == 0
    assert (one.homogeneous_records, one.hidden_by_rp) == (4, 4)
    assert (one.l.distinct, one.l.entropy) == (1, 1.0)


def test_the_diverse_table_of_machanavajjhala_et_al():
    """The same patients, 3-diverse (2007, figure 3): every block has counts 2, 1, 1."""
    blocks = {
        ("1305*", "<=40"): ["heart", "viral", "cancer", "cancer"],
        ("1485*", ">40"): ["cancer", "heart", "viral", "viral"],
        ("1306*", "<=40"): ["heart", "viral", "cancer", "cancer"],
    }
    rows = [(*cell, x) for cell, some in blocks.items() for x in some]
    frame = pl.DataFrame(rows, schema=["zip", "age", "condition"], orient="row")
    ask = {"keys": ["zip", "age"], "sensitive": ["condition"], "diversity": 3}
    for c, records in ((2, 12), (2.5, 0)):  # (c, 3): 2 < c x 1 holds above 2 only
        one = keyhole.attributes(frame, **ask, recursion=c).sensitive["condition"]
        short = {s.measure: s.records for s in one.short}
        assert short["recursive diversity, c ="] == records
        assert short["distinct l of"] == 0
        assert short["entropy l of"] == 12  # exp(1.5 log 2) is below 3
    assert (one.homogeneous_records, one.l.distinct) == (0, 3)
    assert one.l.entropy == pytest.approx(2**1.5)


def salaries(*blocks):
    """Return the salaries of Li et al. (2007), in thousands, in blocks."""
    rows = [(cell, x) for cell, some in enumerate(blocks) for x in some]
    frame = pl.DataFrame(rows, schema=["cell", "pay"], orient="row")
    found = keyhole.attributes(frame, keys=["cell"], sensitive=["pay"], distance="ordered")
    return found.sensitive["pay"]


def test_the_distances_of_li_et_al():
    """Li et al. 2007, section 5: {3, 4, 5} is at 0.375, {6, 8, 11} at 0.167 (tables 3 to 5)."""
    three_diverse = salaries([3, 4, 5], [6, 8, 11], [7, 9, 10])
    assert three_diverse.t_closeness == pytest.approx(0.375)
    # Of {6, 8, 11} against the rest together only its own distance is the largest.
    assert salaries([6, 8, 11], [3, 4, 5, 7, 9, 10]).t_closeness == pytest.approx(1 / 6)
    assert salaries([3, 5, 9], [6, 8, 11], [4, 7, 10]).t_closeness == pytest.approx(1 / 6)


def test_attribution_worked_by_hand():
    """The formulas of Taub et al. (2018) on four people and a release of four.

    Of key a the original has y, y, n and the release y, n; of b both have n; c is new. From the
    original's own cells 2/3, 2/3, 1/3 and 1 are right, from the release's 1/2, 1/2, 1/2 and 1.
    """
    original = pl.DataFrame({"k": [*"aaab"], "s": [*"yynn"]})
    release = pl.DataFrame({"k": [*"aabc"], "s": [*"ynny"]})
    one = keyhole.attributes(release, keys=["k"], sensitive=["s"], original=original).sensitive["s"]
    assert one.baseCAPd == 0.5
    assert one.CAPd == pytest.approx(2 / 3)
    assert one.DCAP == 2.5 / 4
    assert (one.iS, one.DiS, one.DiSCO) == (1, 0.25, 0.25)
    assert (one.TCAP, one.disclosures_right) == (0.25, 1)


def attribution(original, release, keys, target):
    """The figures by their definitions, record by record."""
    d, s = Counter(), Counter()
    dt, sv = Counter(), Counter()
    for frame, cells, pairs in ((original, d, dt), (release, s, sv)):
        for row in frame.iter_rows(named=True):
            q = tuple(row[k] for k in keys)
            cells[q] += 1
            pairs[q, row[target]] += 1
    n, m = original.height, release.height
    one_d = {q for (q, _), k in dt.items() if k == d[q]}
    one_s = {q for (q, _), k in sv.items() if k == s[q]}
    rows = [(tuple(r[k] for k in keys), r[target]) for r in original.iter_rows(named=True)]
    return {
        "UiO": sum(k == 1 for k in d.values()) / n,
        "UiS": sum(k == 1 for k in s.values()) / m,
        "UiOiS": sum(d[q] == 1 and s[q] > 0 for q in d) / n,
        "repU": sum(d[q] == 1 and s[q] == 1 for q in d) / n,
        "Dorig": sum(q in one_d for q, _ in rows) / n,
        "Dsyn": sum(k for q, k in s.items() if q in one_s) / m,
        "iS": sum(s[q] > 0 for q, _ in rows) / n,
        "DiS": sum(q in one_s for q, _ in rows) / n,
        "DiSCO": sum(q in one_s and sv[q, t] > 0 for q, t in rows) / n,
        "DiSDiO": sum(q in one_s and sv[q, t] > 0 and q in one_d for q, t in rows) / n,
        "baseCAPd": sum((k / n) ** 2 for k in Counter(t for _, t in rows).values()),
        "CAPd": sum(dt[q, t] / d[q] for q, t in rows) / n,
        "CAPs": sum(k * k / s[q] for (q, _), k in sv.items()) / m,
        "DCAP": sum(sv[q, t] / s[q] for q, t in rows if s[q]) / n,
    }


@settings(max_examples=120, deadline=None)
@given(frames, frames, st.sampled_from([["k"], ["k", "j"]]))
def test_a_release_against_the_original_equals_the_slow_twin(original, release, keys):
    found = keyhole.attributes(release, keys=keys, sensitive=["s"], original=original)
    one = found.sensitive["s"].to_dict()
    twin = attribution(original, release, keys, "s")
    assert {name: one[name] for name in twin} == pytest.approx(twin)
    if twin["iS"]:
        assert one["TCAP"] == pytest.approx(twin["DiSCO"] / twin["iS"])
    else:
        assert one["TCAP"] is None


@settings(max_examples=60, deadline=None)
@given(frames, st.lists(frames, min_size=1, max_size=3))
def test_implicates_are_told_each_and_as_means(original, made):
    made = [one.sample(made[0].height, with_replacement=True, seed=1) for one in made]
    with TemporaryDirectory() as folder:
        for place, one in enumerate(made, 1):
            one.write_parquet(f"{folder}/implicate-{place}.parquet")
        found = keyhole.attributes(
            folder, keys=["k", "j"], sensitive=["s"], original=original, closest=True
        )
    twins = [attribution(original, one, ["k", "j"], "s") for one in made]
    one = found.sensitive["s"].to_dict()
    for name in twins[0]:
        assert one[name] == pytest.approx(sum(twin[name] for twin in twins) / len(twins))
    for part, twin in zip(found.implicates, twins if len(made) > 1 else (), strict=True):
        assert {n: part["s"].to_dict()[n] for n in twin} == pytest.approx(twin)
    tables = {table.title: table for table in found.tables()}
    by_implicate = tables["By implicate"].rows if len(made) > 1 else []
    assert ("By implicate" in tables) == (len(made) > 1)
    assert by_implicate == [
        [str(place), share(twin["DiSCO"])] for place, twin in enumerate(twins, 1) if len(made) > 1
    ]
    notes = tables["What the release reveals about the original"].notes
    assert (f"Means of {len(made)} implicates." in notes) == (len(made) > 1)
    shares = [nearness(original, one, ["k", "j", "s"]) for one in made]
    assert found.closest.nearer == pytest.approx(max(share for _, share in shares))


def nearness(original, release, names):
    """The slow twin of the closest records: each with each."""
    old, new = (frame.select(names).rows() for frame in (original, release))

    def apart(a, b):
        return sum(x != y for x, y in zip(a, b, strict=True))

    nearer = identical = 0
    for a in new:
        distances = [apart(a, b) for b in old]
        place = distances.index(min(distances))
        others = [apart(old[place], b) for i, b in enumerate(old) if i != place]
        identical += min(distances) == 0
        nearer += min(distances) < min(others, default=math.inf)
    return identical / len(new), nearer / len(new)


@settings(max_examples=40, deadline=None)
@given(*[st.lists(st.tuples(ANSWERS, st.sampled_from([None, 0.0, 1.0, 2.5, 7.0])), min_size=2)] * 2)
def test_closest_records_with_numbers_equal_all_comparisons(old, new):
    schema = {"s": pl.String, "x": pl.Float64}
    original, release = (pl.DataFrame(x, schema=schema, orient="row") for x in (old, new))
    source = keyhole.load(original, kinds={"x": "measure"})
    found = keyhole.attributes(
        release, keys=["x"], sensitive=["s"], original=source, closest=True
    ).closest
    known = [x for _, x in (*old, *new) if x is not None]
    width = max(known, default=0) - min(known, default=0)

    def apart(a, b):
        if None in (a[1], b[1]):
            return (a[0] != b[0]) + (a[1] != b[1])
        return (a[0] != b[0]) + (abs(a[1] - b[1]) / width if width else 0)

    far = [min(apart(a, b) for b in old) for a in new]
    place = [[apart(a, b) for b in old].index(d) for a, d in zip(new, far, strict=True)]
    real = [min(apart(old[p], b) for i, b in enumerate(old) if i != p) for p in place]
    assert found.identical == sum(d == 0 for d in far) / len(new)
    # The scaled numbers differ by rounding: equal distances are left to the other tests.
    clear = [(d, r) for d, r in zip(far, real, strict=True) if abs(d - r) > 1e-9]
    assert found.nearer * len(new) >= sum(d < r for d, r in clear) - 1e-9
    assert found.nearer * len(new) <= len(new) - sum(d > r for d, r in clear) + 1e-9


NUMBERS = st.one_of(st.none(), st.integers(0, 4).map(float))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=25))
def test_masked_numbers_are_linked_as_by_comparing_all(rows):
    frame = pl.DataFrame(rows, ["x", "y", "x2", "y2"], orient="row").cast(pl.Float64)
    old = frame.select("x", "y").with_columns(k=pl.lit("k"), s=pl.lit("s"))
    new = frame.select(x="x2", y="y2").with_columns(k=pl.lit("k"), s=pl.lit("s"))
    found = keyhole.attributes(
        new, keys=["k"], sensitive=["s"], original=old, masked=["x", "y"], tolerance=0.5
    )
    spans = {}
    for name in ("x", "y"):
        known = [x for x in old[name] if x is not None]
        middle = sum(known) / len(known) if known else 0
        spread = math.sqrt(sum((x - middle) ** 2 for x in known) / max(1, len(known) - 1))
        spans[name] = (middle, spread or 1)

    def place(row):
        points = []
        for name, (middle, spread) in spans.items():
            gone = row[name] is None
            points += [0 if gone else (row[name] - middle) / spread, float(gone)]
        return points

    before, after = ([place(row) for row in side.to_dicts()] for side in (old, new))
    chance = 0
    for i, one in enumerate(after):
        far = [math.dist(one, other) for other in before]
        least = min(far) + 1e-7
        chance += (far[i] <= least) / sum(x <= least for x in far)
    assert found.linked == pytest.approx(chance / len(after))


def test_a_copy_is_as_near_as_can_be_and_far_numbers_are_far():
    draw = random.Random(5)
    people = {"sex": [draw.choice("fm") for _ in range(80)], "ill": ["n", "y"] * 40}
    people["pay"] = [draw.random() * 1000 for _ in range(80)]
    frame = keyhole.load(pl.DataFrame(people), kinds={"pay": "measure"})
    asked = {"keys": ["sex", "pay"], "sensitive": ["ill"], "original": frame, "closest": True}
    copy = keyhole.attributes(frame, **asked, masked=["pay"])
    assert (copy.closest.identical, copy.closest.nearer, copy.d_risk) == (1, 1, 1)
    assert copy.linked == 1
    assert copy.closest.median_real > 0
    noisy = pl.DataFrame(people).with_columns(pl.col("pay") + pl.Series([0, 400] * 40))
    told = keyhole.attributes(noisy, **asked, masked=["pay"])
    assert told.d_risk == 0.5
    assert told.closest.nearer < 1
    gone = pl.DataFrame(people).with_columns(pl.lit(None, pl.Float64).alias("pay"))
    with pytest.raises(OptionError, match="needs original"):
        keyhole.attributes(noisy, keys=["sex"], sensitive=["ill"], closest=True)
    with pytest.raises(OptionError, match=r"masked must be numbers. Got 'sex'"):
        keyhole.attributes(noisy, **asked, masked=["sex"])
    with pytest.raises(OptionError, match=r"in their order. Got 79 records"):
        keyhole.attributes(noisy.head(79), **asked, masked=["pay"])
    assert keyhole.attributes(gone, **asked, masked=["pay"]).d_risk == 1


@pytest.mark.parametrize(
    "asked",
    [{"sensitive": ["pay"]}, {"sensitive": ["ill"], "closest": True},
     {"sensitive": ["ill"], "masked": ["pay"]}],
)  # fmt: skip
def test_infinite_numbers_are_refused_where_numbers_are_compared(asked):
    held = {"sex": ["f", "m"] * 20, "pay": [*range(39), math.inf], "ill": ["n", "y"] * 20}
    frame = pl.DataFrame(held, schema_overrides={"pay": pl.Float64})
    people = keyhole.load(frame, kinds={"pay": "measure"}, name="people")
    marked = keyhole.load(frame, kinds={"pay": "measure"}, missing_codes=["inf"])
    asked = {"keys": ["sex", "pay"] if "closest" in asked else ["sex"], **asked}
    with pytest.raises(InputError, match=r"column 'pay' of 'people' must hold finite numbers"):
        keyhole.attributes(people, **asked, original=people if len(asked) > 2 else None)
    keyhole.attributes(marked, **asked, original=marked if len(asked) > 2 else None)


def test_a_folder_of_implicates_needs_the_original(tmp_path, capsys):
    for place in (1, 2):
        pl.DataFrame({"k": [1], "s": ["a"]}).write_csv(tmp_path / f"implicate-{place}.csv")
    with pytest.raises(OptionError, match="original is needed"):
        keyhole.attributes(tmp_path, keys=["k"], sensitive=["s"])
    asked = ["attributes", str(tmp_path), "--keys", "k", "--sensitive", "s", "--json"]
    assert run([*asked, "--original", str(tmp_path / "implicate-1.csv"), "--closest"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["s"]["DiSCO"] for one in found["implicates"]] == [1, 1]
    assert found["closest"]["identical"] == 1


def test_columns_of_the_role_sensitive_are_the_default_and_bad_options_are_told():
    frame = pl.DataFrame({"k": [1, 1], "s": ["a", "b"]})
    data = keyhole.load(frame, roles={"s": "sensitive"})
    assert [*keyhole.attributes(data, keys=["k"]).sensitive] == ["s"]
    with pytest.raises(OptionError, match="none has the role sensitive"):
        keyhole.attributes(frame, keys=["k"])
    with pytest.raises(OptionError) as raised:
        keyhole.attributes(frame, keys=["k", "x"], sensitive=["k", "y"], closeness=2)
    assert len(raised.value.problems) == 4  # all at once: both as key and sensitive, x, y, 2
    assert "sensitive must not be among the keys. Got 'k' as both" in str(raised.value)
    with pytest.raises(OptionError, match=r"for a release against the original. Got .spark."):
        keyhole.attributes(frame, keys=["k"], sensitive=["s"], original=frame, engine="spark")
    with pytest.raises(OptionError, match="'s' is not a column"):
        keyhole.attributes(frame, keys=["k"], sensitive=["s"], original=frame.rename({"s": "t"}))


def test_disk_gives_what_memory_gives(tmp_path):
    from keyhole.data.examples import veterans_sample

    path = veterans_sample(800).save(tmp_path / "veterans.csv")
    asked = {"keys": ["sex", "age", "race1"], "sensitive": ["ms", "income"]}
    here, there = (
        keyhole.attributes(path, **asked),
        keyhole.attributes(path, **asked, engine="disk"),
    )
    assert {**there.to_dict(), "engine": "memory", "notes": []} == {**here.to_dict(), "notes": []}


@settings(max_examples=60, deadline=None)
@given(frames, st.integers(1, 4))
def test_risk_tells_homogeneous_cells_and_their_levels_beside_rp(frame, cutoff):
    found = keyhole.risk(frame, keys=["k", "j"], sensitive=["s"], cutoff=cutoff)
    one, twin = found.sensitive["s"], slow(frame, ["k", "j"], "s", cutoff)
    same = ("homogeneous_records", "homogeneous_cells", "uncommon_records", "hidden_by_rp")
    assert {name: getattr(one, name) for name in same} == {name: twin[name] for name in same}
    assert one.base_rate == pytest.approx(twin["base_rate"])
    levels = Counter()
    for row in frame.iter_rows(named=True):
        cell = [r for r in frame.rows(named=True) if (r["k"], r["j"]) == (row["k"], row["j"])]
        if len(cell) >= cutoff and len({r["s"] for r in cell}) == 1:
            for key in ("k", "j"):
                levels[key, "(missing)" if row[key] is None else str(row[key])] += 1
    assert {(x.column, x.level): x.homogeneous for x in one.levels} == levels
    plain = keyhole.risk(frame, keys=["k", "j"], cutoff=cutoff)
    assert plain.sensitive is None
    assert plain.rp == found.rp


def test_scenarios_say_what_would_be_learnt_on_each_key():
    from keyhole.data.examples import veterans_sample
    from keyhole.environment.exchange import example_environment
    from keyhole.environment.scenarios.recoding import scenario_key

    data, environment = veterans_sample(500), example_environment()
    names = ["commercial database", "register"]
    keys = [scenario_key(environment, name, data) for name in names]
    found = keyhole.risk(data, scenario=keys, sensitive=["means", "ms"])
    for part in found.parts:
        recoded = part.key.recode(data)
        free = [name for name in ("means", "ms") if name not in part.keys]
        assert [*part.exposure.sensitive] == free
        for name in free:
            alone = recoded.frame.filter(pl.col(name).n_unique().over(part.keys) == 1).height
            assert part.exposure.sensitive[name].homogeneous_records == alone
    head = found.tables()[0].columns
    assert head[-2:] == ["learnt: means", "learnt: ms"]
    alone = keyhole.risk(data, scenario=keys[0], sensitive=["means"])
    assert alone.sensitive["means"] == found.parts[0].exposure.sensitive["means"]
    with pytest.raises(OptionError, match="sensitive needs missing to be 'own'"):
        keyhole.risk(data, keys=["sex"], sensitive=["means"], missing="drop")


def test_an_original_without_records_is_refused_and_a_picture_is_not_promised():
    frame = pl.DataFrame({"k": [1, 1, 2], "s": ["a", "b", "a"]})
    with pytest.raises(OptionError, match="must have records"):
        keyhole.attributes(frame, keys=["k"], sensitive=["s"], original=frame.clear())
    found = keyhole.attributes(frame, keys=["k"], sensitive=["s"], original=frame)
    with pytest.raises(OptionError, match="no picture"):
        found.plot()


def test_the_table_of_a_release_has_its_figures():
    frame = pl.DataFrame({"k": [1, 1, 2, 2], "s": ["a", "a", "a", "b"]})
    found = keyhole.attributes(frame, keys=["k"], sensitive=["s"], original=frame)
    cells = {cell for table in found.tables() for row in table.rows for cell in row}
    assert {f"{found.sensitive['s'].DiSCO:.4f}", f"{found.sensitive['s'].iS:.4f}"} <= cells


@pytest.mark.parametrize("value", [None, "y"])
def test_a_value_that_all_records_have_is_called_no_secret(value):
    frame = pl.DataFrame(
        {"sex": [*"ffmm"], "ill": pl.Series([value] * 4, dtype=pl.String), "x": [1, 2, 3, 4]}
    )
    found = keyhole.attributes(frame, keys=["sex"], sensitive=["ill", "x"])
    assert found.notes == (
        "all records have one value of 'ill': it is not a secret, so nothing is learnt",
    )
    assert found.sensitive["ill"].disclosed == 0
    assert found.grid is None


def test_a_code_may_fill_a_word_without_compiled_code_too():
    words, place = np.array([0, 2, 2], dtype=np.uint64), np.array([0, 63])
    plain = getattr(count_values, "py_func", count_values)
    assert plain(words, place, np.empty(0, dtype=np.int32), 3).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    "kinds", [(pl.Int64, pl.String), (pl.String, pl.Int64), (pl.Int8, pl.Int64)]
)
def test_a_release_may_hold_the_same_values_as_another_type(kinds):
    first = pl.DataFrame({"k": [1, 1, 2, 3], "s": [5, 6, 5, 7]})
    second = pl.DataFrame({"k": [1, 2, 2, 3], "s": [5, 5, 5, 6]})
    plain = keyhole.attributes(second, keys=["k"], sensitive=["s"], original=first)
    original, release = first.cast(kinds[0]), second.cast(kinds[1])
    found = keyhole.attributes(release, keys=["k"], sensitive=["s"], original=original)
    assert found.sensitive["s"].to_dict() == plain.sensitive["s"].to_dict()
    assert found.to_frame()["column"].to_list() == ["s"]
    assert found.to_frame()["CAPd"].item() == found.sensitive["s"].CAPd


@pytest.mark.parametrize("counts", [(1800, 1200), (1500, 3), (1024, 1023), (1023, 1)])
def test_entropy_of_a_cell_of_more_than_a_thousand(counts):
    frame = pl.DataFrame({"k": ["a"] * sum(counts), "s": [*"x" * counts[0], *"y" * counts[1]]})
    shares = [count / sum(counts) for count in counts]
    found = keyhole.attributes(frame, keys=["k"], sensitive=["s"]).sensitive["s"]
    assert found.l.entropy == pytest.approx(math.exp(-sum(p * math.log(p) for p in shares)))


def test_two_keys_of_two_levels_make_a_grid():
    frame = pl.DataFrame({"a": [0, 0, 1, 1] * 20, "b": [0, 1] * 40, "x": [0, 1, 1, 1] * 20})
    found = keyhole.attributes(frame, keys=["a", "b"], sensitive=["x"]).grid
    assert {(one.row, one.column, one.records) for one in found.cells} == {
        (a, b, 20) for a in "01" for b in "01"
    }
    alone = keyhole.attributes(frame.with_columns(b=0), keys=["a", "b"], sensitive=["x"])
    assert alone.grid is None
