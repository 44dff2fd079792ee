"""The command ``keyhole``: its verbs in the order of the work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from keyhole.cli import (
    demo,
    drivers,
    environment,
    failures,
    frontier,
    init,
    protect,
    report,
    review,
    risk,
    screen,
    select,
    selftest,
    serve,
    study,
    synthesise,
    table,
    tabulate,
    uniques,
    verify,
)

__all__ = ["app", "run"]


class _Verbs(TyperGroup):
    """The verbs with the group first: what an intruder could know comes before all else."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {"environment": self.commands["environment"], **self.commands}


app = typer.Typer(
    name="keyhole",
    cls=_Verbs,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text: it comes in a third of the time
    invoke_without_command=True,
    epilog="\b\nBegin with your own file:\n  keyhole risk FILE --keys A,B\n"
    "or see it all at work on made-up people:\n  keyhole demo --out DIR",
    context_settings={"help_option_names": ["--help", "-h"]},
)

_VERBS: tuple[tuple[Callable[..., None], str], ...] = (
    (screen.screen, screen.EXAMPLE),
    (risk.risk, risk.EXAMPLE),
    (uniques.uniques, uniques.EXAMPLE),
    (drivers.drivers, drivers.EXAMPLE),
    (select.select, select.EXAMPLE),
    (frontier.frontier, frontier.EXAMPLE),
    (table.table, table.EXAMPLE),
    (protect.protect, protect.EXAMPLE),
    (synthesise.synthesise, synthesise.EXAMPLE),
    (tabulate.tabulate, tabulate.EXAMPLE),
    (study.study, study.EXAMPLE),
    (init.init, init.EXAMPLE),
    (review.review, review.EXAMPLE),
    (verify.verify, verify.EXAMPLE),
    (report.report, report.EXAMPLE),
    (demo.demo, demo.EXAMPLE),
    (serve.serve, serve.EXAMPLE),
    (selftest.selftest, selftest.EXAMPLE),
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
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_version),
    ] = False,
) -> None:
    """Decide whether a file of people's records may be released.

    Look at your data through the keyhole an intruder would use, before you open the door.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


for _verb, _example in _VERBS:
    app.command(epilog=f"\b\nExample:\n  {_example}")(_verb)
app.add_typer(environment.app)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing is raised.

    Parameters
    ----------
    argv
        The words after ``keyhole``; those of the process if left out.

    Examples
    --------
    >>> run(["risk", "nowhere.csv", "--keys", "sex"])
    2
    """
    try:
        _speak_plainly()
        code: Any = _command().main(
            args=None if argv is None else list(argv), prog_name="keyhole", standalone_mode=False
        )
        if sys.stdout is not None:
            sys.stdout.flush()
    except BaseException as error:  # a panic of Polars is no Exception
        return failures.tell(error)
    return code if isinstance(code, int) else 0


def _command() -> Any:
    from typer.main import get_command

    return get_command(app)


def _speak_plainly() -> None:
    """A terminal that cannot show a letter gets its number, not an error."""
    change = getattr(sys.stdout, "reconfigure", None)
    if change is not None:
        change(errors="backslashreplace")
