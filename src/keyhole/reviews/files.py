"""The files of a review, each with the hash of the bytes that were read."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from keyhole.core.toml import DEEPEST, is_deep
from keyhole.data import Microdata
from keyhole.errors import FileError, InputError
from keyhole.protection.methods import METHODS

if TYPE_CHECKING:
    from keyhole.environment.scenarios.recoding import ScenarioKey

KEYED = "keyed"
"""The part of the file under review, recoded to the key that the review is about."""
LINKED = "linked"
"""The same, recoded to the key that a study links on."""

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """A file as the review names it: its records, its hash, and how it was read."""

    file: str
    data: Microdata
    sha256: str
    read: Mapping[str, Any] = field(default_factory=dict)


Files = Mapping[str, ReviewFile]
"""The files by their part in the review: `data`, and `puf`, `eif`, `iuf` of a study."""


@dataclass(frozen=True, slots=True)
class ScenarioFile(ReviewFile):
    """The file under review as one scenario's intruder could match it."""

    key: ScenarioKey | None = None


def scenario_key_of(files: Files, part: str) -> ScenarioKey | None:
    """Return the scenario's key that a part of the review was recoded to, if there is one."""
    found = files.get(part)
    return found.key if isinstance(found, ScenarioFile) else None


Memory = dict[tuple[str, str], tuple[Any, Any]]
"""What was made before, by its name and how it was made: of what, and what it is."""

_memory: ContextVar[Memory | None] = ContextVar("_memory", default=None)


_roots: ContextVar[tuple[Path, ...]] = ContextVar("_roots", default=())


@contextmanager
def _with(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def remembering(memory: Memory) -> AbstractContextManager[None]:
    """Read no file again that is as it was; a run that makes a dossier reads everything."""
    return _with(_memory, memory)


def confined(root: Path) -> AbstractContextManager[None]:
    """Read no file outside a folder, whatever a review names; links are followed first."""
    return _with(_roots, (root.resolve(),))


def reading_own(folder: Path) -> AbstractContextManager[None]:
    """Read results of our own in a further folder, where reading is confined to one."""
    return _with(_roots, (*_roots.get(), folder.resolve()) if _roots.get() else ())


def allowed(path: Path) -> Path:
    """Return a path; refuse one that is none, or outside the folder that reading is confined to."""
    if "\0" in str(path):
        raise FileError("a path must not hold a zero byte. Correct it in the review file.")
    roots, found = _roots.get(), path.resolve()
    if roots and not any(map(found.is_relative_to, roots)):
        raise FileError(
            f"{path.name!r} is not below the folder the workbench was started in. Copy it there, "
            f"or start the workbench in a folder above both."
        )
    return path


def remembered(name: str, state: Any, make: Callable[[], Read], how: str = "") -> Read:
    """Make something anew only if its state changed (None always is), while one looks at it."""
    memory = _memory.get()
    if memory is None or state is None:
        return make()
    known = memory.get((name, how))
    if known is not None and known[0] == state:
        found: Read = known[1]
        return found
    found = make()
    memory.pop((name, how), None)
    memory[name, how] = (state, found)
    for older in [key for key in memory if key[0] == name][:-2]:
        del memory[older]
    return found


def read_again(path: Path, read: Callable[[Path], Read]) -> Read:
    """Read a file that tells its own hash, unless it is remembered and is as it was."""
    return remembered(str(allowed(path)), _state(path), lambda: read(path), _how(read))


def seen_from(folder: Path, file: Path) -> str:
    """Write a file's path as seen from a folder, so that both can be moved together."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # another drive
        return file.as_posix()


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_steadily(path: Path, read: Callable[[Path], Read]) -> tuple[Read, str]:
    """Read a file and return its hash, sure that both are of the same bytes."""

    def steadily() -> tuple[Read, str]:
        before = hash_or_none(path)
        found = read(path)
        if before is None or hash_or_none(path) != before:
            raise FileError(
                f"{os.fspath(path.name)!r} was changed while it was read. Run the review again "
                f"when nothing else writes to the file."
            )
        return found, before

    return remembered(str(allowed(path)), _state(path), steadily, _how(read))


def _state(path: Path) -> Any:
    try:
        now = path.stat()
    except (OSError, ValueError):
        return None
    return now.st_mtime_ns, now.st_size, now.st_ino


def _how(read: Callable[..., Any]) -> str:
    """Return how a file is to be read: by what, told what."""
    func = getattr(read, "func", read)
    return repr((func, getattr(read, "args", ()), getattr(read, "keywords", {})))


def hash_or_none(path: Path) -> str | None:
    """Hash a file; one that cannot be opened is told of by what reads it."""
    try:
        return hash_file(path) if path.is_file() else None  # a device never ends
    except OSError:
        return None


ValuePath = tuple[str | int, ...]
"""The names and places that lead to a value, as in ``("selection", "candidates", 2)``."""

SECRETS = (("synthesis", "seed"), ("protection", "seed"), ("table", "seed"))
"""Settings that are told nowhere; a table may be one of several."""

LARGEST = 5_000_000
SCENARIO = "scenario:"


@dataclass(frozen=True, slots=True)
class ReviewSource:
    """A review file: values, lines, problems; `sha256` is without the lines of secrets."""

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[ValuePath, int]
    sha256: str
    problems: list[tuple[int, str]] = field(default_factory=list)

    def say(self, where: ValuePath, *texts: str) -> None:
        """Note what is wrong, with the file and the nearest line that is known before it."""
        found = next((where[:n] for n in range(len(where), 0, -1) if where[:n] in self.lines), ())
        line = self.lines.get(found, 1)
        self.problems.extend((line, f"{self.path.name}, line {line}: {text}") for text in texts)

    @contextmanager
    def telling(self, where: ValuePath, before: str = "") -> Iterator[None]:
        """Note the problems of an input that are raised inside, and go on."""
        try:
            yield
        except InputError as error:
            self.say(where, *(f"{before}{text}" for text in error.problems))


def read_source(path: str | os.PathLike[str], content: bytes | None = None) -> ReviewSource:
    """Read a review file, or the `content` it is about to have; say where its TOML is broken."""
    file = Path(path)
    content = _bytes(file) if content is None else content
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{file.name}, line {line}: this is not UTF-8 text. Save the review file as UTF-8."
        ) from None
    try:
        values: dict[str, Any] | None = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        row, column = at.groups() if at else (str(text.count("\n") + 1), "1")
        what = str(error).split(" (at ")[0]
        raise FileError(
            f"{file.name}, line {row}, column {column}: this is not TOML "
            f"({what[:1].lower()}{what[1:]}). Correct it there: text stands in quotes, lists in "
            f"[ ], each setting on its own line."
        ) from None
    except ValueError:  # a whole number of thousands of digits
        raise FileError(
            f"{file.name}: a number has too many digits to be one. Correct it."
        ) from None
    except RecursionError:
        values = None
    if values is None or is_deep(values):
        raise FileError(
            f"{file.name}: lists or sections are nested more than {DEEPEST} deep. A review file "
            f"needs a few levels only; correct it."
        )
    lines = line_numbers(text)
    # Without the lines of secrets: the hash of a file but for a number tells the number.
    drawn_by = {name for method in METHODS.values() for name in method.secret}
    secret = {
        line
        for path, line in lines.items()
        if tuple(part for part in path if isinstance(part, str)) in SECRETS
        or (path[:2] == ("protection", "step") and len(path) > 3 and path[3] in drawn_by)
    }
    if secret:
        kept = [one for number, one in enumerate(text.split("\n"), 1) if number not in secret]
        content = "\n".join(kept).encode()
    return ReviewSource(file.resolve(), values, lines, hashlib.sha256(content).hexdigest())


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)  # what is no file may have no end
        if len(content) <= LARGEST:
            return content
        reason = (
            f"it has more than {LARGEST // 1_000_000} MB. A review file has a few pages; correct it"
        )
    except IsADirectoryError:
        reason = "it is a folder. Give the review file in it"
    except FileNotFoundError:
        reason = "there is no such file. Check the path, or see docs/review-file for an example"
    except ValueError:  # a name with a zero byte
        reason = "this is not a valid path"
    except OSError as error:
        reason = f"{(error.strerror or 'unknown reason').lower()}"
    raise FileError(f"review file {str(file)!r} cannot be read: {reason}.")


_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}   # text over several lines
    | \'\'\'.*?\'{3,5}
    | "(?:\\.|[^"\\])*"
    | '[^']*'
    | \#[^\n]*
    | [\[\]{},=.\n]
    | [^\s\[\]{},=."'\#]+''',
    re.VERBOSE | re.DOTALL,
)


def line_numbers(text: str) -> dict[ValuePath, int]:
    """Return the line, from 1, of every section, key and list item of a valid TOML text."""
    return _places(text)[0]


def header_lines(text: str) -> list[tuple[ValuePath, int]]:
    """Return the path and the line, from 1, of every header of a valid TOML text, in order."""
    return _places(text)[1]


def comment_lines(text: str) -> dict[int, str]:
    """Return the lines of a valid TOML text, from 1, that are nothing but a comment."""
    found = {}
    for match in _TOKEN.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        if match.group().startswith("#") and not text[start : match.start()].strip():
            found[text.count("\n", 0, start) + 1] = match.group()
    return found


def _places(text: str) -> tuple[dict[ValuePath, int], list[tuple[ValuePath, int]]]:
    """Walk over the tokens of a TOML text; return the line of every path, and the headers."""
    tokens: list[tuple[str, int]] = []
    line, place, at = 1, 0, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", place, match.start())
        place = match.start()
        if not match.group().startswith("#"):
            tokens.append((match.group(), line))
    tokens.append(("", line))
    lines: dict[ValuePath, int] = {}
    headers: list[tuple[ValuePath, int]] = []
    tables: dict[ValuePath, int] = {}
    section: ValuePath = ()

    def note(path: ValuePath, line: int) -> None:
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], line)

    def name(end: str) -> ValuePath:
        """Read a name with dots, and the sign that ends it."""
        nonlocal at
        parts: list[str] = []
        while tokens[at][0] != end:
            part = tokens[at][0]
            if part[:1] in ("'", '"'):  # its quotes are taken off, and its escapes read
                parts.append(str(tomllib.loads(f"name = {part}")["name"]))
            elif part != ".":
                parts.append(part)
            at += 1
        at += 1
        return tuple(parts)

    def pair(section: ValuePath) -> None:
        line = tokens[at][1]
        path = section + name("=")
        note(path, line)
        value(path)

    def value(path: ValuePath) -> None:
        """Read a value; what a list or an inline table holds, with the sign that ends it."""
        nonlocal at
        end, number = {"[": "]", "{": "}"}.get(tokens[at][0]), 0
        at += 1
        while end is None and tokens[at][0] not in (",", "\n", "]", "}", ""):
            at += 1
        while end is not None and tokens[at][0] != end:
            if tokens[at][0] in (",", "\n"):
                at += 1
            elif end == "}":
                pair(path)
            else:
                note((*path, number), tokens[at][1])
                value((*path, number))
                number += 1
        at += end is not None

    while tokens[at][0]:
        if tokens[at][0] == "\n":
            at += 1
        elif tokens[at][0] == "[":
            line, doubled = tokens[at][1], tokens[at + 1][0] == "["
            at += 1 + doubled
            section = name("]")
            at += doubled
            if doubled:
                tables[section] = tables.get(section, -1) + 1
                section = (*section, tables[section])
            note(section, line)
            headers.append((section, line))
        else:
            pair(section)
    return lines, headers


def named_scenario(keys: Any) -> str | None:
    """Return the scenario that keys are those of: ``keys = "scenario:NAME"``."""
    if isinstance(keys, str) and keys.startswith(SCENARIO):
        return keys.removeprefix(SCENARIO).strip()
    return None
