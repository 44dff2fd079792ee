"""The command ``keyhole``: its verbs in the order of the work."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

from keyhole.core.files import ending_cleanly
from keyhole.core.names import nearest
from keyhole.core.options import name_as_flag, worded
from keyhole.core.verbs import VERBS, Verb
from keyhole.errors import InputError, KeyholeError


class _Verbs(TyperGroup):
    """Verbs of the registry; a verb's module is imported when the verb is asked for."""

    verbs: ClassVar[Mapping[str, Verb]] = VERBS
    path: ClassVar[str] = "keyhole"

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(self.verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name in self.verbs:
            return _command(self.verbs[cmd_name])
        near = nearest(cmd_name, list(self.verbs), most=1)
        remedy = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(f"No such command {cmd_name!r}.{remedy} See '{self.path} --help'.")

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(verb.name, verb.summary) for verb in self.verbs.values()])


app = typer.Typer(
    name="keyhole",
    cls=_Verbs,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text: it comes in a third of the time
    invoke_without_command=True,
    epilog="\b\nBegin with your own file:\n  keyhole init FILE\n"
    "or see it all at work on made-up people:\n  keyhole demo --out DIR",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(asked: bool) -> None:
    if asked:
        import keyhole

        print(keyhole.__version__)
        raise typer.Exit


@app.callback()
def _begin(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Decide whether a file of people's records may be released.

    Look at your data through the keyhole an intruder would use, before you open the door.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@cache
def _command(verb: Verb) -> Any:
    """Make the command of a verb, or of a group of verbs."""
    epilog = f"\b\nExample:\n  {verb.example}"
    if verb.verbs:
        parts = {part.name: part for part in verb.verbs}
        kind = type("_Group", (_Verbs,), {"verbs": parts, "path": f"keyhole {verb.name}"})
        group = typer.Typer(cls=kind, rich_markup_mode=None, no_args_is_help=True, epilog=epilog)
        group.callback(help=verb.summary)(lambda: None)
        return get_command(group)
    from keyhole.cli.commands import VerbCommand, command_of

    single = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    single.command(
        verb.name,
        cls=VerbCommand,
        epilog=epilog,
        context_settings={"help_option_names": ["--help", "-h"]},
    )(command_of(verb))
    return get_command(single)


def all_commands() -> dict[str, Any]:
    """Return every command by name, made for the documentation and the tests."""
    return {name: _command(verb) for name, verb in VERBS.items()}


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line on words after ``keyhole``; return its exit code, raise nothing."""
    try:
        if hasattr(sys.stdout, "reconfigure"):  # a letter that cannot be shown becomes its number
            sys.stdout.reconfigure(errors="backslashreplace")
        with ending_cleanly():
            code: Any = get_command(app).main(
                args=None if argv is None else list(argv),
                prog_name="keyhole",
                standalone_mode=False,
            )
        if sys.stdout is not None:
            sys.stdout.flush()
    except BaseException as error:  # a panic of Polars is no Exception
        return tell_failure(error)
    return code if isinstance(code, int) else 0


INTERRUPTED = 130


def tell_failure(error: BaseException) -> int:
    """Say what went wrong on standard error, and return the exit code: 2 for bad input, 1, or 130.

    A traceback may quote values of records, so it is shown only if asked for (``KEYHOLE_DEBUG=1``).
    """
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        # What is left for a reader who has gone goes nowhere, also when Python ends.
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    with suppress(OSError):
        print(_message(error), file=sys.stderr, flush=True)
    return error.exit_code if isinstance(error, KeyholeError | typer.TyperException) else 1


def _message(error: BaseException) -> str:
    if isinstance(error, KeyholeError):
        return "keyhole: " + "\n".join(worded(p, name_as_flag) for p in error.problems)
    if not isinstance(error, typer.TyperException):
        return f"keyhole: {_unexpected(error)}"
    command = getattr(getattr(error, "ctx", None), "command_path", "keyhole")
    said = error.format_message().rstrip(". ")
    return f"keyhole: {said}{'' if said.endswith('?') else '.'} See '{command} --help'."


def _unexpected(error: BaseException) -> str:
    if os.environ.get("KEYHOLE_DEBUG"):
        return "the run failed.\n" + "".join(traceback.format_exception(error)).rstrip()
    if isinstance(error, MemoryError):
        return (
            "the run failed: out of memory. Give fewer columns, count on disk (--engine disk "
            "--memory 1GB) where the command supports it, or use a larger machine."
        )
    passed = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    cached = any(file.as_posix().endswith("numba/core/caching.py") for file in passed)
    if cached and not isinstance(error, OSError):
        from keyhole.kernels.caching import usual_folders

        places = " or ".join(repr(str(folder)) for folder in usual_folders() if folder.exists())
        return (
            f"the run failed: the cache of compiled code is damaged. Delete the files *.nbi and "
            f"*.nbc in {places} and run again: they are compiled again."
        )
    known = isinstance(error, OSError) and error.errno
    reason = os.strerror(known) if known else f"{type(error).__name__} {_place(error)}"
    return (
        f"the run failed unexpectedly ({reason.strip()}). This is a bug in keyhole; please report "
        f"it. KEYHOLE_DEBUG=1 shows the details, which may quote the data."
    )


def _place(error: BaseException) -> str:
    """Return the last place of ours that the error went through."""
    home = Path(__file__).parents[1]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        with suppress(ValueError):
            return f"at {Path(frame.filename).relative_to(home)}:{frame.lineno}"
    return ""
