"""Re-identification study: link, confirm, measure (Singer & Dajani, section 1.2)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args

import numpy as np

from keyhole.core.kinds import Choice, Columns, Data, Releases, Several, TableOrFile, Whole
from keyhole.core.marks import Also
from keyhole.core.names import quoted
from keyhole.core.options import Option, Problem, Question, bind, documented, parameters_of
from keyhole.core.shared import (
    Master,
    Names,
    ScenarioOption,
    StoreOption,
    TargetOption,
    TaskEngine,
    scenario_problems,
)
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.engines.choose import cluster_for
from keyhole.engines.opening import DataFile
from keyhole.errors import InputError, OptionError
from keyhole.kernels.arrays import Flags
from keyhole.reidentification.attacks import run_attacks
from keyhole.reidentification.baseline import Baseline, permuted_baseline
from keyhole.reidentification.files import (
    StudyFiles,
    attach_ids,
    linking_keys,
    read_files,
    with_blanks,
)
from keyhole.reidentification.linking import Pairs, find_pairs
from keyhole.reidentification.people import attack_problems, is_linkage_asked, people_problems
from keyhole.reidentification.question import (
    Cuts,
    Metric,
    Orders,
    Threshold,
    taken_as_categories,
    with_scores,
)
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
from keyhole.reidentification.residual_risk import AttackName, Attacks, found_attack
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


@documented
def study(
    *,
    puf: Annotated[
        Any,
        Option(
            "The file to be released (PUF). Several by name are compared; the folder of a "
            "synthesis stands for its first implicate.",
            kind=Releases(),
        ),
    ],
    eif: Annotated[
        Any, Option("The intruder's file (EIF).", kind=Data(), needed=is_linkage_asked)
    ] = None,
    iuf: Annotated[
        Any,
        Option(
            "The internal file (IUF): the ids of both, a row for each pair that is one person. If "
            "it has linking variables too, these are the values before perturbation.",
            kind=Data(),
            needed=is_linkage_asked,
        ),
    ] = None,
    puf_id: Annotated[
        Names | None,
        Option(
            "The columns that name a PUF record.", kind=Columns("PUF id"), needed=is_linkage_asked
        ),
    ] = None,
    eif_id: Annotated[
        Names | None,
        Option(
            "The columns that name an EIF record.", kind=Columns("EIF id"), needed=is_linkage_asked
        ),
    ] = None,
    link: Annotated[
        Names,
        Option(
            "The linking variables, which both files have under the same names; or give "
            "`scenario`.",
            kind=Columns("linking variable", least=0),
        ),
    ] = (),
    scenario: ScenarioOption = None,
    store: StoreOption = None,
    target: TargetOption = None,
    numeric: Annotated[
        Names,
        Option(
            "Those of them that are numbers; the others are categories.",
            kind=Columns("numeric", least=0),
        ),
    ] = (),
    metric: Annotated[
        Metric | Sequence[Metric],
        Option(
            "How pairs are suspected: `unicity`, `taxicab`, `euclidean` or `adhoc`. Several are "
            "compared.",
            kind=Several(Choice(get_args(Metric)), least=1),
            metavar="M,…",
        ),
    ] = "unicity",
    alpha: Annotated[
        float, Option("What a missing value costs, for taxicab and euclidean.", above=0, high=1)
    ] = 0.5,
    threshold: Annotated[
        Threshold, Option("The threshold as published, or as it follows from the euclidean metric.")
    ] = "published",
    cuts: Annotated[
        Cuts,
        Option(
            "Whether numbers are cut into fifths of the PUF's values or each file's own, for "
            "unicity and taxicab."
        ),
    ] = "puf",
    scores: Annotated[
        Any,
        Option(
            "How agreement on each linking variable is scored from 0 to 5, for adhoc: a TOML file, "
            "or a table.",
            kind=TableOrFile(),
        ),
    ] = None,
    orders: Annotated[
        Orders,
        Option("Whether all sets of linking variables are tried or only the highest, for unicity."),
    ] = "all",
    rank_cap: Annotated[
        int,
        Option(
            "Ranks are kept while they hold at most this many pairs of a PUF record.",
            kind=Whole(low=1, high=math.inf),
        ),
    ] = 5,
    strata: Annotated[
        Names,
        Option(
            "Variables within whose categories records are linked.",
            kind=Columns("stratum", least=0),
        ),
    ] = (),
    name_small_groups: Annotated[
        bool,
        Option(
            "Also name strata with fewer than 3 records. They may be individuals.", surfaces="c"
        ),
    ] = False,
    permutations: Annotated[
        int,
        Option(
            "How often ids are dealt out at random, to see what chance would confirm; 0 for never.",
            low=0,
            high=100_000,
        ),
    ] = 200,
    seed: Annotated[
        int, Option("The seed of the permutations.", kind=Whole(low=0, high=math.inf))
    ] = 1,
    ids_from: Annotated[
        Any,
        Option(
            "For a PUF without ids, like an implicate: the file it was made from, which has them "
            "in the same rows.",
            kind=Data(),
            surfaces="c",
        ),
    ] = None,
    blank: Annotated[
        Names,
        Option(
            "Linking variables that the PUF may lack: taken as missing in every record, with a "
            "warning. Of several candidates each may lack what another has.",
            kind=Columns("blank", least=0),
            surfaces="c",
        ),
    ] = (),
    attacks: Annotated[
        AttackName | Sequence[AttackName],
        Option(
            "Which attacks to make: `found` (by linking PUF and EIF; it alone needs EIF, IUF and "
            "ids), `singled-out`, `linked`, `inferred`, `present`. By default only `found`.",
            kind=Several(Choice(get_args(AttackName))),
            metavar="A,…",
            surfaces="c",
        ),
    ] = (),
    original: Annotated[
        Any,
        Option(
            "The file that the PUF was made from: its people are attacked. By default `ids_from`.",
            kind=Data(),
            surfaces="c",
        ),
    ] = None,
    control: Annotated[
        Any,
        Option(
            "People like those of the original who were not in it, such as the part held out "
            "before a synthesis.",
            kind=Data(),
            surfaces="c",
        ),
    ] = None,
    secret: Annotated[
        Names,
        Option(
            "The columns that the intruder wants to learn, for `inferred`.",
            kind=Columns("secret", least=0),
            surfaces="c",
        ),
    ] = (),
    second_link: Annotated[
        Names,
        Option(
            "The columns that a second source of the intruder holds, for `linked`; the first holds "
            "the linking variables.",
            kind=Columns("second linking variable", least=0),
            surfaces="c",
        ),
    ] = (),
    engine: TaskEngine = "auto",
    master: Master = None,
    progress: Progress | None = None,
) -> Annotated[Study, Also("keyhole.reidentification.residual_risk.Attacks")]:
    """Attack the file with an intruder's, and see who is found.

    Suspected are the PUF records that the metric pairs with the EIF, confirmed those of them
    whose pair is true; the conditional rate, the one over the other, is what a release hangs on.
    Several releases or metrics give a `StudyComparison`.

    With `attacks` the study also asks whether people are singled out, whether two sources are
    linked, whether a secret is inferred and who is known to be in the file, each against a control
    of people outside it and a guess without the release. Without `found` it gives `Attacks`.

    Notes
    -----
    Files are read by path, or given as frames or `Microdata`; on Spark they may be folders or
    frames of Spark's own, and strata cut the work. `progress` is called with what is being done,
    and now and then with the work done and all of it.

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
    question = bind(study, locals())
    files = study_files(question)
    tell = progress or (lambda *_: None)
    if isinstance(files, StudyFiles) and set(question.attacks) - {"found"}:
        return _attack_people(files, question, tell)  # type: ignore[return-value]
    if not isinstance(files, StudyFiles):  # they are on Spark
        remote: Study = files.study(_by_one_metric(question))
        return replace(remote, name_small_groups=question.name_small_groups)
    # What is found keeps the question, but not the data.
    question = _without_data(question)
    if question.scenario:
        from keyhole.environment.scenarios.recoding import scenario_keys

        (key,) = scenario_keys(question, next(iter(files.pufs.values())))
        files = replace(files, key=key)
    if len(files.pufs) > 1 or len(question.metric) > 1:
        from keyhole.reidentification.compare import attack_all

        return attack_all(files, question, tell)  # type: ignore[return-value]
    found = attack_release(files, next(iter(files.pufs)), _by_one_metric(question), tell)
    found = replace(found, name_small_groups=question.name_small_groups)
    named = any(isinstance(one, str) for one in question.scenario or ())
    return replace(found, identification=key.identification(found)) if named else found


def _without_data(question: Question) -> Question:
    data = dict.fromkeys(("puf", "eif", "iuf", "ids_from", "original", "control", "engine"))
    return question.replace(**data)


def _attack_people(files: StudyFiles, question: Question, tell: Progress) -> Study | Attacks:
    """Make the attacks on people of the file and the control, and find people too if asked."""
    ((release, puf),) = files.pufs.items()
    question = _without_data(question)
    found = None
    if "found" in question.attacks:
        numeric = tuple(name for name in question.numeric if name in question.link)
        asked = _by_one_metric(question).replace(numeric=numeric)
        found = attack_release(files, release, asked, tell)
    made, warnings = run_attacks(puf, files.people, files.control, question, tell)
    if found is not None:
        whole = {"found": found_attack(found.rates, found.baseline), **made}
        told = tuple(dict.fromkeys((*found.warnings, *warnings)))
        small = question.name_small_groups
        return replace(found, attacks=whole, warnings=told, name_small_groups=small)
    return Attacks(
        attacks=made,
        link=question.link,
        second_link=question.second_link,
        secret=question.secret,
        numeric=question.numeric,
        puf_records=puf.records,
        original_records=files.people.records,
        control_records=0 if files.control is None else files.control.records,
        seed=question.seed,
        warnings=tuple(warnings),
    )


def study_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `study` that depend on each other."""
    yield from attack_problems(question)
    yield from scenario_problems(question, instead_of="link", beside=True)
    if question.scenario and question.numeric:
        yield Problem(
            "{numeric} and {scenario} exclude each other: the key of a scenario holds groups. "
            "Leave {numeric} out."
        )
    if question.link and is_linkage_asked(question.values):
        yield from _linking_problems(question)
    if "adhoc" not in question.metric and question.scores is not None:
        yield Problem(
            "{scores} go with {metric} adhoc. Got {0} instead: leave the scores out.",
            quoted(question.metric),
        )
    if "adhoc" in question.metric and question.scores is None:
        yield Problem(
            "{scores} must say how each linking variable is scored, for {metric} adhoc. Got none "
            "instead: write a TOML file, with lines like {0}.",
            "sex = { exact = 5 }",
        )


def _linking_problems(question: Question) -> Iterator[Problem]:
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


def pairs_problems(question: Question) -> Iterator[Problem]:
    """Say why the pairs of a study cannot be written, if they cannot."""
    if len(question.puf or ()) > 1 or len(question.metric) > 1:
        yield Problem("{pairs} needs one {puf} and one {metric}. Leave it out, or the others.")
    if not is_linkage_asked(question.values):
        yield Problem("{pairs} needs {attacks} found. Add it, or leave {pairs} out.")
    if question.engine == "spark":
        yield Problem("{engine} must be memory for {pairs}. Got 'spark' instead.")


def study_files(question: Question) -> Any:
    """Read the files of a study, or return the Spark cluster that will.

    All that is wrong with them and with the question is told at once.
    """
    problems: list[str] = list(question.problems)
    pufs = question.puf or {}
    sources = [*pufs.values(), question.eif, question.iuf]
    read = [one.reading for one in sources if isinstance(one, DataFile)]
    in_memory_for = {
        "comparing studies": len(pufs) > 1 or len(question.metric) > 1,
        "a scenario's recoding": question.scenario,
        "{blank}": question.blank,
        "{ids_from}": question.ids_from is not None,
        "attacks with a control ({attacks})": set(question.attacks) - {"found"},
        "{sheet}": any(how.get("sheet") for how in read),
        "derived columns ({derive})": any(how.get("derive") for how in read),
    }
    try:
        cluster = cluster_for(
            question.engine, question.master, sources, verb="a study", in_memory_for=in_memory_for
        )
    except OptionError as error:
        cluster, problems = None, [*problems, *error.problems]
    if cluster is not None:
        cluster.look_at_study(_by_one_metric(question))
        return cluster
    files = read_files(question, problems)
    if files.people is not None and not problems:
        problems += _content_problems(files, question)
    if problems:
        raise OptionError(dict.fromkeys([*problems, *_content_problems(files, question)]))
    return files


def _content_problems(files: StudyFiles, question: Question) -> list[str]:
    """Say what is wrong with ids and columns, as far as that shows before anything is linked."""
    if files.people is not None and len(files.pufs) == 1:
        (puf,) = files.pufs.values()
        found = people_problems(puf, files.people, files.control, question)
        return found + _content_problems(replace(files, people=None), question)
    if question.scenario or question.blank or files.ids is not None or len(files.pufs) != 1:
        return []
    if files.eif is None or None in (*files.pufs.values(), *files.iufs.values()):
        return []  # what was given for it is no file
    (puf,), (iuf,) = files.pufs.values(), files.iufs.values()
    try:
        _checked_truth(_Files(puf, files.eif, iuf), question)
    except InputError as error:
        return list(error.problems)
    return []


def _by_one_metric(question: Question) -> Question:
    """Return the question with the first of its metrics, which says what else matters."""
    return question.replace(metric=question.metric[0])


def attack_release(files: StudyFiles, release: str, question: Question, tell: Progress) -> Study:
    """Attack one release by one metric."""
    puf, eif, iuf = files.pufs[release], files.eif, files.iufs[release]
    if files.key is not None:
        question = question.replace(link=linking_keys(files.key, eif, question))
        problems = list(_linking_problems(question))
        if problems:
            raise OptionError(problems)
        puf, eif, iuf = (files.key.recode(data, partial=True) for data in (puf, eif, iuf))
    if files.ids is not None and not set(question.puf_id) <= set(puf.names):
        puf = attach_ids(puf, files.ids, question.puf_id)
    puf, warnings = with_blanks(puf, eif, question.blank)
    data = _Files(puf, eif, iuf)
    found = _attack(data, _checked_truth(data, question), with_scores(question), tell)
    name = None if files.key is None else files.key.name
    return replace(found, warnings=(*warnings, *found.warnings), scenario=name)


@dataclass(frozen=True, slots=True)
class _Files:
    """The three files of one attack."""

    puf: Microdata
    eif: Microdata
    iuf: Microdata


def _checked_truth(files: _Files, question: Question) -> Truth:
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


def _attack(files: _Files, truth: Truth, question: Question, tell: Progress) -> Study:
    tell("linking")
    linked = find_pairs(files.puf, files.eif, question, tell)
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
        linked=linked,
        confirmed_pairs=confirmed,
        puf_ids=files.puf.frame[list(question.puf_id)],
        eif_ids=files.eif.frame[list(question.eif_id)],
        **place,
    )


def _confirmed(linked: Pairs, truth: Truth) -> Flags:
    return confirm(linked.puf, linked.eif, truth.puf, truth.eif, linked.eif_records)


def _baseline(
    files: _Files, linked: Pairs, truth: Truth, strata: Strata | None, question: Question
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
    files: _Files, truth: Truth, question: Question, with_it: Rates, tell: Progress
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


def link(puf: Any, eif: Any, *, progress: Progress | None = None, **settings: Any) -> Pairs:
    """Find the pairs of records that an intruder would suspect to be one person.

    Parameters
    ----------
    puf, eif
        The public use file and the external intruder file: files, frames or `Microdata`.
    progress
        Called now and then with the work done and all of it.
    settings
        The linking variables, the metric and what else `keyhole.study` takes for them.

    Notes
    -----
    Taxicab is the mean over the variables of 0 (same), 1 (different) or alpha (missing),
    suspected below alpha / 2. Euclidean is the root of the sum of squares over v, where a
    numeric variable scores 2 e^x / (1 + e^x) - 1 with x = min(abs(z - z'), 6), suspected below
    alpha / 2 (`published`) or alpha / sqrt(2 v) (`derived`). Adhoc is the sum of declared
    scores, suspected above 5 v / 2. All are compared to nine decimals. Of the pairs of a PUF
    record the ranks are kept while they hold no more than `rank_cap` pairs. Unicity pairs
    are alone with each other in a cell of some variables, among the records complete on it.

    Examples
    --------
    >>> import polars as pl
    >>> puf = pl.DataFrame({"sex": ["f", "m", "m"], "age": [31, 47, 50], "state": ["a", "b", "b"]})
    >>> eif = pl.DataFrame({"sex": ["m", "f"], "age": [47, 31], "state": ["b", None]})
    >>> found = link(puf, eif, link=["sex", "age", "state"], metric="taxicab")
    >>> found.to_frame().rows()
    [(0, 1, 0.166666667, 1), (1, 0, 0.0, 1)]
    """
    return find_pairs(load(puf), load(eif), linking_question(**settings), progress)


def linking_question(**settings: Any) -> Question:
    """Return what is asked of `link`, with scores read from their file."""
    strange = [name for name in settings if name not in parameters_of(study)]
    if strange:
        raise TypeError(f"link() got an unexpected keyword argument {strange[0]!r}")
    return with_scores(_by_one_metric(bind(study, settings)))
