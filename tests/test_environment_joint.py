"""Key sets that forms hold together."""

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.environment.mapping import mapping
from keyhole.environment.mapping.mapping import closed_sets, joint_keys, map_class
from keyhole.environment.model import (
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Target,
)
from keyhole.errors import OptionError

LETTERS = "ABCDE"


def slow_closed(transactions, items, minimum):
    """Every set that some forms hold and to which nothing can be added without losing one."""
    found = {}
    for size in range(items + 1):
        for chosen in combinations(range(items), size):
            holders = [t for t in transactions if set(chosen) <= t]
            if len(holders) >= minimum and holders:
                rest = set(range(items)) - set(chosen)
                if not any(all(i in t for t in holders) for i in rest):
                    found[frozenset(chosen)] = len(holders)
    return found


@given(st.lists(st.sets(st.integers(0, 4), max_size=5), min_size=1, max_size=9), st.integers(1, 4))
def test_closed_sets_are_those_of_brute_force(transactions, minimum):
    holders = [sum(1 << i for i, t in enumerate(transactions) if item in t) for item in range(5)]
    found = list(closed_sets(holders, len(transactions), minimum))
    sets = {frozenset(i for i in range(5) if items >> i & 1): n for items, n in found}
    assert len(sets) == len(found)
    assert sets == slow_closed(transactions, 5, minimum)
    supports = [support for _, support in found]
    assert supports == sorted(supports, reverse=True)


def world(transactions):
    """Five yes-or-no columns; a form holds some of them, the first also coarsely."""
    codings = [Coding(f"{x}X2.001", f"{x}X", (Category("y"), Category("n"))) for x in LETTERS]
    forms = [
        Form(f"form {i}", fields=tuple(Field(f"f{k}", coding=f"{LETTERS[k]}X2.001") for k in held))
        for i, held in enumerate(transactions)
    ]
    target = Target("t", None, tuple(Field(x, coding=f"{x}X2.001") for x in LETTERS))
    constructs = tuple(Construct(f"{x}X", x) for x in LETTERS)
    return Environment(constructs, tuple(codings), forms=tuple(forms), targets=(target,))


def test_prevalence_of_columns_overstates_what_anyone_holds():
    environment = world([{0, 1}, {0, 1}, {2, 3}, {2, 3}])
    assert len(map_class(environment, "t", threshold=0.5).key) == 4
    found = joint_keys(environment, "t", threshold=0.5)
    assert [(s.columns, s.support, s.share, s.bits) for s in found.sets] == [
        (("A", "B"), 2, 0.5, 2.0),
        (("C", "D"), 2, 0.5, 2.0),
    ]
    assert (found.whole, found.complete, found.found) == (0, True, 2)
    text = found.summary()
    assert "0 of 4 forms hold the whole key." in text
    json.dumps(found.to_dict())
    assert found.to_frame()["support"].to_list() == [2, 2]


def test_a_set_counts_only_where_the_keys_coding_is_held():
    environment = world([{0, 1}, {0, 1}, {1}])
    fine = Coding("AX3.001", "AX", (Category("1"), Category("2"), Category("3")))
    edge = CategoryMap("AX3.001", "AX2.001", {"1": "y", "2": "y", "3": "n"})
    forms = (
        Form("fine", fields=(Field("a", coding="AX3.001"), Field("b", coding="BX2.001"))),
        *environment.forms[:2],
    )
    target = Target("t", None, (Field("A", coding="AX3.001"), Field("B", coding="BX2.001")))
    environment = Environment(
        environment.constructs,
        (*environment.codings, fine),
        (edge,),
        forms=forms,
        targets=(target,),
    )
    any_form = joint_keys(environment, "t", threshold=0)
    assert [(s.columns, s.support) for s in any_form.sets] == [(("A", "B"), 1)]
    most = joint_keys(environment, "t", threshold=0.6)
    assert [(s.columns, s.support) for s in most.sets] == [(("A", "B"), 3)]
    assert most.whole == 3


def test_what_is_left_out_is_said(monkeypatch):
    sets = [set(c) for size in (2, 3, 4) for c in combinations(range(5), size)]
    environment = world(sets)
    whole = joint_keys(environment, "t")
    some = joint_keys(environment, "t", limit=3)
    assert len(some.sets) == 3
    assert some.found == whole.found == len(whole.sets)
    assert f"3 of {whole.found} closed sets" in some.summary()
    monkeypatch.setattr(mapping, "MOST_SETS", 10)
    cut = joint_keys(environment, "t")
    assert not cut.complete
    complete = {s.columns for s in whole.sets if s.support > cut.searched_to}
    assert complete <= {s.columns for s in cut.sets}
    assert f"held by {cut.searched_to} or fewer may be missing" in cut.summary()


def test_options_must_make_sense():
    with pytest.raises(OptionError, match="at least 1"):
        joint_keys(world([{0, 1}]), "t", minimum=0)
    with pytest.raises(OptionError, match="at least 1"):
        joint_keys(world([{0, 1}]), "t", limit=0)
