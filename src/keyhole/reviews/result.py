"""What a review found, and where its report is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl

from keyhole.core.codec import from_plain, plain_values
from keyhole.core.options import Problem
from keyhole.core.tables import Table
from keyhole.errors import FileError, KeyholeError
from keyhole.results import Result
from keyhole.reviews import store
from keyhole.reviews.files import hash_or_none
from keyhole.reviews.schema import SECTIONS, question_of
from keyhole.reviews.settings import DataSettings, ReleaseSettings, Review, ScenarioSettings
from keyhole.reviews.stages import restored
from keyhole.reviews.verdict import Limit, Verdict, find_limits, find_verdict

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
        return self.folder / store.REPORT

    @property
    def public_note(self) -> Path:
        """The note for the public: methods in words, without figures that help an intruder."""
        return self.folder / store.NOTE

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
        return {**content, "sha256": store.digest(content)}

    def to_dict(self) -> dict[str, Any]:
        """Return the content of results.json, and where the files are."""
        return {
            **self.content(),
            "folder": str(self.folder),
            "report": str(self.report),
            "public_note": str(self.public_note),
            "results": str(self.folder / store.RESULTS),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a stage."""
        rows = [
            (name, record["title"], name in self.reused) for name, record in self.records.items()
        ]
        return pl.DataFrame(rows, schema=["stage", "title", "reused"], orient="row")

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
        rows = []
        for name, r in self.records.items():
            done = "reused" if name in self.reused else "computed"
            stopped = r["result"].get("complete") is False
            rows.append([str(r["title"]), f"{done}, not complete" if stopped else done])
        notes = [
            f"The report is at {self.report}",
            f"The public note is at {self.public_note}",
            *self.advice,
        ]
        return [*tables, Table(self.review.title, ["stage", "result"], rows, notes)]


Content = Mapping[str, Any]


def read_stored(folder: Path) -> ReviewResult:
    """Read the results of a finished review, or say everything that is not whole."""
    content = read_content(folder)
    problems = changed(folder, content)
    records: dict[str, Any] = {}
    kept = store.ResultStore(folder)
    for name, figures in content["stages"].items():
        path, record = str(folder / "stages" / f"{name}.json"), kept.record(name)
        if record is None:
            problems.append(f"{path!r} is not there, or cannot be read.")
            continue
        records[name] = record
        if not store.is_unaltered(record):
            problems.append(f"{path!r} was changed after it was written: its hash does not match.")
        elif record["result"] != figures:
            problems.append(f"{path!r} has other figures than {store.RESULTS}.")
        problems += [
            f"{str(kept.chart(chart))!r} is not there, or not as it was written."
            for chart, expected in record["charts"].items()
            if hash_or_none(kept.chart(chart)) != expected
        ]
    if problems:
        raise FileError([*problems, f"Run the review again: keyhole review … --out {folder}"])
    with strange(folder):
        review = restore_review(content)
        return ReviewResult(
            review=review,
            folder=folder,
            records=records,
            limits=tuple(find_limits(review, restored(records))),
            reused=tuple(records),
            versions=content["versions"],
            files=content["files"],
            pages=content["pages"],
            made=content.get("made", {}),
        )


@contextmanager
def strange(folder: Path) -> Iterator[None]:
    """Blame the folder for what goes wrong with figures that somebody made up and hashed."""
    try:
        yield
    except KeyholeError:
        raise
    except Exception as error:
        raise FileError(
            f"{str(folder)!r} holds figures that no review could give, although their hashes "
            f"match. Run the review again: keyhole review … --out {folder}"
        ) from error


def review_file(folder: Path) -> Path:
    """Return where the review file of a folder is, as the folder says."""
    mark = store.read_json(folder / store.MARK)
    named = str(mark["file"]) if store.fits(mark, {"file": str}) else "\0"
    path = None if "\0" in named else folder / named
    if path is None or not path.is_file():
        raise FileError(
            Problem(
                "{0!r} does not say which review file the folder belongs to, or it is not there. "
                "Name it ({review}).",
                str(folder / store.MARK),
            )
        )
    return path


def read_content(folder: Path, *, older: bool = False) -> dict[str, Any]:
    """Read results.json of a finished review, as far as it must be sound to be gone on with."""
    path = folder / store.RESULTS
    store.require_no_link(folder)
    if not folder.is_dir():
        raise FileError(f"{str(folder)!r} is not a folder. Give the one that a review wrote.")
    if not path.is_file():
        raise FileError(
            f"{str(folder)!r} holds no finished review: there is no {store.RESULTS}. Run the "
            f"review to its end first: keyhole review REVIEW.toml --out {folder}"
        )
    problems = [*store.out_of_place(folder)]
    if problems:
        raise FileError(problems)
    content: dict[str, Any] = store.read_json(path)
    if not store.fits(content, store.CONTENT) or not all(
        store.fits(content.get(name, {}), {str: str}) for name in ("pages", "made")
    ):
        raise FileError(f"{str(path)!r} cannot be read as the results of a review. Run it again.")
    made, here = content["versions"].get("keyhole", ""), store.keyhole_version()
    if is_older(content) and not (older and store.version_parts(made) <= store.version_parts(here)):
        told = made if made != here else "an earlier one"
        raise FileError(
            f"{str(path)!r} was made by another version of keyhole ({short_name(told)}; this is "
            f"{here}). Use that version, or run the review again."
        )
    return content


def is_older(content: Content) -> bool:
    """Tell whether results are not of this version; those of 0.1 hold no hashes of pages."""
    made = content["versions"].get("keyhole", "")
    return made != store.keyhole_version() or (made.startswith("0.1.") and "pages" not in content)


def short_name(name: Any) -> str:
    """Write a name that somebody else gave: printable, and of a line's length at most."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))
    return text if len(text) <= 60 else f"{text[:59]}…"


def changed(folder: Path, content: Content) -> list[str]:
    """Say so if results.json is not as it was written."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    if content.get("sha256") == store.digest(rest):
        return []
    name = str(folder / store.RESULTS)
    return [f"{name!r} was changed after it was written: its hash does not match."]


def restore_review(content: Content) -> Review:
    """Build a review from the settings that results.json holds; the secrets are not in it."""
    given = content["settings"]
    kinds = {"data": DataSettings, "scenarios": ScenarioSettings, "release": ReleaseSettings}
    settings = {n: from_plain(k, given[n]) for n, k in kinds.items() if given.get(n) is not None}
    fields = {one.name for one in dataclasses.fields(Review)}.intersection(given, SECTIONS)
    asked = {name: _question(name, given[name]) for name in fields - {*kinds, "keys"}}
    return Review(
        title=str(given["title"]),
        run_by=None,  # `made` has it
        path=Path(content["review"]["file"]),
        sha256=content["review"]["sha256"],
        **{**asked, **settings, "keys": tuple(given["keys"])},
    )


def _question(section: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_question(section, one) for one in value)
    return None if value is None else question_of(section, {**value, **value.get("options", {})})


_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Compared:
    """How many figures were compared, and the paths of those that differ."""

    figures: int
    differences: tuple[str, ...] = ()

    def __add__(self, other: Compared) -> Compared:
        return Compared(self.figures + other.figures, self.differences + other.differences)


def compare_values(stored: Any, computed: Any, at: str = "", *, older: bool = False) -> Compared:
    """Compare values leaf by leaf; an `older` version may lack members, and word otherwise."""
    leaves = list(_leaves(stored, computed, at, older))
    return Compared(len(leaves), tuple(told for told in leaves if told))


def _leaves(stored: Any, computed: Any, at: str, older: bool) -> Iterator[str]:
    """Yield for each leaf its path if the sides differ there, else nothing to tell."""
    if _ABSENT in (stored, computed):
        yield f"{at} (is not there)" if stored is _ABSENT else f"{at} (should not be there)"
    elif isinstance(computed, Mapping) and isinstance(stored, Mapping):
        for name in [*computed, *(name for name in stored if name not in computed)]:
            inner = f"{at}.{short_name(name)}" if at else short_name(name)
            if name in stored or not older:
                pair = stored.get(name, _ABSENT), computed.get(name, _ABSENT)
                yield from _leaves(*pair, inner, older)
    elif older and at.endswith((".notes", ".warnings")):
        return  # sentences, which the hash of their file answers for
    elif isinstance(computed, list) and isinstance(stored, list):
        for i in range(max(len(stored), len(computed))):
            one, other = (side[i] if i < len(side) else _ABSENT for side in (stored, computed))
            yield from _leaves(one, other, f"{at}[{i}]", older)
    else:
        same = type(stored) is type(computed) and stored == computed
        yield "" if same or (older and _means_same(stored, computed)) else at


def _means_same(stored: Any, computed: Any) -> bool:
    """Tell whether two numbers are as good as equal, or both values are sentences."""
    sides = (stored, computed)
    if all(isinstance(side, str) for side in sides):
        return " " in stored and " " in computed
    numbers = all(isinstance(s, int | float) and not isinstance(s, bool) for s in sides)
    return numbers and math.isclose(stored, computed, rel_tol=1e-9)
