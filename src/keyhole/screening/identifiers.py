"""Direct identifiers: fields that say by themselves who somebody is.

They are recognised by the words of a name and a label, by a format pattern, and by contents.
Where a place (city, ZIP code), a day or a sort is told, that is no direct identifier, however
well it may serve as a key. The name of a relative or household member identifies that person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?(?:[^\W\d_A-Z]|')+|[A-Z]+|\d+")
_LONGEST = 400  # of a name or label: a word far behind does not say what a field is
_NEAR = 3  # steps of a path in which a thing that has the name is looked for
_GLANCE = 10_000
_MOST_VALUES = 0.8  # share of the values that must look alike
_SURE = 0.98


@dataclass(frozen=True, slots=True)
class Identifier:
    """What kind of direct identifier a field is, how sure that is, and why.

    ``safe_harbor`` is the item of the HIPAA Safe Harbor list, (A) to (R).
    """

    kind: str
    confidence: float
    reason: str
    safe_harbor: str


def words(text: str) -> tuple[str, ...]:
    """Split a name, path or label into words in lower case."""
    cut = text[:_LONGEST]
    return tuple(one.lower() for one in _WORD.findall(cut.lower() if cut.isupper() else cut))


def recognise(
    name: str, label: str = "", pattern: str = "", values: Iterable[object] | None = None
) -> Identifier | None:
    r"""Tell whether a field is a direct identifier.

    Parameters
    ----------
    name
        The field's name, or its path with steps set apart by ``/`` (or ``.``).
    label
        What it means, in words.
    pattern
        The format asked of it: a regular expression, or a name of a format (``email``).
    values
        Some of its values, to be compared with known shapes; they are never shown.

    Returns
    -------
    Identifier or None
        The kind that is surest; nothing if the field identifies nobody by itself.

    Examples
    --------
    >>> recognise("veteran/fullName/first").kind
    'name'
    >>> recognise("spouseSSN", pattern=r"^\d{9}$").safe_harbor
    'G'
    >>> recognise("stateName"), recognise("veteranAddress/city"), recognise("gender")
    (None, None, None)
    """
    parts = [" ".join(words(step)) for step in re.split(r"[/.]", name[:_LONGEST])]
    steps = " / ".join(step for step in parts if step)
    found = [*_by_words(steps, "name"), *_by_words(" ".join(words(label)), "label")]
    if pattern and not _is_never(steps):
        found += [
            Identifier(kind.name, sure, f"its format is that of: {kind.name}", kind.safe_harbor)
            for kind in KINDS
            for shape, sure in kind.formats
            if _compiled(shape).search(pattern[:_LONGEST])
        ]
    if values is not None:
        found += _by_contents(values)
    # max keeps the first of equals, and the table stands in order of precedence.
    return max(found, key=lambda one: one.confidence, default=None)


def _is_never(text: str) -> bool:
    return _compiled(NEVER).search(text.rpartition(" / ")[2]) is not None


@lru_cache(maxsize=1 << 14)
def _by_words(text: str, where: str) -> tuple[Identifier, ...]:
    if not text or _is_never(text) or not _any_words().search(text):
        return ()
    near = " / ".join(text.split(" / ")[-_NEAR:])
    return tuple(
        Identifier(kind.name, confidence, f"its {where} has {found!r}", kind.safe_harbor)
        for kind in KINDS
        if not (kind.unless and _compiled(kind.unless).search(near))
        for pattern, confidence in kind.words
        if (found := _last_match(pattern, text)) is not None
    )


@lru_cache(maxsize=1)
def _any_words() -> re.Pattern[str]:
    """Return one pattern of all words; most fields have none of them."""
    return re.compile("|".join(f"(?:{pattern})" for kind in KINDS for pattern, _ in kind.words))


def _last_match(pattern: str, text: str) -> str | None:
    """Return the words found, if they reach into the last step or into one it continues."""
    start = text.rfind(" / ") + 3 if " / " in text else 0
    if start and _compiled(GENERIC).match(text[start:]):
        start = max(text.rfind(" / ", 0, start - 3), 0)
    ends = [found for found in _compiled(pattern).finditer(text) if found.end() > start]
    return ends[-1].group().strip(" /") if ends else None


def _by_contents(values: Iterable[object]) -> list[Identifier]:
    texts = [str(one).strip()[:_LONGEST] for one in islice(values, _GLANCE) if one is not None]
    texts = [one for one in texts if one]
    return [
        Identifier(kind.name, _SURE * share, f"its values look like: {kind.name}", kind.safe_harbor)
        for kind in KINDS
        if kind.contents and (share := _share(texts, kind.contents)) >= _MOST_VALUES
    ]


def _share(texts: list[str], contents: str) -> float:
    fits = sum(_compiled(contents).fullmatch(one) is not None for one in texts)
    return fits / len(texts) if texts else 0.0


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


# The kinds, as a table to be read and added to. Each says by which words of a name or label it is
# known, by which format pattern, by which contents, and which item of the HIPAA Safe Harbor list it
# is (45 CFR 164.514(b)(2)(i), (A) to (R)). Words are matched in lower case, the steps of a path set
# apart by " / " (veteran full name / first); of several kinds the surest wins, then the earlier.

_PEOPLE = (
    "veteran|spouse|husband|wife|child|dependent|mother|father|parent|sibling|brother|sister|"
    "applicant|claimant|patient|respondent|participant|contact|person|people|guardian|relative|"
    "kin|witness|caregiver|student|employee|customer|client|subscriber|representative|attorney|"
    "physician|doctor|signer|donor|tenant|payee|beneficiary|deceased|householder|subject|your"
)
_THINGS = (
    "school|college|universit|institution|bank|compan|business|organi[sz]ation|agenc|state|"
    "countr|count(y|ies)|cit(y|ies)|town|village|facilit|hospital|cent(er|re)|clinic|insur|plan|"
    "product|files?\\b|document|attachment|variable|column|course|program|unit|branch|location|"
    "drug|medication|disease|condition|disabilit|ship|vessel|device|cemeter|deduction|expense|"
    "asset|propert|occupation|industr|language|tribe|brand|project|provider|lender|loan|degree|"
    "jobs?\\b|station|operation|exercise|training|department|group|medal|form\\b|test|event|creditor"
)
_NUMBER = r"(numbers?|num|no|nbr|nr|id|ids|#)\b"


@dataclass(frozen=True, slots=True)
class IdentifierKind:
    """One kind of direct identifier.

    ``words`` are pairs of a pattern and the confidence (0 to 1) it gives; ``unless`` are
    words with which none of them counts. ``formats`` are found in the text of a format
    pattern, as a JSON Schema has it, and count only beside weak words or alone where they are
    telling. ``contents`` is matched by each value whole.
    """

    name: str
    safe_harbor: str
    words: tuple[tuple[str, float], ...]
    unless: str = ""
    formats: tuple[tuple[str, float], ...] = ()
    contents: str = ""


# A last step that says nothing by itself: the one before speaks for it.
GENERIC = r"(numbers?|no|value|text|code|line|full|primary|other|home|work|mobile|last four|\d+)$"
# A last step that tells a place, a day, a sort, or yes and no: not who somebody is.
NEVER = (
    r"(city|town|state|province|zip( code)?|postal( code)?|country|county|region|place|date|"
    r"type|kind|status|gender|sex|age|year|month|day|count|amount|description|reason|relationship"
    r"|available|allowed|consent|verified)( \d+)?$|^(is|has|have|does|do|did|was|were|are|can|may) "
)


def _kind(name: str, safe_harbor: str, *words: tuple[str, float], **more: Any) -> IdentifierKind:
    return IdentifierKind(name, safe_harbor, words, **more)


KINDS: tuple[IdentifierKind, ...] = (
    _kind(
        "ssn",
        "G",
        (r"\bssns?\b|\bs sn\b|\bitin\b|\b(scr|scrambled|real|true|pt) ?ssn\b", 0.98),
        (rf"\bsocial security (card )?{_NUMBER}", 0.98),
        (r"\bsocial security$", 0.7),
        (rf"\b(national insurance|national identity) {_NUMBER}", 0.9),
        (rf"\btax(payer)?( identification)? {_NUMBER}", 0.9),
        (r"\blast (4|four)( digits)? (of )?(the |your )?(ssn|social)", 0.9),
        unless=r"\b(benefits?|payments?|income|receiv\w+|disability)\b",
        formats=((r"\{3\}[^{]{0,12}-\??[^{]{0,12}\{2\}[^{]{0,12}-\??[^{]{0,12}\{4\}", 0.8),),
        contents=r"(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}",
    ),
    _kind(
        "email",
        "F",
        (r"\be ?mails?\b", 0.95),
        formats=((r"^(idn-)?email$|[+*)}\]]@[\[(\\]", 0.9),),
        contents=r"[^@\s]{1,64}@[^@\s]{1,190}\.[A-Za-z]{2,24}",
    ),
    _kind("fax", "E", (r"\bfax(es)?\b|\bfax ?(number|no)|\bfacsimile\b", 0.95)),
    _kind(
        "phone",
        "D",
        (
            r"\b(tele|cell|mobile|home|work|day|evening)?phones?\b|\b(tele)?phone ?(number|no)",
            0.95,
        ),
        (rf"\b(telephone|mobile|cell|cellular|tel|pager) ?{_NUMBER}", 0.9),
        (r"\btel$|\bmobile$|\bcell$", 0.6),
        unless=r"\b(own|owns|access|service|bill|cost)\b|\bphone (in|use)\b",
        formats=((r"\{3\}[^{]{0,16}\{3\}[^{]{0,16}\{4\}", 0.7),),
        contents=r"(\+?\d{1,3}[ .-]?)?\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}",
    ),
    _kind(
        "ip address",
        "O",
        (r"\bip( ?v[46])?( address(es)?| addr)\b|\bipaddr(ess)?\b|\bip$|\bipv[46]\b", 0.95),
        formats=((r"^ipv[46]$", 0.95),),
        contents=r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)",
    ),
    _kind(
        "url",
        "N",
        (r"\burls?\b|\bweb ?sites?\b|\bhome ?page\b", 0.9),
        (r"\b(facebook|linkedin|twitter|instagram)\b", 0.9),
        formats=((r"^ur[il]$|https?", 0.8),),
        contents=r"https?://\S{3,2000}|www\.\S{3,2000}",
    ),
    _kind(
        "device",
        "M",
        (r"\b(imei|imsi|udid|iccid|meid)\b|\bmac ?addr(ess)?\b", 0.95),
        (rf"\b(device|implant|pacemaker|sim) ?(serial )?{_NUMBER}|\bdeviceid\b", 0.9),
        (rf"\bdevice .*\bserial {_NUMBER}", 0.9),
        contents=r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}",
    ),
    _kind(
        "vehicle",
        "L",
        (r"\bvin\b|\b(licen[cs]e|number) plates?\b|\bplate (number|no)\b", 0.95),
        (rf"\bvehicle (identification|registration|serial)( {_NUMBER})?|\btail {_NUMBER}", 0.9),
        contents=r"(?=.*\d)(?=.*[A-HJ-NPR-Z])[A-HJ-NPR-Z0-9]{17}",
    ),
    _kind(
        "medical record number",
        "H",
        (rf"\bmrn\b|\bedipi\b|\bmedical record( {_NUMBER})?|\b(patient)?icn\b", 0.95),
        (rf"\b(chart|hospital|nhs) ?{_NUMBER}", 0.95),
        (rf"\bpatient ?{_NUMBER}|\bpatid\b", 0.9),
        unless=r"\b(numbers? of|release)\b",
    ),
    _kind(
        "routing number",
        "J",
        (rf"\brouting( transit)? ?{_NUMBER}|\bsort code\b|\bswift\b|\bbic\b", 0.95),
    ),
    _kind(
        "account number",
        "J",
        (rf"\b(bank |checking |savings )?(account|acct|loan) ?{_NUMBER}|\biban\b", 0.95),
        (rf"\b(credit|debit|bank) card( {_NUMBER})?|\bcard {_NUMBER}|\bpan\b", 0.8),
        unless=r"\bnumbers? of\b",
        contents=r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}",
    ),
    _kind(
        "policy number",
        "I",
        (rf"\b(policy|subscriber|beneficiary|insurance|health plan) ?{_NUMBER}", 0.95),
        (rf"\b(medicare|medicaid)( claim| beneficiary)? ?{_NUMBER}|\bhicn?\b|\bmbi\b", 0.95),
        (rf"\b(member|membership) ?{_NUMBER}", 0.7),
        (r"\binsurance\b.*\bgroup (code|number|no|id)\b", 0.8),
        unless=r"\bnumbers? of\b",
    ),
    _kind(
        "licence number",
        "K",
        (rf"\b(driver'?s? |professional |medical )?licen[cs]e ?{_NUMBER}", 0.95),
        (rf"\bpassport( {_NUMBER})?|\b(certificate|visa|dea) {_NUMBER}", 0.9),
    ),
    _kind(
        "file number",
        "R",
        (rf"\b(va ?)?file ?{_NUMBER}", 0.9),
        (rf"\b(claim|case|service|docket|booking|inmate) ?{_NUMBER}", 0.9),
        (r"\bva ?file$|\bclaim id\b", 0.8),
        unless=r"\bnumbers? of\b",
    ),
    _kind(
        "record number",
        "R",
        (
            rf"\b(record|serial|respondent|participant|person|subject|study|employee|student|"
            rf"customer|client|household|applicant|application|national) ?{_NUMBER}",
            0.85,
        ),
        (r"\b(guid|uuid|confirmation (code|number)|tracking number)\b", 0.6),
        (r"\b\w+ id$|(^|/ )id$|\bidentifier$", 0.5),
        unless=r"\b(numbers? of|number in|facility|school|vendor|product|country|state) ?(id)?\b",
        formats=((r"^uuid$", 0.6),),
        contents=r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    ),
    _kind(
        "user name",
        "R",
        (r"\buser ?(name|id)\b|\b(screen|login|account|display) name\b", 0.9),
        (r"\blogin$|\bpassword\b", 0.9),
    ),
    _kind(
        "biometric",
        "P",
        (r"\b(finger|voice|palm|hand) ?prints?\b|\bbiometrics?\b", 0.9),
        (r"\b(iris|retinal?|face) scan\b|\bdna\b", 0.9),
    ),
    _kind(
        "photo",
        "Q",
        (
            r"\bphoto(graph)?s?\b|\bselfie\b|\bportrait\b|\b(face|facial) image\b|\bheadshot\b",
            0.85,
        ),
        unless=r"\b(id|copy|permission)\b",
    ),
    _kind("signature", "R", (r"\bsignatures?\b|\bsigned by\b|\be ?signature\b", 0.85)),
    _kind(
        "coordinates",
        "B",
        (r"\b(latitude|longitude|geopoint|gps|geolocation|coordinates)\b|\blat lon\b", 0.85),
    ),
    _kind(
        "address",
        "B",
        (r"\bstreet( address| line)?( ?\d)?$|\bstreet ?(name|number|no)\b", 0.95),
        (r"\b(address|addr) ?line ?\d?\b", 0.95),
        (r"\b(street|mailing|home|postal|residential|permanent|current) addr(ess)?\b", 0.9),
        (r"\baddr(ess)?(es)?( ?\d)?$|\bwhere do you live\b", 0.85),
        (r"\bp ?o box\b|\b(apartment|apt|house|suite|unit) (number|no|num|#)|\bapt$", 0.85),
        unless=r"\b(e ?mail|ip|mac|web|school|compan\w+|same as|same address)\b",
    ),
    _kind(
        "employer name",
        "A",
        (r"\b(employer|firm)s?('s)?( / | )(\w+ ){0,2}names?\b", 0.7),
        (r"\bnames? of (the |your )?(\w+ )?(employer|firm)", 0.7),
    ),
    _kind(
        "name",
        "A",
        (r"\b(first|fst|last|lst|middle|full|patient|pat) ?nme?\b", 0.85),
        (r"\b(sur|fore|nick)names?\b|\b[fml]names?\b|\binitials?\b|\bname suffix\b", 0.95),
        (r"\b(first|given|middle|last|family|maiden) ?names?\b", 0.95),
        (r"\bnames? / (\w+ )*(first|middle|last|suffix|maiden|given|family|prefix)$", 0.95),
        (rf"\b({_PEOPLE})('?s)? ?names?( \d)?$", 0.9),
        (r"\b(policy ?|account ?|card ?|house)?holder('?s)?( / | )names?\b", 0.9),
        (rf"\b({_PEOPLE})\w{{0,3}}\b.* / (first|middle|last|suffix|maiden)$", 0.7),
    ),
    _kind(
        "name",
        "A",
        (r"\b(full|preferred|legal|other|alternate|alias|former) ?names?\b", 0.95),
        (rf"\b({_PEOPLE})('?s)?( / | )(\w+ ){{0,2}}names?( \d)?$", 0.9),
        (rf"\bnames? of (the |your )?({_PEOPLE})", 0.9),
        (r"(^|/ )names?( \d)?$|\byour name\b", 0.6),
        unless=rf"\b({_THINGS})\w*\b",
    ),
)
