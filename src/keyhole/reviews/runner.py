"""Run a review: check its file as a whole, then its stages, each only if something changed."""

from __future__ import annotations

import datetime
import getpass
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from keyhole.charts import save_chart
from keyhole.core.extras import extra_problems
from keyhole.core.kinds import File
from keyhole.core.notes import collect_notes, words_only
from keyhole.core.options import Option, bind, documented
from keyhole.core.shared import FolderOption, ForceOption
from keyhole.errors import OptionError
from keyhole.results import Result
from keyhole.reviews import store
from keyhole.reviews.checks import read_review
from keyhole.reviews.files import Files
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import STAGES, restored
from keyhole.reviews.stages.stage import Asked, NothingToDoError, Stage
from keyhole.reviews.verdict import find_limits
from keyhole.synthesis.release import require_free

Progress = Callable[[str], None]


@documented
def review(
    path: Annotated[
        str | os.PathLike[str],
        Option(
            "The review file: data, keys, limits. Paths in it are relative to its folder.",
            kind=File(),
            metavar="REVIEW.toml",
            argument=True,
        ),
    ],
    *,
    out: FolderOption,
    check: Annotated[
        bool, Option("Exit with code 3 unless every condition of the release is met.")
    ] = False,
    force: ForceOption = False,
    progress: Progress | None = None,
) -> ReviewResult:
    r"""Run a review file and write the dossier.

    The folder may be new, empty, or that of an earlier run of the same file. Everything in the
    review file is checked before anything runs. A stage whose question, inputs and data are those
    of a stored result is not computed again: a run that was stopped resumes where it stopped,
    and after an edit only what changed is computed.

    Returns
    -------
    ReviewResult
        The figures, the limits and where the report is. The folder holds ``report.html``,
        ``public-note.html``, ``results.json``, one file a stage in ``stages/`` and the pictures in
        ``charts/``.

    Raises
    ------
    InputError
        With all the problems of the review file at once, each with its line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "people.csv").write_text("sex,age\nf,30\nf,30\nf,30\nm,41\n")
    >>> _ = (folder / "review.toml").write_text('''
    ... keys = ["sex", "age"]
    ... [data]
    ... file = "people.csv"
    ... ''')
    >>> found = review(folder / "review.toml", out=folder / "out")
    >>> found.results()["exposure"]["rp"], sorted(p.name for p in found.folder.iterdir())
    (0.25, ['charts', 'keyhole-review.json', 'public-note.html', 'report.html', 'results.json',
     'stages'])
    """
    bind(review, locals()).require()
    tell = progress or (lambda _: None)
    tell("checking the review file")
    settings, files = read_review(path)
    found = run_review(settings, files, out=out, force=force, progress=tell)
    return replace(found, check=True) if check else found


def run_review(
    settings: Review,
    files: Files,
    *,
    out: str | os.PathLike[str],
    force: bool = False,
    progress: Progress,
    stored: Mapping[str, Asked] | None = None,
) -> ReviewResult:
    """Run a review that was read and checked, with options by stage as a dossier has `stored`."""
    with store.open_results(out, settings.path, force=force) as results:
        run = _Run(settings, files, results, progress, store.versions(), given=tuple(files))
        run.stored = stored or {}
        run.require_room()
        for stage in STAGES:
            run.stage(stage)
        return run.finish()


def run_stages(
    path: str | os.PathLike[str],
    stages: Collection[str],
    *,
    out: str | os.PathLike[str],
    progress: Progress | None = None,
) -> dict[str, dict[str, Any]]:
    """Run some stages of a review, with those whose results they need; return their records."""
    tell = progress or (lambda _: None)
    tell("checking the review file")
    settings, files = read_review(path)
    with store.open_results(out, settings.path, force=False) as results:
        run = _Run(settings, files, results, tell, store.versions(), given=tuple(files))
        wanted = set(stages)
        for stage in reversed(STAGES):
            wanted |= set(stage.inputs) if stage.name in wanted else set()
        for stage in STAGES:
            if stage.name in wanted:
                run.stage(stage)
        return run.records


@dataclass(frozen=True, slots=True)
class Standing:
    """How a stage's stored result stands: `current`, of before a change (`stale`), `absent`."""

    state: Literal["current", "stale", "absent", "unasked"]
    record: dict[str, Any] | None = None


def standings(review: Review, files: Files, folder: Path) -> dict[str, Standing]:
    """Tell of every stage whether the folder holds its result; nothing is computed or written."""
    run = _Run(review, files, store.ResultStore(folder), lambda _: None, store.versions())
    found: dict[str, Standing] = {}
    for stage in STAGES:
        unsure = {name for name, one in found.items() if one.state in ("stale", "absent")}
        found[stage.name] = run.standing(stage, unsure)
    return found


@dataclass(slots=True)
class _Run:
    """A review under way: the records of the stages so far."""

    review: Review
    files: Files
    store: store.ResultStore
    tell: Progress
    versions: Mapping[str, str]
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)  # of the records, as far as asked for
    reused: list[str] = field(default_factory=list)
    given: tuple[str, ...] = ()
    stored: Mapping[str, Asked] = field(default_factory=dict)

    def require_room(self) -> None:
        """Refuse before the work what a stage could not write after it."""
        makes = [
            one for one in STAGES if one.outputs and getattr(self.review, one.name) is not None
        ]
        places = [self.store.outputs(stage.name) for stage in makes]
        if problems := [text for one in places for text in require_free(one, force=True)]:
            raise OptionError(problems)

    def stage(self, stage: Stage) -> None:
        """Find a stage's stored result, or compute and keep it; drop it if nothing is asked."""
        inputs, asked = self._asked(stage)
        if asked is None:
            self.store.drop(stage.name)
        elif self._found(stage, asked) is not None:
            self.reused.append(stage.name)
        elif not self.store.is_idle(stage.name, self._key(stage, asked)):
            self.store.drop_report()
            try:
                self._keep(stage, self._computed(stage, asked, inputs))
            except NothingToDoError:
                self.store.drop(stage.name, idle=self._key(stage, asked))

    def standing(self, stage: Stage, unsure: set[str]) -> Standing:
        """Tell how a stored result stands; `unsure` are stages that have no current one."""
        if not unsure & set(stage.inputs):
            _, asked = self._asked(stage)
            if asked is None or self.store.is_idle(stage.name, self._key(stage, asked)):
                return Standing("unasked")
            record = self._found(stage, asked)
            if record is not None:
                return Standing("current", record)
        stored = self.store.last(stage.name)
        return Standing("stale" if stored else "absent", stored)

    def _asked(self, stage: Stage) -> tuple[dict[str, Any], Asked | None]:
        """Return the results that a stage may see, and what it asks."""
        for name in stage.inputs:
            if name in self.records and name not in self.results:
                self.results |= restored({name: self.records[name]})
        inputs = {name: self.results[name] for name in stage.inputs if name in self.records}
        asked = stage.ask(self.review, inputs)
        if asked is not None:
            asked |= {n: v for n, v in self.stored.get(stage.name, {}).items() if n in asked}
        return inputs, asked

    def _found(self, stage: Stage, asked: Asked) -> dict[str, Any] | None:
        """Return the stored record that answers, if its files are current too."""
        record = self.store.find(stage.name, self._key(stage, asked))
        folder, made = self.store.outputs(stage.name), stage.outputs
        if record is not None and made is not None:  # its files may be of another question
            same = made.hashes(folder) == record.get("files") and made.answers(folder, asked)
            record = record if same else None
        return None if record is None else self._keep(stage, record)

    def _keep(self, stage: Stage, record: dict[str, Any]) -> dict[str, Any]:
        """Have later stages see a stage's record and files."""
        self.records[stage.name] = record
        if stage.outputs is not None:
            folder = self.store.outputs(stage.name)
            self.files = {**self.files, **stage.outputs.parts(folder, self.review, self.files)}
        return record

    def _key(self, stage: Stage, asked: Asked) -> str:
        """Name the question: what is asked, of which files, by which version."""
        # Candidates have names of their own.
        files = {p: file for p, file in self.files.items() if p.partition(":")[0] in stage.reads}
        return store.digest(
            {
                "stage": stage.name,
                "asked": stage.told(asked),
                "files": {part: [file.sha256, file.read] for part, file in files.items()},
                "keyhole": self.versions["keyhole"],
            }
        )

    def _computed(self, stage: Stage, asked: Asked, inputs: Mapping[str, Any]) -> dict[str, Any]:
        words = stage.title.lower()
        self.tell(words)
        result = stage.run(self.files, asked, inputs, lambda step: self.tell(f"{words}: {step}"))
        figures, tables = stage.figures(result), [table.to_plain() for table in result.tables()]
        record = {
            "stage": stage.name,
            "title": stage.title,
            "key": self._key(stage, asked),
            "keyhole": self.versions["keyhole"],
            "asked": stage.told(asked),
            "result": words_only(figures),
            "tables": words_only(tables),
            "notes": collect_notes(figures, tables),
        }
        if stage.outputs is not None:
            folder = self.store.outputs(stage.name)
            stage.outputs.save(result, folder)
            record["files"] = stage.outputs.hashes(folder)
        return self.store.keep(record, _pictures(stage, result))

    def finish(self) -> ReviewResult:
        """Write the pages, and the results last: they are there when all is done."""
        from keyhole.reviews.report import make_pages, page_hashes

        self.tell("writing the report")
        found = ReviewResult(
            review=self.review,
            folder=self.store.folder,
            records=self.records,
            limits=tuple(find_limits(self.review, restored(self.records))),
            reused=tuple(self.reused),
            versions=self.versions,
            files={
                part: {"file": self.files[part].file, "sha256": self.files[part].sha256}
                for part in self.given
            },
            pages={},
            made={},
            advice=tuple(f"The report has no charts. {text}" for text in extra_problems("charts")),
        )
        found = replace(found, made=self._made(found))
        pages = make_pages(self.store, found)
        found = replace(found, pages=page_hashes(pages))
        content = store.to_json(found.content())
        if not self.store.holds(store.RESULTS, content):
            self.store.drop_report()  # old results beside new pages would be half a dossier
        for name, text in pages.items():
            self.store.write(name, text)
        self.store.write(store.RESULTS, content)
        return found

    def _made(self, found: ReviewResult) -> dict[str, str]:
        """Return the date and who ran the review: those stored, where nothing else is new."""
        stored, now = store.read_json(self.store.folder / store.RESULTS), found.content()
        if store.fits(stored, {"made": {"date": str, "by": str}}):
            apart = {"made", "pages", "sha256"}
            if all(stored.get(name) == now.get(name) for name in {*stored, *now} - apart):
                return dict(stored["made"])
        try:
            by = self.review.run_by or getpass.getuser()
        except (OSError, KeyError):
            by = "unknown"
        return {"date": datetime.date.today().isoformat(), "by": by}


def _pictures(stage: Stage, result: Result) -> dict[str, store.Draw]:
    """Return how each picture of a result is drawn into a file, by the file's name."""
    if stage.draw is None or extra_problems("charts"):
        return {}
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):  # a chart is checked when it is saved, not each of its parts as well
        drawn = stage.draw(result)
    several = drawn if isinstance(drawn, Mapping) else {"": drawn}
    return {
        f"{stage.name}-{name}" if name else stage.name: partial(_save, chart)
        for name, chart in several.items()
    }


def _save(chart: Any, path: Path) -> None:
    """Save a picture, and beside it its spec, from which a page draws it anew."""
    spec = chart.to_dict()
    for place in (path.with_suffix(".json"), path):
        save_chart(spec, place, force=True)
