"""Derived columns in plans: measured as keys, and derived of an intruder's file too."""

import polars as pl
import pytest

import keyhole
from keyhole.data.examples import veterans_sample
from keyhole.errors import InputError
from keyhole.protection.plan import Plan
from keyhole.reviews.stages.attacks import code_alike

KEYS = ["sex", "age", "race1"]
TEXT = """\
[derive]
age20 = "band(age, 20)"

[[step]]
method = "drop"
columns = ["age", "ag8r"]
"""


@pytest.fixture(scope="module")
def people():
    return veterans_sample(1500)


def test_a_key_that_is_dropped_is_measured_by_what_was_derived_from_it(people):
    done = keyhole.protect(people, plan=TEXT, keys=KEYS, ledger=True)
    sizes = done.data.frame.select(pl.len().over(["sex", "race1", "age20"])).to_series()
    assert done.after.rp == pytest.approx((sizes < 3).mean())
    assert done.after.rp == done.ledger.last.rp < done.before.rp
    assert [step.method for step in done.steps] == ["derive", "drop"]
    assert "age" not in done.data.names
    assert keyhole.risk(done.data, keys=["sex", "race1", "age20"]).rp == done.after.rp


def test_a_plan_that_was_saved_does_the_same(people, tmp_path):
    plan = Plan.parse(TEXT)
    path = plan.save(tmp_path / "plan.toml")
    once, again = (keyhole.protect(people, plan=one).data.frame for one in (TEXT, path))
    assert once.equals(again)
    assert plan.known_with(["age"]) == ("age", "age20")
    assert plan.known_with(["sex"]) == ("sex",)


def test_an_intruder_derives_the_same_of_another_file():
    eif = keyhole.load({"age": [33, 47], "id": [1, 2]})
    found, coded, unfit = code_alike(eif, Plan.parse(TEXT), ["age"])
    assert found.frame["age20"].to_list() == ["20-39", "40-59"]
    assert (coded, unfit) == (["age20"], [])
    lacks = keyhole.load({"id": [1, 2]})
    assert code_alike(lacks, Plan.parse(TEXT), ["age"])[1:] == ([], [])


def test_everything_wrong_is_told_at_once(people):
    text = (
        '[derive]\nsex = "band(age, 3)"\nx = "bnd(age, 3)"\nq = "band(agee, 10)"\n'
        + TEXT.partition('20)"\n')[2]
    )
    with pytest.raises(InputError) as caught:
        keyhole.protect(people, plan=text)
    told = "\n".join(caught.value.problems)
    for part in ("'bnd' is not a function", "'agee'", "(derive): derived column 'sex' is a column"):
        assert part in told, told
