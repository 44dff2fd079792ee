"""Dossiers of older versions: hashes are checked, figures recounted, and the rest is named."""

import dataclasses
import json
import shutil

import pytest
from tests.reviews import plain_pictures
from tests.whole_review import REVIEW, files, review_in

import keyhole
from keyhole.cli.main import run as run_verb
from keyhole.errors import InputError
from keyhole.reviews import runner, verifying
from keyhole.reviews.store import digest, to_json

pytestmark = pytest.mark.usefixtures("plain_charts")

SMALL = REVIEW[: REVIEW.index("[selection]")] + REVIEW[REVIEW.index("[protection]") :]
SMALL = SMALL[: SMALL.index("[synthesis]")].replace("[exposure]", "[exposure]\ncutoff = 3")
PAGES = ["report.html", "public-note.html"]


def edit(out, change, stage="exposure"):
    """Change a stage's record and the results alike, and mend their hashes."""
    record = json.loads((out / f"stages/{stage}.json").read_text())
    content = json.loads((out / "results.json").read_text())
    change(record, content)
    record["sha256"] = digest([record["result"], record["tables"]])
    content["stages"][stage] = record["result"]
    content.pop("sha256")
    content["sha256"] = digest(content)
    (out / f"stages/{stage}.json").write_text(to_json(record))
    (out / "results.json").write_text(to_json(content))


def age(record, content):
    """Make a dossier as 0.1 made it: fewer members, other words, no hashes of pages."""
    content["versions"]["keyhole"] = "0.1.0"
    del content["pages"]
    record["key"] = "of 0.1"
    del record["result"]["at_risk_records"]
    record["tables"][0]["title"] = "As it was called then"
    record["result"]["notes"] = [f"Then: {note}" for note in record["result"]["notes"]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, sample):
    """A folder with a small review by 0.1 that has run to its end."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.reviews.runner._pictures", plain_pictures)
        keyhole.review(review_in(folder, sample, SMALL, 120), out=folder / "out")
    edit(folder / "out", age)
    for page in PAGES:
        (folder / "out" / page).write_text("as they were written then")
    return folder


@pytest.fixture
def out(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy" / "out"


def remarks(found):
    return {part.name: part.remark for part in found.parts if part.remark}


def test_figures_are_recounted_and_pages_without_hashes_are_named(out, capsys):
    before = files(out)
    assert run_verb(["verify", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["same"]
    assert found["figures"] > 300
    told = {part["part"]: part["remark"] for part in found["parts"] if part["remark"]}
    assert told == dict.fromkeys((*PAGES, "outgoing"), "made by 0.1, not recomputed")
    assert files(out) == before
    assert run_verb(["verify", str(out)]) == 0
    assert (
        "Made by 0.1, not recomputed: The release, Dossier, Public note." in capsys.readouterr().out
    )


def test_a_figure_that_was_changed_is_named_though_all_hashes_fit(out):
    edit(out, lambda record, _: record["result"].update(uniques=record["result"]["uniques"] - 1))
    assert keyhole.verify(out).differences == ("results.json: stages.exposure.uniques",)


def test_an_option_that_the_review_file_states_is_not_taken_from_the_dossier(out):
    edit(out, lambda record, _: record["asked"].update(cutoff=4))
    assert keyhole.verify(out).differences == ("stages/exposure.json: asked.cutoff",)


def test_a_default_is_asked_as_it_was_then(out, monkeypatch):
    """The review file does not say how missing values are read."""

    def ask(stage):
        def asked(review, earlier):
            found = stage.ask(review, earlier)
            return found and {**found, "missing": "any"}

        return dataclasses.replace(stage, ask=asked) if stage.name == "exposure" else stage

    monkeypatch.setattr(runner, "STAGES", tuple(map(ask, runner.STAGES)))
    assert keyhole.verify(out).same


def test_a_stage_whose_method_has_changed_is_checked_by_its_hashes(out, monkeypatch):
    stage = verifying._STAGES["exposure"]
    changed = dataclasses.replace(stage, since="0.2")
    monkeypatch.setitem(verifying._STAGES, "exposure", changed)
    edit(out, lambda record, _: record["result"].update(rp=0.123))
    found = keyhole.verify(out)
    assert found.same
    assert remarks(found)["exposure"] == "made by 0.1, not recomputed"
    (out / "charts/exposure.svg").write_text("<svg/>")
    assert keyhole.verify(out).differences == ("charts/exposure.svg",)


def test_a_stage_is_recomputed_from_the_version_of_its_method_on(out, monkeypatch):
    """Unless it builds on one that is not."""
    stages = verifying._STAGES
    others = {name: dataclasses.replace(one, since="0.1.0") for name, one in stages.items()}
    others["exposure"] = dataclasses.replace(stages["exposure"], since="0.1.1")
    monkeypatch.setattr(verifying, "_STAGES", others)
    told = {*remarks(keyhole.verify(out))} & {*others}
    there = json.loads((out / "results.json").read_text())["stages"]
    builders = {name for name in there if "exposure" in others[name].inputs}
    assert builders
    assert told == {"exposure", *builders}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stages/exposure.json", "stages/exposure.json is not as it was written"),
        ("results.json", "results.json is not as it was written"),
        ("charts/uniques.svg", "charts/uniques.svg"),
        ("protection/release/protected.csv", "protection/release/protected.csv"),
    ],
)
def test_a_file_that_was_edited_is_named(out, name, told):
    text = (out / name).read_text()
    old, new = ("As it was called then", "Edited") if name.startswith("stages") else ("3", "4")
    if name == "results.json":
        old, new = '"numpy": "', '"numpy": "9'
    old = old if old in text else "M0"
    (out / name).write_text(text.replace(old, new, 1))
    assert told in keyhole.verify(out).differences


def test_files_that_the_dossier_does_not_tell_of_are_named(out):
    (out / "charts/more.svg").write_text("<svg/>")
    (out / "stages/more.json").write_text("{}")
    (out / "protection/release/more.csv").write_text("a\n1\n")
    (out / "public-note.html").unlink()
    assert sorted(keyhole.verify(out).differences) == [
        "charts/more.svg (should not be there)",
        "protection/release/more.csv",
        "public-note.html is not there",
        "stages/more.json (should not be there)",
    ]


def test_pages_are_checked_by_their_hashes(out, monkeypatch):
    """As those of 0.2 will be by a later version."""
    hashes = {page: keyhole.reviews.files.hash_file(out / page) for page in PAGES}
    edit(out, lambda _, content: content.update(pages=hashes))
    monkeypatch.setattr("keyhole.reviews.store.keyhole_version", lambda: "0.3.0")
    found = keyhole.verify(out)
    assert found.same
    assert set(remarks(found)) == {"outgoing"}, "0.1 measured no release"
    (out / "report.html").write_text("edited")
    assert keyhole.verify(out).differences == ("report.html is not as it was written",)


def test_pages_are_not_written_again_by_another_version(out):
    with pytest.raises(InputError, match="another version of keyhole"):
        keyhole.report(out)
