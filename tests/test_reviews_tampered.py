"""Folders of reviews that somebody tampered with: they are told of, never followed or believed."""

import json
import os
import shutil

import pytest
from tests.reviews import plain_pictures
from tests.whole_review import REVIEW, files, review_in

import keyhole
from keyhole.cli.main import run as run_verb
from keyhole.errors import InputError
from keyhole.reviews.store import ResultStore, digest

SMALL = REVIEW[: REVIEW.index("[selection]")] + REVIEW[REVIEW.index("[protection]") :]
SMALL = SMALL[: SMALL.index("[synthesis]")]
DEEP = "[" * 100_000


@pytest.fixture(autouse=True)
def _quick_charts(monkeypatch):
    monkeypatch.setattr("keyhole.reviews.runner._pictures", plain_pictures)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, sample):
    """A folder with a small review that has run to its end."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.reviews.runner._pictures", plain_pictures)
        keyhole.review(review_in(folder, sample, SMALL, 120), out=folder / "out")
    return folder


@pytest.fixture
def out(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy" / "out"


def put(path, at, value, *, mended):
    """Put a value into a file of the folder, and mend the hash if asked for."""
    content = json.loads(path.read_text())
    inner = content
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = value
    if mended and path.name == "results.json":
        content.pop("sha256", None)
        content["sha256"] = digest(content)
    elif mended:
        content["sha256"] = digest([content.get("result"), content.get("tables")])
    path.write_text(json.dumps(content))


WRONG = [
    ("stages",), ("files",), ("files", "data"), ("files", "data", "file"), ("versions",),
    ("versions", "numpy"), ("settings",), ("settings", "screen"), ("settings", "exposure"),
    ("settings", "keys"), ("limits",), ("review",), ("review", "sha256"), ("title",), ("data",),
    ("stages", "exposure"), ("stages", "data"), ("sha256",),
]  # fmt: skip


@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("at", WRONG)
def test_wrong_types_in_the_results_are_problems_of_the_folder(out, at, mended, monkeypatch):
    # What is compared after computing is tested elsewhere; here nothing may fail on the way.
    monkeypatch.setattr("keyhole.reviews.verifying._computed", lambda *_: iter(()))
    original = (out / "results.json").read_text()
    for value in ([1], "x", None):
        (out / "results.json").write_text(original)
        put(out / "results.json", at, value, mended=mended and at != ("sha256",))
        for verb in (keyhole.verify, keyhole.report):
            try:
                said = verb(out).summary()
            except InputError as error:
                said = "\n".join(error.problems)
            assert said.strip()
            assert "Traceback" not in said


@pytest.mark.parametrize("content", [DEEP, '{"a":' * 500 + "1" + "}" * 500, "{}"])
@pytest.mark.parametrize("name", ["results.json", "keyhole-review.json", "stages/exposure.json"])
def test_what_has_no_end_or_is_no_record_is_told(out, name, content, capsys):
    (out / name).write_text(content)
    codes = {verb: run_verb([verb, str(out)]) for verb in ("verify", "report")}
    said = capsys.readouterr()
    assert codes["verify"] == (1 if name.startswith("stages") else 2)
    assert codes["report"] == (0 if name.startswith("keyhole") else 2)
    assert name in said.out + said.err
    assert "bug in keyhole" not in said.err


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("exposure", ("result", "rp"), "x"),
        ("exposure", ("result",), {}),
        ("protection", ("result", "ledger"), {}),
        ("protection", ("result", "steps"), [1]),
    ],
)
def test_figures_made_up_with_fitting_hashes_are_told(out, name, at, value):
    put(out / f"stages/{name}.json", at, value, mended=True)
    put(out / "results.json", ("stages", *(name, *at[1:])), value, mended=True)
    before = files(out)
    with pytest.raises(InputError, match="Run the review again"):
        keyhole.report(out)
    assert files(out) == before
    assert not keyhole.verify(out).same


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("charts",), {"../../secret": "0"}),
        (("charts",), [1]),
        (("tables",), [{"title": "x", "columns": ["a"], "rows": [["1", "2"]], "notes": []}]),
        (("stage",), "other"),
    ],
)
def test_records_of_another_shape_are_none(out, at, value):
    put(out / "stages/exposure.json", at, value, mended=True)
    assert ResultStore(out).last("exposure") is None
    found = keyhole.verify(out)
    assert "stages/exposure.json is not there, or cannot be read" in found.differences


LINKED = ["stages", "stages/data.json", "charts/exposure.svg", "results.json", "protection",
          "protection/release/protected.csv"]  # fmt: skip


@pytest.mark.parametrize("name", LINKED)
def test_links_are_not_followed(out, name, capsys):
    """Neither to read, nor to write, nor to remove what an older run made."""
    elsewhere = out.parent / "elsewhere"
    (out / name).rename(elsewhere)
    (out / name).symlink_to(elsewhere)
    before = files(out.parent)
    assert run_verb(["verify", str(out)]) == 2
    assert run_verb(["report", str(out)]) == 2
    for force in ([], ["--force"]):
        plan = str(out.parent / "review.toml")
        assert run_verb(["review", plan, "--out", str(out), *force]) == 2
    assert capsys.readouterr().err.count(f"{name}' must be a") == 4
    assert files(out.parent) == before
    if name.startswith("stages"):
        assert ResultStore(out).last("data") is None


def test_paths_of_the_results_lead_nowhere(out):
    secret = out.parent.parent / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    for name in (str(secret), "../secret.csv", "nowhere.csv", "\x1b[31m"):
        put(out / "results.json", ("files", "data", "file"), name, mended=True)
        found = keyhole.verify(out)
        assert [part.same for part in found.inputs] == [True, False]
        assert "is not in the review file" in found.differences[0]
        assert "\x1b" not in found.summary() + json.dumps(found.to_dict(), ensure_ascii=False)


@pytest.mark.parametrize("name", ["/dev/zero", "../..", "nowhere.toml", "\0", 7])
def test_a_mark_that_leads_to_no_review_file_is_told(out, name):
    put(out / "keyhole-review.json", ("file",), name, mended=False)
    with pytest.raises(InputError, match=r"Name it \(review\)"):
        keyhole.verify(out)


EDITED = ["charts/exposure.json", "charts/exposure.svg", "protection/release/protected.csv",
          "protection/internal/plan.toml", "report.html", "public-note.html"]  # fmt: skip


def test_edited_files_are_named_and_no_others(out):
    for name in EDITED:
        (out / name).write_text((out / name).read_text().replace("e", "E", 1) + "\n")
    told = keyhole.verify(out).differences
    assert sorted(one.split(" ")[0] for one in told) == sorted(EDITED)


def test_files_that_nobody_wrote_are_named(out):
    (out / "charts/evil\x1b.json").write_text("{}")
    (out / "protection/release/more.csv").write_text("a\n1\n")
    put(out / "stages/protection.json", ("files", "/etc/passwd"), "0", mended=False)
    told = keyhole.verify(out).differences
    assert sorted(told) == [
        "charts/evil�.json (should not be there)",
        "protection//etc/passwd",
        "protection/release/more.csv",
    ]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("results.json", "folder"), ("results.json", "pipe"), ("report.html", "folder"),
     ("keyhole-review.json", "folder"), ("stages/data.json", "folder")],
)  # fmt: skip
def test_what_stands_in_the_way_is_told_before_anything_is_written(
    tmp_path, sample, name, kind, force
):
    plan = review_in(tmp_path, sample, SMALL, 120)
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=rf"{path.name}' must be a file of its own"):
        keyhole.review(plan, out=tmp_path / "out", force=force)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_is_a_link_is_not_written_into(tmp_path, sample, there):
    plan = review_in(tmp_path, sample, SMALL, 120)
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    if there:
        (tmp_path / "elsewhere").mkdir()
    with pytest.raises(InputError, match="Got a link instead"):
        keyhole.review(plan, out=tmp_path / "out", force=True)
    assert not there or not list((tmp_path / "elsewhere").iterdir())


def test_a_dossier_may_be_verified_by_a_link_to_it(out):
    link = out.parent.parent / "latest"
    link.symlink_to(out)
    assert keyhole.verify(link).same
    with pytest.raises(InputError, match="Got a link instead"):
        keyhole.report(link)
