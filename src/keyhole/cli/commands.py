"""Commands of verbs, made from the verbs' signatures, and command lines as people type them.

A verb's options, those of reading its file and those of what it gives back become one Typer
command. Words are read here by the kinds of the options; everything is checked by the verb itself,
and its problems are worded with the names of flags.
"""

from __future__ import annotations

import inspect
import logging
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from keyhole.cli.output import (
    Destinations,
    check_data_file,
    file_problems,
    one_file_problems,
    tell_of_compiling,
    tell_written,
    working,
)
from keyhole.core.expressions import Derivations
from keyhole.core.files import scratch_folder
from keyhole.core.kinds import Columns, Data, File, Flag, Kind, TableOrFile
from keyhole.core.options import (
    DataSource,
    Parameter,
    Problem,
    bind,
    name_as_flag,
    parameters_of,
    source_of,
    split_docstring,
    told_with,
    worded,
)
from keyhole.core.verbs import Output, Verb, imported
from keyhole.errors import FileError, InputError

# A path holds no address: its slashes are one by now.
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/[^/]")
READ = ("missing_codes", "kinds", "roles", "encoding", "delimiter", "sheet", "codebook",
        "derive")  # fmt: skip
"""The options of `keyhole.load` that commands have."""


def command_of(verb: Verb) -> Callable[..., None]:
    """Return the function that Typer makes a command of."""
    made = _Command.of(verb)

    def command(**words: Any) -> None:
        made.run(words)

    shown = [_file(source_of(made.function))] if made.has_file else []
    shown += map(_parameter, made.offered.values())
    for name in (n for n, p in made.offered.items() if p.option.secret):
        words = f"A file that holds the {name}, so that no command shows it."
        option = typer.Option(f"{name_as_flag(name)}-file", metavar="PATH", help=words)
        shown.append(_described(f"{name}_file", Path | None, option))
    shown += [*map(_parameter, made.reading.values()), *_outputs(verb)]
    shown.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in shown}
    command.__name__ = verb.name
    command.__doc__ = split_docstring(made.function)[0].replace("`", "")
    return command


@dataclass(frozen=True, slots=True)
class _Command:
    """A verb with the options that its command offers, and those of reading its file."""

    verb: Verb
    function: Callable[..., Any]
    offered: Mapping[str, Parameter]
    reading: Mapping[str, Parameter]
    has_file: bool

    @classmethod
    def of(cls, verb: Verb) -> _Command:
        """Look at the signature of a verb."""
        function = verb.function()
        offered = {n: p for n, p in parameters_of(function).items() if "c" in p.option.surfaces}
        has_file = "data" in inspect.signature(function).parameters
        has_data_options = any(isinstance(p.kind, Data) for p in offered.values())
        reading = {}
        if has_file or has_data_options:
            known = parameters_of(imported("keyhole.data.reading.load"))
            # Where options name data, they say themselves what a column is for.
            names = [name for name in READ if not (has_data_options and name == "roles")]
            reading = {name: known[name] for name in names}
        return cls(verb, function, offered, reading, has_file)

    def run(self, words: dict[str, Any]) -> None:
        """Run the verb on the words that were typed."""
        with standard_input(self.offered, words):
            self._run(words)

    def _run(self, words: Mapping[str, Any]) -> None:
        """Read the words, run the verb, and write and print what it gives."""
        verb, problems = self.verb, list[str]()
        values = {
            **{name: None for name, p in self.offered.items() if p.required},
            **_read(self.offered, words, problems),
            **_read_secrets(self.offered, words, problems),
        }
        how = {n: v for n, v in _read(self.reading, words, problems).items() if v is not None}
        file = words.get("file") or next(iter((values.get("puf") or {"": None}).values()))
        if file is not None and not Path(file).is_dir():
            expand_columns(self.offered, values, lambda: file_header(Path(file), how), problems)
        if not verb.returns:
            with told_with(dict.fromkeys(problems)):
                _tell_aside(verb, self.function(**values))
            return
        force = words.get("force", False)
        plot = words["plot"] if verb.picture else None
        records = words["records"] if verb.records else None
        outputs = Destinations(words["json"], plot, records, force)
        written = {o: words[o.name] for o in verb.outputs if words[o.name] is not None}
        with working(f"{verb.name}:") as report:
            if "progress" in inspect.signature(self.function).parameters:
                values["progress"] = report
            if words.get("engine") == "spark":
                # Libraries log to nobody in particular, as Py4J does if stopped.
                logging.getLogger().addHandler(logging.NullHandler())
            problems += self._output_problems(words, values, outputs, written)
            for name, parameter in self.offered.items():
                value = values.get(name)
                if isinstance(parameter.kind, Data) and isinstance(value, Mapping):
                    values[name] = {n: _source(path, how) for n, path in value.items()}
                elif isinstance(parameter.kind, Data) and value is not None:
                    values[name] = _source(value, how)
            tell_of_compiling()
            source = (_source(words["file"], how),) if self.has_file else ()
            with told_with(dict.fromkeys(problems)):
                result = self.function(*source, **values)
            for output, path in written.items():
                getattr(result, output.method)(path, force=force)
        for output, path in written.items():
            tell_written(output.what, path)
        outputs.give(result, Derivations().settle(how.get("derive", ())))
        _tell_aside(verb, result)
        if verb.verdict and not getattr(result, verb.verdict):
            raise typer.Exit(verb.failing)

    def _output_problems(
        self,
        words: Mapping[str, Any],
        values: Mapping[str, Any],
        outputs: Destinations,
        written: Mapping[Output, Path],
    ) -> list[str]:
        """Say what stands in the way of giving what was asked for, before anything is computed."""
        verb, problems, inputs = self.verb, list[str](), _inputs(self.offered, values)
        if verb.instead and words[verb.instead] and outputs.as_json:
            template = f"{{{verb.instead}}} and {{json}} exclude each other. Give one of them."
            problems.append(Problem(template))
        if self.has_file:
            file = inputs["the data"] = words["file"]
            if _ADDRESS.match(str(file)):
                problems.append(
                    "FILE must be a path here. Got an address instead: ask for it in Python, as in "
                    'keyhole.risk("hdfs://...", engine="spark").'
                )
            if outputs.records and words.get("engine") == "spark":
                problems.append(
                    "--engine must be memory or disk for one row per record (--records). Got "
                    "'spark' instead."
                )
        more = (c for n, columns in verb.more_records.items() if words[n] for c in columns)
        columns = [*dict.fromkeys((*verb.records, *more))]
        targets: dict[str, tuple[Path | None, Any]] = {}
        for output, file in written.items():
            is_data = output.is_data and file.suffix not in output.more_formats
            targets[name_as_flag(output.name)] = file, check_data_file if is_data else None
        targets["--records"] = outputs.records, lambda path: check_data_file(path, columns)
        targets["--plot"] = outputs.plot, lambda path: imported("keyhole.charts.chart_format")(path)
        own = {name_as_flag(o.name): imported(o.problems) for o in written if o.problems}
        for flag, (path, check) in targets.items():
            if path is not None:
                find = own.get(flag, partial(file_problems, check_format=check))
                blocked = find(path, outputs.force)
                problems += [f"{flag}: {worded(text, name_as_flag)}" for text in blocked]
        problems += one_file_problems({flag: path for flag, (path, _) in targets.items()}, inputs)
        for output in written:
            if output.needs:
                needed = imported(output.needs)(bind(self.function, values))
                problems += [problem.named(name_as_flag) for problem in needed]
        return problems


def _tell_aside(verb: Verb, result: Any) -> None:
    """Print what is told apart from the result."""
    told = getattr(result, verb.aside, str)()
    if told and sys.stderr is not None:
        print(told, file=sys.stderr)


def _described(name: str, kind: Any, option: Any, default: Any = None) -> inspect.Parameter:
    """Describe a parameter of a command as Typer wants it."""
    annotation = Annotated[kind, option]
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, only, default=default, annotation=annotation)


def _read_secrets(
    offered: Mapping[str, Parameter], words: Mapping[str, Any], problems: list[str]
) -> dict[str, Any]:
    """Read the secrets that stand in files; say so where one is given twice, or needed and not."""
    values: dict[str, Any] = {}
    for name, parameter in offered.items():
        path = words.get(f"{name}_file") if parameter.option.secret else None
        if path is not None and words[name] is not None:
            template = f"{{{name}}} and {{{name}_file}} both give it. Give one of them."
            problems.append(Problem(template))
        elif path is not None:
            try:
                values[name] = parameter.kind.read(path.read_text(encoding="utf-8").strip())
            except (OSError, ValueError):
                template = (
                    f"{{{name}_file}} must be a file that holds {{{name}}}. Got {{0!r}} instead."
                )
                problems.append(Problem(template, str(path)))
        elif parameter.option.secret and parameter.required and words[name] is None:
            problems.append(Problem(f"{{{name}}} must be given. Got none instead."))
    return values


def _inputs(offered: Mapping[str, Parameter], values: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files that options name, by flag."""
    found: dict[str, Path] = {}
    for name, parameter in offered.items():
        if isinstance(parameter.kind, File | Data | TableOrFile):
            value, flag = values.get(name), name_as_flag(name)
            paths = list(value.values()) if isinstance(value, dict) else value
            paths = paths if isinstance(paths, list) else [paths]
            for path in paths:
                if isinstance(path, str):
                    found[flag if len(paths) == 1 else f"{flag} {path}"] = Path(path)
    return found


def _source(file: Path, reading: Mapping[str, Any]) -> Any:
    from keyhole.engines.opening import DataFile

    return DataFile(file, reading)


def _read(
    known: Mapping[str, Parameter], words: Mapping[str, Any], problems: list[str]
) -> dict[str, Any]:
    """Read the words of options that were given; the others keep their defaults."""
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        word = words[name]
        if word is None or word == []:
            continue
        if isinstance(word, bool):
            values[name] = word
            continue
        try:
            kind = parameter.kind
            values[name] = kind.read_all(word) if isinstance(word, list) else kind.read(word)
        except ValueError as error:
            template = f"{{{name}}} must be written like {{0}}. Got {{1}} instead."
            shown = "another value" if parameter.option.secret else str(error)
            problems.append(Problem(template, parameter.metavar, shown))
    return values


def _file(source: DataSource | None) -> inspect.Parameter:
    """Describe the data that a command reads."""
    words = "The data: CSV, Parquet, Arrow, SAS, SPSS, Stata or Excel, by its extension."
    argument = typer.Argument(
        show_default=False,
        metavar=source.metavar if source else "FILE",
        help=source.help.replace("`", "") if source else words,
        rich_help_panel="Data",
    )
    return _described("file", Path, argument, inspect.Parameter.empty)


def _parameter(parameter: Parameter) -> inspect.Parameter:
    """Describe an option as Typer wants it: a word, or a flag."""
    panel = "Data" if parameter.option.argument else group_of(parameter.name, parameter.kind)
    flag = name_as_flag(parameter.name)
    names = [flag, *filter(None, [parameter.option.also])]
    value = parameter.settled_default
    default: Any = None if value in (None, (), {}) else parameter.kind.write(value)
    if parameter.required and not parameter.option.secret and parameter.option.needed is None:
        default = inspect.Parameter.empty
    if isinstance(parameter.kind, Flag):
        off = parameter.option.off or f"--no-{flag[2:]}"
        names = [flag if parameter.default is False else f"{flag}/{off}"]
        kind: Any = bool
        default = parameter.default
    else:
        one: Any = list[str] if parameter.kind.repeatable else str
        kind = one if default is inspect.Parameter.empty else one | None
    words = parameter.help.replace("`", "")
    metavar = None if kind is bool else parameter.metavar
    if parameter.option.argument:
        option: Any = typer.Argument(
            metavar=metavar, help=words, show_default=False, rich_help_panel=panel
        )
    else:
        shown = default not in (None, False, inspect.Parameter.empty)
        option = typer.Option(
            *names, metavar=metavar, help=words, show_default=shown, rich_help_panel=panel
        )
    return _described(parameter.name, kind, option, default)


def _outputs(verb: Verb) -> list[inspect.Parameter]:
    """Describe what a command gives back, and where."""
    found = []
    for one in verb.outputs:
        option = typer.Option(metavar=one.metavar, help=one.help, rich_help_panel="Output")
        needed = one.required
        kind, default = (Path, inspect.Parameter.empty) if needed else (Path | None, None)
        found.append(_described(one.name, kind, option, default))
    if verb.records:
        words = (
            "Write one row per record, in the file's order, to a .csv, .parquet, .sav and so on."
        )
        found.append(_described("records", Path | None, typer.Option(metavar="OUT", help=words)))
    if verb.picture:
        words = "Save a chart of the result as .svg, .png or .html."
        found.append(_described("plot", Path | None, typer.Option(metavar="OUT", help=words)))
    if verb.returns:
        words = "Print one JSON object, nothing else."
        found.append(_described("json", bool, typer.Option("--json", help=words), False))
    if verb.records or verb.picture or verb.outputs:
        words = "Replace files that exist."
        found.append(_described("force", bool, typer.Option("--force", help=words), False))
    return found


GROUPS = ("Data", "Method", "Engine", "Output")
_ENGINE = ("engine", "memory", "work_folder", "master")
_OUTPUT = ("json", "plot", "records", "force", "out", "help")
ALL = "all"


def group_of(name: str, kind: Kind | None = None) -> str:
    """Return the group of `--help` that an option belongs to."""
    if isinstance(kind, Data) or name in READ:
        return "Data"
    return "Engine" if name in _ENGINE else "Output" if name in _OUTPUT else "Method"


class VerbCommand(TyperCommand):
    """A command that lists its options in groups, and takes each once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: D102
        words = args[: args.index("--")] if "--" in args else args
        flags = [word.partition("=")[0] for word in words if word.startswith("--")]
        for option in self.params:
            given = sum(flags.count(name) for name in option.opts)
            if given > 1 and not getattr(option, "multiple", False):
                name = option.opts[0]
                raise typer.BadParameter(f"{name} is given {given} times. Give it once", ctx=ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: D102
        grouped: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
        for option in self.get_params(ctx):
            row = option.get_help_record(ctx)
            if row is not None:
                panel = getattr(option, "rich_help_panel", None)
                row = (re.sub(r" <(path|str|list\[str\])>$", "", row[0]), row[1])
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
                template = f"{{{option}}} has {{0!r}}, which matches no column of the file."
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
