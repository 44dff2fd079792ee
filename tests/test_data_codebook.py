"""Codebooks: labels from dictionaries, DDI, syntax and JSON, whatever engine reads the file."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import keyhole
from keyhole.cli.main import run
from keyhole.data import load
from keyhole.data.codebook import read_codebook
from keyhole.errors import FileError

PEOPLE = pl.DataFrame(
    {
        "sex": [1, 2, 1, 2] * 10,
        "occ": [10, 430, 430, 10] * 10,
        "puma": ["00300", "00300", "01100", "01100"] * 10,
        "age": list(range(20, 60)),
        "SERIAL": [f"2023HU{n:07}" for n in range(1, 41)],
    }
)
CENSUS = """NAME,SEX,C,1,Sex,,
VAL,SEX,C,1,1,1,Male
VAL,SEX,C,1,2,2,Female
NAME,OCC,C,4,Occupation,,
VAL,OCC,C,4,bbbb,bbbb,N/A
VAL,OCC,C,4,0010,0010,Chief executives
VAL,OCC,C,4,0430,0430,"Managers, other"
NAME,PUMA,C,5,Area,,
VAL,PUMA,C,5,00100,81003,Public use microdata area
NAME,AGE,N,2,Age,,
VAL,AGE,N,2,20,20,Under 21
VAL,AGE,N,2,21,99,21 to 99 years
NAME,SERIAL,C,13,Serial number,,
VAL,SERIAL,C,13,2023HU0000001,2023HU9999999,Unique identifier
"""
TABLE = "name;label;code;category\nsex;Sex;1;Male\n;;2;Female\nocc;Occupation;;\n"
DDI = """<codeBook xmlns="ddi:codebook:2_5"><dataDscr><var name="sex"><labl>Sex</labl>
<catgry><catValu>1</catValu><labl>Male</labl></catgry>
<catgry><catValu>2</catValu><labl>Female</labl></catgry></var>
<var name="occ"><labl> Occupation </labl></var></dataDscr></codeBook>"""
SPSS = """* Labels of the survey.
VARIABLE LABELS sex 'Sex' /occ "Occupation".
VALUE LABELS sex gender 1 'Male' 2 "Female" /state 'AL' 'Ala''bama' 'AK' 'Alaska'.
ADD VALUE LABELS occ -1 'None'.
FREQUENCIES sex.
"""
STATA = """* labels
label variable sex "Sex"
lab var occ "Occupation"
label define sexes 1 "Male" ///
    2 "Female", replace
/* label values age sexes */
label values sex sexes
"""
JSON = json.dumps(
    {"sex": {"description": "Sex", "values": {"1": "Male", "2": "Female"}},
     "occ": {"label": "Occupation"}}
)  # fmt: skip


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.csv", CENSUS), ("b.csv", TABLE), ("c.xml", DDI), ("d.sps", SPSS), ("e.do", STATA),
     ("f.json", JSON)],
)  # fmt: skip
def test_every_format_gives_the_same_labels(tmp_path: Path, name: str, text: str) -> None:
    data = load(PEOPLE, codebook=written(tmp_path, name, text))
    assert data.variable("sex").label == "Sex"
    assert data.variable("sex").value_labels == {1: "Male", 2: "Female"}
    assert data.variable("occ").label == "Occupation"
    assert data.frame.equals(PEOPLE)


def test_lists_of_names_and_texts_as_codes_are_read(tmp_path: Path) -> None:
    book = read_codebook(written(tmp_path, "d.sps", SPSS))
    assert book["gender"].codes == {"1": "Male", "2": "Female"}
    assert book["state"].codes == {"AL": "Ala'bama", "AK": "Alaska"}
    assert book["occ"].codes == {"-1": "None"}


def test_codes_are_no_measure_and_no_code_in_a_range_stands_bare(tmp_path: Path) -> None:
    data = load(PEOPLE, codebook=written(tmp_path, "a.csv", CENSUS))
    assert load(PEOPLE.with_columns(occ=pl.Series(range(40)))).variable("occ").kind == "measure"
    assert data.variable("occ").value_labels == {10: "Chief executives", 430: "Managers, other"}
    assert data.variable("puma").value_labels["00300"] == "00300 (Public use microdata area)"
    # A measure with a label for one of its values stays one; ids are never labels.
    assert data.variable("age").kind == "measure"
    assert data.variable("SERIAL").value_labels == {}
    many = pl.DataFrame({"occ": [10, 430, *range(1000, 1400)] * 2})
    assert load(many, codebook=tmp_path / "a.csv").variable("occ").kind == "measure"
    coded = pl.DataFrame({"occ": [1000 + n % 400 for n in range(900)]})
    book = {"occ": {"values": {str(n): f"job {n}" for n in range(1000, 1400)}}}
    labelled = load(coded, codebook=written(tmp_path, "all.json", json.dumps(book)))
    assert labelled.variable("occ").kind == "category"
    asked = load(coded, codebook=tmp_path / "all.json", kinds={"occ": "measure"})
    assert asked.variable("occ").kind == "measure"


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_engines_know_the_same_labels(tmp_path: Path, engine: str) -> None:
    from keyhole.engines.choose import open_records

    PEOPLE.write_csv(tmp_path / "people.csv")
    book = written(tmp_path, "a.csv", CENSUS)
    data = open_records(tmp_path / "people.csv", engine=engine, codebook=book)
    data.require(["sex", "puma"], purpose="column")
    assert data.variable("sex").value_labels == {1: "Male", 2: "Female"}
    assert data.variable("puma").value_labels["01100"] == "01100 (Public use microdata area)"


def test_reports_show_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    book = written(tmp_path, "a.csv", CENSUS)
    words = ["--keys", "sex,occ", "--by", "puma", "--codebook", str(book)]
    assert run(["risk", str(tmp_path / "people.csv"), *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.lstrip().startswith("00300 (Public use microdata area)") for line in lines)
    words = ["--keys", "sex,occ", "--sensitive", "puma", "--codebook", str(book)]
    assert run(["risk", str(tmp_path / "people.csv"), *words]) == 0
    shown = capsys.readouterr().out
    assert "Male" in shown
    assert "Managers, other" in shown


def test_a_review_reads_its_codebook(tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    written(tmp_path, "book.csv", CENSUS)
    made = tmp_path / "review.toml"
    keyhole.init(tmp_path / "people.csv", codebook=tmp_path / "book.csv", out=made)
    assert 'codebook = "book.csv"' in made.read_text()
    text = 'keys = ["sex", "occ"]\n[data]\nfile = "people.csv"\ncodebook = "book.csv"\n[exposure]\n'
    made.write_text(text + 'by = "puma"\n')
    found = keyhole.review(made, out=tmp_path / "out")
    assert "00300 (Public use microdata area)" in (tmp_path / "out" / "report.html").read_text()
    # Other labels are another file: nothing is reused.
    written(tmp_path, "book.csv", CENSUS.replace("Male", "Man"))
    again = keyhole.review(made, out=tmp_path / "out")
    assert "exposure" in {*found.records}
    assert not again.reused


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.pdf", "x", "must be a .csv, .xml, .sps, .do, .json file"),
        ("a.csv", "a,b\n1,2\n", "must have the columns name, label, code, category"),
        ("a.xml", "<a><b></a>", "well-formed XML"),
        ("a.xml", '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "well-formed XML"),
        ("a.json", "[1, 2", "must be a JSON object"),
        ("a.json", "[" * 100_000, "must be a JSON object"),
        ("a.sps", "FREQUENCIES sex.", "labels no column"),
    ],
)
def test_what_is_no_codebook_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        load(PEOPLE, codebook=written(tmp_path, name, text))
    with pytest.raises(FileError, match="does not exist"):
        load(PEOPLE, codebook=tmp_path / "none.csv")


def test_tables_show_labels_and_no_bare_code(tmp_path, capsys):
    """Codes that share a label keep it apart by the code; a missing value and a total stay."""
    codes = ["00100", "00300", "00400", None, "00100", "9"] * 20
    frame = pl.DataFrame({"st": codes, "sex": [1, 2] * 60})
    states = {"00100": "Total", "00300": "Ohio", "00400": "Ohio"}
    book = {"st": {"values": states}, "sex": {"values": {"1": "Male", "2": "Female"}}}
    (tmp_path / "book.json").write_text(json.dumps(book))
    (tmp_path / "release").mkdir()
    for name in ("p.csv", "release/implicate-1.csv", "release/implicate-2.csv"):
        frame.write_csv(tmp_path / name)
    asked = ["--rows", "st", "--cols", "sex", "--codebook", str(tmp_path / "book.json")]
    out = str(tmp_path / "t.csv")
    assert run(["table", str(tmp_path / "p.csv"), *asked, "--out", out]) == 0
    written = pl.read_csv(out)
    assert set(written["st"]) == {
        "Total",
        "(Total)",
        "Ohio (00300)",
        "Ohio (00400)",
        "9",
        "missing",
    }
    assert set(written["sex"]) == {"Male", "Female", "Total"}
    whole = written.filter(pl.col("st") == "(Total)", pl.col("sex") == "Total")
    assert whole["value"].to_list() == [120]
    capsys.readouterr()
    assert run(["tabulate", str(tmp_path / "release"), *asked]) == 0
    shown = capsys.readouterr().out
    assert "sex: Male" in shown
    assert "Ohio (00300)" in shown
    assert not re.search(r"^ *00[134]00|sex: \d", shown, re.MULTILINE)
    assert run(["tabulate", str(tmp_path / "release"), *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["labels"]["sex"] == book["sex"]["values"]
    assert {cell["sex"] for cell in found["cells"]} == {1, 2}
    plain = keyhole.tabulate([frame, frame], rows="st", cols="sex")
    assert "labels" not in plain.to_dict()
    assert "sex: 1" in plain.summary()
