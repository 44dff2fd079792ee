"""``--scenario`` in place of keys, candidates and linking variables."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import keyhole
from keyhole.cli.main import run
from keyhole.data.examples import veterans
from keyhole.environment.exchange import example_environment, write_environment
from keyhole.environment.model import CapturedQuestion, Category, Field, Form
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.environment.scenarios.scenarios import RestrictedStage, Scenario
from keyhole.environment.store import open_store

NAME = "commercial database"
SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schemas" / "risk.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario")
    world = veterans(6000, seed=2)
    for name, data in (("puf", world.sample), ("eif", world.external), ("iuf", world.truth)):
        data.save(path / f"{name}.csv")
    write_environment(example_environment(), path / "env.json")
    store = open_store(path / "env.db", create=True)
    store.write(store.read(), example_environment(), who="ann")
    return path


@pytest.fixture
def ask(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)

    def give(*words):
        code = run([*words])
        out, err = capsys.readouterr()
        return code, out, err

    return give


@pytest.fixture(scope="module")
def key(folder):
    return scenario_key(example_environment(), NAME, keyhole.load(folder / "puf.csv"))


@pytest.mark.parametrize("store", ["env.json", "env.db"])
def test_risk_on_the_key_of_a_scenario(ask, key, store):
    code, out, _ = ask("risk", "puf.csv", "--scenario", NAME, "--store", store, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["scenario"] == NAME
    assert found["keys"] == list(key.keys)
    assert found["rp"] == keyhole.risk(key.microdata, keys=key.keys).rp
    assert [v["column"] for v in found["key"]["key"]] == list(key.keys)


def test_risk_tells_p_identification(ask):
    name = "veterans association"
    words = ["risk", "puf.csv", "--scenario", name, "--store", "env.json"]
    found = json.loads(ask(*words, "--json")[1])
    told = found["identification"]
    low, high = found["uniques"] / found["records"], found["cr"]
    assert told["p_identification_given_attempt"] == [low, high]
    assert told["p_attempt"] == [0.05, 0.3]
    assert told["p_identification"] == [low * 0.05, high * 0.3]
    text = ask(*words)[1]
    assert "Identification: veterans association" in text
    assert "p(identification | attempt)" in text


@pytest.mark.parametrize(
    "given",
    [
        ["--scenario", f"{NAME},register"],
        ["--scenario", NAME, "--scenario", "register"],
        ["--scenario", f'"{NAME}", register'],
    ],
)
def test_risk_sets_several_scenarios_side_by_side(ask, key, given):
    code, out, err = ask("risk", "puf.csv", *given, "--store", "env.db", "--cutoff", "5", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert [one["scenario"] for one in found["scenarios"]] == [NAME, "register"]
    assert found["worst"] == found["scenario"] == "register"
    assert found["rp"] == max(one["exposure"]["rp"] for one in found["scenarios"])
    jsonschema.validate(found, SCHEMA)
    exposure = keyhole.risk(key.microdata, keys=key.keys, cutoff=5)
    assert found["scenarios"][0]["exposure"]["rp"] == exposure.rp
    text = ask("risk", "puf.csv", *given, "--store", "env.db")[1]
    assert "p(id | attempt)" in text
    assert "p(identification)" in text


@pytest.mark.parametrize("names", ["club", "club,commercial database"])
def test_p_identification_is_given_while_fields_wait_only_if_asked_for(ask, names):
    answers = tuple(map(Category, ("Married", "Widowed", "Divorced", "Never married")))
    waiting = Field("q7", "Marital status or housing", question=CapturedQuestion(answers))
    form = Form("club", sector="clubs", fields=(Field("sex", coding="SX2.001"), waiting))
    story = Scenario("club", restricted=(RestrictedStage(sector="clubs"),))
    world = example_environment()
    grown = replace(world, forms=(*world.forms, form), scenarios=(*world.scenarios, story))
    write_environment(grown, "waiting.json", force=True)
    words = ["risk", "puf.csv", "--store", "waiting.json", "--json"]
    words += [word for name in names.split(",") for word in ("--scenario", name)]

    def probability(*more):
        code, out, err = ask(*words, *more)
        assert code == 0, err
        found = json.loads(out)
        parts = found.get("scenarios", [found])
        return parts[0]["identification"]["p_identification"]

    assert probability() is None
    low, high = probability("--undecided")
    assert 0 <= low < high <= 1


def test_options_of_one_key_are_refused_with_several_scenarios(ask):
    given = ["--scenario", f"{NAME},register", "--store", "env.db"]
    more = ["--by", "sex", "--limit", "0.1", "--missing", "drop", "--records", "out.csv"]
    code, out, err = ask("risk", "puf.csv", *given, *more)
    assert (code, out) == (2, "")
    assert "--missing, --by, --limit can only be used with one --scenario" in err


def test_all_unknown_scenarios_are_told_at_once(ask):
    words = ["--scenario", "registry,comercial database", "--store", "env.db"]
    code, _, err = ask("risk", "puf.csv", *words)
    assert code == 2
    assert "'registry'" in err
    assert "'comercial database'" in err


@pytest.mark.parametrize("verb", ["uniques", "select --limit 0.1", "frontier --limit 0.1"])
@pytest.mark.parametrize("given", [[f"{NAME},register"], [NAME, "--scenario", "register"]])
def test_other_verbs_refuse_several_scenarios(ask, verb, given):
    name, *more = verb.split()
    code, out, err = ask(name, "puf.csv", *more, "--store", "env.db", "--scenario", *given)
    assert (code, out) == (2, "")
    assert "--scenario must be one here. Got 2 instead" in err


def test_a_study_refuses_several_scenarios(ask):
    files = ["--puf", "puf.csv", "--eif", "eif.csv", "--iuf", "iuf.csv"]
    ids = ["--puf-id", "puf_id", "--eif-id", "eif_id"]
    words = ["--scenario", "register", "--scenario", NAME, "--store", "env.db"]
    code, _, err = ask("study", *files, *ids, *words)
    assert code == 2
    assert "--scenario must be one here. Got 2 instead" in err


def test_a_fix_is_sought_on_the_recoded_file(ask, key):
    words = ["--scenario", NAME, "--store", "env.json", "--limit", "0.1", "--json"]
    found = json.loads(ask("risk", "puf.csv", *words)[1])
    plain = keyhole.cheapest_fix(key.microdata, keys=key.keys, limit=0.1).to_dict()
    assert found["fix"]["best"] == plain["best"]


def test_uniques_on_the_key_of_a_scenario(ask, key):
    words = ["--scenario", NAME, "--store", "env.json", "--availability", "age=2", "--json"]
    found = json.loads(ask("uniques", "puf.csv", *words)[1])
    weights = [2.0 if name == "age" else 1.0 for name in key.keys]
    plain = keyhole.uniques(key.microdata, keys=key.keys, availability=weights).to_dict()
    assert found["by_size"] == plain["by_size"]
    assert found["levels"] == plain["levels"]


def test_select_and_frontier_choose_among_the_key(ask, key):
    words = ["--scenario", NAME, "--store", "env.json", "--keep", "sex", "--limit", "0.1", "--json"]
    rest = [name for name in key.keys if name != "sex"]
    chosen = json.loads(ask("select", "puf.csv", *words)[1])
    plain = keyhole.select(key.microdata, keep=["sex"], candidates=rest, limit=0.1)
    assert chosen["selected"] == list(plain.selected)
    assert chosen["scenario"] == NAME
    several = json.loads(ask("select", "puf.csv", *words, "--compare")[1])
    assert several["scenario"] == NAME
    compared = keyhole.select(key.microdata, keep=["sex"], candidates=rest, limit=0.1, compare=True)
    assert several["comparison"] == json.loads(json.dumps(compared.to_dict()["comparison"]))
    sets = json.loads(ask("frontier", "puf.csv", *words)[1])["sets"]
    whole = keyhole.frontier(key.microdata, keep=["sex"], candidates=rest, limit=0.1)
    assert [s["variables"] for s in sets] == [list(s.variables) for s in whole.sets]


def test_selections_compared_take_a_scenario(folder, key):
    data = keyhole.load(folder / "puf.csv")
    found = keyhole.select(
        data, scenario=key, keep="sex", limit=0.1, method=["backward", "forward"]
    )
    row = found.rows[0]
    assert row.rp == keyhole.risk(key.microdata, keys=row.selection.within_limit).rp
    assert "The key is that of scenario" in found.summary()
    assert keyhole.select(data, scenario=key, candidates="sex", limit=0.1).selected == ("sex",)


def test_a_study_on_the_key_of_a_scenario(ask):
    words = ["--puf", "puf.csv", "--eif", "eif.csv", "--iuf", "iuf.csv", "--puf-id", "puf_id"]
    words += ["--eif-id", "eif_id", "--scenario", "veterans association", "--store", "env.db"]
    code, out, err = ask("study", *words, "--permutations", "0", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["link"] == ["sex", "ag8r", "ms", "psx", "homstate", "age", "area"]
    assert found["suspected"] > 0
    low, high = found["intervals"]["confirmed_rate"]
    assert found["identification"]["p_identification"] == [low * 0.05, high * 0.3]
    assert found["scenario"] == "veterans association"
    text = ask("study", *words, "--permutations", "0")[1]
    assert "  The key is that of scenario 'veterans association'" in text
    assert "Warning: The key" not in text
    compared = ask("study", *words, "--permutations", "0", "--metric", "unicity,taxicab")[1]
    assert compared.count("The key is that of scenario") == 1
    assert "Warning" not in compared


@pytest.mark.parametrize("verb", ["risk", "study"])
def test_undecided_goes_with_a_scenario(ask, verb):
    files = (
        ["puf.csv"]
        if verb == "risk"
        else [f"--{name}={name}.csv" for name in ("puf", "eif", "iuf")]
    )
    code, _, err = ask(verb, *files, "--undecided")
    assert code == 2
    assert "--undecided needs --scenario" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--keys must name at least one column, or give --scenario"),
        (["--keys", "sex", "--scenario", NAME, "--store", "env.db"], "exclude each other"),
        (["--scenario", NAME], "--scenario needs --store"),
        (["--scenario", "", "--store", "env.db"], "--scenario must "),
        (["--scenario", f"{NAME},{NAME}", "--store", "env.db"], "twice. Name it once"),
        (["--keys", "sex", "--store", "env.db"], "need --scenario"),
        (["--scenario", "registry", "--store", "env.db"], "Did you mean 'register'?"),
        (["--scenario", NAME, "--store", "none.db"], "none.db"),
        (["--scenario", NAME, "--store", "env.db", "--target", "x"], "target 'x' is not in"),
    ],
)
@pytest.mark.parametrize("verb", ["risk", "uniques"])
def test_what_does_not_go_together_is_refused(ask, verb, words, said):
    code, out, err = ask(verb, "puf.csv", *words)
    assert code == 2
    assert said in err
    assert out == ""
