"""Review files, the runner, its report and the demonstration."""

import base64
import hashlib
import html
import json
import re
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reviews import edit, run

import keyhole
from keyhole.data.examples import veterans_sample
from keyhole.errors import FileError, InputError, OptionError
from keyhole.reviews import stages
from keyhole.reviews.checks import read_review
from keyhole.reviews.demo import demo
from keyhole.reviews.files import line_numbers
from keyhole.reviews.rendering import inline_drawing
from keyhole.reviews.runner import review
from keyhole.reviews.schema import SECTIONS, TOP
from keyhole.reviews.stages.exposure import ask_uniques

DOCS = Path(__file__).parents[1] / "docs" / "review-file.md"
REVIEW = """\
title = "A review"
keys = ["sex", "ag8r", "ms"]

[data]
file = "people.csv"

[data.roles]
weight = "weight"

[exposure]
limit = 0.01

[uniques]

[selection]
methods = ["forward", "backward"]
keep = ["sex"]
candidates = ["ms", "race1", "cp"]
limit = 0.2

[frontier]
"""


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "people.csv"
    veterans_sample(600, seed=3).save(path)
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path, people):
    (tmp_path / "people.csv").write_bytes(people)
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def files(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def problems(folder, text):
    (folder / "review.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        run(folder)
    assert not (folder / "out").exists(), "nothing is written for a bad review file"
    return list(caught.value.problems)


# The review file


def test_all_problems_are_told_at_once_each_with_its_line(folder):
    found = problems(
        folder,
        """\
titel = "x"
keys = ["sex", "ag8rr",
        "sexx"]

[data]
file = "people.csv"
[data.roles]
weigth = "weight"

[exposre]
cutoff = 3
[exposure]
cutof = 3
cutoff = 0
missing = "maybe"
weight = "weight"
fraction = 0.1

[selection]
method = "sideways"
candidates = ["ms", "race1|raze"]
limit = 5
""",
    )
    lines = [int(re.match(r"review\.toml, line (\d+): ", text).group(1)) for text in found]
    assert lines == [1, 2, 3, 8, 10, 13, 14, 15, 16, 20, 21, 22]
    assert "Did you mean title?" in found[0]
    assert "key 'ag8rr' is not a column of 'people'. Did you mean 'ag8r'" in found[1]
    assert "'weigth'" in found[3]
    assert "Did you mean 'weight'" in found[3]
    assert "[exposre] is not known. Did you mean [exposure]?" in found[4]
    assert "Did you mean 'cutoff'" in found[5]
    assert "cutoff must be a whole number of at least 1. Got 0 instead." in found[6]
    assert "Give one of them" in found[8]
    assert "candidate 'raze'" in found[10]
    assert "limit must be a number from 0 to 1. Got 5 instead." in found[11]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('keys = ["sex"]\n', "section [data] is missing"),
        ('keys = ["sex"]\n[data]\n', "line 2: [data] needs 'file'"),
        ('keys = ["sex"]\n[data]\nfile = "none.csv"\n', "line 3: "),
        ('[data]\nfile = "people.csv"\n', "keys are missing"),
        (
            'keys = []\n[data]\nfile = "people.csv"\n',
            "keys must be a list of at least one column name",
        ),
        ('keys = ["sex", "sex"]\n[data]\nfile = "people.csv"\n', "names each column once"),
        ('data = 3\nkeys = ["sex"]\n', "data must be a section, headed [data]"),
        ('keys = ["sex"]\n[data]\nfile = "people.csv"\n[frontier]\n', "needs a [selection]"),
        ('keys = ["sex"]\n[data]\nfile = "people.csv"\n[selection]\n', "[selection] needs 'limit'"),
        ('keys = ["sex"]\n[data]\nfile = "people.csv"\n[uniques]\n', "needs 2 to 64 keys"),
        (
            'keys = ["sex", "ms"]\n[data]\nfile = "people.csv"\n[uniques]\nmax_size = 2\n',
            "max_size must be below the number of keys (2)",
        ),
        (
            'keys = ["sex", "ms"]\n[data]\nfile = "people.csv"\n[selection]\nlimit = 0.1\n'
            'keep = ["sex"]\ncandidates = ["sex", "ms"]\n',
            "[selection] keep must name each variable once. Got 'sex' twice instead.",
        ),
        (
            'keys = ["sex", "ms"]\n[data]\nfile = "people.csv"\n[uniques]\n'
            "availability = { cp = 2 }\n",
            "[uniques] availability must name keys only. Got 'cp' instead",
        ),
        (
            'keys = ["sex"]\n[data]\nfile = "people.csv"\nroles = { sex = "kee" }\n',
            "line 4: [data] roles must be a table",
        ),
        (
            'keys = ["sex"]\n[data]\nfile = "people.csv"\nkinds = { ms = "measure" }\n',
            "must hold numbers to be a measure",
        ),
    ],
)
def test_what_is_wrong_is_said(folder, text, said):
    assert said in "\n".join(problems(folder, text))


def test_broken_toml_is_told_with_line_and_column(folder):
    (folder / "review.toml").write_text('keys = ["sex"]\n[data\nfile = "people.csv"\n')
    with pytest.raises(FileError, match=r"^review.toml, line 2, column 6: this is not TOML"):
        run(folder)


def test_a_file_that_is_no_text_or_no_file_is_told(folder):
    (folder / "review.toml").write_bytes(b"keys = []\n\xff\xfe")
    with pytest.raises(FileError, match="line 2: this is not UTF-8"):
        run(folder)
    with pytest.raises(FileError, match="it is a folder"):
        review(folder, out=folder / "out")
    with pytest.raises(FileError, match="there is no such file"):
        review(folder / "rewiev.toml", out=folder / "out")


def test_a_bad_weight_is_told_before_anything_runs_without_its_values(folder):
    pl.DataFrame({"sex": [1, 2, 2], "w": [1.5, -77.25, 2.0]}).write_csv(folder / "people.csv")
    text = 'keys = ["sex"]\n[data]\nfile = "people.csv"\n[exposure]\nweight = "w"\n'
    (said,) = problems(folder, text)
    assert said.startswith("review.toml, line 5: weight 'w' must have no negative values.")
    assert "77" not in said


def test_a_bom_and_windows_line_ends_are_read(folder):
    (folder / "review.toml").write_bytes(b"\xef\xbb\xbf" + REVIEW.replace("\n", "\r\n").encode())
    assert read_review(folder / "review.toml")[0].keys == ("sex", "ag8r", "ms")


def test_roles_and_defaults_are_resolved_once(folder):
    (folder / "review.toml").write_text(
        '[data]\nfile = "people.csv"\nroles = { sex = "key", cp = "key", weight = "weight" }\n'
        "[selection]\nlimit = 0.1\n[frontier]\n"
    )
    found, loaded = read_review(folder / "review.toml")
    assert found.keys == ("sex", "cp")
    assert found.exposure.weight == "weight"
    assert found.selection.candidates == (("sex",), ("cp",))
    assert found.frontier.limit == 0.1
    assert loaded["data"].data.records == 600


NAMES = st.sampled_from(["a", "b-c", '"d e"', '"f.g"', "'h#i'", '"j\\u005D"'])
VALUES = st.sampled_from(
    [
        *('"x"', "3", "2.5", "true", "[]", "1979-05-27T07:32:00Z"),
        '"""two\nlines = [ # "" """',
        "'''x\n[no]\n'''",
        '["p",\n "q", # ] = "\n\n "r"]',
        "{ k = 1, l = { m = [1, 2] } }",
    ]
)


@given(st.lists(st.tuples(NAMES, st.dictionaries(NAMES, VALUES)), unique_by=lambda s: s[0]))
def test_lines_are_those_where_the_keys_were_written(sections):
    lines, expected = ["# a comment with [brackets]", ""], {}
    for number, (section, settings) in enumerate(sections):
        head = tomllib.loads(f"[{section}]").popitem()[0]
        lines.append(f"  [{section}] # = 3")
        expected[(head,)] = len(lines)
        for name, value in settings.items():
            key = tomllib.loads(f"{name} = 1").popitem()[0]
            expected[(head, key)] = len(lines) + 1
            lines += f"{name} = {value}".split("\n")
        lines += [""] * (number % 2)
    text = "\n".join(lines)
    tomllib.loads(text)
    found = line_numbers(text)
    assert {path: line for path, line in found.items() if len(path) < 3} == expected
    for path, line in found.items():
        if path[-1] == 2:
            assert '"r"' in lines[line - 1]


def test_every_setting_is_documented():
    tables = re.findall(r"```\{section-settings\} (\w+)", DOCS.read_text())
    assert sorted(tables) == sorted(["top", *SECTIONS])
    for settings in (TOP, *SECTIONS.values()):
        assert all(setting.help for setting in settings.values())


def test_the_documented_review_file_reads(folder):
    whole = re.search(r"## A whole review\n\n```toml\n(.*?)```", DOCS.read_text(), re.S).group(1)
    parsed = tomllib.loads(whole)
    columns = {name: [1, 2, 3] * 4 for name in parsed["keys"]}
    columns |= {name: [1, 2] * 6 for name in ("id", "weight", "household", "education", "age10")}
    columns |= {"id": range(12), "marital": ["single", "married", "widowed"] * 4}
    columns["age"] = [30, 31, 32] * 3 + [30, 31, 77]
    pl.DataFrame(columns).write_csv(folder / "people.csv")
    external = {name: columns[name] for name in parsed["study"]["link"]}
    pl.DataFrame({"person": range(12), **external}).write_csv(folder / "external.csv")
    pl.DataFrame({"id": [0], "person": [1]}).write_csv(folder / "truth.csv")
    (folder / "review.toml").write_text(whole)
    assert read_review(folder / "review.toml")[0].selection.candidates[0] == ("age", "age10")


# Running


@pytest.mark.usefixtures("plain_charts")
def test_the_figures_are_those_of_the_verbs(folder):
    found = run(folder)
    results = found.results()
    data = folder / "people.csv"
    exposure = keyhole.risk(data, keys=["sex", "ag8r", "ms"], weight="weight")
    assert results["exposure"] == json.loads(json.dumps(exposure.to_dict()))
    chosen = keyhole.select(
        data, method="backward", keep=["sex"], candidates=["ms", "race1", "cp"], limit=0.2
    )
    kept = {**chosen.to_dict(), "candidate_groups": [["ms"], ["race1"], ["cp"]]}
    assert results["selection-backward"] == json.loads(json.dumps(kept))
    proposed = results["selection-forward"]["within_limit"]
    assert results["proposal"]["rp"] == keyhole.risk(data, keys=proposed).rp
    assert results["fix"]["best"]["variable"] in ("sex", "ag8r", "ms")
    assert results["uniques"]["max_size"] == 2
    assert [limit.met for limit in found.limits] == [False, True]
    assert json.loads((folder / "out" / "results.json").read_text()) == found.content()
    assert found.to_dict()["report"] == str(found.report)
    assert str(found.report) in found.summary()


@pytest.mark.usefixtures("plain_charts")
def test_a_second_run_computes_nothing_and_changes_no_byte(folder, monkeypatch):
    first = run(folder)
    before = files(folder / "out")
    fail = stages.Stage.__getattribute__

    def no_run(self, name):
        assert name != "run", "a stage ran again"
        return fail(self, name)

    monkeypatch.setattr(stages.Stage, "__getattribute__", no_run)
    second = run(folder)
    assert first.reused == ()
    assert second.reused == tuple(second.records)
    assert files(folder / "out") == before


def computed(found):
    return set(found.records) - set(found.reused)


@pytest.mark.usefixtures("plain_charts")
def test_another_limit_recomputes_the_selection_only(folder):
    run(folder)
    edit(folder, "limit = 0.2", "limit = 0.25")
    assert computed(run(folder)) <= {
        *("selection-forward", "selection-backward", "frontier", "proposal", "alternative"),
        "paths",
    }
    edit(folder, "limit = 0.25", "limit = 0.25\ncutoffs = [2]")
    assert computed(run(folder)) == {"comparison"}


@pytest.mark.usefixtures("plain_charts")
def test_a_label_is_no_reason_to_count_again_but_a_missing_code_is(folder):
    run(folder)
    edit(folder, "[data.roles]", '[data.labels]\nms = "Marital status"\n\n[data.roles]')
    found = run(folder)
    assert computed(found) == {"data"}
    assert "Marital status" in found.report.read_text()
    edit(folder, 'file = "people.csv"', 'file = "people.csv"\nmissing_codes = ["U"]')
    assert "exposure" in computed(run(folder))


@pytest.mark.usefixtures("plain_charts")
def test_other_data_recomputes_everything(folder):
    run(folder)
    lines = (folder / "people.csv").read_text().splitlines()
    (folder / "people.csv").write_text("\n".join(lines[:-1]) + "\n")
    assert run(folder).reused == ()


@pytest.mark.usefixtures("plain_charts")
def test_a_run_that_fails_leaves_whole_files_and_goes_on_where_it_was(folder, monkeypatch):
    run(folder)
    whole = files(folder / "out")
    other = folder / "other"
    (other).mkdir()
    for name in ("people.csv", "review.toml"):
        (other / name).write_bytes((folder / name).read_bytes())

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("keyhole.selection.frontier.frontier", stop)
        with pytest.raises(KeyboardInterrupt):
            run(other)
    left = files(other / "out")
    assert set(left) < set(whole)
    assert {name: content for name, content in whole.items() if name in left} == left
    assert "report.html" not in left
    assert "results.json" not in left
    # What a kill leaves of a file being written is swept away.
    unfinished = other / "out" / "stages" / ".keyhole-0a1b2c3d" / "new"
    unfinished.mkdir(parents=True)
    (unfinished / "frontier.json").write_text("{")
    assert computed(run(other)) == {
        "frontier", "proposal", "paths", "remaining", "outgoing",
    }  # fmt: skip
    assert files(other / "out") == whole


@pytest.mark.usefixtures("plain_charts")
def test_a_report_that_no_longer_holds_is_not_left_beside_new_results(folder, monkeypatch):
    run(folder)
    edit(folder, "limit = 0.2", "limit = 0.3")
    monkeypatch.setattr("keyhole.selection.select.select", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(folder)
    assert not (folder / "out" / "report.html").exists()


@pytest.mark.parametrize("damage", ["{", '{"key": 1}', None])
@pytest.mark.usefixtures("plain_charts")
def test_a_damaged_result_is_computed_again(folder, damage):
    run(folder)
    whole = files(folder / "out")
    path = folder / "out" / "stages" / "exposure.json"
    text = path.read_text()
    path.write_text(text.replace('"uniques": ', '"uniques": 1') if damage is None else damage)
    assert computed(run(folder)) == {"exposure"}
    assert files(folder / "out") == whole
    (folder / "out" / "charts" / "exposure.svg").unlink()
    assert computed(run(folder)) == {"exposure"}


def test_the_same_bytes_in_another_folder(folder, tmp_path_factory, people):
    elsewhere = tmp_path_factory.mktemp("else where")
    (elsewhere / "people.csv").write_bytes(people)
    (elsewhere / "review.toml").write_text(REVIEW)
    run(folder)
    run(elsewhere)
    assert files(folder / "out") == files(elsewhere / "out")
    for content in files(folder / "out").values():
        assert str(folder).encode() not in content


@pytest.mark.usefixtures("plain_charts")
def test_sections_taken_away_leave_nothing_behind(folder):
    run(folder)
    edit(folder, "[uniques]\n", "")
    edit(folder, "[frontier]\n", "")
    run(folder)
    names = set(files(folder / "out"))
    assert not {n for n in names if "uniques" in n or "frontier" in n}
    assert "charts/exposure.svg" in names


@pytest.mark.usefixtures("plain_charts")
def test_another_folder_is_not_written_into_without_force(folder):
    (folder / "out").mkdir()
    (folder / "out" / "letter.txt").write_text("mine")
    with pytest.raises(OptionError, match="has other files in it"):
        run(folder)
    assert list((folder / "out").iterdir()) == [folder / "out" / "letter.txt"]
    run(folder, force=True)
    assert (folder / "out" / "letter.txt").read_text() == "mine"
    run(folder)
    (folder / "second.toml").write_text(REVIEW)
    with pytest.raises(OptionError, match="results of another review file"):
        review(folder / "second.toml", out=folder / "out")
    with pytest.raises(OptionError, match="must be a folder"):
        review(folder / "second.toml", out=folder / "people.csv")


@pytest.mark.usefixtures("plain_charts")
def test_progress_names_the_stages(folder):
    said = []
    run(folder, progress=said.append)
    assert "exposure" in said
    assert "selection, forward: F1" in said
    assert said[-1] == "writing the report"


@pytest.mark.usefixtures("plain_charts")
def test_nothing_within_the_limit_is_said_not_hidden(folder):
    edit(folder, "limit = 0.2", "limit = 0.0")
    edit(folder, 'keep = ["sex"]', 'keep = ["homstate", "cp"]')
    edit(folder, '"race1", "cp"]', '"race1"]')
    found = run(folder)
    assert "proposal" not in found.records
    assert not found.met
    assert "no set is within the limit" in found.report.read_text()


# The report

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "{{ 7*7 }}", "a\x1b[2J|b"]


def test_hostile_names_stay_text(tmp_path):
    sizes = (2, 3, 4, 5)
    columns = {n: [i * 7 % k for i in range(90)] for n, k in zip(HOSTILE, sizes, strict=True)}
    pl.DataFrame(columns).write_parquet(tmp_path / "people.parquet")
    keys = json.dumps(HOSTILE)
    title = json.dumps("</title><script>alert(3)</script>")
    labels = f"{json.dumps(HOSTILE[0])} = {json.dumps('<b onclick=alert(4)>bold</b>')}"
    (tmp_path / "review.toml").write_text(
        f'title = {title}\nkeys = {keys}\n[data]\nfile = "people.parquet"\n'
        f"[data.labels]\n{labels}\n"
        f"[exposure]\nlimit = 0.01\nby = {json.dumps(HOSTILE[1])}\n[uniques]\n[selection]\n"
        f"limit = 0.5\ncandidates = {json.dumps([[name] for name in HOSTILE])}\n[frontier]\n"
    )
    page = run(tmp_path).report.read_text()
    tags = {tag.lower() for tag in re.findall(r"<\s*([a-zA-Z][\w-]*)", page)}
    assert not tags & {"script", "img", "iframe", "object", "link", "foreignobject", "use", "a1"}
    assert not re.search(r"<[^>]*\son\w+\s*=", re.sub(r'"[^"]*"', '""', page))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7*7 }}" in page
    assert "\x1b" not in page


def test_the_page_needs_nothing_else_and_allows_nothing_else(folder):
    page = html.unescape(run(folder).report.read_text())
    assert not re.search(r"https?:|\bsrc\s*=|@import|url\((?!#)|javascript:", page)
    style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert "default-src 'none'" in page
    assert f"'sha256-{digest}'" in page
    assert " style=" not in page, "the policy allows the one style sheet only"
    assert page.count("<svg role=") == 4
    for hash_ in (hashlib.sha256((folder / n).read_bytes()) for n in ("review.toml", "people.csv")):
        assert hash_.hexdigest() in page


@pytest.mark.usefixtures("plain_charts")
def test_the_path_is_printed_as_the_paper_prints_it(folder):
    found = run(folder)
    page = found.report.read_text()
    for step in found.results()["selection-backward"]["steps"]:
        row = re.search(rf"<tr><th scope=\"row\">{step['step']}</th>(.*?)</tr>", page, re.S).group(
            1
        )
        shown = re.findall(r"<span>(.*?)</span>", row)
        assert shown == step["variables"]
        assert f"<del>{step['variable']}</del>" in row
        figures = [step[name] for name in ("alpha", "rp", "cr", "ratio")]
        assert re.findall(r'figure">(.*?)<', row) == [f"{v:.3f}" for v in figures]


@pytest.mark.usefixtures("plain_charts")
def test_no_record_is_shown_anywhere(folder):
    data = pl.read_csv(folder / "people.csv", infer_schema_length=None)
    marked = ["ZEBRA7"] + [f"m{i % 5}" for i in range(data.height - 1)]
    numbers = [f"ID{i}Q" for i in range(data.height)]
    data.with_columns(ms=pl.Series(marked), puf_id=pl.Series(numbers)).write_csv(
        folder / "people.csv"
    )
    run(folder)
    for name, content in files(folder / "out").items():
        assert b"ZEBRA7" not in content, name
        assert not re.search(rb"ID\d+Q", content), name


def test_a_drawing_is_only_shapes_and_text():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'width="5" height="5" style="x" onload="y()"><rect width="5" height="5" fill="white"/>'
        '<defs><clipPath id="c1"><rect width="2" height="2"/></clipPath></defs>'
        '<a xlink:href="javascript:z()"><text>gone</text></a><image href="http://x/"/>'
        '<foreignObject><p>gone</p></foreignObject><g clip-path="url(#c1)" onclick="z()">'
        '<text fill="#b23a2a">a &lt;b&gt; &amp; c</text><path d=""/></g></svg>'
    )
    assert inline_drawing(svg, "one", "A") == (
        '<svg role="img" aria-label="A" width="5" height="5"><defs><clipPath id="one-c1">'
        '<rect width="2" height="2" /></clipPath></defs><g clip-path="url(#one-c1)">'
        '<text fill="var(--accent)">a &lt;b&gt; &amp; c</text></g></svg>'
    )


# The demonstration


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The folder of the demonstration, what it gave, and what it said."""
    folder, said = tmp_path_factory.mktemp("shown") / "demo", []
    return folder, demo(folder, people=6_000, progress=said.append), said


def test_the_demonstration_runs_from_nothing_to_its_report(shown):
    folder, found, said = shown
    assert sorted(p.name for p in folder.iterdir()) == [
        *("environment.json", "external.csv", "regions.csv", "review", "review.toml"),
        *("truth.csv", "veterans.csv"),
    ]
    assert found.report.is_file()
    assert found.report.as_uri() in found.summary()
    assert found.results()["data"]["records"] == 600
    assert {"uniques", "frontier", "proposal", "fix", "study-unicity", "synthesis"} <= set(
        found.records
    )
    assert said[0] == "making a population of veterans"
    assert "seconds" not in (folder / "review.toml").read_text()  # the clock decides nothing
    assert found.results()["solve"]["complete"]
    assert found.results()["frontier"]["complete"]
    assert ["Frontier", "computed"] in found.tables()[-1].rows
    (path,) = (folder / "review" / "protection" / "release").glob("protected.*")
    key = found.results()["outgoing"]["keys"][0]["columns"]
    sizes = pl.read_csv(path).group_by(key).len()["len"]
    assert sizes.min() >= 3  # nobody is in a cell smaller than three, counted from outside
    text = re.sub("<[^>]+>", "", found.report.read_text())  # terms are marked
    assert found.verdict.given_up in html.unescape(text)
    again = demo(folder, people=6_000)
    assert again.reused == tuple(again.records)


@pytest.mark.usefixtures("plain_charts")
def test_the_demonstration_keeps_what_its_visitor_changed(shown, tmp_path):
    folder = shutil.copytree(shown[0], tmp_path / "demo")
    edit(folder, "max_size = 4", "max_size = 2")
    found = demo(folder, people=6_000)
    assert found.results()["uniques"]["max_size"] == 2
    assert demo(folder, people=6_000, force=True).results()["uniques"]["max_size"] == 4


def test_the_demonstration_does_not_take_another_folder(tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(OptionError, match="has other files in it"):
        demo(tmp_path, people=3_000)
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    ("weights", "fraction"), [(None, None), (0.25, 0.25), (1.0, 1.0), (1.5, None), ("none", None)]
)
def test_minimal_uniques_are_asked_for_by_what_the_review_and_the_weights_say(weights, fraction):
    """A sampling fraction is one of at most 1; keys that are not named count as 1."""

    def asked(**given):
        values = {"fraction": None, "availability": {}, "identifiability": {"b": 0.5}} | given
        review = SimpleNamespace(
            keys=("a", "b"),
            exposure=SimpleNamespace(cutoff=4),
            uniques=SimpleNamespace(values=values),
        )
        population = None if weights == "none" else SimpleNamespace(sampling_fraction=weights)
        return ask_uniques(review, {"exposure": SimpleNamespace(population=population)})

    found = asked()
    assert found == {"keys": ["a", "b"], "cutoff": 4, "fraction": fraction, "availability": None,
                     "identifiability": [1.0, 0.5]}  # fmt: skip
    assert asked(fraction=0.1)["fraction"] == 0.1
    assert asked(availability=[1, 2])["availability"] == [1, 2]
    assert ask_uniques(SimpleNamespace(uniques=None), {}) is None
