"""A plan as it was given: its steps, and everything that is wrong with it.

A draft is kept where the plan cannot be carried out, so that what is wrong with the plan is told
together with what is wrong with the file and the other options.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhole.core.names import plural, shown
from keyhole.errors import FileError
from keyhole.protection.conflicts import conflicts
from keyhole.protection.steps import Step, read_step

__all__ = ["MOST_TOLD", "Draft", "capped"]

# A plan is written by hand: what is larger, or deeper, is something else.
MOST_BYTES = 1 << 20
DEEPEST = 20
# Problems that are told; of more, only their number.
MOST_TOLD = 50


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan as it was given.

    `steps` are those whose method is known, by their numbers from 1; `problems` everything that
    is wrong with the plan by itself; `where` is said before each problem.
    """

    steps: Mapping[int, Step]
    problems: tuple[str, ...] = ()
    title: str = ""
    keep_order: bool = False
    where: str = ""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Draft:
        """Read a draft from a TOML file."""
        where = f"plan {str(path)!r}"
        return cls.of(_loads(_text(Path(path), where), where), where=f"{where}, ")

    @classmethod
    def of(
        cls, given: str | Mapping[str, Any] | Sequence[Mapping[str, Any]], *, where: str = ""
    ) -> Draft:
        """Take a draft from TOML text, from what such a file holds, or from a list of steps."""
        content: Any = _loads(given, "the plan") if isinstance(given, str) else given
        content = content if isinstance(content, Mapping) else {"step": content}
        problems = _of_the_whole(content)
        listed = content.get("step")
        steps: dict[int, Step] = {}
        for number, raw in enumerate(listed if _is_steps(listed) else (), 1):
            step, found = read_step(raw)
            called = f"{number}" if step is None else f"{number} ({step.method})"
            problems += [f"step {called}: {problem}" for problem in found]
            steps |= {} if step is None else {number: step}
        problems += conflicts(steps)
        told = tuple(f"{where}{problem}" for problem in problems)
        keep_order = content.get("keep_order") is True
        return cls(steps, told, str(content.get("title", "")), keep_order, where)


def capped(problems: Iterable[str]) -> list[str]:
    """Return the problems, each once; of very many the first and the number of the others.

    Examples
    --------
    >>> capped(f"step {i}: column must be given." for i in range(1, 3_001))[-1]
    'and 2,950 more problems.'
    """
    found = list(dict.fromkeys(problems))
    more = len(found) - MOST_TOLD
    return found if more <= 0 else [*found[:MOST_TOLD], f"and {plural(more, 'more problem')}."]


def _is_steps(listed: Any) -> bool:
    return isinstance(listed, Sequence) and not isinstance(listed, str)


def _of_the_whole(content: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with a plan apart from its steps."""
    found = [
        f"{shown(key)} means nothing in a plan. It has [[step]] tables, a title and keep_order."
        for key in content
        if key not in ("step", "title", "keep_order")
    ]
    if not isinstance(content.get("keep_order", False), bool):
        found.append("keep_order must be true or false. Got something else instead.")
    if not isinstance(content.get("title", ""), str):
        found.append("title must be text. Got something else instead.")
    listed = content.get("step")
    if isinstance(listed, Mapping):
        found.append(
            "a plan must have one [[step]] or more. Got [step] instead: write double brackets."
        )
    elif not _is_steps(listed) or not listed:
        found.append("a plan must have one [[step]] or more. Got none.")
    return found


def _is_deep(content: Any) -> bool:
    """Tell whether tables and lists lie within each other too deeply, without going down them."""
    level = [content]
    for _ in range(DEEPEST):
        level = [
            one
            for held in level
            for one in (held.values() if isinstance(held, Mapping) else held)
            if isinstance(one, Mapping | list)
        ]
    return bool(level)


def _text(path: Path, where: str) -> str:
    """Read a plan's text; what is no file of such a size is not opened."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
            raise FileError(f"{where} must be a file. Got {what} instead.")
        if found.st_size > MOST_BYTES:
            raise FileError(
                f"{where} must be of 1 megabyte at most. Got {found.st_size >> 20:,} instead: give "
                f"a plan, not data."
            )
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(f"{where} must be TOML in UTF-8. Got other bytes instead.") from None
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number else "the system refuses"
        raise FileError(f"{where} cannot be read: {reason}. Check the path.") from None


def _loads(text: str, where: str) -> Any:
    import tomllib

    deep = (
        f"{where} is nested too deeply. A step has options, lists and tables: check its brackets."
    )
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{where} is not TOML: {str(error)[:200]}.") from None
    except RecursionError:
        raise FileError(deep) from None
    except ValueError:  # Python reads no whole number of thousands of digits
        raise FileError(f"{where} has a number of more digits than can be read.") from None
    if _is_deep(found):
        raise FileError(deep)
    return found
