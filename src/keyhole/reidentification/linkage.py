"""Linkage attack on one release: pairs, truth, rates, chance, what the perturbation bought.

Singer & Dajani, section 1.2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keyhole.core.options import Problem, Question
from keyhole.data.microdata import Microdata
from keyhole.errors import InputError, OptionError
from keyhole.kernels.arrays import Flags
from keyhole.reidentification.baseline import Baseline, permuted_baseline
from keyhole.reidentification.files import StudyFiles, attach_ids, linking_keys, with_blanks
from keyhole.reidentification.linking import Pairs, find_pairs
from keyhole.reidentification.question import taken_as_categories, with_scores
from keyhole.reidentification.rates import (
    Rates,
    RatesByAgreement,
    RatesByRank,
    RatesByStratum,
    RatesBySubset,
    agreements,
    confirm,
    count_use,
    measure_rates,
    rates_by_pair,
    rates_by_stratum,
)
from keyhole.reidentification.result import Study, StudyOverlap
from keyhole.reidentification.scores import load_scores, score_problems
from keyhole.reidentification.strata import Strata, number_strata
from keyhole.reidentification.truth import (
    Perturbation,
    Truth,
    absent_problems,
    find_truth,
    incomplete_warnings,
    order_by_id,
    require_rows,
    restore,
)
from keyhole.reidentification.unicity import MOST_VARIABLES
from keyhole.reidentification.variables import strangers

Progress = Callable[..., None]


def attack_release(files: StudyFiles, release: str, question: Question, tell: Progress) -> Study:
    """Attack one release by one metric."""
    puf, eif, iuf = files.pufs[release], files.eif, files.iufs[release]
    if files.key is not None:
        question = question.replace(link=linking_keys(files.key, eif, question))
        problems = list(linking_problems(question))
        if problems:
            raise OptionError(problems)
        puf, eif, iuf = (files.key.recode(data, partial=True) for data in (puf, eif, iuf))
    if files.ids is not None and not set(question.puf_id) <= set(puf.names):
        puf = attach_ids(puf, files.ids, question.puf_id)
    puf, warnings = with_blanks(puf, eif, question.blank)
    data = LinkedFiles(puf, eif, iuf)
    found = _linked_study(data, checked_truth(data, question), with_scores(question), tell)
    name = None if files.key is None else files.key.name
    told = (*warnings, *found.warnings)
    return replace(found, warnings=told, scenario=name, prepared=files.prepared)


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """The three files of one attack."""

    puf: Microdata
    eif: Microdata
    iuf: Microdata


def checked_truth(files: LinkedFiles, question: Question) -> Truth:
    """Find the true pairs, or say at once what is wrong with ids, variables and options."""
    both = (files.puf, files.eif)
    for data in both:
        data.require_records()
    require_rows(files.iuf.name, files.iuf.records)
    try:
        return find_truth(*both, files.iuf, puf_id=question.puf_id, eif_id=question.eif_id)
    except InputError as error:
        problems = list(error.problems)
    for purpose, names in (("linking variable", question.link), ("stratum", question.strata)):
        for data in both:
            problems += absent_problems(data, names, purpose)
    raise OptionError(problems)


def _linked_study(files: LinkedFiles, truth: Truth, question: Question, tell: Progress) -> Study:
    tell("linking")
    linked = find_pairs(files.puf, files.eif, question, tell, (truth.puf, truth.eif))
    confirmed = _confirmed(linked, truth)
    rates = measure_rates(linked.puf, confirmed, files.puf.records)
    perturbation, skipped = _undo(files, truth, question, rates, tell)
    tell("dealing out ids at random")
    strata = number_strata(files.puf, files.eif, question.strata) if question.strata else None
    baseline = _baseline(files, linked, truth, strata, question)
    same = agreements(files.puf, files.eif, (linked.puf, linked.eif), question)
    agreeing, used = count_use(question.link, same, confirmed, linked.subset)
    records = files.puf.records
    parts: tuple[RatesByStratum, ...] = ()
    if strata is not None:
        by_chance = None if baseline is None else baseline.by_stratum
        parts = rates_by_stratum(linked.puf, confirmed, strata, by_chance)
    place: dict[str, Any] = (
        {"by_rank": rates_by_pair(RatesByRank, linked.puf, confirmed, linked.rank, records)}
        if linked.subset is None
        else {"by_subset_size": rates_by_pair(
            RatesBySubset, linked.puf, confirmed, linked.score.astype(np.int64), records
        )}
    )  # fmt: skip
    return Study(
        linkage=linked.linkage,
        eif_records=linked.eif_records,
        rates=rates,
        baseline=baseline,
        seed=int(question.seed),
        overlap=StudyOverlap.of(truth.overlap, rates.confirmed),
        by_stratum=parts,
        gaps=None if strata is None else strata.gaps(),
        by_agreement=rates_by_pair(RatesByAgreement, linked.puf, confirmed, agreeing, records),
        by_variables=used,
        perturbation=perturbation,
        warnings=(
            *taken_as_categories(question, files.puf),
            *linked.warnings,
            *incomplete_warnings(truth.incomplete, files.iuf.records),
            *skipped,
        ),
        lost_to_rank_cap=linked.lost,
        linked=linked,
        confirmed_pairs=confirmed,
        puf_ids=files.puf.frame[list(question.puf_id)],
        eif_ids=files.eif.frame[list(question.eif_id)],
        **place,
    )


def _confirmed(linked: Pairs, truth: Truth) -> Flags:
    return confirm(linked.puf, linked.eif, truth.puf, truth.eif, linked.eif_records)


def _baseline(
    files: LinkedFiles, linked: Pairs, truth: Truth, strata: Strata | None, question: Question
) -> Baseline | None:
    """Measure what chance would confirm, if asked for, whatever order the EIF's records have."""
    if not question.permutations:
        return None
    order = order_by_id(files.eif, question.eif_id)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return permuted_baseline(
        linked.puf,
        place[linked.eif],
        truth.puf,
        place[truth.eif],
        puf_records=linked.puf_records,
        eif_records=linked.eif_records,
        strata=None if strata is None else (strata.puf, strata.eif[order]),
        permutations=question.permutations,
        seed=question.seed,
    )


def _undo(
    files: LinkedFiles, truth: Truth, question: Question, with_it: Rates, tell: Progress
) -> tuple[Perturbation | None, list[str]]:
    """Run the attack on the values as they were, if the internal file has other ones."""
    link = [name for name in question.link if name not in {*question.puf_id, *question.eif_id}]
    before = restore(files.puf, files.iuf, truth, link)
    if before is None:
        return None, []
    skipped = [
        f"the perturbation of {reason}: it is left as it is in the PUF" for reason in before.skipped
    ]
    if not any(before.changed.values()):
        return None, skipped
    tell("linking without the perturbation")
    try:
        linked = find_pairs(before.puf, files.eif, question, tell)
    except InputError as error:
        return None, [*skipped, *(f"not run without the perturbation: {p}" for p in error.problems)]
    rates = measure_rates(linked.puf, _confirmed(linked, truth), linked.puf_records)
    return Perturbation.measured(before, rates, with_it), skipped


def linking_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with the linking variables, given or taken from a scenario."""
    linked = question.link
    if len(linked) < 2:
        yield Problem("{link} must name at least two variables. Got {0} instead.", len(linked))
    if "unicity" in question.metric and len(linked) > MOST_VARIABLES:
        yield Problem(
            "{link} must name at most {0} variables for unicity. Got {1} instead.",
            MOST_VARIABLES,
            len(linked),
        )
    others = (*question.second_link, *question.secret)
    for text in strangers(question.numeric, (*linked, *others), ""):
        yield Problem("{numeric}{0}", text)
    for name in linked:
        if name in question.strata:
            yield Problem(
                "{link} and {strata} both name {0!r}: a linking variable and a stratum. Leave it "
                "out of one of them.",
                name,
            )
    if "adhoc" in question.metric and question.scores is not None:
        try:
            scores = question.scores
            declared = load_scores(scores) if isinstance(scores, str | os.PathLike) else scores
            texts = score_problems(declared, linked)
        except InputError as error:
            texts = list(error.problems)
        for text in texts:
            yield Problem("{scores}: {0}", text)
