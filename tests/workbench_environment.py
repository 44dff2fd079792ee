"""A small data environment for the tests of the workbench: two forms, a target, two scenarios."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

from tests.workbench import REVIEW, Workbench, start, write_people

from keyhole.data import load
from keyhole.environment import (
    add_forms,
    add_target,
    capture_microdata,
    read_forms,
    write_environment,
)
from keyhole.environment.codings.categories import codes_of
from keyhole.environment.model import CategoryMap, Environment
from keyhole.environment.scenarios.scenarios import RestrictedStage, Scenario

FORMS = """\
form,organisation,sector,purpose,field,label,code,category
Shop card,Shop,commerce,sales,sex,Sex,f,f
,,,,,,m,m
,,,,state,State,MD,MD
,,,,,,VA,VA
,,,,,,DC,DC
,,,,age,Age,young,20 to 29
,,,,,,old,30 to 39
Club,Club,community,membership,sex,Sex,f,f
,,,,,,m,m
"""
NEW_FORM = """\
form,field,label,code,category
Library card,sex,Sex,f,f
,,,m,m
,branch,Branch of the library,1,North
,,,2,South
,shoe,Shoe size,,
"""
WITH_ENVIRONMENT = REVIEW + '\n[environment]\nstore = "environment.json"   # ours\n'


@cache
def small_environment() -> Environment:
    """Return the environment of people.csv; made once, for it is only read."""
    import tempfile

    folder = Path(tempfile.mkdtemp())
    (folder / "forms.csv").write_text(FORMS)
    environment = add_forms(Environment(), read_forms(folder / "forms.csv")).environment
    people = capture_microdata(load(write_people(folder)))
    environment = add_target(environment, people, threshold=0.5).environment
    scenarios = (
        Scenario("shop", "A shop", restricted=(RestrictedStage(sector="commerce"),)),
        Scenario("friend", "A friend", columns={"sex": "", "age": ""}),
    )
    young, old = codes_of(next(c for c in environment.codings if c.name == "AG2.001"))[:2]
    coarse = {str(age): young if age < 30 else old for age in range(20, 40)}
    maps = (*environment.maps, CategoryMap("AG20.001", "AG2.001", coarse))
    return dataclasses.replace(environment, scenarios=scenarios, maps=maps)


def start_with_environment(folder: Path, review: str = WITH_ENVIRONMENT) -> Workbench:
    """Open a workbench on a review with an environment in a JSON file."""
    write_environment(small_environment(), folder / "environment.json")
    return start(folder, review)
