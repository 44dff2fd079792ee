"""Study: attack the file as an intruder would, and see whom the attack truly finds."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tomlkit.toml_document import TOMLDocument

from keyhole.core.equivalents import Equivalent, equivalent
from keyhole.core.options import Question
from keyhole.data import Variable, load
from keyhole.errors import InputError, OptionError
from keyhole.reidentification.question import OPTIONS_OF_METRIC
from keyhole.reviews.files import read_again
from keyhole.reviews.schema import METRICS, SECTIONS, question_of
from keyhole.reviews.settings import resolve_attacks
from keyhole.reviews.stages import restored
from keyhole.reviews.stages.attacks import ATTACKS, RELEASES, study_stage
from keyhole.reviews.study_chapters import controlled_chapter, metrics_table, releases_chapter
from keyhole.workbench import editing
from keyhole.workbench.fields import form_fields, take_fields
from keyhole.workbench.page import Action, Go, Page, ReviewChange, SentForm, View, leaving
from keyhole.workbench.projects import files_below, inside, keep_file
from keyhole.workbench.stored_results import stored_attacks, stored_limits, stored_records

SECTION = "study"
_METRICS = {
    "unicity": "unique in both files on some set of variables",
    "taxicab": "few variables differ",
    "euclidean": "the same, with distances between numbers",
    "adhoc": "your own scores",
}
MAIN = ("limit", "permutations")
"""The options that are always in sight; the others are those of some metrics."""
OTHERS = (*dict.fromkeys(
    name for names in OPTIONS_OF_METRIC.values() for name in names if name != "scores"
), "seed")  # fmt: skip
PEOPLE_MAIN, PREFIX = ("link", "second_link", "secret", "limit"), "people_"
_LISTS = ("puf_id", "eif_id", "numeric", "strata")


def _context(view: View) -> dict[str, Any]:
    given, choices = view.review.study, study_choices(view)
    stages = [study_stage(metric) for metric in (given.metrics if given else ())]
    return {
        "given": given,
        "choices": choices,
        "chosen": _chosen(view, choices),
        "metrics": [(name, _METRICS[name]) for name in METRICS],
        "scenarios": view.review.scenarios.names if view.review.scenarios else (),
        "scores": _scores(view, choices),
        "main_fields": form_fields(given or question_of(SECTION, {}), MAIN),
        "other_fields": form_fields(given or question_of(SECTION, {}), OTHERS),
        "back": urlencode({"eif": choices.eif or "", "iuf": choices.iuf or ""}),
        "absent": [stage for stage in stages if view.standing(stage).state == "absent"],
        "attacks": stored_attacks(view),
        "limits": [one for one in stored_limits(view) if one.what.startswith("Conditional")],
        **_side_by_side(view, stages),
        **_controlled(view),
        "equivalents": _equivalents(view),
    }


def _chosen(view: View, choices: Choices) -> Mapping[str, Any]:
    """Return what is ticked: the study's own settings, or for new files what is likely."""
    given = view.review.study
    if given is not None and (choices.eif, choices.iuf) == (given.eif, given.iuf):
        return {name: getattr(given, name) for name in (*_LISTS, "link", "metrics")}
    shared = {column.name: column for column in choices.shared}
    link = [name for name in view.review.keys if name in shared]
    return {
        "puf_id": [column.name for column in choices.puf_id],
        "eif_id": [column.name for column in choices.eif_id],
        "link": link,
        "numeric": [name for name in link if shared[name].kind == "measure"],
        "strata": [],
        "metrics": given.metrics if given else ("unicity",),
    }


def _side_by_side(view: View, stages: list[str]) -> dict[str, Any]:
    """Return the metrics and the releases beside one another, where all of them are of now."""
    if not all(map(view.is_current, stages)):
        return {"metrics_table": None, "releases": None}
    review, results = view.review, restored(stored_records(view))
    found = releases_chapter(review, results) if view.is_current(RELEASES) else None
    return {"metrics_table": metrics_table(review, results), "releases": found}


def _controlled(view: View) -> dict[str, Any]:
    """Return the form of attacks with a control, and what they gave."""
    asked = _asked_of_people(view)
    stored = restored(stored_records(view))
    return {
        "people_main": form_fields(asked, PEOPLE_MAIN, PREFIX),
        "people_more": form_fields(asked, None, PREFIX, (*PEOPLE_MAIN, "control")),
        "people": asked,
        "columns": view.data.variables,
        "is_controlled": view.review.attacks is not None,
        "controlled": controlled_chapter(view.review, stored),
    }


def _asked_of_people(view: View) -> Question:
    """Return the question of attacks with a control, or what one would begin with."""
    return view.review.attacks or resolve_attacks({}, view.review, view.data)


def _attack_people(view: View, form: SentForm) -> ReviewChange:
    """Take the attacks with a control that the form describes."""
    now, known = _asked_of_people(view).values, SECTIONS[ATTACKS]
    control = form.text(f"{PREFIX}control")
    if control:
        allowed_file(view, control, "the control")
    return ReviewChange(
        "attacks with a control", lambda one: take_fields(one, ATTACKS, known, form, PREFIX, now)
    )


_SCORED = ("score", "within", "near")


def _scores(view: View, choices: Choices) -> list[dict[str, Any]]:
    """Return how agreement is scored, a row for each column to link on.

    What a row cannot say (shares, tables of pairs) is `other`, and stays as the review has it.
    """
    given = view.review.study
    known = {} if given is None or not given.scores else dict(given.scores)
    found = []
    for column in choices.shared:
        told = dict(known.get(column.name, {}))
        row: dict[str, Any] = {"name": column.name, **dict.fromkeys(_SCORED), "other": False}
        steps = told.get("absolute") or told.get("days") or []
        if set(told) == {"exact"}:
            row["score"] = told["exact"]
        elif len(told) == 1 and len(steps) == 2 and steps[0][0] == 0:
            row |= {"score": steps[0][1], "within": steps[1][0], "near": steps[1][1]}
        else:
            row["other"] = bool(told)
        found.append(row)
    return found


def _read_scores(view: View, form: SentForm) -> dict[str, Any]:
    """Read how agreement is scored."""
    given, choices = view.review.study, study_choices(view)
    known = {} if given is None or not given.scores else dict(given.scores)
    found: dict[str, Any] = {}
    rows = zip(_scores(view, choices), choices.shared, strict=True)
    for place, (row, column) in enumerate(rows):
        score, within, near = (form.number(f"{name}-{place}") for name in _SCORED)
        if score is None:
            found |= {column.name: known[column.name]} if row["other"] else {}
        elif within is None:
            found[column.name] = {"exact": score}
        else:
            how = "days" if column.kind == "date" else "absolute"
            found[column.name] = {how: [[0, score], [within, 0 if near is None else near]]}
    return found


def _attack(view: View, form: SentForm) -> ReviewChange:
    """Take the study that the form describes."""
    files = {
        "eif": allowed_file(view, form.text("eif"), "the intruder's file"),
        "iuf": allowed_file(view, form.text("iuf"), "the file of true matches"),
    }
    scores, given = _read_scores(view, form), view.review.study

    def edit(document: TOMLDocument) -> None:
        sent = {**files, **{name: form.texts(name) for name in _LISTS}}
        editing.put_changed(document, SECTION, sent, {} if given is None else given.values)
        known = {name: SECTIONS[SECTION][name] for name in (*MAIN, *OTHERS)}
        take_fields(document, SECTION, known, form)
        _put_link(document, form, given)
        metrics, now = form.texts("metrics"), () if given is None else given.metrics
        if set(metrics) != set(now):
            editing.remove_setting(document, SECTION, "metric")
            editing.put_setting(document, SECTION, "metrics", editing.in_former_order(metrics, now))
        if "adhoc" not in metrics:
            editing.remove_setting(document, SECTION, "scores")
        elif "score-0" in form.values and scores != dict((given and given.scores) or {}):
            editing.put_setting(document, SECTION, "scores", scores)
        if not form.texts("strata"):
            editing.remove_setting(document, SECTION, "named_groups")  # there are no groups to name

    return ReviewChange("how the file is attacked", edit)


def _put_link(document: TOMLDocument, form: SentForm, given: Question | None) -> None:
    """Set the linking variables, or the scenario whose key they are."""
    scenario, link = form.text("scenario"), form.texts("link")
    before, now = (None, ()) if given is None else (given.scenario, given.link)
    if scenario is not None and scenario != before:
        editing.put_setting(document, SECTION, "link", f"scenario:{scenario}")
    elif scenario is None and (given is None or before is not None or set(link) != set(now)):
        editing.put_setting(document, SECTION, "link", editing.in_former_order(link, now))


def _equivalents(view: View) -> list[Equivalent]:
    """Write the verb, once a metric, where it can say all that the review does."""
    given, data, whole = view.review.study, view.review.data, view.review_lines()
    # A command line can say it where files are read as they are and columns are linked on.
    own = ("missing_codes", "encoding", "delimiter", "sheet")
    reading = [getattr(data, name) for name in (*own, "kinds", "derive")]
    if given is None or any(reading) or any(getattr(given, name) for name in (*own, "scenario")):
        return [whole]
    asked = {**given.values, "puf": given.puf or data.file, "scenario": None}
    scores = {metric: given.scores_file if metric == "adhoc" else None for metric in given.metrics}
    told = [(metric, file) for metric, file in scores.items() if file or metric != "adhoc"]
    return [*(equivalent("study", {**asked, "metric": m, "scores": f}) for m, f in told), whole]


Columns = tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """What the form of a study offers; no columns unless both files can be read."""

    files: tuple[str, ...]
    eif: str | None  # those chosen so far
    iuf: str | None
    puf_id: Columns = ()
    eif_id: Columns = ()
    shared: Columns = ()
    problems: tuple[str, ...] = ()


def study_choices(view: View) -> Choices:
    """Look at the files that the page's address names, else at those of the review's study."""
    given, files = view.review.study, _files(view)
    chosen = {part: getattr(given, part, None) for part in ("eif", "iuf")}
    chosen |= {part: name for part in chosen if (name := view.query.get(part)) in files}
    eif, iuf = chosen.values()
    if eif is None or iuf is None:
        return Choices(files, eif, iuf)
    try:
        outside, truth = _columns(view, "eif", eif), _columns(view, "iuf", iuf)
    except InputError as error:
        return Choices(files, eif, iuf, problems=tuple(error.problems))
    read = view.look.files.get("puf")
    puf = (view.data if read is None else read.data).variables
    # Offered as ids is what a file shares with the truth, and to link on what both files have.
    # What all three have is no id: values before perturbation stand in the truth too.
    shared = _of(puf, outside)
    names = {one.name for one in shared}
    known = [_of(one, truth) for one in (puf, outside)]
    ids = [tuple(c for c in one if c.name not in names) or one for one in known]
    return Choices(files, eif, iuf, ids[0], ids[1], shared)


def allowed_file(view: View, name: str | None, purpose: str) -> str:
    """Return the file of a form if it is one of those that the form offered."""
    if name is None or name not in _files(view):
        raise OptionError(f"{purpose} must be one of the files below the review's folder.")
    return name


def _files(view: View) -> tuple[str, ...]:
    """List the data files below the review's folder; those that it names already come first."""
    review, given = view.review, view.review.study
    named = [name for name in (given.eif, given.iuf) if name] if given else []
    found = files_below(view.project.path.parent)["data"]
    attacked = review.data.file if given is None or given.puf is None else given.puf
    others = [name for name in found if name not in (*named, attacked)]
    return tuple(dict.fromkeys([*named, *others]))


def _columns(view: View, part: str, name: str) -> Columns:
    """Return the columns of a file: of the study's own as they were read, of others anew."""
    read = view.look.files.get(part)
    if read is not None and read.file == name:
        return read.data.variables
    how = view.review.study or question_of(SECTION, {})
    read_as = {name: how.values[name] for name in ("encoding", "delimiter", "sheet")}
    with view.project.reading():
        path = inside(view.project.path.parent, name)
        return read_again(path, functools.partial(_read_columns, **read_as))


def _read_columns(path: Path, **how: Any) -> Columns:
    return load(path, **how).variables


def _of(columns: Iterable[Variable], others: Iterable[Variable]) -> Columns:
    names = {one.name for one in others}
    return tuple(one for one in columns if one.name in names)


def _bring(view: View, form: SentForm) -> Go:
    """Keep files that are sent beside the review, for nobody else to read, and look at them."""
    if not form.files:
        raise OptionError(
            "no file was sent. Choose the intruder's file, the true matches, or both."
        )
    chosen = {part: view.query.get(part, "") for part in ("eif", "iuf")}
    for part, sent in form.files.items():
        chosen |= {part: keep_file(view.project.path.parent, *sent).name} if part in chosen else {}
    return Go(f"study?{urlencode(chosen)}")


_STAGES = (*map(study_stage, METRICS), RELEASES, ATTACKS)
_ACTIONS: dict[str, Action] = {
    "attack": _attack,
    "bring": _bring,
    "stop": leaving("no study", SECTION),
    "people": _attack_people,
    "spare": leaving("no attacks with a control", ATTACKS),
}
STUDY = Page("study", "Study", _STAGES, _context, _ACTIONS)
