"""The command line of the data environment: deciding later, scenarios, corrections, weights."""

import json

import pytest

from keyhole.cli.main import run
from keyhole.environment.store import open_store

WAITING = {
    "title": "Work",
    "properties": {
        "gender": {"enum": ["M", "F"]},
        "circumstance": {"enum": ["Working", "Looking for work", "Retired"]},
        "q7": {"type": "integer", "minimum": 0, "maximum": 9},
    },
}
SCENARIO = """
[scenario.friend]
motivation = "curiosity"
columns = ["sex", "ag8r"]
"""
TABLE = """form,sector,field,label,code,category
Gym,leisure,sex,Sex,1,Male
,,,,2,Female
Pool,leisure,sex,Sex,m,Male
,,,,f,Female
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("stores") / "env.db"
    assert run(["environment", "init", "--store", str(place), "--example"]) == 0
    return place.read_bytes()


@pytest.fixture
def store(tmp_path, made):
    place = tmp_path / "env.db"
    place.write_bytes(made)
    return str(place)


@pytest.fixture
def ask(store, capsys):
    """Run a verb on the store and return what it printed, as JSON if asked for."""

    def asked(verb, *words, code=0, place=store):
        capsys.readouterr()
        assert run(["environment", verb, "--store", place, *map(str, words)]) == code
        printed = capsys.readouterr()
        if code:
            assert printed.out == ""
            return printed.err
        if "--json" in words:
            return json.loads(printed.out)
        return printed.out + printed.err

    return asked


@pytest.fixture
def form(tmp_path):
    path = tmp_path / "work-schema.json"
    path.write_text(json.dumps(WAITING))
    return path


def coded(ask, name):
    return {one["name"]: one.get("coding") for one in ask("show", name, "--json")["fields"]}


def test_only_init_makes_a_store(ask, form, tmp_path):
    typo = tmp_path / "typo.db"
    assert "keyhole environment init" in ask("import", form, place=str(typo), code=2)
    assert not typo.exists()


def test_what_waits_is_decided_on_later_without_the_file(ask, form, tmp_path):
    ask("import", form)
    form.unlink()
    assert coded(ask, "work")["circumstance"] is None
    assert "(waits: 3 answers)" in ask("show", "work")
    edited = tmp_path / "work.toml"
    told = ask("import", "--form", "work", "--propose", edited)
    assert "circumstance" in told
    assert "gender" not in edited.read_text()
    assert '["Working", "W"]' in edited.read_text()
    ask("import", "--form", "work", "--decisions", edited)
    assert coded(ask, "work")["circumstance"].startswith("ES")
    assert "no pending field" in ask("import", "--form", "work", code=2)
    history = ask("history", "--name", "work")
    assert "fields, circumstance, coding: nothing → ES3.001" in history
    assert "question" not in history


def test_a_decision_from_the_queue_holds_for_the_same_text_everywhere(ask, form, tmp_path):
    again = tmp_path / "again-schema.json"
    again.write_text(json.dumps({**WAITING, "title": "Again"}))
    ask("import", form, again)
    found = ask("waiting", "--target", "veterans", "--json")
    lines = {one["field"]: one for one in found["waiting"]}
    assert (set(lines), found["fields"]) == ({"circumstance", "q7"}, 4)
    assert lines["circumstance"]["forms"] == 2
    assert lines["circumstance"]["proposals"][0]["construct"] == "ES"
    edited = tmp_path / "work.toml"
    edited.write_text(
        '[[decision]]\nfield = "circumstance"\naction = "accommodate"\nconstruct = "ES"'
    )
    ask("import", "--form", "work", "--decisions", edited)
    assert "circumstance" not in ask("waiting", "--target", "veterans")
    assert coded(ask, "again")["circumstance"] == coded(ask, "work")["circumstance"]


def test_a_file_decides_on_all_forms_and_is_undone(ask, form, tmp_path):
    other = {"properties": {"q8": {"enum": ["tea", "milk"]}, "q7": {"type": "string"}}}
    again = tmp_path / "again-schema.json"
    again.write_text(json.dumps(other))
    ask("import", form, again)
    before = ask("waiting", "--json")
    edited = tmp_path / "all.toml"
    ask("import", "--pending", "--propose", edited)
    assert edited.read_text().count("[[decision]]") == len(before["waiting"]) == 3
    edited.write_text(edited.read_text().replace('field = "q8"', 'field = "nothing"'))
    told = ask("import", "--decisions", edited, code=2)
    assert "form 'again': field 'nothing' is not in the form" in told
    edited.write_text(edited.read_text().replace('field = "nothing"', 'field = "q8"'))
    counts = ask("import", "--decisions", edited, "--json")["forms"]
    assert [(one["name"], len(one["placements"])) for one in counts] == [("again", 2), ("work", 1)]
    assert ask("waiting", "--json")["waiting"] == []
    assert coded(ask, "again")["q7"][:3] == coded(ask, "work")["q7"][:3]  # of one construct
    assert "was changed again" in ask("undo", "--change", "2", code=2)
    ask("undo")
    assert ask("waiting", "--json") == before
    ask("undo")  # of the undoing
    assert ask("waiting", "--json")["waiting"] == []


def test_all_that_waits_is_accepted_above_a_score(ask, form):
    ask("import", form)
    assert "no proposal scores 0.9" in ask("import", "--pending", "--accept", "0.9", code=2)
    assert "whole store" in ask("import", form, "--pending", code=2)
    ask("import", "--pending", "--accept", "0.6")
    assert coded(ask, "work")["circumstance"].startswith("ES")
    assert [one["field"] for one in ask("waiting", "--json")["waiting"]] == ["q7"]


@pytest.mark.parametrize(
    ("action", "identifier"), [("leave", None), ("identifier", "record number")]
)
def test_what_is_left_or_kept_apart_is_so_everywhere(ask, form, tmp_path, action, identifier):
    again = tmp_path / "again-schema.json"
    again.write_text(json.dumps({**WAITING, "title": "Again"}))
    ask("import", form, again)
    edited = tmp_path / "work.toml"
    more = f'identifier = "{identifier}"' if identifier else ""
    text = f'[[decision]]\nform = "work"\nfield = "q7"\naction = "{action}"\n{more}'
    edited.write_text(text)
    ask("import", "--decisions", edited)
    assert [one["field"] for one in ask("waiting", "--json")["waiting"]] == ["circumstance"]
    fields = {one["name"]: one for one in ask("show", "again", "--json")["fields"]}
    assert fields["q7"].get("identifier") == identifier


def test_what_waits_is_taken_at_a_lower_score(ask, form):
    ask("import", form)
    assert "Lower --accept" in ask("import", "--form", "work", "--accept", "0.99", code=2)
    ask("import", "--form", "work", "--accept", "0.6")
    assert coded(ask, "work")["circumstance"].startswith("ES")


def test_decisions_on_a_form_that_is_there_place_its_fields(ask, form, tmp_path):
    ask("import", form)
    edited = tmp_path / "work.toml"
    edited.write_text('[[decision]]\nfield = "q7"\naction = "identifier"\nidentifier = "phone"\n')
    ask("import", form, "--decisions", edited)
    fields = {one["name"]: one for one in ask("show", "work", "--json")["fields"]}
    assert fields["q7"]["identifier"] == "phone"
    assert fields["gender"]["coding"].startswith("SX")


def test_a_form_that_is_there_is_refused_renamed_or_replaced(ask, form):
    ask("import", form)
    told = ask("import", form, code=2)
    assert "--name" in told
    assert "--replace" in told
    assert "place()" not in told
    ask("import", form, "--name", "work again", "--sector", "leisure")
    ask("import", form, "--replace", "--sector", "trade")
    forms = {row["form"]: row["sector"] for row in ask("list", "forms", "--json")["rows"]}
    assert (forms["work"], forms["work again"]) == ("trade", "leisure")


def test_one_form_of_a_file_is_chosen(ask, tmp_path):
    path = tmp_path / "forms.csv"
    path.write_text(TABLE)
    assert "choose one with --form" in ask("import", path, "--propose", tmp_path / "x", code=2)
    assert "'Gym', 'Pool'" in ask("import", path, "--form", "Sauna", code=2)
    ask("import", path, "--form", "Pool", "--name", "Bath")
    names = [row["form"] for row in ask("list", "forms", "--json")["rows"]]
    assert "Bath" in names
    assert "Gym" not in names


def test_neither_files_nor_a_form_is_an_error(ask):
    assert "--form" in ask("import", code=2)
    assert "there is no form" in ask("import", "--form", "nothing", code=2)


def test_a_sector_is_a_sector_also_as_a_class(ask, form):
    ask("import", form, "--class", "sector=health,channel=web")
    shown = ask("show", "work", "--json")
    assert shown["sector"] == "health"
    assert shown["classifications"] == {"channel": "web"}
    by_class = ask("map", "--target", "veterans", "--class", "sector=health", "--json")
    by_sector = ask("map", "--target", "veterans", "--sector", "health", "--json")
    assert by_class == by_sector
    words = ["--sector", "health", "--class", "sector=finance"]
    assert "given once" in ask("map", "--target", "veterans", *words, code=2)
    told = ask("map", "--target", "veterans", "--class", "channel=paper", code=2)
    assert "''" not in told


def test_scenarios_come_in_and_go_out_as_toml(ask, tmp_path):
    path = tmp_path / "friend.toml"
    path.write_text(SCENARIO)
    ask("import", path, "--as", "scenario")
    assert "exists already" in ask("import", path, "--as", "scenario", code=2)
    text = ask("show", "friend", "--toml")
    path.write_text(text.replace('"curiosity"', '"a bet"'))
    ask("import", path, "--as", "scenario", "--replace")
    assert ask("show", "friend", "--json")["motivation"] == "a bet"
    assert "motivation: curiosity → a bet" in ask("history", "--name", "friend")
    assert len(ask("key", "friend", "--target", "veterans", "--json")["key"]) == 2
    assert "scenarios" in ask("show", "AG", "--toml", code=2)
    assert "None" not in ask("show", "friend")
    ask("remove", "scenario", "friend")
    assert "not in the environment" in ask("show", "friend", code=2)


def test_a_scenario_file_without_scenarios(ask, tmp_path):
    path = tmp_path / "empty.toml"
    path.write_text("[scenario]\n")
    assert "[scenario.NAME]" in ask("import", path, "--as", "scenario", code=2)
    path.write_text("x = " + "[" * 100_000)
    assert "nested too deeply" in ask("import", path, "--as", "scenario", code=2)
    assert "in its file" in ask("import", path, "--as", "scenario", "--name", "x", code=2)


def test_what_is_used_is_not_removed_and_all_users_are_told(ask):
    told = ask("remove", "coding", "AG8.001", code=2)
    assert "target 'veterans'" in told
    assert "map 'AG120.001 → AG8.001'" in told
    assert "map 'AG8.001 → AG3.001'" in told
    assert "kind must be one of" in ask("remove", "colour", "AG", code=2)
    assert "'AG8.001'" in ask("remove", "coding", "AG8.01", code=2)
    assert "organisation" in ask("remove", "form", "Voter registration")
    assert "Voter" not in ask("list", "forms")


def test_codings_are_tied_by_hand(ask, tmp_path):
    path = tmp_path / "club-schema.json"
    path.write_text('{"properties": {"maritalStatus": {"enum": ["in a couple", "alone"]}}}')
    ask("import", path, "--accept", "0.4")
    new = coded(ask, "club")["maritalStatus"]
    proposal = tmp_path / "tie.toml"
    ask("tie", new, "MS5.001", "--propose", proposal)
    assert f"# How the categories of {new}" in proposal.read_text()
    codes = [c["code"] for c in ask("show", "MS5.001", "--json")["categories"]]
    proposal.write_text(f'relation = "coarser"\npairs = [["in a couple", "{codes[0]}"]]\n')
    assert "total" in ask("tie", new, "MS5.001", proposal, code=2)
    pairs = [["in a couple" if i == 0 else "alone", code] for i, code in enumerate(codes)]
    proposal.write_text(f'relation = "coarser"\npairs = {json.dumps(pairs)}\n')
    ask("tie", new, "MS5.001", proposal)
    assert "--replace" in ask("tie", new, "MS5.001", proposal, code=2)
    ask("tie", new, "MS5.001", proposal, "--replace")
    joined = ask("join", new, "MS5.001", "--json")
    assert (joined["coding"], joined["exact"]) == (new, True)
    proposal.write_text('relation = "same"\nextra = 1\n')
    told = ask("tie", new, "MS5.001", proposal, code=2)
    assert "relation must be one of" in told
    assert "'extra'" in told
    assert "PAIRS.toml" in ask("tie", new, "MS5.001", code=2)
    ask("remove", "map", f"MS5.001 -> {new}")


def test_a_minted_join_is_named_and_an_empty_one_refused(ask):
    assert ask("join", "AG5.001", "AG7.001", "--json")["stored"] is False
    assert "Minted AG3.101" in ask("join", "AG5.001", "AG7.001", "--mint")
    assert ask("join", "AG5.001", "AG7.001", "--json")["stored"] is True
    assert "already exists" in ask("join", "AG5.001", "AG7.001", "--mint", code=2)
    assert "one category" in ask("join", "AG7.001", "AG8.001", "--mint", code=2)


def test_dates_and_ages_join_on_a_day(ask):
    assert "--as-of" in ask("join", "AG40177.001", "AG8.001")
    found = ask("join", "AG40177.001", "AG8.001", "--as-of", "2024-07-01", "--json")
    assert found["coding"] == "AG8.001"
    assert "a day" in ask("join", "AG40177.001", "AG8.001", "--as-of", "July", code=2)


def test_an_exported_environment_is_read_but_not_written(ask, tmp_path, form):
    exported = tmp_path / "env.json"
    ask("export", "--out", exported)
    for verb, *words in [
        ("map", "--target", "veterans", "--sector", "finance"),
        ("join", "MS6.001", "MS3.001"),
        ("key", "journalist", "--target", "veterans"),
        ("list", "forms"),
        ("show", "AG"),
        ("enhance", "--target", "veterans", "--resources", "6", "--sector", "finance"),
        ("trend",),
        ("waiting",),
    ]:
        assert ask(verb, *words, place=str(exported)) == ask(verb, *words)
    before = exported.read_bytes()
    for verb, *words in [
        ("import", form),
        ("join", "MS6.001", "MS3.001", "--mint"),
        ("remove", "form", "Voter registration"),
        ("init",),
        ("history",),
    ]:
        told = ask(verb, *words, place=str(exported), code=2)
        assert "exported environment" in told
    assert exported.read_bytes() == before


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    from keyhole.data.examples import veterans_sample

    path = tmp_path_factory.mktemp("survey") / "veterans.csv"
    veterans_sample(400).save(path)
    return path


def test_detail_is_measured_on_the_file(ask, survey):
    words = ["--target", "veterans", "--form", "Voter registration"]
    flat = {v["column"]: v["entropy"] for v in ask("map", *words, "--json")["key"]}
    real = ask("map", *words, "--file", survey, "--json")
    weighed = {v["column"]: v["entropy"] for v in real["key"]}
    assert weighed.keys() == flat.keys()
    assert weighed["sex"] < flat["sex"]
    assert "records of 'veterans.csv'" in ask("map", *words, "--file", survey)


def test_a_file_of_something_else_weighs_nothing(ask, tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    words = ["--target", "veterans", "--form", "Voter registration", "--file", path]
    assert "no column of the target" in ask("map", *words, code=2)


def test_only_the_key_is_written(ask, survey, tmp_path):
    import polars as pl

    words = ["key", "journalist", "--target", "veterans", "--file", survey, "--out"]
    ask(*words, tmp_path / "key.csv")
    key = [v["column"] for v in ask(*words, tmp_path / "k2.csv", "--json")["key"]]
    assert pl.read_csv(tmp_path / "key.csv").columns == key
    ask(*words, tmp_path / "kept.csv", "--keep", "income")
    assert pl.read_csv(tmp_path / "kept.csv").columns == [
        "income",
        *(k for k in key if k != "income"),
    ]
    assert "nothing" in ask(*words, tmp_path / "no.csv", "--keep", "nothing", code=2)
    assert not (tmp_path / "no.csv").exists()


@pytest.mark.parametrize(
    "form", ["Voter registration", "Hospital admission", "Online shop account"]
)
def test_a_map_and_a_join_name_a_coding_alike(ask, form):
    found = ask("map", "--target", "veterans", "--form", form, "--json")["key"]
    day = ask("show", "veterans", "--json")["as_of"]
    for variable in found:
        (coding,) = variable["codings"]
        join = ask("join", variable["target_coding"], coding, "--as-of", day, "--json")
        assert (variable["coding"], variable["stored"]) == (join["coding"], join["stored"])


def test_the_share_of_forms_is_drawn(ask, tmp_path):
    ask("list", "--plot", tmp_path / "heat.svg")
    assert "<svg" in (tmp_path / "heat.svg").read_text()
    assert "exists" in ask("list", "--plot", tmp_path / "heat.svg", code=2)


def test_stages_are_counted_as_stages(ask):
    text = ask("map", "--target", "veterans", "--sector", "finance", "--resources", "6")
    assert "of 2 stages" in text


def test_resources_have_bounds(ask):
    for number in ("-1", "101"):
        told = ask("map", "--target", "veterans", "--resources", number, code=2)
        assert "from 0 to 100" in told


def test_a_file_of_labels_is_no_form(ask, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("name,label,code,category\nSEX,Sex,1,Male\n,,2,Female\n")
    assert "--labels" in ask("import", path, code=2)


def test_what_a_source_is_can_be_said(ask, form):
    words = [
        "--as",
        "source",
        "--ranks",
        "1,2,1",
        "--type",
        "informal,observed",
        "--coverage",
        "all",
    ]
    ask("import", form, *words)
    found = ask("show", "work", "--json")
    assert (found["formality"], found["origin"], found["coverage"]) == (
        "informal",
        "observed",
        "all",
    )
    assert "--type" in ask("import", form, "--as", "source", "--type", "odd", code=2)
    assert "--as source" in ask("import", form, "--type", "formal", code=2)


def test_control_characters_and_long_names_are_not_printed(ask, tmp_path):
    path = tmp_path / "evil.csv"
    name = "Evil\x1b[2J" + "x" * 300
    path.write_text(
        f"form,field,label,code,category\n{name},a\x1b]0;t,Sex,1,Male\x07\n,,,2,Female\n"
    )
    printed = ask("import", path) + ask("list", "forms") + ask("history", "--name", name)
    printed += ask("show", name) + ask("import", path, code=2)
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert "x" * 61 not in printed
    assert "…" in printed


def test_the_questions_are_in_the_store(ask, form, store):
    ask("import", form)
    forms = open_store(store).read().environment.forms
    asked = [field.question for kept in forms for field in kept.fields if field.question]
    assert sum(len(question.categories) for question in asked) == 3
