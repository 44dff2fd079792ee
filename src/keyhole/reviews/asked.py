"""Terms, assumptions and methods of a report: what was asked, and how figures are made."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from keyhole.charts import percentage
from keyhole.core.kinds import Number
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.exposure.cells import POLICIES
from keyhole.protection.plan import Plan
from keyhole.reviews.digits import limit_percentage
from keyhole.reviews.settings import Review
from keyhole.selection.result import ASSUMPTION

_SECTIONS = (
    *("exposure", "uniques", "drivers", "attributes", "solve", "selection", "frontier"),
    *("study", "attacks", "protection", "synthesis"),
)
# Settings that the first rows say, that other rows say in words, or that a board need not know.
_APART = {
    "exposure": ("cutoff", "missing", "weight", "fraction", "household"),
    "attributes": ("derive",),
    "protection": ("plan", "plan_file"),
    "study": ("scenario", "scores_file"),
    "selection": ("methods",),
}


def asked_table(review: Review) -> Table:
    """Return what was asked: every setting that is not a default, and what it means."""
    exposure, chosen = review.exposure, review.scenarios and review.scenarios.chosen
    detail = f", at the detail of scenario {chosen!r}" if chosen else ""
    rows = [
        ["file", review.data.file, "The file under review."],
        ["keys", ", ".join(review.keys) + detail, "The columns an intruder is assumed to know."],
        ["at risk", f"cells smaller than {exposure.cutoff}", "Which records count as at risk."],
        ["missing keys", POLICIES[exposure.missing], "How a missing key is matched."],
        ["population", _population(review), "What the file is a sample of."],
    ]
    if review.scenarios is not None and review.scenarios.names:
        about = "Who could attack the file, and with what."
        rows.append(["scenarios", ", ".join(review.scenarios.names), about])
    for section in _SECTIONS:
        question: Question | None = getattr(review, section)
        if question is None:
            continue
        if section == "protection" and question.plan:
            steps = Plan.parse(question.plan).steps  # with what is secret in none of the words
            words = "; ".join(f"{one.method} {', '.join(one.columns)}".strip() for one in steps)
            rows.append(["protection: plan", words, "The steps of the plan and their columns."])
        shared = {"keys": review.keys} if section != "selection" else {}
        rows += [
            [f"{section}: {name}", _shown(name, value, question), _meaning(question, name)]
            for name, value in question.given().items()
            if name not in _APART.get(section, ()) and value not in (shared.get(name), {})
        ]
    tables = (("table", review.table), ("table of the release", review.tabulate))
    rows += [
        [words, _tabulated(one), "A table to be published."]
        for words, some in tables
        for one in some
    ]
    return Table("Settings of the review", ["setting", "value", "meaning"], rows)


def _meaning(question: Question, name: str) -> str:
    """Return the first clause of what a setting means."""
    words = re.split(r"[.;](?: |$)", question.parameters[name].help, maxsplit=1)[0]
    return f"{words.replace('`', '')}."


def _shown(name: str, value: Any, question: Question) -> str:
    """Write a setting's value; shares in percent, and of scores no value of a record."""
    kind = question.parameters[name].kind
    share = isinstance(kind, Number) and (kind.low, kind.high) == (0, 1)
    if share and isinstance(value, float | int):
        return limit_percentage(value)
    if name == "link" and question.values.get("scenario"):
        return f"{', '.join(value)}, at the detail of scenario {question.scenario!r}"
    if name == "scores":
        return "; ".join(f"{n}: {score_in_words(one)}" for n, one in value.items())
    if isinstance(value, Mapping):
        return "; ".join(f"{n}: {one}" for n, one in value.items())
    if isinstance(value, tuple):
        texts = (" or ".join(one) if isinstance(one, tuple) else f"{one}" for one in value)
        return ", ".join(texts) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"


def _tabulated(given: Question) -> str:
    """Say what is tabulated; how unsafe cells are found is not told."""
    of = given.values.get("magnitude") or given.values.get("mean")
    how = {"suppress": ", suppressed", "round": ", rounded", "cell-key": ", with noise"}
    protect = given.values.get("protect", "")
    ending = ", not protected" if protect == "none" else how.get(protect, "")
    across = f" and {', '.join(given.cols)}" if given.cols else ""
    return f"{f'{of} by ' if of else ''}{', '.join(given.rows)}{across}{ending}"


def _population(review: Review) -> str:
    exposure = review.exposure
    household = f", households by {exposure.household}" if exposure.household else ""
    if exposure.weight is not None:
        return f"each record stands for as many people as {exposure.weight} says{household}"
    if exposure.fraction is not None:
        return f"{percentage(exposure.fraction)} of the population is in the file{household}"
    return f"not estimated: neither weights nor a sampling fraction are given{household}"


def score_in_words(score: Mapping[str, Any]) -> str:
    """Say how a variable is scored; the values of a table are not named.

    Examples
    --------
    >>> score_in_words({"exact": 5}), score_in_words({"absolute": [[1, 5], [4, 2]]})
    ('5 if equal', '5 up to a difference of 1, 2 up to 4')
    >>> score_in_words({"table": [["m", "s", 3]], "same": 5})
    '5 if equal, a table of 1 pairs of values'
    """
    if "exact" in score:
        return f"{score['exact']:g} if equal"
    if "table" in score:
        return (
            f"{score.get('same', 5):g} if equal, a table of {len(score['table'])} pairs of values"
        )
    kind = next(kind for kind in _BANDS if kind in score)
    (limit, first), *rest = score[kind]
    bands = [f"{first:g} up to {_BANDS[kind]} of {limit:g}"]
    bands += [f"{value:g} up to {limit:g}" for limit, value in rest]
    beyond = [f"{score['beyond']:g} beyond"] if score.get("beyond") else []
    return ", ".join([*bands, *beyond])


_BANDS = {
    "absolute": "a difference",
    "relative": "a relative difference",
    "days": "a difference in days",
}


@dataclass(frozen=True, slots=True)
class CitedMethod:
    """A method in a sentence or two, and where it is from."""

    name: str
    text: str
    sources: tuple[str, ...] = ()


def _read_methods() -> dict[str, CitedMethod]:
    text = (resources.files("keyhole.reviews") / "methods.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    return {
        name: CitedMethod(
            one["name"], one["text"], tuple(found["sources"][s] for s in one.get("sources", ()))
        )
        for name, one in found["methods"].items()
    }


_METHODS = _read_methods()


def methods_used(results: Mapping[str, Any]) -> list[CitedMethod]:
    """Return the methods behind the results of a review, in the order of the work."""
    population = results["exposure"].population
    stages = {name.partition("-")[0] for name in results}
    used = stages | ({"population"} if population is not None else set())
    used |= {"household"} if population is not None and population.of_households else set()
    return [method for name, method in _METHODS.items() if name in used]


def sources(*names: str) -> list[str]:
    """Return where methods are from, each source once."""
    return list(dict.fromkeys(source for name in names for source in _METHODS[name].sources))


def assumptions(review: Review, results: Mapping[str, Any]) -> list[str]:
    """Return what must hold for the figures to mean what they seem to."""
    missing = {
        "own": "A missing key is a category of its own: an intruder can see that it is missing.",
        "wildcard": "A missing key matches every value, both ways. This is the less cautious "
        "reading: cells only grow.",
        "drop": "Records with a missing key are left out of the count; RP and CR are still taken "
        "over all records.",
    }
    found = [
        ASSUMPTION,
        f"An intruder knows the {len(review.keys)} keys {_known_detail(review)}, and "
        f"nothing else of it. Error, age and other codings in the intruder’s data make matching "
        f"harder; knowledge of further variables makes it easier.",
        missing[review.exposure.missing],
    ]
    if results["exposure"].population is not None:
        found.append(_population_assumed(review))
    if review.selection is not None:
        found.append(
            "Selection and frontier count a missing value as a category of its own, and bound the "
            "risk of the file as a whole: single records may be far more exposed than RP says."
        )
    found.append(
        "The review describes this file at one point in time. It is not a proof of safety: other "
        "releases, and an intruder who knows a person well, are outside of it."
    )
    return found


def _known_detail(review: Review) -> str:
    chosen = None if review.scenarios is None else review.scenarios.chosen
    if chosen is None:
        return "exactly as they stand in the file"
    return f"of the file at the detail of scenario {chosen!r}, exactly"


def _population_assumed(review: Review) -> str:
    if review.exposure.weight is not None:
        return "The weights say how many people of the population each record stands for."
    if review.exposure.fraction is not None:
        return "Everybody had the same chance to be in the file, the sampling fraction."
    return "The file is taken as the whole population: neither weights nor a fraction are given."
