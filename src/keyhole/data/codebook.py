"""Codebooks: labels of columns and of values, from a file beside the data.

=====================  ==========================================================================
``.csv``               a dictionary of the Census Bureau (rows ``NAME`` and ``VAL``), or a table
                       with the columns ``name,label,code,category``
``.xml``               DDI-Codebook, with its namespace or without
``.sps``, ``.do``      ``VARIABLE LABELS`` and ``VALUE LABELS`` of SPSS, ``label`` of Stata
``.json``              by column a ``label`` (or ``description``) and ``values`` by code
=====================  ==========================================================================

A codebook labels; which values are missing it does not decide.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.core.toml import is_deep, open_utf8
from keyhole.data.columns import Variable
from keyhole.data.missing import blank, text_forms
from keyhole.errors import FileError

LARGEST = 1 << 26
# Of a column with more values than this, codes in a range are not labelled one by one.
MOST_LEVELS = 10_000
_DEEPEST = 200
_LARGEST_CELL = 1 << 20
_CENSUS = ("NAME", "VAL")
LABEL_COLUMNS = ("name", "label", "code", "category")


@dataclass(slots=True)
class ColumnLabels:
    """The label of a column, of its codes as text, of a blank value, and of ranges of codes."""

    label: str = ""
    codes: dict[str, str] = field(default_factory=dict)
    blank: str = ""
    ranges: list[tuple[str, str, str]] = field(default_factory=list)

    def apply(self, variable: Variable, series: pl.Series) -> Variable:
        """Return what is known of a column with its labels; codes are matched as text or number.

        Numbers all of which have labels are codes, and no measure.
        """
        label = variable.label or self.label
        if not (self.codes or self.ranges) or series.dtype.is_nested():
            return replace(variable, label=label)
        by_form = {form: text for code, text in self.codes.items() for form in _forms(code)}
        seen = blank(series, variable).drop_nulls().unique()
        # What tells nearly every record apart is a number of it, and no code.
        many = len(seen) > min(MOST_LEVELS, len(series) / 2)
        found = {}
        for level in seen.head(MOST_LEVELS).to_list():
            text = next((by_form[form] for form in _forms(level) if form in by_form), "")
            for low, high, meant in () if text or many else self.ranges:
                # Never the bare code, but with what the range says that it lies in.
                code = str(level).zfill(len(low)) if str(level).isdigit() else str(level)
                if len(code) == len(low) and low <= code <= high:
                    text = text or f"{code} ({meant})"
            if text:
                found[level] = text
        kind = variable.kind
        if kind == "measure" and 0 < len(found) == len(seen) and not series.dtype.is_float():
            kind = "category"
        known = {**found, **variable.value_labels}
        return replace(variable, label=label, kind=kind, value_labels=known)


def _forms(code: Any) -> set[str]:
    """Return the texts by which a code is known: 01 is 1 too."""
    text = str(code).strip()
    bare = text.lstrip("0") or "0" if text.isdigit() else text
    return {text, *text_forms([bare])}


Codebook = Mapping[str, ColumnLabels]


def read_codebook(path: str | Path) -> Codebook:
    """Read the labels that a codebook holds, by column; its extension says what it is."""
    file = Path(path)
    read = _READERS.get(file.suffix.lower())
    if read is None:
        raise FileError(
            f"the codebook {file.name!r} must be a {', '.join(_READERS)} file. Got "
            f"{file.suffix or 'no extension'} instead."
        )
    text = open_utf8(file, where=f"the codebook {file.name!r}", largest=LARGEST)
    found: dict[str, ColumnLabels] = {}
    for name, label, code, words in read(text, f"the codebook {file.name!r}"):
        about = found.setdefault(name, ColumnLabels())
        about.label = about.label or label
        if isinstance(code, tuple):
            about.ranges += [] if (*code, words) in about.ranges else [(*code, words)]
        elif code and words:
            about.codes.setdefault(code, words)
    if not found:
        raise FileError(
            f"the codebook {file.name!r} labels no column. Check that it is what its extension "
            f"says."
        )
    return found


# A column with its label, or with a code, or a range of codes, and what it means.
Entry = tuple[str, str, str | tuple[str, str], str]


def delimited_cells(text: str, where: str, *, strict: bool = True) -> Iterator[list[str]]:
    """Give the rows of delimited text; its first line tells the delimiter."""
    delimiter = max(",;\t|", key=text.partition("\n")[0].count)
    before = csv.field_size_limit(_LARGEST_CELL)
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
    except csv.Error:
        raise FileError(
            f"{where} must be delimited text with whole quotes and cells of at most "
            f"{_LARGEST_CELL:,} characters. Got something else instead: save it as CSV again."
        ) from None
    finally:
        csv.field_size_limit(before)


def is_census(rows: Sequence[Sequence[str]]) -> bool:
    """Tell a dictionary of the Census Bureau: each row says NAME or VAL, and has no header."""
    return bool(rows) and all(row[0] in _CENSUS and len(row) >= 5 for row in rows if any(row))


def label_rows(rows: Sequence[Sequence[str]], where: str) -> Iterator[tuple[int, Entry]]:
    """Give the entries of a dictionary of the Census Bureau or of a table, with their rows.

    Without a code, the category says what a blank value means.
    """
    kept = [(n, [*map(str.strip, row)]) for n, row in enumerate(rows, 1) if any(row)]
    if is_census(rows):
        yield from _census_rows(kept)
        return
    header = [cell.lower() for cell in kept[0][1]] if kept else []
    if not set(LABEL_COLUMNS) <= set(header):
        raise FileError(
            f"{where} must have the columns {', '.join(LABEL_COLUMNS)}, or rows NAME and VAL as "
            f"those of the Census Bureau have. Got others instead."
        )
    column = ""
    for number, row in kept[1:]:
        cells = dict(zip(header, row, strict=False))
        column = cells.get("name") or column
        yield number, (column, *(cells.get(name, "") for name in LABEL_COLUMNS[1:]))  # type: ignore[misc]


def _census_rows(rows: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[int, Entry]]:
    """Of a code that comes again the first label counts; one of nothing but b is a blank value."""
    seen = set[tuple[str, str]]()
    for number, row in rows:
        if row[0] == "NAME":
            yield number, (row[1], row[4], "", "")
        elif len(row) > 6 and row[4] == row[5] and (row[1], row[4]) not in seen:
            seen.add((row[1], row[4]))
            yield number, (row[1], "", "" if set(row[4]) == {"b"} else row[4], row[6])
        elif len(row) > 6 and row[2] == "C" and row[4] != row[5]:  # of numbers it says no more
            yield number, (row[1], "", (row[4], row[5]), row[6])


def _csv(text: str, where: str) -> Iterator[Entry]:
    rows = [*delimited_cells(text, where, strict=False)]
    return (entry for _, entry in label_rows(rows, where) if entry[0])


def parse_xml(content: bytes, where: str) -> Any:
    """Read XML without entities of its own making and without anything from elsewhere."""
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
    from defusedxml.ElementTree import iterparse  # type: ignore[import-untyped]

    depth, root = 0, None
    try:
        for event, element in iterparse(io.BytesIO(content), events=("start", "end")):
            depth += 1 if event == "start" else -1
            root = element if root is None else root
            if depth > _DEEPEST:
                raise FileError(f"{where} is nested more than {_DEEPEST} deep: no codebook is.")
    except DefusedXmlException:
        raise FileError(
            f"{where} declares entities or refers to other files, which is not safe to follow. "
            f"Export it as well-formed XML without a DTD of its own."
        ) from None
    except (ParseError, LookupError, ValueError) as error:
        line = getattr(error, "position", (0, 0))[0]
        at = f" at line {line}" if line else ""
        raise FileError(f"{where} must be well-formed XML. It is not{at}.") from None
    return root


def local_name(element: Any) -> str:
    """Return the name of an element of XML without its namespace."""
    return str(element.tag).rpartition("}")[2]


def children(element: Any, name: str) -> Iterator[Any]:
    """Give the children of an element that have a name, whatever their namespace."""
    return (child for child in element if local_name(child) == name)


def own_text(element: Any, *names: str) -> str:
    """Return the text of the first child of one of these names that has any."""
    texts = ("".join(child.itertext()) for name in names for child in children(element, name))
    return next((" ".join(text.split()) for text in texts if text.strip()), "")


def _ddi(text: str, where: str) -> Iterator[Entry]:
    for variable in parse_xml(text.encode(), where).iter():
        column = variable.get("name") if local_name(variable) == "var" else None
        if column:
            yield column, own_text(variable, "labl"), "", ""
            for one in children(variable, "catgry"):
                yield column, "", own_text(one, "catValu"), own_text(one, "labl")


_WORD = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s'"/=,()]+|[/.\n]""")
_COMMENT = re.compile(r"/\*.*?\*/|///[^\n]*\n|^\s*\*[^\n]*$", re.DOTALL | re.MULTILINE)


def _words(text: str, *left_out: str) -> list[str]:
    words = (word.rstrip(".") or word for word in _WORD.findall(text))
    return [word for word in words if word not in left_out]


def _unquoted(word: str) -> str:
    return word[1:-1].replace(word[0] * 2, word[0]).strip() if word[:1] in "'\"" else word


def _spss(text: str, _: str) -> Iterator[Entry]:
    """Read commands up to the full stop that ends each; lists within are set apart by slashes."""
    for command in re.split(r"\.\s*(?:\n|\Z)", _COMMENT.sub("", text)):
        head = re.match(r"(?i)\s*(?:add\s+)?(variable|value)\s+labels\b", command)
        if head is None:
            continue
        words = _words(command[head.end() :], "\n")
        if head[1].lower() == "variable":
            pairs = [word for word in words if word != "/"]
            for name, label in itertools.pairwise(pairs):
                if label[:1] in "'\"" and name[:1] not in "'\"":
                    yield name, _unquoted(label), "", ""
            continue
        for part in map(_words, " ".join(words).split(" / ")):
            # Names, then codes each with its label; texts may be codes.
            first = next((i for i, word in enumerate(part) if word[:1] in "'\""), 0)
            coded = re.fullmatch(r"-?[\d.]+", part[first - 1]) if first else None
            names, rest = part[: first - bool(coded)], part[first - bool(coded) :]
            for code, label in zip(rest[::2], rest[1::2], strict=False):
                yield from ((name, "", _unquoted(code), _unquoted(label)) for name in names)


def _stata(text: str, _: str) -> Iterator[Entry]:
    """Read ``label variable``, ``label define`` and ``label values``, in any order."""
    ended = ";" if re.search(r"(?m)^\s*#delimit\s*;", text) else "\n"
    plain = _COMMENT.sub(" ", text).replace("\n", " " if ended == ";" else "\n")
    defined: dict[str, list[tuple[str, str]]] = {}
    used: list[tuple[str, str]] = []
    for line in plain.split(ended):
        words = _words(line, "/", "\n")
        while words and words[0] in ("capture", "cap", "quietly", "qui", "noisily"):
            words = words[1:]
        if len(words) < 4 or not "label".startswith(words[0]) or len(words[0]) < 2:
            continue
        what, name, *rest = words[1:]
        if "variable".startswith(what) and len(what) > 2:
            yield name, _unquoted(rest[0]), "", ""
        elif "define".startswith(what):
            pairs = zip(rest[::2], rest[1::2], strict=False)
            listed = defined.setdefault(name, [])
            listed += [(code, _unquoted(label)) for code, label in pairs if label[:1] in "'\""]
        elif "values".startswith(what) and len(what) > 2:
            *more, labels = [word for word in (name, *rest) if word != "nofix"]
            used += [(column, labels) for column in more]
    for column, labels in used:
        yield from ((column, "", code, label) for code, label in defined.get(labels, ()))


def _json(text: str, where: str) -> Iterator[Entry]:
    read: Any = None
    with suppress(ValueError, RecursionError):
        read = json.loads(text)
    listed = read.get("variables", read) if isinstance(read, dict) and not is_deep(read) else None
    if isinstance(listed, list):
        listed = {str(one.get("name", "")): one for one in listed if isinstance(one, dict)}
    if not isinstance(listed, dict):
        raise FileError(
            f"{where} must be a JSON object with an object for each column, such as "
            f'{{"sex": {{"label": "Sex", "values": {{"1": "Male"}}}}}}.'
        )
    for column, about in listed.items():
        if isinstance(about, dict):
            label = next((about[key] for key in ("label", "description") if key in about), "")
            values = about.get("values", {})
            yield column, str(label), "", ""
            if isinstance(values, dict):
                yield from ((column, "", str(code), str(words)) for code, words in values.items())


_READERS: dict[str, Callable[[str, str], Iterator[Entry]]] = {
    ".csv": _csv,
    ".xml": _ddi,
    ".sps": _spss,
    ".do": _stata,
    ".json": _json,
}
