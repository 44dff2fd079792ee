"""Descriptions of columns, from what the caller declared and what the file says."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from keyhole.core.expressions import parse_expression, source_columns
from keyhole.core.names import absent, are_vouched, quoted, repeated, repeated_places, shown
from keyhole.data.columns import (
    KINDS,
    ROLES,
    Codes,
    Column,
    Kind,
    Numbered,
    Role,
    Variable,
    encode,
    encode_numbered,
    require_calendar,
)
from keyhole.data.inference import guess_kind, infer, is_of_few
from keyhole.data.missing import blank, text_forms
from keyhole.errors import ColumnError

if TYPE_CHECKING:
    from keyhole.data.microdata import Microdata


Facts = Mapping[str, Any]
"""What a file itself says of a column: fields of `Variable`."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller of `load` declared about the columns; `derived` has expressions by column.

    `partial` leaves out those that a file has already, and those whose columns it has not.
    """

    columns: Sequence[str] | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    missing_codes: Mapping[str, Iterable[Any]] | Iterable[Any] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    derived: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False
    codebook: Mapping[str, Any] = field(default_factory=dict)

    def choose(self, names: Sequence[str], where: str) -> list[str]:
        """Return the columns to be read, in file order, or say everything that is wrong."""
        if problems := self._name_problems(names, where) + self._value_problems():
            raise ColumnError(problems)
        wanted = set(names if self.columns is None else self.columns)
        wanted.update(one for made in self.making(names) for one in self._sources(made))
        return [name for name in names if name in wanted]

    def making(self, names: Iterable[str]) -> list[str]:
        """Return the derived columns that are made of a file with these columns, in order."""
        known, made = set(names), list[str]()
        for name in self.derived:
            can_be = name not in known and known.issuperset(self._sources(name))
            if can_be or not self.partial:
                known.add(name)
                made.append(name)
        return made

    def _sources(self, name: str) -> tuple[str, ...]:
        return source_columns(parse_expression(self.derived[name]))

    def declared(self, variable: Variable) -> Variable:
        """Return what is known of a column with what was declared of it."""
        name = variable.name
        return dataclasses.replace(
            variable,
            role=cast("Role | None", self.roles.get(name, variable.role)),
            kind=cast("Kind", self.kinds.get(name, variable.kind)),
            label=self.labels.get(name, variable.label),
        )

    def labelled(self, variable: Variable, series: pl.Series) -> Variable:
        """Return what is known of a column with the labels of the codebook, whatever its case."""
        name = variable.name
        same = [one for one in self.codebook if one.casefold() == name.casefold()]
        if not same:
            return variable
        book = self.codebook.get(name) or self.codebook[same[0]]
        return self.declared(book.apply(variable, series))

    def _name_problems(self, names: Sequence[str], where: str) -> list[str]:
        codes = self.missing_codes if isinstance(self.missing_codes, Mapping) else {}
        named = [*(self.columns or ()), *self.roles, *self.kinds, *self.labels]
        named += [name for name in codes if name != "*"]
        problems = []
        if names.count("") > 1:
            problems.append(f"{where} has {names.count('')} columns without a name. Name them.")
        if any(repeated(names)):
            vouched = are_vouched(named, names)
            double = quoted(filter(None, repeated(names))) if vouched else repeated_places(names)
            problems.append(
                f"{where} has columns of the same name: {double}. Rename them, so that each name "
                f"stands for one column."
            )
        wanted = [
            (i, n) for i, n in enumerate(names, 1) if self.columns is None or n in self.columns
        ]
        problems += name_problems(wanted, where)
        made = self.making(names)
        problems += self._derived_problems(made, names, where)
        derived = made if self.partial else self.derived
        return problems + absent(
            (name for name in dict.fromkeys(named) if name not in derived), names, where=where
        )

    def _derived_problems(self, made: Iterable[str], names: Sequence[str], where: str) -> list[str]:
        problems, known = [], list(names)
        for name in self.derived:
            if name in names and not self.partial:
                problems.append(
                    f"derived column {shown(name)} is a column of {where} already. Give it "
                    f"another name."
                )
            if name in made:
                purpose = f"derived column {shown(name)}: column"
                problems += absent(self._sources(name), known, purpose=purpose, where=where)
            known.append(name)
        return problems

    def _value_problems(self) -> list[str]:
        problems = role_problems(self.roles)
        problems += [
            f"the kind of {name!r} must be one of {quoted(KINDS)}. Got {kind!r} instead."
            for name, kind in self.kinds.items()
            if kind not in KINDS
        ]
        codes = self.missing_codes
        lists = codes.values() if isinstance(codes, Mapping) else [codes]
        if not all(isinstance(code, Hashable) for listed in lists for code in _listed(listed)):
            problems.append("missing codes must be single values. Got lists of lists instead.")
        return problems

    def codes_for(self, name: str) -> tuple[Any, ...]:
        """Return the missing codes declared for a column."""
        if isinstance(self.missing_codes, Mapping):
            lists = [self.missing_codes.get(key, ()) for key in ("*", name)]
        else:
            lists = [self.missing_codes]
        return tuple(code for codes in lists for code in _listed(codes))


def role_problems(roles: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the roles of columns."""
    return [
        f"the role of {name!r} must be one of {quoted(ROLES)}. Got {role!r} instead."
        for name, role in roles.items()
        if role not in ROLES
    ]


# Whole numbers of a shorter column are counted sooner than encoded.
_LONG = 1 << 14
# Such a name may be a record that an open quote drew into the first line: it is never shown.
LONGEST_NAME = 200
_UNFIT = {
    f"names with line breaks or more than {LONGEST_NAME} characters: is a quote in its first line "
    f"not closed? Rename such columns, or leave them out": re.compile(
        rf"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|(?s:.{{{LONGEST_NAME + 1}}})"
    ),
    # Polars takes them for patterns wherever the column is used.
    "names that begin with ^ and end with $, as patterns do. Rename such columns, or leave them "
    "out": re.compile(r"(?s)\A\^.*\$\Z"),
}


def name_problems(names: Iterable[tuple[int, str]], where: str) -> list[str]:
    """Return what is wrong with the names of columns, which are told by their places."""
    listed, problems = list(names), []
    for what, unfit in _UNFIT.items():
        places = [str(place) for place, name in listed if unfit.search(name)]
        if places:
            problems.append(f"{where} has {what} (column {', '.join(places[:10])}).")
    return problems


def _listed(codes: Any) -> Iterable[Any]:
    """One code alone is meant as a list of one."""
    return (codes,) if isinstance(codes, str) or not isinstance(codes, Iterable) else codes


def describe(
    frame: pl.DataFrame,
    request: Request | None = None,
    known: Mapping[str, Facts] | None = None,
    levels: Mapping[str, pl.Series] | None = None,
) -> tuple[Variable, ...]:
    """Say what is known of each column of a typed frame; `levels` are those of some of them."""
    request, known, levels = request or Request(), known or {}, levels or {}
    require_calendar(frame)
    variables = tuple(
        request.labelled(
            _variable(series, request, known.get(series.name, {}), levels.get(series.name)), series
        )
        for series in frame
    )
    _check_measures(frame, variables, request)
    return variables


def describe_text(
    columns: Mapping[str, Column], request: Request
) -> tuple[pl.DataFrame, tuple[Variable, ...], dict[str, Codes]]:
    """Type columns of text, then do as `describe_columns` does."""
    typed, known = dict[str, Column](), dict[str, Facts]()
    for name, one in columns.items():
        texts = one.values if isinstance(one, Numbered) else one
        found = infer(texts, request.codes_for(name))
        known[name] = {key: getattr(found, key) for key in ("parsed", "decimals", "trimmed")}
        kept = found.series.rechunk()
        typed[name] = Numbered(kept, one.places) if isinstance(one, Numbered) else kept
    return describe_columns(typed, request, known)


def describe_columns(
    columns: Mapping[str, Column], request: Request, known: Mapping[str, Facts]
) -> tuple[pl.DataFrame, tuple[Variable, ...], dict[str, Codes]]:
    """Make typed columns a frame, say what is known of each, and encode those of few values."""
    frame = spread(columns)
    numbered: dict[str, Numbered] = {}
    for name, one in columns.items():
        if isinstance(one, Numbered):
            numbered[name] = one
        elif len(one) >= _LONG and one.dtype.is_integer() and is_of_few(one):
            numbered[name] = Numbered.of_codes(encode(one))
    levels = {name: one.values for name, one in numbered.items()}
    variables = describe(frame, request, known, levels)
    codes = {}
    for variable in variables:
        if few := numbered.get(variable.name):
            values = blank(few.values.rename(variable.name), variable)
            codes[variable.name] = encode_numbered(Numbered(values, few.places))
    return frame, variables, codes


def spread(columns: Mapping[str, Column]) -> pl.DataFrame:
    """Make columns that were read a frame."""
    return pl.DataFrame(
        {name: x.spread() if isinstance(x, Numbered) else x for name, x in columns.items()}
    )


def _variable(
    series: pl.Series, request: Request, facts: Facts, levels: pl.Series | None
) -> Variable:
    name = series.name
    codes = (*facts.get("missing_codes", ()), *request.codes_for(name))
    about = {**facts, "missing_codes": tuple(dict.fromkeys(codes))}
    if request.labels.get(name):
        about["label"] = request.labels[name]
    plain = Variable(name, "category", cast("Role | None", request.roles.get(name)), **about)
    return dataclasses.replace(plain, kind=_kind(series, plain, request.kinds.get(name), levels))


def _kind(
    series: pl.Series, variable: Variable, wanted: str | None, levels: pl.Series | None = None
) -> Kind:
    if wanted:
        return cast("Kind", wanted)
    if variable.role == "weight":
        return "measure"
    if series.dtype == pl.Object or series.dtype.is_nested():
        return "text"
    missing = text_forms(variable.missing_codes)
    labelled = any(str(value) not in missing for value in variable.value_labels)
    return guess_kind(
        blank(series, variable),
        labelled=labelled,
        measurement=variable.measurement,
        levels=None if levels is None else blank(levels, variable),
    )


def _check_measures(frame: pl.DataFrame, variables: Iterable[Variable], request: Request) -> None:
    """Refuse to call a measure what holds no numbers."""
    wrong = [
        f"column {one.name!r} must hold numbers to be a measure. Got other values instead: "
        f"declare its missing codes, or another kind."
        for one in variables
        if request.kinds.get(one.name) == "measure"
        and not (one.parsed or frame.schema[one.name]).is_numeric()
    ]
    if wrong:
        raise ColumnError(wrong)


def describe_again(data: Microdata, request: Request, name: str | None = None) -> Microdata:
    """Return microdata with what a request declares on top of what is known."""
    chosen = request.choose(data.names, repr(data.name))
    data = data.select(chosen) if request.columns is not None else data
    variables = []
    for series, old in zip(data.frame, data.variables, strict=True):
        codes = tuple(dict.fromkeys((*old.missing_codes, *request.codes_for(old.name))))
        new = dataclasses.replace(request.declared(old), missing_codes=codes)
        new = request.labelled(new, series)
        if codes != old.missing_codes:
            if series.dtype == pl.String and old.parsed is None:
                new = dataclasses.replace(new, parsed=infer(series, codes).parsed)
            kind = _kind(series, new, request.kinds.get(old.name))
            new = dataclasses.replace(new, kind=kind)
        variables.append(new)
    _check_measures(data.frame, variables, request)
    data = data.with_variables(variables)
    return data.replace(name=name) if name else data
