"""Re-identification study: link, confirm, measure (Singer & Dajani, section 1.2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keyhole.data.keyed import KeyedData
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.engines.choose import cluster_for
from keyhole.errors import InputError, OptionError
from keyhole.kernels.arrays import Flags
from keyhole.reidentification.baseline import Baseline, chance_problems, permuted_baseline
from keyhole.reidentification.candidates import attach_ids, linking_keys, with_blanks
from keyhole.reidentification.linking import Pairs, find_pairs
from keyhole.reidentification.question import (
    Cuts,
    Metric,
    Orders,
    Question,
    Scores,
    Threshold,
    column_names,
)
from keyhole.reidentification.rates import (
    Part,
    agreements,
    confirm,
    count_use,
    measure_rates,
    rates_by_pair,
    rates_by_stratum,
)
from keyhole.reidentification.result import Study
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

__all__ = ["study"]

Progress = Callable[..., None]
Names = str | Iterable[str] | None


def study(
    *,
    puf: Any,
    eif: Any,
    iuf: Any,
    puf_id: Names,
    eif_id: Names,
    link: Names = None,
    scenario: KeyedData | None = None,
    numeric: Names = (),
    metric: Metric = "unicity",
    alpha: float = 0.5,
    threshold: Threshold = "published",
    cuts: Cuts = "puf",
    scores: Scores | str | os.PathLike[str] | None = None,
    orders: Orders = "all",
    rank_cap: int = 5,
    strata: Names = (),
    permutations: int = 200,
    seed: int = 1,
    ids_from: Any = None,
    blank: Names = (),
    engine: Any = "auto",
    master: str | None = None,
    progress: Progress | None = None,
) -> Study:
    """Attack a public file with an external one, and check the suspects against the truth.

    Parameters
    ----------
    puf, eif, iuf
        The public file, the intruder's file and the internal file with the ids of both: each a
        file, a frame or `Microdata`. If the internal file has linking variables too, they are
        taken as the values before perturbation, and the study runs with and without it.
    puf_id, eif_id
        The column or columns that name a record of the PUF and of the EIF.
    link
        The linking variables, which both files have.
    scenario
        The key of a scenario, to whose detail the files are recoded; its columns that the EIF
        has are the linking variables if none are given, but for the strata.
    numeric
        Those of them that are numbers; the others are categories.
    metric
        How pairs are suspected: `unicity`, `taxicab`, `euclidean` or `adhoc`.
    alpha
        What a missing value costs (taxicab, euclidean).
    threshold
        `published`, or `derived` as it follows from the metric's definition (euclidean).
    cuts
        Whether numbers are cut into fifths of the PUF's values or each file's own (unicity,
        taxicab).
    scores
        By linking variable how values are scored from 0 to 5, or a TOML file of it (adhoc);
        see `keyhole.reidentification.scores`.
    orders
        Whether `all` sets of variables are tried or only the `highest` (unicity).
    rank_cap
        Ranks are kept while they hold at most this many pairs of a PUF record.
    strata
        Variables within whose categories records are linked.
    permutations, seed
        How often ids are dealt out at random for the baseline (0: never), and its seed.
    ids_from
        For a release without ids, like an implicate of a synthesis: the file it was made from,
        which has the ids in the same rows. A PUF that has its ids keeps them.
    blank
        Linking variables that the PUF may lack or have missing everywhere: they are taken as
        missing in every record, with a warning.
    engine, master
        ``memory``, or ``spark`` (or a Spark session) and where Spark runs: there the files, which
        may be folders or frames of Spark's own, stay on the cluster, and strata cut the work.
    progress
        Called with what is being done, and now and then with the work done and all of it.

    Returns
    -------
    Study
        The rates with intervals and baseline, where they come from, and a verdict in words.

    Examples
    --------
    >>> from keyhole.data.examples import veterans
    >>> world = veterans(2_000, seed=1)
    >>> found = study(
    ...     puf=world.sample, eif=world.external, iuf=world.truth, puf_id="puf_id",
    ...     eif_id="eif_id", link=["sex", "age", "race1", "homstate"], metric="taxicab",
    ... )
    >>> found.confirmed <= found.suspected <= found.puf_records
    True
    """
    question = Question(
        link=column_names(link), numeric=column_names(numeric), metric=metric, alpha=alpha,
        threshold=threshold, cuts=cuts, scores=scores, orders=orders, rank_cap=rank_cap,
        strata=column_names(strata), blank=column_names(blank), permutations=permutations,
        seed=seed,
    )  # fmt: skip
    ids = (column_names(puf_id), column_names(eif_id))
    cluster = cluster_for(
        engine, master, (puf, eif, iuf), verb="a study",
        in_memory_for={"a scenario's recoding": scenario is not None, "blank": question.blank,
                       "ids_from": ids_from is not None},
    )  # fmt: skip
    if cluster is not None:
        remote: Study = cluster.study((puf, eif, iuf), ids, question)
        return remote
    files = _Files(_load(puf, "PUF"), _load(eif, "EIF"), _load(iuf, "IUF"), *ids)
    if scenario is not None:
        question = replace(question, link=linking_keys(scenario, files.eif, question))
        keyed, outside, inside = (
            scenario.recode(data, partial=True) for data in (files.puf, files.eif, files.iuf)
        )
        files = _Files(keyed, outside, inside, *ids)
    if ids_from is not None and not set(files.puf_id) <= set(files.puf.names):
        files = replace(files, puf=attach_ids(files.puf, _load(ids_from, "file of ids"), ids[0]))
    whole, warnings = with_blanks(files.puf, files.eif, question.blank)
    files = replace(files, puf=whole)
    truth = _checked_truth(files, question)
    result = _attack(files, truth, question.with_scores(), progress or _say_nothing)
    name = None if scenario is None else scenario.name
    return replace(result, warnings=(*warnings, *result.warnings), scenario=name)


def _say_nothing(done: object, most: float | None = None) -> None:  # noqa: ARG001
    return None


def _load(source: Any, name: str) -> Microdata:
    """Load a file; a frame, which has no name, is called by its part in the study."""
    data = load(source)
    return data.replace(name=name) if data.name == "data" else data


@dataclass(frozen=True, slots=True)
class _Files:
    """The three files, and the columns that name a record of the PUF and of the EIF."""

    puf: Microdata
    eif: Microdata
    iuf: Microdata
    puf_id: tuple[str, ...]
    eif_id: tuple[str, ...]


def _checked_truth(files: _Files, question: Question) -> Truth:
    """Find the true pairs, or say at once what is wrong with ids, variables and options."""
    both = (files.puf, files.eif)
    for data in both:
        data.require_records()
    require_rows(files.iuf.name, files.iuf.records)
    problems = chance_problems(question)
    truth = None
    try:
        truth = find_truth(*both, files.iuf, puf_id=files.puf_id, eif_id=files.eif_id)
    except InputError as error:
        problems += error.problems
    if problems or truth is None:
        for purpose, names in (("linking variable", question.link), ("stratum", question.strata)):
            for data in both:
                problems += absent_problems(data, names, purpose)
        raise OptionError(problems)
    return truth


def _attack(files: _Files, truth: Truth, question: Question, tell: Progress) -> Study:
    tell("linking")
    linked = find_pairs(files.puf, files.eif, question, tell)
    confirmed = _confirmed(linked, truth)
    perturbation, skipped = _undo(files, truth, question, tell)
    tell("dealing out ids at random")
    strata = number_strata(files.puf, files.eif, question.strata) if question.strata else None
    baseline = _baseline(files, linked, truth, strata)
    same = agreements(files.puf, files.eif, (linked.puf, linked.eif), question)
    agreeing, used = count_use(question.link, same, confirmed, linked.subset)
    place = linked.rank if linked.subset is None else linked.score.astype(np.int64)
    records = files.puf.records
    parts: tuple[Part, ...] = ()
    if strata is not None:
        by_chance = None if baseline is None else baseline.by_stratum
        parts = rates_by_stratum(linked.puf, confirmed, strata, by_chance)
    return Study(
        rates=measure_rates(linked.puf, confirmed, records),
        baseline=baseline,
        overlap=truth.overlap,
        by_stratum=parts,
        gaps=None if strata is None else strata.gaps(),
        by_agreement=rates_by_pair(linked.puf, confirmed, agreeing, records),
        by_rank=rates_by_pair(linked.puf, confirmed, place, records),
        by_variables=used,
        perturbation=perturbation,
        warnings=(
            *question.taken_as_categories(files.puf),
            *linked.warnings,
            *incomplete_warnings(truth.incomplete, files.iuf.records),
            *skipped,
        ),
        linked=linked,
        confirmed_pairs=confirmed,
        puf_ids=files.puf.frame.select(files.puf_id),
        eif_ids=files.eif.frame.select(files.eif_id),
    )


def _confirmed(linked: Pairs, truth: Truth) -> Flags:
    return confirm(linked.puf, linked.eif, truth.puf, truth.eif, linked.eif_records)


def _baseline(files: _Files, linked: Pairs, truth: Truth, strata: Strata | None) -> Baseline | None:
    """Measure what chance would confirm, if asked for, whatever order the EIF's records have."""
    question = linked.question
    if not question.permutations:
        return None
    order = order_by_id(files.eif, files.eif_id)
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
        permutations=int(question.permutations),
        seed=int(question.seed),
    )


def _undo(
    files: _Files, truth: Truth, question: Question, tell: Progress
) -> tuple[Perturbation | None, list[str]]:
    """Run the attack on the values as they were, if the internal file has other ones."""
    link = [name for name in question.link if name not in {*files.puf_id, *files.eif_id}]
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
    return Perturbation(before.records, before.changed, rates), skipped
