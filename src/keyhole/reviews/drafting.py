"""The draft of a review file, made by looking at the data file: a proposal that runs as it is."""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from keyhole.core.files import write_whole
from keyhole.core.kinds import Columns, File
from keyhole.core.marks import COUNT, SPREAD, Named
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import ForceOption, Names
from keyhole.core.tables import Table
from keyhole.data.reading import (
    CodebookOption,
    CodesOption,
    DelimiterOption,
    EncodingOption,
    KindsOption,
    SheetOption,
    load,
)
from keyhole.errors import InputError, OptionError
from keyhole.results import Result
from keyhole.reviews.column_guesses import Guess, guess, guess_kinds
from keyhole.reviews.draft_text import draft_text
from keyhole.reviews.files import seen_from
from keyhole.screening.screen import screen

if TYPE_CHECKING:
    import polars as pl


REVIEW = "review.toml"
_READ = ("missing_codes", "kinds", "encoding", "delimiter", "sheet", "codebook")


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Draft(Result):
    """The draft of a review, and what it was guessed from."""

    path: Annotated[Path, Named("review"), "The review file that was written."]
    file: Path
    records: Annotated[int, COUNT]
    columns: int
    guess: Annotated[Guess, SPREAD]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a column with a part in the review."""
        import polars as pl

        rows = self._rows()
        return pl.DataFrame(
            rows, schema=dict.fromkeys(("column", "part", "why"), pl.String), orient="row"
        )

    def tables(self) -> list[Table]:
        """Return what each column was taken for, and what to do next."""
        title = f"{self.file.name}: {self.records:,} records, {self.columns:,} columns"
        run = f"keyhole review {self.path} --out {self.path.with_name('findings')}"
        guess, knowable = self.guess, ", ".join(self.guess.knowable)
        notes = [
            *([f"Others could know these too; the key has {len(guess.keys)} columns without them: "
               f"{knowable}."] if knowable else []),
            *([f"{len(guess.replicates)} replicate weights: {guess.replicates[0]} to "
               f"{guess.replicates[-1]}."] if guess.replicates else []),
            *(f"{count} level{'s' * (count > 1)} of {name} differ{'s' * (count == 1)} from another "
              f"only by case or blanks." for name, count in guess.alike.items()),
            *self._suspected(),
            f"The review file is at {self.path}. It is a proposal: read it and change it.",
            f"Then run: {run}",
        ]  # fmt: skip
        return [Table(title, ["column", "taken for", "why"], self._rows(), notes)]

    def _suspected(self) -> list[str]:
        kinds = {"Taken for missing": self.guess.missing_codes,
                 "May mean missing, see the review file": self.guess.doubtful}  # fmt: skip
        told = {
            words: [f"{', '.join(map(str, codes))} in {name}" for name, codes in found.items()]
            for words, found in kinds.items()
        }
        return [f"{words}: {'; '.join(codes)}." for words, codes in told.items() if codes]

    def _rows(self) -> list[list[str]]:
        why = self.guess.why
        rows = [[name, "key", why.get(name, "as asked")] for name in self.guess.keys]
        rows += [[name, role, why.get(name, "")] for name, role in self.guess.roles.items()]
        rows += [[name, "category", reason] for name, reason in self.guess.codes.items()]
        return rows


@documented
def init(
    file: Annotated[
        str | os.PathLike[str],
        Option(
            "The data: CSV, Parquet, Arrow, SAS, SPSS, Stata or Excel, by its extension.",
            kind=File(),
            argument=True,
        ),
    ],
    *,
    out: Annotated[
        str | os.PathLike[str],
        Option("The review file to be written.", kind=File(), metavar="REVIEW.toml"),
    ] = REVIEW,
    keys: Annotated[
        Names | None,
        Option("The columns an intruder could know, instead of guesses.", kind=Columns("key")),
    ] = None,
    missing_codes: CodesOption = None,
    kinds: KindsOption = None,
    encoding: EncodingOption = None,
    delimiter: DelimiterOption = None,
    sheet: SheetOption = None,
    codebook: CodebookOption = None,
    force: ForceOption = False,
) -> Draft:
    r"""Draft a review file by looking at a data file.

    Keys, roles and missing codes are guessed from names, labels and contents, each with its reason
    beside it: read them. The draft runs as it is; sections that need a decision are there as
    comments with settings that fit the file. No value of a record is written, but for codes of
    missing values that many records have. How the file is read is written into the review.

    Returns
    -------
    Draft
        What was guessed, and where the review file is.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "people.csv").write_text("id,sex,age\n1,f,30\n2,f,30\n3,f,41\n4,m,41\n")
    >>> draft = init(folder / "people.csv", out=folder / "review.toml")
    >>> draft.guess.keys, dict(draft.guess.roles)
    (('sex', 'age'), {'id': 'identifier'})
    """
    question = bind(init, locals())
    path = Path(question.out)
    read = {name: question.values[name] for name in _READ}
    try:
        data = load(file, **read)
        data.require_records()
    except InputError as error:
        raise type(error)([*question.problems, *error.problems]) from None
    problems = [*question.problems, *question.column_problems(data.names, data.name)]
    if problems:
        raise OptionError(problems)
    codes = {name: why for name, why in guess_kinds(data).items() if name not in (kinds or {})}
    data = data.with_variables(
        dataclasses.replace(data.variable(name), kind="category") for name in codes
    )
    found = screen(data, keys=question.keys, year=datetime.date.today().year)
    guessed = guess(data, found, question.keys, codes)
    declared = {name: value for name, value in read.items() if value}
    seen = seen_from(path.resolve().parent, Path(file).resolve())
    if codebook is not None:
        declared["codebook"] = seen_from(path.resolve().parent, Path(codebook).resolve())
    text = draft_text(data, found, guessed, file=seen, review=path.name, read=declared)
    with write_whole(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return Draft(path, Path(file), data.records, len(data.names), guessed)


def answer_init(given: Mapping[str, str]) -> bytes:
    """Draft a review file in a process of its own."""
    init(given["file"], out=given["out"])
    return b""


def init_problems(question: Question) -> Iterator[Problem]:
    """Say before the work what could not be written after it."""
    path = Path(question.out)
    if path.suffix.lower() != ".toml":
        yield Problem("{out} must be a .toml file. Got {0!r} instead.", path.name)
    elif question.file is not None and path.resolve() == Path(question.file).resolve():
        yield Problem("{out} {0!r} is the data file. Give another name.", str(path))
    elif os.path.lexists(path) and not question.force:
        yield Problem(
            "{0!r} exists. Give another name ({out}), or ask for it to be replaced ({force}).",
            str(path),
        )
    elif not path.parent.is_dir():
        yield Problem("{out}: the folder {0!r} does not exist. Make it first.", str(path.parent))
