"""People of attacks: the release, the file it was made from and the control, in one code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.names import quoted
from keyhole.core.options import Problem, Question
from keyhole.data.columns import encode
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Flags, Floats
from keyhole.reidentification.residual_risk import LEAST_CONTROLS
from keyhole.reidentification.truth import absent_problems
from keyhole.reidentification.variables import alike, as_floats, strangers, variable_problems

# Scaled numbers: those beyond the release's range, and missing ones, are 1 away from all others.
BEYOND, MISSING = 2.0, 9.0
# What attacks other than finding people by linking have a use for.
OF_ATTACKS = frozenset(
    {"puf", "link", "scenario", "store", "target", "numeric", "seed", "ids_from", "attacks",
     "original", "control", "secret", "second_link", "engine", "master", "progress"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """The release, the people of the file and the control in one code.

    `release`, `original`, `control`: one row per record, one column for each of `names`. Categories
    are whole numbers, missing ones too; numbers are scaled to the range of the release. `numbers`
    tells which columns are numbers. `secrets`: by name the secret of all three as it is guessed.
    `why`: why there is no control, if there is none.
    """

    names: tuple[str, ...]
    release: Floats
    original: Floats
    control: Floats | None
    numbers: Flags
    secrets: Mapping[str, tuple[Floats, Floats, Floats]]
    why: str

    @property
    def notes(self) -> tuple[str, ...]:
        """Why there is no control, if there is none."""
        return (f"control and risk are null: {self.why}",) if self.why else ()

    def columns(self, names: Sequence[str]) -> list[int]:
        """Return the places of some columns."""
        return [self.names.index(name) for name in names]


def attack_columns(question: Question) -> tuple[str, ...]:
    """Return the columns that attacks use: known, of the second source, and secret."""
    return tuple(dict.fromkeys((*question.link, *question.second_link, *question.secret)))


def is_linkage_asked(values: Mapping[str, Any]) -> bool:
    """Tell whether people are to be found, for which the intruder's file is needed."""
    return "found" in (values.get("attacks") or "found")


def attack_problems(question: Question) -> Iterator[Problem]:
    """Say what attacks with a control lack, and what only they have a use for."""
    others = set(question.attacks) - {"found"}
    if not others:
        for name in ("original", "control", "secret", "second_link"):
            given = question.values[name]
            if given is not None and not (isinstance(given, tuple) and not given):
                yield Problem(
                    f"{{{name}}} goes with {{attacks}} such as inferred. Name the attacks, or "
                    f"leave it out."
                )
        return
    if question.original is None and question.ids_from is None:
        yield Problem(
            "{attacks} {0} need {original}, the file that the release was made from. Got none "
            "instead.",
            quoted(name for name in question.attacks if name in others),
        )
    if question.scenario:
        yield Problem("{attacks} other than found take {link}, and no {scenario}.")
    if len(question.puf or ()) > 1 or len(question.metric) > 1:
        yield Problem("{attacks} need one {puf} and one {metric}. Leave out the others.")
    if "linked" in others and not question.second_link:
        yield Problem(
            "{second_link} must name what a second source holds, for {attacks} linked. Got none "
            "instead."
        )
    if "inferred" in others and not question.secret:
        yield Problem(
            "{secret} must name what is to be learnt, for {attacks} inferred. Got none instead."
        )
    pairs = (("link", "second_link"), ("link", "secret"), ("second_link", "secret"))
    for option, other in pairs:
        for name in question.values[option]:
            if name in question.values[other]:
                template = f"{{{option}}} and {{{other}}} both name {{0!r}}. Take it out of one."
                yield Problem(template, name)
    if not is_linkage_asked(question.values):
        for name in [name for name in question.values if name not in OF_ATTACKS]:
            value, default = question.values[name], question.parameters[name].settled_default
            # Of data it is not asked whether they are the same.
            if value is not default and (default is None or value != default):
                yield Problem(f"{{{name}}} goes with {{attacks}} found. Add that, or leave it out.")
        if question.original is not None and question.ids_from is not None:
            yield Problem("{ids_from} and {original} both give the people. Leave one of them out.")
        for text in strangers(question.numeric, attack_columns(question), ""):
            yield Problem("{numeric}{0}", text)


def people_problems(
    puf: Microdata, original: Microdata, control: Microdata | None, question: Question
) -> list[str]:
    """Say which columns the files lack, and which are unfit."""
    names = attack_columns(question)
    given = [data for data in (puf, original, control) if data is not None]
    found = [text for data in given for text in absent_problems(data, names, "column")]
    found += [f"{data.name!r} must have records. Got none instead." for data in given
              if not data.records]  # fmt: skip
    if found:
        return found
    asked = question.replace(link=names, strata=(), blank=(), metric="taxicab")
    found = [text for data in given[1:] for text in variable_problems(puf, data, asked)]
    if not found and control is not None:
        people, others = (data.frame.select(names) for data in (original, control))
        if others.equals(people):
            found.append("control must be people who are not in the file. Got the same records.")
    return found


def encode_people(
    puf: Microdata, original: Microdata, control: Microdata | None, question: Question
) -> People:
    """Bring the files to one code, the release in random order: of ties the first is taken."""
    names, numeric = attack_columns(question), set(question.numeric)
    few = control is not None and control.records < LEAST_CONTROLS
    why = "no control was given" if control is None else ""
    if control is not None and few:
        why = f"{control.records} controls are too few; at least {LEAST_CONTROLS} are needed"
    kept = None if few else control
    order = np.random.default_rng([question.seed, 99]).permutation(puf.records)
    sizes = [puf.records, original.records, 0 if kept is None else kept.records]
    columns, secrets = [], {}
    for name in names:
        held = [data.column(name) for data in (puf, original, kept) if data is not None]
        values = pl.concat([one.rename("") for one in alike(*held)])
        numbers = as_floats(values) if name in numeric else None
        if name in question.secret:
            raw = _codes(values) if numbers is None else numbers
            first, second, third = np.split(raw, np.cumsum(sizes)[:2])
            secrets[name] = first[order], second, third
        columns.append(_codes(values, missing=True) if numbers is None
                       else _scaled(numbers, puf.records))  # fmt: skip
    whole = np.column_stack(columns)
    release, people, others = np.split(whole, np.cumsum(sizes)[:2])
    is_number = np.array([name in numeric for name in names])
    return People(
        names, np.ascontiguousarray(release[order]), people, None if kept is None else others,
        is_number, secrets, why,
    )  # fmt: skip


def _codes(values: pl.Series, *, missing: bool = False) -> Floats:
    """Number the categories; missing is one more of them, or not a number."""
    codes = encode(values)
    found = codes.values.astype(np.float64)
    if not missing:
        found[values.is_null().to_numpy()] = np.nan
    return found


def _scaled(numbers: Floats, records: int) -> Floats:
    """Scale numbers to the range that they have in the first records, which are the release's."""
    own = numbers[:records]
    low, high = np.nanmin(own), np.nanmax(own)
    scaled = np.clip((numbers - low) / ((high - low) or 1.0), -BEYOND, 1 + BEYOND)
    return np.where(np.isnan(numbers), MISSING, scaled)
