"""The chapter of the report on the synthesis: goals, what is protected, what the analyst gets.

Counts of records by level, and of those that are still exposed, are protected like others; the
seed is not in the stored result, and so not here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.notes import restore_notes
from keyhole.results import Table, share
from keyhole.reviews.limits import VERDICTS
from keyhole.reviews.release_chapters import protected_rates
from keyhole.reviews.settings import Review
from keyhole.reviews.small_counts import protect_notes, protect_share, smallest_shown
from keyhole.reviews.stages import study_stage
from keyhole.reviews.synthesis_counts import Heat, heat_map, true_exposures
from keyhole.reviews.synthesis_utility import utility_tables
from keyhole.utility.figures import probability

__all__ = ["GoalShown", "SynthesisChapter", "synthesis_chapter"]

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GoalShown:
    """A goal as the report shows it."""

    name: str
    measured: str
    wanted: str
    state: str
    verdict: str
    advice: str


@dataclass(frozen=True, slots=True)
class SynthesisChapter:
    """What the report shows of a synthesis; `met` and `missed` count the goals judged."""

    done: str
    goals: Sequence[GoalShown]
    met: int
    missed: int
    heats: Sequence[Heat]
    protection: Sequence[Table]
    utility: Sequence[Table]
    wide: Sequence[Table]
    notes: Sequence[str]


def synthesis_chapter(review: Review, records: Mapping[str, Figures]) -> SynthesisChapter | None:
    """Return the chapter on the synthesis, if there is one."""
    if "synthesis" not in records:
        return None
    record, smallest = records["synthesis"], smallest_shown(review.exposure.cutoff)
    result, notes = record["result"], restore_notes(record)
    heats = _heats(result, smallest)
    exposed = true_exposures(result, smallest)
    goals = [
        _goal(goal, notes[goal["goal"]].code, result, heats[0], exposed, smallest)
        for goal in result["goals"]
        if goal["goal"] in notes
    ]
    goals += _attack_goals(review, {name: record["result"] for name, record in records.items()})
    narrow, wide = utility_tables(result)
    return SynthesisChapter(
        done=_done(result),
        goals=goals,
        met=sum(goal.state == "met" for goal in goals),
        missed=sum(goal.state == "unmet" for goal in goals),
        heats=heats,
        protection=[
            _exposure_table(exposed),
            _matches(result, smallest),
            _visible(record, smallest),
        ],
        utility=narrow,
        wide=wide,
        notes=[_sentence(note) for note in protect_notes(record, result["notes"], smallest)],
    )


def _attack_goals(review: Review, results: Mapping[str, Figures]) -> list[GoalShown]:
    """Judge the first implicate by the attack of the study, if that has a limit."""
    limit = None if review.study is None else review.study.limit
    if limit is None:
        return []
    found = []
    for metric, before, after in protected_rates(review, results):
        met = (after or 0.0) <= limit
        # A truth without pairs confirms nobody, and says nothing.
        judged = after is None or results[study_stage(metric)]["overlap"]["records"]
        state, verdict = VERDICTS[met if judged else None]
        measured = f"{_suspected(after)} (before the synthesis {_suspected(before)})"
        name = f"Conditional rate of the study by {metric}, on implicate 1"
        advice = "" if met else "See the study’s own chapter for what it links on."
        wanted = f"{percentage(limit)} or less"
        found.append(GoalShown(name, measured, wanted, state, verdict, advice))
    return found


def _suspected(rate: float | None) -> str:
    return "nobody is suspected" if rate is None else share(rate)


def _done(result: Figures) -> str:
    many = result["implicates"]
    decoys = f" and of {result['decoys']:,} decoys" if result["decoys"] else ""
    times = "once" if many == 1 else f"{many} times over"
    return (
        f"Values of {', '.join(result['targets'])} of {result['at_risk']:,} records at risk on "
        f"the key {', '.join(result['keys'])}{decoys}, of {result['records']:,}, were replaced by "
        f"those of records like them, {times}. What is protected is protected on this key."
    )


def _heats(result: Figures, smallest: int) -> list[Heat]:
    """Return the changes by level, and what is left of them after an attack."""
    changed, attack, many = result["changed_by_level"], result["mean_mode_attack"], 1
    first = "In the implicate"
    if result["implicates"] > 1:
        many = result["implicates"]
        first = f"In the implicates (mean of {many})"
    count = len(changed["variables"])
    heats = [heat_map(first, changed["average"], count, many, smallest)]
    if many > 1:
        caption = "After an attack (mean or mode of the implicates)"
        heats.append(heat_map(caption, attack["rows"], count, 1, smallest))
    return heats


def _goal(
    goal: Figures, code: str, result: Figures, heat: Heat, exposed: Sequence[Figures], smallest: int
) -> GoalShown:
    name, advice = goal["goal"], goal["advice"]
    measured = _measured(goal, code, result, heat, exposed, smallest)
    if code == "goal.unique" and not _is_exact(measured) and goal["met"] is False:
        advice = "Ask for more decoys."  # how many would tell what is hidden
    state, verdict = VERDICTS[goal["met"]]
    advice = advice.replace("=False", " = false").replace("=True", " = true")
    return GoalShown(name[0].upper() + name[1:], measured, goal["wanted"], state, verdict, advice)


def _measured(
    goal: Figures, code: str, result: Figures, heat: Heat, exposed: Sequence[Figures], smallest: int
) -> str:
    """Write what a goal measured, as far as the tables below tell it."""
    value = goal["measured"]
    if code == "goal.changed":
        return ", ".join(row.mean or "none" for row in heat.rows)
    if value is None or code == "goal.homogeneity":
        return probability(value)
    if code == "goal.exposure.attacked":
        return str(exposed[-1]["counted"])
    if code == "goal.exposure":
        worst = max(exposed[:-1], key=lambda one: one["rate"] or 0)
        return str(worst["counted"])
    if code == "goal.self-match.metric":
        worst = max(result["self_match"]["metrics"], key=lambda one: one["matched"])
        return protect_share(worst["matched"], worst["records"], smallest)
    if code == "goal.unique":
        seen = result["visibly_changed"]["records"]
        return protect_share(round(value * seen), seen, smallest)
    return share(value)


def _is_exact(text: str) -> bool:
    return re.fullmatch(r"[\d.]+", text) is not None


def _exposure_table(exposed: Sequence[Figures]) -> Table:
    columns = ["file", "unique before", "still, own key", "true exposure", "unique after",
               "with another key", "newly alone"]  # fmt: skip
    names = ("of", "unique_before", "still", "exposure", "unique_after", "nobody", "laid_bare")
    rows = [[str(one[name]) for name in names] for one in exposed]
    notes = [
        "Of those unique after: with another key than their own, so that who finds one has found "
        "nobody; and newly alone with their own key, which others shared before."
    ]
    return Table("True exposure: unique on the key, before and after", columns, rows, notes)


def _matches(result: Figures, smallest: int) -> Table:
    """Return the self-match rates, or say why there are none."""
    found, rows = result["self_match"], []
    for one in found["metrics"]:
        tried = one["records"]
        rate = protect_share(one["matched"], tried, smallest)
        bounds = one["interval"] if _is_exact(rate) else None
        unchanged = protect_share(round(one["baseline"]["unchanged"] * tried), tried, smallest)
        interval = f"{bounds[0]:.4f} to {bounds[1]:.4f}" if bounds else ""
        rows.append([one["metric"], f"{tried:,}", rate, interval, unchanged,
                     share(one["baseline"]["chance"])])  # fmt: skip
    columns = ["metric", "records tried", "linked to itself", "95% interval", "if unchanged",
               "by chance"]  # fmt: skip
    notes = [_sentence(note) for note in found["notes"]]
    title = "Self-match: protected records that link to themselves in the original"
    return Table(title, columns if rows else [], rows, notes)


def _visible(record: Figures, smallest: int) -> Table:
    """Return what differences between the implicates give away."""
    found = record["result"]["visibly_changed"]
    seen, replaced = found["records"], found["replaced"]
    rows = [["records replaced", f"{replaced:,}"]]
    if seen is not None:
        few = 0 < replaced - seen < smallest
        rows.append(["visibly changed", f"> {replaced - smallest:,}" if few else f"{seen:,}"])
        for name, words in (("p_unique", "P(unique | visibly changed)"),
                            ("p_at_risk", "P(at risk | visibly changed)")):  # fmt: skip
            count = 0 if found[name] is None else round(found[name] * seen)
            rows.append([words, protect_share(count, seen, smallest)])
    notes = [_sentence(note) for note in protect_notes(record, found["notes"], smallest)]
    return Table("What differences between implicates tell", ["figure", "value"], rows, notes)


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:].rstrip('.')}."
