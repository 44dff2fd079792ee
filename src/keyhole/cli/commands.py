"""Commands of verbs, made from the verbs' signatures.

A verb's options, those of reading its file and those of what it gives back become one Typer
command. Words are read here by the kinds of the options; everything is checked by the verb itself,
and its problems are worded with the names of flags.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from keyhole.cli.output import (
    Destinations,
    check_data_file,
    one_file_problems,
    tell_written,
    writing_problems,
)
from keyhole.cli.progress import be_quiet, tell_of_compiling, working
from keyhole.core.expressions import Derivations
from keyhole.core.kinds import Data, File, Flag, TableOrFile
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

READ = ("missing_codes", "kinds", "roles", "encoding", "delimiter", "sheet", "derive")
"""The options of `keyhole.load` that commands have."""


def reading_parameters() -> dict[str, Parameter]:
    """Return the options with which a command reads its file."""
    from keyhole.data.reading import load

    known = parameters_of(load)
    return {name: known[name] for name in READ}


def command_of(verb: Verb) -> Callable[..., None]:
    """Return the function that Typer makes a command of."""
    made = _Command.of(verb)

    def command(**words: Any) -> None:
        made.run(words)

    shown = [_file(source_of(made.function))] if made.has_file else []
    shown += map(_parameter, made.offered.values())
    shown += [_secret_file(p) for p in made.offered.values() if p.option.secret]
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
        reading = reading_parameters() if has_file or has_data_options else {}
        if has_data_options:  # the options themselves say what a column is for
            reading.pop("roles", None)
        return cls(verb, function, offered, reading, has_file)

    def run(self, words: Mapping[str, Any]) -> None:
        """Read the words that were typed, run the verb, and write and print what it gives."""
        verb, problems = self.verb, list[str]()
        values = {
            **{name: None for name, p in self.offered.items() if p.required},
            **_read(self.offered, words, problems),
            **_read_secrets(self.offered, words, problems),
        }
        how = {n: v for n, v in _read(self.reading, words, problems).items() if v is not None}
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
                be_quiet()
            problems += self._output_problems(words, values, outputs, written)
            for name, parameter in self.offered.items():
                if isinstance(parameter.kind, Data):
                    values[name] = _read_so(values.get(name), how)
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
            problems += _address_problems(file)
            more = (c for n, columns in verb.more_records.items() if words[n] for c in columns)
            problems += outputs.problems(file, [*dict.fromkeys((*verb.records, *more))])
            if outputs.records and words.get("engine") == "spark":
                problems.append(
                    "--engine must be memory or disk for one row a record (--records). Got "
                    "'spark' instead."
                )
        else:
            problems += outputs.problems(None)
        problems += _writing(written, outputs, inputs)
        for output in written:
            if output.needs:
                needed = imported(output.needs)(bind(self.function, values))
                problems += [problem.named(name_as_flag) for problem in needed]
        return problems


def _tell_aside(verb: Verb, result: Any) -> None:
    """Print what is told apart from the result."""
    told = getattr(result, verb.aside)() if verb.aside else ""
    if told and sys.stderr is not None:
        print(told, file=sys.stderr)


_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/[^/]")


def _address_problems(file: Path) -> list[str]:
    """Say what an address is for, which a path cannot hold: its slashes are one by now."""
    if not _ADDRESS.match(str(file)):
        return []
    return [
        "FILE must be a path here. Got an address instead: ask for it in Python, as in "
        'keyhole.risk("hdfs://...", engine="spark").'
    ]


def _writing(
    written: Mapping[Output, Path], outputs: Destinations, inputs: Mapping[str, Path]
) -> list[str]:
    """Say what stands in the way of writing the outputs of a verb."""
    problems: list[str] = []
    for output, path in written.items():
        flag = name_as_flag(output.name)
        if output.problems:
            blocked = imported(output.problems)(path, outputs.force)
            problems += [f"{flag}: {worded(text, name_as_flag)}" for text in blocked]
        else:
            check = check_data_file if output.is_data else lambda _: None
            problems += writing_problems(flag, path, check, outputs.force)
    targets: dict[str, Path | None] = {name_as_flag(o.name): path for o, path in written.items()}
    if written or "the data" not in inputs:
        targets |= {"--records": outputs.records, "--plot": outputs.plot}
    return [*problems, *one_file_problems(targets, inputs)]


def _secret_file(parameter: Parameter) -> inspect.Parameter:
    """Describe the option that names a file with a secret, which then is in no list of commands."""
    option = typer.Option(
        name_as_flag(parameter.name) + "-file",
        metavar="PATH",
        help=f"A file that holds the {parameter.name}, so that no command shows it.",
    )
    return inspect.Parameter(
        f"{parameter.name}_file",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[Path | None, option],
    )


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
            value = values.get(name)
            several = value if isinstance(value, dict | list) else [value]
            paths = several.values() if isinstance(several, dict) else several
            flag = name_as_flag(name)
            for path in paths:
                if isinstance(path, str):
                    found[flag if len(several) == 1 else f"{flag} {path}"] = Path(path)
    return found


def _read_so(value: Any, reading: Mapping[str, Any]) -> Any:
    """Return a file, or several by name, with how they are read."""
    if isinstance(value, Mapping):
        return {name: _source(path, reading) for name, path in value.items()}
    return value if value is None else _source(value, reading)


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
            template = f"{{{name}}} must be written like {{0}}. Got {{1}} instead: check its marks."
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
    )
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter("file", kind, annotation=Annotated[Path, argument])


def _parameter(parameter: Parameter) -> inspect.Parameter:
    """Describe an option as Typer wants it: a word, or a flag."""
    flag = name_as_flag(parameter.name)
    words = parameter.help.replace("`", "")
    if isinstance(parameter.kind, Flag):
        off = parameter.option.off or f"--no-{flag[2:]}"
        names = [flag if parameter.default is False else f"{flag}/{off}"]
        kind: Any = bool
        default: Any = parameter.default
    else:
        one: Any = list[str] if parameter.kind.repeatable else str
        needed = parameter.required and not parameter.option.secret
        names = [flag, parameter.option.also] if parameter.option.also else [flag]
        kind = one if needed else one | None
        default = _default(parameter)
        if parameter.required and not needed:
            default = None  # the secret may be in a file
    metavar = None if isinstance(parameter.kind, Flag) else parameter.metavar
    if parameter.option.argument:
        option: Any = typer.Argument(metavar=metavar, help=words, show_default=False)
    else:
        shown = default not in (None, False, inspect.Parameter.empty)
        option = typer.Option(*names, metavar=metavar, help=words, show_default=shown)
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, option],
    )


def _default(parameter: Parameter) -> Any:
    """Return the default as it would be typed; none, where it is nothing."""
    value = parameter.default
    if parameter.required:
        return inspect.Parameter.empty
    if value is None or value == () or value == {}:
        return None
    return parameter.kind.write(parameter.settle(value))


def _outputs(verb: Verb) -> list[inspect.Parameter]:
    """Describe what a command gives back, and where."""
    found: list[tuple[str, Any, Any]] = [
        (one.name, Path if one.required else Path | None,
         typer.Option(metavar=one.metavar, help=one.help))
        for one in verb.outputs
    ]  # fmt: skip
    if verb.records:
        words = (
            "Write one row per record, in the file's order, to a .csv, .parquet, .sav and so on."
        )
        found.append(("records", Path | None, typer.Option(metavar="OUT", help=words)))
    if verb.picture:
        words = "Draw the result into a .svg, .png or .html."
        found.append(("plot", Path | None, typer.Option(metavar="OUT", help=words)))
    if verb.returns:
        words = "Print one JSON object, nothing else."
        found.append(("json", bool, typer.Option("--json", help=words)))
    if verb.records or verb.picture or verb.outputs:
        found.append(("force", bool, typer.Option("--force", help="Replace files that exist.")))
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if kind is Path else False if kind is bool else None,
            annotation=Annotated[kind, option],
        )
        for name, kind, option in found
    ]
