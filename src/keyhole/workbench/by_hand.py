"""A field that a person puts where it belongs: into a construct, or into a coding of one."""

from __future__ import annotations

from keyhole.core.names import nearest
from keyhole.environment.adding.catalogue import Catalogue
from keyhole.environment.adding.decisions import Decision, Tie
from keyhole.environment.adding.matching_categories import answers_of
from keyhole.environment.adding.placing import Placer
from keyhole.environment.adding.ranking import ties_of
from keyhole.environment.model import CapturedField, Coding, Environment
from keyhole.environment.wording import quoted, shown
from keyhole.errors import InputError

__all__ = ["decide_by_hand", "known_places"]


def known_places(environment: Environment) -> list[tuple[str, str]]:
    """Return what can be typed for a field, each with what it means: constructs, then codings.

    Examples
    --------
    >>> from keyhole.environment.model import Category, Construct
    >>> coding = Coding("SX2.001", "SX", (Category("f"), Category("m")), label="Sex")
    >>> known_places(Environment((Construct("SX", "sex"),), (coding,)))
    [('SX', 'sex'), ('SX2.001', 'a coding of sex, 2 categories: Sex')]
    """
    from keyhole.environment.codings.categories import size_of

    names = {one.letters: one.name or one.letters for one in environment.constructs}
    places = [(one.letters, names[one.letters]) for one in environment.constructs]
    for one in environment.codings:
        told = f"a coding of {names.get(one.construct, one.construct)}, {size_of(one):,} categories"
        places.append((one.name, f"{told}: {one.label}" if one.label else told))
    return places


def decide_by_hand(
    text: str, field: CapturedField, environment: Environment, *, exact_codes: bool
) -> Decision:
    """Return what is to be done with a field for which a construct or a coding was typed.

    Parameters
    ----------
    text
        A construct, by its letters or its name, or the name of a coding.
    field
        The field, with its categories.
    environment
        Where these are.
    exact_codes
        Whether a coding is the same only if its codes are, as for the columns of a file.

    Raises
    ------
    InputError
        If there is nothing of that name.

    Examples
    --------
    >>> from keyhole.environment.model import Category, Construct
    >>> coding = Coding("SX2.001", "SX", (Category("1", "Male"), Category("2", "Female")))
    >>> known = Environment((Construct("SX", "sex"),), (coding,))
    >>> asked = CapturedField("q7", "", (Category("1"), Category("2")))
    >>> decide_by_hand("SX2.001", asked, known, exact_codes=True).action
    'assimilate'
    >>> decide_by_hand("sex", asked, known, exact_codes=True).action
    'accommodate'
    """
    catalogue = Catalogue(environment)
    coding = catalogue.names.get(text)
    if coding is not None:
        ties = (Tie(coding.name, "finer", _same_codes(field, coding)),)
        return Decision(field.name, "assimilate", coding.construct, coding=coding.name,
                        ties=ties if ties[0].pairs else ())  # fmt: skip
    letters = _letters(text, environment)
    if letters is None:
        near = nearest(text, [*catalogue.constructs, *catalogue.names])
        hint = f" Near it: {quoted(near)}." if near else ""
        raise InputError(
            f"field {shown(field.name)}: {shown(text)} is neither a construct nor a coding of the "
            f"environment. Take one of the list.{hint}"
        )
    return _in_construct(catalogue, environment, field, letters, exact_codes=exact_codes)


def _same_codes(field: CapturedField, coding: Coding) -> tuple[tuple[str, str], ...]:
    """Pair categories by their codes: who names a coding says that these mean the same."""
    ours, theirs = ([c.code for c in one.categories] for one in (field, coding))
    return tuple((code, code) for code in ours) if set(ours) == set(theirs) else ()


def _letters(text: str, environment: Environment) -> str | None:
    wanted = text.casefold()
    named = {one.name.casefold(): one.letters for one in environment.constructs}
    lettered = {one.letters.casefold(): one.letters for one in environment.constructs}
    return lettered.get(wanted) or named.get(wanted)


def _in_construct(
    catalogue: Catalogue,
    environment: Environment,
    field: CapturedField,
    letters: str,
    *,
    exact_codes: bool,
) -> Decision:
    """Take a coding with the same answers, else make one, tied to those that it falls against."""
    answers = answers_of(field.categories, field.intervals)
    codes = {one.code for one in field.categories}
    for coding in [] if answers.bare else catalogue.same_answers(letters, answers):
        if not exact_codes or {one.code for one in coding.categories} == codes:
            return Decision(field.name, "assimilate", letters, coding=coding.name)
    ties = ties_of(catalogue, letters, answers, known=True)
    wanted = Decision(field.name, "accommodate", letters, ties=ties)
    # A tie that contradicts what is stored is left out, as where it is proposed.
    kept = Placer(environment, only=letters).accommodate(field, wanted).ties
    return Decision(field.name, "accommodate", letters, ties=kept)
