"""Guesses of sensitive columns: what people would not want known, by name, label and contents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from keyhole.data import Microdata
from keyhole.data.columns import Variable
from keyhole.screening.identifiers import words
from keyhole.screening.inspection import Inspection

# By subject the words of names and labels that tell it: those of Article 9 of the GDPR, and money.
_NAMED: tuple[tuple[str, str], ...] = (
    ("health", r"health|healthcare|hicov|insurance|insured|medical|medicare|medicaid|ill|illness|"
     r"sick|sickness|disease|diagnos(is|es|ed)|icd|icd10|icd9|comorbidity|disab(led|ility)|dis|"
     r"disabwrk|mental|depress(ed|ion)|hiv|aids|cancer|diabet(es|ic)|drugs?|alcohol|"
     r"smok(es?|ing|er)|bmi|pregnan(t|cy)|symptoms?|medication|hospital|dratx?|ptsd|suicid(e|al)"),
    ("income or wealth", r"income|incomes|inc|inctot|incwage|pincp|pernp|wagp|hincp|fincp|"
     r"earnings?|wages?|salary|salaries|wealth|assets|debts?|savings|tax|taxes|poverty|"
     r"povpip|credit|means"),
    ("benefits", r"benefits?|welfare|pensions?|allowance|subsidy|compensation|foodstamps?|snap|ssi|"
     r"ssip|ssp|pap|unemployment"),
    ("crime", r"crimes?|criminal|offen[cs]es?|convict(ed|ion|ions)|arrest(s|ed)?|prison|jail|"
     r"probation|parole|incarcerat(ed|ion)|delinquen(t|cy)"),
    ("religion or belief", r"religions?|religious|faith|church|denomination|beliefs?"),
    ("sexuality", r"sexuality|sexual|lgbtq?|gay|lesbian|transgender|sexorientation"),
    ("politics", r"politic(s|al)|party|voted?|votes"),
    ("genetics", r"genetic|genetics|genotype|genome|dna"),
)  # fmt: skip
# Words of categories, of which several tell the subject.
_HELD: tuple[tuple[str, str], ...] = (
    ("health", r"cancer|hiv|aids|diabetes|depression|schizophrenia|asthma|epilepsy|dementia|"
     r"hepatitis|hypertension|stroke|tumou?r|tuberculosis|anxiety|heart"),
    ("crime", r"burglary|assault|theft|robbery|fraud|murder|homicide|arson|rape"),
    ("religion or belief", r"catholic|protestant|muslim|islam|jewish|judaism|hindu|buddhist|"
     r"christian|atheist|orthodox|agnostic|sikh"),
    ("sexuality", r"gay|lesbian|bisexual|heterosexual|homosexual|straight|queer|asexual"),
    ("benefits", r"pension|welfare|allowance|medicaid"),
)  # fmt: skip
_ICD = re.compile(r"[A-TV-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?")
# Of an intruder's gain one or two columns on a subject say as much as twenty.
MOST_OF_A_SUBJECT = 2
MOST_CATEGORIES = 500
_SEVERAL, _FEWEST_CODES, _NEARLY_ALL = 2, 5, 0.9


def guess_sensitive(
    data: Microdata, columns: Sequence[Inspection], taken: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield columns that seem sensitive, each with the reason; `taken` are no candidates.

    Examples
    --------
    >>> import polars as pl
    >>> from keyhole.data import load
    >>> from keyhole.screening.screen import screen
    >>> people = load(pl.DataFrame({"wage": [900, 1200, 900], "c1": ["HIV", "cancer", "none"]}))
    >>> dict(guess_sensitive(people, screen(people).inspections, ()))
    {'wage': 'income or wealth, by its name', 'c1': 'health, by its categories'}
    """
    count: dict[str, int] = {}
    for one in columns:
        name = one.variable.name
        if name in taken or name not in data.names or not one.read or one.is_constant:
            continue
        if one.is_free_text or (found := _subject(data, one.variable)) is None:
            continue
        count[found[0]] = count.get(found[0], 0) + 1
        if count[found[0]] <= MOST_OF_A_SUBJECT:
            yield name, f"{found[0]}, by its {found[1]}"


def _subject(data: Microdata, variable: Variable) -> tuple[str, str] | None:
    """Return what a column is about, and what tells it."""
    plain = [word for word in words(variable.name) if not word.isdigit()]
    said = {
        "name": {*plain, "".join(plain), variable.name.lower()},
        "label": set(words(variable.label)),
    }
    for where, found in said.items():
        for subject, pattern in _NAMED:
            if any(re.fullmatch(pattern, word) for word in found):
                return subject, where
    if variable.kind in ("measure", "date"):
        return None
    texts = _categories(data, variable)
    if len(texts) >= _FEWEST_CODES:
        codes = sum(_ICD.fullmatch(text.strip().upper()) is not None for text in texts)
        if codes >= _NEARLY_ALL * len(texts):
            return "health", "codes of diagnoses"
    held = {word for text in texts for word in words(text)}
    for subject, pattern in _HELD:
        if sum(re.fullmatch(pattern, word) is not None for word in held) >= _SEVERAL:
            return subject, "categories"
    return None


def _categories(data: Microdata, variable: Variable) -> list[str]:
    """Return the categories of a column, and what they mean."""
    levels = data.codes(variable.name).levels
    shown = levels.to_list() if len(levels) <= MOST_CATEGORIES else []
    return [*(one for one in shown if isinstance(one, str)), *variable.value_labels.values()]
