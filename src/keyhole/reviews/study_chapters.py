"""The chapter on the study: what an attack found on the file and on other releases.

Ids are in no stored result, and strata are shown like other groups: small ones are not named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.notes import restore_notes
from keyhole.environment.scenarios.identification import shown as interval_shown
from keyhole.reidentification.strata import unlinked
from keyhole.results import Table, share
from keyhole.reviews.groups import NONE_FIT, group_records, like_exposure
from keyhole.reviews.settings import Review
from keyhole.reviews.small_counts import (
    hide_nested,
    nested_rate,
    protect_count,
    protect_share,
    smallest_shown,
)
from keyhole.reviews.stages import study_stage
from keyhole.reviews.stages.releases import IMPLICATE_1, PROTECTED, RELEASES

__all__ = [
    "Attack",
    "ReleasesChapter",
    "attacks",
    "metrics_table",
    "protected_rates",
    "releases_chapter",
]

Figures = Mapping[str, Any]
# The notes that say what a suspected pair is.
ABOUT = ("study.suspects", "study.variables", "exposure.scenario")
RATES = {
    "putative_rate": ("suspected, of all PUF records", "suspected", "puf_records"),
    "confirmed_rate": ("confirmed, of all PUF records", "confirmed", "puf_records"),
    "conditional_rate": ("confirmed, of the suspected", "confirmed", "suspected"),
    "pair_precision": ("true pairs, of the suspected pairs", "true_pairs", "pairs"),
}


@dataclass(frozen=True, slots=True)
class Attack:
    """A study by one metric as the report shows it."""

    stage: str
    metric: str
    suspected: str
    said: Sequence[str]
    caveats: Sequence[str]
    warnings: Sequence[str]
    wide: Sequence[Table]
    narrow: Sequence[Table]


def attacks(review: Review, records: Mapping[str, Figures]) -> list[Attack]:
    """Return the study by each metric, in the order the review names them."""
    if review.study is None:
        return []
    exposure = records["exposure"]["result"]
    # The strata of another file are other groups.
    exposure = exposure if review.study.puf is None else {}
    chosen = [records[study_stage(metric)] for metric in review.study.metrics]
    found = [_attack(review, record, exposure) for record in chosen]
    identified = [_identified(record["result"], records.get("scenarios")) for record in chosen]
    return [
        dataclasses.replace(attack, said=[*attack.said, *said])
        for attack, said in zip(found, identified, strict=True)
    ]


def _identified(result: Figures, scenarios: Figures | None) -> list[str]:
    """Tell p(identification) under the scenario that the study links on, if it is one's."""
    bounds, name = result["intervals"]["confirmed_rate"], result.get("scenario")
    if name is None or scenarios is None or bounds is None:
        return []
    story = next(one for one in scenarios["result"]["scenarios"] if one["scenario"] == name)
    attempt = story["identification"]["p_attempt"]
    product = interval_shown((bounds[0] * attempt[0], bounds[1] * attempt[1]))
    return [
        f"p(identification) under scenario {name!r} is {product}: the 95% interval of the "
        f"confirmed rate times p(attempt), {interval_shown((attempt[0], attempt[1]))}."
    ]


def _attack(review: Review, record: Figures, exposure: Figures) -> Attack:
    result, smallest = record["result"], smallest_shown(review.exposure.cutoff)
    notes = restore_notes(record)
    by_code = {note.code: text for text, note in notes.items()}
    caveats = [text for text in result["verdict"] if text in notes]
    assert review.study is not None
    wide = [_rates(result), _strata(result, smallest, review.study.named_groups, exposure)]
    narrow = [_perturbation(result, smallest)]
    if result["suspected"]:
        narrow.append(_agreement(result, smallest, by_code.get("study.agreeing")))
        narrow += [_places(result, smallest), _variables(result, smallest)]
    return Attack(
        stage=record["stage"],
        metric=result["metric"],
        suspected=" ".join(by_code[code] for code in ABOUT if code in by_code),
        said=[text for text in result["verdict"] if text not in caveats],
        caveats=caveats,
        warnings=result["warnings"],
        wide=[table for table in wide if table is not None],
        narrow=[table for table in narrow if table is not None],
    )


def _rates(result: Figures) -> Table:
    base = result["baseline"] or {}
    rows = []
    for name, (words, count, total) in RATES.items():
        chance = share(base[name]) if name in base else ""
        counts = [f"{result[count]:,}", f"{result[total]:,}"]
        rows.append([words, *counts, share(result[name]), _interval(result, name), chance])
    columns = ["rate", "count", "of", "value", "95% interval", "by chance"]
    return Table("Rates", columns, rows)


def _interval(result: Figures, name: str) -> str:
    bounds = result["intervals"][name]
    return "" if bounds is None else f"{bounds[0]:.4f} to {bounds[1]:.4f}"


def _perturbation(result: Figures, smallest: int) -> Table | None:
    """Set the rates with and without the perturbation side by side."""
    found = result["perturbation"]
    if not found:
        return None
    rows = [
        [words, share(found["without"][name]), share(result[name])]
        for name, (words, _, _) in RATES.items()
    ]
    changed = ", ".join(
        f"{name} {protect_count(count, smallest)}" for name, count in found["changed"].items()
    )
    notes = [f"Values perturbed, in {found['records']:,} records of the IUF: {changed}."]
    columns = ["rate", "without it", "with it"]
    return Table("What the perturbation bought", columns, rows, notes)


def _strata(
    result: Figures, smallest: int, named: Sequence[str], exposure: Figures
) -> Table | None:
    """Return the rates by stratum; the files' totals are known, so they are protected together."""
    parts = result["by_stratum"]
    if not parts:
        return None
    groups = [{"group": str(p["stratum"]), "records": p["puf_records"]} for p in parts]
    by = result["strata"][0] if len(result["strata"]) == 1 else None
    grouping = group_records(like_exposure(groups, by, exposure), smallest, named)
    counts = [[part[name] for part in parts] for name in ("puf_records", "suspected", "confirmed")]
    told = hide_nested(counts, smallest, first=grouping.sizes)
    title = f"By {', '.join(result['strata'])}"
    columns = ["stratum", "PUF records", "suspected", "confirmed", "conditional", "95% interval"]
    if told is None:
        return Table(title, columns, [], [NONE_FIT])
    rows = []
    for i in grouping.named:
        size, suspected, confirmed = (column[i] for column in told)
        both = (confirmed, suspected)
        rate = nested_rate(counts[2][i], counts[1][i], both, smallest)
        interval = _interval(parts[i], "conditional_rate") if all(n.exact for n in both) else ""
        cells = [suspected.text, confirmed.text, rate, interval]
        small = not size.exact and not size.kept_back
        rows.append([groups[i]["group"], size.text, *([""] * 4 if small else cells)])
    rows += grouping.pool(len(columns))
    return Table(title, columns, rows, [*grouping.notes, *_unlinked(result, smallest)])


def _unlinked(result: Figures, smallest: int) -> list[str]:
    """Say how many records of each file lie in a stratum that the other does not have."""
    gaps, named = result["unlinked"], ", ".join(result["strata"])
    # Of the PUF a count may be that of a stratum which the table withholds.
    texts = unlinked(gaps["puf"], "PUF", "EIF", named, count=lambda _: "some")
    texts += unlinked(gaps["eif"], "EIF", "PUF", named, lambda n: protect_count(n, smallest))
    return [f"{text[0].upper()}{text[1:]}." for text in texts]


def _agreement(result: Figures, smallest: int, said: str | None) -> Table:
    title = "By number of variables on which a pair agrees"
    table = _pairs(title, "agreeing", "agreeing", result["by_agreement"], smallest)
    return dataclasses.replace(table, notes=[*table.notes, *([said] if said else [])])


def _places(result: Figures, smallest: int) -> Table:
    if "by_subset_size" in result:
        title = "By size of the smallest set of variables on which a pair is alone"
        return _pairs(title, "variables", "subset_size", result["by_subset_size"], smallest)
    return _pairs("By rank within a PUF record", "rank", "rank", result["by_rank"], smallest)


def _pairs(title: str, head: str, name: str, parts: Sequence[Figures], smallest: int) -> Table:
    """Lay out the pairs of each part; they add up to the pairs of the study."""
    counts = [[part[what] for part in parts] for what in ("pairs", "true_pairs")]
    told = hide_nested(counts, smallest)
    if told is None:
        return Table(title, [], [], ["The pairs are too few to be shown part by part."])
    rows = []
    for i, part in enumerate(parts):
        rate = nested_rate(counts[1][i], counts[0][i], (told[1][i], told[0][i]), smallest)
        rows.append([str(part[name]), told[0][i].text, told[1][i].text, rate])
    return Table(title, [head, "pairs", "true pairs", "share true"], rows)


def _variables(result: Figures, smallest: int) -> Table:
    """Return how many pairs agree on each variable: which of them make the suspects."""
    subsets = "by_subset_size" in result
    rows = []
    for use in result["by_variables"]:
        cells = [
            protect_share(use["pairs_agreeing"], result["pairs"], smallest),
            protect_share(use["true_pairs_agreeing"], result["true_pairs"], smallest),
        ]
        if subsets:
            held = round((use["share_in_smallest_subset"] or 0) * result["pairs"])
            cells.append(protect_share(held, result["pairs"], smallest))
        rows.append([use["variable"], *cells])
    columns = ["variable", "of the pairs", "of the true pairs"]
    columns += ["in the smallest set"] * subsets
    return Table("Share of pairs that agree on each variable", columns, rows)


def metrics_table(review: Review, results: Mapping[str, Figures]) -> Table | None:
    """Set the metrics side by side, if there are several."""
    if review.study is None or len(review.study.metrics) < 2:
        return None
    rows = []
    for metric in review.study.metrics:
        found = results[study_stage(metric)]
        rates = [share(found[name]) for name in list(RATES)[:3]]
        chance = share((found["baseline"] or {}).get("conditional_rate"))
        chance = chance if found["baseline"] else ""
        rows.append([metric, *rates, _interval(found, "conditional_rate"), chance])
    columns = ["metric", "suspected", "confirmed", "conditional", "95% interval", "by chance"]
    return Table("Metrics, side by side", columns, rows)


@dataclass(frozen=True, slots=True)
class ReleasesChapter:
    """The rates of each release, what the synthesis did against the attack, and warnings."""

    table: Table
    said: Sequence[str]
    warnings: Sequence[str]


def releases_chapter(review: Review, results: Mapping[str, Figures]) -> ReleasesChapter | None:
    """Return what the attack achieves on the releases, if there are others than the file."""
    if review.study is None or RELEASES not in results:
        return None
    own = [(review.study.puf or review.data.file, results[study_stage(metric)])
           for metric in review.study.metrics]  # fmt: skip
    others = [(row["release"], row) for row in results[RELEASES]["comparison"]]
    limit, judged = review.study.limit, any(found["overlap"]["records"] for _, found in own)
    columns = ["release", "metric", "suspected", "confirmed", "conditional", "95% interval"]
    columns += ["within the limit"] * (limit is not None)
    rows = [_row(name, found, limit, judged) for name, found in [*own, *others]]
    return ReleasesChapter(
        Table("The same attack on each release", columns, rows),
        _said(review, results),
        list(dict.fromkeys(f"{name}: {text}." for name, row in others for text in row["warnings"])),
    )


def _row(name: str, found: Figures, limit: float | None, judged: bool) -> list[str]:
    """Lay out a release; where the IUF names nobody, no rate says that it is within the limit."""
    rates = [share(found[rate]) for rate in ("putative_rate", "confirmed_rate", "conditional_rate")]
    bounds = found["intervals"]["conditional_rate"]
    interval = "" if bounds is None else f"{bounds[0]:.4f} to {bounds[1]:.4f}"
    cells = [name, found["metric"], *rates, interval]
    if limit is not None:
        within = "yes" if (found["conditional_rate"] or 0.0) <= limit else "no"
        cells.append(within if judged or found["conditional_rate"] is None else "not judged")
    return cells


def protected_rates(
    review: Review, results: Mapping[str, Figures], release: str = IMPLICATE_1
) -> list[tuple[str, float | None, float | None]]:
    """Return by metric the conditional rate on the file, and on a release made from it."""
    if review.study is None or RELEASES not in results:
        return []
    after = {
        row["metric"]: row["conditional_rate"]
        for row in results[RELEASES]["comparison"]
        if row["release"] == release
    }
    return [
        (metric, results[study_stage(metric)]["conditional_rate"], after[metric])
        for metric in review.study.metrics
        if metric in after
    ]


def _said(review: Review, results: Mapping[str, Figures]) -> list[str]:
    """Say what was done against this attack, and why no more."""
    return [*_of_protection(review, results), *_of_synthesis(review, results)]


def _moves(found: Sequence[tuple[str, float | None, float | None]], what: str) -> str:
    moves = "; ".join(
        f"by {metric} {_rate(a)} before and {_rate(b)} after" for metric, a, b in found
    )
    return f"Of the records an intruder suspects, truly found: {moves} the {what}."


def _of_protection(review: Review, results: Mapping[str, Figures]) -> list[str]:
    rates = protected_rates(review, results, PROTECTED)
    found = results[RELEASES]
    said = [_moves(rates, "protection")] if rates else []
    if found.get("coded_alike"):
        said.append(
            f"The intruder sees how the protected file is coded, and is taken to code "
            f"{', '.join(found['coded_alike'])} of the own file alike."
        )
    if found.get("not_coded_alike"):
        said.append(
            f"The intruder’s values of {', '.join(found['not_coded_alike'])} cannot be coded as "
            f"the protected file is: the attack is made without, and one that finds a way "
            f"succeeds more often."
        )
    return said + [
        f"On {one['release']} the attack cannot be made by {one['metric']}: {one['reason']}"
        for one in found.get("not_attacked", ())
    ]


def _of_synthesis(review: Review, results: Mapping[str, Figures]) -> list[str]:
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
        f"{', '.join(link)}; of these {_listed(changed, 'none')} may change, in the records at "
        f"risk, and {_listed(kept, 'none')} go out as they are."
    )
    limit = review.study.limit
    if limit is not None and any((after or 0.0) > limit for _, _, after in found):
        said.append(
            "Goals that are met on the key of the synthesis do not stop this attack. What helps: "
            "the linking variables among the keys and targets, coarser ones, or fewer of them."
        )
    return said


def _rate(value: float | None) -> str:
    return "nobody suspected" if value is None else percentage(value)


def _listed(names: Sequence[str], nothing: str) -> str:
    return ", ".join(names) or nothing
