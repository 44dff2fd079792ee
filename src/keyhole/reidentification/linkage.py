"""Linkage attack on one release: pairs, truth, rates, chance, what the perturbation bought.

Singer & Dajani, section 1.2. The internal file (IUF) holds the ids of the public file and of the
external one side by side, and may carry the linking values before they were perturbed (1.1). An id
may be several columns. Only counts are told of ids that cannot be used, never an id.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import polars as pl

from keyhole.core.kinds import Columns
from keyhole.core.names import quoted
from keyhole.core.options import Problem, Question
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, InputError, OptionError
from keyhole.kernels.arrays import Flags, Ints
from keyhole.reidentification.baseline import Baseline, permuted_baseline
from keyhole.reidentification.files import StudyFiles, attach_ids, linking_keys, with_blanks
from keyhole.reidentification.linking import MOST_VARIABLES, Pairs, find_pairs
from keyhole.reidentification.question import taken_as_categories, with_scores
from keyhole.reidentification.rates import (
    Rates,
    RatesByAgreement,
    RatesByRank,
    RatesByStratum,
    RatesBySubset,
    Strata,
    agreements,
    confirm,
    count_use,
    measure_rates,
    number_strata,
    rates_by_pair,
    rates_by_stratum,
)
from keyhole.reidentification.result import Perturbation, Study, StudyOverlap
from keyhole.reidentification.variables import EXACT, WIDE, strangers

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
    tell("matching at random")
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
    return Perturbation.measured(before.records, before.changed, rates, with_it), skipped


def linking_problems(question: Question) -> Iterator[Problem]:
    """Say what is wrong with the linking variables, given or taken from a scenario."""
    linked = question.link
    if len(linked) < 2:
        yield Problem("{link} must name at least two variables. Got {0} instead.", len(linked))
    if "unicity" in question.metric and len(linked) > MOST_VARIABLES:
        template = "{link} must name at most {0} variables for unicity. Got {1} instead."
        yield Problem(template, MOST_VARIABLES, len(linked))
    others = (*question.second_link, *question.secret)
    for text in strangers(question.numeric, (*linked, *others), ""):
        yield Problem("{numeric}{0}", text)
    template = (
        "{link} and {strata} both name {0!r}: a linking variable and a stratum. Leave it out of "
        "one of them."
    )
    yield from (Problem(template, name) for name in linked if name in question.strata)
    if "adhoc" in question.metric and question.scores is not None:
        from keyhole.reidentification.scores import load_scores, score_problems

        try:
            scores = question.scores
            declared = load_scores(scores) if isinstance(scores, str | os.PathLike) else scores
            texts = score_problems(declared, linked)
        except InputError as error:
            texts = list(error.problems)
        for text in texts:
            yield Problem("{scores}: {0}", text)


NOBODY = -1
UNKNOWN = -2


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The distinct pairs that are one person, by record number."""

    puf: Ints
    eif: Ints
    rows: Ints  # for each row of the IUF its PUF record, -1 where it names none
    incomplete: int  # rows of the IUF without one of the two ids, which name no pair

    @property
    def overlap(self) -> int:
        """PUF records that are in the EIF too."""
        return len(np.unique(self.puf))


def find_truth(
    puf: Microdata,
    eif: Microdata,
    iuf: Microdata,
    *,
    puf_id: str | Iterable[str],
    eif_id: str | Iterable[str],
) -> Truth:
    """Find the records of each pair that the internal file names.

    Ids are compared as values: 7 is 7.0 and, where one file holds text, ``"7"``; but not ``"07"``.
    """
    sides = {"PUF": (puf, Columns().settle(puf_id)), "EIF": (eif, Columns().settle(eif_id))}
    problems = iuf_name_problems(sides["PUF"], sides["EIF"], iuf)
    for file, (data, names) in () if problems else sides.items():
        ids = _ids(data, names)
        whole = ids.drop_nulls()
        shared = int(whole.is_duplicated().sum()) if whole.height else 0
        problems += id_problems(file, names, ids.height - whole.height, shared, ids.height)
    if problems:
        raise ColumnError(problems)
    puf_rows, eif_rows = (_find(*side, iuf) for side in sides.values())
    for (file, (_, names)), rows in zip(sides.items(), (puf_rows, eif_rows), strict=True):
        strange = int((rows == UNKNOWN).sum())
        problems += unknown_id_problems(file, names, strange, iuf.records)
    if problems:
        raise ColumnError(problems)
    complete = (puf_rows >= 0) & (eif_rows >= 0)
    span = int(eif_rows.max(initial=0)) + 1
    pairs = np.unique(puf_rows[complete] * span + eif_rows[complete])
    return Truth(pairs // span, pairs % span, puf_rows, len(complete) - int(complete.sum()))


def order_by_id(data: Microdata, names: Sequence[str]) -> Ints:
    """Return the records in order of their ids, which does not hang on that of the file."""
    ids = _ids(data, names)
    return ids.select(pl.arg_sort_by(ids.columns)).to_series().to_numpy().astype(np.int64)


def _find(data: Microdata, names: Sequence[str], iuf: Microdata) -> Ints:
    """Return the record that each row of the IUF names: -1 for none, -2 for an unknown."""
    ours, theirs = _ids(data, names), _ids(iuf, names)
    differ = [name for name in ours.columns if ours.schema[name] != theirs.schema[name]]
    as_text = [pl.col(name).cast(pl.String) for name in differ]
    ours, theirs = ours.with_columns(as_text), theirs.with_columns(as_text)
    missing = theirs.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
    positions = ours.with_columns(pl.Series("record", np.arange(ours.height), pl.Int64))
    joined = theirs.join(positions, on=ours.columns, how="left", maintain_order="left")
    rows = joined["record"].fill_null(UNKNOWN).to_numpy()
    return np.where(missing, NOBODY, rows).astype(np.int64)


def id_problems(
    file: str, names: Sequence[str], missing: int, shared: int, records: int
) -> list[str]:
    """Say how many ids of a file are missing and how many records share one."""
    problems = []
    if missing:
        problems.append(
            f"the {file}'s id {quoted(names)} must be there for every record. Got "
            f"{missing:,} of {records:,} records without instead: give them an id, or leave them "
            f"out."
        )
    if shared:
        problems.append(
            f"the {file}'s id {quoted(names)} must identify each record. Got {shared:,} of "
            f"{records:,} records that share theirs with another instead: add the column that "
            f"distinguishes them, or leave out the repeated records."
        )
    return problems


def unknown_id_problems(file: str, names: Sequence[str], count: int, rows: int) -> list[str]:
    """Say how many rows of the IUF name a record that is not in a file."""
    said = (
        f"every id {quoted(names)} in the IUF must be one of the {file}. Got "
        f"{count:,} of {rows:,} rows with another instead: leave those rows out, or "
        f"check that ids are written alike in both files ('007' is not 7)."
    )
    return [said] if count else []


def require_rows(name: str, rows: int) -> None:
    """Say so if the IUF has no rows."""
    if not rows:
        raise ColumnError(
            f"the IUF {name!r} has a header but no records, so that nothing could be "
            f"confirmed. Give a row for each person in both files; if nobody is in both, rows with "
            f"the PUF's id and an empty EIF id say so."
        )


def incomplete_warnings(incomplete: int, rows: int) -> list[str]:
    """Say how many rows of the IUF name no pair."""
    said = "rows of the IUF have only one of the two ids and name no pair"
    return [f"{incomplete:,} of {rows:,} {said}"] if incomplete else []


class HasColumns(Protocol):
    """Data whose columns can be asked for by name."""

    def require(self, names: Iterable[str], *, purpose: str = ...) -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong."""
        ...


def iuf_name_problems(
    puf: tuple[HasColumns, Sequence[str]], eif: tuple[HasColumns, Sequence[str]], iuf: HasColumns
) -> list[str]:
    """Say what is wrong with the names of the columns of ids."""
    problems = []
    for file, (data, names) in (("PUF", puf), ("EIF", eif)):
        if not names:
            problems.append(f"{file} id must name at least one column. Got none instead.")
        for one in (data, iuf):
            problems += absent_problems(one, names, f"{file} id")
    if puf[1] and set(puf[1]) == set(eif[1]):
        problems.append(
            f"PUF id and EIF id must have names of their own, since the IUF holds both. Got "
            f"{quoted(puf[1])} for each instead: rename one in its file and in the IUF."
        )
    return list(dict.fromkeys(problems))


def absent_problems(data: HasColumns, names: Sequence[str], purpose: str) -> list[str]:
    """Say which names are no columns of the data, or are given twice."""
    try:
        data.require(names, purpose=purpose)
    except ColumnError as error:
        return list(error.problems)
    return []


def _ids(data: Microdata, names: Sequence[str]) -> pl.DataFrame:
    """Return the columns of an id under names of our own, whole numbers as such."""
    return pl.DataFrame({f"id{i}": _plain(data.column(name)) for i, name in enumerate(names)})


def _plain(series: pl.Series) -> pl.Series:
    """Bring an id to one of few types; a file with gaps may hold its whole numbers as floats."""
    if series.dtype.is_float():
        whole = ((series.floor() == series) & (series.abs() < EXACT)).all()
        return series.cast(pl.Int64) if whole else series.cast(pl.Float64)
    if series.dtype == pl.Binary:  # which need not be text
        return series.bin.encode("hex")
    if series.dtype.is_integer() and series.dtype not in WIDE:
        return series.cast(pl.Int64)
    if series.dtype in (pl.Categorical, pl.Enum, pl.Null, *WIDE):
        return series.cast(pl.String)
    return series


def text_ids(columns: Sequence[pl.Series]) -> pl.Series:
    """Return ids as one text each, the same for equal ids; null where a part is missing."""
    texts = [_text(column) for column in columns]
    if len(texts) == 1:
        return texts[0]
    # With its length before it, a part cannot be taken for a piece of the next.
    frame = pl.DataFrame([text.alias(f"id{i}") for i, text in enumerate(texts)])
    parts = [
        expression
        for name in frame.columns
        for expression in (pl.col(name).str.len_bytes().cast(pl.String), pl.lit(":"), pl.col(name))
    ]
    return frame.select(pl.concat_str(parts)).to_series()


def _text(series: pl.Series) -> pl.Series:
    if series.dtype.is_float():
        whole = (series.floor() == series) & (series.abs() < EXACT)
        return (
            series.cast(pl.Int64, strict=False)
            .cast(pl.String)
            .zip_with(whole.fill_null(value=False), series.cast(pl.String))
        )
    if series.dtype == pl.Binary:
        return series.bin.encode("hex")
    return series.cast(pl.String)


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """The PUF with the values of the internal file in place of its own."""

    puf: Microdata
    records: int
    changed: Mapping[str, int]  # by variable, how many values differ
    skipped: tuple[str, ...]  # why a variable that the internal file carries could not be used


def restore(puf: Microdata, iuf: Microdata, truth: Truth, link: Sequence[str]) -> Restored | None:
    """Put the values that the internal file carries in place of the PUF's own."""
    carried = [name for name in link if name in iuf.names]
    known = truth.rows >= 0
    if not carried or not known.any():
        return None
    source = np.full(puf.records, -1, dtype=np.int64)
    source[truth.rows[known]] = np.flatnonzero(known)
    columns, changed, skipped = {}, {}, []
    for name in carried:
        values, problem = _restored(puf.column(name), iuf.column(name), source, truth)
        if values is None:
            skipped.append(f"{name!r} {problem}")
            continue
        columns[name] = values
        changed[name] = int(values.ne_missing(puf.column(name)).sum())
    frame = puf.frame.with_columns(values.alias(name) for name, values in columns.items())
    return Restored(puf.replace(frame=frame), int((source >= 0).sum()), changed, tuple(skipped))


def _restored(
    ours: pl.Series, theirs: pl.Series, source: np.ndarray[Any, Any], truth: Truth
) -> tuple[pl.Series | None, str]:
    """Return the values, or why there are none."""
    dtype = _common_type(ours.dtype, theirs.dtype)
    if dtype is None:
        return None, "holds values of another type in the IUF"
    ours, theirs = ours.cast(dtype), theirs.cast(dtype)
    given = theirs.gather(np.maximum(source, 0))
    values = given.zip_with(pl.Series(source >= 0), ours)
    named = np.flatnonzero(truth.rows >= 0)
    again = values.gather(truth.rows[named])
    if again.ne_missing(theirs.gather(named)).any():
        return None, "has several values for one PUF record in the IUF"
    return values, ""


def _common_type(one: pl.DataType, other: pl.DataType) -> pl.DataType | None:
    """Return the type that holds the values of two columns, if they are of one kind."""
    text = (pl.String, pl.Categorical, pl.Enum)
    if one.base_type() in text and other.base_type() in text:
        return pl.String()
    if one == other:
        return one
    if pl.UInt128 in (one, other):  # nothing holds these and others
        return None
    if one.is_integer() and other.is_integer():
        return pl.Int128() if {one, other} & set(WIDE) else pl.Int64()
    if one.is_numeric() and other.is_numeric():
        return pl.Float64()
    return next((dtype for dtype in (one, other) if {one, other} <= {dtype, pl.Null()}), None)
