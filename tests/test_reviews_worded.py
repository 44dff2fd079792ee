"""Sentences about attacks, synthesis, scenarios, tables: results where each is true, and false."""

from dataclasses import dataclass, replace
from types import SimpleNamespace as Result

import pytest

from keyhole.core.notes import Note
from keyhole.reidentification.residual_risk import Attack, Trials
from keyhole.reviews.dossier_chapters import asked_table, assumptions
from keyhole.reviews.product_chapters import _attack_goals, _published
from keyhole.reviews.report import _TOLD
from keyhole.reviews.stages.attacks import IMPLICATE_1, PROTECTED, RELEASES
from keyhole.reviews.stages.outgoing import OUTGOING, RELEASED_ATTRIBUTES
from keyhole.reviews.study_chapters import (
    _of_protection,
    _of_synthesis,
    controlled_chapter,
    releases_chapter,
)
from keyhole.reviews.verdict import (
    _attacks,
    _attributes,
    _controlled,
    _not_counted,
    _of_scenarios,
    _of_study,
    _on_key,
    _scenarios_unjudged,
    find_limits,
)


def rates(found=0.05, ends=(0.02, 0.08)):
    intervals = {"conditional_rate": ends if found is not None else None}
    return Result(
        conditional_rate=found, intervals=intervals, putative_rate=0.5, confirmed_rate=0.1
    )


def studied(
    found=0.05, *, after=None, release=IMPLICATE_1, true=9, limit=0.1, product="file", **more
):
    """Return a review with a study by unicity and a synthesis, and the results of both."""
    study = Result(
        limit=limit, metrics=["unicity"], puf=None, link=["age", "job"], strata=[], candidates=()
    )
    made = Result(keys=["sex", "age"], targets=["age"], implicates=2)
    review = Result(
        study=study, synthesis=made, data=Result(file="people.csv"),
        release=Result(steps=None, product=product),
    )  # fmt: skip
    own = Result(
        rates=rates(found), metric="unicity", overlap=Result(records=true), conditional_rate=found
    )
    row = Result(release=release, metric="unicity", rates=rates(after), warnings=())
    releases = {"coded": (), "uncoded": (), "unfit": (), "found": Result(rows=[row]), **more}
    return review, {"study-unicity": own, RELEASES: Result(**releases)}


def attacked(
    success=30, control=5, naive=5, *, of=100, where="held out", limit=0.1, name="inferred",
    of_all=1.0, roc=None, **more,
):  # fmt: skip
    """Return a review with an attack on a secret, and what it found."""
    none = where == "none" or control is None
    one = Attack.measured(
        None if success is None else Trials(success, of),
        None if none else Trials(control, of),
        Trials(naive, of),
        () if of_all == 1 else (Note("attacks.counted", counted=round(100 * of_all), people=100,
                                     hits=1, total=1),),
    )  # fmt: skip
    one = replace(one, roc_area=roc)
    found = {"cutoff": 3, "control": where, "unfit": "", "not_made": {}, "left_out": (),
             "worst": {name: one}, "files": [], **more}  # fmt: skip
    asked = Result(limit=limit, attacks=[name], secret=["ill"])
    return Result(attacks=asked), {"attacks": Result(**found)}


def reasons(judge, *given):
    return "\n".join(f"{one.said}. {one.remedy}" for one in judge(*given))


def residual(*given, **options):
    return reasons(_controlled, *attacked(*given, **options))


def controlled(**options):
    chapter = controlled_chapter(*attacked(**options))
    return " ".join([*chapter.said, *chapter.notes])


def by_study(*given, **options):
    return reasons(_attacks, *studied(*given, **options))


def doubt(ends):
    return _of_study("unicity", rates(0.05, ends), 9, 0.1).remedy or ""


def linked(*given, **options):
    return " ".join(_of_synthesis(*studied(*given, **options)))


def coded(**options):
    return " ".join(_of_protection(*studied(release=PROTECTED, after=0.02, **options)))


def goal(after, true=9):
    (one,) = _attack_goals(*studied(after=after, true=true))
    return f"{one.verdict}: {one.said}. {one.remedy}"


def within(after, true=9):
    return releases_chapter(*studied(after=after, true=true)).wide[0].cells[1][-1]


def on_key(judged=0.2, *, told=None, **more):
    given = {"knows": "the keys", "judged": judged, "original": 0.4, "detail": "", "rp": judged,
             "records": 900, "rp_true": None, "rp_wildcard": None, **more}  # fmt: skip
    one = _on_key(Result(**given), 3, 0.1, told)
    return f"{one.said}. {one.remedy}"


def uncounted(*columns):
    some = [Result(name=f"c{i}", rp_if_known=rp, reason=why) for i, (rp, why) in enumerate(columns)]
    return reasons(_not_counted, Result(not_counted=some), 0.1)


def attribute(*, limit=0.1, columns=("ill",), **more):
    rows = [Result(column=one, **{"judged": 0.2, "original": 0.3, "records": 900,
                   "knows": "the keys", "right": None, **more}) for one in columns]  # fmt: skip
    worst = None if rows[0].judged is None else rows[0]
    found = Result(rows=rows, cutoff=3, worst=lambda _: worst)
    review = Result(attributes=Result(limit=limit))
    return reasons(_attributes, review, {RELEASED_ATTRIBUTES: found})


def scenario(*, rp=0.2, chosen=None, example=False, interval=(0.1, 0.2), unfit=False):
    chance = Result(probability=interval, basis="no attempt is known")
    worst = Result(
        name="nosy", exposure=Result(rp=rp), identification=chance, example=example, notes=()
    )
    other = Result(name="far", exposure=None, notes=["no key is in the file"])
    parts = [worst, other] if unfit else [worst]
    stories = Result(comparison=Result(parts=parts, worst=worst, cutoff=3))
    review = Result(scenarios=Result(chosen=chosen, names=["nosy", "far"]))
    limits = list(_of_scenarios(review, stories, 0.1))
    left = _scenarios_unjudged(review, {"scenarios": stories}, Result(cutoff=3, keys=[]), 0.1)
    told = " ".join(f"{one.said}. {one.remedy}" for one in limits)
    return told + " ".join(one.said for one in left)


def published(protect, suppressed=4):
    table = Result(title="A table")
    shown = Result(tables=lambda: [table], cells=range(12), protect=protect)
    shown, said, _ = _published(1, Result(published=shown, audit=Result(suppressed=suppressed)))
    return said or shown.notes[0]


def settings(*, stories=None, selection=None, **exposure):
    given = {"cutoff": 3, "missing": "own", "weight": None, "fraction": None, "household": None,
             "given": dict, "parameters": {}, **exposure}  # fmt: skip
    review = Result(
        exposure=Result(**given), scenarios=stories, keys=["sex"], data=Result(file="people.csv"),
        selection=selection, table=(), tabulate=(), **dict.fromkeys(
            ("uniques", "drivers", "attributes", "solve", "frontier", "study", "attacks",
             "protection", "synthesis")),
    )  # fmt: skip
    estimated = any(given[name] for name in ("weight", "fraction", "household"))
    found = {"exposure": Result(population=Result() if estimated else None)}
    cells = [cell for row in asked_table(review).cells for cell in row]
    return " ".join([*cells, *assumptions(review, found)])


def note(implicates):
    release = Result(protects=False, steps=None, product="synthesis")
    review = Result(
        synthesis=Result(targets=["age"], implicates=implicates), release=release,
        protection=None, data=Result(roles={}),
    )  # fmt: skip
    done, follows = _TOLD["synthesis"](Result(review=review, by_stage=dict))
    return " ".join([*done, *follows])


@dataclass
class Left:
    left_out: tuple[str, ...]


def kept(*left_out):
    review = Result(data=Result(roles={}), selection=None)
    found = {OUTGOING: Left(left_out)}
    made = Result(review=review, records=found, by_stage=lambda: found)
    return " ".join(_TOLD["selection"](made)[0])


def limits_of(found):
    review, results = studied(found, after=0.05)
    review.exposure, review.selection, review.protection = Result(limit=None), None, None
    return " ".join(
        f"{one.verdict} {one.said}. {one.remedy}" for one in find_limits(review, results)
    )


OPEN, KNOWN = (0.4, None), (0.4, "only we have it")
PAIRS = [
    ("no match is suspected", lambda: by_study(None), lambda: by_study(0.05)),
    ("has no true matches", lambda: by_study(true=0), by_study),
    ("no limit is set", lambda: by_study(limit=None), by_study),
    ("5% (95% interval 2% to 8%) against a limit of 10%", by_study, lambda: by_study(None)),
    ("Uncertain: the 95% interval of the rate reaches 12%", lambda: doubt((0.02, 0.12)),
     lambda: doubt((0.02, 0.08))),
    ("No match is suspected.", lambda: limits_of(None), lambda: limits_of(0.05)),
    ("Not met", lambda: limits_of(0.2), lambda: limits_of(0.05)),
    ("Met: nobody is suspected (before the synthesis 0.0500)", lambda: goal(None),
     lambda: goal(0.2)),
    ("Not met: 0.2000", lambda: goal(0.2), lambda: goal(0.05)),
    ("Not judged", lambda: goal(0.2, true=0), lambda: goal(0.2)),
    ("yes", lambda: within(0.05), lambda: within(0.2)),
    ("not judged", lambda: within(0.2, true=0), lambda: within(0.2)),
    ("by unicity 5% before and 20% after the synthesis", lambda: linked(after=0.2),
     lambda: linked(after=0.02)),
    ("by unicity nobody suspected before", lambda: linked(None, after=0.2),
     lambda: linked(after=0.2)),
    ("may change age in the records it replaces, and does not change job",
     lambda: linked(after=0.2), lambda: linked(release=PROTECTED)),
    ("does not stop this attack", lambda: linked(after=0.2), lambda: linked(after=0.05)),
    ("is assumed to code age in the intruder’s own file in the same way",
     lambda: coded(coded=["age"]), coded),
    ("values of job cannot be coded", lambda: coded(uncoded=["job"]), coded),
    ("The attack by unicity cannot be made on x: no key",
     lambda: coded(unfit=[Result(release="x", metric="unicity", reason="no key")]), coded),
    ("residual risk 26% (95% interval", residual, lambda: residual(naive=40)),
    ("Release coarser or fewer columns", residual, lambda: residual(success=5, naive=1)),
    ("no better than the guess", lambda: residual(naive=40), residual),
    ("no risk can be added by the file", lambda: residual(control=100), residual),
    ("there is no control of people outside the file", lambda: residual(where="none"), residual),
    ("attempts could be made", lambda: residual(success=2, control=0, naive=0, of=5), residual),
    ("which the interval exceeds", lambda: residual(success=12), residual),
    ("the attacks were not made yet", lambda: reasons(_controlled, attacked()[0], {}), residual),
    ("Set limit in [attacks]", lambda: residual(limit=None), residual),
    ("the residual risk is within the limit", lambda: residual(success=2, control=1, naive=0,
     limit=0.5), residual),
    ("was held out at random before the synthesis", controlled, lambda: controlled(where="file")),
    ("and 5% of the attempts on people outside it", controlled, lambda: controlled(where="none")),
    ("The residual risk is 26%", controlled, lambda: controlled(naive=40)),
    ("The attacks could not be made: no columns", lambda: controlled(unfit="no columns", worst={}),
     controlled),
    ("Inferring a secret: not tried, all say so", lambda: controlled(
        worst={}, not_made={"inferred": "all say so"}), controlled),
    ("Not used, because they are not released or cannot be coded as in the release: job",
     lambda: controlled(left_out=["job"]), controlled),
    ("none of its variables are released", lambda: on_key(None), on_key),
    ("at most 20%", lambda: on_key(detail="at most"), on_key),
    ("recoverable from retained columns, 20% without", lambda: on_key(told=0.3), on_key),
    ("a match on those is false", lambda: on_key(rp_true=0.1), on_key),
    ("If a missing value matched every other, it would be 15%", lambda: on_key(rp_wildcard=0.15),
     lambda: on_key(rp_wildcard=0.2)),
    ("Release fewer or coarser variables", on_key, lambda: on_key(0.1)),
    ("fewer than 3 records against", lambda: on_key(0.002), on_key),
    ("1 of 2 would raise RP above 10%, if", lambda: uncounted(OPEN, KNOWN),
     lambda: uncounted(KNOWN, KNOWN)),
    ("the review declares all 2 unknowable to an intruder", lambda: uncounted(KNOWN, KNOWN),
     lambda: uncounted(KNOWN, (0.01, None))),
    ("knew it as well as the key; the review declares the other 1 unknowable",
     lambda: uncounted(KNOWN, (0.01, None)), lambda: uncounted((0.01, None))),
    ("it is not released", lambda: attribute(judged=None, knows=""),
     lambda: attribute(judged=None)),
    ("no variable of a key is released", lambda: attribute(judged=None),
     lambda: attribute(judged=None, knows="")),
    ("which is their own", lambda: attribute(right=0.2), attribute),
    ("drop 'ill' or change some of its values (pram", attribute, lambda: attribute(judged=0.1)),
    ("or change some of their values", lambda: attribute(columns=("ill", "rich")),
     attribute),
    ("in the original. None", lambda: attribute(columns=("ill", "rich")), attribute),
    ("Set limit in [attributes]", lambda: attribute(limit=None), attribute),
    ("is an example, not a finding", lambda: scenario(example=True), scenario),
    ('keys = "scenario:nosy"', scenario, lambda: scenario(chosen="nosy")),
    ('keys = "scenario:nosy"', scenario, lambda: scenario(rp=0.1)),
    ("is 10% to 20%.", scenario, lambda: scenario(interval=None)),
    ("is not estimable (no attempt is known)", lambda: scenario(interval=None), scenario),
    ("Scenario 'far' is not judged: no key is in the file", lambda: scenario(unfit=True), scenario),
    ("4 of 12 cells, totals included, are suppressed", lambda: published("suppress"),
     lambda: published("round")),
    ("All of 12 cells, totals included, are rounded", lambda: published("round"),
     lambda: published("cell-key")),
    ("All of 12 cells, totals included, have noise", lambda: published("cell-key"),
     lambda: published("suppress")),
    ("It is not protected", lambda: published("none"), lambda: published("round")),
    ("not estimated: neither weights", settings, lambda: settings(household="home")),
    ("The file is taken as the whole population", lambda: settings(household="home"),
     lambda: settings(household="home", fraction=0.1)),
    ("the same chance of being in the file", lambda: settings(fraction=0.1),
     lambda: settings(weight="w")),
    ("The weights give the number of people", lambda: settings(weight="w"), settings),
    ("category of its own: an intruder", settings, lambda: settings(missing="drop")),
    ("Variables were dropped", lambda: kept("job"), kept),
    ("the release has several versions", lambda: note(3), lambda: note(1)),
    ("Standard errors are somewhat too small", lambda: note(1), lambda: note(3)),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "true", "false"), PAIRS, ids=[one[0] for one in PAIRS])
def test_a_sentence_is_said_where_it_is_true_and_not_where_it_is_false(sentence, true, false):
    assert sentence in true()
    assert sentence not in false()
