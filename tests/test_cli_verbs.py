"""Each verb prints what the Python function of the same name finds, as its schema says."""

import json
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from jsonschema import Draft202012Validator

import keyhole as package
from keyhole.cli.main import run
from keyhole.core.codec import plain_values
from keyhole.data.examples import veterans_sample

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"
COLUMNS = ["sex", "age", "homstate", "ms", "race1", "weight"]


@pytest.fixture
def keyhole(capsys):
    def call(*words):
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def veterans(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "veterans.csv"
    frame = veterans_sample(1500, seed=3).frame.select(COLUMNS)
    frame = frame.with_columns(
        (pl.col("age") // 10).alias("age10"),
        pl.when(pl.int_range(pl.len()) % 50 == 0).then(-9).otherwise(pl.col("age")).alias("age"),
        (pl.int_range(pl.len()) // 2).alias("home"),
    )
    frame.write_csv(path)
    return path


def _schema(verb):
    schema = json.loads((SCHEMAS / f"{verb}.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _asked(words, path, keyhole):
    verb, *options = words.split()
    code, out, err = keyhole(verb, path, *options, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    _schema(verb).validate(found)
    return found


RISK = {
    "--keys sex,age": {},
    "--keys sex,age --cutoff 5 --missing drop --missing-codes -9": {
        "cutoff": 5,
        "missing": "drop",
    },
    "--keys sex,age --missing wildcard --missing-codes age:-9 --weight weight": {
        "missing": "wildcard",
        "weight": "weight",
    },
    "--keys sex,age --weight weight --by homstate": {"weight": "weight", "by": "homstate"},
    "--keys sex,age --fraction 0.01 --household home --approximation sdcmicro": {
        "fraction": 0.01,
        "household": "home",
        "approximation": "sdcmicro",
    },
}


def _loaded(path, options):
    return package.load(path, missing_codes=[-9] if "-9" in options else None)


@pytest.mark.parametrize("options", RISK)
def test_risk(veterans, keyhole, options):
    found = _asked(f"risk {options}", veterans, keyhole)
    expected = package.risk(_loaded(veterans, options), keys=["sex", "age"], **RISK[options])
    assert found == plain_values(expected.to_dict())
    assert ("population" in found) == ("--weight" in options or "--fraction" in options)


def test_risk_within_a_limit_and_beyond(veterans, keyhole):
    found = _asked("risk --keys sex,age,homstate --limit 0.05", veterans, keyhole)
    expected = package.cheapest_fix(veterans, keys=["sex", "age", "homstate"], limit=0.05)
    assert found["fix"] == plain_values(expected.to_dict())
    assert found["fix"]["needed"]
    assert not _asked("risk --keys sex --limit 0.05", veterans, keyhole)["fix"]["needed"]


UNIQUES = {
    "": {},
    "--max-size 2 --cutoff 2 --fraction 0.05": {"max_size": 2, "cutoff": 2, "fraction": 0.05},
    "--convention sdcmicro --availability age=2,sex=0.5 --identifiability homstate=2": {
        "convention": "sdcmicro",
        "availability": [0.5, 2, 1],
        "identifiability": [1, 1, 2],
    },
}


@pytest.mark.parametrize("options", UNIQUES)
def test_uniques(veterans, keyhole, options):
    found = _asked(f"uniques --keys sex,age,homstate {options}", veterans, keyhole)
    expected = package.uniques(veterans, keys=["sex", "age", "homstate"], **UNIQUES[options])
    assert found == plain_values(expected.to_dict())


SELECT = {
    "--method forward --limit 0.05": {"limit": 0.05},
    "--method backward --limit 0.1 --cutoff 5": {"method": "backward", "limit": 0.1, "cutoff": 5},
    "--method stepwise --limit 0.3 --drop-limit 0.1": {
        "method": "stepwise",
        "limit": 0.3,
        "drop_limit": 0.1,
    },
    "--limit 0.2 --criterion difference --cr-weight 0.25 --skip-dependent": {
        "limit": 0.2,
        "criterion": "difference",
        "cr_weight": 0.25,
        "skip_dependent": True,
    },
    "--limit 0.2 --values homstate=3,ms=2 --by sex": {
        "limit": 0.2,
        "values": {"homstate": 3, "ms": 2},
        "by": "sex",
    },
}
SPACE = {"keep": ["race1"], "candidates": ["age|age10", "homstate", "ms"]}


@pytest.mark.parametrize("options", SELECT)
def test_select(veterans, keyhole, options):
    words = f"select --keep race1 --candidates age|age10,homstate,ms {options}"
    found = _asked(words, veterans, keyhole)
    assert found == plain_values(package.select(veterans, **SPACE, **SELECT[options]).to_dict())
    assert ("groups" in found) == ("--by" in options)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ("--limit 0.05,0.1 --cutoff 2,3,5", {"limit": [0.05, 0.1], "cutoff": [2, 3, 5]}),
        (
            "--limit 0.1 --method forward,backward",
            {"limit": 0.1, "method": ["forward", "backward"]},
        ),
        ("--limit 0.1 --compare", {"limit": 0.1, "compare": True}),
    ],
)
def test_selections_are_compared(veterans, keyhole, options, asked):
    words = f"select --keep race1 --candidates age|age10,homstate,ms {options}"
    found = _asked(words, veterans, keyhole)
    assert found == plain_values(package.select(veterans, **SPACE, **asked).to_dict())


def test_the_candidates_of_a_step_are_printed(veterans, keyhole):
    words = ("select", veterans, "--candidates", "sex,ms,homstate", "--limit", "1")
    plain = keyhole(*words)[1]
    one = keyhole(*words, "--table", "F2")[1]
    every = keyhole(*words, "--tables")[1]
    assert "Step F" not in plain
    assert one.startswith(plain)
    assert [f"Step F{i}" in one for i in (1, 2, 3)] == [False, True, False]
    assert [f"Step F{i}" in every for i in (1, 2, 3)] == [True, True, True]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ("--limit 0.05", {"limit": 0.05}),
        ("--limit 0.2 --cutoff 5 --values ms=3", {"limit": 0.2, "cutoff": 5, "values": {"ms": 3}}),
    ],
)
def test_frontier(veterans, keyhole, options, asked):
    words = f"frontier --keep race1 --candidates age|age10,homstate,ms {options}"
    found = _asked(words, veterans, keyhole)
    expected = plain_values(package.frontier(veterans, **SPACE, **asked).to_dict())
    assert found["sets"] == expected["sets"]
    assert found["best"] == expected["best"]
    assert found["complete"]


def test_a_frontier_out_of_time_says_so(veterans, keyhole):
    words = "frontier --candidates age,homstate,ms --limit 0.2 --seconds 1e-9"
    assert not _asked(words, veterans, keyhole)["complete"]


@pytest.mark.parametrize(
    "words",
    [
        "risk --keys sex,age",
        "uniques --keys sex,age",
        "select --candidates sex,age --limit 0.1",
        "frontier --candidates sex,age --limit 0.1",
    ],
)
def test_without_json_the_summary_is_printed(veterans, keyhole, words):
    verb, *options = words.split()
    code, out, err = keyhole(verb, veterans, *options)
    assert (code, err) == (0, "")
    asked = dict(zip(options[::2], options[1::2], strict=True))
    arguments = {
        name.removeprefix("--"): float(text) if name == "--limit" else text.split(",")
        for name, text in asked.items()
    }
    assert out == getattr(package, verb)(veterans, **arguments).summary() + "\n"


def test_hostile_names_are_printed_as_they_are(tmp_path, keyhole):
    path = tmp_path / "odd.csv"
    path.write_text('"[bold]a[/bold]","b,c","d|e","f""g"," h"\n1,2,3,4,5\n')
    names = '[bold]a[/bold],"b,c",d|e,"f""g"," h"'
    code, out, err = keyhole("risk", path, "--keys", names, "--delimiter", ",")
    assert (code, err) == (0, "")
    assert "[bold]a[/bold]" in out
    quoted = '"[bold]a[/bold]","b,c","d|e","f""g"," h"'
    found = keyhole(
        *("select", path, "--candidates", quoted, "--limit", "1"), "--delimiter", ",", "--json"
    )
    assert json.loads(found[1])["selected"] == ["[bold]a[/bold]", "b,c", "d|e", 'f"g', " h"]


def test_only_the_columns_needed_are_read(veterans, keyhole, monkeypatch):
    read = []
    whole = package.load

    def spy(*arguments, columns=None, **options):
        read.append(columns)
        return whole(*arguments, columns=columns, **options)

    monkeypatch.setattr("keyhole.engines.choose.load", spy)
    keyhole("risk", veterans, "--keys", "sex,age", "--weight", "weight", "--by", "ms")
    keyhole("select", veterans, "--keep", "sex", "--candidates", "age|age10", "--limit", "0.1")
    assert [set(names) for names in read] == [
        {"sex", "age", "weight", "ms"},
        {"sex", "age", "age10"},
    ]


class _Found(SimpleNamespace):
    passed = True

    def to_dict(self):
        return {"given": self.given}

    def summary(self):
        return f"summary of {self.given}"


def test_review_is_a_thin_shell(keyhole, monkeypatch):
    def run(settings, files, *, out, force, progress):
        assert callable(progress)
        return _Found(given=[settings, files, str(out), force])

    monkeypatch.setattr("keyhole.reviews.runner.read_review", lambda path: (str(path), "files"))
    monkeypatch.setattr("keyhole.reviews.runner.run_review", run)
    code, out, _ = keyhole("review", "plan.toml", "--out", "there", "--json")
    assert (code, json.loads(out)["given"]) == (0, ["plan.toml", "files", "there", False])
    code, out, _ = keyhole("review", "plan.toml", "--out", "there", "--force")
    assert (code, out) == (0, "summary of ['plan.toml', 'files', 'there', True]\n")


@pytest.mark.parametrize(("passed", "expected"), [(True, 0), (False, 1)])
def test_selftest_exits_by_its_outcome(keyhole, monkeypatch, passed, expected):
    examples = {"a paper": lambda: [("RP", "a share", "0.3", "0.3", passed)]}
    monkeypatch.setattr("keyhole.published.certificate.EXAMPLES", examples)
    code, out, err = keyhole("selftest", "--json")
    assert (code, json.loads(out)["passed"], err) == (expected, passed, "")


REQUIRED = {
    "risk": "records keys cells uniques cutoff rp cr at_risk",
    "uniques": "records keys max_size minimal_uniques by_size by_variable score_sum",
    "select": "method selected within_limit steps stopped tables",
    "frontier": "complete sets best",
    "solve": "complete combinations evaluated rp cr columns left_out not_counted suppressed "
    "removed utility frontier greedy bound",
}


@pytest.mark.parametrize("verb", REQUIRED)
def test_a_schema_refuses_what_lacks_a_key(veterans, keyhole, verb):
    words = "--keys sex,age" if verb in ("risk", "uniques", "solve") else "--candidates sex,age"
    words += "" if verb in ("risk", "uniques") else " --limit 0.1"
    found = _asked(f"{verb} {words}", veterans, keyhole)
    for name in REQUIRED[verb].split():
        rest = {key: value for key, value in found.items() if key != name}
        assert not _schema(verb).is_valid(rest), name


def test_kinds_are_declared_on_the_command_line(veterans, keyhole):
    """Whole numbers of a category are pooled, those of a measure are put into bands."""
    words = "risk --keys sex,age10,homstate --limit 0"
    actions = [
        {f["action"] for f in _asked(f"{words}{more}", veterans, keyhole)["fix"]["fixes"]
         if f["variable"] == "age10"}
        for more in ("", " --kinds age10=measure")
    ]  # fmt: skip
    assert "regroup" not in actions[0]
    assert "regroup" in actions[1]


@pytest.mark.parametrize("verb", ["risk --keys sex", "select --limit 0.5 --candidates sex"])
def test_small_groups_are_not_named_on_the_screen(tmp_path, keyhole, verb):
    path = tmp_path / "people.csv"
    path.write_text("sex,who\n" + "f,many\n" * 5 + "m,smith\n")
    verb, *options = verb.split()
    words = (verb, path, *options, "--by", "who")
    assert "smith" not in keyhole(*words)[1]
    assert "(1 smaller)" in keyhole(*words)[1]
    assert "--name-small-groups names them" in keyhole(*words)[1]
    assert "smith" in keyhole(*words, "--name-small-groups")[1]
    groups = json.loads(keyhole(*words, "--json")[1])["groups"]
    assert [group["group"] for group in groups] == ["many", "smith"]


def test_a_group_without_weights_is_as_the_schema_says(tmp_path, keyhole):
    path = tmp_path / "people.csv"
    path.write_text("sex,area,w\nf,a,0\nm,a,0\nf,b,2\n")
    found = _asked("risk --keys sex --weight w --by area", path, keyhole)
    assert [group["population"] is None for group in found["groups"]] == [True, False]
    assert (
        "\nBy area\n"
        in keyhole(
            *("risk", path, "--keys", "sex", "--weight", "w", "--by", "area", "--name-small-groups")
        )[1]
    )
