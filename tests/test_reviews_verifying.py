"""`keyhole verify` and `keyhole report`: a dossier is what its inputs give, or it is told."""

import dataclasses
import json
import os
import re
import shutil

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reviews import plain_pictures
from tests.whole_review import REVIEW, SEED, files, review_in

import keyhole
from keyhole.cli.main import run as run_verb
from keyhole.core.codec import plain_values
from keyhole.data import load
from keyhole.errors import InputError
from keyhole.protection.plan import Plan
from keyhole.reviews import checks
from keyhole.reviews.result import compare_values, restore_review
from keyhole.reviews.stages import exposure as exposure_stages
from keyhole.reviews.store import digest, to_json, versions
from keyhole.reviews.verifying import _is_same, _notes

pytestmark = pytest.mark.usefixtures("plain_charts")

SMALL = REVIEW[: REVIEW.index("[selection]")] + REVIEW[REVIEW.index("[protection]") :]
SMALL = SMALL[: SMALL.index("[synthesis]")]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, sample):
    """A folder with a small review that has run to its end."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.reviews.runner._pictures", plain_pictures)
        keyhole.review(review_in(folder, sample, SMALL, 200), out=folder / "out")
    return folder


@pytest.fixture
def folder(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_whole_dossier_is_computed_again_to_the_last_figure(tmp_path, sample):
    keyhole.review(review_in(tmp_path, sample), out=tmp_path / "out")
    before = files(tmp_path)
    found = keyhole.verify(tmp_path / "out")
    assert found.same
    assert not found.differences
    assert found.figures > 2_000
    assert [part.name for part in found.inputs] == ["review.toml", "veterans.csv"]
    stages = set(json.loads((tmp_path / "out/results.json").read_text())["stages"])
    compared = {part.name for part in found.parts}
    assert stages <= compared
    assert {"limits", "settings", "report.html", "public-note.html"} <= compared
    assert files(tmp_path) == before, "a dossier is only read"
    assert str(SEED) not in json.dumps(found.to_dict()) + found.summary()


def numbers(value, at=()):
    """Yield the path of every number of plain values."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from numbers(one, (*at, name))
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from numbers(one, (*at, i))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at


def change(value, at):
    """Change one number somewhat."""
    for step in at[:-1]:
        value = value[step]
    value[at[-1]] = value[at[-1]] + 1


@pytest.mark.parametrize(("place", "mended"), [(0.1, False), (0.5, True), (0.9, True)])
def test_any_figure_of_the_results_that_was_changed_is_named(folder, place, mended):
    path = folder / "out/results.json"
    content = json.loads(path.read_text())
    at = [*numbers(content)]
    at = at[int(place * len(at))]
    change(content, at)
    if mended:
        content.pop("sha256")
        content["sha256"] = digest(content)
    path.write_text(to_json(content))
    found = keyhole.verify(folder / "out")
    assert not found.same
    named = [re.sub(r"\[(\d+)\]", r".\1", one).partition(": ")[2] for one in found.differences]
    assert ".".join(map(str, at)) in [one.lstrip(".") for one in named]


def test_figures_changed_in_a_stage_and_everywhere_else_are_named(folder):
    """A careful forger changes the figure in every file, and mends every hash."""
    out = folder / "out"
    record = json.loads((out / "stages/exposure.json").read_text())
    content = json.loads((out / "results.json").read_text())
    for figures in (record["result"], content["stages"]["exposure"]):
        figures["cells"] -= 1
    record["sha256"] = digest([record["result"], record["tables"]])
    content.pop("sha256")
    content["sha256"] = digest(content)
    (out / "stages/exposure.json").write_text(to_json(record))
    (out / "results.json").write_text(to_json(content))
    keyhole.report(out)  # the hashes fit, so that the page is written
    found = keyhole.verify(out)
    assert "stages/exposure.json: .result.cells" in found.differences
    assert "results.json: stages.exposure.cells" in found.differences
    assert "report.html does not match the figures" in found.differences


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("report.html", "Not met", "Met"),
        ("public-note.html", "suppressed", "kept"),
        ("stages/exposure.json", '"cutoff": 3', '"cutoff": 4'),
        ("stages/data.json", '"title": "The data"', '"title": "Data"'),
        ("protection/release/protected.csv", "\n", "\n\n"),
        ("protection/internal/parameters.json", str(SEED), "5"),
        ("charts/exposure.svg", "M0,0", "M1,1"),
    ],
)
def test_any_file_that_was_changed_is_named(folder, name, old, new):
    path = folder / "out" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    found = keyhole.verify(folder / "out")
    assert found.differences
    assert all(name in one for one in found.differences), found.differences
    assert str(SEED) not in found.summary()


@pytest.mark.parametrize("name", ["stages/uniques.json", "report.html", "protection/release"])
def test_what_is_not_there_is_named(folder, name):
    path = folder / "out" / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    found = keyhole.verify(folder / "out")
    assert found.differences
    assert all(one.startswith(name) for one in found.differences)


def test_a_stage_that_the_review_does_not_have_is_named(folder):
    (folder / "out/stages/frontier.json").write_text("{}")
    found = keyhole.verify(folder / "out")
    assert found.differences == ("stages/frontier.json (should not be there)",)


def test_changed_inputs_are_named_and_nothing_is_computed(folder, monkeypatch):
    monkeypatch.setattr("keyhole.reviews.verifying.run_review", lambda *_, **__: 1 / 0)
    data = folder / "veterans.csv"
    text = data.read_text()
    data.write_text(text + text.splitlines()[-1] + "\n")
    (folder / "review.toml").write_text(SMALL.replace("limit = 0.01", "limit = 0.02"))
    found = keyhole.verify(folder / "out")
    assert not found.same
    assert not found.parts
    assert [part.name for part in found.inputs if not part.same] == ["review.toml", "veterans.csv"]
    # A header without the columns is another file first, and no review at all second.
    data.write_text("a,b\n1,2\n")
    assert "veterans.csv is another file" in keyhole.verify(folder / "out").differences
    data.unlink()
    with pytest.raises(InputError, match="is not beside the review file"):
        keyhole.verify(folder / "out")


def test_a_plan_in_a_file_of_its_own_is_an_input_too(tmp_path, sample):
    plan = tmp_path / "plan.toml"
    plan.write_text('[[step]]\nmethod = "top-code"\ncolumn = "age"\nvalue = 80\n')
    text = SMALL[: SMALL.index("[[protection")] + 'plan = "plan.toml"\n'
    keyhole.review(review_in(tmp_path, sample, text, 200), out=tmp_path / "out")
    assert keyhole.verify(tmp_path / "out").same
    plan.write_text(plan.read_text().replace("80", "75"))
    found = keyhole.verify(tmp_path / "out")
    assert [part.name for part in found.inputs if not part.same] == ["plan.toml"]


def test_a_dossier_of_another_year_is_screened_in_that_year(folder, monkeypatch):
    class Later(exposure_stages.datetime.date):
        @classmethod
        def today(cls):
            return cls(2099, 1, 1)

    monkeypatch.setattr(exposure_stages.datetime, "date", Later)
    assert keyhole.verify(folder / "out").same


def test_the_review_file_may_lie_elsewhere(folder, tmp_path):
    (folder / "out").rename(tmp_path / "moved")
    with pytest.raises(InputError):
        keyhole.verify(tmp_path / "moved")
    assert keyhole.verify(tmp_path / "moved", review=folder / "review.toml").same


def test_folders_without_a_finished_review_are_refused(folder, tmp_path):
    for verb in (keyhole.verify, keyhole.report):
        with pytest.raises(InputError, match="is not a folder"):
            verb(tmp_path / "nowhere")
        with pytest.raises(InputError, match="holds no finished review"):
            verb(folder)
    results = folder / "out/results.json"
    content = json.loads(results.read_text())
    content["versions"]["keyhole"] = "99.0.0"
    results.write_text(to_json(content))
    for verb in (keyhole.verify, keyhole.report):
        with pytest.raises(InputError, match="another version of keyhole"):
            verb(folder / "out")
    results.write_text("[]")
    for verb in (keyhole.verify, keyhole.report):
        with pytest.raises(InputError, match="cannot be read as the results"):
            verb(folder / "out")


def test_the_report_is_written_again_without_the_data(folder):
    out = folder / "out"
    before = files(out)
    (folder / "veterans.csv").unlink()
    (folder / "review.toml").unlink()
    (out / "public-note.html").unlink()
    (out / "report.html").write_text("gone")
    found = keyhole.report(out)
    assert files(out) == before
    assert set(found.reused) == set(found.records)
    assert not found.met


def test_the_settings_come_back_from_the_results_as_they_were(tmp_path, sample):
    review, _ = checks.read_review(review_in(tmp_path, sample))
    content = {
        "settings": plain_values(review.to_dict()),
        "review": {"file": "review.toml", "sha256": review.sha256},
    }
    restored = restore_review(json.loads(json.dumps(content)))
    # What is secret stays at home, and no page needs it.
    plan = restored.protection.plan
    expected = dataclasses.replace(
        review,
        path=restored.path,
        protection=review.protection.replace(seed=None, plan=plan),
        synthesis=review.synthesis.replace(seed=None),
    )
    assert restored == expected
    methods = [step.method for step in Plan.parse(plan).steps]
    assert methods == ["top-code", "pram", "suppress"]


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("stages/exposure.json", '"uniques": ', '"uniques": 1', "its hash does not match"),
        ("stages/exposure.json", "{", "", "is not there, or cannot be read"),
        ("results.json", '"title": "A', '"title": "B', "its hash does not match"),
        ("charts/exposure.svg", "M0", "M1", "not as it was written"),
    ],
)
def test_a_report_is_not_made_from_records_that_are_not_whole(folder, name, old, new, words):
    out = folder / "out"
    path = out / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    before = files(out)
    with pytest.raises(InputError, match=words) as caught:
        keyhole.report(out)
    assert "Run the review again" in str(caught.value)
    assert files(out) == before


def test_the_verbs(folder, capsys):
    out = str(folder / "out")
    assert run_verb(["verify", out, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["same"] is True
    assert found["figures"] == sum(part["figures"] for part in found["parts"])
    assert run_verb(["report", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["public_note"].endswith("public-note.html")
    page = folder / "out/report.html"
    page.write_text(page.read_text().replace("Exposure", "exposure"))
    assert run_verb(["verify", out]) == 1
    assert "report.html does not match the figures" in capsys.readouterr().out
    assert run_verb(["verify", str(folder / "nowhere")]) == 2


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(PLAIN, PLAIN)
def test_values_that_differ_are_told_and_only_those(one, other):
    assert not compare_values(one, json.loads(json.dumps(one))).differences
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert bool(compare_values(one, other, "x").differences) != same


def test_a_path_that_is_not_utf8_is_verified_like_any_other(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    (folder / "people.csv").write_text("sex,age\nf,30\nf,30\nf,30\nm,41\n")
    (folder / "review.toml").write_text('keys = ["sex"]\n[data]\nfile = "people.csv"\n')
    keyhole.review(folder / "review.toml", out=tmp_path / "out")
    assert keyhole.verify(tmp_path / "out").same


def test_a_file_that_says_when_it_was_written_is_compared_by_what_it_holds(tmp_path):
    """SPSS files have the time of day in bytes 101 to 108, Excel's are archives with a date."""
    frame = pl.DataFrame({"age": [31, 47], "sex": ["f", "m"]})
    one, other = tmp_path / "one.sav", tmp_path / "other.sav"
    load(frame).save(one)
    written = one.read_bytes()
    assert written[103:104] == written[106:107] == b":"
    other.write_bytes(written[:101] + b"25:61:61" + written[109:])
    assert _is_same(one, other)
    load(frame, labels={"age": "Age"}).save(other, force=True)
    assert not _is_same(one, other)
    load(frame.with_columns(age=pl.Series([31, 48]))).save(other, force=True)
    assert not _is_same(one, other)
    for path, text in ((one, "age\n31\n"), (other, "age\r\n31\r\n")):
        path.with_suffix(".csv").write_text(text)
    assert not _is_same(one.with_suffix(".csv"), other.with_suffix(".csv"))


def test_what_another_version_or_a_search_cut_short_may_change_is_noted():
    stored = {"versions": {**versions(), "polars": "0.1", "gone": "2"}, "settings": {"solve": {}}}
    stored |= {"stages": {"solve": {"complete": False}, "frontier": {"complete": True}}}
    said, cut = _notes(stored)
    here = versions()["polars"]
    assert said.endswith(f"was made with polars 0.1 (here {here}), gone 2 (here none).")
    assert cut.startswith("The search of solve ran out of time")
    stored |= {"versions": versions(), "settings": {"solve": {"evaluations": 9}}}
    assert [*_notes(stored)] == []


def test_a_review_file_that_was_made_unfit_is_another_file(folder):
    """It is not read once its bytes differ, so that it cannot fail either."""
    path = folder / "review.toml"
    path.write_text(path.read_text() + "\n[nonsense]\nx = 1\n")
    found = keyhole.verify(folder / "out")
    assert [one.name for one in found.inputs if not one.same] == ["review.toml"]
    assert not found.parts
