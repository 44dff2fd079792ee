"""Forms read from a file of any known kind, and a clear word if it cannot be."""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from keyhole.core.names import shown
from keyhole.core.options import Problem
from keyhole.data.codebook import is_census, local_name
from keyhole.environment.importers import opening
from keyhole.environment.importers.fields import FormReading
from keyhole.environment.model import COLLECTION_METHODS, CapturedForm, Form
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, InputError, OptionError

# The kinds of files, and what reads the fields (or the forms) of each, in a module beside this one.
_READERS = {
    "json schema": "json_schema.read_json_schema",
    "redcap": "dictionaries.read_redcap",
    "xlsform": "dictionaries.read_xlsform",
    "limesurvey": "dictionaries.read_limesurvey",
    "surveyjs": "questionnaires.read_surveyjs",
    "eq": "questionnaires.read_eq",
    "ddi": "codebooks.read_ddi",
    "labels": "microdata.read_statistical_labels",
    "sdmx": "codebooks.read_sdmx",
    "table": "table.read_forms_table",
    "questions": "questionnaires.read_listed",
    "plain": "questionnaires.read_plain",
}
KINDS = tuple(_READERS)
_ATTRIBUTES = tuple(one.name for one in dataclasses.fields(Form) if one.name != "fields")
_TEXTS = (".csv", ".tsv", ".tab", ".txt")
_STATISTICAL = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
_ROOTS = {
    "ddi": ("codeBook", "DDIInstance", "FragmentInstance", "ResourcePackage", "StudyUnit"),
    "sdmx": ("Structure", "Codelists", "Codelist"),
    "limesurvey": ("document",),
}


def read_forms(
    path: str | os.PathLike[str],
    kind: str | None = None,
    *,
    encoding: str | None = None,
    **attributes: Any,
) -> tuple[CapturedForm, ...]:
    """Read the forms that a file describes.

    Parameters
    ----------
    path
        The file: JSON Schema, an ONS eQ or SurveyJS questionnaire, a LimeSurvey structure, a
        REDCap dictionary, XLSForm, DDI-Codebook or DDI-Lifecycle, an SPSS, Stata or SAS
        file (its labels), SDMX code lists, our own table in CSV or Excel, a list of questions
        in CSV or Excel, or a plain questionnaire in text or Markdown.
    kind
        Which of them, if it is not to be found out: ``json schema``, ``redcap``, ``xlsform``,
        ``limesurvey``, ``surveyjs``, ``eq``, ``ddi``, ``labels``, ``sdmx``, ``table``,
        ``questions`` or ``plain``.
    encoding
        The encoding of a text file that does not tell.
    **attributes
        What else is known of the form (``organisation``, ``sector``, ``purpose``,
        ``method``, ``collected`` …); it goes before what the file says. ``name`` is for a
        file with one form.

    Returns
    -------
    tuple of CapturedForm
        What the file asks, before anybody said which constructs these are. Fields that cannot be
        read are left out, and noted.

    Raises
    ------
    InputError
        With everything that is wrong with the file, or with what was said of it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "claim.json"
    >>> _ = path.write_text('{"properties": {"sex": {"enum": ["F", "M"]}}}')
    >>> (form,) = read_forms(path, organisation="Agency")
    >>> form.form.name, form.form.organisation, form.fields[0].label
    ('claim', 'Agency', 'sex')
    """
    known = _checked(attributes)
    file = Path(path)
    if kind is not None and kind not in KINDS:
        raise OptionError(f"kind must be one of {', '.join(KINDS)}. Got {kind!r} instead.")
    try:
        module, _, name = _READERS[kind or _detect(file, encoding)].partition(".")
        reader = getattr(import_module(f"{__package__}.{module}"), name)
        reading = FormReading(Form(file.stem))
        found = reader(file, encoding, reading)
        forms = found if isinstance(found, tuple) else (reading.captured(found),)
    except RecursionError:
        raise FileError(f"{file.name!r} is nested too deeply to be a form.") from None
    except InputError as error:
        problems = (one if file.name in one else f"{file.name!r}: {one}" for one in error.problems)
        kind_of_error = FileError if type(error) is InputError else type(error)
        raise kind_of_error(problems) from None
    if len(forms) > 1 and "name" in known:
        raise OptionError(f"name must be left out, for {file.name!r} has {len(forms)} forms.")
    return tuple(
        dataclasses.replace(one, form=dataclasses.replace(one.form, **known)) for one in forms
    )


def _checked(attributes: Mapping[str, Any]) -> dict[str, Any]:
    allowed = ", ".join(_ATTRIBUTES)
    unknown = (name for name in attributes if name not in _ATTRIBUTES)
    problems = [f"{name} must be one of {allowed}." for name in unknown]
    known = {name: value for name, value in attributes.items() if value is not None}
    if known.get("method", COLLECTION_METHODS[0]) not in COLLECTION_METHODS:
        problems.append(
            f"method must be one of {', '.join(COLLECTION_METHODS)}. "
            f"Got {shown(str(known['method']))} instead."
        )
    if isinstance(day := known.get("collected"), str):
        try:
            known["collected"] = datetime.date.fromisoformat(day)
        except ValueError:
            problems.append(f"collected must be a day, as 2024-05-31. Got {shown(day)} instead.")
    require_none(problems, OptionError)
    return known


def _detect(path: Path, encoding: str | None) -> str:
    """Tell the kind of a file by its extension, and by what it holds where several have it."""
    from keyhole.environment.importers.dictionaries import is_limesurvey, is_redcap
    from keyhole.environment.importers.questionnaires import is_eq, is_listed, is_surveyjs

    suffix = path.suffix.lower()
    if suffix in _STATISTICAL:
        return "labels"
    if suffix in (".md", ".markdown"):
        return "plain"
    if suffix == ".json":
        document = opening.open_json(path, encoding)
        return "eq" if is_eq(document) else "surveyjs" if is_surveyjs(document) else "json schema"
    if suffix in (".xml", ".lss"):
        name = local_name(opening.open_xml(path))
        for kind, roots in _ROOTS.items():
            if name in roots:
                return kind
        raise FileError(
            f"{path.name!r} must be a DDI codebook ('codeBook' or 'DDIInstance'), an SDMX "
            f"structure ('Structure') or a LimeSurvey structure ('document'). Got {shown(name)} "
            f"instead."
        )
    if suffix not in (*_TEXTS, *opening.WORKBOOKS):
        raise FileError(
            f"{path.name!r} must end in .json, .xml, .lss, .csv, .txt, .md, .xlsx, .xls, "
            f"{', '.join(_STATISTICAL)}. Got {suffix or 'no extension'} instead: rename it, or say "
            f"its kind."
        )
    if suffix in opening.WORKBOOKS and "survey" in opening.sheets(path):
        return "xlsform"
    cells, rows = list[list[str]](), list[opening.SheetRow]()
    try:
        cells = opening.read_cells(path, encoding)
        rows = [] if is_census(cells) else opening.named_rows(cells, path.name)
    except FileError:
        if suffix != ".txt":
            raise
    columns = frozenset(rows[0].cells) if rows else frozenset()
    labels = {"name", "code", "category"} <= columns and not {"form", "field"} & columns
    if labels or is_census(cells):
        template = (
            "{0!r} must describe a form. Got labels of a file's columns instead: give it as "
            "{labels} beside that file, with {as_} target (read_labels and capture_microdata in "
            "Python)."
        )
        raise FileError(Problem(template, path.name))
    if is_redcap(columns):
        return "redcap"
    if is_limesurvey(columns):
        return "limesurvey"
    if "field" not in columns and is_listed(columns):
        return "questions"
    return "plain" if suffix == ".txt" and "field" not in columns else "table"
