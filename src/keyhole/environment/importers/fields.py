"""Captured fields: categories from codes and labels, intervals, and direct identifiers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from keyhole.core.names import shown
from keyhole.environment.importers.bands import bounded_numbers, dates, parse_bands, unit_factor
from keyhole.environment.model import (
    CapturedField,
    CapturedForm,
    Category,
    CategoryKind,
    Form,
    Intervals,
)
from keyhole.environment.wording import require_none
from keyhole.errors import FileError
from keyhole.screening.identifiers import recognise, words

YES_NO = (Category("yes", "Yes"), Category("no", "No"))
# The code of the category of records with no value at all.
BLANK = "."
_LONGEST = 200
_NOT_APPLICABLE = re.compile(
    r"(n/a|n\.a\.)(\b|$)|not? applicable|inapplicable|inap\.?$|does not apply|legitimate skip|"
    r"valid skip|not in universe|niu\b|skipped"
)
_NOT_STATED = re.compile(
    r"(not (stated|reported|known|recorded|given|answered|ascertained|specified|available|sure|"
    r"provided|determined)|unknown|unk$|unsure|undisclosed|unspecified|no (answer|response|data)|"
    r"non[- ]?response|refus|prefer not|(choose|chose|wish) not to|declin|decline to|"
    r"(do not|don'?t|didn'?t|did not) (know|answer|wish|want to (say|answer))|i?dk\b|missing|"
    r"rather not|i'?d rather not)"
)
_OTHER = re.compile(
    r"(some|any|all|an)? ?others?\b(?! than)|another\b.*\bnot listed|.*\bnot listed( above)?$|"
    r".*\bn\.?e\.?c\.?$|.*not elsewhere classified|none of (the|these)|something else"
)
# From this confidence on a field is kept apart as a direct identifier.
SURE = 0.5
_SURE_THOUGH_CODED = 0.9
_MOST_STEPS = 8
# The name of one of these is not that of a person, unless it is of somebody there.
_ORGANISATIONS = frozenset(
    {"employer", "company", "business", "firm", "school", "university", "college", "bank"}
    | {"insurer", "hospital", "clinic", "facility", "organisation", "organization", "agency"}
)
_PERSONS = frozenset(
    {"contact", "person", "supervisor", "manager", "owner", "first", "last", "middle", "your"}
    | {"full", "user", "maiden", "account", "doctor", "physician", "teacher"}
)
_TAG = re.compile(r"<[^<>]{0,500}>")
_UNKEPT = re.compile("[\0\ud800-\udfff]")
_CODE_WORDS = re.compile(r"[a-z]+([A-Z][a-z]*)+|[A-Za-z]+(_[A-Za-z0-9]+)+|[a-z]+(-[a-z]+)+")


def category_kind(label: str) -> CategoryKind:
    """Tell from its label what kind of answer a category is."""
    text = " ".join(label[:_LONGEST].lower().replace("’", "'").split())
    text = re.sub(r"^\(?\w{1,2}[.)]\s+", "", text).strip("-*[]<>. ")
    if _NOT_APPLICABLE.match(text):
        return "not applicable"
    if _NOT_STATED.match(text):
        return "not stated"
    return "other" if _OTHER.match(text) else "value"


def plain_text(text: str) -> str:
    """Take the markup off that labels may have; what is no tag stays."""
    return " ".join(_TAG.sub(" ", text).replace("&nbsp;", " ").split())


def clean(text: str) -> str:
    """Replace what no store keeps (NUL, halves of characters) by a mark."""
    return text if text.isprintable() else _UNKEPT.sub("\ufffd", text)


def readable(code: str) -> str:
    """Write a code that is made of words (``killedInAction``, ``never_married``) as words."""
    return " ".join(words(code)) if len(code) <= _LONGEST and _CODE_WORDS.fullmatch(code) else code


def make_categories(options: Iterable[tuple[str, str]]) -> tuple[Category, ...]:
    """Make categories of codes and labels; of a repeated code the first counts."""
    found: dict[str, Category] = {}
    for code, label in options:
        said = clean(label or readable(clean(code)))
        found.setdefault(clean(code), Category(clean(code), said, category_kind(said)))
    return tuple(found.values())


def coded(
    categories: Sequence[Category], words_: str = ""
) -> tuple[tuple[Category, ...], Intervals | None]:
    """Turn value categories that are bands into intervals; the others stay categories."""
    values = [one.label for one in categories if one.kind == "value"]
    # The first tells in nearly all cases, and there may be a hundred thousand.
    bands = parse_bands(values, words_) if len(values) > 1 else None
    if bands is None:
        return tuple(categories), None
    return tuple(one for one in categories if one.kind != "value"), bands.intervals


def capture(
    path: Sequence[str],
    label: str = "",
    *,
    name: str = "",
    options: Iterable[tuple[str, str]] = (),
    categories: Sequence[Category] = (),
    intervals: Intervals | None = None,
    pattern: str = "",
    universe: str = "",
    identifier: str | None = None,
    recognised: bool = True,
    option: str = "",
) -> CapturedField:
    """Build a field: its categories or intervals, and whether it is a direct identifier.

    `path` is where it stands, its own name last; without a `name` the path is one, with dots, and
    without a `label` its words are that. `options` are codes and labels of the answers,
    `categories` further answers of known kind. Without `intervals`, answers that are all bands
    become some. `pattern` is the format asked of it. Unless the source tells the kind of direct
    `identifier`, or it cannot be one (`recognised`), it is found out.
    """
    path, label = [clean(step) for step in path], clean(label)
    said = label or path_label(path)
    categories = (*make_categories(options), *categories)
    if intervals is None:
        categories, intervals = coded(categories, said)
    if intervals is not None and intervals.scale == "number":
        intervals = dataclasses.replace(
            intervals, factor=unit_factor(f"{path_label(path)} {label}")
        )
    if identifier is None and recognised:
        identifier = _identifier(path, label, pattern, categories, intervals)
    apart = identifier is not None
    return CapturedField(
        name=clean(name) or ".".join(path),
        label=said,
        categories=() if apart else categories,
        intervals=None if apart else intervals,
        identifier=identifier,
        path="/".join(path),
        universe=clean(universe),
        option=option,
    )


def _identifier(
    path: Sequence[str],
    label: str,
    pattern: str,
    categories: Sequence[Category],
    intervals: Intervals | None,
) -> str | None:
    """Find out whether it is one; listed answers are not, but for parts of a name (Jr., Sr.)."""
    if intervals is not None or tuple(categories) == YES_NO:
        return None
    found = recognise("/".join(path[-_MOST_STEPS:]), label, pattern)
    least = _SURE_THOUGH_CODED if categories else SURE
    if found is None or found.confidence < least or (categories and found.kind != "name"):
        return None
    told = {*words(path[-1]), *words(label)}
    if found.kind in ("name", "employer name") and told & _ORGANISATIONS and not told & _PERSONS:
        return None
    return found.kind


def kind_of_identifier(path: Sequence[str], label: str) -> str:
    """Tell the kind of what is known to be a direct identifier, by its name and its label."""
    found = recognise("/".join(path[-_MOST_STEPS:]), label)
    return found.kind if found is not None else "record number"


def path_label(path: Sequence[str]) -> str:
    """Say a path in words; a step that the next one repeats is left out."""
    said: list[str] = []
    for step in path:
        new = list(words(step))
        overlap = next(
            (n for n in range(min(len(said), len(new)), 0, -1) if said[-n:] == new[:n]), 0
        )
        said += new[overlap:]
    return " ".join(said) or " ".join(path)


def split_choices(
    path: Sequence[str],
    label: str,
    options: Iterable[tuple[str, str]],
    universe: str = "",
    name: str = "",
) -> list[CapturedField]:
    """Split a question with several answers: one field for each says whether it was chosen."""
    said, found = label or path_label(path), []
    for one in make_categories(options):
        boxes = Category("yes", one.label), Category("no", f"Not {one.label}")
        own = f"{name}.{one.code}" if name else ""
        asked: Any = {"name": own, "universe": universe, "recognised": False, "option": one.label}
        found.append(capture([*path, one.code], f"{said}: {one.label}", categories=boxes, **asked))
    return found


def ask(
    path: Sequence[str],
    label: str = "",
    *,
    name: str = "",
    universe: str = "",
    options: Iterable[tuple[str, str]] = (),
    several: bool = False,
    other: bool = False,
    kind: Literal["", "yes or no", "number", "day", "month", "year"] = "",
    low: float | None = None,
    high: float | None = None,
    **more: Any,
) -> list[CapturedField]:
    """Build the fields of a question as questionnaires ask it.

    Listed `options` may be chosen one or `several`, with an `other` behind them; else what is
    asked is of a `kind`, a number perhaps from `low` to `high`. The rest is `capture`'s.
    """
    listed = [*options, ("other", "Other")] if other else options
    if several:
        return split_choices(path, label, listed, universe, name)
    if kind == "yes or no":
        more["categories"] = YES_NO
    elif kind == "number":
        more["intervals"] = bounded_numbers(words(name or path[-1]) + words(label), low, high)
    elif kind:
        more["intervals"] = dates(kind)
    return [capture(path, label, name=name, universe=universe, options=listed, **more)]


def captured_form(
    form: Form, fields: Iterable[CapturedField], notes: Iterable[str], broken: Iterable[str] = ()
) -> tuple[CapturedForm]:
    """Return a form whose broken fields are noted; without any whole one they are refused."""
    whole, told = distinct_fields(fields), list(broken)
    if not whole:
        told = told or ["it must ask something. Got no field instead"]
        require_none((f"{one}." for one in told), FileError)
    skipped = (f"{one}: it is left out." for one in told)
    return (CapturedForm(form, whole, (*notes, *skipped)),)


def titled(title: str) -> tuple[str, ...]:
    """Note the title of a form, which is not its purpose."""
    return (f"Its title is {shown(title)}.",) if title else ()


def distinct_fields(fields: Iterable[CapturedField]) -> tuple[CapturedField, ...]:
    """Give fields of the same name names of their own."""
    seen: dict[str, int] = {}
    named = []
    for one in fields:
        name = one.name
        while name in seen:
            seen[one.name] += 1
            name = f"{one.name}~{seen[one.name]}"
        seen[name] = 1
        named.append(one if name == one.name else dataclasses.replace(one, name=name))
    return tuple(named)
