"""Settings of a review: every one resolved once, from the fit values of the review file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyhole.core.options import Question
from keyhole.data import Microdata
from keyhole.protection.plan import Plan
from keyhole.reviews.files import ReviewSource, named_scenario
from keyhole.reviews.schema import CONTROLLED, DERIVE, REPEATED, STEPS, question_of
from keyhole.synthesis.synthesise import DRAWING


@dataclass(frozen=True, slots=True)
class DataSettings:
    """The file under review and how it is read."""

    file: str
    name: str | None = None
    missing_codes: Any = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    engine: str = "auto"
    memory: str | None = None
    codebook: str | None = None
    derive: Mapping[str, str] = field(default_factory=dict)

    def reading(self) -> dict[str, Any]:
        """Return how the file is read, as far as its values depend on it."""
        named = ("missing_codes", "kinds", "roles", "encoding", "delimiter", "sheet", "codebook",
                 "derive")  # fmt: skip
        return {name: getattr(self, name) for name in named}

    def declared(self) -> dict[str, Any]:
        """Return what `keyhole.load` is told besides the file."""
        apart = ("file", "engine", "memory", "codebook", "derive")
        return {k: v for k, v in dataclasses.asdict(self).items() if k not in apart}


@dataclass(frozen=True, slots=True)
class ScenarioSettings:
    """The data environment, the scenarios looked at, and the one the keys are those of."""

    store: str
    target: str | None
    names: tuple[str, ...]
    chosen: str | None = None


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """What is released, to whom and for what.

    `steps` are the sections that make it, each starting from what the one before left. They are
    None in a review that names one product by itself, or has no ``[release]``: everything is then
    made of the file as it is. `product` is what is released: the `file` as it is, the variables of
    the `selection`, or what the `protection` or the `synthesis` makes. Variables left out by a
    selection among the steps are dropped by the plan of the protection.
    """

    product: str = "file"
    steps: tuple[str, ...] | None = None
    take: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    not_knowable: Mapping[str, str] = field(default_factory=dict)
    to: str | None = None
    purpose: str | None = None
    version: str | None = None
    contact: str | None = None
    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    board: tuple[str, ...] = ()

    @property
    def drops(self) -> bool:
        """Whether columns are left out by the plan of the protection, besides its own steps."""
        return self.steps is not None and (
            bool(self.drop) or not {"solve", "selection"}.isdisjoint(self.steps)
        )

    @property
    def protects(self) -> bool:
        """Whether the protected file is released, or what the synthesis starts from."""
        return self.steps is not None and (self.drops or "protection" in self.steps)


@dataclass(frozen=True, slots=True)
class Review:
    """A review file, checked and resolved; its `path` is no part of what the review says."""

    title: str
    path: Path
    sha256: str
    data: DataSettings
    keys: tuple[str, ...]
    exposure: Question
    uniques: Question | None = None
    drivers: Question | None = None
    attributes: Question | None = None
    solve: Question | None = None
    selection: Question | None = None
    frontier: Question | None = None
    study: Question | None = None
    attacks: Question | None = None
    synthesis: Question | None = None
    scenarios: ScenarioSettings | None = None
    screen: Question | None = None
    protection: Question | None = None
    table: tuple[Question, ...] = ()
    tabulate: tuple[Question, ...] = ()
    release: ReleaseSettings = field(default_factory=ReleaseSettings)
    run_by: str | None = None

    @property
    def tabulated(self) -> list[str]:
        """The columns by which tables of the report, and those to be published, count records."""
        by = [one.by for one in (self.exposure, self.selection) if one is not None and one.by]
        strata = () if self.study is None or self.study.puf is not None else self.study.strata
        tables = [(*one.rows, *(one.cols or ())) for one in self.table if counts_published(one)]
        return list(dict.fromkeys([*by, *strata, *(name for one in tables for name in one)]))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values; sections that were not asked for are null."""
        found = {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}
        found |= {name: [_plain(one) for one in getattr(self, name)] for name in REPEATED}
        if found["synthesis"] is not None:
            # Stored reviews have how implicates are drawn apart.
            apart = {name: found["synthesis"].pop(name) for name in DRAWING}
            found["synthesis"]["options"] = apart
        if self.protection is not None and self.protection.plan:
            found["protection"]["plan"] = Plan.parse(self.protection.plan).told()
        if found["scenarios"] is not None and "://" in found["scenarios"]["store"]:
            found["scenarios"]["store"] = "the environment"  # an address may hold a password
        for section, names in _NEWER.items():
            part = found[section] if section else found
            for name in names:
                # A release without any steps says so.
                if part is not None and not part[name] and (part[name] is None or name != "steps"):
                    del part[name]
        return {k: v for k, v in found.items() if k not in ("path", "sha256", "run_by")}


_NEWER = {
    "synthesis": ("hold_out",),
    "release": ("steps", "drop", "take", "not_knowable"),
    "data": (DERIVE, "codebook"),
    "": ("solve", "attributes", "attacks", *REPEATED),
}
"""By section settings that older reviews do not have: they are stored where they are given."""


def counts_published(asked: Question) -> bool:
    """Tell whether a table counts records, and is to be published."""
    return asked.protect != "none" and asked.magnitude is None and asked.weight is None


def _plain(settings: Any) -> Any:
    if isinstance(settings, Question):
        return settings.public()
    is_one = dataclasses.is_dataclass(settings) and not isinstance(settings, type)
    return dataclasses.asdict(settings) if is_one else settings


Values = dict[str, Any]


def resolve(source: ReviewSource, sections: Mapping[str, Values], data: Microdata) -> Review:
    """Build the review from the fit values of its sections.

    Where a setting is left out, a column's role answers: the keys are the columns with the role
    `key`, weight and household the one column with that role; columns with the role `sensitive`
    ask for attribute disclosure.
    """
    top = sections[""]
    keys = top.get("keys") or sections.get("keys", {}).get("columns") or data.role("key")
    exposure = sections.get("exposure", {})

    def asked(section: str, **given: Any) -> Question | None:
        return question_of(section, {**given, **sections[section]}) if section in sections else None

    selection = None
    if "selection" in sections:
        selection = resolve_selection(sections["selection"], tuple(keys))
    for name in ("weight", "household"):
        told = name == "weight" and "fraction" in exposure
        if len(data.role(name)) == 1 and not told:
            exposure = {name: data.role(name)[0], **exposure}
    by_role = tuple(name for name in data.role("sensitive") if name not in keys)
    sections = {**({"attributes": {}} if by_role else {}), **sections}
    return Review(
        title=top.get("title", f"Review of {data.name}"),
        run_by=top.get("run_by"),
        path=source.path,
        sha256=source.sha256,
        data=DataSettings(**sections["data"], derive=sections.get(DERIVE, {})),
        keys=tuple(keys),
        exposure=question_of("exposure", exposure),
        uniques=asked("uniques"),
        drivers=asked("drivers"),
        attributes=asked("attributes", sensitive=by_role),
        solve=asked("solve", keys=tuple(keys), limit=exposure.get("limit")),
        selection=selection,
        frontier=None if selection is None else asked("frontier", limit=selection.limit),
        screen=asked("screen"),
        release=_release(sections),
    )


def _release(sections: Mapping[str, Values]) -> ReleaseSettings:
    """Say what is released and by which steps; with a product by itself, of the file as it is."""
    given = sections.get("release", {})
    found = dict(question_of("release", given).values)
    found["not_knowable"] = found["not_knowable"] or {}
    made = [name for name in STEPS if name in sections]
    made = [name for name in made if name != "selection" or "solve" not in made]
    if "release" not in sections or found["product"] is not None:
        last = ["file", *(name for name in made if name != "solve")][-1]
        return ReleaseSettings(**{**found, "product": found["product"] or last})
    named = made if found["steps"] is None else found["steps"]
    steps = tuple(name for name in STEPS if name in named)
    release = ReleaseSettings(**{**found, "product": "file", "steps": steps})
    product = "synthesis" if "synthesis" in steps else "protection" if release.protects else "file"
    return dataclasses.replace(release, product=product)


def resolve_selection(given: Values, keys: tuple[str, ...]) -> Question:
    """Build the question of a selection; its candidates are by default the keys not kept."""
    # Without a limit the review is refused; the rest of the section is checked all the same.
    found = question_of("selection", {"limit": 0.0, **given})
    methods, candidates = found.methods or found.method, found.candidates
    if candidates is None:
        candidates = tuple((name,) for name in keys if name not in found.keep)
    worth = found.values["values"] or {}
    return found.replace(method=methods, methods=methods, candidates=candidates, values=worth)


def resolve_study(given: Values) -> Question:
    """Build the settings of a study; what is missing though needed is none."""
    found: Values = {"candidates": {}, **given, "scenario": named_scenario(given.get("link"))}
    if found["scenario"] is not None:
        del found["link"]  # known when its key is derived
    if isinstance(found.get("scores"), str):
        found["scores_file"] = found.pop("scores")
    question = question_of("study", found)
    empty = {name: question.values[name] or () for name in ("puf_id", "eif_id", "link")}
    return question.replace(**empty)


def resolve_attacks(given: Values, review: Review, data: Microdata) -> Question:
    """Build the question of attacks: on the keys, for the sensitive columns, all that can be."""
    found = question_of("attacks", {"link": list(review.keys), **given})
    known = (*(found.link or ()), *(found.second_link or ()))
    if "secret" not in given and review.attributes is not None:
        sensitive = review.attributes.sensitive or ()  # none where the section is unfit
        wanted = (name for name in sensitive if name not in known)
        found = found.replace(secret=tuple(wanted))
    if "numeric" not in given:
        there = [name for name in (*known, *found.secret) if name in data.names]
        measures = (n for n in there if data.variable(n).kind == "measure")
        numeric = tuple(n for n in measures if data.column(n).dtype.is_numeric())
        found = found.replace(numeric=numeric)
    lacks = {"linked": not found.second_link, "inferred": not found.secret}
    made = found.attacks or tuple(name for name in CONTROLLED if not lacks.get(name))
    return found.replace(attacks=made)


def resolve_protection(given: Values, review: Review) -> Question:
    """Build the question of a protection: `plan` becomes its text, `plan_file` its file."""
    found = {name: value for name, value in given.items() if name not in ("plan", "step")}
    own = {"limit": review.exposure.limit, "plan": "", "plan_file": given.get("plan")}
    question = question_of("protection", {**own, **found})
    return question.replace(keys=question.keys or review.keys)


def resolve_synthesis(given: Values, review: Review) -> Question:
    """Build the question of a synthesis: key, weight, fraction and cutoff are the review's."""
    found: Values = {"keys": review.keys, **given}
    if "synthesis" in (review.release.steps or ()):
        found.setdefault("cutoff", max(2, review.exposure.cutoff))
    if isinstance(found.get("rules"), str):
        found["rules_file"] = found.pop("rules")
    if "least_probability" in found and not {"weight", "fraction"} & set(found):
        found |= {"weight": review.exposure.weight, "fraction": review.exposure.fraction}
    return question_of("synthesis", found)
