"""What an import begins with: forms read from files, or a form of the store that waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.cli.environment.common import classes
from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.environment.model import CapturedForm, Environment

__all__ = ["Attributes", "gather"]


@dataclass(frozen=True, slots=True)
class Attributes:
    """What the command line says of a form, as it was typed."""

    organisation: str | None
    sector: str | None
    purpose: str | None
    classes: str | None
    collected: str | None

    def given(self) -> dict[str, Any]:
        """Return what was given; a sector is a sector, also where it came as a class."""
        from keyhole.environment.mapping.classes import class_of

        more = class_of(
            sector=self.sector, purpose=self.purpose, classifications=classes(self.classes)
        )
        said = {
            "organisation": self.organisation,
            "collected": self.collected,
            "sector": more.pop("sector"),
            "purpose": more.pop("purpose"),
            "classifications": more or None,
        }
        return {name: value for name, value in said.items() if value is not None}


def gather(
    environment: Environment,
    files: Sequence[Path] | None,
    as_: str,
    kind: str | None,
    labels: Path | None,
    encoding: str | None,
    said: Attributes,
    form: str | None,
    name: str | None,
    *,
    waiting: bool,
) -> list[CapturedForm]:
    """Return the forms that are meant: of files, or the one of the store."""
    if not files:
        from keyhole.environment.adding.waiting import captured_again

        return [captured_again(environment, form or "", as_, waiting=waiting)]
    captured = _read(files, as_, kind, labels, encoding, said.given())
    if form is not None:
        captured = _chosen(captured, form)
    if name is None:
        return captured
    if len(captured) != 1:
        raise OptionError(f"--name names one form, but there are {len(captured)}. Choose one with "
                          f"--form.")  # fmt: skip
    return [replace(captured[0], form=replace(captured[0].form, name=name))]


def _chosen(captured: Sequence[CapturedForm], form: str) -> list[CapturedForm]:
    from keyhole.environment.wording import quoted, shown

    found = [one for one in captured if one.form.name == form]
    if not found:
        names = quoted((one.form.name for one in captured), 20)
        raise OptionError(f"--form: {shown(form)} is not in the files. They have {names}.")
    return found


def _read(
    files: Sequence[Path],
    as_: str,
    kind: str | None,
    labels: Path | None,
    encoding: str | None,
    attributes: dict[str, Any],
) -> list[CapturedForm]:
    """Read all the files; the problems of all are raised at once."""
    from keyhole.environment.importers import read_forms

    problems: list[str] = []
    out: list[CapturedForm] = []
    for path in files:
        try:
            if as_ == "target" and kind is None:
                out.append(_target(path, labels, encoding, attributes.get("collected")))
            else:
                out.extend(read_forms(path, kind, encoding=encoding, **attributes))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return out


def _target(path: Path, labels: Path | None, encoding: str | None, day: str | None) -> CapturedForm:
    from datetime import date

    from keyhole.data import load
    from keyhole.environment.importers import capture_microdata, read_labels

    given = None if labels is None else read_labels(labels)
    captured = capture_microdata(load(path, encoding=encoding), labels=given)
    if day is None:
        return captured
    try:
        return replace(captured, form=replace(captured.form, collected=date.fromisoformat(day)))
    except ValueError:
        raise OptionError("--collected must be a day, as 2024-05-31.") from None
