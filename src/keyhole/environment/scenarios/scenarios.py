"""Scenarios of attack, after the eleven points of Elliot & Dale (1999).

Who would attack the file, why, with what, and how likely that is. What defines the key is
machine-readable: the restricted databases and public sources an intruder holds, or columns
named outright. Elliot, Mackey & Purdam (2011) write p(identification) as
p(identification | attempt) · p(attempt); p(attempt) is an interval here, with its reasons, and
1 where nobody argues it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

from keyhole.core.names import nearest, quoted, shown
from keyhole.core.tables import Table
from keyhole.environment.resources import resource_problems
from keyhole.errors import InputError, OptionError

if TYPE_CHECKING:
    from keyhole.data.microdata import Microdata
    from keyhole.environment.codings.graph import CodingGraph
    from keyhole.environment.model import Environment, Target
    from keyhole.environment.scenarios.recoding import ScenarioKey


POINTS: Mapping[str, str] = {
    "motivation": "Motivation",
    "means": "Means",
    "opportunity": "Opportunity",
    "target_variables": "Target variables",
    "other_means": "Goals achievable by other means",
    "data_divergence": "Effect of data divergence",
    "attack_type": "Attack type",
    "key_variables": "Key variables",
    "likelihood_of_attempt": "Likelihood of an attempt",
    "likelihood_of_success": "Likelihood of success",
    "consequences": "Consequences",
}
"""The eleven points, in Elliot & Dale's order: attributes of a `Scenario` and their words."""

ORIGINS = ("collected", "self-disclosed", "observed", "secondary")
_EXAMPLE = (
    "This is an example that comes with keyhole: nothing in it was found out about your file. "
    "Edit it before a release hangs on it."
)
_ARGUED = (
    "This began as an example that comes with keyhole: only p(attempt) was argued for your file. "
    "Edit the rest before a release hangs on it."
)


@dataclass(frozen=True, slots=True)
class RestrictedStage:
    """A restricted database the intruder holds: one form's, or one of a class of forms.

    Parameters
    ----------
    form
        The name of a form; then nothing else is given.
    sector, purpose, classifications
        Which forms make up the class; all forms if nothing is given.
    threshold
        The share of the class that must hold a coding before it counts.
    """

    form: str = ""
    sector: str = ""
    purpose: str = ""
    classifications: Mapping[str, str] = field(default_factory=dict)
    threshold: float = 0.0

    def problems(self) -> Iterator[str]:
        """Say what is wrong with the stage."""
        if self.form and (self.sector or self.purpose or self.classifications or self.threshold):
            yield "restricted must name a form or a class of forms. Got both instead."
        if not (_is_number(self.threshold) and 0 <= self.threshold <= 1):
            yield "threshold must be a number from 0 to 1. Got another value instead."

    def words(self) -> str:
        """Say in words which databases are meant."""
        if self.form:
            return f"the database behind form {shown(self.form)}"
        named = {"sector": self.sector, "purpose": self.purpose, **self.classifications}
        parts = [f"{name} {shown(value)}" for name, value in named.items() if value]
        forms = "forms with " + " and ".join(parts) if parts else "all forms"
        return f"a database like those of {forms} (prevalence threshold {self.threshold:g})"


@dataclass(frozen=True, slots=True)
class PublicStage:
    """The public sources the intruder can afford: those whose resource index is below `resources`.

    Parameters
    ----------
    resources
        What the intruder can spend, on the scale of the resource index (3 to 10).
    origins
        Only sources of these origins ("observed", "self-disclosed", ...); all if empty.
    """

    resources: int
    origins: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        """Say what is wrong with the stage."""
        problems = resource_problems(self.resources)
        yield from problems
        if not problems and self.resources != int(self.resources):
            yield "resources of a scenario must be whole. Got another number instead."
        unknown = [one for one in self.origins if one not in ORIGINS]
        if unknown:
            yield f"origins must be among {quoted(ORIGINS)}. Got {quoted(unknown, 5)} instead."

    def words(self) -> str:
        """Say in words which sources are meant."""
        kind = f" that are {' or '.join(self.origins)}" if self.origins else ""
        return f"public sources{kind} with a resource index below {self.resources}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Who would attack the file, why, how, and with what key.

    The eleven points are text, for people. The key is defined by `restricted` and `public`
    stages, which are combined, and by `columns` named outright.

    Parameters
    ----------
    name, label
        What to call it, and a longer title.
    restricted, public
        What the intruder holds; see `RestrictedStage` and `PublicStage`.
    columns
        Columns of the target that the intruder is taken to know, each with the coding in
        which; "" is the detail of the file itself.
    p_attempt
        The lowest and highest probability of an attempt. Below 1 it must be argued.
    reasons
        Why it is so.
    example
        Whether the words are those of an example, so that every report says so.

    Examples
    --------
    >>> friend = Scenario("a friend", motivation="curiosity", columns={"sex": "", "age": ""})
    >>> friend.p_attempt
    (1.0, 1.0)
    >>> Scenario("a friend", columns={"sex": ""}, p_attempt=0.1)
    Traceback (most recent call last):
    ...
    keyhole.errors.InputError: scenario 'a friend': p_attempt below 1 must be argued. Give reasons.
    """

    name: str
    label: str = ""
    motivation: str = ""
    means: str = ""
    opportunity: str = ""
    target_variables: str = ""
    other_means: str = ""
    data_divergence: str = ""
    attack_type: str = ""
    key_variables: str = ""
    likelihood_of_attempt: str = ""
    likelihood_of_success: str = ""
    consequences: str = ""
    restricted: tuple[RestrictedStage, ...] = ()
    public: PublicStage | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    p_attempt: tuple[float, float] = (1.0, 1.0)
    reasons: tuple[str, ...] = ()
    example: bool = False

    def __post_init__(self) -> None:
        restricted, columns = self.restricted, self.columns
        several = (restricted,) if isinstance(restricted, RestrictedStage) else tuple(restricted)
        object.__setattr__(self, "restricted", several)
        # Columns given as a list are known as the file has them.
        known = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, "")
        object.__setattr__(self, "columns", known)
        object.__setattr__(self, "p_attempt", _interval(self.p_attempt))
        found = [f"scenario {shown(self.name)}: {problem}" for problem in self._problems()]
        if found:
            raise InputError(found)

    def _problems(self) -> Iterator[str]:
        if not isinstance(self.name, str) or not self.name.strip():
            yield "it must have a name. Got nothing instead."
        for stage in self.restricted:
            yield from stage.problems()
        if self.public is not None:
            yield from self.public.problems()
        if not (self.restricted or self.public or self.columns):
            yield "nothing defines its key. Give a restricted or public stage, or columns."
        low, high = self.p_attempt
        if not (_is_number(low) and _is_number(high) and 0 <= low <= high <= 1):
            yield (
                "p_attempt must be a number from 0 to 1, or the lowest and the highest. Got other "
                "values instead."
            )
        elif low < 1 and not any(reason.strip() for reason in self.reasons):
            yield "p_attempt below 1 must be argued. Give reasons."

    @property
    def points(self) -> tuple[tuple[str, str], ...]:
        """The eleven points: words and text; what nobody wrote is empty."""
        return tuple((words, getattr(self, name)) for name, words in POINTS.items())

    @property
    def title(self) -> str:
        """The label, or the name."""
        return self.label or self.name

    def holdings(self) -> list[str]:
        """Say in words what the intruder holds, stage by stage."""
        found = [stage.words() for stage in self.restricted]
        if self.public is not None:
            found.append(self.public.words())
        if self.columns:
            parts = [
                f"{name} as {coding}" if coding else name for name, coding in self.columns.items()
            ]
            found.append(f"knowledge of {', '.join(parts)}")
        return found

    def attempt_words(self) -> str:
        """Say how likely an attempt is, and why."""
        if self.p_attempt == (1.0, 1.0) and not self.reasons:
            return "p(attempt) is taken as 1: nobody has argued that it is less."
        because = "; ".join(self.reasons)
        return f"p(attempt) is {interval_text(self.p_attempt)}: {because}"

    def tables(self) -> list[Table]:
        """Return the eleven points as a table."""
        rows = [[words, text or "(not said)"] for words, text in self.points]
        rows.append(["Holds", "; ".join(self.holdings())])
        example = _ARGUED if self.reasons else _EXAMPLE
        notes = [self.attempt_words(), *([example] if self.example else [])]
        return [Table(f"Scenario: {self.title}", ["point", "what is said"], rows, notes)]

    def key(
        self,
        environment: Environment | CodingGraph,
        microdata: Microdata,
        target: str | Target | None = None,
    ) -> ScenarioKey:
        """Recode a file to the scenario's key; see `keyhole.environment.scenario_key`."""
        from keyhole.environment.scenarios.recoding import scenario_key

        return scenario_key(environment, self, microdata, target)


def interval_text(interval: tuple[float, float]) -> str:
    """Write an interval for reading."""
    low, high = interval
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _interval(given: Any) -> tuple[float, float]:
    """Read an interval; a number alone is one."""
    if _is_number(given):
        return float(given), float(given)
    try:
        low, high = given
        return (float(low), float(high)) if _is_number(low) and _is_number(high) else (low, high)
    except (TypeError, ValueError):
        return float("nan"), float("nan")


# Scenarios that often come up, as examples to be edited: they know nothing of your file. Their
# probability of an attempt is 1, since nobody has argued otherwise; their sectors are those of
# the example environment. Replace what does not fit.
_NEIGHBOUR = Scenario(
    "nosy neighbour",
    "A nosy neighbour looks for one person",
    motivation="Curiosity about somebody known personally, or a quarrel.",
    means="What is seen over the fence and on social media; no money, little skill.",
    opportunity="The file is public; an hour with a spreadsheet is enough.",
    target_variables="Income, health, benefits: whatever is not seen from outside.",
    other_means="Often yes: asking, gossip, public records. That makes an attempt less likely.",
    data_divergence="Small: what is seen is recent, though ages and dates are guessed.",
    attack_type="Search for one known person, who may not be in the file at all.",
    key_variables="What can be seen: sex, rough age, family, home, vehicle.",
    likelihood_of_attempt="Nobody has argued it.",
    likelihood_of_success="High only if the person is known to be in the file.",
    consequences="Harm to one person; loss of trust if it is told.",
    public=PublicStage(8, ("observed", "self-disclosed")),
    example=True,
)
_COMMERCIAL = Scenario(
    "commercial database",
    "A company matches its customer database",
    motivation="More facts about customers, for marketing or pricing.",
    means="A database of many people with names, software and staff to match.",
    opportunity="The file is public; matching is a matter of days.",
    target_variables="Income, health, family plans.",
    other_means="Yes: such facts are bought, or asked for with a discount.",
    data_divergence="Considerable: customer data are of other dates, partly guessed.",
    attack_type="Matching of whole files; few wrong matches matter.",
    key_variables="What half of such databases hold.",
    likelihood_of_attempt="Nobody has argued it.",
    likelihood_of_success="As a study with a real external file shows.",
    consequences="Many people; unlawful in most places; the agency's name in the news.",
    restricted=(RestrictedStage(sector="commerce", threshold=0.5),),
    example=True,
)
_JOURNALIST = Scenario(
    "journalist",
    "A journalist or scientist shows that it can be done",
    motivation="A story: one confirmed person is enough.",
    means="Skill, some weeks, a small budget; every public source that can be bought.",
    opportunity="The file is public and comes with documentation.",
    target_variables="None in particular; the identification itself is the aim.",
    other_means="No: the point is that this file allows it.",
    data_divergence="Little: sources are chosen where they fit.",
    attack_type="Fishing for unusual records, then a search for who they are.",
    key_variables="All that public sources tell, combined.",
    likelihood_of_attempt="Nobody has argued it.",
    likelihood_of_success="High for unusual people.",
    consequences="One person, and the standing of the agency.",
    public=PublicStage(9),
    example=True,
)
_REGISTER = Scenario(
    "register",
    "An office links its register",
    motivation="Checking claims, finding people, or plain overreach.",
    means="A register of nearly everybody, with names and exact dates.",
    opportunity="The file is public or shared between offices.",
    target_variables="What the office may not ask: health, income, opinions.",
    other_means="Seldom: the law forbids asking.",
    data_divergence="Small: registers are kept up to date.",
    attack_type="Matching of whole files.",
    key_variables="What any office's form asks.",
    likelihood_of_attempt="Nobody has argued it.",
    likelihood_of_success="High: nearly everybody in the file is in the register.",
    consequences="Decisions about people, taken on facts given in confidence.",
    restricted=(RestrictedStage(sector="government"),),
    example=True,
)

PRESETS: Mapping[str, Scenario] = {
    one.name: one for one in (_NEIGHBOUR, _COMMERCIAL, _JOURNALIST, _REGISTER)
}


def preset(name: str, /, **changes: Any) -> Scenario:
    """Return an example scenario, with changes.

    It stays marked as an example unless `example=False` is among the changes.

    Examples
    --------
    >>> preset("journalist", public=PublicStage(6)).public.resources
    6
    """
    if name not in PRESETS:
        near = nearest(str(name), list(PRESETS))
        hint = f" Did you mean {quoted(near)}?" if near else ""
        raise OptionError(
            f"preset must be one of {quoted(PRESETS)}. Got {shown(name)} instead.{hint}"
        )
    return edited(PRESETS[name], **changes)


def edited(base: Scenario, **changes: Any) -> Scenario:
    """Return an example with changes; where p(attempt) is argued anew, its words go."""
    argued = {"p_attempt", "reasons"} & set(changes)
    if argued and "likelihood_of_attempt" not in changes:
        changes["likelihood_of_attempt"] = "; ".join(changes.get("reasons", base.reasons))
    return dataclasses.replace(base, **changes)
