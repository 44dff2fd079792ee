"""Linking by cost: taxicab, euclidean and adhoc against a naive Cartesian twin."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keyhole.core.options import bind
from keyhole.reidentification import neighbours
from keyhole.reidentification.scores import euclidean, taxicab
from keyhole.reidentification.study import link, study
from keyhole.reidentification.variables import LinkCodes, LinkValues

NAMES = ("a", "b", "c", "x", "y")


# The twin: every pair of the Cartesian product, scored and ranked one by one.


def rank(scores: dict[int, float], cap: int, best=min) -> list[tuple[int, float, int]]:
    """Keep ranks while they hold at most `cap` pairs: (EIF record, score, rank)."""
    kept, left, number = [], dict(scores), 0
    while left:
        number += 1
        top = best(left.values())
        tied = sorted(j for j, s in left.items() if s == top)
        if len(kept) + len(tied) > cap:
            break
        kept += [(j, top, number) for j in tied]
        for j in tied:
            del left[j]
    return kept


def product(puf, eif, score, suspected, cap, *, best=min, strata=()):
    """Score all pairs within strata; return (PUF record, EIF record, score, rank)."""
    out = []
    for i, left in enumerate(puf):
        scores = {
            j: score(left, right)
            for j, right in enumerate(eif)
            if all(left[s] == right[s] for s in strata)
        }
        scores = {j: s for j, s in scores.items() if suspected(s)}
        out += [(i, j, s, r) for j, s, r in rank(scores, cap, best)]
    return out


def quintile_cuts(values: list[float]) -> list[Fraction]:
    known = sorted(Fraction(v) for v in values if v is not None)
    cuts = []
    for k in (1, 2, 3, 4):
        place = Fraction(k, 5) * (len(known) - 1)
        low = math.floor(place)
        high = min(low + 1, len(known) - 1)
        cuts.append(known[low] + (known[high] - known[low]) * (place - low))
    return cuts


def binned(rows, names, cuts_of):
    out = [dict(row) for row in rows]
    for name in names:
        cuts = quintile_cuts([row[name] for row in cuts_of])
        for row in out:
            if row[name] is not None:
                row[name] = sum(row[name] > cut for cut in cuts)
    return out


def taxicab_twin(puf, eif, names, numeric, alpha, cap, cuts, strata=()):
    exact = Fraction(str(alpha))
    left = binned(puf, numeric, puf)
    right = binned(eif, numeric, puf if cuts == "puf" else eif)

    def score(p, e):
        total = Fraction(0)
        for name in names:
            missing = p[name] is None or e[name] is None
            total += exact if missing else Fraction(int(p[name] != e[name]))
        return total / len(names)

    found = product(left, right, score, lambda s: s < exact / 2, cap, strata=strata)
    return [(i, j, round(float(s), 9), r) for i, j, s, r in found]


def euclidean_twin(puf, eif, names, numeric, alpha, cap, threshold, strata=()):
    scale = {}
    for name in numeric:
        known = [row[name] for row in puf if row[name] is not None]
        mean = sum(known) / len(known)
        squares = sum((v - mean) ** 2 for v in known)
        scale[name] = (mean, math.sqrt(squares / (len(known) - 1)) if len(set(known)) > 1 else 0)

    def part(name, p, e):
        if p is None or e is None:
            return alpha
        if name not in numeric or scale[name][1] == 0:
            return float(p != e)
        mean, deviation = scale[name]
        x = min(abs((p - mean) / deviation - (e - mean) / deviation), 6)
        return 2 * math.exp(x) / (1 + math.exp(x)) - 1

    def score(p, e):
        total = sum(part(name, p[name], e[name]) ** 2 for name in names)
        return round(math.sqrt(total) / len(names), 9)

    limit = round(threshold, 9)
    return product(puf, eif, score, lambda s: s < limit, cap, strata=strata)


def rows_of(found):
    frame = found.to_frame()
    return list(zip(*(frame[c].to_list() for c in ("puf", "eif", "score", "rank")), strict=True))


def same_rows(found, wanted) -> None:
    assert [(i, j, r) for i, j, _, r in found] == [(i, j, r) for i, j, _, r in wanted]
    assert [s for _, _, s, _ in found] == pytest.approx([s for _, _, s, _ in wanted], abs=1.5e-9)


# Random files with missing values, ties and strata. One record is known in both throughout,
# so that no variable is unfit for linking.

letter = st.sampled_from(["u", "v", "w", None])
number = st.one_of(st.none(), st.integers(0, 6))
record = st.fixed_dictionaries({"a": letter, "b": letter, "c": letter, "x": number, "y": number})
strata_value = st.sampled_from(["n", "s", None])
KNOWN = {"a": "u", "b": "v", "c": "w", "x": 3, "y": 0, "g": "n"}


@st.composite
def two_files(draw, most_puf=8, most_eif=30):
    def one_file(most):
        rows = draw(st.lists(record, min_size=0, max_size=most))
        groups = draw(st.lists(strata_value, min_size=len(rows), max_size=len(rows)))
        return [*({**row, "g": g} for row, g in zip(rows, groups, strict=True)), KNOWN]

    return one_file(most_puf), one_file(most_eif)


def frame(rows) -> pl.DataFrame:
    text = dict.fromkeys(("a", "b", "c", "g"), pl.String)
    return pl.DataFrame(rows, schema={**text, "x": pl.Int64, "y": pl.Int64})


alphas = st.sampled_from([0.5, 0.25, 0.1, 1.0, 0.3])
caps = st.integers(1, 7)
groups = st.sampled_from([(), ("g",)])
numerics = st.sampled_from([(), ("x",), ("x", "y")])


@given(two_files(), numerics, alphas, caps, groups, st.sampled_from(["puf", "each"]))
def test_taxicab_equals_the_cartesian_product(files, numeric, alpha, cap, strata, cuts):
    puf, eif = files
    found = link(
        frame(puf), frame(eif), link=NAMES, numeric=numeric, metric="taxicab", alpha=alpha,
        rank_cap=cap, strata=strata, cuts=cuts,
    )  # fmt: skip
    wanted = taxicab_twin(puf, eif, NAMES, numeric, alpha, cap, cuts, strata)
    assert rows_of(found) == wanted


@given(two_files(), numerics, alphas, caps, groups, st.sampled_from(["published", "derived"]))
def test_euclidean_equals_the_cartesian_product(files, numeric, alpha, cap, strata, threshold):
    puf, eif = files
    found = link(
        frame(puf), frame(eif), link=NAMES, numeric=numeric, metric="euclidean", alpha=alpha,
        rank_cap=cap, strata=strata, threshold=threshold,
    )  # fmt: skip
    limit = alpha / 2 if threshold == "published" else alpha / math.sqrt(2 * len(NAMES))
    assert found.linkage.effective_threshold == limit
    same_rows(rows_of(found), euclidean_twin(puf, eif, NAMES, numeric, alpha, cap, limit, strata))


@given(two_files(), st.integers(2, 5), caps)
def test_fewer_variables_too(files, count, cap):
    puf, eif = files
    names = NAMES[:count]
    found = link(frame(puf), frame(eif), link=names, metric="taxicab", rank_cap=cap)
    assert rows_of(found) == taxicab_twin(puf, eif, names, (), 0.5, cap, "puf")


# Larger random problems, so that cells, anchors and tables of prices are all at work.


def random_costs(seed: int):
    rng = np.random.default_rng(seed)
    puf, eif = int(rng.integers(1, 80)), int(rng.integers(1, 1500))
    categories = []
    for name in range(int(rng.integers(1, 9))):
        size = int(rng.choice([2, 3, 5, 90]))
        codes = [rng.integers(0, size + 1, n).astype(np.int32) for n in (puf, eif)]
        categories.append(LinkCodes(str(name), *codes, pl.Series(range(size))))
    if seed % 2:
        return taxicab(categories, bind(study, {"alpha": [0.5, 0.25, 1 / 3, 1.0, 0.7][seed % 5]}))
    measured = [
        LinkValues("z", *(np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n), 1))
                      for n in (puf, eif)))
        for _ in range(int(rng.integers(0, 4)))
    ]  # fmt: skip
    threshold = ["published", "derived"][seed % 4 // 2]
    question = bind(study, {"alpha": [0.5, 0.4][seed % 3 // 2], "threshold": threshold})
    return euclidean([*categories, *measured], question)


def random_strata(costs, seed: int):
    if seed % 3:
        return None
    rng = np.random.default_rng(seed)
    first = (costs.counted or costs.graded)[0]
    codes = [rng.integers(0, 4, len(x)).astype(np.int32) for x in (first.puf, first.eif)]
    return LinkCodes("strata", *codes, pl.Series(range(4)))


def vectorised_twin(costs, strata, cap):
    first = (costs.counted or costs.graded)[0]
    total = np.full((len(first.puf), len(first.eif)), costs.base)
    for c in costs.counted:
        missing = (c.puf == c.missing)[:, None] | (c.eif == c.missing)
        differs = (c.puf[:, None] != c.eif) * costs.differ
        total += np.where(missing, costs.absent, differs)
    for g in costs.graded:
        x = np.minimum(np.abs(g.puf[:, None] - g.eif), 6)
        score = 2 * np.exp(x) / (1 + np.exp(x)) - 1
        total += np.where(np.isnan(x), g.absent, score**2)
    keys = np.rint((np.sqrt(total) if costs.root else total) * costs.scale).astype(np.int64)
    out = []
    for i, row in enumerate(keys):
        allowed = row < costs.bound
        if strata is not None:
            allowed &= strata.eif == strata.puf[i]
        scores = {int(j): int(row[j]) for j in np.flatnonzero(allowed)}
        out += [(i, j, key, r) for j, key, r in rank(scores, cap)]
    return out


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("method", ["cells", "fine cells", "small pieces"])
def test_every_method_gives_the_same_answer(seed, method, monkeypatch):
    costs = random_costs(seed)
    strata, cap = random_strata(costs, seed), 1 + seed % 7
    if method == "fine cells":
        monkeypatch.setattr(neighbours, "GROUPED", 1.0)
    if method == "small pieces":
        monkeypatch.setattr(neighbours, "SPAN", 4)
    found = neighbours.find_nearest(costs, strata, cap)
    columns = (found.puf, found.eif, found.keys, found.ranks)
    rows = list(zip(*(c.tolist() for c in columns), strict=True))
    assert rows == vectorised_twin(costs, strata, cap)


@pytest.mark.parametrize(("others", "few"), [(6_300, 300), (600, 10_000)])
def test_a_score_that_differs_in_the_ninth_decimal_is_another_rank(others, few):
    """Also if looked at last, whether looked up by a variable that few share or by walking."""
    alike, places = 300, range(301 + others)
    eif = pl.DataFrame(
        {
            "a": ["u"] * (alike + 1) + [f"{i}" for i in range(others)],
            "b": [f"{i % few}" for i in places],
            "x": [9.0 if i == alike else 5.0 for i in places],
        }
    )
    puf = pl.DataFrame({"a": ["u", "w"], "b": ["w", "0"], "x": [9.0, 99.0]})
    scores = {"a": {"exact": 5}, "b": {"exact": 5}, "x": {"absolute": [[0, 5], [9, 4.999999999]]}}
    found = link(puf, eif, link=["a", "b", "x"], metric="adhoc", scores=scores, rank_cap=2)
    assert [row for row in rows_of(found) if row[0] == 0] == [(0, alike, 10.0, 1)]


def test_the_random_problems_keep_and_drop_pairs():
    """The comparison above would be empty if nothing were kept, or everything."""
    kept = [len(vectorised_twin(random_costs(s), None, 5)) for s in range(24)]
    assert sum(count > 20 for count in kept) > 10


# The rank rule by hand.


def one_record(counts: list[int], stride: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A PUF record and an EIF with so many records that differ from it in 0, 1, 2 … variables."""
    names = [f"v{j:02}" for j in range(20)]
    eif = []
    for differences, count in enumerate(counts):
        for k in range(count):
            changed = {(k * stride + d) % 20 for d in range(differences)}
            eif.append({n: "z" if j in changed else "a" for j, n in enumerate(names)})
    return pl.DataFrame([dict.fromkeys(names, "a")]), pl.DataFrame(eif)


def ranks_of(counts: list[int], stride: int = 0, **options) -> list[tuple[float, int]]:
    puf, eif = one_record(counts, stride)
    found = link(puf, eif, link=eif.columns, metric="taxicab", **options)
    return list(zip(found.score.tolist(), found.rank.tolist(), strict=True))


@pytest.mark.parametrize("stride", [0, 3])
def test_three_unique_ranks_then_twenty_ties_keep_three(stride):
    assert ranks_of([1, 1, 1, 20], stride) == [(0.0, 1), (0.05, 2), (0.1, 3)]


def test_twenty_ties_at_the_top_keep_nothing():
    assert ranks_of([20, 1, 1]) == []
    assert ranks_of([0, 20, 1], stride=3) == []


def test_a_rank_that_fills_the_cap_exactly_is_kept():
    assert ranks_of([2, 3]) == [(0.0, 1)] * 2 + [(0.05, 2)] * 3
    assert ranks_of([2, 3, 1]) == ranks_of([2, 3])
    assert ranks_of([3, 3]) == [(0.0, 1)] * 3


def test_a_rank_beyond_a_full_one_is_not_kept_though_it_would_fit():
    assert ranks_of([1, 6, 1]) == [(0.0, 1)]


def test_the_cap_can_be_set():
    assert len(ranks_of([3, 3], rank_cap=6)) == 6
    assert ranks_of([2, 1], rank_cap=1) == []


def test_only_suspected_pairs_are_ranked():
    """Of twenty variables fewer than five may differ: 5 / 20 is not below 0.25."""
    assert ranks_of([0, 0, 0, 0, 2, 2], stride=7) == [(0.2, 1)] * 2


# Thresholds, and where the metrics part.


def test_taxicab_and_euclidean_differ_even_if_all_variables_are_categorical():
    """One difference of four is 0.25 by taxicab, not suspected, and by euclidean too; but two
    missing of four are 0.25 by taxicab and sqrt(0.5) / 4 = 0.177 by euclidean."""
    names = ["a", "b", "c", "d"]
    puf = pl.DataFrame([["u", "u", "u", "u"], ["v", "v", "v", "v"]], names, orient="row")
    eif = pl.DataFrame([["u", "u", None, None], ["v", "v", "v", "v"]], names, orient="row")
    by_taxicab = link(puf, eif, link=names, metric="taxicab")
    by_euclidean = link(puf, eif, link=names, metric="euclidean")
    assert rows_of(by_taxicab) == [(1, 1, 0.0, 1)]
    assert (0, 0, round(math.sqrt(0.5) / 4, 9), 1) in rows_of(by_euclidean)


def half_missing(count: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = [f"v{j:02}" for j in range(count)]
    eif = pl.DataFrame(
        [
            {name: "a" if j < count // 2 else None for j, name in enumerate(names)},
            dict.fromkeys(names, "a"),
        ],
        schema=dict.fromkeys(names, pl.String),
    )
    return pl.DataFrame([dict.fromkeys(names, "a")]), eif


@pytest.mark.parametrize("count", [2, 4, 6, 10, 12, 14])
@pytest.mark.parametrize("alpha", [0.5, 0.3, 0.1])
def test_half_matches_and_half_missing_is_exactly_the_threshold(count, alpha):
    """The paper derives its thresholds from this pair: it is not below them."""
    puf, eif = half_missing(count)
    by_taxicab = link(puf, eif, link=eif.columns, metric="taxicab", alpha=alpha)
    derived = link(puf, eif, link=eif.columns, metric="euclidean", alpha=alpha, threshold="derived")
    assert by_taxicab.eif.tolist() == derived.eif.tolist() == [1]
    assert by_taxicab.linkage.effective_threshold == alpha / 2
    assert derived.linkage.effective_threshold == pytest.approx(alpha / math.sqrt(2 * count))
    published = link(puf, eif, link=eif.columns, metric="euclidean", alpha=alpha)
    assert published.linkage.effective_threshold == alpha / 2
    assert sorted(published.eif.tolist()) == ([0, 1] if count > 2 else [1])


def test_the_published_threshold_lets_everything_pass_from_seventeen_variables():
    names = [f"v{j:02}" for j in range(17)]
    puf = pl.DataFrame([dict.fromkeys(names, "a"), dict.fromkeys(names, "b")])
    eif = pl.DataFrame([dict.fromkeys(names, "a"), dict.fromkeys(names, "c")])
    found = link(puf, eif, link=names, metric="euclidean")
    assert found.pairs == 4
    assert "only the ranks choose" in found.warnings[0]
    sixteen = link(puf, eif, link=names[:16], metric="euclidean")
    assert sixteen.warnings == ()
    assert sixteen.pairs == 1
    assert link(puf, eif, link=names, metric="euclidean", threshold="derived").pairs == 1


def test_distances_beyond_six_deviations_are_capped():
    puf = pl.DataFrame({"a": ["u"] * 4, "b": ["v"] * 4, "x": [0.0, 0.0, 1.0, 1.0]})
    eif = pl.DataFrame({"a": ["u", "u"], "b": ["v", "v"], "x": [1000.0, 2000.0]})
    found = link(
        puf, eif, link=["a", "b", "x"], numeric=["x"], metric="euclidean", alpha=1.0
    )  # fmt: skip
    most = (2 * math.exp(6) / (1 + math.exp(6)) - 1) / 3
    assert rows_of(found)[:2] == [(0, 0, round(most, 9), 1), (0, 1, round(most, 9), 1)]


def test_a_constant_numeric_variable_scores_zero_when_equal_and_one_when_not():
    puf = pl.DataFrame({"a": ["u", "v"], "b": ["u", "v"], "x": [7, 7]})
    eif = pl.DataFrame({"a": ["u", "v"], "b": ["u", "v"], "x": [7, 8]})
    found = link(puf, eif, link=["a", "b", "x"], numeric=["x"], metric="euclidean", alpha=1.0)
    two_differ = round(math.sqrt(2) / 3, 9)
    assert rows_of(found) == [(0, 0, 0.0, 1), (1, 1, round(1 / 3, 9), 1), (1, 0, two_differ, 2)]


def test_strata_keep_records_apart():
    puf = pl.DataFrame({"a": ["u", "u"], "b": ["v", "v"], "g": ["n", None]})
    eif = pl.DataFrame({"a": ["u", "u", "u"], "b": ["v", "v", "v"], "g": ["n", None, "s"]})
    found = link(puf, eif, link=["a", "b"], metric="taxicab", strata=["g"])
    assert rows_of(found) == [(0, 0, 0.0, 1), (1, 1, 0.0, 1)]


@given(two_files())
@settings(max_examples=20)
def test_the_order_of_the_files_does_not_matter(files):
    puf, eif = files
    turned = link(frame(puf[::-1]), frame(eif[::-1]), link=NAMES, metric="taxicab")
    there = {
        (len(puf) - 1 - i, len(eif) - 1 - j, s, r) for i, j, s, r in rows_of(turned)
    }  # fmt: skip
    assert there == set(rows_of(link(frame(puf), frame(eif), link=NAMES, metric="taxicab")))


def test_progress_is_told():
    puf, eif = half_missing(6)
    told = []
    link(puf, eif, link=eif.columns, metric="taxicab", progress=lambda *done: told.append(done))
    assert told[-1] == (1, 1)


WIDE = st.lists(
    st.tuples(*[st.sampled_from([0, 1, 2**20, 2**21 - 1, 2**21, 2**22 - 1, 2**31])] * 3),
    min_size=1,
    max_size=8,
)


@given(WIDE)
@example([(2**21, 0, 0), (0, 2**21 - 1, 2**21 - 1)])
def test_pairs_are_in_order_however_many_bits_their_numbers_have(rows):
    found = neighbours._in_order(*np.array(rows, dtype=np.int64).T)
    assert found.tolist() == sorted(range(len(rows)), key=rows.__getitem__)
