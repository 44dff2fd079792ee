"""SDMX 2.1 code lists: codes with parents are codings with maps to coarser ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from keyhole.core.names import shown
from keyhole.environment.codings.categories import CodingName
from keyhole.environment.importers.fields import capture, category_kind, distinct_fields
from keyhole.environment.importers.opening import children, local_name, open_xml
from keyhole.environment.model import CapturedForm, Category, CategoryMap, Coding, Form
from keyhole.environment.wording import require_none
from keyhole.errors import FileError

# Levels of a code list: a deeper one is no classification, and each level repeats the rest.
DEEPEST = 100
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


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
        lines = [self._line(one.code) for one in self.finest()]
        deepest = max(map(len, lines), default=0)
        known = {one.code: one for one in self.categories}
        return tuple(
            tuple(known[code] for code in dict.fromkeys(line[:depth][-1] for line in lines))
            for depth in range(1, deepest + 1)
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
        maps = [
            CategoryMap(finer.name, coarser.name, self._pairs(finer, coarser))
            for finer, coarser in pairwise(codings)
        ]
        return tuple(codings), tuple(maps)

    def _pairs(self, finer: Coding, coarser: Coding) -> dict[str, str]:
        above = {one.code for one in coarser.categories}
        return {
            one.code: one.code if one.code in above else self.parents[one.code]
            for one in finer.categories
        }

    def _line(self, code: str) -> list[str]:
        """Return the codes from the top down to a code."""
        line = [code]
        while line[-1] in self.parents:
            line.append(self.parents[line[-1]])
        return line[::-1]


def read_code_lists(path: Path | str) -> tuple[CodeList, ...]:
    """Read the code lists of an SDMX 2.1 structure message."""
    root, problems = open_xml(Path(path)), list[str]()
    found = [_code_list(one, problems) for one in root.iter() if local_name(one) == "Codelist"]
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
    return (CapturedForm(Form(path.stem), distinct_fields(fields)),)


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
