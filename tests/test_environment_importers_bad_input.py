"""Files that are not what they should be: one clear message, and nothing else."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keyhole.environment.importers import reading
from keyhole.environment.importers.reading import KINDS, read_forms
from keyhole.errors import FileError, InputError, OptionError

SECRET = "Zaphod4711"
BOMB = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><codeBook>&b;</codeBook>'
OUTSIDE = '<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/hostname">]><codeBook>&a;</codeBook>'
PARAMETER = '<!DOCTYPE l [<!ENTITY % a SYSTEM "http://localhost/a">%a;]><codeBook/>'


def refused(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileError) as caught:
        read_forms(path)
    assert name in str(caught.value)
    assert caught.value.exit_code == 2
    assert caught.value.__cause__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.xml", BOMB, "entities"),
        ("a.xml", OUTSIDE, "entities"),
        ("a.xml", PARAMETER, "entities"),
        ("a.xml", "<codeBook>" + "<a>" * 500_000, "deep"),
        ("a.xml", "<codeBook><dataDscr>", "well-formed"),
        ("a.xml", "<codeBook/>", "variables"),
        ("a.xml", "<html/>", "codeBook"),
        ("a.xml", '<?xml version="1.0" encoding="klingon"?><codeBook/>', "well-formed"),
        ("a.xml", " \n", "empty"),
        ("a.json", "", "empty"),
        ("a.json", "not json", "line 1"),
        ("a.json", "[1]", "object"),
        ("a.json", "{}", "fields"),
        ("a.json", '{"properties": {"a": ' * 50_000, "deep"),
        ("a.json", '{"properties": {"a": {"minimum": ' + "9" * 5000 + "}}}", "number"),
        (
            "a.json",
            '{"properties": {"a": {"$ref": "#/allOf/%s"}}, "allOf": [{}]}' % ("9" * 5000),
            "leads to nothing",
        ),
        ("a.json", '{"properties": "\0"}', "NUL"),
        ("a.json", '{"properties": {"é": {}}}'.encode("latin-1"), "encoding"),
        ("a.json", '{"properties": {"a": {"$ref": "https://x.org"}}}', "not fetched"),
        ("a.csv", "", "empty"),
        ("a.csv", "form,field\n", "rows"),
        ("a.csv", "a,b\n1,2\n", "columns"),
        ("a.csv", 'form,field\n"a,b\n', "quotes"),
        ("a.csv", "form,field\na,b,c\n", "more cells"),
        ("a.csv", "form,form,field\na,a,b\n", "same name"),
        ("a.csv", b"form,field\nM\xfcller,a\n", "encoding"),
        ("a.xlsx", b"PK\x03\x04", "Excel"),
        ("a.xlsx", b"PK\x05\x06" + bytes(18), "Excel"),
        ("a.sav", b"$FL2" + bytes(100), "damaged"),
        ("a.dta", b"nothing", "damaged"),
        ("a.pdf", b"%PDF", ".json"),
    ],
)
def test_a_file_that_is_none_is_refused(
    tmp_path: Path, name: str, content: str | bytes, told: str
) -> None:
    assert told in refused(tmp_path, name, content)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "content",
    ["[1]", "{}", "null", "question,answers\n", "form,field\n", "class,type/scale,name,text\n"],
)
def test_what_holds_no_form_is_refused_as_each_kind(
    tmp_path: Path, kind: str, content: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=r"a\.csv"):
        read_forms(path, kind)


def test_words_of_a_schema_that_make_no_sense_are_noted_with_their_field(tmp_path: Path) -> None:
    fields = {
        "age": {"type": "integer", "minimum": SECRET, "maximum": 120},
        "who": {"type": "object", "properties": None},
        "sex": {"enum": "F"},
        "job": None,
        "pay": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "multipleOf": None},
        "fit": True,
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"properties": {"all": {"properties": fields}}}))
    (form,) = read_forms(path)
    assert [one.name for one in form.fields] == ["all.age", "all.sex", "all.job", "all.pay",
                                                 "all.fit"]  # fmt: skip
    assert form.notes[-5:] == (
        "'all.age' has 'minimum', which must be a number. Got text instead: it is skipped.",
        "'all.who' has 'properties', which must be an object. Got null instead: it is skipped.",
        "'all.sex' has 'enum', which must be a list. Got text instead: it is skipped.",
        "'all.job' must be a schema. Got null instead: it is taken as text.",
        "'all.pay' has 'multipleOf', which must be a number. Got null instead: it is skipped.",
    )
    path.write_text('{"properties": null}')
    with pytest.raises(FileError, match="must have fields under 'properties'"):
        read_forms(path)


def test_a_deep_schema_is_refused_and_no_recursion_ends_the_program(tmp_path: Path) -> None:
    node: dict[str, object] = {"type": "string"}
    for _ in range(400):
        node = {"properties": {"a": node}}
    assert "deep" in refused(tmp_path, "a.json", json.dumps(node))


def test_a_huge_file_and_a_packed_bomb_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 1 << 20)
    assert "megabyte" in refused(tmp_path, "a.json", "{}" + " " * (1 << 20))
    with zipfile.ZipFile(tmp_path / "b.xlsx", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", b" " * (3 << 20))
    assert "unpacks" in refused(tmp_path, "b.xlsx", (tmp_path / "b.xlsx").read_bytes())


def test_paths_that_lead_to_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path / "folder.json", tmp_path / "no\0.json"):
        if path.name == "folder.json":
            path.mkdir()
        with pytest.raises(FileError):
            read_forms(path)


def test_options_that_make_no_sense_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(OptionError) as caught:
        read_forms(tmp_path / "a.json", method="guessing", collected="May", colour="red")
    assert len(caught.value.problems) == 3
    with pytest.raises(OptionError, match="kind"):
        read_forms(tmp_path / "a.json", kind="papyrus")


def test_encodings_can_be_said_or_are_marked(tmp_path: Path) -> None:
    text = '{"properties": {"größe": {"type": "string"}}}'
    path = tmp_path / "a.json"
    for content, encoding in (
        (text.encode("cp1252"), "cp1252"),
        (text.encode("utf-16"), None),
        (text.encode("utf-8-sig"), None),
    ):
        path.write_bytes(content)
        (form,) = read_forms(path, encoding=encoding)
        assert form.fields[0].name == "größe"
    path.write_bytes(text.encode("cp1252"))
    with pytest.raises(OptionError, match="klingon"):
        read_forms(path, encoding="klingon")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(
    st.sampled_from([".json", ".xml", ".csv", ".xlsx"]),
    st.binary(max_size=200) | st.text().map(str.encode),
)
def test_no_file_brings_anything_down(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"any{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_forms(path)


def test_messages_do_not_show_cells_of_a_file_of_data(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(f"name,age\n{SECRET},31\n")
    with pytest.raises(FileError) as caught:
        read_forms(path)
    assert SECRET not in str(caught.value)
