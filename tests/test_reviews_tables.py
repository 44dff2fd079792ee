"""The sections [table] and [tabulate] of a review: what goes out, the chapter, the checks."""

import json

import polars as pl
import pytest
from tests.reviews import problems, run

import keyhole
from keyhole.reviews.files import read_source
from keyhole.reviews.result import read_stored

pytestmark = pytest.mark.usefixtures("plain_charts")

SEED = 918273645
REVIEW = f"""\
keys = ["sex", "ag8r", "race1"]

[data]
file = "veterans.csv"

[data.roles]
puf_id = "identifier"

[[table]]
rows = ["race1"]
cols = ["sex"]

[[table]]
rows = "sex"
protect = "round"
rounding = "random"
seed = {SEED}

[[table]]
rows = "ms"
protect = "none"
"""
SYNTHESIS = f"""
[synthesis]
targets = ["age", "race1"]
strata = ["sex"]
drop = ["household"]
implicates = 2
seed = {SEED}
self_match = 50

[tabulate]
rows = ["race1"]
share = "table"
"""


@pytest.fixture
def folder(tmp_path, sample):
    (tmp_path / "veterans.csv").write_bytes(sample)
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def test_the_tables_are_those_of_the_verb(folder):
    found = run(folder)
    first, second, third = found.results()["table"]["made"]
    alone = keyhole.table(folder / "veterans.csv", rows=["race1"], cols=["sex"])
    told = json.loads(json.dumps(alone.to_dict()))
    assert {name: first[name] for name in told} == told
    assert first["audit"] == alone.internal.figures.to_dict()
    assert (second["base"], third["suppressed"]) == (5, 0)
    release = folder / "out/table/release"
    assert sorted(path.name for path in release.iterdir()) == ["table-1.csv", "table-2.csv"]
    written = pl.read_csv(release / "table-1.csv", infer_schema_length=None)
    assert written["value"].to_list() == alone.to_frame()["value"].to_list()
    internal = {path.name for path in (folder / "out/table/internal").iterdir()}
    assert internal == {"audit-1.csv", "audit-2.csv", "audit-3.csv", "table-3.csv",
                        "parameters.json"}  # fmt: skip


def test_tables_of_a_review_are_protected_together(folder):
    """What one hides no other shows: they are those of one call for all."""
    more = """
[[table]]
rows = ["race1"]

[[table]]
rows = ["ms"]
cols = ["sex"]
tables = ["race1 x ms"]
"""
    (folder / "review.toml").write_text(REVIEW + more)
    made = run(folder).results()["table"]["made"]
    joint = keyhole.table(
        folder / "veterans.csv", rows="race1", cols="sex",
        tables=["race1", "ms x sex", "race1 x ms"],
    )  # fmt: skip
    tables = [json.loads(json.dumps(one.to_dict()))["cells"] for one in (joint, *joint.others)]
    found = [made[0], made[3], made[4], *made[4]["others"]]
    assert [one["cells"] for one in found] == tables
    names = {path.name for path in (folder / "out/table/release").iterdir()}
    assert {"table-4.csv", "table-5.csv", "table-5-2.csv"} <= names


@pytest.mark.usefixtures("built_charts")
def test_the_chapter_shows_what_may_be_published(folder):
    run(folder)
    page = (folder / "out/report.html").read_text()
    for text in (
        'id="tables"',
        "Records by race1 and sex",
        "table/release/table-2.csv",
        "its cells are not shown here",
        "Protected tables",
        "race1 and sex, suppressed",
    ):
        assert text in page, text
    assert "table/release/table-3.csv" not in page
    assert [*(folder / "out/charts").glob("table-*.svg")]
    assert not (folder / "out/charts/table-3.svg").exists()


def test_a_stored_review_has_its_tables(folder):
    found = run(folder)
    assert not found.reused
    assert "table" in run(folder).reused
    stored = read_stored(folder / "out")
    assert [one.rows for one in stored.review.table] == [("race1",), ("sex",), ("ms",)]
    again = stored.by_stage()["table"]
    assert again.to_dict() == found.results()["table"]
    assert keyhole.verify(folder / "out").same


def test_the_seed_of_a_table_is_nowhere_but_where_it_belongs(folder):
    run(folder)
    holding = [path for path in (folder / "out").rglob("*")
               if path.is_file() and str(SEED).encode() in path.read_bytes()]  # fmt: skip
    assert [path.name for path in holding] == ["parameters.json"]
    before = read_source(folder / "review.toml").sha256
    other = REVIEW.replace(str(SEED), "17")
    assert read_source(folder / "review.toml", other.encode()).sha256 == before


def test_the_release_is_tabulated(folder):
    (folder / "review.toml").write_text(REVIEW + SYNTHESIS)
    found = run(folder)
    alone = keyhole.tabulate(
        folder / "out/synthesis/release", rows=["race1"], share="table"
    ).to_dict()  # fmt: skip
    assert found.results()["tabulate"]["made"] == json.loads(json.dumps([alone]))
    page = (folder / "out/report.html").read_text()
    assert "Share of records by race1" in page
    assert "tabulate" in run(folder).reused


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('cols = ["sex"]', 'cols = ["sx"]', "line 11: variable 'sx' is not a column"),
        ('cols = ["sex"]', "threshold = 0", "line 11: [table] threshold must be"),
        ('cols = ["sex"]', "bse = 3", "line 11: [table] bse is not a setting"),
        ('rows = "sex"', "", "line 13: [table] rows must be a list of at least one column name"),
        ("seed =", "# seed =", "[table] rounding at random needs [table] seed"),
        ('rows = "ms"', 'rows = "puf_id"', "names people"),
        ("[[table]]", '[tabulate]\nrows = "sex"\n[[table]]', "[tabulate] needs a [synthesis]"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(folder, old, new, expected):
    assert expected in problems(folder, old, new)
