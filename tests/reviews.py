"""Running a review of a folder in tests: edit its file, run it, gather what it refuses."""

import random

import polars as pl
import pytest

from keyhole.errors import InputError
from keyhole.reviews import runner
from keyhole.reviews.runner import review

built_pictures = runner._pictures
OF_PEOPLE = """\
keys = ["sex", "age", "region"]
[release]
[data]
file = "people.csv"
[exposure]
limit = 0.05
"""
ILL_IS_SENSITIVE = """\
ill = "sensitive"
[exposure]
limit = 1
[attributes]
"""


def draw_plainly(path):
    """Write what stands for a picture, and for the spec beside it."""
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="1"><path d="M0,0"/></svg>')
    path.with_suffix(".json").write_text('{"mark": "point"}')


def plain_pictures(stage, _):
    """Stand in for the pictures of a stage: one, not built, and drawn in no time."""
    return {} if stage.draw is None else {stage.name: draw_plainly}


def write_people(path):
    """Write 300 people for a review of people."""
    draw = random.Random(4)
    people = {
        "sex": [draw.choice("fm") for _ in range(300)],
        "age": [draw.randint(18, 80) for _ in range(300)],
        "region": [draw.choice("nesw") for _ in range(300)],
    }
    pl.DataFrame(people).write_csv(path)


def run(folder, **options):
    """Run the review of a folder."""
    return review(folder / "review.toml", out=folder / "out", **options)


def edit(folder, old, new):
    """Change the first of what stands in the review file."""
    text = (folder / "review.toml").read_text()
    assert old in text
    (folder / "review.toml").write_text(text.replace(old, new, 1))


def problems(folder, old, new):
    """Change the review file and return what is then wrong with it."""
    edit(folder, old, new)
    with pytest.raises(InputError) as caught:
        run(folder)
    assert not (folder / "out").exists(), "nothing is written for a bad review file"
    return "\n".join(caught.value.problems)
