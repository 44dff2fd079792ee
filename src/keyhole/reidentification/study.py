"""A re-identification study: link, confirm, measure (Singer & Dajani, section 1.2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keyhole.data.keyed import KeyedData
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.engines.sessions import session_for
from keyhole.errors import InputError, OptionError
from keyhole.kernels.arrays import Flags, Ints
from keyhole.reidentification.agreement import Strata, agreements, number_strata, top_scores
from keyhole.reidentification.baseline import Baseline, chance_problems, permuted_baseline
from keyhole.reidentification.breakdown import Part, by_pair, by_stratum, count_use
from keyhole.reidentification.candidates import attach_ids, with_blanks
from keyhole.reidentification.costs import Threshold
from keyhole.reidentification.files import Cuts
from keyhole.reidentification.linking import Metric
from keyhole.reidentification.pairs import Pairs
from keyhole.reidentification.perturbation import Perturbation, restore
from keyhole.reidentification.question import Question
from keyhole.reidentification.rates import confirm, measure_rates
from keyhole.reidentification.result import Study
from keyhole.reidentification.scenario import linking_keys, recode_files
from keyhole.reidentification.scores import Scores, load_scores
from keyhole.reidentification.truth import (
    Truth,
    find_truth,
    incomplete_warnings,
    names_of,
    order_by_id,
    require_rows,
)
from keyhole.reidentification.unicity import Orders

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
        link=names_of(link), numeric=names_of(numeric), metric=metric, alpha=alpha,
        threshold=threshold, cuts=cuts, scores=scores, orders=orders, rank_cap=rank_cap,
        strata=names_of(strata), blank=names_of(blank),
    )  # fmt: skip
    chance, ids = _Chance(permutations, seed), (names_of(puf_id), names_of(eif_id))
    there = _Remote((puf, eif, iuf), ids, question, chance)
    session = session_for(
        engine, master, (puf, eif, iuf), verb="a study", beforehand=there.look,
        in_memory_for={"a scenario's recoding": scenario is not None, "blank": question.blank,
                       "ids_from": ids_from is not None},
    )  # fmt: skip
    if session is not None:
        return there.attack(session)
    files = _Files(_load(puf, "PUF"), _load(eif, "EIF"), _load(iuf, "IUF"))
    if scenario is not None:
        linking = linking_keys(
            scenario, files.eif, question.link, numeric=question.numeric, strata=question.strata
        )
        question = replace(question, link=linking)
        files = _Files(*recode_files(scenario, files.puf, (files.eif, files.iuf)))
    files, told = _fit(files, ids[0], ids_from, question)
    truth = _checked_truth(files, ids, question, chance)
    found = _attack(files, ids, truth, question, chance, progress or _say_nothing)
    name = None if scenario is None else scenario.name
    return replace(found, warnings=(*told, *found.warnings), scenario=name)


def _say_nothing(done: object, most: float | None = None) -> None:  # noqa: ARG001
    return None


@dataclass(frozen=True, slots=True)
class _Files:
    puf: Microdata
    eif: Microdata
    iuf: Microdata


@dataclass(frozen=True, slots=True)
class _Chance:
    """How often ids are dealt out at random, and where the chance comes from."""

    permutations: int
    seed: int

    def problems(self) -> list[str]:
        """Return what is wrong with the two numbers."""
        return chance_problems(self.permutations, self.seed)

    def baseline(
        self, linked: Pairs, truth: Truth, order: Ints, puf_records: int, strata: Strata | None
    ) -> Baseline | None:
        """Measure what chance would confirm, if asked for; `order` is that of the EIF's ids."""
        if not self.permutations:
            return None
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return permuted_baseline(
            linked.puf,
            place[linked.eif],
            truth.puf,
            place[truth.eif],
            puf_records=puf_records,
            eif_records=len(order),
            strata=None if strata is None else (strata.puf, strata.eif[order]),
            permutations=int(self.permutations),
            seed=int(self.seed),
        )


@dataclass(slots=True)
class _Remote:
    """A study that is asked of Spark; what was seen of its files takes their place."""

    sources: Sequence[Any]
    ids: tuple[tuple[str, ...], tuple[str, ...]]
    question: Question
    chance: _Chance

    def look(self) -> list[str]:
        """Say what is wrong as far as it is known before Spark runs."""
        from keyhole.reidentification.beforehand import look, question_problems

        self.sources, problems = look(self.sources)
        problems += self.chance.problems()
        return [*problems, *question_problems(self.sources, self.ids, self.question)]

    def attack(self, session: Any) -> Study:
        from keyhole.reidentification.spark_files import open_file
        from keyhole.reidentification.spark_study import study_on_spark

        puf, eif, iuf = (
            open_file(source, session, name=name)
            for source, name in zip(self.sources, ("PUF", "EIF", "IUF"), strict=True)
        )
        return study_on_spark(
            (puf, eif, iuf), self.ids, self.question,
            permutations=self.chance.permutations, seed=self.chance.seed,
        )  # fmt: skip


def _load(source: Any, name: str) -> Microdata:
    """Load a file; a frame, which has no name, is called by its part in the study."""
    data = load(source)
    return data.replace(name=name) if data.name == "data" else data


def _checked_truth(
    files: _Files, ids: tuple[tuple[str, ...], ...], question: Question, chance: _Chance
) -> Truth:
    """Find the true pairs, or say at once what is wrong with ids, variables and options."""
    for data in (files.puf, files.eif):
        data.require_records()
    require_rows(files.iuf.name, files.iuf.records)
    problems = chance.problems()
    truth = None
    try:
        truth = find_truth(files.puf, files.eif, files.iuf, puf_id=ids[0], eif_id=ids[1])
    except InputError as error:
        problems += error.problems
    if problems or truth is None:
        raise OptionError([*problems, *question.column_problems(files.puf, files.eif)])
    return truth


def _fit(
    files: _Files, ids: tuple[str, ...], source: Any, question: Question
) -> tuple[_Files, list[str]]:
    """Give a release the ids it lacks, and take what it does not tell as missing."""
    puf = files.puf
    if source is not None and not set(ids) <= set(puf.names):
        puf = attach_ids(puf, _load(source, "file of ids"), ids)
    puf, told = with_blanks(puf, files.eif, question.blank)
    return replace(files, puf=puf), told


def _attack(
    files: _Files,
    ids: tuple[tuple[str, ...], ...],
    truth: Truth,
    question: Question,
    chance: _Chance,
    tell: Progress,
) -> Study:
    tell("linking")
    linked = question.ask(files.puf, files.eif, tell)
    confirmed = _confirmed(linked, truth, files)
    perturbation, skipped = _undo(files, ids, truth, question, tell)
    tell("dealing out ids at random")
    strata = number_strata(files.puf, files.eif, question.strata) if question.strata else None
    order = order_by_id(files.eif, ids[1])
    baseline = chance.baseline(linked, truth, order, files.puf.records, strata)
    same = _agreements(files, linked, question)
    agreeing, used = count_use(question.link, same, confirmed, linked.subset)
    place = linked.rank if linked.subset is None else linked.score.astype(np.int64)
    records = files.puf.records
    return Study(
        question=question,
        eif_records=files.eif.records,
        rates=measure_rates(linked.puf, confirmed, records),
        baseline=baseline,
        overlap=truth.overlap,
        by_stratum=_by_stratum(linked, confirmed, strata, baseline),
        gaps=None if strata is None else strata.gaps(),
        by_agreement=by_pair(linked.puf, confirmed, agreeing, records),
        by_rank=by_pair(linked.puf, confirmed, place, records),
        by_variables=used,
        perturbation=perturbation,
        warnings=(
            *question.taken_as_categories(files.puf),
            *linked.warnings,
            *incomplete_warnings(truth.incomplete, files.iuf.records),
            *skipped,
        ),
        seed=int(chance.seed),
        linked=linked,
        confirmed_pairs=confirmed,
        puf_ids=files.puf.frame.select(ids[0]),
        eif_ids=files.eif.frame.select(ids[1]),
    )


def _agreements(files: _Files, linked: Pairs, question: Question) -> Iterator[Flags]:
    """Tell for each variable which pairs agree on it."""
    pairs, scores = (linked.puf, linked.eif), question.scores
    if question.metric != "adhoc" or scores is None:
        return agreements(
            files.puf, files.eif, pairs, link=question.link, numeric=question.numeric,
            cuts=question.cuts,
        )  # fmt: skip
    given = load_scores(scores) if isinstance(scores, str | os.PathLike) else scores
    return top_scores(files.puf, files.eif, pairs, link=question.link, scores=given)


def _confirmed(linked: Pairs, truth: Truth, files: _Files) -> Flags:
    return confirm(linked.puf, linked.eif, truth.puf, truth.eif, files.eif.records)


def _by_stratum(
    linked: Pairs, confirmed: Flags, strata: Strata | None, baseline: Baseline | None
) -> tuple[Part, ...]:
    if strata is None:
        return ()
    by_chance = None if baseline is None else baseline.by_stratum
    return by_stratum(linked.puf, confirmed, strata, by_chance)


def _undo(
    files: _Files,
    ids: tuple[tuple[str, ...], ...],
    truth: Truth,
    question: Question,
    tell: Progress,
) -> tuple[Perturbation | None, list[str]]:
    """Run the attack on the values as they were, if the internal file has other ones."""
    link = [name for name in question.link if name not in {*ids[0], *ids[1]}]
    before = restore(files.puf, files.iuf, truth, link)
    if before is None:
        return None, []
    skipped = [
        f"the perturbation of {one}: it is left as it is in the PUF" for one in before.skipped
    ]
    if not any(before.changed.values()):
        return None, skipped
    tell("linking without the perturbation")
    try:
        linked = question.ask(before.puf, files.eif, tell)
    except InputError as error:
        return None, [*skipped, *(f"not run without the perturbation: {p}" for p in error.problems)]
    rates = measure_rates(linked.puf, _confirmed(linked, truth, files), files.puf.records)
    return Perturbation(before.records, before.changed, rates), skipped
