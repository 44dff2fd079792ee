"""The chapter on the study: what an attack found on the file and on other releases.

Ids are in no stored result, and strata are shown like other groups: small ones are not named.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.options import Question
from keyhole.core.tables import Table
from keyhole.environment.scenarios.scenarios import interval_text
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
from keyhole.reviews.group_tables import enter_groups
from keyhole.reviews.rendering import percentage_beside
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.attacks import (
    ATTACKS,
    IMPLICATE_1,
    PROTECTED,
    RELEASES,
    ReleasedAttacks,
    few_of,
    study_stage,
    without_small,
)

Results = Mapping[str, Any]
# Which variables so few pairs agree on, with on how many, would tell of single pairs.
MANY_PAIRS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackChapter(Chapter):
    """A study by one metric as the report shows it."""

    stage: str
    study: Study
    suspected: str


def attacks(review: Review, results: Results, sheet: CountSheet) -> list[AttackChapter]:
    """Return the study by each metric, in the order the review names them."""
    found: list[AttackChapter] = []
    asked = review.study
    for stage in () if asked is None else map(study_stage, asked.metrics):
        assert asked is not None
        study: Study = results[stage]
        rates = dataclasses.replace(study.tables()[0], title="Rates", notes=())
        strata = strata_table(study, sheet, asked)
        narrow = pair_tables(study, sheet) if study.suspected else []
        if study.perturbation is not None:
            lost = study.perturbation
            changed = [f"{n} {count_alone(c, sheet.smallest)}" for n, c in lost.changed.items()]
            note = (
                f"Values perturbed, in {lost.records:,} records of the IUF: {', '.join(changed)}."
            )
            narrow = [dataclasses.replace(lost.table(study.rates), notes=[note]), *narrow]
        about = study.linkage.suspected_in_words, study.linkage.variables_in_words, *study.recoding
        chapter = AttackChapter(
            stage=stage,
            study=study,
            suspected=" ".join(about),
            said=[*study.findings.values(), *_identified(study, results.get("scenarios"))],
            wide=[rates] if strata is None else [rates, strata],
            narrow=narrow,
        )
        found.append(chapter)
    return found


def _identified(study: Study, scenarios: Any) -> list[str]:
    """Tell p(identification) under the scenario that the study links on, if it is one's."""
    bounds, name = study.rates.intervals["confirmed_rate"], study.scenario
    if name is None or scenarios is None or bounds is None:
        return []
    story = next(one for one in scenarios.comparison.parts if one.name == name)
    attempt = story.identification.attempt
    product = interval_text((bounds[0] * attempt[0], bounds[1] * attempt[1]))
    return [
        f"p(identification) under scenario {name!r} is {product}: the 95% interval of the "
        f"confirmed rate times p(attempt), {interval_text((attempt[0], attempt[1]))}."
    ]


def _bounds(interval: Interval | None) -> str:
    return "" if interval is None else f"{share(interval[0])} to {share(interval[1])}"


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
        described = groups.is_described(place, 1)
        enter = sheet.count if described else sheet.unshown
        suspected = enter(part.rates.suspected, of=size)
        confirmed = enter(part.rates.confirmed, of=suspected)
        entered.append((suspected, confirmed))
        row: list[object] = [""] * 4
        if described:
            interval = _bounds(part.rates.intervals["conditional_rate"])
            only = IfExact([suspected, confirmed], interval)
            row = [suspected, confirmed, sheet.rate(confirmed, suspected), only]
        rows.append(row)
    for column in zip(*entered, strict=True):
        sheet.add_up(column, sum(count.value for count in column))
    columns = ["stratum", "PUF records", "suspected", "confirmed", "conditional", "95% interval"]
    table, gaps, smallest = groups.table(f"By {strata}", columns, rows), study.gaps, sheet.smallest
    if gaps is None:
        return table
    # Of the PUF a count may be that of a stratum which the table withholds.
    texts = gaps.puf.in_words("PUF", "EIF", strata, count=lambda _: "some")
    texts += gaps.eif.in_words("EIF", "PUF", strata, lambda n: count_alone(n, smallest))
    return dataclasses.replace(table, notes=[f"{text[0].upper()}{text[1:]}." for text in texts])


def pair_tables(study: Study, sheet: CountSheet) -> list[Table]:
    """Return the pairs by agreement, by rank or subset, and by variable: the same pairs."""
    agreement, agreeing = _pairs(
        "By number of variables on which a pair agrees", "agreeing", study.by_agreement, sheet
    )
    agreement = dataclasses.replace(agreement, notes=[study.linkage.agreeing_in_words])
    title = "By rank within a PUF record"
    if study.is_by_unicity:
        title = "By size of the smallest set of variables on which a pair is unique"
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
    both = zip(parts, pairs, strict=True)
    true = [sheet.count(part.rates.true_pairs, of=count) for part, count in both]
    for column in (pairs, true):
        sheet.add_up(column, sum(count.value for count in column))
    labels = [int(part.label) for part in parts]
    rows: list[list[object]] = [
        [str(part.label), every, right, sheet.rate(right, every)]
        for part, every, right in zip(parts, pairs, true, strict=True)
    ]
    table = Table(title, [head, "pairs", "true pairs", "share true"], rows)
    return table, ([*zip(pairs, labels, strict=True)], [*zip(true, labels, strict=True)])


ATTACK_TITLES = {
    "singled-out": "Singling out",
    "linked": "Linking two sources",
    "inferred": "Inferring a secret",
    "present": "Detecting who is in the file",
}
_NULL = r"^.* (is|are) null"
_STORIES = {
    "singled-out": "predicates that match one record of the release match exactly one person",
    "linked": "one record of the release is the closest to what both sources know about a person",
    "inferred": "the records closest to what is known about a person reveal {secret}",
    "present": "among equally many people in and outside the file, the half closer to the release "
    "is taken to be in it",
}


def controlled_chapter(review: Review, results: Results) -> Chapter | None:
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
            words += f" The ROC area is {one.roc_area:.2f}; 0.5 is no better than chance."
        said.append(words)
    said += [f"{ATTACK_TITLES[name]}: not tried, {why}." for name, why in found.not_made.items()]
    said += [f"The attacks could not be made: {found.unfit}"] if found.unfit else []
    several = len(found.files) > 1
    rows = [
        [*[file.file.rpartition("/")[2]] * several, *_attack_row(name, one, smallest)]
        for file in found.files
        for name, one in listed_attacks(file.found.attacks)
    ]
    head = ["attack", "attempts", "controls", "success", "control", "baseline", "residual risk",
            "95% interval"]  # fmt: skip
    tables = [Table("By file and attack", ["file"] * several + head, rows)] if rows else []
    notes = [
        "Success: on people in the file. Control: on people who were not in it. Baseline: a guess "
        "without the release. Residual risk: (success - control) / (1 - control)."
    ]
    if found.control == "held out":
        notes.append("The control was held out at random before the synthesis.")
    if found.left_out:
        left = ", ".join(found.left_out)
        notes.append(
            f"Not used, because they are not released or cannot be coded as in the release: {left}."
        )
    for name, one in listed_attacks(found.worst):  # why some are absent
        told = hide_counts(one.notes, smallest)
        notes += [f"{name}: {re.sub(_NULL, 'not estimable', text)}." for text in told]
    return Chapter(said=said, wide=tables, notes=notes)


def rates_said(one: Attack, smallest: int, limit: float | None = None) -> str:
    """Say how often an attack succeeds, on whom, and how often a guess does; few are not told."""
    few, parts = few_of(one, smallest), []
    for name, whom in (("success", "people in the file"), ("control", "people outside it")):
        rate = getattr(one, name)
        if rate is not None:
            shown = percentage(rate) if limit is None else percentage_beside(rate, limit)
            shown = f"fewer than {smallest}" if name in few else shown
            parts.append(f"{shown} of the attempts on {whom}")
    told = f"it succeeds in {' and '.join(parts)}" if parts else "it could not be tried"
    if one.baseline is None or "baseline" in few:
        return told
    return f"{told}, a guess without the release in {percentage(one.baseline)}"


def _attack_row(name: str, one: Attack, smallest: int) -> list[str]:
    few, shown = few_of(one, smallest), without_small(one, smallest)
    rates = [
        f"<{smallest} people" if n in few else share(getattr(one, n))
        for n in ("success", "control", "baseline")
    ]
    risk = "withheld" if shown.risk is None and one.risk is not None else share(shown.risk)
    counts = (count_alone(n, smallest) for n in (one.attempts, one.controls))
    return [name, *counts, *rates, risk, _bounds(shown.intervals["risk"])]


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
        within = {True: "yes", False: "no"}[(rates.conditional_rate or 0.0) <= (limit or 0.0)]
        if rates.conditional_rate is not None and not judged:
            within = "not judged"  # where the IUF names nobody, no rate says so
        cells.append([release, metric, *_cells(rates), *[within] * (limit is not None)])
    warnings = dict.fromkeys(f"{row.release}: {text}." for row in rows for text in row.warnings)
    return Chapter(
        said=[*_of_protection(review, results), *_of_synthesis(review, results)],
        wide=[Table("The same attack on each release", columns, cells)],
        warnings=[*warnings],
    )


def protected_rates(
    review: Review, results: Results, release: str = IMPLICATE_1
) -> list[tuple[str, float | None, float | None]]:
    """Return by metric the conditional rate on the file, and on a release made from it."""
    if review.study is None or RELEASES not in results:
        return []
    rows = [row for row in results[RELEASES].found.rows if row.release == release]
    after = {row.metric: row.rates.conditional_rate for row in rows}
    metrics = [metric for metric in review.study.metrics if metric in after]
    return [(one, results[study_stage(one)].conditional_rate, after[one]) for one in metrics]


def _moves(found: Sequence[tuple[str, float | None, float | None]], what: str) -> str:
    def shown(rate: float | None) -> str:
        return "nobody suspected" if rate is None else percentage(rate)

    moves = "; ".join(f"by {name} {shown(a)} before and {shown(b)} after" for name, a, b in found)
    return f"Share of suspected records that are correct matches: {moves} the {what}."


def _of_protection(review: Review, results: Results) -> list[str]:
    rates, found = protected_rates(review, results, PROTECTED), results[RELEASES]
    said = [_moves(rates, "protection")] if rates else []
    if found.coded:
        said.append(
            f"The intruder can see how the protected file is coded, and is assumed to code "
            f"{', '.join(found.coded)} in the intruder’s own file in the same way."
        )
    if found.uncoded:
        said.append(
            f"The intruder’s values of {', '.join(found.uncoded)} cannot be coded as in the "
            f"protected file: the attack is made without them. An intruder who finds a way to code "
            f"them would succeed more often."
        )
    return said + [
        f"The attack by {one.metric} cannot be made on {one.release}: {one.reason}"
        for one in found.unfit
    ]


def _of_synthesis(review: Review, results: Results) -> list[str]:
    found = protected_rates(review, results)
    if not found or review.study is None or review.synthesis is None:
        return []
    link = [*review.study.link, *review.study.strata]
    changed = ", ".join(name for name in link if name in review.synthesis.targets)
    kept = ", ".join(name for name in link if name not in review.synthesis.targets)
    said = [
        _moves(found, "synthesis"),
        f"The synthesis protects records at risk on {', '.join(review.synthesis.keys)} by "
        f"replacing values of {', '.join(review.synthesis.targets)}. This attack links on "
        f"{', '.join(link)}; of these the synthesis may change {changed or 'none'} in the records "
        f"it replaces, and does not change {kept or 'none'}.",
    ]
    limit = review.study.limit
    if limit is not None and any((after or 0.0) > limit for _, _, after in found):
        said.append(
            "Meeting the goals on the key of the synthesis does not stop this attack. To stop it, "
            "make the linking variables keys and targets, or release coarser or fewer of them."
        )
    return said
