"""Drafts of review files, made by looking at a data file: proposals that run as they are."""

from __future__ import annotations

import dataclasses
import datetime
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from keyhole.charts import percentage
from keyhole.core.files import write_whole
from keyhole.core.kinds import LARGEST, Columns, File
from keyhole.core.marks import COUNT, SPREAD, Named
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.shared import ForceOption, Names
from keyhole.core.tables import Table
from keyhole.core.toml import comment, quote, toml_key, toml_value
from keyhole.data import Microdata, reading
from keyhole.errors import InputError, OptionError
from keyhole.exposure.scores import MOST_VARIABLES
from keyhole.results import Result
from keyhole.reviews.column_guesses import Guess, guess, guess_kinds
from keyhole.reviews.files import seen_from
from keyhole.reviews.stages.outgoing import WEIGHT
from keyhole.screening.screen import Screening, screen
from keyhole.synthesis.constraints import revealing_columns

REVIEW = "review.toml"
_NAMED = 20  # columns of one sort that a note names
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
        schema = dict.fromkeys(("column", "part", "why"), pl.String)
        return pl.DataFrame(self._rows(), schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return what each column was taken for, and what to do next."""
        title = f"{self.file.name}: {self.records:,} records, {self.columns:,} columns"
        run = f"keyhole review {self.path} --out {self.path.with_name('findings')}"
        guess, knowable = self.guess, _some(self.guess.knowable)
        suspected = {"Taken for missing": guess.missing_codes,
                     "May mean missing, see the review file": guess.doubtful}  # fmt: skip
        notes = [
            *([f"Others could know these too; the draft has {len(guess.keys)} keys without them: "
               f"{knowable}."] if knowable else []),
            *([f"Also sensitive, on subjects that have two columns already: "
               f"{_some(guess.also_sensitive)}."] if guess.also_sensitive else []),
            *(f"{name} reveals {key}: each value of one has one value of the other."
              for name, key in guess.equivalent.items()),
            *([f"Further weights: {_some(guess.weights)}."] if guess.weights else []),
            *([f"{len(guess.replicates)} replicate weights: {guess.replicates[0]} to "
               f"{guess.replicates[-1]}."] if guess.replicates else []),
            *(f"{count} level{'s' * (count > 1)} of {name} differ{'s' * (count == 1)} from another "
              f"only in case or spaces." for name, count in guess.alike.items()),
            *(f"{words}: {_listed(codes)}." for words, codes in suspected.items() if codes),
            f"The review file is at {self.path}. It is only a proposal: check it and change what "
            f"is wrong.",
            f"Then run: {run}",
        ]  # fmt: skip
        return [Table(title, ["column", "role", "why"], self._rows(), notes)]

    def _rows(self) -> list[list[str]]:
        why = self.guess.why
        rows = [[name, "key", why.get(name, "as asked")] for name in self.guess.keys]
        rows += [[name, role, why.get(name, "")] for name, role in self.guess.roles.items()]
        rows += [[name, "category", reason] for name, reason in self.guess.codes.items()]
        return rows


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (
        f" and {more} more, see the review file" if more > 0 else ""
    )


def _listed(found: Mapping[str, Sequence[Any]]) -> str:
    return "; ".join(f"{', '.join(map(str, codes))} in {name}" for name, codes in found.items())


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
        Option("The columns an intruder could know, instead of the guesses.", kind=Columns("key")),
    ] = None,
    missing_codes: reading.CodesOption = None,
    kinds: reading.KindsOption = None,
    encoding: reading.EncodingOption = None,
    delimiter: reading.DelimiterOption = None,
    sheet: reading.SheetOption = None,
    codebook: reading.CodebookOption = None,
    force: ForceOption = False,
) -> Draft:
    r"""Draft a review file from a data file.

    Keys, roles and missing codes are guessed from names, labels and contents, each with its
    reason: check them. The draft can be run as it is; sections that need a decision are included
    as comments, with settings for this file. No value of a record is written, except codes of
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
        data = reading.load(file, **read)
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


LIMIT = 0.05
# So many records times sets are counted in some 20 seconds.
WORK, FEWEST_SETS = 4_000_000_000, 1_000
_WIDE = 96
# A top code lies where at least this share of the records, and so many, are above it.
ABOVE, LEAST = 0.02, 20
# Round numbers, so that a top code is nobody's value.
ROUND = 5
MOST_TARGETS = 2
_RELEASE = """\
# What is released, to whom and for what: for the board, and for the public note.
[release]
steps = {0}    # the sections that produce the release from the file
# to = "researchers who signed the agreement"
# purpose = "studies of health and service"
# conditions = ["No attempt to find a person.", "Results are published as tables only."]
# contact = "the office's address for questions"
# board = ["The head of the office", "The disclosure officer"]
"""


def draft_text(
    data: Microdata,
    found: Screening,
    guess: Guess,
    *,
    file: str,
    review: str,
    read: Mapping[str, Any],
) -> str:
    """Return the text of a review file; `file` is seen from it, `read` is how it is read."""
    several = len(guess.keys) > 1
    numbers = [
        name for name in guess.keys
        if data.variable(name).kind == "measure" and data.column(name).dtype.is_numeric()
    ]  # fmt: skip
    head = f"""\
# The review of {comment(file)}, drafted from its contents: {data.records:,} records in
# {len(data.names):,} columns. All of it is a proposal: check it, change it, and run it here:
#   keyhole review {comment(shlex.quote(review))} --out findings
# Sections that are commented out are filled in for this file: uncomment to use.

title = {quote(f"Review of {data.name}")}
"""
    own = [*guess.with_role("identifier"), "id"][0]
    study = f"""[study]
eif = "external.csv"    # a file that an intruder could have
iuf = "truth.csv"       # the true matches: one row per person in both files
puf_id = {quote(own)}
eif_id = "eif_id"
link = {toml_value(guess.keys if several else [*guess.keys, *guess.candidates[:1]])}
numeric = {toml_value(numbers)}
metrics = ["unicity", "taxicab"]
limit = 0.1    # the highest acceptable share of suspected matches that are confirmed"""
    parts = [
        head,
        _keys(guess),
        _data(data, file, guess, read),
        _measured(guess, found.year),
        _selection(guess, data.records),
        _release(found, guess, '["solve"]' if several else "[]"),
        _protection(data, found, guess, numbers),
        _synthesis(data, found, guess),
        _commented(
            "A re-identification study, as an intruder would attack: it needs two more files.",
            study,
        ),
        _commented(
            'Keys from scenarios instead of guesses: then set keys = "scenario:NAME" above.',
            '[environment]\nstore = "environment.db"    '
            "# made by: keyhole environment init --store environment.db",
        ),
    ]
    return "\n".join(parts)


def _keys(guess: Guess) -> str:
    why = guess.why
    lines = [
        "# What an intruder could know about a person. Only you can judge this: check all columns.",
        *(
            f"# {comment(coarse)} is a coarser version of {comment(fine)}: use it instead if "
            f"nobody could know more."
            for fine, coarse in guess.coarser.items()
        ),
        *(
            f"# {comment(name)} reveals {comment(key)}: each value of one has one value of the "
            f"other."
            for name, key in guess.equivalent.items()
        ),
        "keys = [",
        *(_reasoned(f"    {quote(n)},", why.get(n, "as asked")) for n in guess.keys),
        *(f"    # {comment(quote(n))},    # others could know it too" for n in guess.knowable),
        "]",
        "",
    ]
    return "\n".join(lines)


def _data(data: Microdata, file: str, guess: Guess, read: Mapping[str, Any]) -> str:
    stated = ("encoding", "delimiter", "sheet", "codebook", "missing_codes")
    lines = ["[data]", f"file = {quote(file)}"]
    lines += [f"{name} = {toml_value(read[name])}" for name in stated if name in read]
    if guess.replicates:
        first, last = comment(guess.replicates[0]), comment(guess.replicates[-1])
        lines += [f"# {len(guess.replicates)} replicate weights: {first} to {last}"]
    if "missing_codes" not in read:
        lines += _codes(data, guess)
    kinds = {name: (kind, "as asked") for name, kind in read.get("kinds", {}).items()}
    kinds |= {name: ("category", why) for name, why in guess.codes.items()}
    roles = {name: (role, guess.why.get(name, "")) for name, role in guess.roles.items()}
    for section, settings in (("kinds", kinds), ("roles", roles)):
        lines += ["", f"[data.{section}]"] if settings else []
        lines += [
            _reasoned(f"{toml_key(name)} = {quote(value)}", why)
            for name, (value, why) in settings.items()
        ]
    also = (f'# {toml_key(name)} = "sensitive"' for name in guess.also_sensitive)
    lines += map(_reasoned, map(comment, also), map(guess.why.__getitem__, guess.also_sensitive))
    return "\n".join([*lines, ""])


def _codes(data: Microdata, guess: Guess) -> list[str]:
    sure, doubtful, lines = guess.missing_codes, guess.doubtful, list[str]()

    def share(name: str, codes: Sequence[Any]) -> str:
        column = data.frame.get_column(name)
        return percentage(float(column.is_in(list(codes)).sum()) / max(data.records, 1))

    if sure:
        lines += ["", "# These look like codes for missing values.", "[data.missing_codes]"]
    for name, codes in sure.items():
        told = f"{toml_key(name)} = {toml_value(codes)}    # {share(name, codes)} of the records"
        if name in doubtful:
            both, more = toml_value([*codes, *doubtful[name]]), toml_value(doubtful[name])[1:-1]
            told += f"; {comment(more)} ({share(name, doubtful[name])}) may be one too: "
            told += comment(both)
        lines.append(told)
    alone = {name: codes for name, codes in doubtful.items() if name not in sure}
    if alone:
        asks = "# These may be codes for missing values, or true values: only you can judge this."
        lines += [asks] if sure else ["", asks, "# [data.missing_codes]"]
    for name, codes in alone.items():
        told = f"# {toml_key(name)} = {comment(toml_value(codes))}"
        lines.append(f"{told}    # {share(name, codes)} of the records")
    return lines


def _measured(guess: Guess, year: int) -> str:
    lines = [
        "# Identifiers, Safe Harbor, columns that reveal others.",
        "[screen]",
        f"year = {year}    # the year in which ages are computed from years of birth",
        "",
        "[exposure]",
        "cutoff = 3      # records in cells smaller than this are at risk",
        f"limit = {LIMIT}    # the highest acceptable share of records at risk: your decision",
    ]
    if not guess.with_role("weight"):
        lines.append("# fraction = 0.1    # the sampling fraction")
    if 2 <= len(guess.keys) <= MOST_VARIABLES:
        size = f"max_size = {min(3, len(guess.keys) - 1)}"
        lines += ["", "[uniques]", f"{size}    # singled out by at most this many variables"]
    if guess.with_role("sensitive"):
        lines += [
            "",
            "# Attribute disclosure: what the keys reveal about columns with the role sensitive.",
            "[attributes]",
            f"limit = {LIMIT}    # the highest acceptable share of records in cells with one "
            f"sensitive value",
        ]
    return "\n".join([*lines, ""])


def _selection(guess: Guess, records: int) -> str:
    keep, *rest = guess.keys
    # A candidate with its coarser version is a list: a name may hold a bar.
    named = [
        f"[{quote(n)}, {quote(guess.coarser[n])}]" if n in guess.coarser else quote(n)
        for n in [*rest, *guess.candidates]
    ]
    if not named:
        return ""
    lines = ["   "]
    for item in named:
        if len(lines[-1]) + len(item) > _WIDE and lines[-1].strip():
            lines.append("   ")
        lines[-1] += f" {item},"
    candidates = "\n".join(lines)
    counts = float(f"{min(max(WORK // records, FEWEST_SETS), LARGEST):.1e}")
    text = f"""# Which variables can be released together within the limit.
[selection]
method = ["forward", "backward"]    # the first makes the proposal
keep = [{quote(keep)}]
candidates = [
{candidates}
]
limit = {LIMIT}

# The best release within the limit: how much detail of each key can be kept.
[solve]
evaluations = {counts:.0f}    # counts before it stops
"""
    frontier = "[frontier]\nseconds = 60    # stop with the sets found so far"
    return f"{text}\n{_commented('All maximal sets of variables within the limit.', frontier)}"


def _revealing(found: Screening, guess: Guess) -> list[str]:
    """Return columns that determine a key and are none: they reveal what is suppressed."""
    alone = (one for one in found.dependencies if len(one.by) == 1)
    by = dict.fromkeys(one.by[0] for one in alone if one.determined in guess.keys)
    return [name for name in {**by, **guess.equivalent} if name not in guess.set_apart()]


def _release(found: Screening, guess: Guess, steps: str) -> str:
    text, drop = _RELEASE.format(steps), _revealing(found, guess)
    if drop:
        text += f"drop = {toml_value(drop)}    # would reveal keys\n"
    made = [f"{toml_key(name)} = {quote(WEIGHT)}" for name in (*guess.weights, *guess.replicates)]
    return "\n".join([text, "[release.not_knowable]", *made, ""]) if made else text


def _protection(data: Microdata, found: Screening, guess: Guess, numbers: Sequence[str]) -> str:
    drop, step, steps = _revealing(found, guess), "[[protection.step]]", ["[protection]"]
    if drop:
        columns = f"columns = {toml_value(drop)}    # would reveal keys"
        steps.append(f'{step}\nmethod = "drop"\n{columns}')
    for name in numbers:
        top = _top(data, name)
        if top is not None:
            steps.append(f'{step}\nmethod = "top-code"\ncolumn = {quote(name)}\nvalue = {top}')
    keys = toml_value(guess.keys)
    steps.append(f'{step}\nmethod = "suppress"\nkeys = {keys}\nlimit = {LIMIT}')
    what = "A plan of protections, and what each step of it costs the analyst."
    return _commented(what, "\n\n".join(steps))


def _synthesis(data: Microdata, found: Screening, guess: Guess) -> str:
    targets = _targets(data, guess)
    if not targets:
        return ""
    by_sex = (name for name in guess.keys if guess.why.get(name) == "sex or gender")
    strata = [name for name in by_sex if name not in targets]
    # Columns that would name records, or tell what a target was.
    away, unique = guess.set_apart(), {one.column for one in found.near_unique}
    names = ((one.variable.name, one.read) for one in found.inspections)
    others = [name for name, read in names if read and name not in away]
    tell = unique | {name for _, name in revealing_columns(data, targets, others)}
    tell |= {coarse for fine, coarse in guess.coarser.items() if fine in targets}
    drop = [name for name in others if name in tell]
    lines = [
        "[synthesis]",
        f"targets = {toml_value(targets)}",
        *([f"strata = {toml_value(strata)}"] if strata else []),
        *([f"drop = {toml_value(drop)}    # would reveal the original values"]
          if drop else []),
        "implicates = 5",
        "decoys = 0.5",
        "# Add a line with a secret seed: seed = a whole number of at least 15 digits.",
    ]  # fmt: skip
    what = "Partial synthesis: values that make records stand out are replaced."
    return _commented(what, "\n".join(lines))


def _commented(what: str, text: str) -> str:
    lines = [f"# {line}".rstrip() for line in text.splitlines()]
    return "\n".join([f"# --- {what}", *lines, ""])


def _reasoned(setting: str, reason: str) -> str:
    return f"{setting}    # {comment(reason)}" if reason else setting


def _top(data: Microdata, name: str) -> int | None:
    """Return a round number that many records are above, if there is one."""
    column = data.column(name).drop_nulls()
    many = max(LEAST, int(ABOVE * len(column)))
    if len(column) <= 2 * many:
        return None
    value: Any = column.sort(descending=True)[many]
    top = int(value // ROUND * ROUND)
    lowest: Any = column.min()
    return top if top > lowest + ROUND else None


def _targets(data: Microdata, guess: Guess) -> list[str]:
    """Choose the keys with most levels that no other key tells."""
    if len(guess.keys) < 2:
        return []
    fit = [name for name in guess.keys if guess.why.get(name) not in ("place", "sex or gender")]
    ordered = sorted(fit, key=lambda name: -data.codes(name).size)
    revealed = {target for target, _ in revealing_columns(data, ordered, guess.keys)}
    return [name for name in ordered if name not in revealed][:MOST_TARGETS]
