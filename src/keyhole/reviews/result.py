"""What a review found, and where its report is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from keyhole.core.codec import plain_values
from keyhole.core.tables import Table
from keyhole.results import Result
from keyhole.reviews.limits import Limit
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import restored
from keyhole.reviews.store import NOTE, REPORT, RESULTS, digest
from keyhole.reviews.verdict import Verdict, find_verdict

if TYPE_CHECKING:
    import polars as pl


Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class ReviewResult(Result):
    """The results of a review's stages, its limits, and the folder that holds the report.

    `reused` names the stages whose stored results still answered; the others were computed.
    `pages` holds the hash of each page, `made` the date and who ran it; `advice` is what to do
    next, shown below the summary.
    """

    review: Review
    folder: Path
    records: Mapping[str, Record]
    limits: tuple[Limit, ...]
    reused: tuple[str, ...]
    versions: Mapping[str, str]
    files: Mapping[str, Mapping[str, str]]
    pages: Mapping[str, str]
    made: Mapping[str, str]
    advice: tuple[str, ...] = ()
    check: bool = False

    @property
    def verdict(self) -> Verdict:
        """Whether what is released may go out, and why or why not."""
        return find_verdict(self.review, self.by_stage())

    @property
    def passed(self) -> bool:
        """Whether the exit code is 0: where a check was asked for, only if all is met."""
        return not self.check or self.verdict.answer == "met"

    @property
    def report(self) -> Path:
        """The report, one page that needs nothing else."""
        return self.folder / REPORT

    @property
    def public_note(self) -> Path:
        """The note for the public: methods in words, without figures that help an intruder."""
        return self.folder / NOTE

    @property
    def met(self) -> bool:
        """Whether every limit is met; one that could not be judged is not."""
        return all(limit.met for limit in self.limits)

    def results(self) -> dict[str, Any]:
        """Return each stage's figures by its name, as plain values."""
        return {name: record["result"] for name, record in self.records.items()}

    def by_stage(self) -> dict[str, Any]:
        """Return each stage's result by its name, as the verb gives it."""
        return restored(self.records)

    def content(self) -> dict[str, Any]:
        """Return what results.json holds: the same wherever and whenever the review runs."""
        review = self.review
        found = {
            "title": review.title,
            "review": {"file": review.path.name, "sha256": review.sha256},
            "data": self.files["data"],
            "files": self.files,
            "settings": review.to_dict(),
            "verdict": self.verdict.to_dict(),
            "limits": [limit.to_dict() for limit in self.limits],
            "stages": self.results(),
            "versions": dict(self.versions),
            "pages": dict(self.pages),
            **({"made": dict(self.made)} if self.made else {}),  # older reviews have none
        }
        content = cast("dict[str, Any]", plain_values(found))
        return {**content, "sha256": digest(content)}

    def to_dict(self) -> dict[str, Any]:
        """Return the content of results.json, and where the files are."""
        paths = {
            "folder": self.folder,
            "report": self.report,
            "public_note": self.public_note,
            "results": self.folder / RESULTS,
        }
        return {**self.content(), **{name: str(path) for name, path in paths.items()}}

    def to_frame(self) -> pl.DataFrame:
        """Return one row a stage."""
        import polars as pl

        return pl.DataFrame(
            {
                "stage": list(self.records),
                "title": [record["title"] for record in self.records.values()],
                "reused": [name in self.reused for name in self.records],
            }
        )

    def tables(self) -> list[Table]:
        """Return the verdict, the limits, and the main figures by stage."""
        verdict = self.verdict
        rows = [[one.verdict, one.what, one.said] for one in verdict.reasons]
        notes = [f"{one.what}: {one.remedy}" for one in verdict.reasons if one.remedy]
        notes += [verdict.given_up] if verdict.given_up else []
        tables = [Table(verdict.sentence, ["answer", "condition", "found"], rows, notes)]
        if self.limits and self.review.release.steps is None:
            rows = [[limit.verdict, limit.what, limit.said] for limit in self.limits]
            remedies = [limit.remedy for limit in self.limits if limit.remedy]
            tables.append(Table("Limits", ["answer", "condition", "found"], rows, remedies))
        rows = [
            [str(r["title"]), "reused" if name in self.reused else "computed"]
            for name, r in self.records.items()
        ]
        notes = [
            f"The report is at {self.report}",
            f"The public note is at {self.public_note}",
            *self.advice,
        ]
        return [*tables, Table(self.review.title, ["stage", "result"], rows, notes)]
