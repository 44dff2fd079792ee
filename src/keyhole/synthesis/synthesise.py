"""Partially synthetic releases (Hawala & Funk): designate, choose, draw, evaluate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np

from keyhole.charts import listed
from keyhole.core import kinds, shared
from keyhole.core.extras import extra_problems
from keyhole.core.notes import Note
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.data.implicates import MOST_IMPLICATES
from keyhole.data.microdata import Microdata
from keyhole.data.reading import load
from keyhole.engines.choose import cluster_for, derive_problems, is_of_pyspark
from keyhole.engines.opening import DataFile, columns_anyhow
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.exposure.scores import MOST_VARIABLES
from keyhole.exposure.uniques import NAMED_FROM
from keyhole.kernels.arrays import Flags
from keyhole.screening.structure import COUNTED, find_structure
from keyhole.synthesis import planning
from keyhole.synthesis.associations import NEVER_RELEASED
from keyhole.synthesis.chains import Match
from keyhole.synthesis.constraints import is_sum
from keyhole.synthesis.designate import MOST_DECOYS, Designation, designate
from keyhole.synthesis.evaluation import evaluate
from keyhole.synthesis.goals import GoalLimits
from keyhole.synthesis.implicates import Drawing, draw_here
from keyhole.synthesis.models import Model
from keyhole.synthesis.release import Synthesis, dropped_columns, require_free
from keyhole.synthesis.rules import LONGEST_NAME, EditRules
from keyhole.synthesis.targets import MOST_TARGETS, order_targets

# So many subgroups that borrow a model are named.
MOST_NAMED = 10

HELD_OUT = 0x686F6C64
"""Tells the draw of held-out records from the seed's other uses."""

AS_PUBLISHED = {"donors": "common", "bootstrap": "all", "graded": False, "structure": 0}
"""What the procedure of Hawala & Funk decides."""
DRAWING = (
    *("procedure", "donors", "folds", "match", "neighbours", "cycles", "knots", "dimensions"),
    *("ridge", "bootstrap", "donor_model", "models", "change", "whole"),
)
"""The options that say how implicates are drawn."""


@dataclass(frozen=True, slots=True)
class _Rules(kinds.TableOrFile):
    """Rules by name, or the TOML file that holds them; in Python also a list, or `EditRules`."""

    def fault(self, value: Any) -> str | None:
        is_read = isinstance(value, EditRules | list | tuple)
        return None if is_read else kinds.TableOrFile.fault(self, value)


@documented
def synthesise(
    data: Any,
    *,
    keys: shared.RequiredKeys,
    targets: Annotated[
        shared.Names,
        Option(
            "The columns whose values are replaced in exposed records.",
            kind=kinds.Columns("target"),
        ),
    ],
    seed: shared.RequiredSeed,
    whole: Annotated[
        shared.Names,
        Option(
            "The targets that must never be real: their values are drawn for every record, exposed "
            "or not.",
            kind=kinds.Columns("whole target", least=0),
        ),
    ] = (),
    strata: Annotated[
        shared.Names,
        Option(
            "Columns whose combinations are subgroups: donors are of the record's own subgroup. "
            "Name a band made only for this in `drop` as well, so that it is not released.",
            kind=kinds.Columns("stratum", least=0),
        ),
    ] = (),
    drop: Annotated[
        shared.Names,
        Option(
            "Columns that are left out, such as record numbers: in no model and in no release. "
            "Identifiers and households are left out in any case.",
            kind=kinds.Columns("column to drop", least=0),
        ),
    ] = (),
    allow: Annotated[
        shared.Names,
        Option(
            "Columns that are released although nearly every record has a value of its own.",
            kind=kinds.Columns("column to allow", least=0),
        ),
    ] = (),
    rules: Annotated[
        EditRules | Mapping[str, str] | Sequence[Any] | str | os.PathLike[str] | None,
        Option(
            "Rules that a replaced record must obey if its original did: conditions by name, or a "
            "TOML file of them.",
            kind=_Rules("a TOML file, or a table of conditions by name"),
            metavar="RULES.toml",
        ),
    ] = None,
    structure: Annotated[
        int,
        Option(
            "Rules found in the file itself (routing, ranges, orders, sums, impossible "
            "combinations) are kept too where chance alone would have at least this many records "
            "break them; 0 looks for none.",
            low=0,
        ),
    ] = 20,
    implicates: Annotated[
        int, Option("How many implicates to draw.", low=1, high=MOST_IMPLICATES)
    ] = 5,
    targeted: Annotated[
        bool, Option("In each record replace only what breaks its minimal uniques.")
    ] = False,
    graded: Annotated[
        bool,
        Option(
            "Let the risk level decide what may return: records of high risk never receive an "
            "equal value, those of lower risk may."
        ),
    ] = True,
    decoys: Annotated[
        float,
        Option(
            "How many common records change for each record at risk that is seen to change, so "
            "that a change does not reveal a unique record.",
            low=0,
            high=MOST_DECOYS,
        ),
    ] = 0.0,
    cutoff: Annotated[int, Option("Records in cells smaller than this are at risk.", low=2)] = 2,
    weight: shared.Weight = None,
    fraction: shared.Fraction = None,
    least_probability: Annotated[
        float | None,
        Option(
            "With `weight` or `fraction`: only records that are unique in the population with at "
            "least this probability are at risk.",
            low=0,
            high=1,
        ),
    ] = None,
    procedure: Annotated[
        Literal["chain", "paper"],
        Option(
            "How blanks are filled: `chain`, each target given those before it; or `paper`, as "
            "Hawala & Funk did it, which decides on `donors`, `bootstrap`, `graded` and "
            "`structure`: all records at risk are blanked at once, each target is filled at random "
            "and improved by itself in `cycles` (5 if not given)."
        ),
    ] = "chain",
    donors: Annotated[
        Literal["folds", "common"],
        Option(
            "Who gives values: with `folds`, all records but those blanked at the time; with "
            "`common`, as published, only records that are not replaced."
        ),
    ] = "folds",
    folds: Annotated[
        int, Option("How many folds the records to replace are blanked in.", low=2, high=1000)
    ] = 5,
    match: Annotated[
        Match,
        Option(
            "Which donor of those with close predictions: the `closest`, one of the `k-closest` "
            "at random, or `weighted` by distance."
        ),
    ] = "closest",
    neighbours: Annotated[
        int, Option("How many donors `k-closest` chooses from.", low=1, high=1000)
    ] = 5,
    cycles: Annotated[
        int,
        Option(
            "Further cycles in which each target is drawn again, given all the others.",
            low=0,
            high=1000,
        ),
    ] = 0,
    knots: Annotated[
        int, Option("How many knots the splines of numbers have.", low=3, high=20)
    ] = 5,
    dimensions: Annotated[
        int,
        Option(
            "On how many canonical dimensions a categorical target is matched, at most.",
            low=1,
            high=20,
        ),
    ] = 5,
    ridge: Annotated[
        float,
        Option(
            "What is added to the diagonals of a model, as if this many average records were "
            "observed.",
            above=0,
        ),
    ] = 1.0,
    bootstrap: Annotated[
        Literal["observed", "all"],
        Option(
            "Which records a bootstrap draws: those `observed` on the targets, or `all`, the "
            "filled ones included."
        ),
    ] = "observed",
    donor_model: Annotated[
        Literal["same", "refit"],
        Option(
            "Whether the `same` model predicts donors and recipients, or donors are predicted by "
            "a `refit` to all observed records."
        ),
    ] = "same",
    models: Annotated[
        Mapping[str, Model] | None,
        Option(
            "Models of single targets: `logistic` (the default of categories of up to 30 levels), "
            "`canonical` (of all others), `linear`, `quantile` for skewed numbers, or `tree`, "
            "which keeps interactions.",
            kind=kinds.WordsByColumn(get_args(Model), "target"),
            metavar="A=MODEL,…",
        ),
    ] = None,
    change: Annotated[
        int,
        Option(
            "Records of this risk level (1 to 3) and above may not receive an equal value; 4 "
            "allows it at every level.",
            low=1,
            high=4,
        ),
    ] = 4,
    predictors: Annotated[
        Mapping[str, Sequence[str]] | None,
        Option(
            "What predicts single targets. By default all columns; for a target in the key, keys, "
            "targets, strata and all columns related to it.",
            kind=kinds.ColumnsByColumn(),
        ),
    ] = None,
    related: Annotated[
        float,
        Option(
            "A column predicts a target in the key if their Cramér's V is beyond chance and at "
            "least this. A higher value keeps fewer relations, and gives a record its own value "
            "back less often.",
            low=0,
            high=1,
        ),
    ] = 0.0,
    keep_order: Annotated[
        bool,
        Option("Fill the targets in the order given, not the most complete and coarsest first."),
    ] = False,
    relations: Annotated[
        float,
        Option(
            "How much the Cramér's V of a target and a released column may change.", low=0, high=1
        ),
    ] = 0.05,
    crosses: Annotated[
        Iterable[str | Sequence[str]],
        Option(
            "Sets of columns whose cross-tabulations are tested for homogeneity.",
            kind=kinds.Candidates("cross-tabulated variable", "lists of column names"),
            metavar="A|B,…",
        ),
    ] = (),
    formula: shared.Formula = None,
    counted: Annotated[
        shared.Names,
        Option(
            "The targets counted in the table of changes by risk level; all if left out.",
            kind=kinds.Columns("counted target", least=0),
        ),
    ] = (),
    self_match: Annotated[
        int, Option("How many records are linked to themselves, at most; 0 for none.", low=0)
    ] = 2_000,
    hold_out: Annotated[
        float | None,
        Option(
            "The share of records held out at random before anything is drawn: the control of "
            "attacks. They are written to internal, never released.",
            above=0,
            below=1,
        ),
    ] = None,
    shuffle: Annotated[
        bool,
        Option(
            "Release the records in another order: in a sorted file the neighbours of a record "
            "can reveal its values. `internal/records.parquet` has the row of each record."
        ),
    ] = True,
    engine: shared.TaskEngine = "auto",
    master: shared.Master = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Synthesis:
    """Replace values that make records stand out with those of similar records.

    The command writes two folders: ``release`` holds the implicates and a note for their
    analysts; ``internal`` holds the seed, who was at risk and what was measured: never release
    it. In Python `out` names the folder that holds both, and `Synthesis.save` writes it later.

    Examples
    --------
    >>> from keyhole.data.examples import veterans_sample
    >>> made = synthesise(
    ...     veterans_sample(2_000), keys=["sex", "age", "race1", "homstate"],
    ...     targets=["age", "race1"], implicates=2, seed=7,
    ... )
    >>> len(made.implicates), made.frame(2).height
    (2, 2000)
    """
    question = bind(synthesise, locals())
    if question.procedure == "paper":
        settled = {**question.values, **AS_PUBLISHED, "cycles": question.cycles or 5}
        question = replace(question, values=settled)
    problems = [*question.problems, *kinds.path_problems("out", out)]
    problems += [] if out is None or problems else require_free(Path(out), force)
    opened, drawing = _opened(question, data, problems)
    problems += [text for _, text in planning.data_problems(question, opened)]
    if problems:
        raise OptionError(dict.fromkeys(problems))
    held_out = None
    if question.hold_out is not None:
        out_of_it = held_out_records(opened.records, question)
        if not 0 < out_of_it.sum() < opened.records:
            text = "{hold_out} must leave records on both sides. Got {0} of {1:,} records instead."
            raise OptionError(Problem(text, int(out_of_it.sum()), opened.records))
        opened, held_out = opened.filter(~out_of_it), opened.filter(out_of_it)
    opened = opened.with_roles(dict.fromkeys(question.drop, "drop"))
    names = ("keys", "cutoff", "weight", "fraction", "least_probability", "seed")
    given = {name: question.values[name] for name in names}
    wanted, every_rule = find_targets_and_rules(question, opened)
    ordered = wanted if keep_order else order_targets(opened, wanted)

    def designating(decoys: float) -> Designation:
        return designate(opened, decoys=decoys, **given)

    request = planning.SynthesisRequest(question, opened, ordered, every_rule, designating, drawing)
    tell = None if progress is None else lambda share: progress(int(100 * share), 100)
    drawn = planning.draw_with_decoys(request, planning.part_of(tell, 0.0, 0.7))
    own = drawn.implicates.rows[:, None]
    if all((donors == own).all() for donors in drawn.implicates.donors):
        raise OptionError(
            "no record at risk could be given another value, so that the release would be the file "
            "as it is: give fewer strata, rules that more records keep, or more records."
        )
    asked = _parameters(request, drawn)
    evaluated = ("crosses", "formula", "counted", "self_match", "seed")
    evaluation = evaluate(
        drawn.implicates,
        drawn.designation,
        limits=GoalLimits(relation=question.relations),
        rules=request.rules,
        asked=asked,
        progress=planning.part_of(tell, 0.7, 1.0),
        **{name: question.values[name] for name in evaluated},
    )
    made = Synthesis(
        designation=drawn.designation,
        targets=drawn.choice.targets,
        replaced=len(drawn.implicates.rows),
        subgroups=drawn.implicates.subgroups,
        borrowed=drawn.implicates.borrowed,
        borrowing=drawn.implicates.borrowing,
        withheld=tuple(asked["withheld"]),
        evaluation=evaluation,
        choice=drawn.choice,
        implicates=drawn.implicates,
        rules=request.rules,
        parameters=asked,
        control=held_out,
        held_out=None if held_out is None else held_out.records,
        notes=(*_notes(question, drawn), *evaluation.notes),
    )
    if out is not None:
        made.save(out, force=force)
    return made


def synthesise_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with options of `synthesise` that depend on each other."""
    if question.weight is not None and question.fraction is not None:
        yield Problem("{fraction} and {weight} both give the population. Give one of them.")
    if question.least_probability is not None and question.weight == question.fraction:
        yield Problem("{least_probability} needs {weight} or {fraction}. Give one of them.")
    if (count := len(question.keys or ())) > MOST_VARIABLES:
        text = "{keys} must be at most {0} columns. Got {1} instead."
        yield Problem(text, MOST_VARIABLES, count)
    if question.targeted and (count := len(question.targets or ())) > MOST_TARGETS:
        text = "{targets} must be at most {0} if {targeted}. Got {1} instead."
        yield Problem(text, MOST_TARGETS, count)
    if question.targeted and not set(question.targets or ()) & set(question.keys or ()):
        yield Problem("{targets} must hold at least one of {keys} if {targeted}. Got none instead.")
    pairs = [("strata", "targets"), *(("drop", name) for name in ("keys", "targets"))]
    for option, other in pairs:
        for name in question.values[option]:
            if name in (question.values[other] or ()):
                template = f"{{{option}}} and {{{other}}} both name {{0!r}}. Take it out of one."
                yield Problem(template, name)
    if question.whole and (question.donors == "common" or question.procedure == "paper"):
        yield Problem("{whole} needs {donors} by folds: with common ones nobody is left to give.")
    if "tree" in (question.models or {}).values():
        yield from map(Problem, extra_problems("trees"))
    for option in ("counted", "whole", "predictors", "models"):
        for name in dict.fromkeys(question.values[option] or ()):
            if question.targets and name not in question.targets:
                yield Problem(f"{{{option}}} names {{0!r}}, which is not among {{targets}}.", name)
    if any(len(set(cross)) < 2 for cross in question.crosses):
        yield Problem("each of {crosses} must name at least two variables.")


def _opened(question: Question, source: Any, problems: list[str]) -> tuple[Microdata, Drawing]:
    """Load the data here, note what is wrong with it, and say where implicates are drawn."""
    reading: Mapping[str, Any] = {}
    if isinstance(source, DataFile):
        source, reading = source.path, source.reading
    cluster = None
    try:
        cluster = cluster_for(question.engine, question.master, [source], verb="synthesis")
    except OptionError as error:
        problems += error.problems
    problems += () if cluster is None else cluster.problems
    problems += derive_problems(question.engine, reading)
    is_folder = isinstance(source, str | os.PathLike) and Path(source).is_dir()
    on_spark = is_folder or is_of_pyspark(source, "DataFrame")
    if cluster and on_spark and problems:
        raise OptionError(dict.fromkeys(problems))
    try:
        opened = cluster.load(source) if cluster and on_spark else load(source, **reading)
        opened.require_records()
    except InputError as error:
        problems += error.problems
        if isinstance(error, ColumnError):  # of what is declared
            problems += columns_anyhow(question, source, reading)
        raise type(error)(dict.fromkeys(problems)) from None
    problems += question.column_problems(opened.names, opened.name)
    return opened, draw_here if cluster is None else cluster.draw


def held_out_records(records: int, question: Question) -> Flags:
    """Tell which records are held out: the same ones whatever else is asked of the seed."""
    order = np.random.default_rng([question.seed, HELD_OUT]).permutation(records)
    out = np.zeros(records, dtype=np.bool_)
    out[order[: round(question.hold_out * records)]] = True
    return out


def find_targets_and_rules(
    question: Question, data: Microdata
) -> tuple[tuple[str, ...], EditRules]:
    """Return the targets, with all columns that make a sum with one of them, and the rules."""
    targets = tuple(question.targets)
    while True:
        rules = _all_rules(question, data, targets)
        sums = [rule.columns for rule in rules.rules if is_sum(rule.tree)]
        tied = sorted(name for one in sums if one & set(targets) for name in one - set(targets))
        text = "{0!r} makes a sum with {targets}, and is drawn with them. Take it out of {strata}."
        problems = [Problem(text, name) for name in tied if name in question.strata]
        if problems:
            raise OptionError(dict.fromkeys(problems))
        if not tied:
            return targets, rules
        targets = (*targets, *dict.fromkeys(tied))


def _all_rules(question: Question, data: Microdata, targets: Sequence[str]) -> EditRules:
    """Return the rules given, and those that the file itself shows of its targets."""
    is_file = isinstance(question.rules, str | os.PathLike)
    given = EditRules.read(question.rules) if is_file else EditRules.parse(question.rules or {})
    if not question.structure:
        return given
    released = [v.name for v in data.variables if v.role not in NEVER_RELEASED]
    named: dict[str, str] = {}
    for one in find_structure(data, columns=released, about=targets):
        if one.expected >= question.structure and one.kind not in COUNTED:
            name = f"{one.kind}: {', '.join(one.columns)}"[:LONGEST_NAME]
            same = sum(other.startswith(f"{name} ") or other == name for other in named)
            named[f"{name[: LONGEST_NAME - 6]} {same + 1}" if same else name] = one.rule
    taken = {rule.text for rule in given.rules}
    own = EditRules.parse({k: text for k, text in named.items() if text not in taken})
    return EditRules([*given.rules, *(one for one in own.rules if one.name not in given.names)])


def _parameters(request: planning.SynthesisRequest, drawn: planning.Drawn) -> dict[str, Any]:
    """Return what was asked for, the seed included."""
    question = request.question
    values = {**question.values, "targets": request.targets, "models": question.models or {}}
    first = ("seed", "keys", "targets", "strata", "implicates", "targeted", "decoys", "graded")
    second = ("relations", "related", "cutoff", "weight", "fraction", "least_probability")
    return {
        **{name: values[name] for name in (*first, "structure", *second)},
        "predictors": drawn.plan.predictors,
        "rules": {rule.name: rule.text for rule in request.rules.rules},
        "withheld": dropped_columns(request.data),
        **{name: values[name] for name in (*DRAWING, "shuffle")},
        **({} if question.hold_out is None else {"hold_out": question.hold_out}),
    }


def _notes(question: Question, made: planning.Drawn) -> tuple[str, ...]:
    plan, drawn = made.plan, made.implicates
    blank, own = plan.replace[drawn.rows], drawn.rows[:, None]
    leads = blank & (np.array(plan.acceptance.leaders) == np.arange(len(plan.targets)))
    alone = repaired = 0
    for donors in drawn.donors:
        alone += int((donors == own)[blank].sum())
        # Repaired are the records that have all their targets of one other record.
        lowest = np.where(leads, donors, np.iinfo(donors.dtype).max).min(axis=1)
        highest = np.where(leads, donors, -1).max(axis=1)
        single = (leads.sum(axis=1) > 1) & (lowest == highest) & (lowest != drawn.rows)
        repaired += int(single.sum())
    tied = [name for name in made.choice.targets if name not in question.targets]
    before = plan.acceptance.broken_before
    broken = 0 if before is None else int(before.any(axis=1).sum())
    notes = [*made.designation.notes, *made.choice.notes]
    notes += [Note("synthesis.sums", columns=listed(tied))] if tied else []
    notes += [Note("synthesis.alone", values=alone)] if alone else []
    notes += [Note("synthesis.repaired", records=repaired)] if repaired else []
    notes += [Note("synthesis.broken", records=broken)] if broken else []
    if drawn.borrowed:
        # Subgroups of very few records, which could be people, are not named.
        named = [str(one) for one in drawn.borrowing if one.records >= NAMED_FROM][:MOST_NAMED]
        rest = drawn.borrowed - len(named)
        shown = "; ".join(named) + f"{'; and ' if named else ''}{rest:,} more" * bool(rest)
        notes.append(
            f"{drawn.borrowed:,} of {drawn.subgroups:,} subgroups are too small for a model of "
            f"their own and borrow that of their neighbours: {shown}"
        )
    return tuple(notes)
