"""Forms in tables: REDCap dictionaries, XLSForm, our own layout, label files."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace
from pathlib import Path

import pytest
import xlsxwriter  # type: ignore[import-untyped]
from tests.workbooks_97 import workbook_97

from keyhole.data import load
from keyhole.environment.codings.categories import edges_of
from keyhole.environment.importers.fields import YES_NO
from keyhole.environment.importers.microdata import read_labels
from keyhole.environment.importers.reading import read_forms
from keyhole.environment.importers.table import write_forms
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    Category,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
)
from keyhole.errors import FileError

REDCAP = """\
"Variable / Field Name","Form Name","Section Header","Field Type","Field Label",\
"Choices, Calculations, OR Slider Labels","Field Note",\
"Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max",\
Identifier?,"Branching Logic (Show field only if...)"
record_id,intake,,text,Study ID,,,,,,,
dob,intake,,text,Date of birth,,,date_ymd,1900-01-01,2020-12-31,y,
sex,intake,,radio,<b>Sex</b>,"1, Female | 2, Male | 9, Prefer not to say",,,,,,
race,intake,,checkbox,Race,"1, White | 2, Black, or African",,,,,,[sex] = '1'
age,intake,,text,Age,,,integer,0,110,,
ageband,intake,,dropdown,Age,"a, 18-64 | b, 65 and over",,,,,,
veteran,visit,,yesno,Are you a veteran?,,,,,,,
alias,visit,,text,Known as,,,,,,y,
mail,visit,,text,Contact,,,email,,,,
hint,visit,,descriptive,Read this,,,,,,,
"""


def written(folder: Path, content: str, name: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def workbook(path: Path, sheets: dict[str, list[list[object]]]) -> Path:
    with xlsxwriter.Workbook(str(path), {"strings_to_formulas": False}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for place, row in enumerate(rows):
                sheet.write_row(place, 0, row)
    return path


def by_name(form: CapturedForm) -> dict[str, CapturedField]:
    return {one.name: one for one in form.fields}


# --- REDCap ------------------------------------------------------------------------------------


def test_a_redcap_dictionary_is_one_form(tmp_path: Path) -> None:
    (form,) = read_forms(written(tmp_path, REDCAP, "study.csv"))
    found = by_name(form)
    assert form.form.name == "study"
    assert "hint" not in found
    assert found["sex"].label == "Sex"
    assert found["sex"].path == "intake/sex"
    assert [one.kind for one in found["sex"].categories] == ["value", "value", "not stated"]
    assert found["race.2"].label == "Race: Black, or African"
    assert [c.label for c in found["race.2"].categories][1] == "Not Black, or African"
    assert found["race.2"].universe == "[sex] = '1'"
    assert found["age"].intervals.stop == 111  # type: ignore[union-attr]
    assert found["ageband"].intervals.edges == (18, 65, math.inf)  # type: ignore[union-attr]
    assert found["veteran"].categories == YES_NO


def test_the_identifier_flag_keeps_text_apart_but_not_dates(tmp_path: Path) -> None:
    (form,) = read_forms(written(tmp_path, REDCAP, "study.csv"))
    found = by_name(form)
    assert found["dob"].identifier is None
    assert found["dob"].intervals.stop == datetime.date(2021, 1, 1).toordinal()  # type: ignore[union-attr]
    assert found["alias"].identifier == "record number"
    assert found["mail"].identifier == "email"
    assert found["record_id"].identifier == "record number"
    assert any("Flagged" in note for note in form.notes)


def test_the_interface_names_columns_its_own_way(tmp_path: Path) -> None:
    text = "field_name,form_name,field_type,field_label,select_choices_or_calculations\n"
    (form,) = read_forms(written(tmp_path, text + 'a,f,radio,A,"1, x|2, y"\n', "d.csv"))
    assert [one.label for one in form.fields[0].categories] == ["x", "y"]


def test_all_problems_of_a_dictionary_are_told(tmp_path: Path) -> None:
    text = "field_name,field_type,choices\na,radio,\n,text,\nb,hologram,\n"
    with pytest.raises(FileError) as caught:
        read_forms(written(tmp_path, text, "d.csv"))
    assert len(caught.value.problems) == 3
    assert all("row " in one for one in caught.value.problems)
    (form,) = read_forms(written(tmp_path, text + "c,text,\n", "d.csv"))
    assert [one.name for one in form.fields] == ["c"]
    assert "row 2: 'a' has no answers: it is left out." in form.notes


# --- XLSForm -----------------------------------------------------------------------------------

SURVEY: list[list[object]] = [
    ["type", "name", "label::English (en)", "label::Français (fr)", "constraint", "relevant"],
    ["start", "start", "", "", "", ""],
    ["begin group", "person", "", "", "", ""],
    ["select_one sexes", "sex", "Sex", "Sexe", "", ""],
    ["select_multiple langs or_other", "languages", "Languages", "Langues", "", "${age} > 5"],
    ["integer", "age", "Age", "Âge", ". >= 0 and . <= 110", ""],
    ["begin_repeat", "child", "", "", "", ""],
    ["date", "born", "Born", "Né", "", ""],
    ["end_repeat", "", "", "", "", ""],
    ["end group", "", "", "", "", ""],
    ["geopoint", "home", "Where", "Où", "", ""],
    ["text", "q1", "What is your first name?", "", "", ""],
    ["note", "n", "Thank you", "", "", ""],
]
CHOICES: list[list[object]] = [
    ["list_name", "name", "label::Français (fr)", "label::English (en)"],
    ["sexes", 1, "Femme", "Female"],
    ["sexes", 2, "Homme", "Male"],
    ["langs", "en", "Anglais", "English"],
]


def test_an_xlsform_with_groups_and_languages(tmp_path: Path) -> None:
    settings: list[list[object]] = [
        ["form_title", "form_id", "default_language"],
        ["Household", "hh1", "English (en)"],
    ]
    path = workbook(
        tmp_path / "f.xlsx", {"survey": SURVEY, "choices": CHOICES, "settings": settings}
    )
    (form,) = read_forms(path)
    found = by_name(form)
    assert (form.form.name, form.form.purpose) == ("hh1", "Household")
    assert list(found) == [
        "person.sex",
        "person.languages.en",
        "person.languages.other",
        "person.age",
        "person.child.born",
        "home",
        "q1",
    ]
    assert [(one.code, one.label) for one in found["person.sex"].categories] == [
        ("1", "Female"),
        ("2", "Male"),
    ]
    assert found["person.languages.en"].universe == "${age} > 5"
    assert found["person.age"].intervals.stop == 111  # type: ignore[union-attr]
    assert found["person.child.born"].intervals.unit == "day"  # type: ignore[union-attr]
    assert found["home"].identifier == "coordinates"
    assert found["q1"].identifier == "name"


def test_all_problems_of_an_xlsform_are_told(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        ["type", "name", "label"],
        ["select_one none", "a", "A"],
        ["hologram", "b", "B"],
        ["text", "", "C"],
        ["end group", "", ""],
        ["begin group", "g", ""],
    ]
    with pytest.raises(FileError) as caught:
        read_forms(workbook(tmp_path / "f.xlsx", {"survey": rows}))
    assert len(caught.value.problems) == 4
    rows.append(["text", "fine", "Fine"])
    (form,) = read_forms(workbook(tmp_path / "f.xlsx", {"survey": rows}))
    assert [one.name for one in form.fields] == ["g.fine"]
    assert sum("it is left out" in note for note in form.notes) == 4
    assert "Group 'g' is not closed." in form.notes


# --- our own layout ----------------------------------------------------------------------------

TABLE = """\
form,organisation,sector,purpose,method,collected,field,label,coding,code,category,kind,from,to,every
Loan,Bank,finance,credit,web searching,2024-05-31,sex,Sex,SX2.001,f,Female,,,,
,,,,,,,,,m,Male,,,,
,,,,,,,,,x,Not given here,not stated,,,
,,,,,,age,Age,,,,,0,120,5
,,,,,,born,Date of birth,,,,,1900-01-01,2030-01-01,month
,,,,,,income,Income,,,,,,10000,
,,,,,,,,,,,,20000,,
,,,,,,,,,,,,10000,20000,
,,,,,,,,,9,Refused,,,,
,,,,,,notes,Remarks,,,,text,,,
,,,,,,number,Customer number,,,account number,identifier,,,
,,,,,,phone,,,,,,,,
Card,Shop,,,,,gender,Gender,SX2.001,,,,,,
"""


def test_our_layout(tmp_path: Path) -> None:
    loan, card = read_forms(written(tmp_path, TABLE, "forms.csv"))
    found = by_name(loan)
    assert (loan.form.organisation, loan.form.sector) == ("Bank", "finance")
    assert (loan.form.method, loan.form.collected) == ("web searching", datetime.date(2024, 5, 31))
    assert [one.kind for one in found["sex"].categories] == ["value", "value", "not stated"]
    assert found["sex"].coding == "SX2.001"
    assert (found["age"].intervals.step, found["age"].intervals.stop) == (5, 120)  # type: ignore[union-attr]
    assert found["born"].intervals.unit == "month"  # type: ignore[union-attr]
    assert found["income"].intervals.edges == (-math.inf, 10000, 20000, math.inf)  # type: ignore[union-attr]
    assert [one.kind for one in found["income"].categories] == ["not stated"]
    assert found["notes"].identifier is None
    assert (found["number"].identifier, found["phone"].identifier) == ("account number", "phone")
    assert by_name(card)["gender"].categories == found["sex"].categories
    assert card.form.method == "form field analysis"


def test_our_layout_in_excel_is_the_same(tmp_path: Path) -> None:
    rows = [line.split(",") for line in TABLE.splitlines()]
    path = workbook(tmp_path / "forms.xlsx", {"forms": rows})  # type: ignore[dict-item]
    assert read_forms(path) == read_forms(written(tmp_path, TABLE, "forms.csv"))


def test_what_was_exported_is_read_again(tmp_path: Path) -> None:
    codings = (
        Coding(
            "SX3.001", "SX", (Category("=f", "=F()"), Category("m"), Category("x", "", "other"))
        ),
        Coding(
            "AG3.001",
            "SX",
            (Category("u", "U", "not stated"),),
            Intervals("number", (0, 18, math.inf)),
        ),
        Coding("BD1.001", "SX", (), Intervals("date", (), 700_000, 730_000, 5, "year")),
        Coding("IN1.001", "SX", (), Intervals("number", (), -10, 20.5, 0.5)),
    )
    names = [coding.name for coding in codings]
    asked = tuple(Field(f"f{n}", f"Field {n}", name) for n, name in enumerate(names))
    forms = (
        Form("A", "Org", "sector", "why", collected=datetime.date(2020, 2, 29), fields=asked),
        Form("C", fields=(Field("remarks"), Field("n", identifier="ssn"), *asked[:1])),
    )
    environment = Environment((Construct("SX", "sex"),), codings, forms=forms)
    path = write_forms(environment, tmp_path / "forms.csv")
    found = read_forms(path)
    assert [replace(one.form, fields=()) for one in found] == [
        replace(one, fields=()) for one in forms
    ]
    assert [one.coding for one in found[0].fields] == names
    assert [one.label for one in found[0].fields] == [one.label for one in asked]
    for one, coding in zip(found[0].fields[1:], codings[1:], strict=True):
        assert one.intervals is not None
        assert coding.intervals is not None
        assert one.intervals.scale == coding.intervals.scale
        assert edges_of(one.intervals).tolist() == edges_of(coding.intervals).tolist()
    assert found[0].fields[0].categories == (
        Category("=f", "=F()"),
        Category("m", "m"),
        Category("x", "x", "other"),
    )
    assert [one.name for one in found[1].fields] == ["remarks", "n", "f0"]
    assert [one.identifier for one in found[1].fields] == [None, "ssn", None]


def test_a_form_without_fields_is_one_row(tmp_path: Path) -> None:
    found = read_forms(written(tmp_path, "form,field,sector\nA,,health\nB,sex,\n", "forms.csv"))
    assert [(one.form.name, one.form.sector, len(one.fields)) for one in found] == [
        ("A", "health", 0),
        ("B", "", 1),
    ]


def test_all_problems_of_a_table_are_told(tmp_path: Path) -> None:
    text = (
        "form,field,method,collected,code,category,kind,from,to,every,colour\n"
        ",,,,,,,,,,\n"
        ",a,,,,,,,,,\n"
        "F,a,guessing,May,1,x,,,,,\n"
        ",,,,1,y,maybe,,,,\n"
        ",b,,,,,,0,10,,\n"
        ",,,,,,,20,30,,\n"
        ",c,,,,,,9,1,2,\n"
        ",d,,,,,,nine,,,\n"
        ",e,,,,,,-1e308,1e308,1,\n"
    )
    with pytest.raises(FileError) as caught:
        read_forms(written(tmp_path, text, "forms.csv"))
    told = "\n".join(caught.value.problems)
    for part in ("colour", "form and field", "method", "collected", "twice", "maybe"):
        assert part in told
    for part in ("must begin where", "start must lie below stop", "'nine'", "1e+300"):
        assert part in told


# --- labels ------------------------------------------------------------------------------------


def test_a_file_of_labels(tmp_path: Path) -> None:
    text = "name,label,code,category\nsex,Sex,1,Male\n,,2,Female\njob,Occupation,,N/A (under 16)\n"
    labels = read_labels(written(tmp_path, text, "labels.csv"))
    assert labels["sex"].codes == {"1": "Male", "2": "Female"}
    assert (labels["job"].label, labels["job"].blank) == ("Occupation", "N/A (under 16)")
    twice = "name,label,code,category\nsex,,1,Male\nsex,,1,Man\n"
    with pytest.raises(FileError, match="two labels"):
        read_labels(written(tmp_path, twice, "labels.csv"))


CENSUS = """NAME,SEX,C,1,Sex,,
VAL,SEX,C,1,1,1,Male
VAL,SEX,C,1,2,2,Female
NAME,PINCP,N,7,Income,,
VAL,PINCP,N,7,bbbbbbb,bbbbbbb,N/A
VAL,PINCP,N,7,1,4209995,$1 and more
"""


def test_a_dictionary_of_the_census_bureau_is_labels_and_no_form(tmp_path: Path) -> None:
    path = tmp_path / "dictionary.csv"
    path.write_text(CENSUS)
    with pytest.raises(FileError, match="give it as labels"):
        read_forms(path)
    labels = read_labels(path)
    assert (labels["SEX"].label, labels["SEX"].codes) == ("Sex", {"1": "Male", "2": "Female"})
    assert (labels["PINCP"].codes, labels["PINCP"].blank) == ({}, "N/A")


def test_the_kind_of_an_identifier_is_found_from_the_label(tmp_path: Path) -> None:
    path = tmp_path / "forms.csv"
    path.write_text("form,field,label,category,kind\nClaim,q1,E-mail address,,identifier\n")
    (form,) = read_forms(path)
    assert form.fields[0].identifier == "email"
    path.write_text(
        "field_name,field_type,field_label,identifier\nq2,text,Telephone,y\nq3,text,Notes,y\n"
    )
    (form,) = read_forms(path)
    assert [one.identifier for one in form.fields] == ["phone", "record number"]


def test_workbooks_of_excel_97(tmp_path: Path) -> None:
    survey = [["type", "name", "label"], ["select_one sex", "sex", "Sex"], ["integer", "age", ""]]
    choices = [["list_name", "name", "label"], ["sex", "f", "Weiblich"], ["sex", "m", "Männlich"]]
    path = tmp_path / "form.xls"
    path.write_bytes(workbook_97({"survey": survey, "choices": choices}))
    (form,) = read_forms(path)
    assert [one.label for one in form.fields[0].categories] == ["Weiblich", "Männlich"]
    assert form.fields[1].intervals is not None
    path.write_bytes(workbook_97({"Tabelle1": [["form", "field", "code"], ["A", "sex", "f"]]}))
    (form,) = read_forms(path)
    assert (form.form.name, form.fields[0].name) == ("A", "sex")
    table = [["name", "label", "code", "category"], ["sex", "Sex", "1", "Male"]]
    path.write_bytes(workbook_97({"labels": table}))
    assert read_labels(path)["sex"].codes == {"1": "Male"}
    with pytest.raises(FileError, match=r"Got .xls instead. Save it as .xlsx."):
        load(path)  # they describe forms; records are not read from them
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(FileError, match="Excel"):
        read_forms(path)
