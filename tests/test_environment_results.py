"""Answers of the environment as JSON and back: what is restored gives the same JSON again."""

import pytest

from keyhole.data.examples import veterans_sample
from keyhole.environment import (
    compatibility,
    enhance,
    example_environment,
    joint_keys,
    list_environment,
    map_class,
    map_pair,
    map_public,
    p_identification,
    preset,
    scenario_key,
    show,
    trend,
    waiting,
)
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.public import combine_keys
from keyhole.environment.matching.adding import add_forms
from keyhole.environment.matching.proposals import Decision, propose
from keyhole.environment.model import CapturedField, CapturedForm, Category, Form

WORLD = CodingGraph(example_environment())
MET = CapturedField("status", "Marital status", (Category("1", "Single"), Category("2", "Wed")))
CAPTURED = CapturedForm(Form("club"), (MET, CapturedField("hobby")))


def _combined():
    held = map_class(WORLD, "veterans", sector="finance")
    public = map_public(WORLD, "veterans", resources=6)
    return combine_keys(WORLD, "veterans", [held, public.mapping])


RESULTS = {
    "list": lambda: list_environment(WORLD, "forms"),
    "show": lambda: show(WORLD, "AG8.001"),
    "map a form": lambda: map_pair(WORLD, "veterans", "Voter registration"),
    "map public": lambda: map_public(WORLD, "veterans", resources=6),
    "map in stages": _combined,
    "joint keys": lambda: joint_keys(WORLD, "veterans", sector="finance"),
    "enhance": lambda: enhance(WORLD, "veterans", resources=7, sector="finance"),
    "trend": lambda: trend(WORLD),
    "waiting": lambda: waiting(WORLD, target="veterans"),
    "join": lambda: WORLD.join("MS6.001", "MS3.001"),
    "unresolved join": lambda: WORLD.join("AG40177.001", "AG8.001"),
    "compatibility": lambda: compatibility(WORLD, "AG5.001", "AG7.001"),
    "scenario": lambda: scenario_key(WORLD, "nosy neighbour", veterans_sample(200)),
    "identification": lambda: p_identification(preset("journalist"), 0.2),
    "proposals": lambda: propose(WORLD.environment, CAPTURED),
    "addition": lambda: add_forms(WORLD.environment, [CAPTURED], threshold=0.99).additions[0],
    "batch": lambda: add_forms(WORLD.environment, [CAPTURED]),
    "decision": lambda: Decision("dob", "create", construct="AG", name="age"),
}


@pytest.mark.parametrize("made", RESULTS.values(), ids=RESULTS)
def test_a_restored_result_gives_the_same_json(made):
    result = made()
    plain = result.to_dict()
    assert plain
    assert type(result).from_dict(plain).to_dict() == plain
