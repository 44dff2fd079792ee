"""The page of the environment: chosen, made, looked at, and forms added with what is proposed."""

from __future__ import annotations

import dataclasses
import html
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workbench import REVIEW, Workbench, start
from tests.workbench_environment import (
    FORMS,
    NEW_FORM,
    WITH_ENVIRONMENT,
    small_environment,
    start_with_environment,
)
from typer.testing import CliRunner

from keyhole.cli.main import app
from keyhole.environment import open_store, write_environment
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.model import Construct, Environment, Form
from keyhole.reviews.checks import read_review
from keyhole.workbench.environments import environment_place as place_of
from keyhole.workbench.environments import environments_below
from keyhole.workbench.pages.environment import _cell, prevalence_map


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return start_with_environment(tmp_path)


@pytest.fixture
def stored(tmp_path: Path) -> Workbench:
    """Give a workbench whose environment is in a store."""
    store = open_store(tmp_path / "environment.db", create=True)
    store.write(store.read(), small_environment(), who="ann", note="begun")
    review = WITH_ENVIRONMENT.replace("environment.json", "environment.db")
    return start(tmp_path, review + "scenarios = []\n")


def values(bench: Workbench) -> dict[str, Any]:
    read_review(bench.folder / "review.toml")
    return tomllib.loads((bench.folder / "review.toml").read_text())


def kept(bench: Workbench) -> Environment:
    return open_store(bench.folder / "environment.db").read().environment


def propose(bench: Workbench, fields: dict[str, Any] | None = None, **more: Any) -> str:
    """Send a form, and return the address at which it is decided on."""
    answer = bench.post("environment/send", fields or {"pasted": NEW_FORM}, **more)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"]).split("/environment?")[1]


def shown_choices(page: str) -> dict[str, str]:
    """Return the choices as the page shows them, and the environment's number."""
    found = {}
    for name, options in re.findall(r'<select name="(choice-\d+)"[^>]*>(.*?)</select>', page, re.S):
        chosen = re.search(r'value="([^"]*)" selected', options)
        assert chosen is not None
        found[name] = chosen[1]
    number = re.search(r'name="number" value="(\d+)"', page)
    assert number is not None
    return {**found, "number": number[1]}


def test_a_review_without_one_can_choose_what_is_there(tmp_path: Path) -> None:
    write_environment(small_environment(), tmp_path / "known.json")
    (tmp_path / "other.json").write_text('{"a": 1}')
    bench = start(tmp_path)
    assert "known.json" in bench.get("environment").text
    assert "other.json" not in bench.get("environment").text
    assert bench.post("environment/choose", {"environment": "known.json"}).status_code == 303
    assert values(bench)["environment"] == {"store": "known.json"}


@pytest.mark.parametrize("name", ["", "other.json", "../outside.json", "/etc/passwd", "people.csv"])
def test_nothing_else_can_be_chosen(tmp_path: Path, name: str) -> None:
    place = tmp_path / "start"
    place.mkdir()
    write_environment(small_environment(), tmp_path / "outside.json")
    (place / "other.json").write_text("{}")
    bench = start(place)
    assert bench.post("environment/choose", {"environment": name}).status_code == 422
    assert (place / "review.toml").read_text() == REVIEW


def test_an_environment_of_other_files_is_taken_without_its_scenarios(tmp_path: Path) -> None:
    bench = start(tmp_path)
    assert bench.post("environment/make", {"begin": "example"}).status_code == 303
    assert values(bench)["environment"] == {"store": "environment.db", "scenarios": []}
    assert len(kept(bench).forms) == 15


def test_names_that_another_environment_lacks_are_left_out(tmp_path: Path) -> None:
    review = WITH_ENVIRONMENT + 'scenarios = ["shop", "friend"]\ntarget = "people"\n'
    bench = start_with_environment(tmp_path, review)
    fewer = dataclasses.replace(small_environment(), scenarios=small_environment().scenarios[:1])
    write_environment(fewer, tmp_path / "fewer.json")
    assert bench.post("environment/choose", {"environment": "fewer.json"}).status_code == 303
    assert values(bench)["environment"] == {
        "store": "fewer.json", "scenarios": ["shop"], "target": "people"
    }  # fmt: skip


def test_of_a_json_file_a_store_is_made(bench: Workbench) -> None:
    assert "read only" in bench.get("environment").text
    assert "Add a form" not in bench.get("environment").text
    assert bench.post("environment/send", {"pasted": NEW_FORM}).status_code == 422
    assert bench.post("environment/make", {"begin": "json"}).status_code == 303
    assert values(bench)["environment"]["store"] == "environment.db"
    assert {one.name for one in kept(bench).forms} == {"Shop card", "Club"}
    assert "Add a form" in bench.get("environment").text


def test_a_store_is_never_written_over(tmp_path: Path) -> None:
    store = open_store(tmp_path / "environment.db", create=True)
    store.write(store.read(), Environment((Construct("SX", "sex"),)), who="ann")
    bench = start_with_environment(tmp_path)
    before = (tmp_path / "review.toml").read_text()
    for begin in ("json", "example", "empty", "nothing"):
        assert bench.post("environment/make", {"begin": begin}).status_code == 422
    assert kept(bench).constructs == (Construct("SX", "sex"),)
    assert (tmp_path / "review.toml").read_text() == before


def test_what_is_held_is_listed_and_can_be_narrowed(stored: Workbench) -> None:
    page = stored.get("environment").text
    assert "Shop card" in page
    assert "Club" in page
    assert "begun" in page
    found = stored.get("environment?find=COMMERCE").text
    held = found[found.index('id="held"') : found.index('id="history"')]
    assert "Shop card" in held
    assert "Club" not in held
    assert "Fields of Club" in stored.get("environment?show=forms:Club").text
    assert "Fields of" not in stored.get("environment?show=constructs:Club").text


def test_a_construct_is_drawn_without_its_categories(stored: Workbench) -> None:
    letters = next(c.construct for c in kept(stored).codings if c.name.startswith("S"))
    page = stored.get(f"environment?construct={letters}").text
    drawing = page[page.index("<svg xmlns") : page.index("</svg>", page.index("<svg xmlns"))]
    assert "class='coding'" in drawing
    assert "<title>" not in drawing
    assert "style=" not in drawing
    assert (
        "<title>"
        in stored.get(f"environment?construct={letters}&values=shown")
        .text.split("<svg xmlns")[1]
        .split("</svg>")[0]
    )
    assert "It has no codings" in stored.get("environment?construct=%3Cb%3E").text


def test_a_form_is_proposed_decided_and_kept(stored: Workbench) -> None:
    where = propose(stored, {"pasted": NEW_FORM, "sector": "culture", "organisation": "Library"})
    before = kept(stored)
    page = stored.get(f"environment?{where}").text
    assert kept(stored) == before
    choices = shown_choices(page)
    assert choices["choice-0"] == "0"
    assert "same as" in page
    choices |= {"choice-1": "0", "choice-2": "leave"}
    assert stored.post(f"environment/confirm?{where}", choices).status_code == 303
    form = next(one for one in kept(stored).forms if one.name == "Library card")
    codings = {field.name: field.coding for field in form.fields}
    shop = next(one for one in kept(stored).forms if one.name == "Shop card")
    assert codings["sex"] == shop.fields[0].coding
    assert codings["branch"] is not None
    assert codings["shoe"] is None
    assert (form.sector, form.organisation) == ("culture", "Library")
    page = stored.get("environment").text
    assert "decided in the workbench" in page
    assert "added form Library card" in page
    assert stored.post(f"environment/confirm?{where}", choices).status_code == 422


def test_a_field_is_kept_apart(stored: Workbench) -> None:
    where = propose(stored)
    choices = shown_choices(stored.get(f"environment?{where}").text) | {"choice-2": "identifier"}
    assert stored.post(f"environment/confirm?{where}", choices).status_code == 303
    form = next(one for one in kept(stored).forms if one.name == "Library card")
    assert form.fields[2].identifier == "identifier"


def test_a_choice_that_was_not_offered_is_refused(stored: Workbench) -> None:
    where = propose(stored)
    choices = shown_choices(stored.get(f"environment?{where}").text)
    before = kept(stored)
    for choice in ("99", "-1", "<b>"):
        answer = stored.post(f"environment/confirm?{where}", {**choices, "choice-0": choice})
        assert answer.status_code == 422
        assert "choose one of what is proposed" in answer.text
        assert "Library card" in answer.text
    assert kept(stored) == before


def test_a_change_by_others_is_a_conflict_and_proposals_are_made_anew(stored: Workbench) -> None:
    where = propose(stored)
    choices = shown_choices(stored.get(f"environment?{where}").text)
    store = open_store(stored.folder / "environment.db")
    snapshot = store.read()
    other = dataclasses.replace(
        snapshot.environment, forms=(*snapshot.environment.forms, Form("Theirs"))
    )
    store.write(snapshot, other, who="bob")
    answer = stored.post(f"environment/confirm?{where}", choices)
    assert answer.status_code == 409
    assert "made again" in answer.text
    assert "Library card" not in {one.name for one in kept(stored).forms}
    again = shown_choices(answer.text)
    assert again["number"] != choices["number"]
    assert stored.post(f"environment/confirm?{where}", again).status_code == 303
    assert {"Theirs", "Library card"} <= {one.name for one in kept(stored).forms}


def test_a_review_changed_elsewhere_keeps_the_form_waiting(stored: Workbench) -> None:
    where = propose(stored)
    choices = shown_choices(stored.get(f"environment?{where}").text) | {"version": "of before"}
    assert stored.post(f"environment/confirm?{where}", choices).status_code == 409
    assert "Library card" not in {one.name for one in kept(stored).forms}


def test_the_file_itself_becomes_a_target_of_the_review(tmp_path: Path) -> None:
    bench = start(tmp_path)
    bench.post("environment/make", {"begin": "empty"})
    where = propose(bench, {"what": "target"})
    choices = shown_choices(bench.get(f"environment?{where}").text)
    assert bench.post(f"environment/confirm?{where}", choices).status_code == 303
    assert [one.name for one in kept(bench).targets] == ["people"]
    assert values(bench)["environment"]["target"] == "people"
    again = bench.post("environment/send", {"what": "target"})
    assert again.status_code == 422
    assert "already" in again.text


def test_how_a_form_was_found_is_kept(stored: Workbench) -> None:
    said = {
        "method": "social network study", "statement": "not passed on", "time_frame": "2024",
        "search_parameters": "open profiles", "social_group": "veterans",
    }  # fmt: skip
    for what, name in (("form", "Library card"), ("source", "Profiles")):
        where = propose(stored, {"pasted": NEW_FORM, "what": what, "name": name, **said})
        choices = shown_choices(stored.get(f"environment?{where}").text)
        assert stored.post(f"environment/confirm?{where}", choices).status_code == 303
        held = kept(stored)
        found = next(one for one in (*held.forms, *held.sources) if one.name == name)
        assert {attribute: getattr(found, attribute) for attribute in said} == said
    wrong = {"pasted": NEW_FORM, "name": "Third", "method": "guessing"}
    answer = stored.post("environment/send", wrong)
    assert answer.status_code == 422
    assert "method" in answer.text


def test_a_public_source_has_its_ranks(stored: Workbench) -> None:
    fields = {"pasted": NEW_FORM, "what": "source", "mode": "2", "scope": "1", "cost": "3",
              "origin": "observed"}  # fmt: skip
    where = propose(stored, fields)
    choices = shown_choices(stored.get(f"environment?{where}").text)
    assert stored.post(f"environment/confirm?{where}", choices).status_code == 303
    (source,) = kept(stored).sources
    assert (source.mode, source.scope, source.cost, source.origin) == (2, 1, 3, "observed")


def test_several_forms_of_a_file_are_decided_one_by_one(stored: Workbench) -> None:
    more = FORMS + "Gym,,,,sex,Sex,f,f\n,,,,,,m,m\nBank,,,,sex,Sex,f,f\n,,,,,,m,m\n"
    sent = {"upload": ("../forms <b>.csv", more.encode(), "text/csv")}
    where = propose(stored, files=sent)
    for name in ("Gym", "Bank"):
        page = stored.get(f"environment?{where}").text
        assert f"{name}: where its fields" in page
        assert "<b>.csv" not in page
        answer = stored.post(f"environment/confirm?{where}", shown_choices(page))
        assert answer.status_code == 303
    assert {"Gym", "Bank"} <= {one.name for one in kept(stored).forms}
    assert not list((stored.folder / ".keyhole" / "forms" / "1").iterdir())


@pytest.mark.parametrize(
    "fields",
    [{}, {"pasted": "nothing"}, {"pasted": "form,field\n"}, {"pasted": FORMS},
     {"pasted": NEW_FORM, "collected": "yesterday"}],
)  # fmt: skip
def test_what_is_no_form_is_refused_and_forgotten(
    stored: Workbench, fields: dict[str, str]
) -> None:
    before = kept(stored)
    assert stored.post("environment/send", fields).status_code == 422
    assert kept(stored) == before
    forms = stored.folder / ".keyhole" / "forms" / "1"
    assert not forms.exists() or not list(forms.iterdir())


def test_a_form_waits_until_it_is_discarded(stored: Workbench) -> None:
    where = propose(stored)
    assert "Not decided yet" in stored.get("environment").text
    assert stored.post(f"environment/discard?{where}").status_code == 303
    assert "Not decided yet" not in stored.get("environment").text
    assert "Library card" not in {one.name for one in kept(stored).forms}
    for name in ("../../x", "0" * 16, "", "\0"):
        answer = stored.client.get(stored.address("environment"), params={"form": name})
        assert answer.status_code == 200


def test_hostile_names_are_escaped(stored: Workbench) -> None:
    evil = "<script>alert(1)</script>"
    text = f'form,field,label,code,category\n"{evil}","{evil}","{evil}",1,"{evil}"\n,,,2,"=1+1"\n'
    where = propose(stored, {"pasted": text, "sector": evil})
    page = stored.get(f"environment?{where}").text
    assert "&lt;script&gt;" in page
    choices = shown_choices(page) | {"choice-0": "0"}
    assert stored.post(f"environment/confirm?{where}", choices).status_code == 303
    letters = {one.letters for one in kept(stored).constructs}
    pages = [
        page,
        stored.get("environment").text,
        stored.get(f"environment?show=forms:{evil}").text,
    ]
    pages += [stored.get(f"environment?construct={one}&values=shown").text for one in letters]
    for one in pages:
        assert "<script>alert" not in one


def test_nothing_is_written_above_the_start_folder(tmp_path: Path) -> None:
    place = tmp_path / "start"
    place.mkdir()
    store = open_store(tmp_path / "environment.db", create=True)
    store.write(store.read(), small_environment(), who="ann")
    review = WITH_ENVIRONMENT.replace("environment.json", "../environment.db")
    bench = start(place, review + "scenarios = []\n")
    assert bench.post("environment/send", {"pasted": NEW_FORM}).status_code == 422
    assert store.read().environment == open_store(tmp_path / "environment.db").read().environment


def test_a_password_is_never_shown(bench: Workbench) -> None:
    found = place_of(bench.project, "postgresql://ann:secret@host/base")
    assert "secret" not in found.name
    assert found.writable


def lines(page: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r'data-copy="([^"]*)"', page)]


def run_lines(shown: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each command and each Python line as it is shown."""
    monkeypatch.chdir(folder)
    assert shown
    for line in shown:
        if line.startswith("keyhole "):
            answer = CliRunner().invoke(app, shlex.split(line)[1:])
            assert answer.exit_code == 0, (line, answer.output)
        else:
            exec(f"import keyhole; {line}", {})
        (folder / "decisions.toml").unlink(missing_ok=True)


def test_the_lines_shown_work(stored: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = kept(stored).constructs[0].letters
    (stored.folder / "library.csv").write_text(NEW_FORM)
    sent = {"upload": ("library.csv", NEW_FORM.encode(), "text/csv")}
    where = propose(stored, files=sent)
    shown = lines(stored.get(f"environment?{where}&construct={letters}").text)
    assert len(shown) == 6
    run_lines(shown[::2], stored.folder, monkeypatch)
    (stored.folder / "codings.svg").unlink()
    run_lines(shown[1::2], stored.folder, monkeypatch)
    assert (stored.folder / "codings.svg").exists()


def test_the_lines_that_make_a_store_work(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = lines(bench.get("environment").text)
    run_lines(shown[:1], bench.folder, monkeypatch)
    (bench.folder / "environment.db").unlink()
    run_lines(shown[1:], bench.folder, monkeypatch)
    assert kept(bench).forms == tuple(sorted(small_environment().forms, key=lambda f: f.name))


def test_environments_are_found_by_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for place in (".", "a", "a/b", "a/b/c", ".hidden"):
        write_environment(Environment(), tmp_path / place / "one.json")
    open_store(tmp_path / "two.db", create=True)
    (tmp_path / "not.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    assert environments_below(tmp_path) == ["a/b/one.json", "a/one.json", "one.json", "two.db"]


@given(st.integers(1, 40), st.data())
def test_shades_rise_with_the_share(of: int, data: st.DataObject) -> None:
    few, many = sorted(data.draw(st.tuples(st.integers(0, of), st.integers(0, of))))
    assert 0 <= _cell(few, of)["shade"] <= _cell(many, of)["shade"] <= 10
    assert (_cell(few, of)["shade"] == 0) == (few == 0)


def test_prevalence_counts_forms_by_sector() -> None:
    found = prevalence_map(CodingGraph.of(small_environment()))
    assert found is not None
    assert found["sectors"] == ["commerce", "community"]
    first = found["rows"][0]
    assert first["name"] == "sex"
    assert [cell["text"] for cell in first["cells"]] == ["1 of 1", "1 of 1"]


def test_what_changed_is_read_again(bench: Workbench) -> None:
    """A page remembers the environment it read; a file that was written anew is read anew."""
    assert "Harbour" not in bench.get("environment").text
    more = dataclasses.replace(
        small_environment(), forms=(*small_environment().forms, Form("Harbour"))
    )
    write_environment(more, bench.folder / "environment.json", force=True)
    assert "Harbour" in bench.get("environment").text
    key = bench.project.look().files["scenario:shop"]
    assert bench.project.look().files["scenario:shop"].data is key.data


PLAIN = "field,label,code,category\nsex,Sex,f,f\n,,m,m\n"


def test_a_table_without_a_column_of_forms_is_one_form_with_the_name_given(
    stored: Workbench,
) -> None:
    refused = stored.post("environment/send", {"pasted": PLAIN})
    assert refused.status_code == 422
    assert "Give the form a name" in refused.text
    address = propose(stored, {"pasted": PLAIN, "name": "Gym card"})
    page = stored.get(f"environment?{address}").text
    assert "Gym card: where its fields belong" in page
    stored.post(f"environment/confirm?{address}", shown_choices(page))
    assert "Gym card" in [form.name for form in kept(stored).forms]
    sent = {"files": {"upload": ("Bus pass.csv", PLAIN.encode())}}
    assert "Bus pass" in stored.get(f"environment?{propose(stored, {'what': 'form'}, **sent)}").text


ODD = """\
form,field,label,code,category
Odd form,q7,Seven,f,f
,,,m,m
,q8,Eight,f,woman
,,,m,man
,q9,Nine,a,alpha
,,,b,beta
"""


def test_a_field_is_put_by_hand_where_it_belongs(stored: Workbench) -> None:
    address = propose(stored, {"pasted": ODD})
    page = stored.get(f"environment?{address}").text
    assert '<option value="SX">sex</option>' in page.lower().replace('"sx"', '"SX"')
    typed = {**shown_choices(page), "place-0": "sex", "place-1": "SX2.001", "place-2": "SX"}
    answer = stored.post(f"environment/confirm?{address}", typed)
    assert answer.status_code == 303, answer.text
    form = next(one for one in kept(stored).forms if one.name == "Odd form")
    codings = {one.name: one.construct for one in kept(stored).codings}
    assert [field.coding for field in form.fields][:2] == ["SX2.001", "SX2.001"]
    assert form.fields[2].coding not in (None, "SX2.001")
    assert codings[str(form.fields[2].coding)] == "SX"


@pytest.mark.parametrize(
    ("typed", "said"),
    [("sax", "is neither a construct nor a coding"), ("AG2.001", "not those of AG2.001")],
)
def test_what_is_typed_and_cannot_be_is_refused(stored: Workbench, typed: str, said: str) -> None:
    address = propose(stored, {"pasted": ODD})
    page = stored.get(f"environment?{address}").text
    answer = stored.post(
        f"environment/confirm?{address}", {**shown_choices(page), "place-0": typed}
    )
    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
    assert "Odd form" not in [form.name for form in kept(stored).forms]


def test_pending_fields_are_decided_one_line_each(stored: Workbench) -> None:
    address = propose(stored, {"pasted": ODD})
    later = {f"choice-{i}": "" for i in range(3)}
    number = shown_choices(stored.get(f"environment?{address}").text)["number"]
    stored.post(f"environment/confirm?{address}", {**later, "number": number})
    page = stored.get("environment").text
    lines = re.findall(r'name="(form|field)-(\d+)" value="([^"]*)"', page)
    assert [name for kind, _, name in lines if kind == "form"].count("Odd form") >= 1
    sent = {f"{kind}-{at}": name for kind, at, name in lines} | shown_choices(page)
    assert {value for name, value in sent.items() if name.startswith("choice")} == {""}
    answer = stored.post("environment/decide", sent)
    assert answer.status_code == 422
    assert "nothing was decided" in answer.text
    before = kept(stored).forms
    first = next(at for kind, at, name in lines if (kind, name) == ("field", "q7"))
    assert stored.post("environment/decide", {**sent, f"choice-{first}": "7"}).status_code == 422
    assert kept(stored).forms == before
    typed = {**sent, f"place-{first}": "sex"}
    assert stored.post("environment/decide", typed).status_code == 303
    form = next(one for one in kept(stored).forms if one.name == "Odd form")
    assert (form.fields[0].coding, form.fields[0].decided) == ("SX2.001", True)
    assert "target" not in values(stored)["environment"]
    assert stored.post("environment/decide", typed).status_code == 409
    assert f'name="field-{first}" value="q7"' not in stored.get("environment").text


BUTTON = re.compile(
    r'<button(?:(?!aria-label)[^>])*(?:aria-label="([^"]*)")?[^>]*>(.*?)</button>', re.S
)


def test_no_two_buttons_of_a_page_have_the_same_name(stored: Workbench) -> None:
    address = propose(stored)
    pages = ("data", "environment", f"environment?{address}", "scenario", "exposure", "select",
             "protect", "synthesise", "study")  # fmt: skip
    for page in pages:
        found = BUTTON.findall(stored.get(page).text)
        names = [re.sub(r"<[^>]*>", "", label or words).strip() for label, words in found]
        assert len(names) == len(set(names)) > 3, (page, names)
