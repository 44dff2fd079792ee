"""Scenarios of attack, after the eleven points of Elliot & Dale (1999).

Who would attack the file, why, with what, and how likely that is. What defines the key is
machine-readable: the restricted databases and public sources an intruder holds, or columns
named outright.

Elliot, Mackey & Purdam (2011) write p(identification) as p(identification | attempt) · p(attempt)
(Marsh et al. 1991). p(attempt) is an interval here, with its reasons, and 1 where nobody argues it.
The conditional part comes from what was measured: the exposure of the file on the scenario's key,
or a re-identification study. Which figure was taken is always said.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from keyhole.core.marks import Named, figure
from keyhole.core.names import plural, quoted, shown
from keyhole.core.tables import Table
from keyhole.core.toml import open_toml, quote, toml_value
from keyhole.environment.wording import meant, require_none
from keyhole.errors import FileError, InputError, OptionError
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl

Interval = tuple[float, float]
Found = tuple[Interval | None, str]
_FACTORS = ("p(identification | attempt)", "p(attempt)", "p(identification)")
_FILE = Path(__file__).with_name("presets.toml")
POINTS: Mapping[str, str] = open_toml(_FILE)["points"]
"""The eleven points, in Elliot & Dale's order: attributes of a `Scenario` and their words."""

_SURE = {"p_attempt": (1.0, 1.0), "coverage": (1.0, 1.0), "divergence": (0.0, 0.0)}
"""What is taken where nobody argues otherwise: the worst case."""
ORIGINS = ("collected", "self-disclosed", "observed", "secondary")
_EXAMPLE = (
    "This is an example that comes with keyhole, not a finding about your file. Edit it before a "
    "release depends on it."
)
_ARGUED = (
    "This began as an example that comes with keyhole: only p(attempt) was argued for your file. "
    "Edit the rest before a release depends on it."
)


MOST_RESOURCES = 100
"""More than any source takes: the highest index is 10."""


def resource_problems(resources: Any) -> list[str]:
    """Say what is wrong with an intruder's resources."""
    if _is_number(resources) and 0 <= resources <= MOST_RESOURCES:
        return []
    return [
        f"resources must be a number from 0 to {MOST_RESOURCES}; sources have an index of 3 to 10, "
        f"and resources must exceed it. Got another value instead."
    ]


def class_words(wanted: Mapping[str, str]) -> str:
    """Say in words which forms are of a class."""
    parts = [f"{name} {shown(value)}" for name, value in wanted.items()]
    return "forms with " + " and ".join(parts) if parts else "all forms"


@dataclass(frozen=True, slots=True)
class RestrictedStage:
    """A restricted database the intruder holds: one form's, or one of a class of forms.

    A ``form`` goes with nothing else; all forms make up the class if nothing is given.
    ``threshold`` is the share of the class that must hold a coding before it counts.
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
        forms = class_words({name: value for name, value in named.items() if value})
        return f"a database like those of {forms} (prevalence threshold {self.threshold:g})"


@dataclass(frozen=True, slots=True)
class PublicStage:
    """The public sources the intruder can afford: those whose resource index is below `resources`.

    ``resources`` are on the scale of the index (3 to 10); ``origins`` restricts the sources.
    """

    resources: int
    origins: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        """Say what is wrong with the stage."""
        yield from (problems := resource_problems(self.resources))
        if not problems and self.resources != int(self.resources):
            yield "resources of a scenario must be whole. Got another number instead."
        if unknown := [one for one in self.origins if one not in ORIGINS]:
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

    `columns` are those of the target that the intruder is taken to know, each with the coding in
    which; "" is the detail of the file itself. `p_attempt` is the lowest and highest probability of
    an attempt; below 1 it must be argued, with `reasons`. So must be a `coverage` below 1 (the
    share of the file's people whom the intruder's sources hold) and a `divergence` above 0 (the
    share of those whose key values differ between file and sources, so that they are not matched).
    The words of an `example` are no finding, and every report says so.

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
    coverage: tuple[float, float] = (1.0, 1.0)
    divergence: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        restricted, columns = self.restricted, self.columns
        several = (restricted,) if isinstance(restricted, RestrictedStage) else tuple(restricted)
        object.__setattr__(self, "restricted", several)
        # Columns given as a list are known as the file has them.
        known = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, "")
        object.__setattr__(self, "columns", known)
        for name in _SURE:
            object.__setattr__(self, name, _interval(getattr(self, name)))
        require_none(f"scenario {shown(self.name)}: {problem}" for problem in self._problems())

    def _problems(self) -> Iterator[str]:
        if not isinstance(self.name, str) or not self.name.strip():
            yield "it must have a name. Got nothing instead."
        for stage in self.restricted:
            yield from stage.problems()
        if self.public is not None:
            yield from self.public.problems()
        if not (self.restricted or self.public or self.columns):
            yield "nothing defines its key. Give a restricted or public stage, or columns."
        argued = any(reason.strip() for reason in self.reasons)
        for name, sure in _SURE.items():
            low, high = getattr(self, name)
            if not 0 <= low <= high <= 1:
                words = "a number from 0 to 1, or the lowest and the highest"
                yield f"{name} must be {words}. Got other values instead."
            elif (low, high) != sure and not argued:
                than = "above 0" if sure[0] == 0 else "below 1"
                yield f"{name} {than} must be argued. Give reasons."

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
            known = (f"{name} as {how}" if how else name for name, how in self.columns.items())
            found.append(f"knowledge of {', '.join(known)}")
        return found

    def attempt_words(self) -> str:
        """Say how likely an attempt is, and why."""
        if self.p_attempt == (1.0, 1.0) and not self.reasons:
            return "p(attempt) is taken as 1: nobody has argued that it is less."
        because = "; ".join(self.reasons)
        return f"p(attempt) is {interval_text(self.p_attempt)}: {because}"

    def tables(self) -> list[Table]:
        """Return the eleven points as a table."""
        rows = [[words, text or "(not stated)"] for words, text in self.points]
        rows.append(["Holds", "; ".join(self.holdings())])
        notes = [self.attempt_words()]
        if self.example:
            notes.append(_ARGUED if self.reasons else _EXAMPLE)
        for name in ("coverage", "divergence"):
            if getattr(self, name) != _SURE[name]:
                notes.append(f"{name.capitalize()}: {interval_text(getattr(self, name))}.")
        return [Table(f"Scenario: {self.title}", ["point", "statement"], rows, notes)]


def interval_text(interval: Interval | None) -> str:
    """Write an interval for reading, or that there is none."""
    if interval is None:
        return "not estimable"
    low, high = interval
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _interval(given: Any) -> tuple[float, float]:
    """Read an interval; a number alone is one, and what is none is not a number."""
    with suppress(TypeError, ValueError, OverflowError):
        low, high = (given, given) if _is_number(given) else given
        if _is_number(low) and _is_number(high):
            return float(low), float(high)
    return math.nan, math.nan


def preset(name: str, /, **changes: Any) -> Scenario:
    """Return an example scenario, with changes.

    It stays marked as an example unless `example=False` is among the changes.

    Examples
    --------
    >>> preset("journalist", public=PublicStage(6)).public.resources
    6
    """
    if name not in PRESETS:
        hint = meant(str(name), PRESETS)
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


def scenario_from_dict(plain: Any, *, name: str) -> Scenario:
    """Make a scenario of plain values as TOML has them.

    Keys are the attributes of `Scenario`; ``preset`` names an example to start from,
    ``restricted`` is a table or several, ``columns`` a list or a table of codings, ``p_attempt``,
    ``coverage`` and ``divergence`` a number or a list of two, ``reasons`` a text or a list.
    """
    from keyhole.environment.exchange import decode_attributes

    if not isinstance(plain, Mapping):
        raise InputError(f"scenario {shown(name)} must be a table. Got another value instead.")
    given = dict(plain)
    for key in ("restricted", "reasons"):
        if key in given and not isinstance(given[key], list):
            given[key] = [given[key]]
    if isinstance(given.get("columns"), list):
        given["columns"] = {str(c): "" if isinstance(c, str) else c for c in given["columns"]}
    example = given.pop("preset", None)
    # What the scenario itself makes of numbers is left to it.
    sure = {key: given.pop(key) for key in _SURE if key in given}
    found: list[str] = []
    values = decode_attributes(Scenario, given, found) | sure
    problems = [problem.lstrip(".") for problem in found]
    if values.pop("name", None) is not None:
        problems.append("'name' is unknown. The head of the table names the scenario.")
    base = PRESETS.get(str(example)) if "preset" in plain else None
    if "preset" in plain and base is None:
        known = quoted(PRESETS)
        problems.append(f"preset must be one of {known}. Got {shown(example)} instead.")
    told = [f"scenario {shown(name)}: {problem}" for problem in problems]
    try:
        scenario = Scenario(name, **values) if base is None else edited(base, name=name, **values)
    except InputError as error:
        # A stage or an example that could not be read is told already.
        told += [one for one in error.problems if not (told and "nothing defines its" in one)]
        raise InputError(told) from None
    require_none(told)
    return scenario


def scenarios_from_dict(plain: Any) -> tuple[Scenario, ...]:
    """Make the scenarios of a table of tables, by name."""
    if not isinstance(plain, Mapping):
        raise InputError("scenario must be a table with one table a scenario: [scenario.NAME].")
    if not any(isinstance(one, Mapping) for one in plain.values()):
        what = "other values" if plain else "an empty table"
        raise InputError(
            f"[scenario] must hold one table a scenario. Got {what} instead: name the scenario in "
            f"the table's head, as [scenario.NAME]."
        )
    found, problems = list[Scenario](), list[str]()
    for name, one in plain.items():
        try:
            found.append(scenario_from_dict(one, name=name))
        except InputError as error:
            problems += error.problems
    require_none(problems)
    return tuple(found)


def read_scenarios(path: str | os.PathLike[str]) -> tuple[Scenario, ...]:
    """Read the scenarios of a TOML file, from its tables ``[scenario.NAME]``."""
    plain = open_toml(path)
    name = Path(path).name
    if "scenario" not in plain:
        raise FileError(f"{name!r} has no scenario. Write one as a table [scenario.NAME].")
    try:
        return scenarios_from_dict(plain["scenario"])
    except InputError as error:
        raise FileError([f"{name!r}: {problem}" for problem in error.problems]) from None


def scenario_to_toml(scenario: Scenario) -> str:
    """Write a scenario as TOML, every point in it, ready to be edited.

    Examples
    --------
    >>> text = scenario_to_toml(Scenario("a friend", columns={"sex": "", "age": "AG8.001"}))
    >>> print(text.splitlines()[0])
    [scenario."a friend"]
    >>> import tomllib
    >>> tomllib.loads(text)["scenario"]["a friend"]["columns"]
    {'sex': '', 'age': 'AG8.001'}
    """

    def written(values: Mapping[str, Any]) -> list[str]:
        return [f"{name} = {toml_value(value)}" for name, value in values.items()]

    head = f"scenario.{quote(scenario.name)}"
    lines = [f"[{head}]"]
    if scenario.example:
        lines.append("# An example that comes with keyhole; edit it, then set example = false.")
    figures = ("p_attempt", "reasons", "example")
    more = [name for name in ("coverage", "divergence") if getattr(scenario, name) != _SURE[name]]
    names = ["label", *POINTS, *more, *figures, *(["columns"] if scenario.columns else [])]
    lines += written({name: getattr(scenario, name) for name in names})
    if scenario.public is not None:
        lines += ["", f"[{head}.public]", *written(dataclasses.asdict(scenario.public))]
    for one in scenario.restricted:
        values = {name: value for name, value in dataclasses.asdict(one).items() if value}
        if not one.form:  # which goes with nothing else
            values["threshold"] = float(one.threshold)
        lines += ["", f"[[{head}.restricted]]", *written(values)]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, repr=False)
class Identification(Result):
    """How likely an identification is, and what that was made of; None where not estimable.

    `basis` says which figure it rests on, or why there is none; `conditional` has `coverage` and
    `divergence` in it.
    """

    scenario: str
    conditional: Annotated[Interval | None, Named("p_identification_given_attempt")]
    basis: str
    attempt: Annotated[Interval, Named("p_attempt")]
    reasons: tuple[str, ...]
    coverage: Interval = (1.0, 1.0)
    divergence: Interval = (0.0, 0.0)

    @property
    @figure(Named("p_identification"))
    def probability(self) -> Interval | None:
        """p(identification), the lowest and the highest."""
        if self.conditional is None:
            return None
        return (self.conditional[0] * self.attempt[0], self.conditional[1] * self.attempt[1])

    def to_frame(self) -> pl.DataFrame:
        """Return one row a factor, and one for the product."""
        import polars as pl

        values = (self.conditional, self.attempt, self.probability)
        rows = [(name, *(of or (None, None))) for name, of in zip(_FACTORS, values, strict=True)]
        schema = {"figure": str, "low": float, "high": float}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return both factors and the product, with what they rest on."""
        argued = "; ".join(self.reasons) or "nobody has argued that it is less than 1"
        values = map(interval_text, (self.conditional, self.attempt, self.probability))
        rows = list(zip(_FACTORS, values, (self.basis, argued, "the product"), strict=True))
        columns = ["figure", "value", "from"]
        return [Table(f"Identification: {self.scenario}", columns, rows)]


def p_identification(
    scenario: Scenario, conditional: Any, *, figure: str | None = None, pending: int = 0
) -> Identification:
    """Return the probability of an identification under a scenario, as an interval.

    The scenario's `p_attempt` is the one factor; the other, `conditional`, is p(identification |
    attempt): a number, a pair (lowest, highest), the result of `keyhole.risk` on the scenario's
    key, or that of `keyhole.study`. `figure` is one of a result; of an exposure ``"guess"``
    (default without a population), ``"at risk"`` or ``"population"`` (default with one), of a study
    ``"confirmed"`` (default) or ``"conditional"``. While decisions are `pending` that would change
    the key, it is not given.

    Notes
    -----
    ``guess``: from the share of records that are unique (a match that cannot be another) to CR,
    the mean of 1/f (a guess within the cell); it takes the person to be in the file.
    ``population``: the mean individual risk. ``confirmed``: right matches among all records,
    with its 95% interval. ``conditional``: right ones among those suspected.

    Figures of an exposure take every person to be in the intruder's sources, with the same values.
    They are multiplied by the scenario's coverage c and by 1 - d, the share without divergence; a
    study has measured both, and numbers that are given are taken as they are.

    Examples
    --------
    >>> friend = Scenario("friend", columns=["age"], p_attempt=(0.1, 0.5), reasons=("few care",))
    >>> p_identification(friend, 0.5).probability
    (0.05, 0.25)
    """
    interval, basis = _conditional(conditional, figure)
    coverage, divergence = (1.0, 1.0), (0.0, 0.0)
    given = scenario.coverage, scenario.divergence
    if hasattr(conditional, "cr") and given != (coverage, divergence):
        coverage, divergence = given
        if interval is not None:
            low = interval[0] * coverage[0] * (1 - divergence[1])
            interval = low, interval[1] * coverage[1] * (1 - divergence[0])
        basis += (
            f"; times a coverage of {interval_text(coverage)} and a share without divergence of "
            f"{interval_text((1 - divergence[1], 1 - divergence[0]))}"
        )
    if pending:
        verb, interval = "is" if pending == 1 else "are", None
        basis = (
            f"not given while {plural(pending, 'decision')} {verb} pending that would change the "
            f"key, unless asked for (undecided)"
        )
    attempt, reasons = scenario.p_attempt, scenario.reasons
    return Identification(scenario.name, interval, basis, attempt, reasons, coverage, divergence)


def _conditional(given: Any, figure: str | None) -> Found:
    """Read the conditional part, from whatever it is given as."""
    # An exposure is told from a study by what it has; neither package is known here.
    exposure = hasattr(given, "cr")
    if exposure or hasattr(given, "rates"):
        names = ("guess", "at risk", "population") if exposure else ("confirmed", "conditional")
        known = exposure and given.population is not None
        chosen = figure or ("population" if known else names[0])
        if chosen not in names:
            words = ", ".join(map(repr, names))
            raise OptionError(f"figure must be one of {words} here. Got {figure!r} instead.")
        if exposure:
            return _of_exposure(given, chosen)
        found: Interval | None = given.rates.intervals[f"{chosen}_rate"]
        if found is None:
            return None, f"the {chosen} rate is not estimable: nobody was suspected"
        return found, f"the 95% interval of the study's {chosen} rate"
    if figure is not None:
        raise OptionError(
            "figure can only be used with a result. Got numbers instead: leave it out."
        )
    low, high = _interval(given)
    if not 0 <= low <= high <= 1:
        raise OptionError(
            "conditional must be a number from 0 to 1, the lowest and the highest, or the result "
            "of an exposure or a study. Got something else instead."
        )
    return (low, high), "as given"


def _of_exposure(exposure: Any, figure: str) -> Found:
    if figure == "guess":
        low = exposure.uniques / exposure.records
        basis = (
            "the share of records that are unique on the key, up to CR, the mean of 1/f; the "
            "person is taken to be in the file"
        )
        return (low, max(low, exposure.cr)), basis
    if figure == "at risk":
        return (exposure.rp, exposure.rp), f"RP, the share of records with f < {exposure.cutoff}"
    population, why = exposure.population, exposure.unestimated
    if population is not None:
        model, value = population.model, population.global_risk
        if model is not None and model.reidentifications is not None:
            found, people = model.reidentifications, population.counted
            basis = "the 95% interval of the mean risk of a record in the population, by a model"
            return (found.low / people, min(found.high / people, 1.0)), basis
        if value is not None:
            return (value, value), "the mean risk of a record in the population"
        why = "; ".join(population.notes)
    why = why or "no weight and no sampling fraction was given"
    return None, f"the risk in the population is not estimable: {why}"


PRESETS: Mapping[str, Scenario] = {one.name: one for one in read_scenarios(_FILE)}
"""Scenarios that often come up, as examples to be edited."""
