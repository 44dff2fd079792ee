"""Running a review of a folder in tests: edit its file, run it, gather what it refuses."""

import pytest

from keyhole.errors import InputError
from keyhole.reviews.runner import review


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
