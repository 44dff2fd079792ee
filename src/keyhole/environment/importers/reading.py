"""Files that describe forms: their kind is detected, and they are opened with limits.

Text, JSON and XML are read whole, sheets as rows of text cells. What reads the fields of each kind
stands in the modules beside this one.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import json
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from keyhole.core.names import shown
from keyhole.core.options import Problem
from keyhole.core.toml import open_bytes
from keyhole.data.codebook import delimited_cells, is_census, local_name, parse_xml
from keyhole.data.excel import open_workbook
from keyhole.data.guarding import ask_reader
from keyhole.data.text import decoded_blocks, text_encoding
from keyhole.environment.exchange import decode_attributes, parse_json
from keyhole.environment.importers.fields import FormReading
from keyhole.environment.model import CapturedForm, Form
from keyhole.environment.wording import require_none
from keyhole.errors import FileError, InputError, OptionError

# The kinds of files, and what reads the fields (or the forms) of each.
_READERS = {
    "json schema": "json_schema.read_json_schema",
    "redcap": "questionnaires.read_redcap",
    "xlsform": "questionnaires.read_xlsform",
    "limesurvey": "questionnaires.read_limesurvey",
    "surveyjs": "questionnaires.read_surveyjs",
    "eq": "questionnaires.read_eq",
    "ddi": "codebooks.read_ddi",
    "labels": "codebooks.read_statistical_labels",
    "sdmx": "codebooks.read_sdmx",
    "table": "table.read_forms_table",
    "questions": "questionnaires.read_listed",
    "plain": "questionnaires.read_plain",
}
KINDS = tuple(_READERS)
_TEXTS = (".csv", ".tsv", ".tab", ".txt")
_STATISTICAL = (".sav", ".zsav", ".dta", ".sas7bdat", ".xpt")
_ALONE = dict.fromkeys(_STATISTICAL, "labels") | dict.fromkeys((".md", ".markdown"), "plain")
WORKBOOKS = (".xlsx", ".xls")
_ROOTS = {
    "ddi": ("codeBook", "DDIInstance", "FragmentInstance", "ResourcePackage", "StudyUnit"),
    "sdmx": ("Structure", "Codelists", "Codelist"),
    "limesurvey": ("document",),
}
MOST_BYTES = 256 << 20


def read_forms(
    path: str | os.PathLike[str],
    kind: str | None = None,
    *,
    encoding: str | None = None,
    **attributes: Any,
) -> tuple[CapturedForm, ...]:
    """Read the forms that a file describes.

    `kind` is detected by default: ``json schema``, ``redcap``, ``xlsform``, ``limesurvey``,
    ``surveyjs``, ``eq`` (ONS), ``ddi`` (Codebook or Lifecycle), ``labels`` (of an SPSS, Stata or
    SAS file), ``sdmx`` (code lists), ``table`` (our own, in CSV or Excel), ``questions`` (a list in
    CSV or Excel) or ``plain`` (text or Markdown). `encoding` is for a text file that does not tell
    its own. `attributes` are what else is known of the form (``organisation``, ``sector``,
    ``purpose``, ``method``, ``collected`` …); they go before what the file says, and ``name`` is
    for a file with one form.

    Fields that cannot be read are left out, and noted. An `InputError` tells everything that is
    wrong with the file, or with what was said of it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "claim.json"
    >>> _ = path.write_text('{"properties": {"sex": {"enum": ["F", "M"]}}}')
    >>> (form,) = read_forms(path, organisation="Agency")
    >>> form.form.name, form.form.organisation, form.fields[0].label
    ('claim', 'Agency', 'sex')
    """
    given = {name: value for name, value in attributes.items() if value is not None}
    if isinstance(given.get("collected"), datetime.date):
        given["collected"] = str(given["collected"])
    unfit: list[str] = []
    known = decode_attributes(Form, given, unfit)
    require_none((problem.lstrip(".") for problem in unfit), OptionError)
    file = Path(path)
    if kind is not None and kind not in KINDS:
        raise OptionError(f"kind must be one of {', '.join(KINDS)}. Got {kind!r} instead.")
    try:
        module, _, name = _READERS[kind or _detect(file, encoding)].partition(".")
        reading = FormReading(Form(file.stem))
        found = getattr(import_module(f"{__package__}.{module}"), name)(file, encoding, reading)
        forms = found if isinstance(found, tuple) else (reading.captured(found),)
    except InputError as error:
        problems = (one if file.name in one else f"{file.name!r}: {one}" for one in error.problems)
        raise (FileError if type(error) is InputError else type(error))(problems) from None
    if len(forms) > 1 and "name" in known:
        raise OptionError(f"name must be left out, since {file.name!r} has {len(forms)} forms.")
    return tuple(
        dataclasses.replace(one, form=dataclasses.replace(one.form, **known)) for one in forms
    )


def _detect(path: Path, encoding: str | None) -> str:
    """Tell the kind of a file by its extension, and by what it holds where several have it."""
    from keyhole.environment.importers import questionnaires as known

    suffix = path.suffix.lower()
    if suffix in _ALONE:
        return _ALONE[suffix]
    if suffix == ".json":
        return known.kind_of_json(open_json(path, encoding))
    if suffix in (".xml", ".lss"):
        root = local_name(open_xml(path))
        if kind := next((kind for kind, roots in _ROOTS.items() if root in roots), ""):
            return kind
        raise FileError(
            f"{path.name!r} must be a DDI codebook ('codeBook' or 'DDIInstance'), an SDMX "
            f"structure ('Structure') or a LimeSurvey structure ('document'). Got {shown(root)} "
            f"instead."
        )
    if suffix not in (*_TEXTS, *WORKBOOKS):
        raise FileError(
            f"{path.name!r} must end in .json, .xml, .lss, .csv, .txt, .md, .xlsx, .xls, "
            f"{', '.join(_STATISTICAL)}. Got {suffix or 'no extension'} instead: rename it, or say "
            f"its kind."
        )
    if suffix in WORKBOOKS and "survey" in sheets(path):
        return "xlsform"
    cells, rows = list[list[str]](), list[SheetRow]()
    try:
        cells = read_cells(path, encoding)
        rows = [] if is_census(cells) else named_rows(cells, path.name)
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
    plain = "plain" if suffix == ".txt" and "field" not in columns else "table"
    return known.kind_of_columns(columns) or plain


# --- opening -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class SheetRow:
    """A row of a table: its number in the file, and its cells by column name."""

    number: int
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")


def _content(path: Path) -> bytes:
    """Read a file of reasonable size, or say why it cannot be."""
    content = open_bytes(path, largest=MOST_BYTES, wanted="a form, a codebook or a list of labels")
    if not content.strip():
        raise FileError(f"{path.name!r} is empty. Give a file that describes a form.")
    return content


def decoded_text(path: Path, encoding: str | None = None) -> str:
    """Read a text file; a byte order mark tells its encoding, else it is UTF-8 or as said."""
    content = _content(path)
    used, mark = text_encoding(content[:8], encoding)
    text = "".join(decoded_blocks([content[len(mark) :]], used, path.name))
    if "\0" in text:
        raise FileError(f"{path.name!r} holds NUL characters: it is not text. Export it again.")
    return text


def open_json(path: Path, encoding: str | None = None) -> dict[str, Any]:
    """Read an object of JSON; what is none, or nested without end, is refused with the place."""
    document = parse_json(decoded_text(path, encoding), path.name)
    if not isinstance(document, dict):
        raise FileError(f"{path.name!r} must hold one object, in {{ and }}. Export the form again.")
    return document


def mapping(value: Any) -> Mapping[Any, Any]:
    """Return an object of JSON; what is none holds nothing."""
    return value if isinstance(value, Mapping) else {}


def open_xml(path: Path) -> Any:
    """Read XML without entities of its own making and without anything from elsewhere."""
    return parse_xml(_content(path), repr(path.name))


def read_cells(path: Path, encoding: str | None = None) -> list[list[str]]:
    """Read a CSV file, or the first sheet of a workbook, as rows of cells."""
    if path.suffix.lower() in WORKBOOKS:
        return next(iter(_workbook(path).values()))
    return [*delimited_cells(decoded_text(path, encoding), repr(path.name))]


def read_sheet(path: Path, encoding: str | None = None) -> list[SheetRow]:
    """Read a CSV file or a first sheet as rows of trimmed text; columns in lower case."""
    return named_rows(read_cells(path, encoding), path.name)


def sheets(path: Path) -> dict[str, list[SheetRow]]:
    """Read all sheets of a workbook as rows, by name in lower case."""
    found = _workbook(path).items()
    return {name.strip().lower(): named_rows(rows, f"{path.name} ({name})") for name, rows in found}


def _workbook(path: Path) -> dict[str, list[list[str]]]:
    try:
        with zipfile.ZipFile(io.BytesIO(_content(path))) as packed:
            size = sum(one.file_size for one in packed.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        size = 0  # the reader says what is wrong with it
    if size > 2 * MOST_BYTES:
        raise FileError(
            f"{path.name!r} unpacks to more than {2 * MOST_BYTES >> 20} MB. Give a form, not data."
        )
    found: dict[str, list[list[str]]] = json.loads(
        ask_reader(f"{__name__}:answer_sheets", path, "Excel", {})
    )
    return found


def answer_sheets(given: Mapping[str, Any]) -> bytes:
    """Read all cells of a workbook, in the process of its own."""
    how: Any = {"header_row": None, "dtypes": "string", "skip_rows": 0}
    with open_workbook(Path(given["path"])) as book:
        frames = {name: book.load_sheet(name, **how).to_polars() for name in book.sheet_names}
    cells = {name: frame.fill_null("").rows() for name, frame in frames.items()}
    return json.dumps(cells).encode()


def named_rows(rows: Iterable[Sequence[str]], where: str) -> list[SheetRow]:
    """Return rows by the names that the first has, but for those that are blank."""
    trimmed = ((n, [cell.strip() for cell in cells]) for n, cells in enumerate(rows, 1))
    kept = [(number, cells) for number, cells in trimmed if any(cells)]
    header = [cell.lower() for cell in kept[0][1]] if kept else []
    long = (number for number, cells in kept if any(cells[len(header) :]))
    told = (f"{where!r}, row {number}, has more cells than the header." for number in long)
    require_none(told, FileError)
    if len(set(header) - {""}) < sum(map(bool, header)):
        raise FileError(f"{where!r} has columns of the same name. Rename or delete one.")
    return [SheetRow(n, dict(zip(header, cells, strict=False))) for n, cells in kept[1:]]


def require_headings(rows: Sequence[SheetRow], wanted: Sequence[str], where: str) -> None:
    """Name the columns that are not there."""
    if not rows:
        raise FileError(f"{where!r} has no rows under a header. Give a file that describes a form.")
    absent = [column for column in wanted if column not in rows[0].cells]
    if absent:
        raise FileError(
            f"{where!r} must have the columns {', '.join(wanted)}. "
            f"Got none of the name {', '.join(absent)} instead."
        )
