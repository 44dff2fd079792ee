"""Bad input ends with exit code 2 and one message with a remedy; no record's value is shown."""

import gzip
import json
import re

import polars as pl
import pytest

from keyhole.cli.main import run

SECRET = "zqx7391"  # stands in the data of every file here
NUMBER = 739173  # and so does this number
HEADER = "sex,age,state,weight\n"
RECORDS = f"f,30,{SECRET},1.5\nm,{NUMBER},ny,2\nf,30,{SECRET},1\n"
PEOPLE = HEADER + RECORDS


@pytest.fixture
def keyhole(capsys):
    def call(*words):
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def _text(name, content):
    def write(folder):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def _broken_parquet(folder):
    path = folder / "people.parquet"
    pl.DataFrame({"sex": ["f", "m"], "age": [30, NUMBER], "x": [SECRET, "b"]}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-40])
    return path


def _folder(folder):
    path = folder / "folder.csv"
    path.mkdir()
    return path


def _wide(folder):
    path = folder / "wide.csv"
    names = ",".join(f"column{i}" for i in range(10_000))
    path.write_text(f"{names}\n{','.join([SECRET] * 10_000)}\n")
    return path


RISK = "risk --keys sex,age"
UNIQUES = "uniques --keys sex,age"
SELECT = "select --candidates sex,age --limit 0.1"
FRONTIER = "frontier --candidates sex,age --limit 0.1"
WINDOWS = HEADER.encode() + f"m\xfcller,30,{SECRET},1\n".encode("cp1252")

# What is in the file, the words, and what must be said: what is wrong, then the remedy.
CONTENTS = {
    "negative weight": (
        f"sex,age,w\nf,30,-1\nm,{NUMBER},2\n",
        f"{RISK} --weight w",
        "no negative values. Got 1 of 2 instead: check",
    ),
    "missing weight value": (
        f"sex,age,w\nf,30,\nm,{NUMBER},2\n",
        f"{RISK} --weight w",
        "no missing values. Got 1 of 2 instead: leave",
    ),
    "weight of text": (
        f"sex,age,w\nf,30,{SECRET}\nm,4,2\n",
        f"{RISK} --weight w",
        "must hold numbers. Got text instead: choose",
    ),
    "weight of zeros": (
        f"sex,age,w\nf,{NUMBER},0\nm,4,0\n",
        f"{RISK} --weight w",
        "must have values above 0",
    ),
    "empty file": ("", RISK, "is empty. Give a file with a header"),
    "blank file": (" \n\n", RISK, "is empty. Give a file with a header"),
    "header only": (HEADER, RISK, "no records. Give a file with at least one"),
    "header only in select": (HEADER, SELECT, "no records. Give a file"),
    "header only in uniques": (HEADER, UNIQUES, "no records. Give a file"),
    "header only in frontier": (HEADER, FRONTIER, "no records. Give a file"),
    "duplicate column names": (f"sex,age,sex\nf,30,{SECRET}\n", RISK, "same name: 'sex'. Rename"),
    "row too short": (
        PEOPLE + f"f,{NUMBER}\n",
        RISK,
        "line 5: must have 4 cells.*Got 2 instead. Check",
    ),
    "row too long": (
        PEOPLE + f"f,1,2,3,{SECRET}\n",
        RISK,
        "line 5: must have 4 cells.*Got 5 instead. Check",
    ),
    "open quotation mark": (
        HEADER + f'f,30,"{SECRET},1\nm,4,ny,2\n',
        RISK,
        "quotation mark.*Close",
    ),
    "unreadable encoding": (
        WINDOWS,
        "risk --keys sex",
        "not in the encoding 'utf-8': line 2.*--encoding",
    ),
    "wrong encoding": (WINDOWS, "risk --keys sex --encoding ascii", "not in the encoding 'ascii'"),
    "zero bytes": (HEADER.encode() + b"f\0,30,x,1\n", RISK, "zero bytes.*save it again"),
}


def _check_refusal(code, out, err, message):
    assert code == 2
    assert out == ""
    assert re.search(message, err), err
    assert err.startswith("keyhole: ")
    assert err.count("keyhole: ") == 1
    assert "Traceback" not in err
    assert SECRET not in err
    assert str(NUMBER) not in err


@pytest.mark.parametrize("case", CONTENTS)
def test_what_cannot_go_on_is_refused(tmp_path, keyhole, case):
    content, words, message = CONTENTS[case]
    path = _text("people.csv", content)(tmp_path)
    verb, *options = words.split()
    _check_refusal(*keyhole(verb, path, *options, "--plot", tmp_path / "out.svg"), message)
    assert [file.name for file in tmp_path.iterdir()] == ["people.csv"]  # nothing written


FILES = {
    "broken Parquet": (_broken_parquet, "cannot be read as Parquet.*Copy it again"),
    "text named Parquet": (_text("people.parquet", PEOPLE), "cannot be read as Parquet"),
    "Parquet named text": (_text("people.csv", b"PAR1" + SECRET.encode()), "Rename it"),
    "a folder": (_folder, "must be a file. Got a folder instead: name a file in it"),
    "no such file": (lambda folder: folder / "peopel.csv", "does not exist"),
    "no extension": (_text("people", PEOPLE), "must have an extension"),
    "broken gzip": (_text("people.csv.gz", gzip.compress(RECORDS.encode())[:30]), "Copy it again"),
    "broken SPSS": (_text("people.sav", b"$FL2" + SECRET.encode() * 40), "people.sav"),
    "broken Stata": (_text("people.dta", b"<stata_dta>" + SECRET.encode() * 40), "people.dta"),
    "broken Excel": (_text("people.xlsx", b"PK\x03\x04" + SECRET.encode() * 40), "people.xlsx"),
    "broken Arrow": (_text("people.arrow", b"ARROW1\0\0" + SECRET.encode() * 40), "cannot be read"),
}


@pytest.mark.parametrize("words", [RISK, UNIQUES, SELECT, FRONTIER])
@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, keyhole, case, words):
    make, message = FILES[case]
    path = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    verb, *options = words.split()
    _check_refusal(*keyhole(verb, path, *options), message)
    assert sorted(tmp_path.iterdir()) == before


def test_a_mistyped_file_gets_the_near_one_offered(people, keyhole):
    _check_refusal(
        *keyhole(*RISK.split(), people.with_name("peple.csv")), "Did you mean 'people.csv'"
    )


POSSIBLE = {
    "one record": (f"sex,age\nf,{NUMBER}\n", (), {"records": 1, "uniques": 1, "rp": 1, "cr": 1}),
    "constant key": ("sex,age\n" + "f,30\n" * 9, (), {"cells": 1, "rp": 0, "cr": 1 / 9}),
    "all-missing key": ("sex,age\n" + "f,\n" * 9, (), {"cells": 1, "rp": 0}),
    "all-missing key, dropped": (
        "sex,age\n" + "f,\n" * 9,
        ("--missing", "drop"),
        {"cells": 0, "rp": 0, "highest_risk": None},
    ),
    "all-missing key, matching": (
        "sex,age\n" + "f,\n" * 9,
        ("--missing", "wildcard"),
        {"cells": 1, "rp": 0},
    ),
    "declared missing": (
        "sex,age\n" + "f,-9\nf,.\n",
        ("--missing-codes", "-9,age:."),
        {"cells": 1},
    ),
    "mixed types": (f"sex,age\nf,30\n1,{SECRET}\n2.5,2020-01-01\n", (), {"cells": 3, "uniques": 3}),
    "semicolons, found out": (f"sex;age\nf;30\nm;{NUMBER}\n", (), {"records": 2, "cells": 2}),
    "Windows encoding, told": (
        "sex,age\nm\xfc,30\n".encode("cp1252"),
        ("--encoding", "cp1252"),
        {"records": 1},
    ),
    "tabs, told": ("sex\tage\nf\t30\n", ("--delimiter", "tab"), {"records": 1}),
    "a mark at the beginning": (b"\xef\xbb\xbfsex,age\nf,30\n", (), {"keys": ["sex", "age"]}),
}


@pytest.mark.parametrize("case", POSSIBLE)
def test_what_can_go_on_gives_sensible_figures(tmp_path, keyhole, case):
    content, more, expected = POSSIBLE[case]
    path = _text("people.csv", content)(tmp_path)
    code, out, err = keyhole("risk", path, "--keys", "sex,age", *more, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert {name: found[name] for name in expected} == expected
    assert SECRET not in out
    code, out, _ = keyhole("risk", path, "--keys", "sex,age", *more)
    assert code == 0
    assert SECRET not in out


@pytest.mark.parametrize(
    "content",
    ["sex,age\nf,30\n", "sex,age\n" + "f,30\n" * 9, "sex,age\n" + "f,\n" * 9],
    ids=["one record", "constant", "all missing"],
)
@pytest.mark.parametrize(
    "words",
    [
        UNIQUES,
        "uniques --keys sex",
        SELECT,
        f"{SELECT} --method backward",
        f"{SELECT} --method stepwise --by sex",
        f"{SELECT},0,1 --compare",
        FRONTIER,
        "frontier --candidates sex,age --limit 0",
        f"{RISK} --limit 0.1 --fraction 0.1 --household age",
    ],
)
def test_thin_files_go_through_every_verb(tmp_path, keyhole, content, words):
    path = _text("people.csv", content)(tmp_path)
    verb, *options = words.split()
    code, out, err = keyhole(verb, path, *options, "--json")
    assert (code, err) == (0, "")
    assert isinstance(json.loads(out), dict)
    assert keyhole(verb, path, *options)[0] == 0


def test_ten_thousand_columns(tmp_path, keyhole):
    path = _wide(tmp_path)
    code, out, err = keyhole("risk", path, "--keys", "column9999", "--json")
    assert (code, err, json.loads(out)["records"]) == (0, "", 1)
    code, out, err = keyhole("risk", path, "--keys", "colum9999")
    _check_refusal(code, out, err, "Did you mean 'column9999'")
    assert len(err) < 1000
