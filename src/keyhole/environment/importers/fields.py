"""Captured fields: categories, intervals and direct identifiers, from what forms say of answers.

Bands in words ("18-24", "65 and over") become intervals where they tile: no gap, no overlap. Else
the coding stays a list of categories. How forms write these things stands in ``fields.toml``.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keyhole.core.names import shown
from keyhole.environment import model
from keyhole.environment.model import CapturedField, Category, Intervals
from keyhole.environment.wording import require_none
from keyhole.errors import FileError
from keyhole.screening.identifiers import recognise, words

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_WORDS = {name: frozenset(text.split()) for name, text in _TABLE["words"].items()}
_KINDS: dict[Any, re.Pattern[str]] = {k: re.compile(p) for k, p in _TABLE["kinds"].items()}
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_BANDS = {how: re.compile(p.replace("#", _NUMBER)) for how, p in _TABLE["bands"].items()}
_MONEY, _NOISE, _OTHER_UNITS = (
    re.compile(_TABLE["patterns"][name], re.I) for name in ("money", "noise", "other_units")
)
_FIRST_YEAR, _LAST_YEAR = 1850, 2100
_CODE = re.compile(r"^\(?\d{1,2}[.)]\s+(?=\S)")
_REMARK = re.compile(r"\s*\([^()]*\)\s*$")
_PLAIN = re.compile(r"(\d{1,15}) ?(?:-|–|to) ?(\d{1,15})")
_LONGEST_BAND, _LONGEST = 80, 200
# Intervals of one field at most; where there would be more, their step is widened.
MOST_INTERVALS = 100_000
FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2050, 1, 1)
_OLDEST, _MOST_COUNTED = 121, 101
_OF_A_YEAR = {"month": 1 / 12, "week": 1 / 52}


@dataclass(frozen=True, slots=True)
class BandedLabels:
    """Intervals in rising order, and for each label the place of its interval."""

    intervals: Intervals
    positions: tuple[int, ...]


class _Band(NamedTuple):
    """From `low` up to and without `high`; `ends` is the last number named, if it is within."""

    low: float
    high: float
    ends: float | None = None
    ranged: bool = True


def parse_bands(labels: Sequence[str], asked: str = "") -> BandedLabels | None:
    """Read labels as bands that tile a line, if they all are.

    Neighbours that name the same bound ("10 to 20", "20 to 30") share it as an edge. The
    highest band may be open; the lowest too, and then begins at 0, or without end where the
    labels or `asked` speak of money (there are negative incomes). Bands of years
    ("1990-1999") are dates.
    """
    bands: list[_Band] = []
    for label in labels:
        band = _band(label)
        if band is None or band.low >= band.high:
            return None
        bands.append(band)
    if len(bands) < 2 or not any(band.ranged for band in bands):
        return None
    money = _MONEY.search(f"{asked} {' '.join(labels[:3])}") is not None
    order = sorted(range(len(bands)), key=lambda place: (bands[place].low, bands[place].high))
    edges = [bands[order[0]].low]
    for band, following in pairwise(bands[place] for place in order):
        meet = math.isclose(band.high, following.low) or band.ends == following.low
        if not meet or following.low <= edges[-1]:
            return None
        edges.append(following.low)
    intervals = _tiled([*edges, bands[order[-1]].high], money)
    ranks = sorted(range(len(order)), key=order.__getitem__)  # the place of each label
    return BandedLabels(intervals, tuple(ranks))


def _band(label: str) -> _Band | None:
    if plain := _PLAIN.fullmatch(label):  # nearly all are, and there may be many
        return _Band(float(plain[1]), float(plain[2]) + 1, float(plain[2]))
    text = label.strip().lower()
    if len(text) > _LONGEST_BAND or _OTHER_UNITS.search(text):
        return None
    text = _CODE.sub("", _REMARK.sub("", text)).replace("–", "-").replace("—", "-")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"(?<=\d)k\b", "000", text)
    text = " ".join(_NOISE.sub(" ", text).replace("( )", "").split())
    matches = ((how, pattern.fullmatch(text)) for how, pattern in _BANDS.items())
    how, found = next(((how, found) for how, found in matches if found), ("", None))
    if found is None:
        return None
    numbers = [number for number in found.groups() if number] or ["0"]
    step = float(10 ** -max(len(number.partition(".")[2]) for number in numbers))
    low, high = float(numbers[0]), float(numbers[-1])
    return {
        "up to the second": _Band(low, high),
        "both within": _Band(low, high + step, high),
        "decade": _Band(low, low + 10),
        "number": _Band(low, low + step, low, ranged=False),
        "under": _Band(-math.inf, low),
        "over": _Band(low + step, math.inf),
        "at most": _Band(-math.inf, low + step, low),
        "at least": _Band(low, math.inf),
    }[how]


def _tiled(edges: list[float], money: bool) -> Intervals:
    """Return the intervals between edges; those of years are dates."""
    if edges[0] == -math.inf and edges[1] > 0 and not money:
        edges[0] = 0.0
    finite = [edge for edge in edges if math.isfinite(edge) and edge != 0]
    if money or not all(e.is_integer() and _FIRST_YEAR <= e <= _LAST_YEAR for e in finite):
        return Intervals("number", tuple(edges))
    days = [float(datetime.date(int(e), 1, 1).toordinal()) if e in finite else e for e in edges]
    return Intervals("date", (-math.inf if edges[0] == 0 else days[0], *days[1:]))


def dates(
    unit: model.Unit = "day", first: datetime.date | None = None, last: datetime.date | None = None
) -> Intervals:
    """Return dates by day, month or year, from `first` up to and without `last`."""
    start, stop = (first or FIRST).toordinal(), (last or LAST).toordinal()
    if stop <= start:
        start, stop = FIRST.toordinal(), LAST.toordinal()
    return Intervals("date", start=start, stop=stop, step=1, unit=unit)


def number_intervals(
    low: float, high: float, step: float = 1, most: int = MOST_INTERVALS
) -> Intervals | None:
    """Return numbers from `low` to `high` (both within) by `step`, widened where too fine."""
    if not (-1e15 <= low <= high <= 1e15 and 1e-9 <= step <= 1e15):  # not a number neither
        return None
    while (count := math.floor((high - low) / step + 1e-9) + 1) > most:
        step *= 10
    return Intervals("number", start=low, stop=tidy(low + count * step), step=tidy(step))


def unit_factor(text: str) -> float:
    """Return what turns a number into years of age, or money a year, by how it is asked."""
    told = set(text.lower().replace("(", " ").replace(")", " ").split())
    if told & _WORDS["year"]:
        return 1.0
    factor = next((f for unit, f in _OF_A_YEAR.items() if told & _WORDS[unit]), 1.0)
    if "age" in told:
        return factor
    amount = _WORDS["income"] & told and not re.search(r"\b(past|last) \d+\b", text)
    return 1 / factor if amount else 1.0


def usual_numbers(asked: tuple[str, ...]) -> Intervals:
    """Return the numbers to be expected where a form sets no bounds, by what it asks."""
    if "age" in asked:
        months = unit_factor(" ".join(asked)) < 1
        return Intervals("number", start=0, stop=_OLDEST * (12 if months else 1), step=1)
    if _MONEY.search(" ".join(asked)):  # before counts: "income in the past 12 months" is money
        return Intervals("number")
    if "year" in asked and not _WORDS["no_years"] & set(asked):
        return dates("year")
    if _WORDS["counts"] & set(asked):
        return Intervals("number", start=0, stop=_MOST_COUNTED, step=1)
    return Intervals("number")


def bounded_numbers(
    asked: tuple[str, ...],
    low: float | None = None,
    high: float | None = None,
    step: float | None = None,
) -> Intervals:
    """Return the numbers from `low` to `high`, both within; the usual ones where a bound lacks.

    Bounds that are both years, or one where the question speaks of years, are of dates.
    """
    usual = usual_numbers(asked)
    bounds = [bound for bound in (low, high) if bound is not None]
    if not bounds or (usual.exact and len(bounds) < 2):
        return usual
    if all(1800 <= b <= 2200 for b in bounds) and (len(bounds) == 2 or "year" in asked):
        ends = low, None if high is None else high + 1
        return dates("year", *(None if e is None else datetime.date(int(e), 1, 1) for e in ends))
    low = min(0 if usual.scale == "date" else usual.start, high or 0) if low is None else low
    high = max(usual.stop - 1, low) if high is None else high
    if math.isfinite(high) and (high - low) / (step or 1) >= MOST_INTERVALS:
        return Intervals("number")  # as exact as it is written
    return number_intervals(low, high, step or 1) or usual


def tidy(value: float, digits: int = 12) -> float:
    """Return a whole number as one, and others without the dust of their last digits."""
    return int(value) if float(value).is_integer() else round(value, digits)


def parse_day(text: str) -> datetime.date | None:
    """Read a day at the beginning of a text, if one is there."""
    found = re.match(r"\d{4}-\d{2}-\d{2}", text)
    try:
        return datetime.date.fromisoformat(found.group()) if found else None
    except ValueError:
        return None


def parse_number(text: str) -> float | None:
    """Read a number, if it is one of a size that can be kept."""
    try:
        return tidy(float(text)) if abs(float(text)) <= 1e15 else None
    except ValueError:
        return None


# --- fields -----------------------------------------------------------------------------------

YES_NO = (Category("yes", "Yes"), Category("no", "No"))
# The code of the category of records with no value at all.
BLANK = "."
# From this confidence on a field is kept apart as a direct identifier.
SURE = 0.5
_SURE_THOUGH_CODED, _SURE_OF_NUMBERS = 0.9, 0.85
_MOST_STEPS = 8
_TAG = re.compile(r"<[^<>]{0,500}>")
_UNKEPT = re.compile("[\0\ud800-\udfff]")
_CODE_WORDS = re.compile(r"[a-z]+([A-Z][a-z]*)+|[A-Za-z]+(_[A-Za-z0-9]+)+|[a-z]+(-[a-z]+)+")


def category_kind(label: str) -> model.CategoryKind:
    """Tell from its label what kind of answer a category is."""
    text = " ".join(label[:_LONGEST].lower().replace("’", "'").split())
    text = re.sub(r"^\(?\w{1,2}[.)]\s+", "", text).strip("-*[]<>. ")
    return next((kind for kind, pattern in _KINDS.items() if pattern.match(text)), "value")


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
    bands = parse_bands([one.label for one in categories if one.kind == "value"], words_)
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
        intervals = replace(intervals, factor=unit_factor(f"{path_label(path)} {label}"))
    dated = intervals is not None and intervals.scale == "date"
    if identifier is None and recognised and not dated and tuple(categories) != YES_NO:
        identifier = _identifier(path, label, pattern, categories, intervals)
    if identifier is not None:
        categories, intervals = (), None
    more: Any = {"identifier": identifier, "path": "/".join(path), "option": option}
    more |= {"categories": categories, "intervals": intervals, "universe": clean(universe)}
    return CapturedField(clean(name) or ".".join(path), said, **more)


def _identifier(
    path: Sequence[str],
    label: str,
    pattern: str,
    categories: Sequence[Category],
    intervals: Intervals | None,
) -> str | None:
    """Find out whether it is one; listed answers are not, but for parts of a name (Jr., Sr.)."""
    found = recognise("/".join(path[-_MOST_STEPS:]), label, pattern)
    least = _SURE_THOUGH_CODED if categories else SURE if intervals is None else _SURE_OF_NUMBERS
    if found is None or found.confidence < least or (categories and found.kind != "name"):
        return None
    counted = re.search(r"\b(how (many|long)|numbers? of)\b", label, re.I)
    if intervals is not None and (counted or intervals.edges or found.kind in ("name", "address")):
        return None
    told = {word.removesuffix("'s") for word in (*words(path[-1]), *words(label))}
    if found.kind == "licence number" and told & _WORDS["about"]:
        return None  # the country that issued a passport
    parts = words(label)[-1:] + (words(label)[:1] if " of " in label else ())
    if found.kind == "address" and {*parts} & _WORDS["about"]:
        return None  # "mailing address: state", in a field called "addr"; "state of home address"
    named = found.kind in ("name", "employer name") and told & _WORDS["organisations"]
    whose = (
        {"your"} if {*parts} & _WORDS["organisations"] else set()
    )  # "name of your last employer"
    return None if named and not (told & _WORDS["persons"]) - whose else found.kind


def kind_of_identifier(path: Sequence[str], label: str) -> str:
    """Tell the kind of what is known to be a direct identifier, by its name and its label."""
    found = recognise("/".join(path[-_MOST_STEPS:]), label)
    return found.kind if found is not None else "record number"


def path_label(path: Sequence[str]) -> str:
    """Say a path in words; a step that the next one repeats is left out."""
    said: list[str] = []
    for step in path:
        new = list(words(step))
        sizes = range(min(len(said), len(new)), 0, -1)
        said += new[next((n for n in sizes if said[-n:] == new[:n]), 0) :]
    return " ".join(said) or " ".join(path)


Kind = Literal["", "yes or no", "number", "day", "month", "year"]


def ask(
    path: Sequence[str],
    label: str = "",
    *,
    name: str = "",
    options: Iterable[tuple[str, str]] = (),
    several: bool = False,
    other: bool = False,
    kind: Kind = "",
    low: float | None = None,
    high: float | None = None,
    **more: Any,
) -> list[CapturedField]:
    """Build the fields of a question as questionnaires ask it.

    Listed `options` may be chosen one or `several` (one field for each says whether it was
    chosen), with an `other` behind them; else what is asked is of a `kind`, a number perhaps from
    `low` to `high`. The rest is `capture`'s.
    """
    listed = [*options, *([("other", "Other")] if other else ())]
    if several:
        said, found = label or path_label(path), []
        for one in make_categories(listed):
            boxes = Category("yes", one.label), Category("no", f"Not {one.label}")
            box: Any = {"categories": boxes, "recognised": False, "option": one.label, **more}
            box["name"] = f"{name}.{one.code}" if name else ""
            found.append(capture([*path, one.code], f"{said}: {one.label}", **box))
        return found
    if kind == "yes or no":
        more["categories"] = YES_NO
    elif kind == "number":
        more["intervals"] = bounded_numbers(words(name or path[-1]) + words(label), low, high)
    elif kind:
        more["intervals"] = dates(kind)
    return [capture(path, label, name=name, options=listed, **more)]


Asked = Iterator[CapturedField]


@dataclass(slots=True)
class FormReading:
    """A form that is being read: what is known of it, what was noted, what cannot be read."""

    form: model.Form
    notes: dict[str, None] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Tell something once."""
        self.notes[text] = None

    def title(self, title: str) -> None:
        """Note the title of the form, which is not its purpose."""
        if title:
            self.note(f"Its title is {shown(title)}.")

    def captured(self, fields: Iterable[CapturedField]) -> model.CapturedForm:
        """Return the form; broken fields are noted, and refused without any whole one."""
        whole = distinct_fields(fields)
        if not whole:
            told = self.broken or ["it must have questions or variables. Got none instead"]
            require_none((f"{one}." for one in told), FileError)
        skipped = (f"{one}: it is left out." for one in self.broken)
        return model.CapturedForm(self.form, whole, (*self.notes, *skipped))


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
        named.append(one if name == one.name else replace(one, name=name))
    return tuple(named)
