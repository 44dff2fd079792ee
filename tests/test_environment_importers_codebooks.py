"""Codebooks and code lists: DDI, SDMX, and the labels of statistical files."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest

from keyhole.environment.importers.reading import read_forms
from keyhole.environment.model import CapturedField
from keyhole.errors import FileError

DDI = """\
<codeBook{namespace}>
 <stdyDscr><citation><titlStmt><titl>Health survey</titl></titlStmt>
  <rspStmt><AuthEnty>The Office</AuthEnty></rspStmt></citation>
  <stdyInfo><sumDscr><collDate date="2019-03-01" event="start"/></sumDscr></stdyInfo></stdyDscr>
 <dataDscr>
  <var ID="V1" name="SEX" files="F1"><labl>Sex of respondent</labl><universe>All</universe>
   <catgry><catValu>1</catValu><labl>Male</labl><catStat type="freq">4711</catStat></catgry>
   <catgry><catValu>2</catValu><labl>Female</labl></catgry>
   <catgry missing="Y"><catValu>9</catValu><labl>Blank</labl></catgry></var>
  <var ID="V2" name="AGE" files="F1" intrvl="contin"><labl>Age</labl>
   <valrng><range min="0" max="105"/></valrng>
   <sumStat type="max">104</sumStat>
   <catgry><catValu>105</catValu><labl>105 or more</labl></catgry>
   <catgry missing="Y"><catValu>-9</catValu><labl>Refused</labl></catgry></var>
  <var ID="V3" name="BAND" files="F2"><labl>Income</labl>
   <catgry><catValu>1</catValu><labl>Under $10,000</labl></catgry>
   <catgry><catValu>2</catValu><labl>$10,000 or more</labl></catgry></var>
  <var ID="V4" name="SEX" files="F2"><qstn><qstnLit>Sex?</qstnLit></qstn>
   <catgry><catValu>m</catValu></catgry><catgry><catValu>f</catValu></catgry></var>
  <var ID="V5" name="DOB"><labl>Born</labl><varFormat type="numeric" category="date"/></var>
  <var ID="V6" name="NM1"><labl>First name</labl><varFormat type="character"/></var>
 </dataDscr>
</codeBook>
"""


@pytest.mark.parametrize(
    "namespace", ["", ' xmlns="ddi:codebook:2_5"', ' xmlns="http://www.icpsr.umich.edu/DDI"']
)
@pytest.mark.parametrize("start", ["", '<!DOCTYPE codeBook SYSTEM "Version1-2.dtd">'])
def test_a_codebook_with_its_namespace_or_without(
    tmp_path: Path, namespace: str, start: str
) -> None:
    path = tmp_path / "study.xml"
    path.write_text(start + DDI.format(namespace=namespace))
    (form,) = read_forms(path)
    sex, age, band, again, born, name = form.fields
    assert (form.form.purpose, form.form.organisation) == ("", "The Office")
    assert form.notes[0] == "Its title is 'Health survey'."
    assert str(form.form.collected) == "2019-03-01"
    assert (sex.name, sex.label, sex.universe, sex.path) == (
        "SEX",
        "Sex of respondent",
        "All",
        "F1/SEX",
    )
    assert [one.kind for one in sex.categories] == ["value", "value", "not stated"]
    assert (age.intervals.start, age.intervals.stop) == (0, 106)  # type: ignore[union-attr]
    assert [one.code for one in age.categories] == ["-9"]
    assert band.intervals.edges == (-math.inf, 10000, math.inf)  # type: ignore[union-attr]
    assert (again.name, again.label, again.path) == ("SEX~2", "Sex?", "F2/SEX")
    assert born.intervals.unit == "day"  # type: ignore[union-attr]
    assert name.identifier == "name"
    assert "4711" not in repr(form)
    assert "104" not in repr(form)


SDMX = """\
<mes:Structure xmlns:mes="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message"
 xmlns:str="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure"
 xmlns:com="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common">
 <mes:Structures><str:Codelists><str:Codelist id="CL_ACT">
  <com:Name xml:lang="fr">Activité</com:Name><com:Name xml:lang="en">Activity</com:Name>
  <str:Code id="A"><com:Name xml:lang="en">Active</com:Name></str:Code>
  <str:Code id="E"><com:Name>Employed</com:Name><str:Parent><Ref id="A"/></str:Parent></str:Code>
  <str:Code id="U"><com:Name>Unemployed</com:Name><str:Parent><Ref id="A"/></str:Parent></str:Code>
  <str:Code id="F"><com:Name>Full time</com:Name><str:Parent><Ref id="E"/></str:Parent></str:Code>
  <str:Code id="P"><com:Name>Part time</com:Name><str:Parent><Ref id="E"/></str:Parent></str:Code>
  <str:Code id="I"><com:Name>Inactive</com:Name></str:Code>
  <str:Code id="X"><com:Name>Unknown</com:Name></str:Code>
 </str:Codelist></str:Codelists></mes:Structures></mes:Structure>
"""


def test_a_code_list_is_read_at_its_finest(tmp_path: Path) -> None:
    path = tmp_path / "lists.xml"
    twice = '<str:Codelist id="CL_2"><str:Code id="A"/><str:Code id="A"/></str:Codelist>'
    path.write_text(SDMX.replace("</str:Codelists>", f"{twice}</str:Codelists>"))
    (form,) = read_forms(path)
    (found,) = form.fields
    assert (found.name, found.label) == ("CL_ACT", "Activity")
    assert [one.code for one in found.categories] == ["U", "F", "P", "I", "X"]
    assert found.categories[-1].kind == "not stated"
    assert form.notes == ("code list 'CL_2' has a code twice: it is left out.",)
    path.write_text('<Structure><Codelist id="C"><Code id="a"><Parent><Ref id="a"/></Parent></Code>'
                    "</Codelist></Structure>")  # fmt: skip
    with pytest.raises(FileError, match="own ancestors"):
        read_forms(path)


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_labels_of_statistical_files_without_their_records(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"people{suffix}"
    frame = pd.DataFrame({"sex": [1, 2, 9], "age": [4711, 31, 52], "who": ["Zaphod", "b", "c"]})
    labels = {"sex": {1: "Male", 2: "Female", 9: "No idea"}}
    about = {"sex": "Sex", "age": "Age in years", "who": "First name"}
    if suffix == ".sav":
        pyreadstat.write_sav(
            frame,
            str(path),
            column_labels=about,
            variable_value_labels=labels,
            missing_ranges={"sex": [9]},
        )
    else:
        pyreadstat.write_dta(frame, str(path), column_labels=about, variable_value_labels=labels)
    (form,) = read_forms(path)
    found: dict[str, CapturedField] = {one.name: one for one in form.fields}
    assert [one.label for one in found["sex"].categories] == ["Male", "Female", "No idea"]
    assert found["sex"].categories[2].kind == ("not stated" if suffix == ".sav" else "value")
    assert found["age"].intervals.stop == 121  # type: ignore[union-attr]
    assert found["who"].identifier == "name"
    assert "4711" not in repr(form)
    assert "Zaphod" not in repr(form)
