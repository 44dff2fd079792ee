"""The certificate: it agrees here, and it would say so if something did not."""

from collections import Counter

import numpy as np
import pytest

from keyhole.published import certificate
from keyhole.published.certificate import Certificate, FigureCheck, selftest
from keyhole.published.figures import figures, summary_rows
from keyhole.reidentification.study import link
from keyhole.selection import Criterion, named_criterion
from keyhole.synthesis.changes import changes_in_levels


@pytest.fixture(scope="module")
def found():
    return selftest()


def test_every_published_figure_agrees(found):
    assert [row for row in found.rows if not row.agrees] == []
    assert found.passed


def test_every_printed_step_and_record_is_there(found):
    lines = {}
    for row in found.rows:
        lines.setdefault(row.example, []).append(row)
    for run in ("forward", "backward", "stepwise"):
        mine = next(rows for name, rows in lines.items() if name.startswith(f"Lin & Garin, {run}"))
        steps = [row.what for row in mine if row.computed == "α"]
        assert steps == [row["step"] for row in summary_rows(run)]
        rivals = Counter(row["step"] for row in figures("lin_garin_steps") if row["run"] == run)
        told = [row.what for row in mine if "which is taken" in row.computed]
        assert told == [f"{step}, {many} candidates printed" for step, many in rivals.items()]
    scores = [row.ours for row in found.rows if row.what.startswith("SUDA score")]
    assert " ".join(scores).split() == ["0", "0", "6", "0", "12", "0", "6", "10", "0", "0"]
    papers = ("Lin & Garin", "Hawala & Funk", "Singer & Dajani", "Elliot, Mackey & Purdam")
    assert all(any(name.startswith(paper) for name in lines) for paper in papers)
    assert set(lines) == set(certificate.INPUTS), "each says what it was given"


def failing_runs(criterion):
    """Return the runs of the paper that fail with a criterion."""
    found = []
    for method in certificate.LIMITS:
        run = certificate._lin_garin(method, criterion)
        if not all(row.agrees for row in certificate._compared("x", run)):
            found.append(method)
    return found


@pytest.mark.parametrize("wrong", certificate.WRONG)
def test_every_wrong_criterion_fails_the_certificate(wrong):
    """Each run notices by α; and where α is the paper's, but the choice is not, at least one."""
    formula = certificate.WRONG[wrong]
    assert failing_runs(Criterion(wrong, formula)) == [*certificate.LIMITS]
    assert failing_runs(Criterion("ratio", formula))
    assert not failing_runs(named_criterion())


def test_a_criterion_that_is_not_wrong_is_no_proof(monkeypatch):
    right = {"ratio": named_criterion().figure}
    monkeypatch.setattr(certificate, "WRONG", right)
    (row,) = certificate._compared("x", certificate._wrong_criteria)
    assert (row.agrees, row.ours) == (False, "0 of 12, 0 of 15, 0 of 16")


@pytest.mark.parametrize(
    ("name", "wrong", "example"),
    [
        ("resource_band", lambda index: "low" if index < 6 else "high-medium", "Elliot"),
        ("link", lambda *a, **o: link(*a, **{**o, "rank_cap": 6, "alpha": 0.6}), "Singer"),
        ("changes_in_levels", lambda c, who, n: changes_in_levels(c[:, ::-1], who, n), "Hawala"),
    ],
)
def test_a_wrong_rule_of_another_paper_fails_too(monkeypatch, name, wrong, example):
    monkeypatch.setattr(certificate, name, wrong)
    run = next(run for paper, run in certificate.EXAMPLES.items() if paper.startswith(example))
    assert any(not row.agrees for row in certificate._compared("x", run))


def test_the_same_figures_have_the_same_hash(found):
    assert selftest().sha256 == found.sha256
    other = Certificate((*found.rows[:-1], FigureCheck("a", "b", "c", "1", "2", False)), {}, "")
    assert other.sha256 != found.sha256


def test_the_certificate_prints_versions_result_and_hash(found):
    text = found.summary()
    for part in ("keyhole ", "numpy ", found.sha256, f"all {len(found.rows)} figures agree"):
        assert part in text
    assert max(map(len, text.splitlines()[:-1])) <= 140
    assert "Given: the printed RP and RP/CR of each set" in text
    assert found.to_dict()["rows"][0]["what"] == "F1, 14 candidates printed"
    assert found.to_frame().height == len(found.rows)


def test_a_wrong_choice_of_step_is_found(monkeypatch):
    rows = [dict(row) for row in summary_rows("forward")]
    rows[2]["variables"] = "sex ag8r pow aor cp"
    monkeypatch.setattr(certificate, "summary_rows", lambda run: rows if run == "forward" else [])
    run = certificate._lin_garin("forward")
    found = certificate._compared("x", run)
    assert [row.what for row in found if not row.agrees] == ["F3"]


def test_a_kernel_that_miscounts_fails_the_certificate(monkeypatch):
    from keyhole.engines.memory import RecordCells

    honest = RecordCells.__init__

    def dishonest(self, *args):
        honest(self, *args)
        self._sizes = np.where(np.arange(len(self._sizes)) == 5, self._sizes + 1, self._sizes)

    monkeypatch.setattr(RecordCells, "__init__", dishonest)
    found = selftest()
    assert not found.passed
    assert {row.example for row in found.rows if not row.agrees} >= {"Kernels against slow counts"}
    assert "do not rely on this installation" in found.summary()


def test_an_example_that_stops_is_a_failure_not_a_crash(monkeypatch):
    monkeypatch.setattr(certificate, "risk", lambda *_, **__: 1 / 0)
    found = selftest()
    assert not found.passed
    assert "stopped: ZeroDivisionError" in found.summary()
