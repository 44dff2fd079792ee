"""Adhoc scores: each way to declare them against a twin, and what cannot be declared."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.errors import FileError, OptionError
from keyhole.kernels import grading
from keyhole.reidentification.neighbours import make_rules
from keyhole.reidentification.scores import Costs, Graded, load_scores
from keyhole.reidentification.study import link


def ranked(scores: dict[int, float], cap: int):
    """Keep the highest scores while their ranks hold at most `cap` pairs."""
    kept, left, number = [], dict(scores), 0
    while left:
        number += 1
        top = max(left.values())
        tied = sorted(j for j, s in left.items() if s == top)
        if len(kept) + len(tied) > cap:
            break
        kept += [(j, top, number) for j in tied]
        for j in tied:
            del left[j]
    return kept


def by_bands(bands, gap, beyond=0):
    return next((score for limit, score in bands if round(gap, 9) <= limit), beyond)


ABSOLUTE = [[0, 5], [2, 3.5], [10, 1]]
RELATIVE = [[0.05, 5], [0.2, 2]]
DAYS = [[0, 5], [31, 4], [366, 1]]
TABLE = [["u", "v", 4], ["v", "u", 2], ["w", "w", 1]]

DECLARED = {
    "sex": {"exact": 5},
    "race": {"exact": 2.25},
    "age": {"absolute": ABSOLUTE, "beyond": 0.5},
    "income": {"relative": RELATIVE},
    "born": {"days": DAYS},
    "status": {"table": TABLE, "same": 5, "other": 0.75},
    "rank": lambda puf, eif: np.maximum(0, 4 - np.abs(puf - eif)),
}


def twin_score(p: dict, e: dict) -> float:
    table = {(left, right): score for left, right, score in TABLE}

    def relative(a, b):
        return 0 if a == b else abs(a - b) / abs(a) if a else float("inf")

    rules = {
        "sex": lambda a, b: 5 if a == b else 0,
        "race": lambda a, b: 2.25 if a == b else 0,
        "age": lambda a, b: by_bands(ABSOLUTE, abs(a - b), 0.5),
        "income": lambda a, b: by_bands(RELATIVE, relative(a, b)),
        "born": lambda a, b: by_bands(DAYS, abs((a - b).days)),
        "status": lambda a, b: table.get((a, b), 5 if a == b else 0.75),
        "rank": lambda a, b: max(0, 4 - abs(a - b)),
    }
    known = (n for n in rules if p[n] is not None and e[n] is not None)
    return round(sum(rules[n](p[n], e[n]) for n in known), 9)


SCHEMA = {
    "sex": pl.String, "race": pl.String, "age": pl.Float64, "income": pl.Int64,
    "born": pl.Date, "status": pl.String, "rank": pl.Int64, "g": pl.String,
}  # fmt: skip
letters = st.sampled_from(["u", "v", "w", None])
record = st.fixed_dictionaries(
    {
        "sex": letters,
        "race": letters,
        "age": st.one_of(st.none(), st.sampled_from([20.0, 20.2, 22.2, 22.0, 30.1, 45.0])),
        "income": st.one_of(st.none(), st.sampled_from([0, 100, 95, 105, 120, 500, -100])),
        "born": st.one_of(
            st.none(), st.integers(0, 500).map(lambda d: date(1950, 1, 1) + timedelta(days=d))
        ),
        "status": letters,
        "rank": st.one_of(st.none(), st.integers(0, 7)),
        "g": st.sampled_from(["n", "s"]),
    }
)
KNOWN = {
    "sex": "u", "race": "v", "age": 20.0, "income": 100, "born": date(1950, 1, 1),
    "status": "w", "rank": 1, "g": "n",
}  # fmt: skip


@given(
    st.lists(record, max_size=8), st.lists(record, max_size=30), st.integers(1, 6), st.booleans()
)
def test_adhoc_equals_the_cartesian_product(puf, eif, cap, stratified):
    puf, eif = [*puf, KNOWN], [KNOWN, *eif]
    found = link(
        pl.DataFrame(puf, schema=SCHEMA), pl.DataFrame(eif, schema=SCHEMA), link=list(DECLARED),
        metric="adhoc", scores=DECLARED, rank_cap=cap, strata=["g"] if stratified else [],
    )  # fmt: skip
    wanted = []
    for i, p in enumerate(puf):
        scores = {
            j: twin_score(p, e)
            for j, e in enumerate(eif)
            if not stratified or p["g"] == e["g"]
        }  # fmt: skip
        above = {j: s for j, s in scores.items() if s > 5 * len(DECLARED) / 2}
        wanted += [(i, j, s, r) for j, s, r in ranked(above, cap)]
    rows = found.to_frame().rows()
    assert [(i, j, r) for i, j, _, r in rows] == [(i, j, r) for i, j, _, r in wanted]
    assert [s for _, _, s, _ in rows] == pytest.approx([s for _, _, s, _ in wanted], abs=1e-9)
    assert found.linkage.effective_threshold == 17.5


def by_hand(scores: dict, puf: dict, eif: dict) -> list[tuple]:
    found = link(
        pl.DataFrame(puf), pl.DataFrame(eif), link=list(scores), metric="adhoc", scores=scores
    )
    return found.to_frame().rows()


def test_bands_by_hand():
    """A difference of 2 is within the band of 2, and 0.8 - 0.6 within 0.2."""
    scores = {"age": {"absolute": [[0, 5], [2, 3]]}, "rate": {"absolute": [[0.2, 5]]}}
    rows = by_hand(scores, {"age": [30], "rate": [0.6]}, {"age": [32, 33, 30], "rate": [0.8] * 3})
    assert rows == [(0, 2, 10.0, 1), (0, 0, 8.0, 2)]


def test_a_share_is_of_the_public_value():
    """110 is within a tenth of 100, but 100 is not within a tenth of 90 either way round."""
    scores = {"pay": {"relative": [[0.1, 5]]}, "sex": {"exact": 5}}
    rows = by_hand(scores, {"pay": [100], "sex": ["f"]}, {"pay": [110, 111], "sex": ["f", "f"]})
    assert rows == [(0, 0, 10.0, 1)]


def test_a_table_is_read_from_the_public_value_to_the_other():
    scores = {"ms": {"table": [["m", "s", 4]], "same": 5, "other": 0}, "sex": {"exact": 5}}
    puf, eif = {"ms": ["m", "s"], "sex": ["f", "f"]}, {"ms": ["s", "m"], "sex": ["f", "f"]}
    assert by_hand(scores, puf, eif) == [(0, 1, 10.0, 1), (0, 0, 9.0, 2), (1, 0, 10.0, 1)]


def test_a_table_may_name_numbers():
    scores = {"code": {"table": [[1, 2, 4]]}, "sex": {"exact": 5}}
    puf, eif = {"code": [1], "sex": ["f"]}, {"code": [2], "sex": ["f"]}
    assert by_hand(scores, puf, eif) == [(0, 0, 9.0, 1)]


def test_a_table_of_values_in_neither_file_warns():
    scores = {"ms": {"table": [["m", "z", 4]]}, "sex": {"exact": 5}}
    frame = pl.DataFrame({"ms": ["m"], "sex": ["f"]})
    found = link(frame, frame, link=["ms", "sex"], metric="adhoc", scores=scores)
    assert "1 rows of the score table of 'ms' name a value that is in neither file." in repr(found)


def test_missing_scores_nothing():
    scores = {"a": {"exact": 5}, "b": {"exact": 5}, "c": {"exact": 5}}
    puf = {"a": ["u"], "b": ["u"], "c": ["u"]}
    eif = {"a": ["u", "u"], "b": ["u", None], "c": ["u", None]}
    assert by_hand(scores, puf, eif) == [(0, 0, 15.0, 1)]


def test_scores_from_a_file(tmp_path):
    path = tmp_path / "scores.toml"
    path.write_text(
        "sex = {exact = 5}\n[age]\nabsolute = [[0, 5], [2, 3]]\nbeyond = 1\n", encoding="utf-8"
    )
    puf = pl.DataFrame({"sex": ["f"], "age": [30]})
    eif = pl.DataFrame({"sex": ["f", "f"], "age": [32, 40]})
    found = link(puf, eif, link=["sex", "age"], metric="adhoc", scores=path)
    assert found.score.tolist() == [8.0, 6.0]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"sex = {exact", "must be a TOML file"), (b"\xff\xfe", "is not UTF-8 text")],
)
def test_a_file_that_is_no_toml(tmp_path, content, said):
    path = tmp_path / "scores.toml"
    path.write_bytes(content)
    with pytest.raises(FileError, match=said):
        load_scores(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        load_scores(tmp_path / "none.toml")


PUF = pl.DataFrame({"a": ["u", "v"], "x": [1.0, 2.0], "d": [date(2020, 1, 1)] * 2})


def refused(scores, names=("a", "x", "d")) -> str:
    with pytest.raises(OptionError) as caught:
        link(PUF, PUF, link=names, metric="adhoc", scores=scores)
    return str(caught.value)


def test_all_bad_scores_at_once():
    text = refused(
        {
            "a": {"exact": 6},
            "x": {"absolute": [[2, 3], [1, 1]]},
            "d": {"days": [[1, 2]], "table": []},
            "zz": {"exact": 5},
        }
    )
    assert "score 'zz' must belong to a linking variable. Leave it out" in text
    assert "score of 'a': 'exact' must be a number from 0 to 5. Got 6 instead." in text
    assert "score of 'x': the limits of 'absolute' must be numbers of 0 or more that rise." in text
    assert "score of 'd': it must have one of" in text


@pytest.mark.parametrize(
    ("score", "words"),
    [
        ({"absolute": [[0, 3], [1, 4]]}, "must not rise with the difference"),
        ({"absolute": [[0, 3]], "beyond": 4}, "must not rise with the difference"),
        ({"absolute": [[0, -1]]}, "each score of 'absolute' must be a number from 0 to 5"),
        ({"absolute": [[0]]}, "must be a list of [limit, score]"),
        ({"absolute": []}, "must be a list of [limit, score]"),
        ({"table": [["u", "v"]]}, "must be a list of [PUF value, EIF value, score]"),
        ({"table": [["u", "v", 5.5]]}, "each score of 'table' must be a number from 0 to 5"),
        ({"exact": True}, "'exact' must be a number from 0 to 5"),
        ({"exact": 5, "beyond": 0}, "'beyond' does not belong to 'exact'"),
        ({"near": 5}, "it must have one of exact, absolute, relative, days, table"),
        (5, "it must be a mapping or a function. Got int instead."),
        (lambda p, _: p * 0 + 6, "must return scores from 0 to 5"),
        (lambda p, _: p * np.nan, "must return scores from 0 to 5"),
        (lambda p, _: p[:1], "must return one score a pair of values"),
        (lambda p, _: p + "x", "the function failed with"),
    ],
)
def test_a_bad_score_says_why(score, words):
    assert words in refused({"a": {"exact": 5}, "x": score}, ("a", "x"))


def test_every_variable_needs_a_score():
    assert "linking variable 'x' must have a score" in refused({"a": {"exact": 5}}, ("a", "x"))
    assert "scores must say how each linking variable is scored" in refused(None, ("a", "x"))


@pytest.mark.parametrize(
    ("name", "score", "words"),
    [
        ("a", {"absolute": [[0, 5]]}, "score of 'a': the variable must hold numbers. Got text"),
        ("x", {"days": [[0, 5]]}, "score of 'x': the variable must hold dates. Got numbers"),
        ("d", {"relative": [[0, 5]]}, "score of 'd': the variable must hold numbers. Got dates"),
    ],
)
def test_scores_must_suit_the_variable(name, score, words):
    scores = {**{n: {"exact": 5} for n in "axd"}, name: score}
    assert words in refused(scores)


def test_too_many_values_for_a_function():
    many = pl.DataFrame({"x": np.arange(6000) / 7, "a": ["u"] * 6000})
    with pytest.raises(OptionError, match="too many to score pair by pair"):
        link(
            many, many, link=["x", "a"], metric="adhoc",
            scores={"x": lambda p, _: p * 0, "a": {"exact": 5}},
        )  # fmt: skip


def test_tables_of_prices_are_laid_out_one_behind_the_other():
    """Each begins where the one before ends, and has as many columns as there are in its row."""
    empty = np.zeros(0)
    tables = [np.arange(6.0).reshape(2, 3), np.zeros((0, 0)), np.arange(4.0).reshape(2, 2) + 6]
    graded = [Graded("x", empty, empty, 1.0, grading.TABLE, table=table) for table in tables]
    graded.append(Graded("y", empty, empty, 2.0, grading.BAND, (1.0,), (0.0, 5.0)))
    rules = make_rules(Costs((), tuple(graded), 1.0, 1.0, 0.0, 0))
    found = [list(map(float, one)) for one in rules if isinstance(one, np.ndarray)]
    assert [0.0, 6.0, 6.0, 10.0] in found  # where each begins
    assert [3.0, 0.0, 2.0, 0.0] in found  # columns
    assert [0.0, 0.0, 0.0, 0.0, 2.0] in found  # where prices of bands begin
    assert [1.0, np.inf] in found
    assert [*map(float, range(10))] in found
