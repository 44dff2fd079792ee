"""Command lines as people type them: options in groups, columns by pattern, standard input."""
# ruff: noqa: D102 (what the methods of a command are for is said by Click)

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand

from keyhole.core.files import scratch_folder
from keyhole.core.kinds import Columns, Data, Kind
from keyhole.core.options import Parameter, Problem
from keyhole.errors import FileError, InputError

GROUPS = ("Data", "Method", "Engine", "Output")
_ENGINE = ("engine", "memory", "work_folder", "master")
_OUTPUT = ("json", "plot", "records", "force", "out", "help")
ALL = "all"


def group_of(name: str, kind: Kind | None = None) -> str:
    """Return the group of `--help` that an option belongs to."""
    if isinstance(kind, Data):
        return "Data"
    return "Engine" if name in _ENGINE else "Output" if name in _OUTPUT else "Method"


class VerbCommand(TyperCommand):
    """A command that lists its options in groups, and takes each once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = args[: args.index("--")] if "--" in args else args
        flags = [word.partition("=")[0] for word in words if word.startswith("--")]
        for option in self.params:
            given = sum(flags.count(name) for name in option.opts)
            if given > 1 and not getattr(option, "multiple", False):
                name = option.opts[0]
                raise BadParameter(f"{name} is given {given} times. Give it once", ctx=ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        grouped: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
        for option in self.get_params(ctx):
            row = option.get_help_record(ctx)
            if row is not None:
                panel = getattr(option, "rich_help_panel", None)
                row = (row[0].removesuffix(" <path>"), row[1])
                grouped[panel if panel in grouped else group_of(option.name)].append(row)
        for name, rows in grouped.items():
            if rows:
                with formatter.section(name):
                    formatter.write_dl(rows)


@contextmanager
def standard_input(offered: Mapping[str, Parameter], words: dict[str, Any]) -> Iterator[None]:
    """Put what standard input gives into a file, where ``-`` stands for one."""
    named = ["file", *(name for name, one in offered.items() if isinstance(one.kind, Data))]
    asked = [n for n in named if str(words.get(n)) == "-" or words.get(n) == ["-"]]
    if not asked:
        yield
        return
    if len(asked) > 1:
        raise FileError("'-' is standard input, which can be read once. Give it once.")
    from keyhole.data.formats import name_by_contents

    with scratch_folder() as folder:
        path = folder / "stdin"
        with path.open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out)
        path = path.rename(folder / name_by_contents(path))
        words[asked[0]] = [str(path)] if isinstance(words[asked[0]], list) else path
        yield


def expand_columns(
    offered: Mapping[str, Parameter],
    values: dict[str, Any],
    names: Callable[[], Sequence[str]],
    problems: list[str],
) -> None:
    """Put columns in place of patterns: ``all,-PWGTP*`` are all but some, ``D*`` a beginning."""
    for option, parameter in offered.items():
        given: Sequence[str] = values.get(option) or ()
        if not isinstance(parameter.kind, Columns) or not any(map(_is_pattern, given)):
            continue
        try:
            known = names()
        except InputError:
            return  # told by the verb
        found: dict[str, None] = dict.fromkeys(known if given[0][:1] == "-" else ())
        for word in given:
            if word in known or not _is_pattern(word):
                found[word] = None
                continue
            pattern = "*" if word == ALL else word.removeprefix("-")
            hits = [name for name in known if name == pattern or fnmatchcase(name, pattern)]
            if not hits:
                template = f"{{{option}}} has {{0!r}}, which no column of the file is like."
                problems.append(Problem(template, word))
            if word[:1] == "-":
                found = {name: None for name in found if name not in hits}
            else:
                found |= dict.fromkeys(hits)
        values[option] = tuple(found)


def _is_pattern(word: str) -> bool:
    return word == ALL or word[:1] == "-" or "*" in word or "?" in word


def file_header(path: Path, how: Mapping[str, Any]) -> list[str]:
    """Return the columns of a file, with those to be derived."""
    from keyhole.data.deriving import derivations_of
    from keyhole.data.pieces import open_pieces

    read = {name: how.get(name) for name in ("encoding", "delimiter", "sheet")}
    read["delimiter"] = "\t" if read["delimiter"] in ("tab", r"\t") else read["delimiter"]
    with scratch_folder() as folder:
        names = open_pieces(path, lambda: folder / "copy.txt", **read).names
    return [*names, *(one.name for one in derivations_of(how.get("derive")))]
