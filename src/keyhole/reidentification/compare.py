"""Comparison of studies: candidate releases and metrics in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.codec import members_to_plain
from keyhole.core.marks import HIDDEN, SPREAD, WHEN_SET, Named, Share
from keyhole.core.names import quoted
from keyhole.core.notes import Note
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.errors import InputError, OptionError
from keyhole.reidentification.files import StudyFiles, blank_variables
from keyhole.reidentification.linkage import Progress, attack_release
from keyhole.reidentification.question import Linkage, Metric
from keyhole.reidentification.rates import Rates, interval_words, measure_rates
from keyhole.reidentification.result import Study
from keyhole.reidentification.study import study
from keyhole.results import Result, drawn_by, share


@dataclass(frozen=True, slots=True)
class ComparedStudy:
    """The study of one candidate release."""

    release: str
    metric: Metric
    rates: Annotated[Rates, SPREAD]
    baseline_conditional_rate: Annotated[float | None, Share("suspected")]
    warnings: tuple[str, ...]
    study: Annotated[Study | None, HIDDEN] = None


@dataclass(frozen=True, slots=True, repr=False)
class StudyComparison(Result):
    """What an attack would achieve on each candidate release, by each metric."""

    link: tuple[str, ...]
    numeric: tuple[str, ...]
    strata: tuple[str, ...]
    rows: Annotated[tuple[ComparedStudy, ...], Named("comparison")]
    scenario: Annotated[str | None, WHEN_SET] = None

    @classmethod
    def of(cls, studies: Sequence[tuple[str, Study]]) -> StudyComparison:
        """Set studies side by side, each with the name of its release."""
        first = studies[0][1]
        asked = first.linkage
        rows = []
        for release, one in studies:
            chance = None if one.baseline is None else one.baseline.conditional_rate
            rows.append(ComparedStudy(release, one.metric, one.rates, chance, one.warnings, one))
        return cls(asked.link, asked.numeric, asked.strata, tuple(rows), first.scenario)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a study."""
        rows = []
        for row in map(members_to_plain, self.rows):
            bounds = row.pop("intervals")
            row.pop("warnings")
            for name, interval in bounds.items():
                row[f"{name}_low"], row[f"{name}_high"] = interval or (None, None)
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def tables(self) -> list[Table]:
        """Return one row a study; the rates that hang on few records show by their intervals."""
        rows = []
        for row in self.rows:
            interval = interval_words(row.rates.intervals["conditional_rate"])
            chance = row.baseline_conditional_rate
            dealt = chance is not None or (row.study and row.study.baseline)
            rates = [rate.value for rate in row.rates.named().values()][:3]
            by_chance = share(chance) if dealt else ""
            rows.append([row.release, row.metric, *map(share, rates), interval, by_chance])
        columns = ["release", "metric", "suspected", "confirmed", "conditional"]
        notes = self._variables_in_words()
        notes += [] if self.scenario is None else [Note("exposure.scenario", name=self.scenario)]
        # Each warning once, with the studies that it is about.
        for text in dict.fromkeys(text for row in self.rows for text in row.warnings):
            about = [row for row in self.rows if text in row.warnings]
            releases = ", ".join(dict.fromkeys(row.release for row in about))
            metrics = ", ".join(dict.fromkeys(row.metric for row in about))
            where = f" ({releases}; {metrics})" if len(about) < len(self.rows) else ""
            notes.append(f"Warning{where}: {text}")
        return [Table("Studies compared", [*columns, "95% interval", "by chance"], rows, notes)]

    def _variables_in_words(self) -> list[str]:
        """Say which variables are numbers; of metrics that take them otherwise, of which."""
        said: dict[str, dict[str, None]] = {}
        for metric in (row.metric for row in self.rows):
            asked = Linkage(metric, self.link, self.numeric, self.strata)
            said.setdefault(asked.variables_in_words, {})[metric] = None
        if len(said) == 1:
            return list(said)
        return [f"{words.rstrip('.')} ({', '.join(by)})." for words, by in said.items()]

    plot = drawn_by(
        "reidentification.charts.comparison_chart",
        "Draw the conditional and the confirmed rates side by side.",
    )


def attack_all(files: StudyFiles, question: Question, tell: Progress) -> StudyComparison:
    """Attack every release by every metric.

    A linking variable that a release leaves out, or blanks everywhere, is taken as missing in all
    of its records, with a warning, if another release has it.
    """
    absent = {name: blank_variables(puf, question.link) for name, puf in files.pufs.items()}
    nowhere = set(question.link).intersection(*absent.values())  # told to be wrong by the attack
    studies: list[tuple[str, Study]] = []
    problems: list[str] = []
    for name in files.pufs:
        gone = (*question.blank, *(one for one in absent[name] if one not in nowhere))
        asked = question.replace(blank=tuple(dict.fromkeys(gone)))
        for metric in question.metric:
            tell(f"{name} by {metric}")
            try:
                found = attack_release(files, name, asked.replace(metric=metric), tell)
                studies.append((name, found))
            except InputError as error:
                problems += [f"release {quoted([name])}: {text}" for text in error.problems]
    if problems:
        raise OptionError(dict.fromkeys(problems))
    return StudyComparison.of(studies)


ALL_SOURCES = "all sources together"


def attack_sources(question: Question, tell: Progress) -> StudyComparison:
    """Attack one release with each of several sources, and count who any of them finds."""
    found: list[tuple[str, Study]] = []
    problems: list[str] = []
    for name, eif in question.eif.items():
        tell(f"with {name}")
        try:
            one = study(**{**question.values, "eif": eif, "iuf": question.iuf[name]}, progress=tell)
            found.append((name, one))
        except InputError as error:
            problems += [f"EIF {quoted([name])}: {text}" for text in error.problems]
    if problems:
        raise OptionError(dict.fromkeys(problems))
    linked = [one.linked for _, one in found if one.linked is not None]
    true = [one.confirmed_pairs for _, one in found if one.confirmed_pairs is not None]
    puf, confirmed = np.concatenate([one.puf for one in linked]), np.concatenate(true)
    every = measure_rates(puf, confirmed, found[0][1].puf_records)
    compared = StudyComparison.of(found)
    row = ComparedStudy(ALL_SOURCES, found[0][1].metric, every, None, ())
    return replace(compared, rows=(*compared.rows, row))


def compare_studies(
    pufs: Mapping[str, Any],
    *,
    eif: Any,
    iuf: Any,
    metrics: str | Sequence[str] = ("unicity", "taxicab", "euclidean"),
    progress: Progress | None = None,
    **options: Any,
) -> StudyComparison:
    """Attack several candidate releases, by several metrics, and set the rates side by side.

    Parameters
    ----------
    pufs
        The candidate releases by name, each a file, a frame or `Microdata`. A linking variable
        that one of them leaves out, or blanks everywhere, is taken as missing in all of its
        records, with a warning.
    eif
        The intruder's file.
    iuf
        The internal file. A mapping with the names of the releases gives each its own: where
        some leave records out, theirs may not name them.
    metrics
        The metrics to use.
    progress
        Called with what is being done.
    options
        Whatever else `study` takes, for all of them.

    Examples
    --------
    >>> from keyhole.data.examples import veterans
    >>> world = veterans(1_000, seed=1)
    >>> coarse = world.sample.frame.with_columns(age=world.sample.frame["age"] // 10)
    >>> outside = world.external.frame.with_columns(age=world.external.frame["age"] // 10)
    >>> compare_studies(
    ...     {"by decade": coarse}, eif=outside, iuf=world.truth, metrics=["taxicab"],
    ...     puf_id="puf_id", eif_id="eif_id", link=["sex", "age", "race1"], permutations=0,
    ... ).rows[0].release
    'by decade'
    """
    if not isinstance(pufs, Mapping):
        raise OptionError(
            f"pufs must map names of releases to their files. Got {type(pufs).__name__} instead."
        )
    asked: dict[str, Any] = {"eif": eif, "iuf": iuf, "metric": metrics, "progress": progress}
    try:
        found: Any = study(puf=pufs, **asked, **options)
    except InputError as error:
        single = [f"release {quoted(pufs)}: {text}" for text in error.problems]
        raise type(error)(single if len(pufs) == 1 else error.problems) from None
    if isinstance(found, StudyComparison):
        return found
    return StudyComparison.of([(next(iter(pufs)), found)])
