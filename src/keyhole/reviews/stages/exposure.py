"""Stages that look at a file: columns, screening, exposure, fix, uniques, drivers, scenarios."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.core.marks import COUNT, SPREAD
from keyhole.core.tables import Table
from keyhole.exposure.scenarios import ScenarioComparison, compare_scenarios
from keyhole.results import Result, share
from keyhole.reviews.count_sheets import CountSheet, count_alone, smallest_shown
from keyhole.reviews.files import SCENARIO, Files, scenario_key_of
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.stage import (
    Asked,
    Earlier,
    Pictures,
    Progress,
    Stage,
    counted,
    measured,
    own_picture,
    runs,
)

if TYPE_CHECKING:
    import altair

    from keyhole.exposure.attributes import Attributes
    from keyhole.exposure.cells import Exposure
    from keyhole.exposure.drivers import Drivers
    from keyhole.exposure.uniques import MinimalUniques


ATTRIBUTES = "attributes"


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """A column in a line: no values, only how many categories there are and how many miss."""

    name: str
    label: str
    kind: str
    role: str | None
    categories: int
    missing: Annotated[int, COUNT]


@dataclass(frozen=True, slots=True, repr=False)
class Description(Result):
    """The size of a file, and the columns a review is about."""

    name: str
    records: Annotated[int, COUNT]
    columns: int
    described: tuple[ColumnDescription, ...]

    def tables(self, smallest: int = 0) -> list[Table]:
        """Return the columns described, without counts below the smallest shown."""
        rows = [
            [c.name, c.label, c.kind, c.role or "", f"{c.categories:,}",
             count_alone(c.missing, smallest)]
            for c in self.described
        ]  # fmt: skip
        heads = ["column", "meaning", "kind", "role", "categories", "missing"]
        return [Table("The columns this review is about", heads, rows)]


def _run_data(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    """Describe the columns named, without showing a value."""
    data, described = files["data"].data, []
    for name in asked["columns"]:
        variable, codes = data.variable(name), data.codes(name)
        missing = int((codes.values == len(codes.levels)).sum()) if codes.has_missing else 0
        about = (variable.label, variable.kind, variable.role)
        described.append(ColumnDescription(name, *about, len(codes.levels), missing))
    return Description(data.name, data.records, len(data.names), tuple(described))


def _ask_data(review: Review, _: Earlier) -> Asked:
    exposure, chosen = review.exposure, review.selection
    names = [*review.keys]
    if chosen is not None:
        names += [*chosen.keep, *(name for group in chosen.candidates for name in group)]
    used = {"attributes": ("sensitive",), "drivers": ("variables",), "protection": ("keys",)}
    for section, options in (used | {"synthesis": ("keys", "targets", "strata")}).items():
        given = getattr(review, section)
        names += [n for one in options for n in (given and given.values[one]) or ()]
    named = (exposure.weight, exposure.household, exposure.by, chosen.by if chosen else None)
    names += [name for name in named if name is not None]
    return {"columns": list(dict.fromkeys(names)), "labels": dict(review.data.labels)}


def ask_exposure(review: Review, _: Earlier) -> Asked:
    """Ask how exposed the file is on the keys."""
    apart = ("limit", "named_groups")  # judged and worded by the review
    asked = {n: v for n, v in review.exposure.values.items() if n not in apart}
    return {"keys": list(review.keys), **asked}


run_exposure = runs("keyhole.exposure.cells.risk")


def _ask_fix(review: Review, earlier: Earlier) -> Asked | None:
    limit = review.exposure.limit
    if limit is None or earlier["exposure"].rp <= limit:
        return None
    return {"keys": list(review.keys), "limit": limit, "cutoff": review.exposure.cutoff}


def ask_uniques(review: Review, earlier: Earlier) -> Asked | None:
    """Ask for minimal uniques, if the review does; with the fraction that the weights give."""
    if review.uniques is None:
        return None
    asked = {"keys": list(review.keys), "cutoff": review.exposure.cutoff, **review.uniques.values}
    if asked["fraction"] is None:
        exposure = earlier.get("exposure")
        population = None if exposure is None else exposure.population
        given = None if population is None else population.sampling_fraction
        # Weights that add up to less than the records give no sampling fraction.
        asked["fraction"] = given if given is not None and given <= 1 else None
    for name in ("availability", "identifiability"):
        given = asked[name]
        if isinstance(given, Mapping):
            asked[name] = [given.get(key, 1.0) for key in review.keys] if given else None
    return asked


def _without_rare_category(found: MinimalUniques) -> MinimalUniques:
    """Leave out a category that flags few records only: it is as good as their value."""
    summary = found.level_summary
    if (summary.worst_category_flags or 0) >= smallest_shown(found.cutoff):
        return found
    summary = dataclasses.replace(summary, worst_category=None)
    return dataclasses.replace(found, level_summary=summary)


def draw_uniques(found: MinimalUniques) -> Pictures:
    """Draw each variable's share of the scores, but for those in few minimal uniques."""
    smallest = smallest_shown(found.cutoff)
    shown = {n: many for n, many in found.by_variable.items() if not 0 < many < smallest}
    kept = dataclasses.replace(found, keys=tuple(shown), by_variable=shown)
    return kept.plot() if shown else {}


def draw_exposure(found: Exposure) -> altair.TopLevelMixin:
    """Draw exposure; that a record or two are left out is not told in its words."""
    left_out = found.records - found.complete
    if left_out < smallest_shown(found.cutoff):
        found = dataclasses.replace(found, complete=found.records)
    return found.plot()


def _ask_screen(review: Review, _: Earlier) -> Asked | None:
    given = review.screen
    if given is None:
        return None
    keys = () if review.scenarios is not None and review.scenarios.chosen else review.keys
    # Named, so that in another year the question is another one.
    year = datetime.date.today().year if given.year is None else given.year
    return {"keys": list(keys), **given.values, "year": year}


def ask_drivers(review: Review, _: Earlier) -> Asked | None:
    """Ask which levels put records into small cells, if the review does."""
    if review.drivers is None:
        return None
    by = review.exposure.by
    others = [name for name in review.tabulated if name != by]
    return {
        "keys": list(review.keys),
        "cutoff": review.exposure.cutoff,
        **review.drivers.values,
        # Tables tell of their levels, and withhold others than this stage would.
        "told_elsewhere": by,
        **({"tabulated": others} if others else {}),
    }


def _run_drivers(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    from keyhole.exposure.drivers import drivers

    options = dict(asked)
    elsewhere = (options.pop("told_elsewhere"), *options.pop("tabulated", ()))
    # Small levels are taken out below, by the rule of the report.
    found = drivers(measured(files), **options, name_small_groups=True)
    return without_small_levels(found, elsewhere)


def without_small_levels(found: Drivers, elsewhere: Collection[str | None] = ()) -> Drivers:
    """Leave out the levels of which something small could be told, beside the totals too."""
    smallest = smallest_shown(found.cutoff)
    told: set[tuple[str, int]] = set()
    for name in found.variables:
        if name not in elsewhere:
            levels = [one for one in found.levels if one.variable == name]
            counts = [(one.records, one.at_risk) for one in levels]
            told |= {(name, levels[i].place) for i in tellable(counts, smallest)}
    least = smallest / max(found.records, 1)

    def stays(one: Any) -> bool:
        places = getattr(one, "places", None) or (one.place,)
        return {(one.variable, place) for place in places} <= told and (
            getattr(one, "gain", least) >= least
        )

    return found.keeping(stays)


def tellable(levels: Sequence[tuple[int, int]], smallest: int) -> list[int]:
    """Return the places of levels (records, those counted) that may be told beside the totals."""
    sheet = CountSheet(smallest)
    sizes = [sheet.count(records, floor=1) for records, _ in levels]
    risky = [sheet.count(part, of=size) for (_, part), size in zip(levels, sizes, strict=True)]
    for column in (sizes, risky):
        sheet.add_up(column, sum(count.value for count in column))
    return [i for i in range(len(levels)) if sizes[i].exact and risky[i].exact]


def hidden_share(count: int, part: float | None, smallest: int) -> list[str]:
    """Return a count with its share, neither of them if it is small."""
    few = 0 < count < smallest
    return [count_alone(count, smallest), "" if few else share(part)]


def ask_attributes(review: Review, _: Earlier) -> Asked | None:
    """Ask what the keys tell of the sensitive columns, if there are any."""
    given = review.attributes
    if given is None:
        return None
    options = {name: value for name, value in given.values.items() if name != "limit"}
    on_keys = {"keys": list(review.keys), "cutoff": review.exposure.cutoff}
    return {**options, **on_keys, "sensitive": list(given.sensitive)}


def _without_small_levels(found: Attributes) -> Attributes:
    """Leave out the levels of keys of which a small count could be told."""
    smallest, each = smallest_shown(found.cutoff), {}
    for column, one in found.sensitive.items():
        levels = []
        for name in found.keys:
            mine = [level for level in one.levels if level.column == name]
            counts = [(level.records, level.homogeneous) for level in mine]
            others = found.records - sum(level.records for level in mine)
            rest = (others, one.hidden_by_rp - sum(level.homogeneous for level in mine))
            told = tellable([*counts, rest] if others else counts, smallest)
            levels += [mine[i] for i in told if i < len(mine)]
        each[column] = dataclasses.replace(one, levels=tuple(levels))
    return dataclasses.replace(found, sensitive=each, grid=None)


def draw_attributes(found: Attributes) -> Pictures:
    """Draw what the key discloses, but for columns with a count that the table hides."""
    smallest, each = smallest_shown(found.cutoff), found.sensitive
    shown = {n: one for n, one in each.items() if not 0 < one.homogeneous_records < smallest}
    return dataclasses.replace(found, sensitive=shown).plot() if shown else {}


@dataclass(frozen=True, slots=True)
class ScenarioStory:
    """A scenario with its points, its key and how the key was derived, as tables."""

    name: str
    title: str
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ScenarioStories(Result):
    """Scenarios side by side, and the story of each."""

    comparison: Annotated[ScenarioComparison, SPREAD]
    stories: tuple[ScenarioStory, ...]

    def tables(self) -> list[Table]:
        """Return the scenarios side by side."""
        return self.comparison.tables()

    def plot(self) -> altair.TopLevelMixin:
        """Draw the scenarios side by side."""
        return self.comparison.plot()


def _ask(review: Review, _: Earlier) -> Asked | None:
    if review.scenarios is None or not review.scenarios.names:
        return None
    names = ("cutoff", "weight", "fraction")
    asked = {name: getattr(review.exposure, name) for name in names}
    return {"scenarios": list(review.scenarios.names), **asked}


def _run(files: Files, asked: Asked, _: Earlier, __: Progress) -> Result:
    options = {name: value for name, value in asked.items() if name != "scenarios"}
    keys = (scenario_key_of(files, f"{SCENARIO}{name}") for name in asked["scenarios"])
    found = [key for key in keys if key is not None]
    comparison = compare_scenarios(files["data"].data, found, **options)
    stories = [ScenarioStory(k.name, k.scenario.title, tuple(k.tables())) for k in found]
    return ScenarioStories(comparison, tuple(stories))


EXPOSURE = "keyhole.exposure.cells.Exposure"
EXPOSURE_STAGES: tuple[Stage, ...] = (
    Stage(
        "screen", "Screening", _ask_screen, runs("keyhole.screening.screen.screen", whole=True),
        reads=("data",), draw=own_picture, returns="keyhole.screening.screen.Screening",
    ),
    Stage(
        "data", "The data", _ask_data, _run_data,
        returns="keyhole.reviews.stages.exposure.Description",
    ),
    Stage(
        "exposure", "Exposure", ask_exposure, run_exposure, draw=draw_exposure, returns=EXPOSURE
    ),
    Stage(
        "fix", "Cheapest fix", _ask_fix, runs("keyhole.exposure.fix.cheapest_fix"), ("exposure",),
        returns="keyhole.exposure.fix.Fixes",
    ),
    Stage(
        "uniques", "Minimal uniques", ask_uniques,
        runs("keyhole.exposure.uniques.uniques", progress=counted, then=_without_rare_category),
        ("exposure",), draw=draw_uniques,
        returns="keyhole.exposure.uniques.MinimalUniques",
    ),
    Stage(
        "drivers", "What drives exposure", ask_drivers, _run_drivers, draw=own_picture,
        since="0.2",  # which levels are told is decided on a count sheet
        returns="keyhole.exposure.drivers.Drivers",
    ),
    Stage(
        ATTRIBUTES, "Attribute disclosure", ask_attributes,
        runs("keyhole.exposure.attributes.attributes", then=_without_small_levels),
        draw=draw_attributes, returns="keyhole.exposure.attributes.Attributes",
    ),
    Stage(
        "scenarios", "Scenarios", _ask, _run, reads=("data", "scenario"), draw=own_picture,
        returns="keyhole.reviews.stages.exposure.ScenarioStories",
        since="0.2",  # a sample's p(identification | attempt) follows from a model of the key
    ),
)  # fmt: skip
