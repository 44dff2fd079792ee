"""Text of a drafted review file: settings with their reasons, further sections as comments."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.core.toml import comment, quote, toml_key, toml_value
from keyhole.data import Microdata
from keyhole.exposure.scores import MOST_VARIABLES
from keyhole.reviews.column_guesses import Guess, share_of
from keyhole.reviews.digits import rate
from keyhole.screening.screen import Screening
from keyhole.synthesis.constraints import revealing_columns

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
# What goes out, to whom and for what: for the board, and for the public note.
[release]
steps = {0}    # the sections that make it from the file
# to = "researchers who signed the agreement"
# purpose = "studies of health and service"
# conditions = ["No attempt to find a person.", "Results go out as tables only."]
# contact = "the office's address for questions"
# board = ["The head of the office", "The disclosure officer"]
"""
_ENVIRONMENT = (
    'Keys from scenarios, instead of guesses: then keys = "scenario:NAME" above.',
    """[environment]
store = "environment.db"    # made by: keyhole environment init --store environment.db""",
)


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
    proposed = _propose(data, found, guess)
    parts = [
        _head(data, file, review),
        _keys(guess),
        _data(data, file, guess, read),
        _measured(guess, found.year),
        _selection(guess, data.records),
        _RELEASE.format('["solve"]' if len(guess.keys) > 1 else "[]"),
        _protection(guess, proposed),
        _synthesis(proposed),
        _study(guess, proposed),
        _commented(*_ENVIRONMENT),
    ]
    return "\n".join(parts)


def _head(data: Microdata, file: str, review: str) -> str:
    return f"""\
# The review of {comment(file)}, drafted by looking at it: {data.records:,} records in
# {len(data.names):,} columns. All of it is a proposal: read it, change it, and run it here:
#   keyhole review {comment(shlex.quote(review))} --out findings
# Sections that are commented out fit the file: uncomment them to use them.

title = {quote(f"Review of {data.name}")}
"""


def _keys(guess: Guess) -> str:
    why = guess.why
    lines = [_reasoned(f"    {quote(name)},", why.get(name, "as asked")) for name in guess.keys]
    rough = [
        f"# {comment(coarse)} is a coarser version of {comment(fine)}: name it instead if nobody "
        f"knows more."
        for fine, coarse in guess.coarser.items()
    ]
    more = [
        f"    # {comment(quote(name))},    # others could know it too" for name in guess.knowable
    ]
    return "\n".join(
        ["# What an intruder could know of a person. Nobody but you knows: go through all columns.",
         *rough, "keys = [", *lines, *more, "]", ""]
    )  # fmt: skip


def _data(data: Microdata, file: str, guess: Guess, read: Mapping[str, Any]) -> str:
    lines = ["[data]", f"file = {quote(file)}"]
    lines += [f"{name} = {toml_value(read[name])}" for name in
              ("encoding", "delimiter", "sheet", "codebook") if name in read]  # fmt: skip
    if "missing_codes" in read:
        lines += [f"missing_codes = {toml_value(read['missing_codes'])}"]
    if guess.replicates:
        first, last = comment(guess.replicates[0]), comment(guess.replicates[-1])
        lines += [f"# {len(guess.replicates)} replicate weights: {first} to {last}"]
    if "missing_codes" not in read:
        lines += _codes(data, guess)
    given = {name: (kind, "as asked") for name, kind in read.get("kinds", {}).items()}
    kinds = {**given, **{name: ("category", why) for name, why in guess.codes.items()}}
    if kinds:
        lines += ["", "[data.kinds]"]
        lines += [
            _reasoned(f"{toml_key(name)} = {quote(kind)}", why)
            for name, (kind, why) in kinds.items()
        ]
    if guess.roles:
        lines += ["", "[data.roles]"]
        lines += [
            _reasoned(f"{toml_key(name)} = {quote(role)}", guess.why.get(name, ""))
            for name, role in guess.roles.items()
        ]
    return "\n".join([*lines, ""])


def _codes(data: Microdata, guess: Guess) -> list[str]:
    sure, doubtful = guess.missing_codes, guess.doubtful
    lines = []
    if sure:
        lines += ["", "# These look like codes for missing values.", "[data.missing_codes]"]
    for name, codes in sure.items():
        more = ""
        if name in doubtful:
            both = toml_value([*codes, *doubtful[name]])
            told, share = (
                toml_value(doubtful[name])[1:-1],
                rate(share_of(data, name, doubtful[name])),
            )
            more = f"; {comment(told)} ({share}) may be one too: {comment(both)}"
        share = _share(data, name, codes)
        lines.append(f"{toml_key(name)} = {toml_value(codes)}    # {share}{more}")
    alone = {name: codes for name, codes in doubtful.items() if name not in sure}
    if alone:
        mark = [] if sure else ["[data.missing_codes]"]
        what = "# These may be codes for missing values, or values: nobody but you knows."
        lines += ["" for _ in mark] + [what, *(f"# {line}" for line in mark)]
    return lines + [
        f"# {toml_key(name)} = {comment(toml_value(codes))}    # {_share(data, name, codes)}"
        for name, codes in alone.items()
    ]


def _share(data: Microdata, name: str, codes: Sequence[Any]) -> str:
    return f"{rate(share_of(data, name, tuple(codes)))} of the records"


def _measured(guess: Guess, year: int) -> str:
    lines = [
        "# Identifiers, Safe Harbor, columns that reveal others.",
        "[screen]",
        f"year = {year}    # to which ages are counted from years of birth",
        "",
        "[exposure]",
        "cutoff = 3      # records in cells smaller than this are at risk",
        f"limit = {LIMIT}    # the highest share of them that is acceptable: yours to say",
    ]
    if not guess.with_role("weight"):
        lines.append("# fraction = 0.1    # the share of the population that is in the file")
    if 2 <= len(guess.keys) <= MOST_VARIABLES:
        size = min(3, len(guess.keys) - 1)
        lines += [
            "",
            "[uniques]",
            f"max_size = {size}    # singled out by at most this many variables",
        ]
    if guess.with_role("sensitive"):
        lines += [
            "",
            "# What the keys tell of the columns with the role sensitive, without finding anybody.",
            "[attributes]",
            f"limit = {LIMIT}    # the highest share of records in cells with one value of them",
        ]
    return "\n".join([*lines, ""])


def _selection(guess: Guess, records: int) -> str:
    keep, *rest = guess.keys
    named = [_alternatives(name, guess.coarser) for name in [*rest, *guess.candidates]]
    if not named:
        return ""
    text = f"""# Which variables can be released together within the limit.
[selection]
method = ["forward", "backward"]    # the first makes the proposal
keep = [{quote(keep)}]
candidates = [
{_lines(named)}
]
limit = {LIMIT}

# The best release within the limit: which detail of which key, and what that keeps.
[solve]
evaluations = {max(WORK // records, FEWEST_SETS)}    # so many sets of levels are counted
"""
    frontier = "[frontier]\nseconds = 60    # stop with the sets found so far"
    return f"{text}\n{_commented('All the best sets of variables, exactly.', frontier)}"


def _alternatives(name: str, coarser: Mapping[str, str]) -> str:
    """Name a candidate with its coarser version, as a list: a name may hold a bar."""
    if name in coarser:
        return f"[{quote(name)}, {quote(coarser[name])}]"
    return quote(name)


def _protection(guess: Guess, proposed: _Proposals) -> str:
    steps = []
    if proposed.drop:
        steps.append(
            f"[[protection.step]]\nmethod = \"drop\"\ncolumns = {toml_value(proposed.drop)}    "
            f"# would reveal keys"
        )  # fmt: skip
    for name, value in proposed.top_codes.items():
        steps.append(
            f'[[protection.step]]\nmethod = "top-code"\ncolumn = {quote(name)}\nvalue = {value}'
        )
    keys = toml_value(guess.keys)
    steps.append(f'[[protection.step]]\nmethod = "suppress"\nkeys = {keys}\nlimit = {LIMIT}')
    text = "\n\n".join(["[protection]", *steps])
    return _commented("A plan of protections, and what each step of it costs the analyst.", text)


def _synthesis(proposed: _Proposals) -> str:
    if not proposed.targets:
        return ""
    lines = [
        "[synthesis]",
        f"targets = {toml_value(proposed.targets)}",
        *([f"strata = {toml_value(proposed.strata)}"] if proposed.strata else []),
        *([f"drop = {toml_value(proposed.telling)}    # they would tell what was there before"]
          if proposed.telling else []),
        "implicates = 5",
        "decoys = 0.5",
        # So large that nobody finds it by trying, even from a hash of this file.
        f"seed = {secrets.randbelow(2**62)}    # a secret: tell nobody",
    ]  # fmt: skip
    what = "What makes records stand out is replaced by values of others like them."
    return _commented(what, "\n".join(lines))


def _study(guess: Guess, proposed: _Proposals) -> str:
    own = [*guess.with_role("identifier"), "id"][0]
    text = f"""[study]
eif = "external.csv"    # a file that an intruder could have
iuf = "truth.csv"       # the true matches: one row per person in both files
puf_id = {quote(own)}
eif_id = "eif_id"
link = {toml_value(guess.keys if len(guess.keys) > 1 else [*guess.keys, *guess.candidates[:1]])}
numeric = {toml_value(proposed.numbers)}
metrics = ["unicity", "taxicab"]
limit = 0.1    # the highest acceptable share of suspected matches that are confirmed"""
    return _commented("An attack as an intruder would make it; it needs two more files.", text)


def _commented(what: str, text: str) -> str:
    lines = [f"# {line}".rstrip() for line in text.splitlines()]
    return "\n".join([f"# --- {what}", *lines, ""])


def _reasoned(setting: str, reason: str) -> str:
    return f"{setting}    # {comment(reason)}" if reason else setting


def _lines(items: Sequence[str]) -> str:
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) > _WIDE and line.strip():
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line])


@dataclass(frozen=True, slots=True)
class _Proposals:
    """Settings for the sections of a draft that are comments."""

    drop: tuple[str, ...]
    top_codes: Mapping[str, int]
    targets: tuple[str, ...]
    strata: tuple[str, ...]
    telling: tuple[str, ...]
    numbers: tuple[str, ...]


def _propose(data: Microdata, found: Screening, guess: Guess) -> _Proposals:
    numbers = tuple(name for name in guess.keys if _is_number(data, name))
    targets = _targets(data, guess)
    strata = tuple(
        name
        for name in guess.keys
        if guess.why.get(name) == "sex or gender" and name not in targets
    )
    return _Proposals(
        drop=_revealing(found, guess),
        top_codes={name: top for name in numbers if (top := _top(data, name)) is not None},
        targets=targets,
        strata=strata,
        telling=_identifying(data, found, guess, targets),
        numbers=numbers,
    )


def _is_number(data: Microdata, name: str) -> bool:
    return data.variable(name).kind == "measure" and data.column(name).dtype.is_numeric()


def _revealing(found: Screening, guess: Guess) -> tuple[str, ...]:
    """Return columns that determine a key, and are none: they would reveal what is suppressed."""
    by = [
        one.by[0] for one in found.dependencies if len(one.by) == 1 and one.determined in guess.keys
    ]
    return tuple(n for n in dict.fromkeys(by) if n not in guess.set_apart())


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


def _targets(data: Microdata, guess: Guess) -> tuple[str, ...]:
    """Choose the keys with most levels that no other key tells."""
    if len(guess.keys) < 2:
        return ()
    fit = [name for name in guess.keys if guess.why.get(name) not in ("place", "sex or gender")]
    ordered = sorted(fit, key=lambda name: -data.codes(name).size)
    revealed = {target for target, _ in revealing_columns(data, ordered, guess.keys)}
    return tuple([name for name in ordered if name not in revealed][:MOST_TARGETS])


def _identifying(
    data: Microdata, found: Screening, guess: Guess, targets: Sequence[str]
) -> tuple[str, ...]:
    """Return columns that would name records, or tell what a target was."""
    away = guess.set_apart()
    others = [one.variable.name for one in found.inspections
              if one.read and one.variable.name not in away]  # fmt: skip
    unique = {one.column for one in found.near_unique}
    tell = {name for _, name in revealing_columns(data, targets, others)} if targets else set()
    tell |= {coarse for fine, coarse in guess.coarser.items() if fine in targets}
    return tuple(name for name in others if name in tell or name in unique)
