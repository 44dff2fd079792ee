"""The eighteen items of HIPAA's Safe Harbor as a checklist: 45 CFR 164.514(b)(2)(i), (A) to (R).

A check says what was found in which columns and what to do about it, that nothing was found, or
that a table cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from keyhole.screening.places import CENSUS, LOW_POPULATION

__all__ = ["ITEMS", "Check", "Finding", "Item", "checklist"]

Status = Literal["found", "not found", "cannot be told"]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the list, and what is done where it is found."""

    letter: str
    title: str
    remedy: str = "Drop the column."


@dataclass(frozen=True, slots=True)
class Finding:
    """What of an item was found in a column, how sure that is, why, and what to do.

    `records` is the number of records concerned, where that is not all of them.
    """

    column: str
    what: str
    confidence: float
    reason: str
    remedy: str
    records: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One item of Safe Harbor, held against the file."""

    item: str
    title: str
    status: Status
    findings: tuple[Finding, ...] = ()
    note: str = ""


ITEMS: tuple[Item, ...] = (
    Item("A", "names"),
    Item(
        "B",
        "geography below the state",
        "Keep the state only, or of a ZIP code the first three digits, made 000 for the "
        f"{len(LOW_POPULATION)} prefixes of 20,000 people or fewer by {CENSUS} "
        f"({', '.join(LOW_POPULATION)}); check that list against the current census.",
    ),
    Item(
        "C", "dates finer than the year, ages over 89", "Keep the year; make 90 or older one age."
    ),
    Item("D", "telephone numbers"),
    Item("E", "fax numbers"),
    Item("F", "e-mail addresses"),
    Item("G", "Social Security numbers"),
    Item("H", "medical record numbers"),
    Item("I", "health plan beneficiary numbers"),
    Item("J", "account numbers"),
    Item("K", "certificate and licence numbers"),
    Item("L", "vehicle identifiers and plates"),
    Item("M", "device identifiers and serial numbers"),
    Item("N", "web addresses (URLs)"),
    Item("O", "IP addresses"),
    Item("P", "biometric identifiers"),
    Item("Q", "full-face photographs"),
    Item(
        "R",
        "any other unique number, characteristic or code",
        "Drop it, or give each release random numbers of its own whose list stays with you.",
    ),
)

_FREE_TEXT = {"A", "B", "C"}
_PICTURES = {"P", "Q"}


def checklist(
    findings: Iterable[tuple[str, Finding]],
    *,
    texts: Sequence[str] = (),
    unread: Sequence[str] = (),
) -> tuple[Check, ...]:
    """Hold findings against the eighteen items.

    Parameters
    ----------
    findings
        Each with the letter of its item.
    texts
        Columns of free text, in which names, places and days may stand.
    unread
        Columns whose contents cannot be read: bytes, lists.

    Examples
    --------
    >>> checks = checklist([])
    >>> len(checks), checks[0].status, checks[16].title, checks[16].status
    (18, 'not found', 'full-face photographs', 'cannot be told')
    """
    by_item: dict[str, list[Finding]] = {item.letter: [] for item in ITEMS}
    for letter, finding in findings:
        by_item[letter].append(finding)
    return tuple(_check(item, by_item[item.letter], texts, unread) for item in ITEMS)


def _check(
    item: Item, findings: Sequence[Finding], texts: Sequence[str], unread: Sequence[str]
) -> Check:
    notes = []
    if item.letter in _FREE_TEXT and texts:
        notes.append(f"free text may hold some: {', '.join(map(repr, texts))}")
    if item.letter == "Q":
        notes.append("pictures that go with the file are not seen here")
    if item.letter in _PICTURES and unread:
        notes.append(f"cannot be read: {', '.join(map(repr, unread))}")
    status: Status = "found" if findings else "cannot be told" if notes else "not found"
    return Check(item.letter, item.title, status, tuple(findings), "; ".join(notes))
