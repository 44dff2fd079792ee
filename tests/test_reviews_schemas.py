"""`init`, `review`, `report` and `verify` print what their schemas say."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from keyhole.cli.main import run

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
