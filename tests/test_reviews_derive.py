"""Derived columns of a review: used everywhere, checked with their lines, hashed with codings."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import keyhole
from keyhole.errors import InputError
from keyhole.reviews.checks import read_review
from keyhole.reviews.files import confined

REVIEW = """\
keys = ["sex", "decade", "group"]

[data]
file = "people.csv"
roles = { decade = "key" }

[derive]
decade = "band(age, 10)"
group = 'map(job, "jobs.csv")'
rare = "pool(job, 40)"

[exposure]
by = "decade"

[study]
eif = "outside.csv"
iuf = "truth.csv"
puf_id = "id"
eif_id = "person"
link = ["sex", "decade", "rare"]
permutations = 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    n = 120
    people = pl.DataFrame(
        {
            "id": range(n),
            "sex": ["f", "m", "m"] * 40,
            "age": [20 + i % 37 for i in range(n)],
            "job": [["a", "b", "a", "c", "a"][i % 5] for i in range(n)],
        }
    )
    people.write_csv(tmp_path / "people.csv")
    outside = people.rename({"id": "person"}).head(60)
    outside.write_csv(tmp_path / "outside.csv")
    pl.DataFrame({"id": range(60), "person": range(60)}).write_csv(tmp_path / "truth.csv")
    (tmp_path / "jobs.csv").write_text("job,group\na,x\nb,y\nc,y\n")
    (tmp_path / "review.toml").write_text(REVIEW)
    return tmp_path


def exposure(folder: Path) -> dict:
    return json.loads((folder / "out" / "stages" / "exposure.json").read_text())["result"]


def test_every_stage_sees_them_and_a_changed_coding_counts_anew(folder):
    keyhole.review(folder / "review.toml", out=folder / "out")
    lines = {"decade": "band(age, 10)", "group": f'map(job, "{folder}/jobs.csv")'}
    twin = keyhole.risk(
        keyhole.load(folder / "people.csv", derive=lines),
        keys=["sex", "decade", "group"],
        by="decade",
    )
    assert exposure(folder)["cells"] == twin.cells
    (folder / "jobs.csv").write_text("job,group\na,x\nb,y\nc,z\n")
    keyhole.review(folder / "review.toml", out=folder / "out")
    assert exposure(folder)["cells"] > twin.cells
    assert keyhole.verify(folder / "out").same


def test_the_intruders_file_has_the_categories_of_the_one_attacked(folder):
    review, files = read_review(folder / "review.toml")
    assert review.data.derive["rare"] == "pool(job, 40)"
    assert files["data"].data.column("rare").cast(pl.String).unique().sort().to_list() == [
        "a", "other",
    ]  # fmt: skip
    seen = files["eif"].data.column("rare").cast(pl.String).unique().sort().to_list()
    assert seen == ["a", "other"]  # a has 36 records there, fewer than 40
    assert "decade" not in files["iuf"].data.names


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("band(age, 10)", "bnad(age, 10)", "line 8: [derive] derived column 'decade', character 1"),
        ('"band(age, 10)"', "10", "line 8: [derive] decade must be an expression"),
        ("band(age, 10)", "band(agee, 10)", "line 8: derived column 'decade': column 'agee'"),
        ("band(age, 10)", "band(sex, 10)", "line 8: derived column 'decade': band needs numbers"),
        ("jobs.csv", "none.csv", "none.csv"),
        ("rare = ", "sex = ", "line 10: derived column 'sex' is a column of 'people.csv' already"),
        ("[derive]", "[derives]", "Did you mean [derive]?"),
        ('by = "decade"', 'by = ["sex", "decade"]', "[exposure] by must be one column in a review"),
        ("pool(job, 40)", "pool(rare, 40)", "line 10: [derive] derived column 'rare' must not be"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(folder, old, new, words):
    (folder / "review.toml").write_text(REVIEW.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        read_review(folder / "review.toml")
    assert words in str(caught.value)
    assert "key 'decade' is not a column" not in str(caught.value) or "derives" in new


def test_a_coding_outside_the_folder_is_not_read_by_the_workbench(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "jobs.csv"
    outside.write_text("job,group\na,x\nb,y\nc,y\n")
    text = REVIEW.replace("jobs.csv", str(outside))
    (folder / "review.toml").write_text(text)
    assert read_review(folder / "review.toml")[1]["data"].data.records == 120
    with confined(folder), pytest.raises(InputError, match="not below the folder"):
        read_review(folder / "review.toml")


def test_on_disk_too(folder):
    text = REVIEW.partition("[study]")[0].replace("[derive]", 'engine = "disk"\n\n[derive]')
    (folder / "review.toml").write_text(text)
    keyhole.review(folder / "review.toml", out=folder / "out")
    assert exposure(folder)["engine"] == "disk"
