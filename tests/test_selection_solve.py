"""The verb `solve`: ladders, the outgoing file, what is refused."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import math
import random
import tomllib

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keyhole
from keyhole.cli.main import run
from keyhole.core.options import bind
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.engines import storage
from keyhole.engines.storage import MEMORY
from keyhole.errors import ColumnError, KeyholeError, OptionError
from keyhole.selection import releasing
from keyhole.selection.ladders import Ladder, Rung, declared_ladders, encode_ladder, made_ladder
from keyhole.selection.solution import SHOWN
from keyhole.selection.solve import KeyLimits, SolveAsked, solve, unmet_limits

KEYS = ["sex", "age", "race1", "homstate"]


@pytest.fixture(scope="module")
def veterans():
    return veterans_sample(1500).select([*KEYS, "puf_id", "income", "weight"])


def counted(solution, keys=None, file=None):
    """Recount RP in the outgoing file by a plain group_by, missing being a category."""
    names = [one.column for one in solution.columns if keys is None or one.name in keys]
    frame = (file or solution.release()).frame
    if not names:
        return 0.0
    sizes = frame.group_by(names).len()["len"]
    return sizes.filter(sizes < solution.cutoff).sum() / frame.height


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"limit": 0.0, "suppress": 0.02},
        {"suppress": 0.1, "must": ["age", "homstate"]},
        {"remove": 0.1, "must": ["age"], "weight": "weight", "worth": {"age": 3}},
        {"suppress": 0.02, "remove": 0.02, "cutoff": 5},
        {"limits": [{"keys": ["age", "homstate"], "limit": 0.001}], "remove": 0.05},
    ],
)
def test_the_outgoing_file_has_the_figures_of_the_result(veterans, options):
    found = solve(veterans, **{"keys": KEYS, "limit": 0.05, **options})
    assert found.complete
    assert found.rp == pytest.approx(counted(found))
    assert found.rp <= found.limit
    for one in found.further:
        assert one.rp == pytest.approx(counted(found, one.keys))
        assert one.rp <= one.limit
    out = found.release()
    assert out.records == veterans.records - found.removed
    assert found.suppressed <= veterans.records * options.get("suppress", 0)
    assert found.removed <= veterans.records * options.get("remove", 0)
    names = {*(one.column for one in found.columns), *(one.name for one in found.not_counted)}
    assert set(out.names) == names
    assert "puf_id" in found.identifiers
    assert set(options.get("must", ())) <= {one.name for one in found.columns}
    values = sum(out.frame[c.column].null_count() for c in found.columns)
    assert values == found.suppressed_values
    for one in found.not_counted:
        frame = out.frame.group_by([*(c.column for c in found.columns), one.name]).len()["len"]
        assert one.rp_if_known == pytest.approx(
            frame.filter(frame < found.cutoff).sum() / out.records
        )
    if "method" in found.plan():
        done = keyhole.protect(veterans, plan=found.plan()).data
        assert (sorted(done.names), done.records) == (sorted(out.names), out.records)
        assert counted(found, file=done) == pytest.approx(found.rp)
        assert all(counted(found, one.keys, done) <= one.limit for one in found.further)


def test_the_column_from_which_a_key_was_derived_is_not_released(veterans):
    data = keyhole.derive(veterans, {"age5": "band(age, 5)", "age10": "band(age, 10)"})
    found = solve(data, keys=["sex", "age10"], limit=0.05)
    assert found.left_out == ("age", "age5")
    assert not {"age", "age5"} & {*found.release().names}


def test_weights_keep_their_sum_where_records_are_removed(veterans):
    found = solve(
        veterans, keys=KEYS, limit=0.05, must=["age", "homstate"], remove=0.3, weight="weight"
    )
    assert found.removed > 0
    assert found.weight_factor > 1
    total = found.release().frame["weight"].sum()
    assert total == pytest.approx(veterans.frame["weight"].sum())


def test_what_columns_in_no_key_tell_is_counted_as_anybody_would(veterans):
    keys = ["sex", "age", "homstate"]
    frame = veterans.frame.select(keys).drop_nulls(["sex", "homstate"])
    data = keyhole.load(frame.with_columns(area=pl.concat_str("homstate", "sex", separator="|")))
    ladders = {name: [name] for name in keys[::2]}
    asked = {"keys": keys, "limit": 0.05, "must": keys[::2], "ladders": ladders}
    found = solve(data, **asked, suppress=0.2)
    assert found.suppressed > 0
    told = "'area', which is retained, reveals the values of 'homstate' that were suppressed"
    assert told in " ".join(found.warnings)
    out = found.release().frame
    names = [one.column for one in found.columns]
    parts = pl.col("area").str.split("|")
    back = out.with_columns(homstate=parts.list.get(0), sex=parts.list.get(1))
    sizes = back.group_by(names).len()["len"]
    assert found.read_off == pytest.approx(sizes.filter(sizes < 3).sum() / back.height)
    assert found.rp <= found.limit < found.read_off
    assert found.meets is False
    assert f"RP(3) is {found.read_off:.4f}, above the limit." in found.summary()
    done = keyhole.protect(data, plan=found.plan(), keys=keys)
    assert done.read_off.rp == found.read_off
    assert set(found.warnings) <= set(done.warnings)


def test_a_key_is_not_given_back_where_it_tells_another_that_is_blank():
    draw = random.Random(5)
    county = [min(int(draw.expovariate(0.06)), 80) for _ in range(2000)]
    frame = pl.DataFrame({
        "state": [f"s{c // 4}" for c in county],
        "county": [f"c{c}" for c in county],
        "age": [draw.randint(20, 24) for _ in county],
    })  # fmt: skip
    keys = frame.columns
    ladders = {name: [name] for name in keys}
    found = solve(frame, keys=keys, limit=0.0, must=keys, ladders=ladders, suppress=0.2)
    out = found.release().frame
    assert found.suppressed_values < 3 * found.suppressed, "some values are given back"
    assert not out.filter(pl.col("state").is_null() & pl.col("county").is_not_null()).height
    assert (found.rp, found.read_off, found.warnings, found.meets) == (0.0, None, (), True)


def test_suppression_that_keeps_more_is_named(veterans):
    found = solve(veterans, keys=KEYS, limit=0.3)
    alone = found.greedy["suppression"]
    note = "Suppression alone keeps more after losses"
    assert (note in found.summary()) == (alone.kept_utility > found.kept_utility)
    for blanked, least in ((75, "0.05"), (76, "0.0507")):
        plan = dataclasses.replace(alone, kept_utility=1.0, suppressed=blanked)
        better = dataclasses.replace(found, greedy={**found.greedy, "suppression": plan})
        assert f"{note}: suppress {least} allows it." in better.summary()


def test_every_pareto_point_is_within_the_limit_and_the_best_is_the_last(veterans):
    found = solve(veterans, keys=KEYS, limit=0.05)
    rps = [one.rp for one in found.frontier]
    utilities = [one.utility for one in found.frontier]
    assert rps == sorted(rps)
    assert utilities == sorted(utilities)
    assert max(rps) <= 0.05
    assert utilities[-1] == found.utility == found.bound
    assert found.to_frame().height == len(rps)
    for name in ("backward", "classical"):
        assert found.greedy[name].utility <= found.utility
    assert found.greedy["suppression"].utility == 1
    assert found.greedy["suppression"].suppressed > 0


def test_the_chart_says_what_is_kept_and_whether_it_is_proved(veterans):
    found = solve(veterans, keys=KEYS, limit=0.05)
    title = " ".join(found.plot().to_dict()["title"]["text"])
    assert title.startswith("The best release keeps")
    kept = solve(veterans, keys=KEYS, limit=0.05, seconds=1e-9).plot().to_dict()["title"]
    assert "The best release found keeps" in " ".join(kept["text"])
    assert "Stopped" in " ".join(kept["subtitle"])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"suppress": 0.01, "remove": 0.01},
        {"suppress": 0.1, "must": ["age", "homstate"]},
        {"remove": 0.1, "must": ["age"], "weight": "weight", "worth": {"age": 3}},
        {"limits": [{"keys": ["age", "homstate"], "limit": 0.001}], "suppress": 0.05},
        {"sensitive": ["income"], "diversity_limit": 2},
    ],
)
def test_disk_gives_what_memory_gives(veterans, tmp_path, monkeypatch, options):
    path = veterans.save(tmp_path / "veterans.csv")
    asked = {"keys": KEYS, "limit": 0.03, **options}
    here = solve(path, **asked)
    released = here.release().frame
    # On disk records are gone through some at a time: here few of them.
    monkeypatch.setattr(releasing, "parts", lambda length: storage.parts(length, 100))
    there = solve(path, **asked, engine="disk")
    assert {**there.to_dict(), "engine": "memory"} == here.to_dict()
    assert there.release().frame.equals(released)


def test_the_first_records_of_a_pattern_are_treated():
    draw = np.random.default_rng(4)
    codes = [draw.integers(0, 3, 500).astype(np.uint8) for _ in range(3)]
    treated = [(0, 1, 2), (2, 2, 0)]
    columns = [np.array(one) for one in zip(*treated, strict=True)]
    rows, which = releasing._matches(list(zip(columns, codes, strict=True)))
    found = [(int(r), treated[w]) for r, w in zip(rows, which, strict=True)]
    every = enumerate(zip(*(one.tolist() for one in codes), strict=True))
    assert found == [(r, cells) for r, cells in every if cells in treated]


def test_a_file_too_large_to_be_looked_through_is_said_to_be(veterans, tmp_path, monkeypatch):
    monkeypatch.setattr(releasing, "READ_OFF_BYTES", 10**9)
    found = solve(veterans.save(tmp_path / "v.csv"), keys=KEYS, limit=0.05, engine="disk")
    assert (found.warnings, found.read_off) == ((releasing.NOT_READ_OFF,), None)
    assert "were not looked for" in found.summary()


def test_time_that_runs_out_leaves_the_best_so_far_and_a_bound(veterans):
    exact = solve(veterans, keys=KEYS, limit=0.05)
    found = solve(veterans, keys=KEYS, limit=0.05, seconds=1e-9)
    assert not found.complete
    assert found.utility <= exact.utility <= found.bound <= 1
    assert "Stopped early" in found.summary()


def test_a_search_of_so_many_sets_stops_where_it_stopped_before(veterans):
    exact = solve(veterans, keys=KEYS, limit=0.05)
    found = [solve(veterans, keys=KEYS, limit=0.05, evaluations=20) for _ in range(2)]
    assert found[0].to_dict() == found[1].to_dict()
    assert not found[0].complete
    assert 20 <= found[0].evaluated < exact.evaluated
    assert found[0].utility <= exact.utility <= found[0].bound
    # It ends as soon as so many were evaluated, and not after those that come next.
    again = solve(veterans, keys=KEYS, limit=0.05, evaluations=found[0].evaluated)
    assert (again.complete, again.evaluated) == (False, found[0].evaluated)
    all_of_it = solve(veterans, keys=KEYS, limit=0.05, evaluations=exact.evaluated + 1)
    assert all_of_it.to_dict() == exact.to_dict()


# Ladders


def levels(data, column):
    found = encode_ladder(data, made_ladder(data, column), MEMORY)
    return [rung.level for rung in found.ladder.rungs]


def test_ladders_are_made_by_kind():
    first = datetime.date(1950, 1, 1)
    data = keyhole.load(
        pl.DataFrame(
            {
                "born": [first + datetime.timedelta(days=i * 10) for i in range(600)],
                "income": [i * 100.5 for i in range(600)],
                "place": [f"{i % 90:02}{i % 7:03}" for i in range(600)],
                "job": ["a"] * 500 + ["b"] * 90 + ["c"] * 7 + ["d"] * 3,
                "same": ["x"] * 600,
                "flag": [True, False] * 300,
            }
        )
    )
    assert levels(data, "born") == [
        "born", "month(born)", "quarter(born)", "year(born)", "band(year(born), 10)",
    ]  # fmt: skip
    assert levels(data, "income")[:3] == [
        "income", "top(income, 55000)", "band(top(income, 55000), 5000)",
    ]  # fmt: skip
    assert levels(data, "place")[1] == "prefix(place, 4)"
    assert levels(data, "job") == ["job", "pool(job, 60)"]
    assert levels(data, "same") == ["same"]
    assert levels(data, "flag") == ["flag"]
    few = keyhole.load({"job": ["a"] * 15 + [*"bbcd"]})
    assert levels(few, "job") == ["job", "pool(job, 2)"]


def test_missing_stays_missing_on_every_rung():
    data = keyhole.load({"age": [None, 20, 21, 38, None, 64, 80, 81] * 5})
    found = encode_ladder(data, made_ladder(data, "age"), MEMORY)
    missing = data.codes("age").size - 1
    assert set(found.missing) == {missing}
    assert all(
        table[missing] == missing and missing not in table[:missing] for table in found.tables
    )


def test_a_constant_column_counts_in_full_unless_it_is_left_out():
    data = keyhole.load({"same": [1] * 9})
    assert encode_ladder(data, made_ladder(data, "same"), MEMORY).shares() == (1.0, 0.0)


def test_entropy_falls_along_a_ladder(veterans):
    for name in KEYS:
        shares = encode_ladder(veterans, made_ladder(veterans, name), MEMORY).shares()
        assert shares[0] == 1
        assert all(a > b for a, b in itertools.pairwise(shares))


def test_a_ladder_that_is_not_nested_is_refused_naming_both_rungs(veterans):
    ladder = Ladder("age", (Rung("age5", "band(age, 5)"), Rung("age8", "band(age, 8)")), True)
    with pytest.raises(ColumnError) as error:
        encode_ladder(veterans, ladder, MEMORY)
    assert "'band(age, 5)' puts together, 'band(age, 8)' puts apart" in str(error.value)


def test_declared_ladders_are_followed(veterans, tmp_path):
    ladders = tmp_path / "ladders.toml"
    ladders.write_text(
        '[age]\nlevels = [{name = "age10", derive = "band(age, 10)"}, "band(age, 20)"]\n'
        '[homstate]\nlevels = [{name = "homstate"}]\n'
    )
    found = solve(veterans, keys=KEYS, limit=0.2, must=["age"], ladders=ladders)
    assert found.ladders["age"] == ("band(age, 10)", "band(age, 20)")
    assert found.ladders["homstate"] == ("homstate",)
    (age,) = [one for one in found.columns if one.name == "age"]
    assert age.column in ("age10", "age_2")
    assert age.column in found.release().names
    assert "age" not in found.release().names


def test_a_made_level_takes_no_name_that_is_declared(veterans):
    made = made_ladder(veterans, "race1").rungs[1]
    ladders = {"age": [{"name": made.name, "derive": "band(age, 20)"}]}
    assert made_ladder(veterans, "race1", [made.name]).rungs[1].name == f"{made.name}_"
    found = solve(veterans, keys=["age", "race1"], limit=0.001, must=["age", "race1"],
                  ladders=ladders, suppress=0.01)  # fmt: skip
    names = [one.column for one in found.columns]
    assert len(set(names)) == len(names) == 2
    assert set(names) <= set(found.release().names)


def test_what_is_wrong_with_declared_ladders_is_said_at_once():
    _, problems = declared_ladders(
        {"a": {"levels": ["bnad(a, 5)", 3]}, "b": {}, "c": ["a = 1"], "d": [{"nme": "x"}]}
    )
    assert len(problems) == 5
    assert "Did you mean 'band'" in problems[0]
    _, problems = declared_ladders({"a": ["a"], "b": [{"name": "a", "derive": "pool(b, 3)"}]})
    assert problems == ["the ladders have two levels named 'a'. Give each its own name."]
    _, problems = declared_ladders({"a": [{"name": "b", "derive": "a"}]})
    assert "is the column as it is, and keeps its name" in problems[0]


def test_the_plan_can_be_carried_out(veterans, tmp_path):
    found = solve(veterans, keys=KEYS, limit=0.05)
    plan = tomllib.loads(found.plan())
    derived = keyhole.derive(veterans, plan["derive"])
    left = derived.select([n for n in derived.names if n not in plan["step"][0]["columns"]])
    out = found.release().frame
    assert left.frame.select(out.columns).sort(out.columns).equals(out.sort(out.columns))
    assert found.save_plan(tmp_path / "plan.toml").read_text() == found.plan()


# Refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"must": ["sxe"]}, ["must names 'sxe'"]),
        ({"worth": {"zip": 2}, "must": ["zip"]}, ["worth names 'zip'", "must names 'zip'"]),
        ({"limits": [{"keys": ["income"], "limit": 0.1}]}, ["limits names 'income'"]),
        ({"ladders": {"income": ["income"]}}, ["ladders names 'income'"]),
        ({"weight": "age"}, ["weight must not be one of keys"]),
        ({"suppress": 1, "remove": -1}, ["suppress must be", "remove must be"]),
        ({"limits": [["sex"]]}, ["limits must be a list of keys with their limits"]),
        ({"ladders": "nowhere.toml"}, ["'nowhere.toml' does not exist"]),
        (
            {"ladders": {"age": ["band(age, 5)", "band(age, 7)"], "sex": ["band(race1, 5)"]}},
            ["must be made from that column alone"],
        ),
        (
            {"ladders": {"age": ["band(age, 5)", "band(age, 7)"], "race1": ["band(race1, 5)"]}},
            ["is not nested", "needs numbers"],
        ),
        (
            {"limit": 0, "must": KEYS},
            ["limit cannot be met: even with only 'sex', 'age'", ", above 0%. Raise the limit"],
        ),
    ],
)
def test_bad_input_is_answered_all_at_once(veterans, options, words):
    with pytest.raises(KeyholeError) as error:
        solve(veterans, **{"keys": KEYS, "limit": 0.05, **options})
    assert isinstance(error.value, OptionError)
    for one in words:
        assert one in str(error.value)


@given(data=st.data())
@settings(max_examples=60)
def test_a_limit_is_refused_beforehand_only_if_no_release_meets_it(data):
    """With no records treated it is refused exactly if the search finds nothing."""
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=20))
    people = keyhole.load(pl.DataFrame(rows, schema=["a", "b", "c"], orient="row"))
    options = {
        "must": data.draw(st.sets(st.sampled_from("abc")).map(sorted)),
        "limits": [{"keys": ["a", "b"], "limit": data.draw(st.sampled_from([0.0, 0.3, 1.0]))}],
        "suppress": data.draw(st.sampled_from([0.0, 0.2])),
        "remove": data.draw(st.sampled_from([0.0, 0.2])),
    }
    limit = data.draw(st.sampled_from([0.0, 0.1, 0.5]))
    question = bind(solve, {"keys": ["a", "b", "c"], "limit": limit, **options})
    found = SolveAsked.of(question, people).search(math.inf, None).stairs.points
    refused = unmet_limits(question, people) is not None
    assert not (refused and found)
    if not (options["suppress"] or options["remove"]):
        assert refused == (not found)


def test_fewer_records_than_the_cutoff_meet_no_limit():
    with pytest.raises(OptionError, match="every key left out"):
        solve({"sex": [1, 2]}, keys=["sex"], limit=0.5)


def test_as_many_further_keys_are_taken_as_said():
    names = [f"v{i}" for i in range(8)]
    asked = {"keys": names, "limits": [{"keys": [name], "limit": 1.0} for name in names]}
    people = pl.DataFrame({name: [1, 1, 1, i] for i, name in enumerate(names)})
    with pytest.raises(OptionError, match=r"at most 7 keys\. Got 8 instead"):
        solve(people, limit=1.0, **asked)
    found = solve(people, limit=1.0, **asked | {"limits": asked["limits"][1:]})
    assert {*found.release().names} == {*names}


def test_the_limit_that_is_missed_by_most_is_named():
    """All keys: RP 1 against 0.9; b alone: none at risk; a and b: 1 against 0.2."""
    people = pl.DataFrame({"a": [1, 2, 3, 4, 5, 6], "b": [1, 1, 1, 2, 2, 2], "c": [7] * 6})
    further = [{"keys": ["b"], "limit": 0.1}, {"keys": ["a", "b"], "limit": 0.2}]
    asked = {"keys": ["a", "b", "c"], "must": ["a", "b"], "limits": further}
    asked["ladders"] = {"a": ["a"], "b": ["b"]}
    with pytest.raises(OptionError) as error:
        solve(people, limit=0.9, **asked)
    assert "limits cannot be met: even with only 'a', 'b' released" in str(error.value)
    assert "RP on 'a', 'b' is 100%, above 20%. Raise the limit, require fewer" in str(error.value)
    with pytest.raises(OptionError, match=r"limit cannot be met: .* RP is 100%, above 10%"):
        solve(people, limit=0.1, **asked)


def test_plans_that_coarsen_treat_no_record():
    """One record alone, and three of which nothing is known, which it could be blanked into."""
    people = pl.DataFrame({name: [1] * 9 + [2] + [None] * 3 for name in "ab"})
    for plan in ("backward", "classical"):
        release = solve(people, keys=["a", "b"], limit=0).greedy[plan]
        assert (release.suppressed, release.removed, release.columns) == (0, 0, ())


def test_further_keys_are_read_and_written():
    kind = KeyLimits()
    value = kind.settle([{"keys": ["sex", "a|b"], "limit": 0.02}, (["b|c"], 1)])
    assert kind.write(value) == 'sex|"a|b"=0.02,"b|c"=1'
    assert kind.settle(kind.read(kind.write(value))) == value
    assert kind.settle(kind.shortest(value)) == value
    assert [name for _, name in kind.columns(value)] == ["sex", "a|b", "b|c"]
    for text in ("sex", '"sex=0.1"'):
        with pytest.raises(ValueError, match="sex"):
            kind.read(text)
    asked = bind(solve, {"keys": ["sex"], "limit": 0.1, "limits": "sex"})
    assert asked.problems


# The command


def test_the_command_writes_the_outgoing_file_and_the_plan(veterans, tmp_path, capsys):
    data = veterans.save(tmp_path / "veterans.csv")
    out, plan = tmp_path / "out.csv", tmp_path / "plan.toml"
    words = f"--keys {','.join(KEYS)} --limit 0.05 --limits sex|age=0.02 --worth age=2 --json"
    asked = ["solve", str(data), *words.split(), "--out", str(out), "--plan-out", str(plan)]
    assert run(asked) == 0
    told = json.loads(capsys.readouterr().out)
    wanted = "complete combinations evaluated rp cr columns left_out not_counted suppressed removed"
    assert set(f"{wanted} utility frontier greedy bound".split()) <= set(told)
    written = pl.read_csv(out)
    sizes = written.group_by([one["column"] for one in told["columns"]]).len()["len"]
    assert told["rp"] == pytest.approx(sizes.filter(sizes < 3).sum() / written.height)
    assert tomllib.loads(plan.read_text())["step"][0]["method"] == "drop"
    assert run(["solve", str(data), *["--keys", "sxe,age", "--limit", "2", "--must", "zip"]]) == 2
    wrong = capsys.readouterr().err
    assert all(x in wrong for x in ("'sxe'", "--limit must be", "--must names 'zip'"))


def test_labels_of_the_chart_do_not_touch(veterans):
    found = solve(veterans, keys=["sex", "age", "race1"], limit=0.0, suppress=0.05, must=["sex"])
    drawn = [found.plot().to_dict()]
    texts = []
    while drawn:
        part = drawn.pop()
        if isinstance(part, dict) and {"text", "utility", "rp"} <= set(part):
            texts.append(part)
        elif isinstance(part, dict | list):
            drawn += part.values() if isinstance(part, dict) else part
    assert {"solve", "suppression alone"} <= {row["text"] for row in texts}
    width, height, letter, line = 680, 360, 6.2, 13
    top = 0.0108  # of the axis, if every figure and the limit are 0
    boxes = []
    for row in texts:
        x, y = width * row["utility"], height * (1 - math.sqrt(row["rp"] / top))
        wide = letter * len(row["text"])
        # Whichever side a label is flush to, it is within this width of its anchor.
        boxes.append((x, y, wide, line))
    for (x, y, wide, line), (x2, y2, wide2, _) in itertools.combinations(boxes, 2):
        assert abs(y - y2) >= line - 1e-6 or abs(x - x2) >= min(wide, wide2)


def test_the_outgoing_file_is_in_another_order_and_has_nothing_finer_than_its_keys():
    """Beside their neighbours in a sorted file blanked values would be read off."""
    frame = pl.DataFrame(
        {"state": sorted("abcdefgh" * 40 + "z"), "age": [n % 37 for n in range(321)]}
    )
    data = keyhole.load(frame, derive=["age2 = band(age, 2)"])
    found = keyhole.solve(data, keys=["state", "age"], limit=0.2, suppress=0.1)
    out = found.release().frame
    assert "age2" not in out.columns
    assert out.height == frame.height
    known = out["state"].drop_nulls().to_list()
    assert known != sorted(known)
    assert found.release().frame.equals(out)


def test_a_frontier_says_how_many_points_are_not_shown(veterans):
    found = solve(veterans, keys=["sex", "age", "homstate"], limit=0.3)
    for count in (SHOWN - 1, SHOWN, SHOWN + 2):
        most = (found.frontier * count)[:count]
        said = dataclasses.replace(found, frontier=most).summary()
        assert ("and 2 more" in said, " 0 more" in said) == (count > SHOWN, False)


def test_a_rung_that_the_data_does_not_allow_is_passed_over_unless_it_was_declared():
    data, rungs = load(pl.DataFrame({"x": [1.5, 2.5]})), (Rung("x"), Rung("short", "prefix(x, 1)"))
    assert encode_ladder(data, Ladder("x", rungs), MEMORY).ladder.rungs == rungs[:1]
    with pytest.raises(ColumnError, match="prefix"):
        encode_ladder(data, Ladder("x", rungs, is_declared=True), MEMORY)
