"""Scenarios that often come up, as examples to be edited: they know nothing of your file.

Their probability of an attempt is 1, since nobody has argued otherwise; their sectors are those
of the example environment. Replace what does not fit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from keyhole.core.names import nearest, quoted, shown
from keyhole.environment.scenarios.scenarios import PublicStage, RestrictedStage, Scenario
from keyhole.errors import OptionError

_NEIGHBOUR = Scenario(
    "nosy neighbour",
    "A nosy neighbour looks for one person",
    motivation="Curiosity about somebody known personally, or a quarrel.",
    means="What is seen over the fence and on social media; no money, little skill.",
    opportunity="The file is public; an hour with a spreadsheet is enough.",
    target_variables="Income, health, benefits: whatever is not seen from outside.",
    other_means="Often yes: asking, gossip, public records. That makes an attempt less likely.",
    data_divergence="Small: what is seen is recent, though ages and dates are guessed.",
    attack_type="Search for one known person, who may not be in the file at all.",
    key_variables="What can be seen: sex, rough age, family, home, vehicle.",
    likelihood_of_attempt="Nobody has argued it.",
    likelihood_of_success="High only if the person is known to be in the file.",
    consequences="Harm to one person; loss of trust if it is told.",
    public=PublicStage(8, ("observed", "self-disclosed")),
    example=True,
)
_COMMERCIAL = Scenario(
    "commercial database",
    "A company matches its customer database",
    motivation="More facts about customers, for marketing or pricing.",
    means="A database of many people with names, software and staff to match.",
    opportunity="The file is public; matching is a matter of days.",
    target_variables="Income, health, family plans.",
    other_means="Yes: such facts are bought, or asked for with a discount.",
    data_divergence="Considerable: customer data are of other dates, partly guessed.",
    attack_type="Matching of whole files; few wrong matches matter.",
    key_variables="What half of such databases hold.",
    likelihood_of_attempt="Nobody has argued it.",
    likelihood_of_success="As a study with a real external file shows.",
    consequences="Many people; unlawful in most places; the agency's name in the news.",
    restricted=(RestrictedStage(sector="commerce", threshold=0.5),),
    example=True,
)
_JOURNALIST = Scenario(
    "journalist",
    "A journalist or scientist shows that it can be done",
    motivation="A story: one confirmed person is enough.",
    means="Skill, some weeks, a small budget; every public source that can be bought.",
    opportunity="The file is public and comes with documentation.",
    target_variables="None in particular; the identification itself is the aim.",
    other_means="No: the point is that this file allows it.",
    data_divergence="Little: sources are chosen where they fit.",
    attack_type="Fishing for unusual records, then a search for who they are.",
    key_variables="All that public sources tell, combined.",
    likelihood_of_attempt="Nobody has argued it.",
    likelihood_of_success="High for unusual people.",
    consequences="One person, and the standing of the agency.",
    public=PublicStage(9),
    example=True,
)
_REGISTER = Scenario(
    "register",
    "An office links its register",
    motivation="Checking claims, finding people, or plain overreach.",
    means="A register of nearly everybody, with names and exact dates.",
    opportunity="The file is public or shared between offices.",
    target_variables="What the office may not ask: health, income, opinions.",
    other_means="Seldom: the law forbids asking.",
    data_divergence="Small: registers are kept up to date.",
    attack_type="Matching of whole files.",
    key_variables="What any office's form asks.",
    likelihood_of_attempt="Nobody has argued it.",
    likelihood_of_success="High: nearly everybody in the file is in the register.",
    consequences="Decisions about people, taken on facts given in confidence.",
    restricted=(RestrictedStage(sector="government"),),
    example=True,
)

PRESETS: Mapping[str, Scenario] = {
    one.name: one for one in (_NEIGHBOUR, _COMMERCIAL, _JOURNALIST, _REGISTER)
}


def preset(name: str, /, **changes: Any) -> Scenario:
    """Return an example scenario, with changes.

    It stays marked as an example unless `example=False` is among the changes.

    Examples
    --------
    >>> preset("journalist", public=PublicStage(6)).public.resources
    6
    """
    if name not in PRESETS:
        near = nearest(str(name), list(PRESETS))
        hint = f" Did you mean {quoted(near)}?" if near else ""
        raise OptionError(
            f"preset must be one of {quoted(PRESETS)}. Got {shown(name)} instead.{hint}"
        )
    return edited(PRESETS[name], **changes)


def edited(base: Scenario, **changes: Any) -> Scenario:
    """Return an example with changes; where p(attempt) is argued anew, its words go.

    Examples
    --------
    >>> edited(PRESETS["register"], p_attempt=0.1, reasons=("It was asked.",)).likelihood_of_attempt
    'It was asked.'
    """
    argued = {"p_attempt", "reasons"} & set(changes)
    if argued and "likelihood_of_attempt" not in changes:
        changes["likelihood_of_attempt"] = "; ".join(changes.get("reasons", base.reasons))
    return dataclasses.replace(base, **changes)
