"""The rules of the searches, the frontier against all subsets, and the verb itself."""

import itertools
import math
import random
import time
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.data.examples import KEYS, veterans_sample
from keyhole.errors import InputError, OptionError
from keyhole.selection import Criterion, backward, forward, named_criterion, stepwise
from keyhole.selection.frontier import Hunt, frontier
from keyhole.selection.select import select


def answers(table):
    """Make an evaluator of {variables: (rp, cr)}; the order of variables does not matter."""
    known = {frozenset(k.split()): SimpleNamespace(rp=rp, cr=cr) for k, (rp, cr) in table.items()}
    return lambda variables: known[frozenset(variables)]


def slow_forward(evaluate, keep, candidates, limit):
    current = list(keep)
    while rest := [c for c in candidates if c not in current]:
        figures = {c: evaluate((*current, c)) for c in rest}
        ratio = {c: e.rp / e.cr for c, e in figures.items()}
        tied = [c for c in rest if ratio[c] <= min(ratio.values()) + 1e-9]
        winner = tied[0]
        if figures[winner].rp == 0:
            winner = max(tied, key=lambda c: (figures[c].cr, -rest.index(c)))
        if figures[winner].rp > limit:
            break
        current.append(winner)
    return tuple(current)


def slow_backward(evaluate, keep, candidates, limit):
    current = [*keep, *candidates]
    while rest := [c for c in candidates if c in current]:
        figures = {c: evaluate(tuple(v for v in current if v != c)) for c in rest}
        ratio = {c: e.rp / e.cr for c, e in figures.items()}
        tied = [c for c in rest if ratio[c] <= min(ratio.values()) + 1e-9]
        winner = tied[0]
        if figures[winner].rp == 0:
            winner = max(tied, key=lambda c: (figures[c].cr, -rest.index(c)))
        if figures[winner].rp < limit:
            break
        current.remove(winner)
    return tuple(current)


@st.composite
def files(draw):
    columns = draw(st.integers(2, 6))
    value = st.one_of(st.none(), st.integers(0, draw(st.integers(1, 4))))
    rows = draw(st.lists(st.tuples(*[value] * columns), min_size=1, max_size=80))
    names = list("abcdef"[:columns])
    schema = dict.fromkeys(names, pl.Int64)
    return pl.DataFrame(rows, schema, orient="row")


def counted(frame, cutoff):
    def evaluate(variables):
        sizes = frame.group_by(variables).len()["len"] if variables else pl.Series([frame.height])
        at_risk = sizes.filter(sizes < cutoff).sum()
        return SimpleNamespace(rp=at_risk / frame.height, cr=len(sizes) / frame.height)

    return evaluate


@given(files(), st.integers(2, 4), st.floats(0, 1))
def test_searches_agree_with_the_rule_written_out(frame, cutoff, limit):
    keep, candidates = frame.columns[:1], frame.columns[1:]
    evaluate = counted(frame, cutoff)
    for method, slow in (("forward", slow_forward), ("backward", slow_backward)):
        ours = select(
            frame, method=method, keep=keep, candidates=candidates, limit=limit, cutoff=cutoff
        )
        assert ours.selected == slow(evaluate, keep, candidates, limit)
        if ours.within_limit is None:
            assert evaluate(tuple(keep)).rp > limit
        else:
            assert evaluate(ours.within_limit).rp <= limit


@given(files(), st.integers(2, 4), st.floats(0, 1))
def test_an_engine_and_a_plain_function_take_the_same_stepwise_path(frame, cutoff, limit):
    keep, candidates = frame.columns[:1], frame.columns[1:]
    options = {"keep": keep, "candidates": candidates, "limit": limit}
    ours = select(frame, method="stepwise", cutoff=cutoff, **options)
    plain = stepwise(counted(frame, cutoff), **options)
    assert [s.step for s in ours.steps] == [s.step for s in plain.steps]
    assert [s.variables for s in ours.steps] == [s.variables for s in plain.steps]
    assert ours.stopped.reason == plain.stopped.reason
    visited = [frozenset(s.variables) for s in ours.steps]
    assert len(set(visited)) == len(visited), "a set came back and was not called a cycle"


@given(files(), st.integers(2, 4), st.floats(0, 1))
def test_frontier_is_every_maximal_set(frame, cutoff, limit):
    keep, candidates = frame.columns[:1], frame.columns[1:]
    evaluate = counted(frame, cutoff)
    good = [
        frozenset((*keep, *some))
        for size in range(len(candidates) + 1)
        for some in itertools.combinations(candidates, size)
        if evaluate((*keep, *some)).rp <= limit
    ]
    maximal = {s for s in good if not any(s < other for other in good)}
    found = frontier(frame, keep=keep, candidates=candidates, limit=limit, cutoff=cutoff)
    assert found.complete
    assert {frozenset(s.variables) for s in found.sets} == maximal
    for s in found.sets:
        assert (s.rp, s.cr) == (evaluate(s.variables).rp, evaluate(s.variables).cr)
    for greedy in found.greedy.values():
        assert (greedy is None) == (not maximal)
        if greedy is not None:
            assert greedy.cr <= found.best["cr"].cr
            assert greedy.size <= found.best["size"].size


def test_frontier_takes_one_alternative_of_a_variable():
    ages = [20, 21, 30, 31, 40, 41] * 4
    frame = pl.DataFrame({"sex": [0, 1] * 12, "age": ages, "age10": [a // 10 for a in ages]})
    found = frontier(frame, keep=["sex"], candidates=["age|age10"], limit=1)
    assert {s.variables for s in found.sets} == {("sex", "age"), ("sex", "age10")}


def test_frontier_counts_the_same_number_of_sets_however_threads_take_turns(monkeypatch):
    free = ["ag8r", "source", "pow", "ms", "aor", "means", "nsurg", "cp", "lsr", "race1", "nbs"]
    asked = {"keep": ["sex"], "candidates": free, "limit": 0.3}
    data, descend = veterans_sample(400), Hunt._descend
    monkeypatch.setattr("keyhole.selection.frontier.WORKERS", 1)
    alone = frontier(data, **asked)
    monkeypatch.setattr("keyhole.selection.frontier.WORKERS", len(free))
    for seed in range(20):
        turns = random.Random(seed)

        def late(hunt, head, *words, turns=turns):
            time.sleep(turns.random() / 50 if len(head) == 1 else 0)
            descend(hunt, head, *words)

        monkeypatch.setattr(Hunt, "_descend", late)
        assert frontier(data, **asked) == alone


def test_frontier_out_of_time_says_so():
    found = frontier(
        veterans_sample(3000), keep=["sex"], candidates=KEYS[1:], limit=0.2, seconds=1e-6
    )
    assert not found.complete
    assert any("ran out" in note for note in found.notes)
    assert all(s.rp <= 0.2 for s in found.sets)


def test_a_tie_at_no_risk_goes_to_the_higher_cr_and_else_to_the_earlier():
    free = answers({"a": (0, 0.1), "b": (0, 0.3), "a b": (1, 1)})
    assert forward(free, keep=[], candidates=["a", "b"], limit=0.5).selected == ("b",)
    risky = answers({"a": (0.1, 0.1), "b": (0.3, 0.3), "a b": (1, 1)})
    assert forward(risky, keep=[], candidates=["b", "a"], limit=0.5).selected == ("b",)


def test_alternatives_enter_once_and_backward_coarsens_before_it_drops():
    evaluate = answers(
        {
            "age": (0.5, 0.5),
            "age10": (0.1, 0.3),
            "": (0, 0.1),
            "age sex": (0.8, 0.7),
            "age10 sex": (0.2, 0.5),
            "sex": (0.0, 0.2),
        }
    )
    ahead = forward(evaluate, keep=["sex"], candidates=["age|age10"], limit=0.9)
    assert ahead.selected == ("sex", "age10")
    assert [r.variable for r in ahead.step_tables[0].rows] == ["age", "age10"]
    back = backward(evaluate, keep=["sex"], candidates=[("age", "age10")], limit=0.15)
    assert back.steps == ()
    assert back.stopped.variable == "age"
    assert back.within_limit == ("sex",)
    assert [r.variable for r in back.step_tables[0].rows] == ["age → age10", "age"]


def test_values_make_a_variable_worth_its_risk():
    evaluate = answers({"a": (0.10, 0.2), "b": (0.12, 0.2), "a b": (0.3, 0.4), "": (0, 0.1)})
    plain = forward(evaluate, keep=[], candidates=["a", "b"], limit=0.2)
    valued = forward(evaluate, keep=[], candidates=["a", "b"], limit=0.2, values={"b": 2})
    assert (plain.selected, valued.selected) == (("a",), ("b",))
    back = backward(evaluate, keep=[], candidates=["a", "b"], limit=0.05, values={"b": 2})
    assert back.steps[0].variable == "a"


def test_a_value_keeps_a_variable_from_being_coarsened():
    rates = {"age sex": (0.8, 0.7), "age10 sex": (0.2, 0.5), "sex": (0.3, 0.5), "age": (0.45, 0.5)}
    evaluate = answers({**rates, "age10": (0.1, 0.3), "": (0, 0.1)})
    options = {"keep": [], "candidates": [("age", "age10"), "sex"], "limit": 0.05}
    assert backward(evaluate, **options).steps[0].variable == "age → age10"
    assert backward(evaluate, **options, values={"age": 10}).steps[0].variable == "sex"


def test_difference_prints_its_own_figure_and_warns_at_weight_one():
    veterans = veterans_sample(2000)
    options = {"keep": ["sex"], "candidates": ["pow", "ms", "homstate"], "limit": 0.1}
    found = select(veterans, criterion="difference", **options)
    first = found.steps[0]
    assert first.alpha == pytest.approx(first.rp - 0.5 * first.cr)
    assert not any("RP - CR" in w for w in found.warnings)
    warned = select(veterans, criterion="difference", cr_weight=1.0, **options)
    assert any("RP - CR" in w for w in warned.warnings)


def test_any_function_of_rp_and_cr_is_a_criterion():
    assert named_criterion().figure(0, 0) == math.inf
    only_rp = Criterion("rp", lambda rp, _: rp)
    evaluate = answers({"a": (0.2, 0.9), "b": (0.1, 0.1), "a b": (1, 1)})
    found = forward(evaluate, keep=[], candidates=["a", "b"], limit=0.5, criterion=only_rp)
    assert found.selected == ("b",)


def test_stepwise_warns_when_nothing_could_ever_be_removed():
    evaluate = answers({"a": (0.1, 0.2), "b": (0.2, 0.2), "a b": (0.3, 0.4)})
    options = {"keep": [], "candidates": ["a", "b"], "limit": 0.2}
    assert stepwise(evaluate, drop_limit=0.2, **options).warnings
    quiet = stepwise(evaluate, **options)
    assert not quiet.warnings
    assert quiet.drop_limit == pytest.approx(0.13)


def test_nearly_dependent_variables_are_warned_of_and_can_be_left_out():
    veterans = veterans_sample(3000)
    options = {"keep": ["sex", "ag8r"], "candidates": ["psx", "psrcd", "pow"], "limit": 0.3}
    both = select(veterans, **options)
    assert {"psx", "psrcd"} <= set(both.selected)
    assert any("psrcd" in w and "psx" in w for w in both.warnings)
    one = select(veterans, skip_dependent=True, **options)
    assert "psrcd" not in one.selected
    assert any("left out" in w for w in one.warnings)


def test_by_subgroup_equals_selecting_in_the_subgroup():
    veterans = veterans_sample(3000)
    options = {"keep": ["ag8r"], "candidates": ["pow", "ms", "cp"], "limit": 0.05}
    whole = select(veterans, by="sex", **options)
    codes = veterans.codes("sex")
    for number, group in enumerate(whole.groups):
        alone = select(veterans.filter(codes.values == number), **options)
        assert group.selection.selected == alone.selected
        assert group.selection.steps == alone.steps
    assert sum(g.selection.records for g in whole.groups) == 3000


def test_keep_beyond_the_limit_leaves_nothing():
    frame = pl.DataFrame({"id": np.arange(50), "sex": [0, 1] * 25})
    found = select(frame, keep=["id"], candidates=["sex"], limit=0.1)
    assert found.within_limit is None
    assert found.to_dict()["notes"]
    assert "the variables kept exceed the limit by themselves" in found.summary()
    few = select(frame.head(2), candidates=["sex"], limit=0.1)
    assert "there are fewer records than the cutoff" in few.summary()
    assert frontier(frame, keep=["id"], candidates=["sex"], limit=0.1).sets == ()


def test_comparison_runs_every_combination():
    found = select(
        veterans_sample(2000),
        keep=["sex"],
        candidates=["pow", "ms", "homstate"],
        limit=[0.05, 0.2],
        cutoff=[2, 3],
        compare=True,
    )
    assert len(found.rows) == 12
    assert all(row.rp is None or row.rp <= row.selection.limit for row in found.rows)
    assert found.to_frame().height == 12
    for row, cells in zip(found.rows, found.tables()[0].rows, strict=True):
        chosen = row.selection.within_limit
        assert cells[3] == str(len(chosen or ()))
        assert cells[6] == (" ".join(chosen) if chosen else "nothing")


def test_all_problems_of_a_selection_at_once():
    with pytest.raises(OptionError) as error:
        select(pl.DataFrame({"a": [1]}), keep=["x"], candidates=["y"], limit=0.1, cutoff=0)
    assert len(error.value.problems) == 3
    with pytest.raises(
        OptionError, match=r"limit must be a number from 0 to 1, or several\. Got 5 instead"
    ):
        select(pl.DataFrame({"a": [1], "b": [2]}), candidates=["a", "b"], limit=5)
    with pytest.raises(OptionError, match=r"must name each variable once\. Got 'a' twice"):
        select(pl.DataFrame({"a": [1]}), keep=["a"], candidates=["a"], limit=0.1)


@pytest.mark.parametrize(
    "options",
    [
        {"candidates": None},
        {"candidates": [None]},
        {"candidates": [3]},
        {"keep": 3},
        {"limit": None},
        {"limit": True},
        {"limit": "few"},
        {"method": None},
        {"method": "stepwise", "limit": None},
        {"drop_limit": "x"},
        {"criterion": None},
        {"cr_weight": None},
        {"values": [1]},
        {"values": {"a": None}},
        {"values": {"a": float("inf")}},
        {"cutoff": 2**63},
        {"by": 3},
    ],
)
def test_what_is_no_option_is_refused(options):
    frame = pl.DataFrame({"a": [1, 2], "b": [1, 1]})
    with pytest.raises(InputError):
        select(frame, **{"candidates": ["a", "b"], "limit": 0.5, **options})
    shared = {"candidates", "keep", "limit", "values", "cutoff"}
    if set(options) <= shared:
        with pytest.raises(InputError):
            frontier(frame, **{"candidates": ["a", "b"], "limit": 0.5, **options})


@pytest.mark.parametrize(
    "options", [{"candidates": None}, {"keep": 3}, {"limit": [0.1, 0.1]}, {"method": [None]},
                {"cutoff": [3, 0]}, {"limit": []}, {"limit": [0.1, 0.2], "by": "a"}],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(options):
    frame = pl.DataFrame({"a": [1, 2], "b": [1, 1]})
    with pytest.raises(InputError):
        select(frame, **{"candidates": ["a", "b"], "limit": 0.1, "compare": True, **options})


def test_all_problems_of_a_frontier_at_once():
    with pytest.raises(OptionError) as error:
        frontier(
            pl.DataFrame({"a": [1]}), candidates=["b"], limit=2, cutoff=0, seconds=0,
            values={"a": -1},
        )  # fmt: skip
    assert len(error.value.problems) == 5


@pytest.mark.parametrize("method", ["forward", "backward", "stepwise"])
def test_no_set_is_within_the_limit_of_fewer_records_than_the_cutoff(method):
    frame = pl.DataFrame({"a": [1, 1], "b": [1, 2]})
    chosen = select(frame, method=method, candidates=["a", "b"], limit=0.5)
    assert chosen.within_limit is None
    assert "fewer records than the cutoff" in chosen.summary()
    found = frontier(frame, candidates=["a", "b"], limit=0.5)
    assert (found.complete, found.sets, set(found.greedy.values())) == (True, (), {None})
    assert any("fewer records than the cutoff" in note for note in found.notes)
    # With as many records as the cutoff no variable at all is within it, which is a set.
    wide = pl.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]})
    assert select(wide, method=method, candidates=["a", "b"], limit=0.5).within_limit == ()
    (only,) = frontier(wide, candidates=["a", "b"], limit=0.5).sets
    assert (only.variables, only.rp) == ((), 0)


def test_one_maximal_set_is_one_set():
    frame = pl.DataFrame({"a": [1] * 9, "b": [1, 2, 3] * 3})
    found = frontier(frame, candidates=["a", "b"], limit=0.1)
    assert found.tables()[1].title == "1 maximal set with RP(3) within 10%"


class Clock:
    """A clock by which every look takes a second."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1
        return self.now


def test_the_greedy_searches_of_a_frontier_end_in_time(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("keyhole.selection.frontier.time", clock)
    monkeypatch.setattr("keyhole.selection.frontier.time", clock)
    asked = {"keep": ["sex"], "candidates": KEYS[1:], "limit": 0.2}
    found = frontier(veterans_sample(3000), **asked, seconds=12)
    assert not found.complete
    assert clock.now < 12 + 2 * len(KEYS)  # every branch that waits looks once more
    # Half of the time is for greedy searches, of which the first takes all.
    assert found.greedy == {}
    assert "not done in time, and so not compared: forward, backward, stepwise" in found.notes
    assert all(s.rp <= 0.2 for s in found.sets)
    assert "in time" in found.summary()
    assert "nothing within the limit" not in found.summary()


def test_small_groups_are_named_only_to_those_who_ask():
    frame = pl.DataFrame({"g": ["big"] * 6 + ["smith"], "a": [1] * 7, "b": [1, 2] * 3 + [1]})
    found = select(frame, candidates=["a", "b"], limit=0.1, by="g")
    assert found.tables()[1].rows == [["big", "6", "b a"], ["(1 smaller)", "1", "not shown"]]
    assert "Groups of fewer than 3 records are not named" in found.summary()
    assert "smith" not in found.summary()
    named = select(frame, candidates=["a", "b"], limit=0.1, by="g", name_small_groups=True)
    assert named.tables()[1].rows[1] == ["smith", "1", "nothing"]
    assert [g["group"] for g in found.to_dict()["groups"]] == ["big", "smith"]


def test_results_print_become_frames_and_escape_names():
    frame = pl.DataFrame({"<b>x</b>": [1, 1, 2, 2] * 5, "y": [1, 2] * 10})
    found = select(frame, candidates=["<b>x</b>", "y"], limit=0.5)
    assert "<b>x</b>" in found.summary()
    assert "<b>x</b>" not in found._repr_html_()
    assert found.to_frame().columns[:3] == ["step", "variable", "variables"]
    assert found.table("F1").columns[0] == "newvar"
