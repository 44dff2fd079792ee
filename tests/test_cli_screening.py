"""`keyhole screen` and `keyhole drivers` print what the functions find, as their schemas say."""

import inspect
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import keyhole as package
from keyhole.cli.main import all_commands, run
from keyhole.core.codec import plain_values
from keyhole.data.examples import veterans_sample

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"


@pytest.fixture
def keyhole(capsys):
    def call(*words):
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def veterans(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "veterans.csv"
    return veterans_sample(1_200, seed=3).save(path)


def _asked(verb, path, keyhole, *options):
    code, out, err = keyhole(verb, path, *options, "--json")
    assert (code, err) == (0, "")
    schema = json.loads((SCHEMAS / f"{verb}.json").read_text())
    Draft202012Validator.check_schema(schema)
    found = json.loads(out)
    Draft202012Validator(schema).validate(found)
    return found


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--keys", "ag8r,sex", "--no-sets"], {"keys": ["ag8r", "sex"], "sets": False}),
        (
            ["--sure", "0.9", "--nearly", "0.5", "--year", "2020"],
            {"sure": 0.9, "nearly": 0.5, "year": 2020},
        ),
    ],
)
def test_screen(veterans, keyhole, words, options):
    found = _asked("screen", veterans, keyhole, *words)
    assert found == plain_values(package.screen(veterans, **options).to_dict())


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--cutoff", "5", "--level", "0.9", "--variables", "sex,cp"],
         {"cutoff": 5, "level": 0.9, "variables": ["sex", "cp"]}),
        (["--most-levels", "5"], {"most_levels": 5}),
    ],
)  # fmt: skip
def test_drivers(veterans, keyhole, words, options):
    found = _asked("drivers", veterans, keyhole, "--keys", "sex,age,race1", *words)
    expected = package.drivers(veterans, keys=["sex", "age", "race1"], **options)
    assert found == plain_values(expected.to_dict())


def test_all_at_risk_is_valid_too(veterans, keyhole):
    found = _asked("drivers", veterans, keyhole, "--keys", "sex,age,income,weight,area")
    assert found["rp"] > 0.9
    found = _asked("drivers", veterans, keyhole, "--keys", "sex")
    assert found["model"] is None


@pytest.mark.parametrize("verb", ["screen", "drivers"])
def test_verbs_have_the_parameters_of_their_functions(verb):
    function = set(inspect.signature(getattr(package, verb)).parameters) - {"data"}
    assert function <= {parameter.name for parameter in all_commands()[verb].params}


def test_pictures_are_drawn(veterans, keyhole, tmp_path):
    for verb, words in (("screen", []), ("drivers", ["--keys", "sex,ag8r,race1"])):
        path = tmp_path / f"{verb}.svg"
        code, out, err = keyhole(verb, veterans, *words, "--plot", path)
        assert code == 0
        assert out
        assert "picture" in err
        assert "<svg" in path.read_text()


def test_bad_input_is_told_all_at_once_and_nothing_is_written(veterans, keyhole, tmp_path):
    path = tmp_path / "a.svg"
    code, out, err = keyhole(
        "drivers", veterans, "--keys", "sexx", "--cutoff", "0", "--level", "2", "--plot", path
    )
    assert (code, out) == (2, "")
    assert all(word in err for word in ("cutoff", "level", "sexx"))
    assert not path.exists()
    code, out, err = keyhole("screen", veterans, "--sure", "9", "--year", "3", "--keys", "agee")
    assert (code, out) == (2, "")
    assert all(word in err for word in ("sure", "year", "agee"))


def test_no_value_is_printed_by_screen(tmp_path, keyhole):
    path = tmp_path / "people.csv"
    lines = [f"{i},Jane Secretname{i},212-55-{7000 + i},x{i}@hidden.example" for i in range(60)]
    path.write_text("\n".join(["n,full_name,ssn,contact", *lines]))
    for words in ((), ("--json",)):
        code, out, err = keyhole("screen", path, *words)
        assert code == 0
        for secret in ("Secretname", "212-55", "hidden.example"):
            assert secret not in out + err
        assert "ssn" in out
