"""The certificate: it agrees here, and it would say so if something did not."""

import numpy as np
import pytest

from keyhole.published import certificate
from keyhole.published.certificate import Certificate, FigureCheck, selftest
from keyhole.published.figures import summary_rows


@pytest.fixture(scope="module")
def found():
    return selftest()


def test_every_published_figure_agrees(found):
    assert [row for row in found.rows if not row.agrees] == []
    assert found.passed


def test_every_printed_step_and_record_is_there(found):
    steps = {row.what for row in found.rows if row.example.startswith("Lin & Garin, stepwise")}
    assert steps == {*(row["step"] for row in summary_rows("stepwise")), "stop"}
    forward = [row.what for row in found.rows if row.example.startswith("Lin & Garin, forward")]
    assert forward == [*(f"F{i}" for i in range(1, 9)), "stop"]
    backward = [row.what for row in found.rows if row.example.startswith("Lin & Garin, backward")]
    assert backward == [*(f"B{i}" for i in range(1, 12)), "stop"]
    scores = [row.ours for row in found.rows if row.what.startswith("SUDA score")]
    assert " ".join(scores).split() == ["0", "0", "6", "0", "12", "0", "6", "10", "0", "0"]


def test_the_same_figures_have_the_same_hash(found):
    assert selftest().sha256 == found.sha256
    other = Certificate((*found.rows[:-1], FigureCheck("a", "b", "1", "2", False)), {}, "")
    assert other.sha256 != found.sha256


def test_the_certificate_prints_versions_result_and_hash(found):
    text = found.summary()
    for part in ("keyhole ", "numpy ", found.sha256, f"all {len(found.rows)} figures agree"):
        assert part in text
    assert max(map(len, text.splitlines()[:-1])) <= 120
    assert found.to_dict()["rows"][0]["what"] == "F1"
    assert found.to_frame().height == len(found.rows)


def test_a_wrong_choice_of_step_is_found(monkeypatch):
    rows = [dict(row) for row in summary_rows("forward")]
    rows[2]["variables"] = "sex ag8r pow aor cp"
    monkeypatch.setattr(certificate, "summary_rows", lambda run: rows if run == "forward" else [])
    run = certificate._lin_garin("forward", {"limit": 0.3})
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
