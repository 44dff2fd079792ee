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
from keyhole.environment.model import COLLECTION_METHODS, CapturedForm, Form
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, InputError, OptionError

# The kinds of files, and what reads each from a path and an encoding, in a module beside this one.
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
        forms: tuple[CapturedForm, ...] = reader(file, encoding)
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
    problems = [
        f"{name} must be one of {', '.join(_ATTRIBUTES)}."
        for name in attributes
        if name not in _ATTRIBUTES
    ]
    known = {name: value for name, value in attributes.items() if value is not None}
    if known.get("method", COLLECTION_METHODS[0]) not in COLLECTION_METHODS:
        problems.append(
            f"method must be one of {', '.join(COLLECTION_METHODS)}. "
            f"Got {shown(str(known['method']))} instead."
        )
    if isinstance(known.get("collected"), str):
        try:
            known["collected"] = datetime.date.fromisoformat(known["collected"])
        except ValueError:
            problems.append(
                f"collected must be a day, as 2024-05-31. Got {shown(known['collected'])} instead."
            )
    require_none(problems, OptionError)
    return known


def _detect(path: Path, encoding: str | None) -> str:
    suffix = path.suffix.lower()
    if suffix in _STATISTICAL:
        return "labels"
    if suffix == ".json":
        return _json_kind(path, encoding)
    if suffix in (".xml", ".lss"):
        return _xml_kind(path)
    if suffix in opening.WORKBOOKS:
        return "xlsform" if "survey" in opening.sheets(path) else _table_kind(path, encoding)
    if suffix in (".md", ".markdown"):
        return "plain"
    if suffix in _TEXTS:
        return _table_kind(path, encoding)
    raise FileError(
        f"{path.name!r} must end in .json, .xml, .lss, .csv, .txt, .md, .xlsx, .xls, "
        f"{', '.join(_STATISTICAL)}. Got {suffix or 'no extension'} instead: rename it, or say its "
        f"kind."
    )


def _json_kind(path: Path, encoding: str | None) -> str:
    from keyhole.environment.importers.questionnaires import is_eq, is_surveyjs

    document = opening.open_json(path, encoding)
    if is_eq(document):
        return "eq"
    return "surveyjs" if is_surveyjs(document) else "json schema"


def _xml_kind(path: Path) -> str:
    name = local_name(opening.open_xml(path))
    for kind, roots in _ROOTS.items():
        if name in roots:
            return kind
    raise FileError(
        f"{path.name!r} must be a DDI codebook ('codeBook' or 'DDIInstance'), an SDMX structure "
        f"('Structure') or a LimeSurvey structure ('document'). Got {shown(name)} instead."
    )


def _table_kind(path: Path, encoding: str | None) -> str:
    from keyhole.environment.importers.dictionaries import is_limesurvey, is_redcap
    from keyhole.environment.importers.questionnaires import is_listed

    written, rows = path.suffix.lower() in _TEXTS, list[opening.SheetRow]()
    labels = False
    try:
        labels = written and is_census(opening.read_cells(path, encoding))
        rows = [] if labels else opening.read_sheet(path, encoding)
    except FileError:
        if path.suffix.lower() != ".txt":
            raise
    columns = frozenset(rows[0].cells) if rows else frozenset()
    if labels or ({"name", "code", "category"} <= columns and not {"form", "field"} & columns):
        template = (
            "{0!r} must describe a form. Got labels of a file's columns instead: give it as "
            "{labels} beside that file, with {as_} target (read_labels and capture_microdata in "
            "Python)."
        )
        raise FileError(Problem(template, path.name))
    kinds = {"redcap": is_redcap(columns), "limesurvey": is_limesurvey(columns)}
    kinds["table"] = "field" in columns
    kinds["questions"] = is_listed(columns)
    kinds["plain"] = path.suffix.lower() == ".txt"
    return next((kind for kind, fits in kinds.items() if fits), "table")
