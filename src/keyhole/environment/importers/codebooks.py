"""Codebooks in XML: DDI-Codebook (1.2 to 2.5), DDI-Lifecycle (3.x) and SDMX 2.1 code lists.

Elements are found by their local names, wherever an archive put them. Counts and extremes of
the records (``catStat``, ``sumStat``) are not read. SDMX codes with parents are codings with maps
to coarser ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from keyhole.core.names import shown
from keyhole.environment.codings.categories import CodingName
from keyhole.environment.importers.bands import (
    bounded_numbers,
    dates,
    number_intervals,
    parse_day,
    tidy,
    usual_numbers,
)
from keyhole.environment.importers.fields import (
    capture,
    captured_form,
    category_kind,
    readable,
    split_choices,
    titled,
)
from keyhole.environment.importers.opening import children, local_name, open_xml
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    Category,
    CategoryMap,
    Coding,
    Form,
    Intervals,
)
from keyhole.environment.wording import require_none
from keyhole.errors import FileError
from keyhole.screening.identifiers import words

_WIDE = 3  # a range with this many times more numbers than labels is a scale, not a list
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def _text(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _all(element: Any, *names: str) -> Iterator[Any]:
    return (one for one in element.iter() if local_name(one) in names)


def _first(element: Any, *names: str) -> str:
    """Return the text of the first part of one of these names that has any, however deep."""
    return next((text for one in _all(element, *names) if (text := _text(one))), "")


def _own(element: Any, *names: str) -> str:
    """Return the text of the first child of one of these names that has any."""
    texts = (_text(child) for name in names for child in children(element, name))
    return next((text for text in texts if text), "")


def _number(text: str) -> float | None:
    try:
        return tidy(float(text), 15) if abs(float(text)) <= 1e15 else None
    except ValueError:
        return None


# --- DDI-Codebook ------------------------------------------------------------------------------


def read_ddi(path: Path, _: str | None = None) -> tuple[CapturedForm, ...]:
    """Read the variables of a codebook, or the variables or questions of a DDI 3 document."""
    root, name = open_xml(path), path.stem
    if local_name(root) != "codeBook":
        return _lifecycle(root, name)
    variables = [*_all(root, "var")]
    if not variables:
        raise FileError(f"{name!r} must have variables ('var' in 'dataDscr'). Got none instead.")
    notes: dict[str, None] = {}
    fields = [_variable(one, place, notes) for place, one in enumerate(variables, 1)]
    days = (one.get("date", "") for one in _all(root, "collDate"))
    who = _first(root, "AuthEnty") or _first(root, "producer")
    form = Form(name, organisation=who, collected=parse_day(next(days, "")))
    return captured_form(form, fields, (*titled(_first(root, "titl")), *notes))


def _variable(variable: Any, place: int, notes: dict[str, None]) -> CapturedField:
    name = variable.get("name") or variable.get("ID") or f"variable {place}"
    asked = (_own(one, "qstnLit") or _text(one) for one in children(variable, "qstn"))
    label = _own(variable, "labl") or _own(variable, "concept") or next(asked, "")
    found: dict[str, Category] = {}
    for one in children(variable, "catgry"):
        code, said = _own(one, "catValu"), _own(one, "labl")
        code = code or said
        if code and code not in found:
            said = said or readable(code)
            kind = category_kind(said)
            if one.get("missing", "").upper() == "Y" and kind in ("value", "other"):
                kind = "not stated"
            found[code] = Category(code, said, kind)
    categories = [*found.values()]
    intervals = _intervals(variable, categories, words(name) + words(label))
    if intervals is not None:
        if any(one.kind == "value" for one in categories):
            notes["Labels of single values of a scale are left out."] = None
        categories = [one for one in categories if one.kind != "value"]
    path = [part for part in (variable.get("files", ""), name) if part]
    more: Any = {"categories": categories, "intervals": intervals}
    return capture(path, label, name=name, universe=_own(variable, "universe"), **more)


def _intervals(
    variable: Any, categories: list[Category], asked: tuple[str, ...]
) -> Intervals | None:
    values = sum(one.kind == "value" for one in categories)
    shape = next(children(variable, "varFormat"), None)
    if shape is not None and shape.get("category") in ("date", "time"):
        return dates("day") if shape.get("category") == "date" and not values else None
    for block in children(variable, "valrng"):
        for one in children(block, "range"):
            low = _number(one.get("min") or one.get("minExclusive") or "")
            high = _number(one.get("max") or one.get("maxExclusive") or "")
            if low is not None and high is not None and low < high:
                wide = (high - low + 1) >= _WIDE * max(values, 1)
                return number_intervals(low, high) if wide or not values else None
    continuous = variable.get("intrvl") == "contin"
    numeric = shape is not None and shape.get("type") == "numeric"
    if values and not continuous:
        return None
    return usual_numbers(asked) if continuous or numeric else None


# --- DDI-Lifecycle -----------------------------------------------------------------------------

_LISTS = ("CodeListReference", "CodeSchemeReference")


def _lifecycle(root: Any, name: str) -> tuple[CapturedForm, ...]:
    """Read the variables, or where there are none the questions, of a DDI 3 document."""
    labels = {_id(one): _label(one) for one in _all(root, "Category")}
    lists: dict[str, list[tuple[str, str]]] = {}
    broken: list[str] = []
    for one in _all(root, "CodeList", "CodeScheme"):
        lists[_id(one)] = [
            (_own(code, "Value"), labels.get(_reference(code, "CategoryReference"), ""))
            for code in children(one, "Code")
        ]
    questions = {_id(one): one for one in _all(root, "QuestionItem")}
    variables = [one for one in _all(root, "Variable") if _id(one)]
    fields: list[CapturedField] = []
    for place, one in enumerate(variables or [*questions.values()], 1):
        asked = questions.get(_reference(one, "QuestionReference", "SourceQuestion"), one)
        said = _label(one) or _first(asked, "LiteralText", "QuestionText", "Text")
        called = _first(one, "VariableName", "QuestionItemName", "Name") or f"question {place}"
        listed = _reference(one, *_LISTS) or _reference(asked, *_LISTS)
        if listed and listed not in lists:
            broken.append(f"the code list of {shown(called)} is not in the document")
            continue
        options = [(code or label, label) for code, label in lists.get(listed, ()) if code or label]
        several = next(
            (c.get("maximumResponses", "1") for c in _all(asked, "ResponseCardinality")), "1"
        )
        if options and asked is not one and len(variables):
            several = "1"  # each box is a variable of its own
        if several != "1" and options:
            fields += split_choices([called], said, options, name=called)
            continue
        intervals = None if options else _represented(one, asked, words(called) + words(said))
        fields.append(capture([called], said, name=called, options=options, intervals=intervals))
    if not fields and not broken:
        broken.append(f"{name!r} must have variables or questions. Got none instead")
    return captured_form(Form(name), fields, titled(_first(root, "Title")), broken)


def _id(element: Any) -> str:
    return _own(element, "ID") or str(element.get("id", ""))


def _label(element: Any) -> str:
    """Return the label in English, else the first."""
    found = [c for one in children(element, "Label") for c in (*children(one, "Content"), one)]
    english = [one for one in found if (one.get(_LANGUAGE) or "").lower().startswith("en")]
    return next((text for one in (*english, *found) if (text := _text(one))), "")


def _reference(element: Any, *names: str) -> str:
    """Return the identifier that the first of some references leads to."""
    found = next(_all(element, *names), None)
    return "" if found is None else _first(found, "ID")


def _represented(one: Any, asked: Any, words_: tuple[str, ...]) -> Intervals | None:
    """Return the numbers or dates of a representation, if it is one of them."""
    held = [local_name(part) for element in (one, asked) for part in element.iter()]
    if any(name.startswith("DateTime") for name in held):
        return dates("day")
    if not any(name.startswith("Numeric") for name in held):
        return None
    low, high = (_number(_first(one, end) or _first(asked, end)) for end in ("Low", "High"))
    return bounded_numbers(words_, low, high)


# --- SDMX --------------------------------------------------------------------------------------

# Levels of a code list: a deeper one is no classification, and each level repeats the rest.
DEEPEST = 100


@dataclass(frozen=True, slots=True)
class CodeList:
    """A list of codes, and the parent of each that has one."""

    identifier: str
    label: str = ""
    categories: tuple[Category, ...] = ()
    parents: Mapping[str, str] = field(default_factory=dict)

    def finest(self) -> tuple[Category, ...]:
        """Return the codes without children, which is the finest level."""
        with_children = set(self.parents.values())
        return tuple(one for one in self.categories if one.code not in with_children)

    def levels(self) -> tuple[tuple[Category, ...], ...]:
        """Return the categories level by level, the coarsest first.

        A code without children stands in every level below its own too, so that each level
        covers everything.
        """
        lines = []
        for one in self.finest():
            line = [one.code]
            while line[-1] in self.parents:
                line.append(self.parents[line[-1]])
            lines.append(line[::-1])
        known = {one.code: one for one in self.categories}
        return tuple(
            tuple(known[code] for code in dict.fromkeys(line[:depth][-1] for line in lines))
            for depth in range(1, max(map(len, lines), default=0) + 1)
        )

    def codings(
        self, letters: str, construct: str | None = None, serial: int = 1
    ) -> tuple[tuple[Coding, ...], tuple[CategoryMap, ...]]:
        """Return a coding for each level, the finest first, and the maps between them.

        Examples
        --------
        >>> listed = tuple(Category(code) for code in ("A", "A1", "A2", "B"))
        >>> codings, maps = CodeList("CL", "", listed, {"A1": "A", "A2": "A"}).codings("EC")
        >>> [coding.name for coding in codings], dict(maps[0].pairs)
        (['EC3.001', 'EC2.001'], {'A1': 'A', 'A2': 'A', 'B': 'B'})
        """
        sizes: dict[int, int] = {}
        codings = []
        for level in reversed(self.levels()):
            sizes[len(level)] = sizes.get(len(level), serial - 1) + 1
            name = str(CodingName(letters, len(level), False, sizes[len(level)]))
            codings.append(Coding(name, construct or letters, level, label=self.label))
        maps = []
        for finer, coarser in pairwise(codings):
            above = {one.code for one in coarser.categories}
            codes = (one.code for one in finer.categories)
            pairs = {code: code if code in above else self.parents[code] for code in codes}
            maps.append(CategoryMap(finer.name, coarser.name, pairs))
        return tuple(codings), tuple(maps)


def read_code_lists(path: Path | str) -> tuple[CodeList, ...]:
    """Read the code lists of an SDMX 2.1 structure message."""
    root, problems = open_xml(Path(path)), list[str]()
    found = [_code_list(one, problems) for one in _all(root, "Codelist")]
    require_none(problems, FileError)
    if not any(one.categories for one in found):
        raise FileError(f"{Path(path).name!r} must have code lists with codes. Got none instead.")
    return tuple(found)


def read_sdmx(path: Path, _: str | None = None) -> tuple[CapturedForm, ...]:
    """Read code lists as the fields of a form, at their finest."""
    fields = [
        capture([one.identifier], one.label, categories=one.finest(), recognised=False)
        for one in read_code_lists(path)
        if one.categories
    ]
    return captured_form(Form(path.stem), fields, ())


def _code_list(element: Any, problems: list[str]) -> CodeList:
    identifier = element.get("id", "")
    categories: dict[str, Category] = {}
    parents: dict[str, str] = {}
    for one in children(element, "Code"):
        if not (code := one.get("id", "")):
            continue
        if code in categories:
            problems.append(f"code list {shown(identifier)} has the code {shown(code)} twice.")
        label = _name(one) or code
        categories[code] = Category(code, label, category_kind(label))
        refs = (ref.get("id") for up in children(one, "Parent") for ref in children(up, "Ref"))
        if parent := next(refs, ""):
            parents[code] = parent
    problems += _parent_problems(identifier, categories, parents)
    return CodeList(identifier, _name(element) or identifier, tuple(categories.values()), parents)


def _name(element: Any) -> str:
    """Return the name in English, else the first."""
    names = list(children(element, "Name"))
    english = [one for one in names if (one.get(_LANGUAGE) or "").lower().startswith("en")]
    return " ".join("".join(one.itertext()) for one in (english or names)[:1]).strip()


def _parent_problems(
    identifier: str, categories: Mapping[str, Category], parents: Mapping[str, str]
) -> list[str]:
    where = f"code list {shown(identifier)}"
    problems = [
        f"{where}: the parent {shown(parent)} of {shown(code)} is not among its codes."
        for code, parent in parents.items()
        if parent not in categories
    ]
    depths: dict[str, int] = {}
    for code in parents:
        line: dict[str, None] = {}
        while code in parents and code not in depths and code not in line:
            line[code] = None
            code = parents[code]
        if code in line:
            return [*problems, f"{where}: the code {shown(code)} is its own ancestor."]
        deep = depths.get(code, 1)
        depths.update({one: deep + i for i, one in enumerate(reversed(line), 1)})
    if max(depths.values(), default=1) > DEEPEST:
        problems.append(f"{where} is more than {DEEPEST} levels deep: no classification is.")
    return problems
