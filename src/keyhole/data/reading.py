"""Loading of files and frames."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from keyhole.core.apart import is_everything_apart
from keyhole.core.expressions import Derivations
from keyhole.core.kinds import File, MissingCodes, Text, WordsByColumn
from keyhole.core.options import Option, documented
from keyhole.data.codebook import read_codebook
from keyhole.data.columns import KINDS, ROLES
from keyhole.data.deriving import derivations_of, with_derived
from keyhole.data.describing import (
    Request,
    describe,
    describe_again,
    describe_columns,
    describe_text,
)
from keyhole.data.formats import find_format, require_file, suffix_of
from keyhole.data.frames import read_frame
from keyhole.data.guarding import is_small_arrow, read_apart, read_here
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError

# Their readers check what they read, so that they need no process of their own.
_SAFE = ("text", "Parquet", "Arrow")

CodesOption = Annotated[
    Mapping[str, Iterable[Any]] | Iterable[Any] | None,
    Option(
        "Values that mean missing: -9,. in any column, age:-9|-8 in one, or both. Empty cells "
        "are always missing.",
        kind=MissingCodes(),
    ),
]
KindsOption = Annotated[
    Mapping[str, str] | None,
    Option(
        "What columns are, where the guess is wrong: category, measure, date or text.",
        kind=WordsByColumn(KINDS),
        metavar="A=KIND,…",
    ),
]
EncodingOption = Annotated[
    str | None, Option("The encoding of a text file, like cp1252; UTF-8 by default.")
]
DelimiterOption = Annotated[
    str | None,
    Option(
        "The delimiter of a text file, `tab` for a tab; detected by default.",
        kind=Text(blank=True),
        metavar="MARK",
    ),
]
DeriveOption = Annotated[
    Mapping[str, str] | Iterable[str] | str | None,
    Option(
        "Columns made from others, as `age10 = band(age, 10)`; each can be used like any other "
        "column. May be given several times.",
        kind=Derivations(),
    ),
]
CodebookOption = Annotated[
    str | os.PathLike[str] | None,
    Option(
        "Labels of columns and values: the .csv dictionary of the ACS, DDI (.xml), SPSS or Stata "
        "syntax (.sps, .do), or .json.",
        kind=File(),
        metavar="CODEBOOK",
    ),
]
SheetOption = Annotated[str | None, Option("The sheet of an Excel workbook; by default the first.")]


@documented
def load(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    roles: Annotated[
        Mapping[str, str] | None,
        Option(
            "What columns are to the review: identifier, key, weight, sensitive and so on.",
            kind=WordsByColumn(ROLES),
            metavar="A=ROLE,…",
        ),
    ] = None,
    missing_codes: CodesOption = None,
    kinds: KindsOption = None,
    labels: Annotated[
        Mapping[str, str] | None, Option("By column, what it means.", kind=WordsByColumn())
    ] = None,
    name: Annotated[
        str | None, Option("What to call the data; by default the file's name.")
    ] = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    sheet: SheetOption = None,
    codebook: CodebookOption = None,
    derive: DeriveOption = None,
    partial: bool = False,
) -> Microdata:
    """Load a file or a frame; its values are not changed.

    Files: text (``.csv``, ``.tsv``, ``.txt``, also ``.gz``), Parquet, Arrow, SAS, SAS
    transport, SPSS, Stata and Excel, by extension. Frames: Polars, pandas, PyArrow and what
    else narwhals knows; or a dictionary of columns. Microdata is taken too, and gets what is
    declared here on top.

    Only the `columns` named are read, if any are; they stay in file order. Roles are
    ``identifier``, ``key``, ``weight``, ``sensitive``, ``stratum``, ``household`` and ``drop``.
    Missing codes are a list for the whole file, or lists by column (``"*"`` is every column), and
    are compared by text form: ``-9`` means -9, -9.0 and ``"-9"``. Kinds are guessed by the rule of
    `keyhole.data.inference.guess_kind`. Derived columns come after those of the file; `partial`
    leaves out those that the file has already, or whose columns it does not have.

    Returns
    -------
    Microdata
        The data, and what is known of its columns.

    Raises
    ------
    FileError
        If the file cannot be read as what its extension says.
    ColumnError
        If columns are missing or repeated, or roles or kinds unknown; all of it at once.

    Examples
    --------
    >>> import polars as pl
    >>> data = load(pl.DataFrame({"age": [34, -9, 51]}), missing_codes=[-9], roles={"age": "key"})
    >>> data.column("age").to_list(), data.role("key")
    ([34, None, 51], ('age',))
    """
    request = request_of(columns, roles, missing_codes, kinds, labels, derive, partial, codebook)
    delimiter = "\t" if delimiter in ("tab", r"\t") else delimiter
    if isinstance(source, Microdata):
        data = describe_again(source, request, name)
    elif isinstance(source, str | os.PathLike):
        how = {"encoding": encoding, "delimiter": delimiter, "sheet": sheet}
        data = _load_file(Path(source), request, name, **how)
    else:
        frame, origin = read_frame(source, request)
        data = Microdata(frame, describe(frame, request), name or "data", origin)
    return with_derived(data, request) if request.derived else data


def derive(data: Any, lines: Mapping[str, str] | Iterable[str] | str) -> Any:
    """Add columns made from others; the same kind of data is returned.

    Parameters
    ----------
    data
        A frame of Polars, pandas or PyArrow, `Microdata`, or the path of a file, which is loaded.
    lines
        Expressions by name, or lines such as ``age10 = band(age, 10)``.

    Returns
    -------
    The same kind of frame, or `Microdata`, with the new columns after the others.

    Notes
    -----
    A missing value stays missing. Bands hold their lower bound and not their upper one.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [31, 47, None], "born": ["1990-05-31", "1974-02-01", None]})
    >>> derive(people, {"age10": "band(age, 10)"})["age10"].to_list()
    ['30-39', '40-49', None]
    """
    derived = load(data, derive=lines)
    is_frame = not isinstance(data, Microdata | str | os.PathLike)
    return derived.to_native() if is_frame else derived


def request_of(
    columns: Any = None,
    roles: Any = None,
    missing_codes: Any = None,
    kinds: Any = None,
    labels: Any = None,
    derive: Any = None,
    partial: bool = False,
    codebook: Any = None,
) -> Request:
    """Read what a caller of `load` declares about the columns."""
    if columns is not None and not isinstance(columns, Iterable):
        raise OptionError(f"columns must be a list of names. Got {type(columns).__name__} instead.")
    listed = [columns] if isinstance(columns, str) else columns
    if isinstance(missing_codes, Mapping):
        missing_codes = _by_name(missing_codes, "missing codes")
    return Request(
        None if listed is None else [str(name) for name in listed],  # not all are text in pandas
        _by_name(roles, "roles"),
        () if missing_codes is None else missing_codes,
        _by_name(kinds, "kinds"),
        {column: str(label) for column, label in _by_name(labels, "labels").items()},
        {one.name: str(one.tree) for one in derivations_of(derive)},
        partial,
        {} if codebook is None else read_codebook(codebook),
    )


def _by_name(declared: Any, what: str) -> dict[str, Any]:
    if not isinstance(declared, Mapping | None):
        raise OptionError(
            f"{what} must be given by column, as {{'age': ...}}. "
            f"Got {type(declared).__name__} instead."
        )
    return {str(name): value for name, value in (declared or {}).items()}


def _load_file(path: Path, request: Request, name: str | None, **how: Any) -> Microdata:
    require_file(path)
    name = name or path.name[: len(path.name) - len(suffix_of(path))] or "data"
    form = find_format(path)
    safe = form in _SAFE and not is_small_arrow(path, form)
    read = read_here if safe and not is_everything_apart() else read_apart
    columns, origin, facts = read(path, form, request, **how)
    if form == "text":
        frame, variables, codes = describe_text(columns, request)
    else:
        frame, variables, codes = describe_columns(columns, request, facts)
    data = Microdata(frame, variables, name, origin)
    data._codes.update(codes)
    return data
