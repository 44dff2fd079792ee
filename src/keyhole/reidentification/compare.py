"""Candidate releases and metrics compared in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keyhole.data.naming import quoted
from keyhole.errors import InputError, OptionError
from keyhole.reidentification.result import Study
from keyhole.reidentification.study import Progress, study
from keyhole.reidentification.truth import names_of
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
        return {"comparison": [row.to_dict() for row in self.rows]}

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
        notes = [
            f"Warning ({row.release}, {row.study.metric}): {text}"
            for row in self.rows
            for text in row.study.warnings
        ]
        return [Table("Studies compared", [*columns, "95% interval", "by chance"], rows, notes)]

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
        The candidate releases by name, each a file, a frame or `Microdata`.
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
    metrics = names_of(metrics)
    if not pufs or not metrics:
        raise OptionError("pufs and metrics must each name at least one. Got none instead.")
    own = isinstance(iuf, Mapping) and set(iuf) == set(pufs)
    rows = []
    for name, puf in pufs.items():
        for metric in metrics:
            if progress is not None:
                progress(f"{name} by {metric}")
            truth = iuf[name] if own else iuf
            rows.append(ComparedStudy(name, _named(name, puf, eif, truth, metric, options)))
    return StudyComparison(tuple(rows))


def _named(
    name: str, puf: Any, eif: Any, iuf: Any, metric: Any, options: Mapping[str, Any]
) -> Study:
    """Run one study; what is wrong is told with the release's name."""
    try:
        return study(puf=puf, eif=eif, iuf=iuf, metric=metric, **options)
    except InputError as error:
        raise type(error)(f"release {quoted([name])}: {text}" for text in error.problems) from None
