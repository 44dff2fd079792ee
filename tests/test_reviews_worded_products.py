"""Sentences about limits, releases and products: each true of one result, not of another."""

import re
from types import SimpleNamespace as Result

import pytest
from tests.test_reviews_worded import (
    KNOWN,
    OPEN,
    attribute,
    by_study,
    coded,
    controlled,
    doubt,
    goal,
    kept,
    linked,
    note,
    reasons,
    residual,
    scenario,
    settings,
    studied,
    uncounted,
)

from keyhole.core.tables import Table
from keyhole.protection.next_steps import next_steps_table
from keyhole.reviews.chapters import before_after, driver_tables, learnt_said, uniques_tables
from keyhole.reviews.dossier_chapters import (
    _learnt,
    _shown,
    product_in_words,
    released_glance,
    remaining_chapter,
    score_in_words,
)
from keyhole.reviews.group_tables import _Pooled
from keyhole.reviews.product_chapters import (
    _said,
    protection_chapter,
    screen_said,
    table_chapters,
)
from keyhole.reviews.rendering import page_environment, read_template, render_page
from keyhole.reviews.report import public_note
from keyhole.reviews.stages import outgoing
from keyhole.reviews.stages.selection import better_in_words
from keyhole.reviews.study_chapters import _identified, attacks
from keyhole.reviews.verdict import (
    Limit,
    Reason,
    _answer,
    _attacks,
    _given_up,
    _identifiers,
    _of_protection,
    _of_selection,
    _of_study,
    _scenarios_unjudged,
    find_limits,
    find_verdict,
)

STEPS = """
[[step]]
method = "top-code"
column = "age"
value = 80
"""


def answer(*answers):
    return _answer([Reason(f"Condition {n}", one, "") for n, one in enumerate(answers)])[1]


def named(*columns):
    found = Result(identifiers=[Result(column=n, reason="a name") for n in columns], columns="ab")
    one = _identifiers(found)
    return f"{one.said}. {one.remedy}"


def unmeasured(*measured):
    review = Result(scenarios=Result(names=["nosy"]))
    keys = [Result(knows=outgoing.scenario_words(name)) for name in measured]
    return reasons(_scenarios_unjudged, review, {}, Result(cutoff=3, keys=keys), 0.1)


def given_up(*left_out):
    review = Result(
        data=Result(roles={}, derive={}), protection=None,
        release=Result(protects=False, steps=None, product="file"),
    )  # fmt: skip
    return _given_up(review, {}, Result(columns=("a",), left_out=left_out, cutoff=3)) or ""


def limits(rp=0.2, *, best="none", synthesis=None, still=40, records=100):
    results = {"exposure": Result(rp=rp)}
    if best != "none":
        results["fix"] = Result(best=best)
    if synthesis:
        row = Result(knows=outgoing.KEYS, product=outgoing.PRODUCT_NAMES["synthesis"], rp=rp,
                     still=still, records=records)  # fmt: skip
        results["remaining"] = Result(rows=[row], cutoff=3)
    review = Result(
        exposure=Result(limit=0.05, cutoff=3), selection=None, protection=None, study=None,
        synthesis=synthesis,
    )  # fmt: skip
    return " ".join(f"{one.what}: {one.said}. {one.remedy}" for one in find_limits(review, results))


def fix(*, meets, action="band"):
    return Result(action=action, variable="age", detail="10", rp=0.04, price=0.1, meets=meets)


def limit(found=0.05, met=True):
    return Limit("RP", 0.1, found, met).said


def protected(rp=0.2, *, after=0.2, told=None, own=None, missing="own", step=None):
    best = None if step is None else Result(words="suppress", rp=0.04, price=0.1, meets=step)
    ledger = Result(rp=rp, cutoff=3, missing=missing, last=Result(rp_own=own), next_step=best)
    read_off = None if told is None else Result(rp=told)
    found = Result(ledger=ledger, after=after and Result(rp=after), read_off=read_off)
    one = _of_protection(found, 0.1)
    return f"{one.what}: {one.said}. {one.remedy}"


def frontier_set(cr, rp=0.04):
    return Result(cr=cr, rp=rp, variables=("sex", "age"))


def selected(within=None, *, sets=(), cr=0.1):
    results = {"selection-forward": Result(within_limit=within), "frontier": Result(sets=sets)}
    if within:
        results["proposal"] = Result(rp=0.04, cr=cr)
    review = Result(
        selection=Result(methods=["forward"], limit=0.05), exposure=Result(cutoff=3, limit=0.05)
    )
    one = _of_selection(review, results, 0.05)
    return f"{one.said}. {one.remedy} {better_in_words(review, results)}"


def public(product="file", *, screen=None, scenarios=None, study=None, roles=()):
    release = Result(
        to=None, purpose=None, version=None, contact=None, conditions=(), notes=(), steps=None,
        product=product, protects=False,
    )  # fmt: skip
    results = {
        outgoing.OUTGOING: Result(left_out=("a",)),
        "selection-forward": Result(within_limit=["sex", "age"]),
    }
    review = Result(
        release=release, screen=screen, scenarios=scenarios, study=study, protection=None,
        data=Result(roles=dict(roles)), title="", selection=None, synthesis=None,
    )  # fmt: skip
    found = public_note(Result(review=review, records=results, by_stage=lambda: results))
    return " ".join([*found["done"], *found["analysis"], *found["checked"]])


def attributes_notes(right):
    one = Result(column="ill", knows="the keys", cells=9, disclosed=0.1, right=right, original=0.1,
                 judged=0.1, records=100, homogeneous=0.1, columns=("a",))  # fmt: skip
    found = outgoing.ReleasedAttributes.tables(Result(rows=[one], cutoff=3))
    return " ".join(note for table in found for note in table.notes)


def section(name, **context):
    """Return the words of a section of the report, made with these things only."""
    page = read_template("report.html")
    macros = page[: page.index("{% set e =")]
    part = re.search(rf'<section id="{name}".*?</section>', page, re.DOTALL)[0]
    needed = {"drawings": {}, "results": {}, "review": Result(), **context}
    text = page_environment().from_string(macros + part).render(needed)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def exposed(missing):
    found = Result(cells=9, cr=0.5, rp=0.2, cutoff=3, missing=missing)
    return section("exposure", e=found, review=Result(keys=["a"]), exposure_notes=(), exposure=())


def told_scenarios(worst=None, chosen=None):
    found = Result(comparison=Result(worst=worst), stories=(), tables=list)
    return section("scenarios", scenarios=found, review=Result(scenarios=Result(chosen=chosen)))


def solved(*, complete, bound=1.0):
    found = Result(complete=complete, combinations=9, utility=0.7, bound=bound)
    return section("solve", b=found, solve=())


def path(steps=(), within=(), criterion="ratio"):
    found = Result(method="forward", stopped_in_words="", warnings=(), within_limit=within)
    one = Result(found=found, steps=steps, heads=(), groups=None, candidates=())
    review = Result(selection=Result(criterion=criterion, cr_weight=0.5))
    return section("selection", paths=[one], review=review, ends=None, comparison=None)


STEP = Result(step=Result(step="F1", variables=("a",)), entered="a", removed=None, figures=())


def searched(*, complete):
    table = Table("Sets", ["RP"], [])
    return section("frontier", f=Result(complete=complete, sets=range(5)), frontier=table)


def proposed(*, proposal=True, better=None):
    one = Result(keys=["sex"])
    results = {"alternative": one, **({"proposal": one} if proposal else {})}
    table = Table("Exposure", ["RP"], [])
    return section("proposal", results=results, better=better, before_after=table)


def protected_chapter(steps):
    chapter = Result(said=[""], warnings=(), wide=(), notes=(), narrow=(), next_steps=steps)
    return section("protection", protection=chapter)


def compared(control="file", files=1):
    results = {"attacks": Result(control=control, files=range(files))}
    return section("attacks", results=results, controlled=Result(said=(), wide=(), notes=()))


def page_of_note(*, altered):
    note = {"title": "", "altered": altered, "terms": (), "conditions": (), "done": (),
            "analysis": (), "checked": (), "sources": ()}  # fmt: skip
    text = render_page("public-note.html", ("report.css",), note=note)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def story(name):
    return controlled(name=name)


def glance(gone=0, *, rate="none", records=100):
    one = Result(knows=outgoing.KEYS, judged=0.2, original=0.4, records=records)
    found = Result(records=records, columns="ab", left_out=("c",), cutoff=3, keys=[one])
    results = {outgoing.OUTGOING: found, "data": Result(records=records + gone)}
    study = None
    if rate != "none":
        rates = Result(conditional_rate=rate)
        results["study-unicity"] = Result(rates=rates, metric="unicity")
        study = Result(metrics=["unicity"], limit=0.1)
    review = Result(
        scenarios=None, attributes=None, study=study, exposure=Result(limit=0.1),
        release=Result(steps=None, product="file"), protection=None, data=Result(file="a.csv"),
    )  # fmt: skip
    shown = released_glance(review, results)
    return " ".join(f"{one.term} {one.figure} {one.beside}." for one in shown)


def learnt_most(judged):
    row = Result(judged=judged, original=None, records=100, column="ill")
    return " ".join(one.beside for one in _learnt(Result(rows=[row], cutoff=3), None))


def product(name, *, implicates=1, left_out=()):
    review = Result(
        release=Result(steps=None, product=name, protects=name == "protection"),
        data=Result(file="people.csv"), synthesis=Result(implicates=implicates),
        protection=Result(plan=STEPS),
    )  # fmt: skip
    return product_in_words(review, {outgoing.OUTGOING: Result(left_out=left_out)})


def remains(name="synthesis", *, rp=0.1, still=None, told=None, candidates=(), study=True):
    rows = [
        Result(knows="the keys", product=outgoing.AS_IT_IS, rp=0.2, uniques=20, still=None),
        Result(knows="the keys", product=outgoing.PRODUCT_NAMES[name], rp=rp, uniques=9,
               still=still),
    ]  # fmt: skip
    results = {outgoing.REMAINING: Result(rows=rows, cutoff=3, tables=list)}
    read_off = None if told is None else Result(cutoff=3, rp=told)
    results["protection"] = Result(read_off=read_off)
    review = Result(
        release=Result(steps=None, product=name, protects=False), data=Result(file="people.csv"),
        study=Result(puf=None, candidates=candidates) if study else None,
        synthesis=Result(implicates=1), protection=None, exposure=Result(cutoff=3),
    )  # fmt: skip
    chapter = remaining_chapter(review, results)
    return " ".join([*chapter.said, *chapter.warnings])


def identified(scenario, bounds=(0.1, 0.2)):
    study = Result(rates=Result(intervals={"confirmed_rate": bounds}), scenario=scenario)
    story = Result(name="nosy", identification=Result(attempt=(0.5, 1.0)))
    return " ".join(_identified(study, Result(comparison=Result(parts=[story]))))


def perturbed(lost):
    rates = Result(intervals={"confirmed_rate": None})
    study = Result(
        tables=lambda: [Table("Rates", ["rate"], [["x"]])], by_stratum=(), suspected=False,
        perturbation=lost, rates=rates, scenario=None, findings={}, recoding=(),
        linkage=Result(suspected_in_words="", variables_in_words="", strata=()),
    )  # fmt: skip
    review = Result(study=Result(metrics=["unicity"]))
    chapters = attacks(review, {"study-unicity": study}, Result(smallest=3))
    return " ".join(note for one in chapters for table in one.narrow for note in table.notes)


LOST = Result(changed={"age": 9}, records=90, table=lambda _: Table("Lost", ["x"], []))


def plan(steps=1, *, after=True, targets=("age",), told=None, lost=0.1):
    end = Result(rp=0.1, price=Result(lost=lost))
    kept = Result(
        lines=[Result(rp=0.4)], last=end, targets=targets, keys=["sex"], cutoff=3,
    )  # fmt: skip
    found = Result(
        steps=range(steps), after=Result() if after else None,
        read_off=None if told is None else Result(rp=told),
    )  # fmt: skip
    return _said(found, kept)


def advised(meets):
    step = Result(words="drop age", changed=1, rp=0.1, lost=0.1, price=0.1, meets=meets)
    return " ".join(next_steps_table([step], 0.1, 3).notes)


def pooled(state="shown", suppressed=()):
    sizes = [Result(state=state, sheet=Result(settle=lambda: None)) for _ in range(2)]
    return str(_Pooled(Result(smallest=3, sizes=sizes, named=[0], suppressed=suppressed)))


def next_steps(*steps, missing="own"):
    price = Result(lost=None, p=None)
    line = Result(step=0, words="as it is", changed=0, price=price, population_uniques=None, rp=0.2,
                  cr=0.1, uniques=2, rp_own=0.2, rp_wildcard=0.2, homogeneous=None)  # fmt: skip
    kept = Result(
        lines=[line], last=line, targets=("age",), keys=["sex"], cutoff=3, missing=missing,
        variables=(), next_steps=steps, warnings=(),
    )  # fmt: skip
    exposed = Result(missing=missing, cutoff=3, records=9, cells=9, uniques=9, rp=0.2, cr=0.1)
    found = Result(ledger=kept, steps=(), notes=(), before=exposed, after=exposed, read_off=None)
    review = Result(protection=Result(), exposure=Result(cutoff=3))
    chapter = protection_chapter(review, {"protection": found})
    more = [] if chapter.next_steps is None else [chapter.next_steps.title]
    return " ".join([*(note for table in chapter.narrow for note in table.notes), *more])


ADDED = Result(words="suppress", changed=9, rp=0.04, lost=0.1, price=0.1, meets=True)


def tabled(stage, tables=1):
    table = Table("A table", [], [])
    made = Result(tables=lambda: [table] * tables, cells=range(12), protect="round")
    if stage == "tabulate":
        return table_chapters({"tabulate": Result(made=[made])})[0][1]
    published = Result(made=[Result(published=made, audit=Result(suppressed=0))])
    return " ".join(said for _, said, _ in table_chapters({"table": published}))


def learnt(hidden=4, *, disclosed=True):
    one = Result(
        disclosed=disclosed, homogeneous=0.5, hidden_by_rp=hidden, uncommon_records=9,
        homogeneous_records=20, cap=0.5, base_rate=0.4,
    )  # fmt: skip
    return learnt_said(Result(sensitive={"ill": one}, cutoff=3), "ill", 3)


def flags(worst):
    summary = Result(
        risk_set={}, levels={}, flags={}, worst_category=worst, worst_category_flags=9,
        worst_variable="job",
    )  # fmt: skip
    found = Result(level_summary=summary, cutoff=3, by_size={}, by_variable={}, contributions={})
    return " ".join(note for table in uniques_tables(found) for note in table.notes)


def driven(*tabulated):
    review = Result(exposure=Result(cutoff=3), tabulated=tabulated)
    found = Result(tables=lambda: [Table("Levels", ["level"], [])])
    return " ".join(driver_tables(review, found)[0].notes)


def beside(missing):
    one = Result(keys="ab", cells=9, uniques=2, rp=0.1, cr=0.2, cutoff=3, population=None,
                 missing=missing)  # fmt: skip
    return " ".join(before_after({"exposure": one, "proposal": one}).notes)


def screened(*columns):
    found = [Result(column=name) for name in columns]
    return screen_said(Result(identifiers=found, columns=9, safe_harbor=()))


def remaining_table(*, detail="exact", still=None):
    row = outgoing.KeyOnProduct(
        "the keys", "x", ("a",), (), detail, 9, uniques=1, at_risk=1, rp=0.1, cr=0.1, still=still
    )
    return outgoing.Remaining(3, (row,)).tables()[0]


def remaining_notes(**row):
    return " ".join(remaining_table(**row).notes)


@pytest.mark.parametrize(("detail", "sign"), [("exact", ""), ("at most", "≤")])
def test_figures_that_are_bounds_have_the_sign_of_one(detail, sign):
    (row,) = remaining_table(detail=detail).rows
    assert row[3:] == [f"{sign}{figure}" for figure in ("1", "0.1000", "0.1000")]


def linked_on(scenario):
    asked = Result(parameters={"link": Result(kind=None)}, values={"scenario": scenario},
                   scenario=scenario)  # fmt: skip
    return _shown("link", ("age",), asked)


def stories(chosen=None):
    return settings(stories=Result(chosen=chosen, names=["nosy"]))


UNTRUE = Result(conditional_rate=0.1, intervals={"conditional_rate": (0.1, 0.2)})
PAIRS = [
    ("This release may go out: all 2", lambda: answer("met", "met"), lambda: answer("not_met")),
    ("This release should not go out", lambda: answer("met", "not_met"), lambda: answer("met")),
    ("cannot be judged yet: 1 of 2", lambda: answer("met", "not_judged"), lambda: answer("met")),
    ("could not be judged (condition 1)", lambda: answer("met", "not_judged"),
     lambda: answer("not_met")),
    ("The release was not measured", lambda: find_verdict(None, {}).sentence,
     lambda: answer("met")),
    ("none were recognised among its 2 columns", named, lambda: named("mail")),
    ('Drop them: drop = ["mail"] in [release]', lambda: named("mail"), named),
    ("What was given up: 'b' left out", lambda: given_up("b"), given_up),
    ("the scenario was not measured yet", unmeasured, lambda: unmeasured("nosy")),
    ("Add 'c0' to the keys", lambda: uncounted(OPEN), lambda: uncounted(KNOWN)),
    ("would not raise RP above", lambda: uncounted((0.01, None)), lambda: uncounted(KNOWN)),
    ("are in cells on the keys where all have one value", attribute, lambda: attribute(right=0.2)),
    ("Name other columns in [attacks].", lambda: residual(control=100), residual),
    ("Hold out more records", lambda: residual(success=12), residual),
    ("Set hold_out in [synthesis]", lambda: residual(where="none"), residual),
    ("people in the control could be attacked", lambda: residual(control=None), residual),
    ("no predicate matches exactly one record", lambda: residual(None, name="singled-out"),
     lambda: residual(name="singled-out")),
    ("but only 40% of the people were counted", lambda: residual(9, 7, 5, limit=0.2, of_all=0.4),
     lambda: residual(9, 7, 5, limit=0.2)),
    ("the attack was not made yet", lambda: reasons(_attacks, studied()[0], {}), by_study),
    ("the release was not attacked", lambda: by_study(product="selection"), by_study),
    ("No change of a single variable was found.", limits, lambda: limits(0.01)),
    ("RP becomes 4% at a price of 10% in CR", lambda: limits(best=fix(meets=True)), limits),
    ("Cheapest fix: leave out age;", lambda: limits(best=fix(meets=True, action="drop")),
     lambda: limits(best=fix(meets=True))),
    ("Cheapest fix: band age (10);", lambda: limits(best=fix(meets=True)),
     lambda: limits(best=fix(meets=True, action="drop"))),
    ("No single change meets it. The nearest", lambda: limits(best=fix(meets=False)),
     lambda: limits(best=fix(meets=True))),
    ("40% of the records are still unique with their original values",
     lambda: limits(synthesis=Result()), lambda: limits(synthesis=Result(), still=None)),
    ("nothing to compare with the limit of 10%", lambda: limit(None, None), limit),
    ("no set is within the limit of 10%", lambda: limit(None, False), limit),
    ("a missing value matching every other", lambda: protected(missing="wildcard"), protected),
    ("records with a missing key left out", lambda: protected(missing="drop"), protected),
    ("No key is left.", lambda: protected(None, after=None), protected),
    ("This includes values recoverable from retained columns", lambda: protected(0.05, told=0.05),
     protected),
    ("; without them RP would be 20%", lambda: protected(0.05, told=0.05),
     lambda: protected(0.05, told=0.05, after=None)),
    ("With a missing value as a category of its own RP is 30%",
     lambda: protected(0.05, missing="wildcard", own=0.3),
     lambda: protected(0.05, missing="wildcard", own=0.05)),
    ("Cheapest next step: suppress. RP becomes 4%", lambda: protected(step=True), protected),
    ("That is not enough, but comes closest.", lambda: protected(step=False),
     lambda: protected(step=True)),
    ("No candidate fits within the limit.", lambda: selected([]), lambda: selected(["sex"])),
    ("The variables kept exceed the limit by themselves", selected, lambda: selected([])),
    ("selection's set is not the best within the limit",
     lambda: selected(["sex"], sets=[frontier_set(0.3)]),
     lambda: selected(["sex"], sets=[frontier_set(0.1)])),
    ("selection found no set, but there is one", lambda: selected([], sets=[frontier_set(0.3)]),
     lambda: selected(["sex"], sets=[frontier_set(0.3)])),
    ("the frontier has one with CR 30% instead of 10%",
     lambda: selected(["sex"], sets=[frontier_set(0.3)]), lambda: selected(["sex"])),
    ("Not judged: the internal file has no true matches.",
     lambda: _of_study("unicity", UNTRUE, 0, 0.1).remedy,
     lambda: doubt((0.02, 0.12))),
    ("The columns were screened for direct identifiers.", lambda: public(screen=Result()), public),
    ("The office considered who could try", lambda: public(scenarios=Result()), public),
    ("The office tried to identify people itself", lambda: public(study=Result()), public),
    ("Columns that identify people or households are not released.",
     lambda: public(roles={"id": "identifier"}), public),
    ("No values were changed for this release.", public, lambda: note(1)),
    ("The values of the remaining variables were not changed", kept, public),
    ("In some records values of age were replaced", lambda: note(1), public),
    ("Run an analysis on each version by itself", lambda: note(3), lambda: note(1)),
    ("fewer than 3 were removed", lambda: glance(2), glance),
    ("of 109 in the original", lambda: glance(9), glance),
    ("all of the original", glance, lambda: glance(9)),
    ("of the suspected matches are correct", lambda: glance(rate=0.2), lambda: glance(rate=None)),
    ("no match is suspected, by unicity", lambda: glance(rate=None), lambda: glance(rate=0.2)),
    ("of the records are in cells with one value of it", lambda: learnt_most(0.2),
     lambda: learnt_most(None)),
    ("the variables of people.csv that the selection proposes", lambda: product("selection"),
     lambda: product("file")),
    ("3 versions of people.csv with values partly replaced (implicates)",
     lambda: product("synthesis", implicates=3), lambda: product("file")),
    ("people.csv after protection (top-code)", lambda: product("protection"),
     lambda: product("file")),
    ("without 'job', otherwise unchanged", lambda: product("file", left_out=["job"]),
     lambda: product("file")),
    ("The table shows the risk of each file on each key.", lambda: remains(rp=None), remains),
    ("Its risk on the keys: 0.1000 of the records", remains, lambda: remains(rp=None)),
    ("Of the 20 records that were unique on it, 7 are still unique", lambda: remains(still=7),
     remains),
    ("The risk is not lower on: the keys.", lambda: remains(rp=0.2), remains),
    ("The risk is not lower on: the keys.", lambda: remains(still=20), lambda: remains(still=7)),
    ("Retained columns reveal values that were suppressed or recoded.",
     lambda: remains("protection", told=0.15), lambda: remains("protection")),
    ("The attack of the study was made on the original file", lambda: remains("selection"),
     lambda: remains("selection", candidates=["x"])),
    ("each record represents as many people as w gives", lambda: settings(weight="w"), settings),
    ("10% of the population is in the file", lambda: settings(fraction=0.1), settings),
    ("the file itself: neither weights nor", lambda: settings(household="home"), settings),
    ("A missing key matches every value, both ways.", lambda: settings(missing="wildcard"),
     settings),
    ("Records with a missing key are not counted; RP and CR", lambda: settings(missing="drop"),
     settings),
    ("exactly as they stand in the file", settings, lambda: stories("nosy")),
    ("of the file at the detail of scenario 'nosy', exactly", lambda: stories("nosy"), stories),
    (", at the detail of scenario 'nosy'", lambda: stories("nosy"), stories),
    ("Who could attack the file, and with what.", stories, settings),
    ("Selection and frontier count a missing value",
     lambda: settings(selection=Result(given=dict, parameters={})), settings),
    ("age, at the detail of scenario 'nosy'", lambda: linked_on("nosy"), lambda: linked_on(None)),
    ("a table of 2 pairs of values", lambda: score_in_words({"table": [1, 2]}),
     lambda: score_in_words({"exact": 5})),
    ("p(identification) under scenario 'nosy' is 0.05 to 0.2", lambda: identified("nosy"),
     lambda: identified(None)),
    ("p(identification) under scenario 'nosy'", lambda: identified("nosy"),
     lambda: identified("nosy", None)),
    ("Values perturbed, in 90 records of the IUF: age 9.", lambda: perturbed(LOST),
     lambda: perturbed(None)),
    ("The ROC area is 0.70", lambda: controlled(roc=0.7), controlled),
    ("a guess without the release in 5%", controlled, lambda: controlled(naive=1)),
    ("it could not be tried", lambda: controlled(success=None, control=None), controlled),
    ("Share of suspected records that are correct matches: by unicity 5%",
     lambda: linked(after=0.2), lambda: linked(release="other")),
    ("Share of suspected records that are correct matches: by unicity 5%", coded,
     lambda: " ".join(linked(release="other"))),
    ("The chapter on the study names the linking variables.", lambda: goal(0.2),
     lambda: goal(0.05)),
    ("1 of 9 columns looks like a direct identifier", lambda: screened("mail"), screened),
    ("Estimated from the synthetic release.", lambda: tabled("tabulate"), lambda: tabled("table")),
    ("The table is in table/release/table-1.csv.", lambda: tabled("table"),
     lambda: tabled("tabulate")),
    ("The table is in table/release/table-1-2.csv.", lambda: tabled("table", 2),
     lambda: tabled("table")),
    ("The 2 steps of the plan take", lambda: plan(2), plan),
    ("The step of the plan takes", plan, lambda: plan(2)),
    ("every key out of the file: nothing is left to match on", lambda: plan(after=False), plan),
    ("on sex from 0.4000 to 0.1000", plan, lambda: plan(after=False)),
    ("and loses 0.1000 of the information in age", plan, lambda: plan(lost=None)),
    ("the 4 variables named below", lambda: plan(targets="abcd"), plan),
    ("Including values recoverable from retained columns it is 0.1500", lambda: plan(told=0.15),
     plan),
    ("What could be added, the cheapest first", lambda: next_steps(ADDED), next_steps),
    ("To come within the limit of 10%, the cheapest first.", lambda: advised(True),
     lambda: advised(False)),
    ("No single step meets the limit: the first comes nearest.", lambda: advised(False),
     lambda: advised(True)),
    ("no group can be shown without revealing the size", lambda: pooled("unknown"), pooled),
    ("groups with fewer than 3 records (1 group)", pooled, lambda: pooled("unknown")),
    ("records, or suppressed in a table", lambda: pooled(suppressed=[1]), pooled),
    ("A missing key matches every value, both ways: the less cautious reading.",
     lambda: next_steps(missing="wildcard"), next_steps),
    ("Records with a missing key are not counted.", lambda: next_steps(missing="drop"), next_steps),
    ("All records have one value of ill: it is not a secret", lambda: learnt(disclosed=False),
     learnt),
    ("No cell of three or more shares one value of ill.", lambda: learnt(0), learnt),
    ("4 records are in cells of three or more that all share one value", learnt, lambda: learnt(0)),
    ("The category that flags most records is nurse of job", lambda: flags("nurse"),
     lambda: flags(None)),
    ("The levels of job are in tables of their own.", lambda: driven("job"), driven),
    ("The sets count a missing value as a category of its own.", lambda: beside("drop"),
     lambda: beside("own")),
    ("≤: the file has values that are not in the scenario’s coding",
     lambda: remaining_notes(detail="at most"), remaining_notes),
    ("Unique as before: records that were unique and still are", lambda: remaining_notes(still=1),
     remaining_notes),
    ("is an example, not a finding", lambda: scenario(example=True), scenario),
    ("Counted are people whose cell has one value in an implicate", lambda: attributes_notes(0.1),
     lambda: attributes_notes(None)),
    ("predicates that match one record of the release", lambda: story("singled-out"), controlled),
    ("one record of the release is the closest", lambda: story("linked"), controlled),
    ("the records closest to what is known about a person reveal ill", controlled,
     lambda: story("linked")),
    ("the half closer to the release is taken to be in it", lambda: story("present"), controlled),
    ("Detecting who is in the file", lambda: story("present"), controlled),
]  # fmt: skip
PAGES = [
    ("is the mean of one over the size", lambda: exposed("wildcard"), lambda: exposed("own")),
    ("is the number of cells over the number of records", lambda: exposed("own"),
     lambda: exposed("wildcard")),
    ("The worst case is nosy", lambda: told_scenarios(Result(name="nosy")), told_scenarios),
    ("The other chapters of this report use the key of nosy",
     lambda: told_scenarios(chosen="nosy"), told_scenarios),
    ("no other release within the limit has more utility", lambda: solved(complete=True),
     lambda: solved(complete=False)),
    ("The search stopped before all", lambda: solved(complete=False),
     lambda: solved(complete=True)),
    ("combinations were tried. The best release found has a utility of",
     lambda: solved(complete=False), lambda: solved(complete=True)),
    ("none within the limit can have more than", lambda: solved(complete=False, bound=0.9),
     lambda: solved(complete=False)),
    ("a better one may exist", lambda: solved(complete=False),
     lambda: solved(complete=False, bound=0.9)),
    ("the smallest RP/CR; α is RP/CR after the step", path, lambda: path(criterion="difference")),
    ("No step could be taken.", path, lambda: path([STEP])),
    ("Within the limit, 2 variables", lambda: path(within="ab"), path),
    ("No set of variables is within the limit.", path, lambda: path(within="ab")),
    ("All 5 maximal sets within the limit were found", lambda: searched(complete=True),
     lambda: searched(complete=False)),
    ("The search stopped early: 5 sets within the limit were found",
     lambda: searched(complete=False), lambda: searched(complete=True)),
    ("If these variables are released, and an intruder knows all", proposed,
     lambda: proposed(proposal=False)),
    ("It keeps more detail under the same limit", lambda: proposed(better="Better."), proposed),
    ("The limit is not met. Each of these steps was tried",
     lambda: protected_chapter(Table("Add", ["step"], [])), lambda: protected_chapter(None)),
    ("Success on the former beyond that on the latter is due to the file.", compared,
     lambda: compared("none")),
    ("How much of this is due to the file is not known", lambda: compared("none"), compared),
    ("The text and the chart show the worst of the 3 files", lambda: compared(files=3), compared),
    ("How the people in this release are protected", lambda: page_of_note(altered=True),
     lambda: page_of_note(altered=False)),
    ("What was checked before this release", lambda: page_of_note(altered=False),
     lambda: page_of_note(altered=True)),
    ("How strongly each method was applied", lambda: page_of_note(altered=True),
     lambda: page_of_note(altered=False)),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "true", "false"), [*PAIRS, *PAGES])
def test_a_sentence_is_said_where_it_is_true_and_not_where_it_is_false(sentence, true, false):
    assert sentence in true()
    assert sentence not in false()
