"""The examples of the pages, rerun: the tests compare, ``--write`` brings the pages up to date.

Blocks of ``pycon`` are Python at its prompt, blocks of ``console`` are ``$ keyhole …`` commands
(``$ echo $?`` shows the exit code of the one before; a block that shows no output is not run).
The blocks of a page run one after the other in a folder of their own that holds
``veterans.csv``, the file the tutorial makes.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import re
import shlex
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
FENCE = re.compile(r"^(`{3,})(pycon|console)\n(.*?)^\1[ \t]*\n", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return the pages of the documentation."""
    return sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)


def has_examples(page: Path) -> bool:
    """Tell whether a page has anything to run."""
    return FENCE.search(page.read_text(encoding="utf-8")) is not None


def prepare(page: Path) -> None:
    """Put what a page's examples need into the present folder."""
    if page.name != "tutorial.md":  # which makes the file itself
        from keyhole.data.examples import veterans_sample

        veterans_sample(6_000, seed=1).save("veterans.csv", force=True)


def rerun(text: str) -> str:
    """Return the text of a page with what its examples print now.

    What is shown stays as it is where it agrees; blanks do not count, and ``...`` stands for
    anything.
    """
    names: dict[str, Any] = {}

    def again(found: re.Match[str]) -> str:
        fence, language, block = found.groups()
        now = _python(block, names) if language == "pycon" else _commands(block)
        return f"{fence}{language}\n{now}{fence}\n"

    return FENCE.sub(again, text)


class _Recorder(doctest.DocTestRunner):
    """Runs examples and notes what should stand below each."""

    def __init__(self) -> None:
        super().__init__(optionflags=FLAGS)
        self.shown: list[str] = []

    def report_start(self, out: Any, test: Any, example: Any) -> None:
        """Say nothing."""

    def report_success(self, out: Any, test: Any, example: Any, got: str) -> None:  # noqa: ARG002
        """Leave what is shown."""
        self.shown.append(example.want)

    def report_failure(self, out: Any, test: Any, example: Any, got: str) -> None:  # noqa: ARG002
        """Note what was printed instead."""
        self.shown.append(re.sub(r"^[ \t]*$(?=\n.)", "<BLANKLINE>", got, flags=re.MULTILINE))

    def report_unexpected_exception(
        self,
        out: Any,  # noqa: ARG002
        test: Any,  # noqa: ARG002
        example: Any,  # noqa: ARG002
        exc_info: Any,
    ) -> None:
        """Note the error."""
        said = "".join(traceback.format_exception_only(*exc_info[:2]))
        self.shown.append(f"Traceback (most recent call last):\n...\n{said}")


def _python(block: str, names: dict[str, Any]) -> str:
    test = doctest.DocTestParser().get_doctest(block, names, "page", None, 0)
    recorder = _Recorder()
    recorder.run(test, out=lambda _: None, clear_globs=False)
    names.update(test.globs)
    return "".join(
        _prompted(example.source) + shown
        for example, shown in zip(test.examples, recorder.shown, strict=True)
    )


def _prompted(source: str) -> str:
    first, *rest = source.rstrip("\n").split("\n")
    return "".join([f">>> {first}\n", *(f"... {line}".rstrip() + "\n" for line in rest)])


def _commands(block: str) -> str:
    if not re.sub(r"^\$ (?:.*\\\n)*.*\n", "", block, flags=re.MULTILINE).strip():
        return block
    out, code = [], 0
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        typed = re.match(r"(?:.*\\\n)*.*\n?", part)[0]  # type: ignore[index]
        shown = part[len(typed) :]
        got, code = _command(typed.replace("\\\n", " ").strip(), code)
        same = doctest.OutputChecker().check_output(shown, got, FLAGS)
        out.append(f"$ {typed.rstrip()}\n{shown if same else got}")
    return "".join(out)


def _command(command: str, last_code: int) -> tuple[str, int]:
    if command == "echo $?":
        return f"{last_code}\n", 0
    from keyhole.cli.main import run

    program, *words = shlex.split(command)
    if program != "keyhole":
        raise ValueError(f"only keyhole is run from the pages, not {program}")
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        code = run(words)
    return told.getvalue(), code


def main(arguments: list[str]) -> int:
    """Rerun the examples of pages, and write them or say which differ."""
    parser = argparse.ArgumentParser(description="Rerun the examples of the documentation.")
    parser.add_argument("pages", nargs="*", type=Path, help="pages; all if left out")
    parser.add_argument("--write", action="store_true", help="write what the examples print now")
    asked = parser.parse_args(arguments)
    different = 0
    for page in [p.resolve() for p in asked.pages] or pages():
        before = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            prepare(page)
            after = rerun(before)
        if after != before:
            different += 1
            print(page)
            if asked.write:
                page.write_text(after, encoding="utf-8")
    return 0 if asked.write else min(different, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
