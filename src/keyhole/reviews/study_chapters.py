"""The chapter on the study: what an attack found on the file and on other releases.

Ids are in no stored result, and strata are shown like other groups: small ones are not named.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.environment.scenarios.identification import interval_shown
from keyhole.reidentification.rates import Interval, Part, Rates
from keyhole.reidentification.residual_risk import Attack, listed_attacks
from keyhole.reidentification.result import Study
from keyhole.results import share
from keyhole.reviews.chapters import Chapter
from keyhole.reviews.count_sheets import (
    Count,
    CountSheet,
    IfExact,
    count_alone,
    hide_counts,
    smallest_shown,
)
from keyhole.reviews.digits import percentage_beside
from keyhole.reviews.group_tables import enter_groups
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import study_stage
from keyhole.reviews.stages.attacks import ATTACKS, ReleasedAttacks, few_of, without_small
from keyhole.reviews.stages.releases import IMPLICATE_1, PROTECTED, RELEASES

Results = Mapping[str, Any]
# Which variables so few pairs agree on, with on how many, would tell of single pairs.
MANY_PAIRS = 600
RATES = {
    "putative_rate": "suspected, of all PUF records",
    "confirmed_rate": "confirmed, of all PUF records",
    "conditional_rate": "confirmed, of the suspected",
    "pair_precision": "true pairs, of the suspected pairs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackChapter(Chapter):
    """A study by one metric as the report shows it."""

    stage: str
    study: Study
    suspected: str


def attacks(review: Review, results: Results, sheet: CountSheet) -> list[AttackChapter]:
    """Return the study by each metric, in the order the review names them."""
    if review.study is None:
        return []
    stages = map(study_stage, review.study.metrics)
    return [_attack(review, stage, results, sheet) for stage in stages]


def _attack(review: Review, stage: str, results: Results, sheet: CountSheet) -> AttackChapter:
    assert review.study is not None
    study: Study = results[stage]
    wide = [_rates(study), strata_table(study, sheet, review.study)]
    narrow = [_perturbation(study, sheet.smallest)]
    if study.suspected:
        narrow += pair_tables(study, sheet)
    about = study.linkage.suspected_in_words, study.linkage.variables_in_words, *study.recoding
    return AttackChapter(
        stage=stage,
        study=study,
        suspected=" ".join(about),
        said=[*study.findings.values(), *_identified(study, results.get("scenarios"))],
        wide=[table for table in wide if table is not None],
        narrow=[table for table in narrow if table is not None],
    )


def _identified(study: Study, scenarios: Any) -> list[str]:
    """Tell p(identification) under the scenario that the study links on, if it is one's."""
    bounds, name = study.rates.intervals["confirmed_rate"], study.scenario
    if name is None or scenarios is None or bounds is None:
        return []
    story = next(one for one in scenarios.comparison.parts if one.name == name)
    attempt = story.identification.attempt
    product = interval_shown((bounds[0] * attempt[0], bounds[1] * attempt[1]))
    return [
        f"p(identification) under scenario {name!r} is {product}: the 95% interval of the "
        f"confirmed rate times p(attempt), {interval_shown((attempt[0], attempt[1]))}."
    ]


def _rates(study: Study) -> Table:
    chances = study.by_chance
    rows = []
    for name, rate in study.rates.named().items():
        chance = share(chances[name]) if name in chances else ""
        counts = [f"{rate.count:,}", f"{rate.total:,}"]
        rows.append([RATES[name], *counts, share(rate.value), _bounds(rate.interval), chance])
    columns = ["rate", "count", "of", "value", "95% interval", "by chance"]
    return Table("Rates", columns, rows)


def _bounds(interval: Interval | None) -> str:
    return "" if interval is None else f"{share(interval[0])} to {share(interval[1])}"


def _perturbation(study: Study, smallest: int) -> Table | None:
    found = study.perturbation
    if found is None:
        return None
    before, after = found.without.named(), study.rates.named()
    rows = [
        [words, share(before[name].value), share(after[name].value)]
        for name, words in RATES.items()
    ]
    changed = ", ".join(
        f"{name} {count_alone(count, smallest)}" for name, count in found.changed.items()
    )
    notes = [f"Values perturbed, in {found.records:,} records of the IUF: {changed}."]
    columns = ["rate", "without it", "with it"]
    return Table("What the perturbation bought", columns, rows, notes)


def strata_table(study: Study, sheet: CountSheet, asked: Question) -> Table | None:
    """Return the rates by stratum; the files' totals are known."""
    parts, strata = study.by_stratum, ", ".join(study.linkage.strata)
    if not parts:
        return None
    # The strata of another file are other groups.
    by = strata if asked.puf is None else f"{strata} of {asked.puf}"
    sizes = [(part.label, part.rates.puf_records) for part in parts]
    groups = enter_groups(sheet, by, sizes, asked.named_groups, own=asked.puf is None)
    rows: list[list[object]] = []
    entered: list[tuple[Count, Count]] = []
    for place, (part, size) in enumerate(zip(parts, groups.sizes, strict=True)):
        enter = sheet.count if groups.is_described(place, 1) else sheet.unshown
        suspected = enter(part.rates.suspected, of=size)
        confirmed = enter(part.rates.confirmed, of=suspected)
        entered.append((suspected, confirmed))
        interval = _bounds(part.rates.intervals["conditional_rate"])
        if groups.is_described(place, 1):
            rate = sheet.rate(confirmed, suspected)
            only = IfExact([suspected, confirmed], interval)
            rows.append([suspected, confirmed, rate, only])
        else:
            rows.append([""] * 4)
    for column in zip(*entered, strict=True):
        sheet.add_up(column, sum(count.value for count in column))
    columns = ["stratum", "PUF records", "suspected", "confirmed", "conditional", "95% interval"]
    table = groups.table(f"By {strata}", columns, rows)
    return dataclasses.replace(table, notes=_unlinked(study, sheet.smallest))


def _unlinked(study: Study, smallest: int) -> list[str]:
    """Say how many records of each file lie in a stratum that the other does not have."""
    if study.gaps is None:
        return []
    named = ", ".join(study.linkage.strata)
    # Of the PUF a count may be that of a stratum which the table withholds.
    texts = study.gaps.puf.in_words("PUF", "EIF", named, count=lambda _: "some")
    texts += study.gaps.eif.in_words("EIF", "PUF", named, lambda n: count_alone(n, smallest))
    return [f"{text[0].upper()}{text[1:]}." for text in texts]


def pair_tables(study: Study, sheet: CountSheet) -> list[Table]:
    """Return the pairs by agreement, by rank or subset, and by variable.

    They are the same pairs: how many variables they agree on, added up, is how many pairs agree
    on each variable, added up.
    """
    agreement, agreeing = _pairs(
        "By number of variables on which a pair agrees", "agreeing", study.by_agreement, sheet
    )
    agreement = dataclasses.replace(agreement, notes=[study.linkage.agreeing_in_words])
    title = "By rank within a PUF record"
    if study.is_by_unicity:
        title = "By size of the smallest set of variables on which a pair is alone"
    head = "variables" if study.is_by_unicity else "rank"
    places, placed = _pairs(title, head, study.by_place, sheet)
    pairs, true = sheet.total(study.rates.pairs), sheet.total(study.rates.true_pairs)
    uses = study.by_variables
    columns = {
        "of the pairs": [sheet.unshown(use.pairs_agreeing, of=pairs) for use in uses],
        "of the true pairs": [sheet.unshown(use.true_pairs_agreeing, of=true) for use in uses],
    }
    for own, right in zip(*columns.values(), strict=True):
        sheet.at_least([(own, 1), (right, -1)], 0)  # true pairs are pairs,
        sheet.at_least([(pairs, 1), (own, -1), (true, -1), (right, 1)], 0)  # as false ones are
    sheet.weigh_up_if_true(agreeing[0], columns["of the pairs"])
    sheet.weigh_up_if_true(agreeing[1], columns["of the true pairs"])
    if study.is_by_unicity:
        held = [round((use.share_in_smallest_subset or 0) * pairs.value) for use in uses]
        columns["in the smallest set"] = [sheet.unshown(count, of=pairs) for count in held]
        sheet.weigh_up_if_true(placed[0], columns["in the smallest set"])
    rates = [
        [sheet.rate(count, whole, enough=MANY_PAIRS) for count in counts]
        for head, counts in columns.items()
        for whole in [true if head == "of the true pairs" else pairs]
    ]
    rows = [[use.variable, *row] for use, row in zip(uses, zip(*rates, strict=True), strict=True)]
    title = "Share of pairs that agree on each variable"
    return [agreement, places, Table(title, ["variable", *columns], rows)]


Weighed = list[tuple[Count, int]]


def _pairs(
    title: str, head: str, parts: Sequence[Part], sheet: CountSheet
) -> tuple[Table, tuple[Weighed, Weighed]]:
    """Lay out the pairs of each part, which add up to those of the study; and return the counts."""
    pairs = [sheet.count(part.rates.pairs) for part in parts]
    true = [
        sheet.count(part.rates.true_pairs, of=count)
        for part, count in zip(parts, pairs, strict=True)
    ]
    for column in (pairs, true):
        sheet.add_up(column, sum(count.value for count in column))
    rows: list[list[object]] = [
        [str(part.label), every, right, sheet.rate(right, every)]
        for part, every, right in zip(parts, pairs, true, strict=True)
    ]
    labels = [int(part.label) for part in parts]
    counts = tuple([*zip(column, labels, strict=True)] for column in (pairs, true))
    return Table(title, [head, "pairs", "true pairs", "share true"], rows), (counts[0], counts[1])


ATTACK_TITLES = {
    "singled-out": "Singling out",
    "linked": "Linking two sources",
    "inferred": "Inferring a secret",
    "present": "Telling who is in the file",
}
_NULL = r"^.* (is|are) null"
_STORIES = {
    "singled-out": "predicates that fit one record of the release fit exactly one person",
    "linked": "one record of the release is closest to what both sources know of a person",
    "inferred": "the records closest to what is known of a person tell {secret}",
    "present": "of as many people of the file as outside it, the half nearer to the release is "
    "said to be in it",
}


@dataclass(frozen=True, slots=True)
class ControlledChapter:
    """Attacks with a control as the report shows them: a sentence each, and the figures."""

    said: Sequence[str]
    table: Table | None
    notes: Sequence[str]


def controlled_chapter(review: Review, results: Results) -> ControlledChapter | None:
    """Return the chapter on attacks with a control, if they were made."""
    if review.attacks is None or ATTACKS not in results:
        return None
    found: ReleasedAttacks = results[ATTACKS]
    smallest, secret = smallest_shown(found.cutoff), ", ".join(review.attacks.secret)
    said = []
    for name, one in found.worst.items():
        shown, story = without_small(one, smallest), _STORIES[name].format(secret=secret)
        ends = shown.intervals["risk"]
        words = f"{ATTACK_TITLES[name]}: {story}; {rates_said(one, smallest)}."
        if shown.risk is not None and ends is not None:
            risk, low, high = (percentage_beside(x, 1) for x in (shown.risk, *ends))
            words += f" The residual risk is {risk} (95% interval {low} to {high})."
        if one.roc_area is not None:
            words += f" The ROC area is {one.roc_area:.2f}; that of a coin is 0.5."
        said.append(words)
    said += [f"{ATTACK_TITLES[name]}: not tried, {why}." for name, why in found.not_made.items()]
    said += [f"The attacks could not be made: {found.unfit}"] if found.unfit else []
    several = len(found.files) > 1
    rows = [
        [*[one.file.rpartition("/")[2]] * several, *row]
        for one in found.files
        for row in _attack_rows(one.found.attacks, smallest)
    ]
    head = ["attack", "attempts", "controls", "success", "control", "baseline", "residual risk",
            "95% interval"]  # fmt: skip
    table = Table("By file and attack", ["file"] * several + head, rows) if rows else None
    return ControlledChapter(said, table, _attack_remarks(found, smallest))


def rates_said(one: Attack, smallest: int, limit: float | None = None) -> str:
    """Say how often an attack succeeds, on whom, and how often a guess does; few are not told."""
    few, parts = few_of(one, smallest), []
    for name, whom in (("success", "people of the file"), ("control", "people outside it")):
        rate = getattr(one, name)
        if rate is not None:
            shown = percentage(rate) if limit is None else percentage_beside(rate, limit)
            shown = f"fewer than {smallest}" if name in few else shown
            parts.append(f"{shown} of the attempts on {whom}")
    told = f"it succeeds in {' and '.join(parts)}" if parts else "it could not be tried"
    if one.baseline is None or "baseline" in few:
        return told
    return f"{told}, a guess without the release in {percentage(one.baseline)}"


def _attack_rows(attacks: Mapping[str, Attack], smallest: int) -> Iterator[list[str]]:
    for name, one in listed_attacks(attacks):
        few, shown = few_of(one, smallest), without_small(one, smallest)
        rates = [
            f"<{smallest} people" if n in few else share(getattr(one, n))
            for n in ("success", "control", "baseline")
        ]
        ends = shown.intervals["risk"]
        risk = "withheld" if shown.risk is None and one.risk is not None else share(shown.risk)
        counts = (count_alone(n, smallest) for n in (one.attempts, one.controls))
        yield [name, *counts, *rates, risk, _bounds(ends)]


def _attack_remarks(found: ReleasedAttacks, smallest: int) -> list[str]:
    """Say what the figures rest on, and why some are absent, each once."""
    remarks = [
        "Success: on people of the file. Control: on people who were not in it. Baseline: a guess "
        "without the release. Residual risk: (success - control) / (1 - control)."
    ]
    if found.control == "held out":
        remarks.append("The control was held out at random before the synthesis.")
    if found.left_out:
        left = ", ".join(found.left_out)
        remarks.append(f"Not released, or not to be coded as the release is: {left}.")
    for name, one in listed_attacks(found.worst):
        for text in hide_counts(one.notes, smallest):
            remarks.append(f"{name}: {re.sub(_NULL, 'not estimable', text)}.")
    return remarks


def metrics_table(review: Review, results: Results) -> Table | None:
    """Set the metrics side by side, if there are several."""
    if review.study is None or len(review.study.metrics) < 2:
        return None
    rows = []
    for metric in review.study.metrics:
        study = results[study_stage(metric)]
        chance = share(study.baseline.conditional_rate) if study.baseline else ""
        rows.append([metric, *_cells(study.rates), chance])
    columns = ["metric", "suspected", "confirmed", "conditional", "95% interval", "by chance"]
    return Table("Metrics, side by side", columns, rows)


def _cells(rates: Rates) -> list[str]:
    shares = (rates.putative_rate, rates.confirmed_rate, rates.conditional_rate)
    return [*map(share, shares), _bounds(rates.intervals["conditional_rate"])]


def releases_chapter(review: Review, results: Results) -> Chapter | None:
    """Return what the attack achieves on the releases, if there are others than the file."""
    if review.study is None or RELEASES not in results:
        return None
    studies = [results[study_stage(metric)] for metric in review.study.metrics]
    name = review.study.puf or review.data.file
    own = [(name, study.metric, study.rates) for study in studies]
    rows = results[RELEASES].found.rows
    others = [(row.release, row.metric, row.rates) for row in rows]
    limit, judged = review.study.limit, any(study.overlap.records for study in studies)
    columns = ["release", "metric", "suspected", "confirmed", "conditional", "95% interval"]
    columns += ["within the limit"] * (limit is not None)
    cells = []
    for release, metric, rates in [*own, *others]:
        within = [] if limit is None else [_within(rates.conditional_rate, limit, judged)]
        cells.append([release, metric, *_cells(rates), *within])
    warnings = dict.fromkeys(f"{row.release}: {text}." for row in rows for text in row.warnings)
    return Chapter(
        said=[*_of_protection(review, results), *_of_synthesis(review, results)],
        wide=[Table("The same attack on each release", columns, cells)],
        warnings=[*warnings],
    )


def _within(rate: float | None, limit: float, judged: bool) -> str:
    """Judge a release; where the IUF names nobody, no rate says that it is within the limit."""
    if rate is not None and not judged:
        return "not judged"
    return "yes" if (rate or 0.0) <= limit else "no"


def protected_rates(
    review: Review, results: Results, release: str = IMPLICATE_1
) -> list[tuple[str, float | None, float | None]]:
    """Return by metric the conditional rate on the file, and on a release made from it."""
    if review.study is None or RELEASES not in results:
        return []
    after = {
        row.metric: row.rates.conditional_rate
        for row in results[RELEASES].found.rows
        if row.release == release
    }
    return [
        (metric, results[study_stage(metric)].conditional_rate, after[metric])
        for metric in review.study.metrics
        if metric in after
    ]


def _moves(found: Sequence[tuple[str, float | None, float | None]], what: str) -> str:
    words = [
        (metric, *("nobody suspected" if rate is None else percentage(rate) for rate in rates))
        for metric, *rates in found
    ]
    moves = "; ".join(f"by {metric} {a} before and {b} after" for metric, a, b in words)
    return f"Of the records an intruder suspects, truly found: {moves} the {what}."


def _of_protection(review: Review, results: Results) -> list[str]:
    rates = protected_rates(review, results, PROTECTED)
    found = results[RELEASES]
    said = [_moves(rates, "protection")] if rates else []
    if found.coded:
        said.append(
            f"The intruder sees how the protected file is coded, and is taken to code "
            f"{', '.join(found.coded)} of the own file alike."
        )
    if found.uncoded:
        said.append(
            f"The intruder’s values of {', '.join(found.uncoded)} cannot be coded as "
            f"the protected file is: the attack is made without, and one that finds a way "
            f"succeeds more often."
        )
    return said + [
        f"On {one.release} the attack cannot be made by {one.metric}: {one.reason}"
        for one in found.unfit
    ]


def _of_synthesis(review: Review, results: Results) -> list[str]:
    found = protected_rates(review, results)
    if not found or review.study is None or review.synthesis is None:
        return []
    link = [*review.study.link, *review.study.strata]
    changed = [name for name in link if name in review.synthesis.targets]
    kept = [name for name in link if name not in review.synthesis.targets]
    said = [_moves(found, "synthesis")]
    said.append(
        f"The synthesis protects records that stand out on {', '.join(review.synthesis.keys)}, by "
        f"other values of {', '.join(review.synthesis.targets)}. This attack links on "
        f"{', '.join(link)}; of these {', '.join(changed) or 'none'} may change, in the records at "
        f"risk, and {', '.join(kept) or 'none'} go out as they are."
    )
    limit = review.study.limit
    if limit is not None and any((after or 0.0) > limit for _, _, after in found):
        said.append(
            "Goals that are met on the key of the synthesis do not stop this attack. What helps: "
            "the linking variables among the keys and targets, coarser ones, or fewer of them."
        )
    return said
