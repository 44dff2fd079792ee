"""``--scenario`` in place of keys, candidates and linking variables."""

import json

import pytest

import keyhole
from keyhole.cli.main import run
from keyhole.data.examples import veterans
from keyhole.environment.example.environment import example_environment
from keyhole.environment.exchange import write_environment
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.environment.store import open_store

NAME = "commercial database"


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
    assert len(several["comparison"]) == 3
    sets = json.loads(ask("frontier", "puf.csv", *words)[1])["sets"]
    whole = keyhole.frontier(key.microdata, keep=["sex"], candidates=rest, limit=0.1)
    assert [s["variables"] for s in sets] == [list(s.variables) for s in whole.sets]


def test_a_study_on_the_key_of_a_scenario(ask):
    words = ["--puf", "puf.csv", "--eif", "eif.csv", "--iuf", "iuf.csv", "--puf-id", "puf_id"]
    words += ["--eif-id", "eif_id", "--scenario", "veterans association", "--store", "env.db"]
    code, out, err = ask("study", *words, "--permutations", "0", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["link"] == ["sex", "ag8r", "ms", "psx", "homstate", "age", "area"]
    assert found["suspected"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--keys must name at least one column, or give --scenario"),
        (["--keys", "sex", "--scenario", NAME, "--store", "env.db"], "exclude each other"),
        (["--scenario", NAME], "--scenario needs --store"),
        (["--keys", "sex", "--store", "env.db"], "go with --scenario"),
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
