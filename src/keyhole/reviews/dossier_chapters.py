"""Chapters for the board: what goes out at a glance, what remains of the risk, the decision."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import PurePath
from typing import Any, NamedTuple

from keyhole.charts import percentage
from keyhole.core.kinds import Number
from keyhole.core.names import quoted
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.exposure.cells import POLICIES
from keyhole.protection.plan import Plan
from keyhole.results import share
from keyhole.reviews.chapters import Chapter, Results
from keyhole.reviews.count_sheets import count_alone, smallest_shown
from keyhole.reviews.rendering import limit_percentage, percentage_beside
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import outgoing
from keyhole.reviews.stages.attacks import study_stage
from keyhole.reviews.stages.products import plan_of_release, released_product
from keyhole.reviews.verdict import MOST_NAMED, recoverable_rp, released_rates, shown_share
from keyhole.selection.result import ASSUMPTION


class GlanceFigure(NamedTuple):
    """A main figure of what is released, and that of the original beside it."""

    term: str
    figure: str
    beside: str
    over: bool = False


def released_glance(review: Review, results: Results) -> list[GlanceFigure]:
    """Return what a board reads first: all of it measured on what is released."""
    if outgoing.OUTGOING not in results:
        return []
    found: outgoing.ReleasedFiles = results[outgoing.OUTGOING]
    before, smallest = results["data"].records, smallest_shown(found.cutoff)
    gone, many, beside = before - found.records, f"{found.records:,}", "all of the original"
    if gone:
        beside = f"of {before:,} in the original"
    if 0 < gone < smallest:
        many, beside = f"<{before:,}", f"fewer than {smallest} were removed"
    many_left = len(found.left_out)
    left_out = f"{many_left} of the original {'is' if many_left == 1 else 'are'} left out"
    figures = [
        GlanceFigure("Records", many, beside),
        GlanceFigure("Columns", f"{len(found.columns)}", left_out),
    ]
    # RP on the keys, on all that is selected, and on the key of the worst scenario.
    told = {
        outgoing.scenario_words(n) for n in (review.scenarios.names if review.scenarios else ())
    }
    stories = [one for one in found.keys if one.knows in told]
    worst = max(stories, key=lambda one: one.judged or 0.0, default=None)
    keys = [(f"on {one.knows}", "", one) for one in found.keys if one.knows not in told]
    if worst is not None:
        keys.append(("worst scenario", f"on the key of {worst.knows}; ", worst))
    limit, recoverable = review.exposure.limit, recoverable_rp(review, results) or 0.0
    for words, whose, one in keys:
        figure = max(one.judged or 0.0, recoverable if one.knows == outgoing.KEYS else 0.0)
        short = _short(figure, one.records, found.cutoff, limit)
        before = "" if one.original is None else f"{percentage(one.original)} in the original"
        over = limit is not None and figure > limit
        figures.append(GlanceFigure(f"RP({found.cutoff}) {words}", short, whose + before, over))
    if outgoing.RELEASED_ATTRIBUTES in results and review.attributes is not None:
        figures += _learnt(results[outgoing.RELEASED_ATTRIBUTES], review.attributes.limit)
    study = review.study
    rates = "" if study is None else released_rates(review, results, study.metrics[0])
    if study is not None and not isinstance(rates, str):
        original, rate = results[study_stage(study.metrics[0])], rates.conditional_rate
        both = (rate, original.rates.conditional_rate)
        now, before = (
            "none" if x is None else percentage_beside(x, study.limit or 0.0) for x in both
        )
        what = "no match is suspected" if rate is None else "of the suspected matches are correct"
        over = study.limit is not None and (rate or 0.0) > study.limit
        beside = f"{what}, by {original.metric}; {before} in the original"
        figures.append(GlanceFigure("Conditional rate", now, beside, over))
    return figures


def _learnt(found: outgoing.ReleasedAttributes, limit: float | None) -> Iterator[GlanceFigure]:
    """Yield the sensitive column that the release discloses most of."""
    worst = max(
        (one for one in found.rows if one.judged is not None),
        key=lambda one: one.judged or 0.0,
        default=None,
    )
    if worst is None:
        return
    disclosed, beside = worst.judged or 0.0, "of the records are in cells with one value of it"
    if worst.original is not None:
        original = _short(worst.original, worst.records, found.cutoff)
        beside += f"; {original} in the original"
    figure = _short(disclosed, worst.records, found.cutoff, limit)
    over = limit is not None and disclosed > limit
    yield GlanceFigure(f"Attribute disclosure: {worst.column}", figure, beside, over)


def _short(part: float, records: int, cutoff: int, limit: float | None = None) -> str:
    return shown_share(part, records, cutoff, limit).replace("fewer than ", "<")


def release_terms(review: Review, results: Results) -> list[tuple[str, str]]:
    """Return what is to be released, to whom and for what, as terms and their values."""
    given = review.release
    said = {
        "What is released": product_in_words(review, results),
        "To whom": given.to,
        "What for": given.purpose,
        "Version": given.version,
        "Contact": given.contact,
    }
    rows = [(term, value) for term, value in said.items() if value]
    return [*rows, *(("Condition", text) for text in given.conditions)]


def product_in_words(review: Review, results: Results) -> str:
    """Say what is released by this review."""
    product, file = released_product(review, results), PurePath(review.data.file).name
    if product == "selection":
        return f"the variables of {file} that the selection proposes, their values unchanged"
    plan = plan_of_release(review, results)
    methods = dict.fromkeys(step.method for step in plan.steps) if plan else {}
    protected = f" after protection ({', '.join(methods)})" if methods else ""
    if product == "synthesis" and review.synthesis is not None:
        many = review.synthesis.implicates
        versions = "one version" if many == 1 else f"{many} versions"
        return f"{versions} of {file}{protected} with values partly replaced (implicates)"
    if protected:
        return f"{file}{protected}"
    gone = results[outgoing.OUTGOING].left_out if outgoing.OUTGOING in results else ()
    without = f"without {quoted(gone, most=MOST_NAMED)}, otherwise " if gone else ""
    return f"{file} {without}unchanged"


def remaining_chapter(review: Review, results: Results) -> Chapter | None:
    """Return the chapter on the remaining risk, if anything was done to the file."""
    if outgoing.REMAINING not in results:
        return None
    found: outgoing.Remaining = results[outgoing.REMAINING]
    product, words = released_product(review, results), product_in_words(review, results)
    before = {row.knows: row for row in found.rows if row.product == outgoing.AS_IT_IS}
    after = [row for row in found.rows if row.product == outgoing.PRODUCT_NAMES[product]]
    told = [row for row in after if row.rp is not None]
    said = [f"What is released: {words}. The table shows the risk of each file on each key."]
    if product != "file" and told:
        worst = max(told, key=lambda row: row.rp or 0.0)
        old = before[worst.knows]
        said = [
            f"What is released: {words}. Its risk {'is highest ' * (len(told) > 1)}on "
            f"{worst.knows}: {share(worst.rp)} of the records are in cells smaller than "
            f"{found.cutoff}, against {share(old.rp)} in the original."
        ]
        if worst.still is not None:
            still = count_alone(worst.still, smallest_shown(review.exposure.cutoff))
            said.append(
                f"Of the {old.uniques:,} records that were unique on it, {still} are still unique "
                f"with their original values."
            )
    warnings = []
    if product != "file":
        unmoved = []
        for row in after:  # as exposed as in the file; who got another key is not
            old = before[row.knows]
            same = bool(row.rp) and (row.rp or 0.0) >= (old.rp or 0.0)
            if row.still is not None:
                same = bool(old.uniques) and row.still >= (old.uniques or 0)
            unmoved += [row.knows] if same else []
        if unmoved:
            warnings.append(f"The risk is not lower on: {'; '.join(unmoved)}.")
        read_off = None if "protection" not in results else results["protection"].read_off
        if read_off is not None and product == "protection":
            warnings.append(
                f"Retained columns reveal values that were suppressed or recoded. Including these, "
                f"RP({read_off.cutoff}) on the key of the protection is {share(read_off.rp)}."
            )
        study = review.study  # a candidate, or another file that is attacked, may be the release
        if product == "selection" and study and study.puf is None and not study.candidates:
            warnings.append(
                "The attack of the study was made on the original file, not on the release. Name "
                "the release in [study.candidates] to have it attacked too."
            )
    return Chapter(said=said, wide=found.tables(), warnings=warnings)


def decision_terms(
    review: Review, results: Results, files: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str]]:
    """Return what is decided on, with the hashes that tie the signatures to this review."""
    data = files["data"]
    about = [
        ("What is released", product_in_words(review, results)),
        ("To whom", review.release.to or ""),
        ("Version", review.release.version or ""),
        ("Review file", f"{review.path.name}, SHA-256 {review.sha256[:16]}…"),
        ("Data", f"{data['file']}, SHA-256 {data['sha256'][:16]}…"),
    ]
    return [(term, value) for term, value in about if value]


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
    population = "not estimated: neither weights nor a sampling fraction are given"
    if exposure.weight is not None:
        population = f"each record represents as many people as {exposure.weight} gives"
    elif exposure.fraction is not None:
        population = f"{percentage(exposure.fraction)} of the population is in the file"
    elif exposure.household is not None:
        population = "the file itself: neither weights nor a sampling fraction are given"
    population += f", households by {exposure.household}" if exposure.household else ""
    rows = [
        ["file", review.data.file, "The file under review."],
        ["keys", ", ".join(review.keys) + detail, "The columns an intruder is assumed to know."],
        ["at risk", f"cells smaller than {exposure.cutoff}", "Which records count as at risk."],
        ["missing keys", POLICIES[exposure.missing], "How a missing key is matched."],
        ["population", population, "What the file is a sample of."],
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
            rows.append(
                ["protection: plan", words, "The steps of the plan and the columns they change."]
            )
        shared = {"keys": review.keys} if section != "selection" else {}
        for name, value in question.given().items():
            if name not in _APART.get(section, ()) and value not in (shared.get(name), {}):
                # The first clause of what the setting means.
                words = re.split(r"[.;](?: |$)", question.parameters[name].help, maxsplit=1)[0]
                about = f"{words.replace('`', '').removesuffix(', from 0 to 1')}."
                rows.append([f"{section}: {name}", _shown(name, value, question), about])
    for words, some in (("table", review.table), ("table of the release", review.tabulate)):
        rows += [[words, _tabulated(one), "A table to be published."] for one in some]
    return Table("Settings of the review", ["setting", "value", "meaning"], rows)


def _shown(name: str, value: Any, question: Question) -> str:
    """Write a setting's value; shares in percent, and of scores no value of a record."""
    kind = question.parameters[name].kind
    share = isinstance(kind, Number) and kind.low == 0 and 1 in (kind.high, kind.below)
    if share and isinstance(value, float | int):
        return limit_percentage(value)
    if name == "link" and question.values.get("scenario"):
        return f"{', '.join(value)}, at the detail of scenario {question.scenario!r}"
    if name == "scores":
        return "; ".join(f"{n}: {score_in_words(one)}" for n, one in value.items())
    if name == "ladders" and isinstance(value, Mapping):
        return "; ".join(f"{n}: {len(one['levels'])} levels" for n, one in value.items())
    if isinstance(value, Mapping):
        return "; ".join(f"{n}: {one}" for n, one in value.items())
    if isinstance(value, tuple):
        texts = (" or ".join(one) if isinstance(one, tuple) else f"{one}" for one in value)
        return ", ".join(texts) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value}"


def _tabulated(given: Question) -> str:
    """Say what is tabulated; how unsafe cells are found is not told."""
    of = given.values.get("magnitude") or given.values.get("mean")
    how = {"suppress": ", suppressed", "round": ", rounded", "cell-key": ", with noise"}
    protect = given.values.get("protect", "")
    ending = ", not protected" if protect == "none" else how.get(protect, "")
    across = f" and {', '.join(given.cols)}" if given.cols else ""
    return f"{f'{of} by ' if of else ''}{', '.join(given.rows)}{across}{ending}"


def score_in_words(score: Mapping[str, Any]) -> str:
    """Say how a variable is scored; the values of a table are not named."""
    if "exact" in score:
        return f"{score['exact']:g} if equal"
    if "table" in score:
        pairs = f"a table of {len(score['table'])} pairs of values"
        return f"{score.get('same', 5):g} if equal, {pairs}"
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


class CitedMethod(NamedTuple):
    """A method in a sentence or two, and where it is from."""

    name: str
    text: str
    sources: tuple[str, ...] = ()


_FILE = (resources.files("keyhole.reviews") / "methods.toml").read_text(encoding="utf-8")
_SOURCES: Mapping[str, str] = tomllib.loads(_FILE)["sources"]
METHODS = {
    name: CitedMethod(one["name"], one["text"], tuple(_SOURCES[s] for s in one.get("sources", ())))
    for name, one in tomllib.loads(_FILE)["methods"].items()
}


def methods_used(results: Mapping[str, Any]) -> list[CitedMethod]:
    """Return the methods behind the results of a review, in the order of the work."""
    population = results["exposure"].population
    stages = {name.partition("-")[0] for name in results}
    used = stages | ({"population"} if population is not None else set())
    used |= {"household"} if population is not None and population.of_households else set()
    return [method for name, method in METHODS.items() if name in used]


def sources(*names: str) -> list[str]:
    """Return where methods are from, each source once."""
    return list(dict.fromkeys(source for name in names for source in METHODS[name].sources))


def assumptions(review: Review, results: Mapping[str, Any]) -> list[str]:
    """Return what must hold for the figures to mean what they seem to."""
    missing = {
        "own": "A missing key is a category of its own: an intruder can see that the value is "
        "missing.",
        "wildcard": "A missing key matches every value, both ways. This is the less cautious "
        "reading: cells only grow.",
        "drop": "Records with a missing key are not counted; RP and CR are still shares of all "
        "records.",
    }
    chosen = None if review.scenarios is None else review.scenarios.chosen
    detail = "exactly as they stand in the file"
    if chosen is not None:
        detail = f"of the file at the detail of scenario {chosen!r}, exactly"
    found = [
        ASSUMPTION,
        f"An intruder knows the {len(review.keys)} keys {detail}, and nothing else in it. Errors, "
        f"outdated values and different codings in the intruder’s data make matching harder; "
        f"knowing more variables makes it easier.",
        missing[review.exposure.missing],
    ]
    if results["exposure"].population is not None:
        known = (
            "The file is taken as the whole population: neither weights nor a fraction are given."
        )
        if review.exposure.weight is not None:
            known = "The weights give the number of people that each record represents."
        elif review.exposure.fraction is not None:
            known = "Everybody had the same chance of being in the file: the sampling fraction."
        found.append(known)
    if review.selection is not None:
        found.append(
            "Selection and frontier count a missing value as a category of its own, and limit the "
            "risk of the file as a whole: single records may be far more exposed than RP suggests."
        )
    found.append(
        "The review describes this file at one point in time. It is not a proof of safety: it does "
        "not cover other releases, or an intruder who knows a person well."
    )
    return found
