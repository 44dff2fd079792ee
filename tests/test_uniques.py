"""Minimal uniques against trying every subset, and the ten-record example of the guide."""

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.core.options import parameters_of
from keyhole.errors import OptionError
from keyhole.exposure.cells import risk
from keyhole.exposure.uniques import uniques
from keyhole.published.figures import figures

NAMES = "abcdef"


@st.composite
def tables(draw):
    columns = draw(st.integers(1, 6))
    value = st.one_of(st.none(), st.integers(0, draw(st.integers(0, 3))))
    return draw(st.lists(st.tuples(*[value] * columns), min_size=1, max_size=40))


def frame_of(rows):
    columns = {NAMES[i]: [row[i] for row in rows] for i in range(len(rows[0]))}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64))


def slow_minimal_uniques(rows, max_size):
    """Try every subset in order of size; what is missing matches nothing."""
    found = set()
    for number, row in enumerate(rows):
        minimal = []
        for size in range(1, max_size + 1):
            for places in itertools.combinations(range(len(row)), size):
                mine = [row[p] for p in places]
                if None in mine or any(set(m) <= set(places) for m in minimal):
                    continue
                if sum([other[p] for p in places] == mine for other in rows) == 1:
                    minimal.append(places)
        found |= {(number, sum(1 << p for p in places)) for places in minimal}
    return found


@given(tables(), st.data())
def test_every_minimal_unique_and_no_other(rows, data):
    columns = len(rows[0])
    size = data.draw(st.integers(1, columns))
    found = uniques(frame_of(rows), keys=list(NAMES[:columns]), max_size=size)
    ours = set(zip(found.sets.owner.tolist(), found.sets.mask.tolist(), strict=True))
    assert ours == slow_minimal_uniques(rows, size)
    assert len(ours) == len(found.sets.owner)


@settings(max_examples=20)
@given(st.integers(0, 9_999), st.integers(1, 5))
def test_records_alone_among_more_patterns_than_a_word_has_bits(seed, size):
    """Some codes are rarer than cells are large, others are not, and some patterns are common."""
    random = np.random.default_rng(seed)
    columns = [random.geometric(p, 180) for p in (0.1, 0.3, 0.5, 0.5, 0.7)]
    rows = [tuple(None if x == 2 else int(x) for x in row) for row in np.column_stack(columns)]
    found = uniques(frame_of(rows), keys=list(NAMES[:5]), max_size=size)
    ours = list(zip(found.sets.owner.tolist(), found.sets.mask.tolist(), strict=True))
    alone = {}
    for mask in range(1, 2**5):
        shown = [tuple(x for v, x in enumerate(row) if mask >> v & 1) for row in rows]
        counts = Counter(shown)
        alone[mask] = {i for i, own in enumerate(shown) if None not in own and counts[own] == 1}
    minimal = [
        (i, mask)
        for mask, owners in alone.items()
        for i in owners
        - set().union(
            *(alone[mask ^ 1 << v] for v in range(5) if mask == mask | 1 << v and mask != 1 << v)
        )
        if mask.bit_count() <= size
    ]
    assert sorted(ours) == sorted(minimal)


@given(tables(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(rows, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    keys = list(NAMES[: len(rows[0])])
    straight = uniques(frame_of(rows), keys=keys).to_frame()
    shuffled = uniques(frame_of([rows[i] for i in order]), keys=keys).to_frame()
    for exact in ("score", "smallest", "level"):
        assert straight[exact][order].to_list() == shuffled[exact].to_list()
    for mine, theirs in zip(straight["dis_suda"][order], shuffled["dis_suda"], strict=True):
        assert mine == pytest.approx(theirs)


@pytest.fixture(scope="module")
def ten():
    rows = figures("sdc_guide_ten_records")
    frame = pl.DataFrame(rows).with_columns(pl.col("weight").cast(pl.Int64))
    return frame, ["residence", "gender", "education", "labor"]


def test_ten_record_scores_and_dis_suda(ten):
    frame, keys = ten
    found = uniques(frame, keys=keys, max_size=3, fraction=0.01)
    assert found.score.tolist() == [float(s) for s in frame["suda_M3"]]
    assert [f"{d:.4f}" for d in found.dis_suda] == frame["dis_suda"].to_list()
    ihsn = uniques(frame, keys=keys, convention="ihsn").score
    assert [s for s in ihsn if s] == [1.75, 3.25, 1.75, 2.75]


def test_sdcmicro_has_one_score_for_both_and_looks_at_sets_of_every_size():
    """Two records alone: one by b, one by all three keys only. Three pairs of records."""
    rows = [(0, 0, 0), (0, 0, 0), (0, 1, 1), (0, 1, 1), (1, 0, 1), (1, 0, 1), (1, 1, 0), (1, 2, 1)]
    found = uniques(frame_of(rows), keys=list(NAMES[:3]), convention="sdcmicro", fraction=0.1)
    # (1, 1, 0) is alone on (1, 1, ·), (1, ·, 0) and (·, 1, 0): three times (3 - 2)!; 2 is (3 - 1)!.
    assert found.score.tolist() == [0] * 6 + [3, 2]
    risen = np.array([3.0, 2.0]) ** 1.25
    odds = 6 * 9 / (risen * (1 / risen).sum())
    assert found.dis_suda[6:] == pytest.approx(1 / (1 + odds))
    # Every two of its values are seen with each other, so (1, 1, 1) is alone on all three only.
    whole = [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1), (0, 0, 0), (0, 0, 0)]
    found = uniques(frame_of(whole), keys=list(NAMES[:3]), convention="sdcmicro", fraction=0.1)
    assert found.max_size == 3
    assert found.score[3] == 1
    assert found.dis_suda[3] > 0
    # Three more are alone by two of three pairs: of two variables a half, of one all of the score.
    assert [row[2] for row in found.tables()[1].rows] == ["0.7500"] * 3


def test_ten_record_counts_and_individual_risk(ten):
    frame, keys = ten
    records = risk(frame, keys=keys, weight="weight").to_frame()
    assert records["f"].to_list() == [int(f) for f in frame["f"]]
    assert records["F"].to_list() == [float(f) for f in frame["F"]]
    assert [f"{r:.4f}" for r in records["risk"]] == frame["individual_risk"].to_list()


def test_counting_every_unique_subset_would_be_wrong(ten):
    frame, keys = ten
    found = uniques(frame, keys=keys)
    subsets = sum(
        frame.group_by(places).len().filter(pl.col("len") == 1).height
        for size in (1, 2, 3)
        for places in itertools.combinations(keys, size)
    )
    assert len(found.sets.owner) == 9 < subsets


def test_the_table_by_variable_has_each_one_s_mean_share(ten):
    frame, keys = ten
    table = uniques(frame, keys=keys, max_size=3).tables()[1]
    # Four records have scores: 6 by education, 12 by residence (6) and three pairs, and so on.
    assert [row[2] for row in table.rows] == ["0.1750", "0.1333", "0.7333", "0.1833"]


def test_one_key_has_no_score_and_says_so():
    found = uniques(pl.DataFrame({"a": [1, 2, 2]}), keys=["a"])
    assert found.tables()[1].rows == [["a", "1", "not estimable"]]
    assert found.to_dict()["score_sum"] is None
    assert any("one key" in note for note in found.notes)
    assert found.smallest.tolist() == [1, 0, 0]


def test_a_category_that_points_at_a_record_or_two_is_not_named():
    lonely = uniques(pl.DataFrame({"a": [1, 7, 1, 1], "b": [1, 1, 1, 1]}), keys=["a", "b"])
    assert lonely.to_dict()["worst_category"] is None
    for alone, named in ((2, None), (3, "1")):
        rows = [*((0, i, 0) for i in range(alone)), (0, 0, 1)] * 3
        frame = frame_of([*rows, *((1, i, 0) for i in range(alone))])
        found = uniques(frame, keys=list(NAMES[:3])).to_dict()
        assert (found["worst_variable"], found["worst_category_flags"]) == ("a", alone)
        assert found["worst_category"] == named
    many = pl.DataFrame({"a": [1, 1, 1, 1, 2, 2], "b": [1, 2, 3, 4, 5, 5]})
    assert uniques(many, keys=["a", "b"]).to_dict()["worst_category"] is None


def test_all_problems_at_once():
    with pytest.raises(OptionError) as error:
        uniques(pl.DataFrame({"age": [1, 2]}), keys=["agee", "age"], max_size=9, cutoff=0)
    assert len(error.value.problems) == 3


def test_progress_is_told_and_an_interrupt_stops_the_search():
    from keyhole.data.examples import KEYS, veterans_sample

    told = []

    def tell(done, most):
        told.append((done, most))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        uniques(veterans_sample(3000), keys=KEYS, max_size=8, progress=tell)
    assert told
    assert told[0][1] > 39_000


@pytest.mark.parametrize(
    ("keys", "records", "fitting"), [(28, 10, 14), (64, 10, 7), (20, 70_000, 8)]
)
def test_a_search_that_would_not_fit_into_memory_is_refused(keys, records, fitting, monkeypatch):
    def fail(*_):
        raise AssertionError("searched in vain")

    monkeypatch.setattr("keyhole.exposure.uniques.minimal_uniques", fail)
    # Every record differs from every other.
    frame = pl.DataFrame({f"k{i:02}": range(records) for i in range(keys)})
    for max_size in (None, keys - 1, fitting + 1):
        with pytest.raises(OptionError, match=rf"max_size of at most {fitting}, or fewer"):
            uniques(frame, keys=frame.columns, max_size=max_size)
    with pytest.raises(AssertionError):
        uniques(frame, keys=frame.columns, max_size=fitting)


def test_many_keys_are_searched_to_a_small_size():
    frame = pl.DataFrame({f"k{i:02}": [i % 2, 0, 0] for i in range(64)})
    found = uniques(frame, keys=frame.columns, max_size=2)
    assert found.by_size == {1: 32, 2: 0}


def test_all_problems_are_told_at_once():
    with pytest.raises(OptionError) as error:
        uniques(
            pl.DataFrame({"a": [1], "b": [1]}), keys=["a", "c"], max_size=9, cutoff=0, fraction=7,
            convention="x", availability=[3, 1], identifiability="ab",
        )  # fmt: skip
    assert len(error.value.problems) == 7


@pytest.mark.parametrize(
    "options",
    [
        {"keys": None},
        {"keys": []},
        {"convention": None},
        {"max_size": "x"},
        {"max_size": True},
        {"availability": 1},
        {"availability": {"a": 1, "c": 1}},
        {"availability": {"a": 3}},
        {"availability": [1, 1, 1]},
        {"availability": [None, None]},
        {"fraction": 1e-320},
        {"cutoff": 10**30},
    ],
)
def test_what_is_no_option_is_refused(options):
    frame = pl.DataFrame({"a": [1, 2], "b": [1, 1]})
    with pytest.raises(OptionError, match="must"):
        uniques(frame, **{"keys": ["a", "b"], **options})


def test_factors_are_given_by_key_or_for_every_key():
    frame = pl.DataFrame({"a": [1, 2, 2, 3], "b": [1, 1, 2, 2], "c": [1, 2, 3, 3]})
    by_key = uniques(frame, keys=["a", "b", "c"], availability={"c": 2}, identifiability={"a": 0.5})
    listed = uniques(
        frame, keys=["a", "b", "c"], availability=[1, 1, 2], identifiability=np.array([0.5, 1, 1])
    )
    assert by_key.to_dict() == listed.to_dict()
    assert by_key.to_dict() != uniques(frame, keys=["a", "b", "c"]).to_dict()


def test_the_tables_say_what_the_levels_mean():
    found = uniques(pl.DataFrame({"a": [1, 2, 2], "b": [1, 1, 1]}), keys=["a", "b"])
    table = next(t for t in found.tables() if t.title == "Risk levels")
    assert table.notes[0].startswith("High: unique on 1 or 2 variables; medium: on 3; low:")


def test_availability_is_given_by_key_or_for_all_of_them():
    people = pl.DataFrame({"a": [1, 1, 2, 3], "b": [1, 2, 2, 2]})
    each = uniques(people, keys=["a", "b"], availability=[1, 0.5])
    assert each.to_dict() == uniques(people, keys=["a", "b"], availability={"b": 0.5}).to_dict()
    kind = parameters_of(uniques)["availability"].kind
    for text in ("1,0.5", "a=1,b=0.5"):
        assert kind.write(kind.read(text)) == text
    assert kind.read("1,0.5") == (1.0, 0.5)
    assert kind.read("a=1,b=0.5") == {"a": 1.0, "b": 0.5}
