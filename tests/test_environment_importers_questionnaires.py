"""Questionnaires: ONS eQ, SurveyJS, LimeSurvey, DDI-Lifecycle, plain text, Markdown and CSV."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keyhole.environment.importers.fields import YES_NO
from keyhole.environment.importers.reading import read_forms
from keyhole.environment.model import CapturedField, CapturedForm
from keyhole.errors import FileError


def read(folder: Path, name: str, content: Any) -> CapturedForm:
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    (form,) = read_forms(path)
    return form


def by_name(form: CapturedForm) -> dict[str, CapturedField]:
    return {one.name: one for one in form.fields}


def labels(field: CapturedField) -> list[str]:
    return [one.label for one in field.categories]


def options(*names: str) -> list[dict[str, str]]:
    return [{"label": name, "value": name} for name in names]


def question(name: str, title: Any, *answers: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Question", "question": {"id": name, "title": title, "answers": list(answers)}}


_SEX = {"id": "sex-answer", "type": "Radio", "options": options("Female", "Male")}
_BIRTH = {"id": "birth-answer", "type": "Date"}
_BLOCKS = [
    question("sex", {"text": "What is <em>your</em> sex?", "placeholders": []}, _SEX),
    question("birth", "What is your date of birth?", _BIRTH),
    question("hours", "How many hours?", {"id": "hours-answer", "type": "Number",
             "minimum": {"value": 0}, "maximum": {"value": 168}}),
    question("langs", "Languages?", {"id": "langs-answer", "type": "Checkbox",
                                      "options": options("Welsh", "English")}),
    question("name", "Name?",
             {"id": "first-answer", "type": "TextField", "label": "First name"},
             {"id": "last-answer", "type": "TextField", "label": "Last name"}),
    question("bad", "Choose?", {"id": "bad-answer", "type": "Radio"}),
    {"type": "Question", "question_variants": [
        {"question": question("job", "What is your job?", {"id": "job", "type": "TextField"})
         ["question"], "when": []},
        {"question": question("job", "What is their job?", {"id": "job", "type": "TextField"})
         ["question"], "when": []}]},
]  # fmt: skip
EQ = {"survey_id": "1", "title": "Lives", "sections": [{"groups": [{"blocks": _BLOCKS}]}]}


def test_an_ons_questionnaire(tmp_path: Path) -> None:
    form = read(tmp_path, "lms.json", EQ)
    found = by_name(form)
    assert found["sex-answer"].label == "What is your sex?"
    assert labels(found["sex-answer"]) == ["Female", "Male"]
    assert found["birth-answer"].intervals.unit == "day"  # type: ignore[union-attr]
    assert found["hours-answer"].intervals.stop == 169  # type: ignore[union-attr]
    assert found["langs-answer.Welsh"].option == "Welsh"
    assert found["first-answer"].identifier == "name"
    assert found["job"].label == "What is your job?"  # the first variant
    assert "bad-answer" not in found
    assert any(
        "answer 'bad-answer': 'bad' has no answers: it is left out" in one for one in form.notes
    )


_ELEMENTS: list[Any] = [
    {"type": "radiogroup", "name": "sex", "title": {"default": "Sex", "de": "x"},
     "choices": ["Female", {"value": 2, "text": "Male"}]},
    {"type": "checkbox", "name": "race", "choices": ["White", "Black"], "hasOther": True},
    {"type": "text", "name": "born", "inputType": "date", "title": "Date of birth"},
    {"type": "text", "name": "age", "inputType": "number", "max": 110},
    {"type": "text", "name": "mail", "inputType": "email"},
    {"type": "boolean", "name": "veteran", "title": "Are you a veteran?"},
    {"type": "panel", "name": "home", "elements": [{"type": "text", "name": "city"}]},
    {"type": "matrix", "name": "pain", "columns": ["low", "high"], "rows": ["arm", "leg"]},
    {"type": "html", "name": "thanks"},
    {"type": "dropdown", "name": "empty"},
    {"type": "text"},
]  # fmt: skip
SURVEYJS = {"pages": [{"name": "p", "elements": _ELEMENTS}]}


def test_a_surveyjs_survey(tmp_path: Path) -> None:
    form = read(tmp_path, "s.json", SURVEYJS)
    found = by_name(form)
    assert labels(found["sex"]) == ["Female", "Male"]
    assert {"race.White", "race.Black", "race.other"} <= found.keys()
    assert found["born"].intervals.scale == "date"  # type: ignore[union-attr]
    assert found["age"].intervals.stop == 111  # type: ignore[union-attr]
    assert found["mail"].identifier == "email"
    assert found["veteran"].categories == YES_NO
    assert found["home.city"].path == "home/city"
    assert labels(found["pain.leg"]) == ["low", "high"]
    assert "thanks" not in found
    assert "empty" not in found
    assert len(form.notes) == 2


_HEAD = "class\ttype/scale\tname\trelevance\ttext\tlanguage\tother\n"
_ROWS = [
    "S\t\tlanguage\t\ten\t\t", "G\tG0\tPerson\t1\t\ten\t",
    "Q\tL\tsex\t1\t<p>Sex</p>\ten\tN", "A\t0\t1\t\tFemale\ten\t", "A\t0\t2\t\tMale\ten\t",
    "Q\tL\tsex\t1\tGeschlecht\tde\tN",
    "Q\tM\trace\t1\tRace\ten\tY", "SQ\t\twhite\t\tWhite\ten\t", "SQ\t\tblack\t\tBlack\ten\t",
    "Q\tN\tage\t1\tAge\ten\tN", "Q\tD\tborn\t1\tDate of birth\ten\tN",
    "Q\tX\thello\t1\tWelcome\ten\tN", "Q\tY\tvet\t1\tVeteran?\ten\tN",
    "Q\t!\tnone\t1\tNothing\ten\tN",
]  # fmt: skip
LIMESURVEY = _HEAD + "\n".join(_ROWS)


def table(name: str, *rows: dict[str, str]) -> str:
    cells = ("".join(f"<{k}>{v}</{k}>" for k, v in row.items()) for row in rows)
    return f"<{name}><rows>{''.join(f'<row>{one}</row>' for one in cells)}</rows></{name}>"


LSS = "<document>" + "".join(
    (
        table("groups", {"gid": "1", "group_name": "Person"}),
        table("questions", {"qid": "5", "gid": "1", "title": "sex", "type": "L"},
              {"qid": "6", "gid": "1", "title": "race", "type": "M", "question": "Race"}),
        table("question_l10ns", {"qid": "5", "question": "Sex"}),
        table("answers", {"aid": "1", "qid": "5", "code": "b", "sortorder": "2"},
              {"aid": "2", "qid": "5", "code": "a", "sortorder": "1"}),
        table("answer_l10ns", {"aid": "1", "answer": "Male"}, {"aid": "2", "answer": "Female"}),
        table("subquestions", {"qid": "7", "parent_qid": "6", "title": "w",
                               "question": "White"}),
    )
) + "</document>"  # fmt: skip


def test_a_limesurvey_structure_as_table_and_as_xml(tmp_path: Path) -> None:
    form = read(tmp_path, "survey.txt", LIMESURVEY)
    found = by_name(form)
    assert list(found) == ["sex", "race.white", "race.black", "race.other", "age", "born", "vet"]
    assert (found["sex"].path, found["sex"].label) == ("Person/sex", "Sex")
    assert labels(found["sex"]) == ["Female", "Male"]
    assert found["age"].intervals.stop == 121  # type: ignore[union-attr]
    assert any("'none' has no answers" in one for one in form.notes)
    found = by_name(read(tmp_path, "survey.lss", LSS))
    assert (found["sex"].label, labels(found["sex"])) == ("Sex", ["Female", "Male"])
    assert found["race.w"].label == "Race: White"
    endless = LSS.replace("<sortorder>1<", f"<sortorder>{'9' * 5000}<")  # counts as no order
    assert labels(by_name(read(tmp_path, "a.lss", endless))["sex"]) == ["Female", "Male"]


DDI = """<DDIInstance xmlns="ddi:instance:3_3" xmlns:r="ddi:reusable:3_3"><ResourcePackage>
<Category><r:ID>c1</r:ID><r:Label><r:Content xml:lang="fr">Femme</r:Content>
<r:Content xml:lang="en">Female</r:Content></r:Label></Category>
<Category><r:ID>c2</r:ID><r:Label><r:Content>Male</r:Content></r:Label></Category>
<CodeList><r:ID>l1</r:ID><Code><r:CategoryReference><r:ID>c1</r:ID></r:CategoryReference>
<r:Value>1</r:Value></Code><Code><r:CategoryReference><r:ID>c2</r:ID></r:CategoryReference>
<r:Value>2</r:Value></Code></CodeList>
<QuestionItem><r:ID>q1</r:ID><QuestionItemName><r:String>qsex</r:String></QuestionItemName>
<QuestionText><LiteralText><Text>What is your sex?</Text></LiteralText></QuestionText>
<CodeDomain><r:CodeListReference><r:ID>l1</r:ID></r:CodeListReference></CodeDomain></QuestionItem>
<QuestionItem><r:ID>q2</r:ID><QuestionItemName><r:String>qboth</r:String></QuestionItemName>
<QuestionText><LiteralText><Text>Which?</Text></LiteralText></QuestionText>
<CodeDomain><r:CodeListReference><r:ID>l1</r:ID></r:CodeListReference>
<r:ResponseCardinality maximumResponses="2"/></CodeDomain></QuestionItem>%s
</ResourcePackage></DDIInstance>"""
VARIABLES = """<Variable><r:ID>v1</r:ID><VariableName><r:String>SEX</r:String></VariableName>
<r:QuestionReference><r:ID>q1</r:ID></r:QuestionReference></Variable>
<Variable><r:ID>v2</r:ID><VariableName><r:String>AGE</r:String></VariableName><r:Label>
<r:Content>Age</r:Content></r:Label><VariableRepresentation><NumericRepresentation><NumberRange>
<Low>16</Low><High>99</High></NumberRange></NumericRepresentation></VariableRepresentation></Variable>
<Variable><r:ID>v3</r:ID><VariableName><r:String>LOST</r:String></VariableName>
<VariableRepresentation><CodeRepresentation><r:CodeListReference><r:ID>gone</r:ID>
</r:CodeListReference></CodeRepresentation></VariableRepresentation></Variable>"""


def test_a_ddi_lifecycle_document(tmp_path: Path) -> None:
    form = read(tmp_path, "study.xml", DDI % VARIABLES)
    found = by_name(form)
    assert (found["SEX"].label, labels(found["SEX"])) == ("What is your sex?", ["Female", "Male"])
    assert (found["AGE"].intervals.start, found["AGE"].intervals.stop) == (16, 100)  # type: ignore[union-attr]
    assert list(found) == ["SEX", "AGE"]
    assert form.notes == ("the code list of 'LOST' is not in the document: it is left out.",)
    found = by_name(read(tmp_path, "study.xml", DDI % ""))
    assert list(found) == ["qsex", "qboth.1", "qboth.2"]


PLAIN = """# Intake form

Please fill in all questions.

## About you
1. What is your sex?
   ( ) Female
   ( ) Male
2. Date of birth (dd/mm/yyyy): ________
3. Which of these languages do you speak?
   - [ ] English
   - [ ] Welsh
   - [ ] Other
Marital status: ( ) Single ( ) Married
**Are you a veteran?**
* Yes
* No

How many children do you have? ____
Your first name: ____
"""


@pytest.mark.parametrize("name", ["intake.md", "intake.txt"])
def test_a_plain_questionnaire(tmp_path: Path, name: str) -> None:
    found = list(read(tmp_path, name, PLAIN).fields)
    assert [one.label for one in found] == [
        "What is your sex?", "Date of birth (dd/mm/yyyy)",
        *(f"Which of these languages do you speak?: {o}" for o in ("English", "Welsh", "Other")),
        "Marital status", "Are you a veteran?", "How many children do you have?",
        "Your first name",
    ]  # fmt: skip
    assert labels(found[0]) == ["Female", "Male"]
    assert found[0].path == "About you/q1"
    assert found[1].intervals.unit == "day"  # type: ignore[union-attr]
    assert labels(found[5]) == ["Single", "Married"]
    assert found[6].categories == YES_NO
    assert found[7].intervals.scale == "number"  # type: ignore[union-attr]
    assert found[8].identifier == "name"


def test_text_without_questions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("just prose\nand more\n")
    with pytest.raises(FileError, match="must hold questions"):
        read_forms(path)


_LIST = [
    "Variable;Question;Options;Type",
    "sex;Sex;1 = Female|2 = Male;single",
    "race;Race;White|Black;multiple",
    "dob;Date of birth;;date",
    "kids;Number of children;;integer",
    ";;;",
    "vet;Veteran?;Yes|No;single",
    "job;Occupation;;text",
]
LISTED = "\n".join(_LIST)


def test_a_list_of_questions(tmp_path: Path) -> None:
    found = by_name(read(tmp_path, "list.csv", LISTED))
    assert list(found) == ["sex", "race.White", "race.Black", "dob", "kids", "vet", "job"]
    assert [one.code for one in found["sex"].categories] == ["1", "2"]
    assert found["dob"].intervals.scale == "date"  # type: ignore[union-attr]
    assert found["kids"].intervals.stop == 101  # type: ignore[union-attr]
    assert found["vet"].categories == YES_NO
    assert found["job"].intervals is None
