"""`init`, `review`, `report` and `verify` print what their schemas say; review files have one."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.whole_review import REVIEW

from keyhole.cli.main import run
from keyhole.reviews.schema import review_schema

pytestmark = pytest.mark.usefixtures("plain_charts")

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"


def check(name, printed):
    """Hold what was printed against a schema, that of a whole and no more than it says."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(printed)
    assert set(printed) == set(schema["properties"])


@pytest.fixture
def folder(tmp_path, sample, monkeypatch):
    (tmp_path / "veterans.csv").write_bytes(b"".join(sample.splitlines(keepends=True)[:301]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_verbs_of_a_review_print_what_their_schemas_say(folder, capsys):
    def printed(*words, code=0):
        assert run([*words, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    check("init", printed("init", "veterans.csv"))
    check("report", printed("review", "review.toml", "--out", "findings"))
    check("report", printed("report", "findings"))
    check("verify", printed("verify", "findings"))
    page = folder / "findings" / "report.html"
    page.write_text(page.read_text() + " ")
    found = printed("verify", "findings", code=1)
    check("verify", found)
    assert not found["same"]
    (folder / "review.toml").write_text((folder / "review.toml").read_text() + "\n# changed\n")
    check("verify", printed("verify", "findings", code=1))


def test_the_schema_of_review_files_is_current(request):
    """`--record-goldens` writes it."""
    place = SCHEMAS / "review-file.json"
    text = json.dumps(review_schema(), indent=2, ensure_ascii=False) + "\n"
    if request.config.getoption("--record-goldens"):
        place.write_text(text)
    assert place.read_text() == text, "run pytest --record-goldens tests/test_reviews_schemas.py"


DOCUMENTED = SCHEMAS.with_name("review-file.md").read_text()
WHOLE = re.search(r"## A whole review\n\n```toml\n(.*?)```", DOCUMENTED, re.DOTALL).group(1)


@pytest.mark.parametrize("text", [WHOLE, REVIEW], ids=["documented", "tested"])
def test_review_files_fit_their_schema(text):
    Draft202012Validator.check_schema(review_schema())
    Draft202012Validator(review_schema()).validate(tomllib.loads(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [("[data]", "[dta]"), ("cutoff = 3", "cutoff = 0"), ("cutoff = 3", "cutof = 3"),
     ('file = "people.csv"', "")],
)  # fmt: skip
def test_wrong_review_files_do_not_fit_their_schema(old, new):
    assert old in WHOLE
    values = tomllib.loads(WHOLE.replace(old, new, 1))
    assert not Draft202012Validator(review_schema()).is_valid(values)
