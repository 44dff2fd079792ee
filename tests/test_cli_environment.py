"""The command line of the data environment, from an empty folder on."""

import json
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from keyhole.cli.main import run
from keyhole.data.examples import veterans_sample

SCHEMA = {
    "title": "Club membership",
    "type": "object",
    "properties": {
        "fullName": {"type": "string"},
        "gender": {"enum": ["M", "F"]},
        "maritalStatus": {"enum": ["Married", "Widowed", "Divorced", "Separated", "Never married"]},
        "favouriteColour": {"enum": ["red", "green"]},
    },
}


@pytest.fixture
def store(tmp_path):
    place = str(tmp_path / "env.db")
    assert run(["environment", "init", "--store", place, "--example"]) == 0
    return place


@pytest.fixture
def ask(store, capsys):
    """Run a verb on the store and return what it printed, as JSON if asked for."""

    def asked(verb: str, *words: str, code: int = 0):
        capsys.readouterr()
        assert run(["environment", verb, "--store", store, *words]) == code
        printed = capsys.readouterr()
        if code:
            return printed.err
        return json.loads(printed.out) if "--json" in words else printed.out

    return asked


def test_a_store_is_made_once(ask):
    assert "new store" in ask("init", "--example", code=2)
    assert "exclude" in ask("init", "--example", "--from", "x.json", code=2)


@pytest.mark.parametrize(
    "what", ["constructs", "codings", "organisations", "forms", "sources", "targets", "scenarios"]
)
def test_everything_is_listed(ask, what):
    found = ask("list", what, "--json")
    overview = {row["what"]: row["how many"] for row in ask("list", "--json")["rows"]}
    assert found["what"] == what
    assert len(found["rows"]) == overview[what] > 0


def test_what_is_not_there_offers_what_is_near(ask):
    assert "'AG8.001'" in ask("show", "AG8.01", code=2)
    assert "forms" in ask("list", "shapes", code=2)


def test_one_thing_is_shown(ask, tmp_path):
    assert ask("show", "AG8.001", "--json")["kind"] == "coding"
    assert "Fields" in ask("show", "Voter registration")
    drawing = tmp_path / "age.svg"
    ask("show", "AG", "--plot", str(drawing))
    assert drawing.read_text().startswith("<svg")
    assert "letters" in ask("show", "AG8.001", "--plot", str(tmp_path / "no.svg"), code=2)
    assert not (tmp_path / "no.svg").exists()


def test_mapping_each_way(ask):
    pair = ask("map", "--target", "veterans", "--form", "Voter registration", "--json")
    assert pair["kind"] == "pair"
    assert {v["column"] for v in pair["key"]} >= {"sex", "age"}
    narrow = ask("map", "--target", "veterans", "--sector", "finance", "--threshold", "1", "--json")
    wide = ask("map", "--target", "veterans", "--sector", "finance", "--json")
    assert len(narrow["key"]) < len(wide["key"])
    public = ask("map", "--target", "veterans", "--resources", "6", "--json")
    assert public["sources"]
    both = ask("map", "--target", "veterans", "--sector", "finance", "--resources", "6", "--json")
    assert both["stages"]
    assert ask("map", "--target", "veterans", "--sector", "finance", "--joint", "--json")["sets"]


def test_what_does_not_go_together(ask):
    words = ["--target", "veterans", "--form", "Voter registration", "--sector", "finance"]
    assert "--form" in ask("map", *words, code=2)
    assert "SCHEME=VALUE" in ask("map", "--target", "veterans", "--class", "channel", code=2)
    assert "threshold" in ask("map", "--target", "veterans", "--threshold", "2", code=2)
    assert "finance" in ask("map", "--target", "veterans", "--sector", "banking", code=2)


def test_a_join_is_kept_only_when_asked(ask):
    first = ask("join", "MS6.001", "MS3.001", "--json")
    assert first["resolved"]
    before = len(ask("list", "codings", "--json")["rows"])
    ask("join", "AG7.001", "AG8.001")
    assert len(ask("list", "codings", "--json")["rows"]) == before


def test_a_scenario_gives_its_key(ask):
    name = ask("list", "scenarios", "--json")["rows"][0]["scenario"]
    assert ask("key", name, "--target", "veterans", "--json")["key"]
    assert "--out" in ask("key", name, "--target", "veterans", "--file", "x.csv", code=2)


def test_public_sources_add_something(ask):
    words = ["--target", "veterans", "--resources", "7", "--sector", "finance"]
    found = ask("enhance", *words, "--json")
    assert found["gains"]
    assert "2024" in ask("trend", "--construct", "AG")


def test_an_exported_environment_begins_another(ask, tmp_path):
    first, second = tmp_path / "one.json", tmp_path / "two.json"
    ask("export", "--out", str(first))
    other = str(tmp_path / "other.db")
    assert run(["environment", "init", "--store", other, "--from", str(first)]) == 0
    assert run(["environment", "export", "--store", other, "--out", str(second)]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert "--out must end in .json" in ask("export", "--out", str(tmp_path / "x.txt"), code=2)


def test_a_form_is_imported(ask, tmp_path):
    path = tmp_path / "club-schema.json"
    path.write_text(json.dumps(SCHEMA))
    before = ask("list", "--json")
    words = [str(path), "--sector", "community", "--organisation", "A club"]
    tried = ask("import", *words, "--dry-run")
    assert "gender" in tried
    assert ask("list", "--json") == before
    ask("import", *words, "--who", "an officer")
    shown = ask("show", "club", "--json")
    fields = {field["name"]: field for field in shown["fields"]}
    assert fields["fullName"]["identifier"] == "name"
    assert fields["gender"]["coding"].startswith("SX")
    assert fields["maritalStatus"]["coding"].startswith("MS")
    history = ask("history", "--name", "club", "--json")["rows"]
    assert [(row["who"], row["action"]) for row in history] == [("an officer", "added")]


def test_files_that_are_no_forms_are_all_told(ask, tmp_path):
    bad, worse = tmp_path / "a.json", tmp_path / "b.json"
    bad.write_text("{")
    worse.write_text("[]")
    before = ask("list", "--json")
    told = ask("import", str(bad), str(worse), code=2)
    assert "a.json" in told
    assert "b.json" in told
    assert ask("list", "--json") == before


def test_a_target_is_captured_from_its_file(ask, tmp_path):
    path = tmp_path / "survey.csv"
    path.write_text("sex,age\n" + "\n".join(f"{'MF'[n % 2]},{20 + n}" for n in range(50)) + "\n")
    ask("import", str(path), "--as", "target")
    found = ask("show", "survey", "--json")
    assert found["kind"] == "target"
    assert len(found["fields"]) == 2


def test_ranks_are_of_sources(ask, tmp_path):
    path = tmp_path / "club-schema.json"
    path.write_text(json.dumps(SCHEMA))
    assert "--as source" in ask("import", str(path), "--ranks", "1,1,1", code=2)
    assert "three" in ask("import", str(path), "--as", "source", "--ranks", "1,1", code=2)
    ask("import", str(path), "--as", "source", "--ranks", "2,3,1")
    rows = {row["source"]: row for row in ask("list", "sources", "--json")["rows"]}
    assert rows["club"]["resource index"] == 6


def test_proposals_are_edited_and_followed(ask, tmp_path):
    path, edited = tmp_path / "club-schema.json", tmp_path / "decisions.toml"
    path.write_text(json.dumps(SCHEMA))
    before = ask("list", "--json")
    ask("import", str(path), "--propose", str(edited))
    assert ask("list", "--json") == before
    text = edited.read_text()
    assert 'field = "gender"' in text
    start = text.index("[[decision]]", text.index('field = "maritalStatus"'))
    edited.write_text(text[:start] + '[[decision]]\nfield = "favouriteColour"\naction = "leave"\n')
    ask("import", str(path), "--decisions", str(edited))
    fields = {field["name"]: field for field in ask("show", "club", "--json")["fields"]}
    assert fields["gender"]["coding"].startswith("SX")
    assert "coding" not in fields["favouriteColour"]


def test_a_decision_file_that_is_wrong(ask, tmp_path):
    path, edited = tmp_path / "club-schema.json", tmp_path / "decisions.toml"
    path.write_text(json.dumps(SCHEMA))
    edited.write_text('[[decision]]\nfield = "gender"\naction = "asimilate"\n')
    assert "'assimilate'" in ask("import", str(path), "--decisions", str(edited), code=2)
    edited.write_text("[[decision]\n")
    assert "TOML" in ask("import", str(path), "--decisions", str(edited), code=2)
    words = ["--decisions", str(edited), "--propose", str(tmp_path / "x.toml")]
    assert "Give one" in ask("import", str(path), *words, code=2)


def test_the_trend_is_drawn(ask, tmp_path):
    ask("trend", "--plot", str(tmp_path / "trend.svg"))
    assert "2024" in (tmp_path / "trend.svg").read_text()


def test_ranks_that_do_not_exist_are_refused(ask, tmp_path):
    path = tmp_path / "club-schema.json"
    path.write_text(json.dumps(SCHEMA))
    told = ask("import", str(path), "--as", "source", "--ranks", "9,9,9", code=2)
    assert "mode must be a rank from 1 to 4" in told
    assert len(ask("list", "sources", "--json")["rows"]) == 8


def test_values_of_few_records_do_not_reach_the_store(ask, store, tmp_path):
    path = tmp_path / "survey.csv"
    rows = [("east", "f"), ("west", "m")] * 50 + [("Zylphoria", "f")]
    path.write_text("region,sex\n" + "".join(f"{a},{b}\n" for a, b in rows))
    out = ask("import", str(path), "--as", "target")
    assert "1 values without a label" in out
    assert b"Zylphoria" not in Path(store).read_bytes()
    names = tmp_path / "names.csv"
    names.write_text("who\n" + "".join(f"Person {n} of many\n" for n in range(100)))
    ask("import", str(names), "--as", "target")
    assert b"Person 7 of many" not in Path(store).read_bytes()


def test_the_unedited_proposals_are_followed(ask, tmp_path):
    path, edited = tmp_path / "gym-schema.json", tmp_path / "gym.toml"
    schema = {"properties": {"maritalStatus": {"enum": ["Single", "Married"]}}}
    path.write_text(json.dumps(schema))
    ask("import", str(path), "--propose", str(edited))
    ask("import", str(path), "--decisions", str(edited))
    found = ask("map", "--target", "veterans", "--form", "gym", "--json")
    # Who is divorced or widowed is neither single nor married here, as far as anybody has said.
    assert found["lower"]["variables"]["ms"][0] <= 4
    assert found["upper"]["variables"]["ms"][0] == 6


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (("list", "forms"), lambda e, s: e.list_environment(s, "forms")),
        (("show", "AG8.001"), lambda e, s: e.show(s, "AG8.001")),
        (("history",), lambda e, s: e.history(s)),
        (
            ("map", "--target", "veterans", "--class", "sector=finance", "--resources", "6"),
            lambda e, s: e.map_target(
                s, target="veterans", class_={"sector": "finance"}, resources=6
            ),
        ),
        (("join", "MS6.001", "MS3.001"), lambda e, s: e.find_join(s, "MS6.001", "MS3.001")),
        (
            ("key", "journalist", "--target", "veterans"),
            lambda e, s: e.find_key(s, "journalist", target="veterans"),
        ),
        (
            ("enhance", "--target", "veterans", "--resources", "7", "--sector", "finance"),
            lambda e, s: e.enhance(s, "veterans", resources=7, sector="finance"),
        ),
        (("trend", "--construct", "AG"), lambda e, s: e.trend(s, construct="AG")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_verb_is_a_function_with_the_same_answer(ask, store, words, made):
    from keyhole import environment

    answer = json.loads(json.dumps(made(environment, store).to_dict()))
    assert answer == ask(*words, "--json")


def test_a_function_tells_all_that_is_wrong_by_its_own_names(store):
    from keyhole import environment
    from keyhole.errors import OptionError

    with pytest.raises(OptionError) as caught:
        environment.map_target(
            store, target="veterans", form="x", sector="finance", threshold=2, resources=-1
        )
    assert [problem.split()[0] for problem in caught.value.problems] == [
        "threshold",
        "resources",
        "form",
    ]


def test_what_is_written_needs_a_store(store):
    from keyhole import environment
    from keyhole.errors import OptionError

    held = environment.open_store(store).read().environment
    assert environment.find_join(held, "MS6.001", "MS3.001").found.resolved
    with pytest.raises(OptionError, match="store must be the place of a store"):
        environment.find_join(held, "AG5.001", "AG7.001", mint=True)


def test_a_ladder_of_codings_makes_a_coarser_column(ask, tmp_path, capsys):
    file = tmp_path / "regions.csv"
    found = ask("ladder", "GE54.001", "--out", str(file), "--json")
    assert (found["coding"], found["coarser"]) == ("GE54.001", ["GE5.001"])
    written = pl.read_csv(file, infer_schema=False)
    assert written.columns == ["GE54.001", "GE5.001"]
    assert [list(row) for row in written.rows()] == found["categories"]
    assert dict(written.rows())["48"] == "South"
    assert "exists" in ask("ladder", "GE54.001", "--out", str(file), code=2)

    veterans_sample(500).save(tmp_path / "veterans.csv")
    line = f'region = map(homstate, "{file}", to="GE5.001")'
    capsys.readouterr()
    words = ["risk", str(tmp_path / "veterans.csv"), "--keys", "region", "--derive", line]
    assert run([*words, "--json"]) == 0
    states = pl.read_csv(tmp_path / "veterans.csv", infer_schema=False)["homstate"]
    regions = {dict(written.rows())[state] for state in states.drop_nulls()}
    assert json.loads(capsys.readouterr().out)["cells"] == len(regions) + bool(states.null_count())


def test_every_rung_of_a_ladder_is_made_of_whole_categories_of_the_one_before(ask):
    found = ask("ladder", "AG8.001", "--json")
    assert found["coarser"] == ["AG3.001", "AG2.001"]
    for finer, coarser in pairwise(zip(*found["categories"], strict=True)):
        assert len(set(zip(finer, coarser, strict=True))) == len(set(finer))


def test_a_coding_without_a_coarser_one_has_no_ladder(ask):
    assert "'GE5.001' leads to no coarser one" in ask("ladder", "GE5.001", code=2)
    assert "'XX' is not in the environment" in ask("ladder", "XX", code=2)


def test_how_a_source_was_found_is_kept(ask, tmp_path):
    path = tmp_path / "profiles.csv"
    path.write_text("field,code,category\nsex,1,Male\nsex,2,Female\n")
    said = {
        "--method": "social network study", "--statement": "Visible to friends",
        "--search-parameters": "veterans of one town", "--time-frame": "May 2026",
        "--social-group": "veterans",
    }  # fmt: skip
    words = [word for pair in said.items() for word in pair]
    ask("import", str(path), "--as", "source", "--kind", "table", *words)
    shown = ask("show", "profiles", "--json")
    names = ("method", "statement", "search_parameters", "time_frame", "social_group")
    assert [shown[name] for name in names] == list(said.values())
    ask("import", str(path), "--kind", "table", "--name", "again", *words)
    assert ask("show", "again", "--json")["method"] == "social network study"
    assert "must be" in ask("import", str(path), "--name", "x", "--method", "guessing", code=2)
