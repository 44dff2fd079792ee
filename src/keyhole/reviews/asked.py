"""Terms, assumptions and methods of a report: what was asked, and how figures are made."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from keyhole.charts import percentage
from keyhole.core.options import Question
from keyhole.exposure.cells import POLICIES
from keyhole.protection.plan import Plan
from keyhole.reviews.digits import limit_percentage
from keyhole.reviews.settings import Review
from keyhole.selection.result import ASSUMPTION

Terms = list[tuple[str, str]]
DONORS = {
    "folds": "all records that are not blanked at the time",
    "common": "records that are not at risk only",
}


def asked_terms(review: Review) -> Terms:
    """Return what was asked, as terms and their values."""
    exposure, chosen = review.exposure, review.selection
    rows = [
        ("File", review.data.file),
        ("An intruder could know", _known(review)),
        ("At risk", f"records in cells smaller than {exposure.cutoff}"),
        ("Missing keys", POLICIES[exposure.missing]),
        ("Population", _population(review)),
    ]
    if review.scenarios is not None and review.scenarios.names:
        rows.append(("Scenarios looked at", ", ".join(review.scenarios.names)))
    if exposure.limit is not None:
        rows.append(("Highest RP on the keys", limit_percentage(exposure.limit)))
    told = review.attributes
    if told is not None:
        rows.append(("Sensitive", ", ".join(told.sensitive)))
    if told is not None and told.limit is not None:
        rows.append(("Highest share in cells with one value", limit_percentage(told.limit)))
    if chosen is not None:
        groups = [" or ".join(group) for group in chosen.candidates]
        rows += [
            ("Variables kept", ", ".join(chosen.keep) or "none"),
            ("Candidates to go out", ", ".join(groups)),
            (
                "Selection",
                f"{', '.join(chosen.methods)}; RP within {limit_percentage(chosen.limit)}",
            ),
        ]
    if review.study is not None:
        rows += _asked_of_study(review.study)
    if review.attacks is not None:
        rows += _asked_of_attacks(review.attacks)
    if review.protection is not None:
        rows += _asked_of_protection(review.protection, review.keys)
    if review.synthesis is not None:
        rows += _asked_of_synthesis(review.synthesis, review.keys)
    for words, tables in (("Table", review.table), ("Table of the release", review.tabulate)):
        rows += [(words, _asked_of_table(one)) for one in tables]
    return rows


def _known(review: Review) -> str:
    names = ", ".join(review.keys)
    if review.scenarios is None or review.scenarios.chosen is None:
        return names
    return f"{names}, at the detail of scenario {review.scenarios.chosen!r}"


def _population(review: Review) -> str:
    exposure = review.exposure
    household = f", households by {exposure.household}" if exposure.household else ""
    if exposure.weight is not None:
        return f"each record stands for as many people as {exposure.weight} says{household}"
    if exposure.fraction is not None:
        return f"{percentage(exposure.fraction)} of the population is in the file{household}"
    return f"not estimated: neither weights nor a sampling fraction are given{household}"


def _asked_of_study(study: Question) -> Terms:
    numbers = f"; numbers: {', '.join(study.numeric)}" if study.numeric else "; all as categories"
    if study.scenario is not None:
        numbers = f", at the detail of scenario {study.scenario!r}"
    elif study.metrics == ("adhoc",):
        numbers = ""
    rows = [
        ("An intruder's file", study.eif),
        ("Who is who", study.iuf),
        ("Linked on", ", ".join(study.link) + numbers),
        ("Suspected by", "; ".join(_metric(study, metric) for metric in study.metrics)),
    ]
    if "adhoc" in study.metrics and study.scores:
        scores = [f"{name}: {score_in_words(score)}" for name, score in study.scores.items()]
        rows.append(("Scores of adhoc", "; ".join(scores)))
    if study.strata:
        rows.append(("Linked within", ", ".join(study.strata)))
    if study.candidates:
        named = [f"{name} ({file})" for name, file in study.candidates.items()]
        rows.append(("Other releases attacked", ", ".join(named)))
    if study.limit is not None:
        rows.append(("Highest conditional rate", limit_percentage(study.limit)))
    return rows


def _asked_of_attacks(given: Question) -> Terms:
    sets = {"known": given.link, "held by a second source": given.second_link,
            "to be learnt": given.secret}  # fmt: skip
    columns = "; ".join(f"{words}: {', '.join(names)}" for words, names in sets.items() if names)
    rows = [("Attacks with a control", f"{', '.join(given.attacks)} ({columns})")]
    if given.control is not None:
        rows.append(("People outside the file", given.control))
    if given.limit is not None:
        rows.append(("Highest residual risk", limit_percentage(given.limit)))
    return rows


def _metric(study: Question, metric: str) -> str:
    if metric == "unicity":
        sets = "all sets of variables" if study.orders == "all" else "all variables together"
        return f"unicity ({sets})"
    ranks = f"at most {study.rank_cap} pairs a record"
    if metric == "adhoc":
        return f"adhoc (above half of the highest score, {ranks})"
    rule = f"{study.threshold} threshold, " if metric == "euclidean" else ""
    return f"{metric} ({rule}missing costs {study.alpha:g}, {ranks})"


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


def _asked_of_protection(given: Question, keys: Sequence[str]) -> Terms:
    """Return what was asked of a protection; its seed is told nowhere."""
    plan = Plan.parse(given.plan).steps if given.plan else ()
    steps = [f"{step.method} {', '.join(step.columns)}".strip() for step in plan]
    rows = [("Protected by", "; ".join(steps))] if steps else []
    if given.keys != tuple(keys):
        rows.append(("Protected against", f"who knows {', '.join(given.keys)}"))
    if given.limit is not None:
        rows.append(("Highest RP after protection", limit_percentage(given.limit)))
    return rows


def _asked_of_table(given: Question) -> str:
    """Say what is tabulated; how unsafe cells are found is not told."""
    of = given.values.get("magnitude") or given.values.get("mean")
    across = f" and {', '.join(given.cols)}" if given.cols else ""
    how = {
        "suppress": ", suppressed",
        "round": ", rounded",
        "cell-key": ", with noise",
        "none": ", not protected",
    }
    what = f"{of} by " if of else ""
    return f"{what}{', '.join(given.rows)}{across}{how.get(given.values.get('protect', ''), '')}"


def _asked_of_synthesis(given: Question, keys: Sequence[str]) -> Terms:
    """Return what was asked of a synthesis; its seed is told nowhere."""
    within = f", within {', '.join(given.strata)}" if given.strata else ""
    rows = [
        ("Values replaced", f"{', '.join(given.targets)}, of {_at_risk(given, keys)}"),
        ("Implicates", f"{given.implicates:,}"),
        ("Donors", f"{DONORS[given.donors]}{within}"),
    ]
    if given.hold_out is not None:
        words = f"{percentage(given.hold_out)} of the records, as the control of attacks"
        rows.append(("Held out before the synthesis", words))
    if given.targeted:
        rows.append(("In each record", "only what breaks its minimal uniques"))
    if given.rules:
        rules = [f"{name}: {text}" for name, text in given.rules.items()]
        rows.append(("Rules kept", "; ".join(rules)))
    if given.decoys:
        rows.append(("Decoys", f"{given.decoys:g} for each record at risk"))
    if given.drop:
        rows.append(("Left out of the release", ", ".join(given.drop)))
    return rows


def _at_risk(given: Question, keys: Sequence[str]) -> str:
    who = "unique records" if given.cutoff == 2 else f"cells smaller than {given.cutoff}"
    if given.keys != tuple(keys):
        who += f" on {', '.join(given.keys)}"
    if given.least_probability is not None:
        who += f" that are unique in the population with P ≥ {given.least_probability:g}"
    return who


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
