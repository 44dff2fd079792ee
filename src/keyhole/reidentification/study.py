"""Re-identification study: link, confirm, measure (Singer & Dajani, section 1.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, get_args

from keyhole.core import shared
from keyhole.core.kinds import Choice, Columns, Data, Releases, Several, Sources, TableOrFile, Whole
from keyhole.core.marks import Also
from keyhole.core.names import quoted
from keyhole.core.options import Option, Problem, Question, bind, documented, parameters_of
from keyhole.data.reading import load
from keyhole.engines.choose import cluster_for
from keyhole.engines.opening import DataFile
from keyhole.errors import InputError, OptionError
from keyhole.reidentification.attacks import (
    attack_problems,
    is_linkage_asked,
    people_problems,
    run_attacks,
)
from keyhole.reidentification.files import StudyFiles, read_files
from keyhole.reidentification.linkage import (
    LinkedFiles,
    Progress,
    attack_release,
    checked_truth,
    linking_problems,
)
from keyhole.reidentification.linking import Pairs, find_pairs
from keyhole.reidentification.question import (
    Cuts,
    Metric,
    Orders,
    Threshold,
    by_one_metric,
    with_scores,
)
from keyhole.reidentification.residual_risk import AttackName, Attacks, found_attack
from keyhole.reidentification.result import Study


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
        Any,
        Option(
            "The intruder's file (EIF). Several by name are several sources: a study each, and all "
            "together.",
            kind=Sources(),
            needed=is_linkage_asked,
        ),
    ] = None,
    iuf: Annotated[
        Any,
        Option(
            "The internal file (IUF) of true matches: one row per person in both files, with both "
            "ids; by name for each EIF. If it has linking variables too, these are the values "
            "before perturbation.",
            kind=Sources(),
            needed=is_linkage_asked,
        ),
    ] = None,
    puf_id: Annotated[
        shared.Names | None,
        Option(
            "The columns that identify a PUF record.",
            kind=Columns("PUF id"),
            needed=is_linkage_asked,
        ),
    ] = None,
    eif_id: Annotated[
        shared.Names | None,
        Option(
            "The columns that identify an EIF record.",
            kind=Columns("EIF id"),
            needed=is_linkage_asked,
        ),
    ] = None,
    link: Annotated[
        shared.Names,
        Option(
            "The linking variables, which both files have under the same names; or give "
            "`scenario`.",
            kind=Columns("linking variable", least=0),
        ),
    ] = (),
    scenario: shared.ScenarioOption = None,
    store: shared.StoreOption = None,
    target: shared.TargetOption = None,
    undecided: shared.UndecidedOption = False,
    numeric: Annotated[
        shared.Names,
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
        float,
        Option(
            "The distance of a missing value to any other, for taxicab and euclidean.",
            above=0,
            high=1,
        ),
    ] = 0.5,
    threshold: Annotated[
        Threshold, Option("The threshold: as published, or derived from the euclidean metric.")
    ] = "published",
    cuts: Annotated[
        Cuts,
        Option(
            "Which file's quintiles are used to bin numbers: those of the PUF, or each file's own; "
            "for unicity and taxicab."
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
        shared.Names,
        Option(
            "Blocking variables: records are linked only within the same category.",
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
            "How many times ids are permuted at random, to see what chance would confirm; 0 for "
            "none.",
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
    prepare: Annotated[
        Any,
        Option(
            "How the EIF is made comparable with the PUF: columns to rename, recode, age or "
            "perturb, in a TOML file or a table.",
            kind=TableOrFile(),
            surfaces="c",
        ),
    ] = None,
    blank: Annotated[
        shared.Names,
        Option(
            "Linking variables that a PUF may lack: they are taken as missing in every record, "
            "with a warning.",
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
        shared.Names,
        Option(
            "The sensitive columns that the intruder wants to learn, for `inferred`.",
            kind=Columns("secret", least=0),
            surfaces="c",
        ),
    ] = (),
    second_link: Annotated[
        shared.Names,
        Option(
            "The columns that a second source of the intruder holds, for `linked`; the first holds "
            "the linking variables.",
            kind=Columns("second linking variable", least=0),
            surfaces="c",
        ),
    ] = (),
    engine: shared.TaskEngine = "auto",
    master: shared.Master = None,
    progress: Progress | None = None,
) -> Annotated[Study, Also("keyhole.reidentification.residual_risk.Attacks")]:
    """Attack the file with an intruder's file and count correct matches.

    A PUF record is suspected if the metric pairs it with an EIF record, and confirmed if the two
    are the same person. The conditional rate is confirmed over suspected: the release is judged by
    it. Several releases or metrics are compared (in Python: `StudyComparison`).

    With `attacks` the study also measures singling out, linkage of two sources, inference of a
    sensitive value and membership of the file, each compared with a control of people outside the
    file and with a naive guess. Without `found` it returns `Attacks`.

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
    tell = progress or (lambda *_: None)
    if Sources().are_several(question.eif):
        from keyhole.reidentification.compare import attack_sources

        question.require()
        return attack_sources(question, tell)  # type: ignore[return-value]
    files = study_files(question)
    if isinstance(files, StudyFiles) and set(question.attacks) - {"found"}:
        return _attack_people(files, question, tell)  # type: ignore[return-value]
    if not isinstance(files, StudyFiles):  # they are on Spark
        remote: Study = files.study(by_one_metric(question))
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
    found = attack_release(files, next(iter(files.pufs)), by_one_metric(question), tell)
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
        asked = by_one_metric(question).replace(numeric=numeric)
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
    yield from shared.scenario_problems(question, instead_of="link", beside=True)
    if question.scenario and question.numeric:
        yield Problem(
            "{numeric} and {scenario} exclude each other: the key of a scenario holds groups. "
            "Leave {numeric} out."
        )
    if question.link and is_linkage_asked(question.values):
        yield from linking_problems(question)
    sources = question.eif if Sources().are_several(question.eif) else {}
    if sources and (len(question.puf or ()) != 1 or len(question.metric) != 1):
        yield Problem("{eif} can be several for one {puf} and one {metric}. Leave out the others.")
    named = question.iuf if Sources().are_several(question.iuf) else {}
    if sources and set(named) != set(sources):
        template = "{iuf} must be given for each {eif}, by the same names: {0}."
        yield Problem(template, quoted(sources))
    if "adhoc" not in question.metric and question.scores is not None:
        yield Problem(
            "{scores} can only be used with {metric} adhoc. Got {0} instead: leave them out.",
            quoted(question.metric),
        )
    if "adhoc" in question.metric and question.scores is None:
        yield Problem(
            "{scores} must say how each linking variable is scored, for {metric} adhoc. Got none "
            "instead: write a TOML file, with lines like {0}.",
            "sex = { exact = 5 }",
        )


def pairs_problems(question: Question) -> Iterator[Problem]:
    """Say why the pairs of a study cannot be written, if they cannot."""
    several = len(question.puf or ()) > 1 or Sources().are_several(question.eif)
    if several or len(question.metric) > 1:
        yield Problem("{pairs} needs one {puf}, {eif} and {metric}. Leave it out, or the others.")
    if not is_linkage_asked(question.values):
        yield Problem("{pairs} needs {attacks} found. Add it, or leave {pairs} out.")
    if question.engine == "spark":
        yield Problem("{engine} must be memory for {pairs}. Got 'spark' instead.")


def study_files(question: Question) -> Any:
    """Read the files, or return the Spark cluster that will; all that is wrong is told at once."""
    problems: list[str] = list(question.problems)
    pufs = question.puf or {}
    sources = [*pufs.values(), question.eif, question.iuf]
    read = [one.reading for one in sources if isinstance(one, DataFile)]
    in_memory_for = {
        "comparing studies": len(pufs) > 1 or len(question.metric) > 1,
        "a scenario's recoding": question.scenario,
        "{blank}": question.blank,
        "{prepare}": question.prepare is not None,
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
        cluster.look_at_study(by_one_metric(question))
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
        checked_truth(LinkedFiles(puf, files.eif, iuf), question)
    except InputError as error:
        return list(error.problems)
    return []


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
    return with_scores(by_one_metric(bind(study, settings)))
