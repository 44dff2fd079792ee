"""Comparison of studies: candidate releases and metrics in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keyhole.core.names import quoted
from keyhole.data import load
from keyhole.errors import InputError, OptionError
from keyhole.reidentification.candidates import blank_variables
from keyhole.reidentification.question import column_names
from keyhole.reidentification.result import Study
from keyhole.reidentification.study import Progress, study
from keyhole.results import Result, Table, share

if TYPE_CHECKING:
    import altair
    import polars as pl

__all__ = ["ComparedStudy", "StudyComparison", "compare_studies"]


@dataclass(frozen=True, slots=True)
class ComparedStudy:
    """The study of one candidate release."""

    release: str
    study: Study

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        found = self.study
        base = found.baseline
        return {
            "release": self.release,
            "metric": found.metric,
            **found.rates.to_dict(),
            "baseline_conditional_rate": None if base is None else base.conditional_rate,
            "warnings": list(found.warnings),
        }


@dataclass(frozen=True, slots=True, repr=False)
class StudyComparison(Result):
    """What an attack would achieve on each candidate release, by each metric."""

    rows: tuple[ComparedStudy, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        first = self.rows[0].study
        asked = first.question
        named = {} if first.scenario is None else {"scenario": first.scenario}
        return {
            **named,
            "link": list(asked.link),
            "numeric": list(asked.numeric),
            "strata": list(asked.strata),
            "comparison": [row.to_dict() for row in self.rows],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a study."""
        import polars as pl

        rows = []
        for row in (one.to_dict() for one in self.rows):
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
            rates = row.study.rates
            low, high = rates.conditional.interval or (None, None)
            base = row.study.baseline
            rows.append(
                [
                    row.release,
                    row.study.metric,
                    share(rates.putative.value),
                    share(rates.confirmed_rate.value),
                    share(rates.conditional.value),
                    "" if low is None else f"{share(low)} to {share(high)}",
                    "" if base is None else share(base.conditional_rate),
                ]
            )
        columns = ["release", "metric", "suspected", "confirmed", "conditional"]
        first = self.rows[0].study
        notes = [first.question.variables_in_words(), *first.recoding, *self._warnings()]
        return [Table("Studies compared", [*columns, "95% interval", "by chance"], rows, notes)]

    def _warnings(self) -> list[str]:
        """Return each warning once, with the studies that it is about."""
        about: dict[str, list[ComparedStudy]] = {}
        for row in self.rows:
            for text in row.study.warnings:
                about.setdefault(text, []).append(row)
        return [f"Warning{self._where(rows)}: {text}" for text, rows in about.items()]

    def _where(self, rows: Sequence[ComparedStudy]) -> str:
        if len(rows) == len(self.rows):
            return ""
        releases = dict.fromkeys(row.release for row in rows)
        metrics = dict.fromkeys(row.study.metric for row in rows)
        return f" ({', '.join(releases)}; {', '.join(metrics)})"

    def plot(self) -> altair.TopLevelMixin:
        """Draw the conditional and the confirmed rates side by side."""
        from keyhole.reidentification.charts import comparison_chart

        return comparison_chart(self)


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
    metrics = column_names(metrics)
    if not pufs or not metrics:
        raise OptionError("pufs and metrics must each name at least one. Got none instead.")
    own = isinstance(iuf, Mapping) and set(iuf) == set(pufs)
    loaded = {name: load(puf) for name, puf in pufs.items()}
    link = column_names(options.get("link"))
    absent = {name: blank_variables(puf, link) for name, puf in loaded.items()}
    nowhere = set(link).intersection(*absent.values())  # of which `study` says that it is wrong
    rows: list[ComparedStudy] = []
    problems: list[str] = []
    for name, puf in loaded.items():
        gone = (*column_names(options.get("blank")), *(n for n in absent[name] if n not in nowhere))
        asked = {**options, "blank": gone, "eif": eif, "iuf": iuf[name] if own else iuf}
        for metric in metrics:
            if progress is not None:
                progress(f"{name} by {metric}")
            by_metric = {**asked, "metric": metric}
            if metric != "adhoc" and "adhoc" in metrics:
                by_metric.pop("scores", None)
            try:
                rows.append(ComparedStudy(name, study(puf=puf, **by_metric)))
            except InputError as error:
                problems += [f"release {quoted([name])}: {text}" for text in error.problems]
    if problems:
        raise OptionError(dict.fromkeys(problems))
    return StudyComparison(tuple(rows))
