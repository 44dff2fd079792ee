"""A review file stays tidy: what the workbench writes stands where a person looks for it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workbench import Workbench, start, write_people

from keyhole.reviews.drafting import init
from keyhole.workbench import editing


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A workbench on a review as it is drafted, with its comments and sketches."""
    init(write_people(tmp_path), out=tmp_path / "review.toml")
    return start(tmp_path, (tmp_path / "review.toml").read_text())


def text_of(bench: Workbench) -> str:
    return (bench.folder / "review.toml").read_text()


def described(bench: Workbench, **roles: str) -> dict[str, str]:
    """Return the form of the page Data as it is, but for some roles."""
    look = bench.project.look()
    assert look.review is not None
    form = {}
    for place, one in enumerate(look.files["data"].data.variables):
        now = one.role or ("key" if one.name in look.review.keys else "")
        form[f"role-{place}"] = roles.get(one.name, now)
    return form


def test_a_new_role_stands_above_the_comment_of_the_next_section(bench: Workbench) -> None:
    lines = text_of(bench).splitlines(keepends=True)
    role = next(line for line in lines if line.startswith("id = "))
    rest = "".join(line for line in lines if not line.startswith("income = "))
    rest = re.sub(r"# Attribute disclosure.*?\n\n", "", rest, flags=re.DOTALL)
    (bench.folder / "review.toml").write_text(rest)
    assert bench.post("data/describe", described(bench, income="sensitive")).status_code == 303
    comment = "# Identifiers, Safe Harbor, columns that reveal others."
    assert f'{role}income = "sensitive"\n\n{comment}\n[screen]\n' in text_of(bench)


def test_new_sections_stand_below_their_sketches_or_in_the_order_of_the_work(
    bench: Workbench,
) -> None:
    keys = ["sex", "age", "state"]
    asked = {"keys": keys, "cutoff": "3", "limit": "10", "uniques": "yes", "uniques.max_size": "2"}
    assert bench.post("exposure/measure", {**asked, "drivers": "yes"}).status_code == 303
    searched = {"keep": ["sex"], "candidates": ["age", "state"], "methods": ["forward"],
                "first": "forward", "limit": "10", "frontier": "yes", "seconds": "5"}  # fmt: skip
    assert bench.post("select/search", searched).status_code == 303
    text = text_of(bench)
    assert "[uniques]\nmax_size = 2    # singled out by at most this many variables\n" in text
    assert "variables\n\n[drivers]\n\n# Attribute disclosure" in text
    assert (
        "# seconds = 60    # stop with the sets found so far\n\n[frontier]\nseconds = 5\n" in text
    )
    assert text.index("[selection]") < text.index("\n[frontier]") < text.index("[release]")
    assert "\n\n\n" not in text


def test_a_key_taken_out_leaves_the_comments_and_the_order_of_the_others(bench: Workbench) -> None:
    before = text_of(bench)
    block = before[before.index("keys = [") : before.index("]\n\n[data]")]
    taken = next(line for line in block.splitlines(keepends=True) if '"age"' in line)
    assert bench.post("data/describe", described(bench, age="", income="key")).status_code == 303
    after = text_of(bench)
    assert block.replace(taken, "") + '    "income",\n]\n\n[data]' in after
    assert "[attributes]" not in after  # no sensitive column is left


def test_a_section_that_goes_takes_its_own_comment_and_leaves_the_sketches() -> None:
    text = "[a]\nx = 1\n\n# [c]\n# z = 1\n\n# of b\n[b]\ny = 1\n\n# of d\n[d]\n"
    after = editing.changed_text(text, lambda document: editing.remove_setting(document, "b"))
    assert after == "[a]\nx = 1\n\n# [c]\n# z = 1\n\n# of d\n[d]\n"
    last = editing.changed_text(text, lambda document: editing.remove_setting(document, "d"))
    assert last == "[a]\nx = 1\n\n# [c]\n# z = 1\n\n# of b\n[b]\ny = 1\n"


def test_a_comment_in_a_text_is_no_sketch() -> None:
    text = "title = '''\n# [release]\n'''\n\n[data]\nfile = \"people.csv\"\n"
    after = editing.changed_text(text, lambda d: editing.put_setting(d, "release", "to", "all"))
    assert after == text + '\n[release]\nto = "all"\n'


LINES = st.sampled_from(
    ["", "# a note", "# [study]", "x = 1", "y = [\n  1, # one\n]", "[a]", "[b]", "[b.c]", "[d]",
     "[[e.step]]", "# --- a heading"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(LINES, max_size=14), section=st.sampled_from("abde"))
def test_no_comment_and_no_value_is_lost(lines: list[str], section: str) -> None:
    text = "\n".join(lines) + "\n"
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert editing.parse_review(text).as_string() == text
    if isinstance(before.get(section, {}), dict):
        after = editing.changed_text(text, lambda d: editing.put_setting(d, section, "new", 1))
        assert tomllib.loads(after) == {**before, section: {**before.get(section, {}), "new": 1}}
        kept = sorted(line for line in after.splitlines() if line.startswith("#"))
        assert kept == sorted(line for line in lines if line.startswith("#"))
