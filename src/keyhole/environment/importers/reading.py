"""Read the forms of a file, whatever it is, and say once and clearly if it cannot be."""

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
from keyhole.environment.importers import opening
from keyhole.environment.importers.statistical import READERS
from keyhole.environment.model import COLLECTION_METHODS, CapturedForm, Form
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, InputError, OptionError

# The kinds of files, and what reads each from a path and an encoding, in a module beside this one.
_READERS = {
    "json schema": "json_schema.read_json_schema",
    "redcap": "redcap.read_redcap",
    "xlsform": "xlsform.read_xlsform",
    "ddi": "ddi.read_ddi",
    "labels": "statistical.read_statistical_labels",
    "sdmx": "sdmx.read_sdmx",
    "table": "table.read_forms_table",
}
KINDS = tuple(_READERS)
_ATTRIBUTES = tuple(one.name for one in dataclasses.fields(Form) if one.name != "fields")
_TEXTS = (".csv", ".tsv", ".tab", ".txt")


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
        The file: JSON Schema, REDCap dictionary, XLSForm, DDI-Codebook, SPSS, Stata or SAS
        file (its labels), SDMX code lists, or our own table in CSV or Excel.
    kind
        Which of them, if it is not to be found out: ``json schema``, ``redcap``,
        ``xlsform``, ``ddi``, ``labels``, ``sdmx`` or ``table``.
    encoding
        The encoding of a text file that does not tell.
    **attributes
        What else is known of the form (``organisation``, ``sector``, ``purpose``,
        ``method``, ``collected`` …); it goes before what the file says. ``name`` is for a
        file with one form.

    Returns
    -------
    tuple of CapturedForm
        What the file asks, before anybody said which constructs these are.

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
    if suffix in READERS:
        return "labels"
    if suffix == ".json":
        return "json schema"
    if suffix == ".xml":
        return _xml_kind(path)
    if suffix == ".xlsx":
        return "xlsform" if "survey" in opening.sheets(path) else _table_kind(path, encoding)
    if suffix in _TEXTS:
        return _table_kind(path, encoding)
    raise FileError(
        f"{path.name!r} must end in .json, .xml, .csv, .xlsx, {', '.join(READERS)}. "
        f"Got {suffix or 'no extension'} instead: rename it, or say its kind."
    )


def _xml_kind(path: Path) -> str:
    name = opening.local_name(opening.open_xml(path))
    if name == "codeBook":
        return "ddi"
    if name in ("Structure", "Codelists", "Codelist"):
        return "sdmx"
    raise FileError(
        f"{path.name!r} must be a DDI-Codebook ('codeBook') or an SDMX structure ('Structure'). "
        f"Got {shown(name)} instead."
    )


def _table_kind(path: Path, encoding: str | None) -> str:
    from keyhole.environment.importers.microdata import is_census
    from keyhole.environment.importers.redcap import is_redcap

    rows: list[opening.SheetRow] = []
    labels = path.suffix.lower() in _TEXTS and is_census(opening.read_cells(path, encoding))
    if not labels:
        rows = opening.read_sheet(path, encoding)
    columns = frozenset(rows[0].cells) if rows else frozenset()
    if labels or ({"name", "code", "category"} <= columns and not {"form", "field"} & columns):
        template = (
            "{0!r} must describe a form. Got labels of a file's columns instead: give it as "
            "{labels} beside that file, with {as_} target (read_labels and capture_microdata in "
            "Python)."
        )
        raise FileError(Problem(template, path.name))
    return "redcap" if is_redcap(columns) else "table"
