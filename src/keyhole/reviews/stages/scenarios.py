"""The stage that sets scenarios side by side: their stories, their keys, the worst of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from keyhole.core.marks import SPREAD
from keyhole.core.tables import Table
from keyhole.exposure.scenarios import ScenarioComparison, compare_scenarios
from keyhole.results import Result
from keyhole.reviews.files import Files, scenario_key_of
from keyhole.reviews.settings import Review
from keyhole.reviews.source import SCENARIO
from keyhole.reviews.stages.stage import Asked, Earlier, Progress, Stage, own_picture

if TYPE_CHECKING:
    import altair


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


SCENARIO_STAGE = Stage(
    "scenarios",
    "Scenarios",
    _ask,
    _run,
    reads=("data", "scenario"),
    draw=own_picture,
    returns="keyhole.reviews.stages.scenarios.ScenarioStories",
    since="0.2",  # a sample's p(identification | attempt) follows from a model of the key
)
