"""The ledger of a plan: risk and price after each step, plans side by side, the next step."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import keyhole
from keyhole.chart_labels import _with_room
from keyhole.cli import main
from keyhole.data.examples import veterans_sample
from keyhole.errors import InputError, OptionError
from keyhole.protection.charts import ROOM
from keyhole.protection.plan import Plan
from keyhole.utility import information_loss

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schemas" / "protect.json").read_text())
KEYS = ["sex", "ag8r", "race1", "ms"]
DROP = {"method": "drop", "columns": ["puf_id", "household"]}
TOP = {"method": "top-code", "column": "age", "value": 80}
BANDS = {"method": "recode", "column": "age", "width": 10}
PRAM = {"method": "pram", "column": "ms", "p": 0.8}
# Age, which stays, would tell ag8r.
SUPPRESS = {"method": "suppress", "keys": KEYS, "limit": 0.05, "never": ["ag8r"],
            "missing": "wildcard"}  # fmt: skip
HALF = {"method": "sample", "fraction": 0.5}


@pytest.fixture(scope="module")
def people():
    return veterans_sample(1500)


@pytest.fixture(scope="module")
def whole(people):
    steps = [DROP, TOP, PRAM, SUPPRESS]
    return keyhole.ledger(
        people, steps, keys=KEYS, limit=0.05, weight="weight", formula="income ~ age", seed=7,
        missing="wildcard",
    )  # fmt: skip


# Information lost


def slow_share(before, after):
    """Return H(V | V') / H(V) as the definition says it, with dictionaries."""
    n = len(before)

    def entropy(counts):
        return -sum(c / n * math.log2(c / n) for c in counts.values())

    told = Counter(after)
    given_after = sum(
        told[b] / n * -math.log2(c / told[b]) * c / told[b]
        for (_, b), c in Counter(zip(before, after, strict=True)).items()
    )
    return given_after / entropy(Counter(before))


letters = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), min_size=2)


@given(letters)
@settings(max_examples=60, deadline=None)
def test_the_share_lost_is_that_of_the_definition(pairs):
    before, after = zip(*pairs, strict=True)
    frames = pl.DataFrame({"v": before}), pl.DataFrame({"v": after})
    found = information_loss(*frames).share
    if len(set(before)) == 1:
        assert found is None, "a constant tells nothing"
    else:
        assert found == pytest.approx(slow_share(before, after), abs=1e-9)


def test_nothing_is_lost_by_new_names_and_all_by_one_category():
    before = pl.DataFrame({"v": ["a", "b", "b", "c"]})
    assert information_loss(before, pl.DataFrame({"v": ["x", "y", "y", "z"]})).share == 0
    assert information_loss(before, pl.DataFrame({"v": ["x"] * 4})).share == 1
    assert information_loss(before, pl.DataFrame({"w": ["x"] * 4}), variables="v").share == 1


def test_il1s_of_numbers_too_large_for_a_variance_is_not_estimable():
    before = pl.DataFrame({"x": [1e300, -1e300, 5.25, 7.5]})
    assert information_loss(before, before).il1s is None


def test_il1s_by_hand():
    before = pl.DataFrame({"x": [1.5, 2.5, 3.5, 4.5]})
    after = pl.DataFrame({"x": [1.5, 2.5, 3.5, None]})
    assert information_loss(before, after).il1s == 0, "what is missing has no distance"
    after = pl.DataFrame({"x": [1.5, 2.5, 3.5, 6.5]})
    spread = np.std([1.5, 2.5, 3.5, 4.5], ddof=1)
    assert information_loss(before, after).il1s == pytest.approx(0.5 / math.sqrt(2) / spread)


def test_records_left_out_lose_all_they_told():
    before = pl.DataFrame({"v": [*"aabb"]})
    found = information_loss(before, pl.DataFrame({"v": [*"ab"]}), kept=[0, 2])
    assert (found.share, found.kept) == (0.5, 2)
    with pytest.raises(OptionError, match="kept must name"):
        information_loss(before, pl.DataFrame({"v": [*"ab"]}))


def test_a_swap_loses_information_though_the_distribution_stays():
    before = pl.DataFrame({"v": [*"abab"]})
    assert information_loss(before, pl.DataFrame({"v": [*"baab"]})).share == pytest.approx(1)


ages = st.lists(st.tuples(st.integers(0, 60) | st.none(), st.sampled_from("fm")), min_size=3)


@given(ages, st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_of_a_column_that_is_dropped_what_is_derived_from_it_stays(people, width):
    frame = pl.DataFrame(people, schema={"age": pl.Int64, "sex": pl.String}, orient="row")
    plan = [
        {"method": "derive", "name": "band", "expression": f"band(age, {width})"},
        {"method": "derive", "name": "wide", "expression": "join(band, sex)"},
        {"method": "drop", "columns": ["age"]},
        {"method": "drop", "columns": ["band"]},
        {"method": "drop", "columns": ["wide"]},
    ]
    age = [x for x, _ in people]
    bands = [None if x is None else x // width for x in age]
    wide = [b if b is None else (b, sex) for b, (_, sex) in zip(bands, people, strict=True)]
    lines = keyhole.ledger(frame, plan, keys=["sex"], targets=["age"]).lines
    expected = [0, 0, 0, (bands, wide), (wide,), ()]
    for line, left in zip(lines, expected, strict=True):
        if len(set(age)) == 1 and left != 0:
            assert line.price.lost is None
        else:
            seen = list(zip(*left, strict=True)) if left else [()] * len(age)
            slow = 0 if left == 0 else slow_share(age, seen)
            assert line.price.lost == pytest.approx(slow, abs=1e-9)


def test_what_is_done_to_a_derived_column_is_a_loss_of_the_one_it_stands_for():
    frame = pl.DataFrame({"age": [1, 2, 11, 12, 21, 22, 31, 32], "sex": [*"ffmmffmm"]})
    plan = [
        {"method": "derive", "name": "ages", "expression": "band(age, 10)"},
        {"method": "drop", "columns": ["age"]},
        {"method": "recode", "column": "ages", "map": {"0-9": "a", "10-19": "a"}, "rest": "b"},
    ]
    lines = keyhole.ledger(frame, plan, keys=["sex", "age"]).lines
    of_age = [{v.variable: v.share for v in one.price.by_variable.variables} for one in lines[2:]]
    # Of three bits the bands tell two, and their halves one.
    assert [shares["age"] for shares in of_age] == pytest.approx([1 / 3, 2 / 3])


# The ledger


def test_the_lines_are_those_of_the_steps_one_by_one(people, whole):
    assert [line.words for line in whole.lines] == [
        "the file as it is", "drop puf_id,household", "top-code age", "pram ms",
        "suppress 4 columns",
    ]  # fmt: skip
    for upto in (1, 2, 3, 4):
        plan = [DROP, TOP, PRAM, SUPPRESS][:upto]
        done = keyhole.apply_plan(people, plan, keys=KEYS, seed=7, missing="wildcard")
        line = whole.lines[upto]
        assert (line.rp, line.cr, line.uniques) == (done.after.rp, done.after.cr,
                                                    done.after.uniques)  # fmt: skip
        loss = information_loss(people, done.data, variables=[*KEYS, "age"])
        assert line.price.lost == pytest.approx(loss.share)
        assert line.price.il1s == pytest.approx(loss.il1s)
    assert whole.protection.data.frame.equals(done.data.frame)
    assert whole.meets
    assert whole.last.rp <= 0.05
    assert not whole.next_steps


def test_a_step_that_touches_no_key_buys_nothing_and_pram_costs(whole):
    first, drop, top, pram, last = whole.lines
    assert first.rp == drop.rp == top.rp
    assert first.population_uniques == drop.population_uniques
    assert all(0 <= line.population_uniques <= line.uniques for line in whole.lines)
    assert drop.price.lost == 0 < top.price.lost < pram.price.lost < last.price.lost
    assert top.price.overlap < 1
    assert top.price.mean > 0
    assert pram.price.p is not None
    assert pram.price.pairs > 0
    assert pram.price.pmse > 0


def test_a_column_derived_from_a_key_changes_no_estimate_until_the_key_is_dropped(people):
    band = {"method": "derive", "name": "age20", "expression": "band(age, 20)"}
    plan = Plan.parse([band, {"method": "drop", "columns": ["age"]}])
    keys = ["sex", "age", "race1", "ms"]
    first, derived, dropped = keyhole.ledger(people, plan, keys=keys, seed=7, weight="weight").lines
    assert derived.uniques == first.uniques > dropped.uniques
    assert derived.population_uniques == first.population_uniques > dropped.population_uniques


def test_undo_is_dropping_the_line_and_leaves_the_draws(people, whole):
    without = Plan.parse([DROP, TOP, PRAM, SUPPRESS]).without(2)
    again = keyhole.ledger(people, without, keys=KEYS, seed=7)
    assert [line.method for line in again.lines] == [None, "drop", "pram", "suppress"]
    pram = [one.protection.steps[i].data.frame["ms"] for one, i in ((whole, 2), (again, 1))]
    assert pram[0].equals(pram[1])
    with pytest.raises(OptionError, match="some of 1 to 4"):
        Plan.parse([DROP, TOP, PRAM, SUPPRESS]).without(5)


def test_recoding_loses_information_but_moves_nobody(people):
    found = keyhole.ledger(people, [BANDS], keys=["sex", "age"], formula="income ~ age")
    price = found.last.price
    assert price.lost > 0.2
    assert found.last.rp < found.lines[0].rp
    assert price.moved == 0
    assert price.pmse == 0
    assert price.il1s is None
    assert price.overlap is None
    assert "overlap is not estimable from step 1 on: column 'age' of the formula" in str(found)


def test_recoding_to_a_category_that_exists_moves_nobody_either(people):
    common = people.frame["ms"].mode()[0]
    others = [value for value in people.frame["ms"].drop_nulls().unique() if value != common]
    plan = [{"method": "recode", "column": "ms", "map": {others[0]: common}, "keep_rest": True}]
    price = keyhole.ledger(people, plan, keys=KEYS).last.price
    assert price.lost > 0
    assert (price.moved, price.pmse) == (0, 0)


def test_a_sample_is_aligned_with_its_records(people):
    found = keyhole.ledger(people, [HALF, TOP], keys=KEYS, seed=1, weight="weight")
    half, top = found.lines[1:]
    assert (half.left_out, half.price.il1s) == (750, 0.0)
    assert half.price.lost == pytest.approx(0.5)
    assert top.price.lost > 0.5
    assert half.population_uniques is not None
    assert "row" not in found.protection.data.names


def test_a_column_called_row_is_the_files_own():
    data = pl.DataFrame({"row": [5, 5, 6, 6], "sex": [*"ffmm"]})
    found = keyhole.ledger(data, [{"method": "drop", "columns": ["sex"]}], keys=["row", "sex"])
    assert found.protection.data.names == ("row",)
    assert found.last.keys == ("row",)


def test_without_weights_population_uniques_are_not_estimable(people):
    found = keyhole.ledger(people, [TOP], keys=KEYS)
    assert found.last.population_uniques is None
    assert "Population uniques are not estimable: neither weight nor fraction" in found.summary()
    assert "in population" not in found.summary()


def test_dropping_every_key_leaves_nothing_to_match(people):
    # State and weight together would tell the sex.
    plan = [{"method": "drop", "columns": ["sex", "ms", "weight"]}]
    found = keyhole.ledger(people, plan, keys=["sex", "ms"], limit=0.1)
    assert found.last.rp is None
    assert found.meets is None
    assert found.last.price.lost == 1


def test_the_dictionary_is_plain_and_the_frame_has_a_row_a_line(whole):
    plain = json.loads(json.dumps(whole.to_dict()))
    assert [line["step"] for line in plain["lines"]] == [0, 1, 2, 3, 4]
    assert plain["meets"] is True
    assert whole.to_frame().height == 5


def test_what_was_suppressed_and_can_be_read_off_is_told(people):
    plan = [{"method": "suppress", "keys": ["sex", "homstate", "ms"], "k": 3,
             "missing": "wildcard"}]  # fmt: skip
    found = keyhole.ledger(people, plan, keys=["sex", "homstate", "ms"])
    assert [text for text in found.warnings if text.startswith("'area', which is retained")]
    without = keyhole.ledger(people, [{"method": "drop", "columns": ["area"]}, *plan],
                             keys=["sex", "homstate", "ms"])  # fmt: skip
    assert not [text for text in without.warnings if "'homstate'" in text]


# The next step


def test_the_cheapest_next_step_meets_the_limit_when_added(people):
    found = keyhole.ledger(people, [TOP], keys=KEYS, limit=0.05)
    assert found.meets is False
    best = found.next_step
    assert best.meets
    assert best.rp <= 0.05
    assert [one.price for one in found.next_steps if one.meets] == sorted(
        one.price for one in found.next_steps if one.meets
    )
    assert {one.step["method"] for one in found.next_steps} >= {"suppress", "drop"}
    for step in found.next_steps:
        added = keyhole.ledger(people, [TOP, step.step], keys=KEYS, limit=0.05,
                               missing=step.reading, targets=found.targets)  # fmt: skip
        assert added.last.rp == pytest.approx(step.rp)
        assert added.last.price.lost == pytest.approx(step.lost)


def test_a_next_step_that_leaves_just_the_limit_meets_it():
    """Without b, y and z are alone: two of twenty."""
    a, b, others = ["x"] * 18 + ["y", "z"], [f"{i} road" for i in range(20)], ["u", "v"] * 10
    frame = pl.DataFrame({"a": a, "b": b, "c": others, "d": others, "e": others})
    plan = [{"method": "drop", "columns": ["c", "d", "e"]}]
    found = keyhole.ledger(frame, plan, keys=["a", "b"], limit=0.1)
    assert found.last.words == "drop c,d,e"  # of more columns their number
    (dropped,) = (one for one in found.next_steps if one.step.get("columns") == ["b"])
    assert (dropped.rp, dropped.meets) == (0.1, True)
    assert [one.meets for one in found.next_steps] == [True, True, False, False]
    assert keyhole.ledger(frame, [*plan, dropped.step], keys=["a"], limit=0.1).meets is True


def test_the_next_step_is_a_line_of_a_plan(people):
    found = keyhole.ledger(people, [TOP], keys=["sex", "age"], limit=0.01)
    methods = {one.step["method"] for one in found.next_steps}
    assert "recode" in methods
    for step in found.next_steps:
        if "map" not in step.step:
            assert Plan.parse(step.to_toml()).steps[0].method == step.step["method"]
        else:
            assert "map" not in step.to_dict()["step"]


# Plans side by side


def test_plans_are_compared_on_the_same_variables(people):
    plans = {"coarse": [BANDS, SUPPRESS], "fine": [TOP, SUPPRESS], "nothing": [DROP]}
    found = keyhole.compare_plans(people, plans, keys=KEYS, limit=0.05, missing="wildcard")
    assert found.best == "fine"
    assert {one.targets for one in found.ledgers.values()} == {(*KEYS, "age")}
    assert {one.missing for one in found.ledgers.values()} == {"wildcard"}
    assert found.ledgers["nothing"].meets is False
    assert "Cheapest next step after plan nothing" in found.summary()
    assert found.to_frame()["plan"].unique(maintain_order=True).to_list() == list(plans)


def test_the_map_shows_every_step_and_the_limit(people, whole):
    spec = json.dumps(whole.plot().to_dict())
    for text in ("risk limit 5%", "4 suppress 4 columns", "3 pram ms", "after the plan"):
        assert text in spec
    plans = {"<b>A</b>": [DROP, TOP], "B": [BANDS]}
    both = keyhole.compare_plans(people, plans, keys=KEYS).plot().to_dict()
    assert both["title"]["text"] == ["2 plans: what each step buys and what it costs"]
    drawn = keyhole.apply_plan(people, [BANDS], keys=["sex", "age"]).plot().to_dict()
    assert drawn["title"]["text"][0].startswith("The plan takes RP(3) from")
    with pytest.raises(OptionError, match="needs keys"):
        keyhole.apply_plan(people, [BANDS], keys=()).plot()


def test_labels_of_the_map_keep_off_its_lines():
    flat, above, below = _with_room([((0.0, 10.0), (40.0, 10.0))], ROOM)
    assert flat == ((0.0, 10.0), (40.0, 10.0))
    assert {above[0][1], below[0][1]} == {10 - ROOM, 10 + ROOM}


# Bad input


def test_all_problems_of_a_ledger_at_once(people):
    with pytest.raises(OptionError) as caught:
        keyhole.ledger(
            people, [{"method": "drop", "columns": ["nobody"]}], keys=["sexx"], limit=2,
            weight="wait", targets=["aeg"], formula="income ~ ag3", cutoff=0,
        )  # fmt: skip
    told = "\n".join(caught.value.problems)
    for text in ("'nobody'", "'sexx'", "limit must be", "'wait'", "'aeg'", "'ag3'", "cutoff must"):
        assert text in told
    with pytest.raises(OptionError, match="keys must be given for a ledger"):
        keyhole.ledger(people.with_roles(dict.fromkeys(people.role("key"))), [TOP])


def test_all_problems_of_plans_at_once(people):
    with pytest.raises(InputError) as caught:
        keyhole.compare_plans(people, {"A": [{"method": "rond"}], "B": []}, keys=KEYS)
    assert [p.split(":")[0] for p in caught.value.problems] == ["plan 'A'", "plan 'B'"]
    with pytest.raises(OptionError, match="plans must be a table"):
        keyhole.compare_plans(people, {}, keys=KEYS)


# The command line


@pytest.fixture
def files(tmp_path, people):
    people.save(tmp_path / "in.csv")
    Plan.parse([DROP, TOP]).save(tmp_path / "light.toml")
    Plan.parse([DROP, TOP, SUPPRESS]).save(tmp_path / "strong.toml")
    return tmp_path


def call(capsys, *words):
    code = main.run([str(word) for word in words])
    return code, *capsys.readouterr()


def test_the_verb_prints_the_ledger(files, capsys):
    words = ["protect", files / "in.csv", "--plan", files / "light.toml", "--keys", ",".join(KEYS),
             "--out", files / "out.csv", "--limit", 0.05]  # fmt: skip
    code, out, _ = call(capsys, *words, "--plot", files / "map.svg")
    assert code == 0
    assert "Ledger of in on sex, ag8r, race1, ms" in out
    assert "Cheapest next step" in out
    assert "risk limit 5%" in (files / "map.svg").read_text()
    code, out, _ = call(capsys, *words, "--json", "--force")
    found = json.loads(out)
    Draft202012Validator(SCHEMA).validate(found)
    assert set(found) >= {"steps", "before", "after", "ledger"}
    alone = keyhole.ledger(files / "in.csv", files / "light.toml", keys=KEYS, limit=0.05)
    assert found["ledger"] == json.loads(json.dumps(alone.to_dict()))


def test_the_verb_sets_plans_side_by_side(files, capsys):
    words = ["protect", files / "in.csv", "--plan", files / "light.toml", "--keys", ",".join(KEYS),
             "--out", files / "out.csv", "--limit", 0.05]  # fmt: skip
    words += ["--missing", "wildcard"]
    code, out, _ = call(capsys, *words, "--compare", files / "strong.toml", "--json")
    assert code == 0
    found = json.loads(out)
    Draft202012Validator(SCHEMA).validate(found)
    assert found["comparison"]["best"] == "strong"
    assert [one["plan"] for one in found["comparison"]["plans"]] == ["light", "strong"]
    assert len(found["steps"]) == 2, "the file written is that of the first plan"


def test_the_verb_tells_all_that_is_wrong_with_plans_and_options(files, capsys):
    (files / "bad.toml").write_text("[[step]]\nmethod = 'rond'\n")
    words = ["protect", files / "in.csv", "--plan", files / "light.toml", "--out", files / "o.csv"]
    code, out, err = call(
        capsys, *words, "--compare", files / "bad.toml", "--compare", files / "none.toml",
        "--plot", "map.pdf",
    )  # fmt: skip
    assert (code, out) == (2, "")
    for said in ("'rond' is not a method", "none.toml", "--plot"):
        assert said in err
    code, _, err = call(capsys, *words, "--keys", "sex", "--limit", 7, "--weight", "wait")
    assert code == 2
    assert "limit must be" in err
    assert "'wait'" in err
    assert not (files / "o.csv").exists()


def test_lines_say_what_the_keys_tell_of_columns_with_the_role_sensitive():
    frame = pl.DataFrame(
        {
            "sex": [*"ffffmmmm"],
            "age": [30, 31, 30, 31, 40, 41, 40, 41],
            "ill": [*"ynynyyyy"],
            "same": ["x"] * 8,
        }
    )
    people = keyhole.load(frame, roles={"ill": "sensitive", "same": "sensitive"})
    steps = [
        {"method": "recode", "column": "age", "width": 10},
        {"method": "drop", "columns": ["sex", "age"]},
    ]
    found = keyhole.ledger(people, steps, keys=["sex", "age"])
    # By sex and year all cells have one value; by decade those of the men.
    assert [line.homogeneous for line in found.lines] == [
        {"ill": 1.0, "same": 0.0},
        {"ill": 0.5, "same": 0.0},
        None,
    ]
    shown = found.tables()[0]
    assert "homogeneous" in shown.columns
    plain = keyhole.ledger(frame, steps, keys=["sex", "age"])
    assert all("homogeneous" not in line.to_dict() for line in plain.lines)
    assert "homogeneous" not in plain.tables()[0].columns
