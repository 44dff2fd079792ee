"""TOML that somebody wrote, read with one message for what cannot be; and TOML written.

Files that are no text, nesting without end and numbers of thousands of digits are refused here, so
that no reader has to think of them.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from keyhole.core.names import printable
from keyhole.errors import FileError

# Far deeper than any setting.
DEEPEST = 20
LARGEST = 1 << 24

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def open_utf8(
    path: str | os.PathLike[str],
    remedy: str = "Save it as UTF-8.",
    *,
    where: str = "",
    largest: int | None = None,
) -> str:
    """Read a file of UTF-8 text, or say why it cannot be; `where` names it in messages."""
    where = where or repr(str(path))
    try:
        return open_bytes(path, where=where, largest=largest).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(f"{where} is not UTF-8 text. {remedy}") from None


def open_bytes(
    path: str | os.PathLike[str],
    *,
    where: str = "",
    largest: int | None = None,
    wanted: str = "the settings",
) -> bytes:
    """Read a file, or say why it cannot be; too large a one is not what is `wanted`."""
    file, where = Path(path), where or repr(str(path))
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):  # what is none is not opened
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
            raise FileError(f"{where} must be a file. Got {what} instead.")
        if largest is not None and found.st_size > largest:
            most = f"{largest >> 20} megabyte{'s' * (largest >> 20 != 1)}"
            raise FileError(
                f"{where} must not be larger than {most}. Got {found.st_size >> 20:,} instead: "
                f"give {wanted}, not data."
            )
        return file.read_bytes()
    except FileNotFoundError:
        raise FileError(f"{where} does not exist. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the system refuses"
        raise FileError(f"{where} cannot be read: {reason}. Check the path.") from None


def open_toml(path: str | os.PathLike[str], what: str = "") -> dict[str, Any]:
    """Read a TOML file, or say why it cannot be; `what` is said before its path."""
    where = f"{what} {str(path)!r}".strip()
    return parse_toml(open_utf8(path, where=where, largest=LARGEST), where)


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Read TOML; `where` names it in messages."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = printable(str(error))[:200]
        raise FileError(f"{where} must be a TOML file. {said}. Correct it there.") from None
    except RecursionError:
        found = None
    except ValueError:  # Python reads no whole number of thousands of digits
        raise FileError(f"{where} has a number of more digits than can be read.") from None
    if found is None or is_deep(found):
        raise FileError(f"{where} is nested too deeply. Check its brackets.")
    return found


def is_deep(values: Any) -> bool:
    """Tell whether values are nested too deeply, without going down with them."""
    level = [values]
    for _ in range(DEEPEST):
        inner = [one for one in level if isinstance(one, dict | list)]
        level = [v for one in inner for v in (one.values() if isinstance(one, dict) else one)]
    return any(isinstance(one, dict | list) for one in level)


def quote(text: str) -> str:
    """Write text as a TOML string."""
    # JSON's escapes are TOML's too, but for surrogate pairs, which are left as characters.
    written = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in written)


def comment(text: str) -> str:
    """Write text so that it stays on the line of its comment."""
    return printable(text)


def toml_key(name: Any) -> str:
    """Write a key, in quotes where it needs them."""
    return str(name) if _BARE.fullmatch(str(name)) else quote(str(name))


def toml_value(value: Any) -> str:
    """Write a value as TOML does, all in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Iterable):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)
