"""The three runs that Lin & Garin printed, reproduced from their own figures."""

import pytest

from keyhole.published.figures import (
    LIN_GARIN_VARIABLES,
    PublishedEvaluator,
    figures,
    summary_rows,
)
from keyhole.selection import backward, forward, stepwise

KEEP, CANDIDATES = LIN_GARIN_VARIABLES[:2], LIN_GARIN_VARIABLES[2:]
RUNS = {
    "forward": (forward, {"limit": 0.30}),
    "backward": (backward, {"limit": 0.05}),
    "stepwise": (stepwise, {"limit": 0.55, "drop_limit": 0.35}),
}


def run(name):
    search, options = RUNS[name]
    return search(PublishedEvaluator(), keep=KEEP, candidates=CANDIDATES, **options)


@pytest.mark.parametrize("name", RUNS)
def test_every_published_step_is_taken_in_its_order(name):
    printed = [(row["step"], set(row["variables"].split())) for row in summary_rows(name)]
    assert [(s.step, set(s.variables)) for s in run(name).steps] == printed


@pytest.mark.parametrize("name", RUNS)
def test_alpha_agrees_to_the_printed_digits_and_is_missing_where_the_papers_is(name):
    for step, row in zip(run(name).steps, summary_rows(name), strict=True):
        if row["alpha"] == "":
            assert step.alpha is None
        else:
            # Printed ratios carry three decimals, so a quotient of two is good to about 0.005.
            assert step.alpha == pytest.approx(float(row["alpha"]), abs=0.005)
        assert step.ratio == pytest.approx(float(row["ratio"]), abs=5e-4)


def test_forward_stops_at_source():
    stopped = run("forward").stopped
    assert (stopped.step, stopped.variable, stopped.reason) == ("F9", "source", "limit")
    assert stopped.rp == pytest.approx(0.346)


def test_backward_stops_just_above_the_limit_and_goes_on_within_it():
    result = run("backward")
    assert (result.stopped.step, result.stopped.variable) == ("B12", "ms")
    assert result.stopped.reason == "limit"
    assert set(result.selected) == {"sex", "ag8r", "pow", "ms", "cp"}
    assert set(result.within_limit) == {"sex", "ag8r", "pow", "cp"}


def test_stepwise_removes_cp_and_stops_on_its_reentry():
    result = run("stepwise")
    assert [s.variable for s in result.steps if s.step.startswith("B")] == ["cp"]
    assert (result.stopped.step, result.stopped.variable) == ("F11", "cp")
    assert result.stopped.reason == "reentry"
    assert result.stopped.rp == pytest.approx(0.523)
    assert result.within_limit == result.selected


def test_stepwise_never_removes_the_variable_entered_last():
    table = next(t for t in run("stepwise").step_tables if t.step == "B1")
    best = min(table.rows, key=lambda row: row.ratio)
    assert best.variable == "ms", "the printed table has ms, entered last, as the best to remove"


@pytest.mark.parametrize("name", RUNS)
def test_printed_candidate_tables_are_reproduced(name):
    tables = {t.step: {r.variable: r for r in t.rows} for t in run(name).step_tables}
    printed = [r for r in figures("lin_garin_steps") if r["run"] == name]
    assert printed
    for row in printed:
        ours = tables[row["step"]][row["variable"]]
        assert ours.rp == pytest.approx(float(row["rp"]), abs=1e-9)
        # At RP = 0 the printed ratio is 0 and says nothing of CR.
        assert ours.ratio == pytest.approx(float(row["ratio"]), abs=5e-4)


def test_f11_divides_by_the_current_set_as_formula_1_says():
    table = {t.step: t for t in run("stepwise").step_tables}["F11"]
    cp = next(row for row in table.rows if row.variable == "cp")
    assert cp.alpha == pytest.approx(0.983 / 0.938, abs=1e-3), "the paper prints 1.000 here"
