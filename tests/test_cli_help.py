"""Help: every verb and option has some, and it comes at once."""

import inspect
import re
import shlex
import subprocess
import sys

import pytest

from keyhole.cli.main import all_commands, run

VERBS = [
    "environment",
    "screen",
    "risk",
    "attributes",
    "uniques",
    "drivers",
    "select",
    "frontier",
    "solve",
    "table",
    "protect",
    "synthesise",
    "tabulate",
    "study",
]
VERBS += ["init", "review", "verify", "report", "demo", "serve", "selftest"]
HEAVY = {"numpy", "polars", "numba", "scipy", "pyarrow", "altair", "rich", "pandas", "narwhals"}
HEAVY |= {"sqlalchemy", "statsmodels"}
COMMANDS = all_commands()
PARTS = {
    f"environment {name}": COMMANDS["environment"].get_command(None, name)
    for name in COMMANDS["environment"].list_commands(None)
}


def test_the_verbs_are_in_the_order_of_the_work(capsys):
    assert list(COMMANDS) == VERBS
    assert run(["--help"]) == 0
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", capsys.readouterr().out, re.MULTILINE)
    assert listed == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_an_example(verb, capsys):
    command = COMMANDS[verb]
    assert command.help
    summary = command.help.split("\n")[0]
    assert summary.endswith(".")
    assert command.get_short_help_str(limit=80) == summary  # nothing is cut
    assert run([verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"Example:\n +keyhole {verb}\b", out)


@pytest.mark.parametrize(
    ("verb", "parameter"),
    [(verb, p) for verb, command in {**COMMANDS, **PARTS}.items() for p in command.params],
    ids=lambda value: getattr(value, "name", value),
)
def test_every_option_has_help(verb, parameter):
    assert parameter.help, f"{verb} {parameter.opts} has no help"
    assert parameter.help.strip().endswith(".")


@pytest.mark.parametrize("verb", ["risk", "uniques", "select", "frontier", "study"])
def test_verbs_have_the_parameters_of_their_functions(verb):
    import keyhole

    function = set(inspect.signature(getattr(keyhole, verb)).parameters) - {"data", "progress"}
    assert function <= {parameter.name for parameter in COMMANDS[verb].params}


EXAMPLES = [
    line.strip()
    for command in (*COMMANDS.values(), *PARTS.values())
    for line in command.epilog.splitlines()
    if line.strip().startswith("keyhole ")
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_can_be_typed(example, capsys):
    words = shlex.split(example)[1:]
    if words[0] in ("demo", "selftest", "serve") or words[:2] == ["environment", "init"]:
        return
    assert run(words) == 2
    # It got as far as the file, which is not there: the words themselves are right.
    assert re.search("does not exist|no such file|is not a folder", capsys.readouterr().err)


@pytest.mark.parametrize("verb", ["init", "risk", "verify"])
def test_what_a_verb_reads_is_in_the_group_of_the_data(verb, capsys):
    run([verb, "--help"])
    said = capsys.readouterr().out
    data = said[said.index("Data:") : said.index("Method:")]
    assert "<str>" not in said
    assert re.search(r"^  (FILE|DIR)  ", data, re.MULTILINE)
    assert ("--missing-codes" in data) == (verb != "verify")


def test_keyhole_alone_shows_help(capsys):
    assert run([]) == 0
    assert "keyhole init FILE" in capsys.readouterr().out


def test_the_version(capsys):
    import keyhole

    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"{keyhole.__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["environment", "map", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words):
    code = f"import sys, keyhole.cli.main as m; m.run({words!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.splitlines()[-1].split())
