"""The data environment: what could an intruder know? (Elliot, Mackey & Purdam 2011).

`model` has the vocabulary. Forms come in by `importers`, `propose` and `add_forms`; `CodingGraph`
joins codings; `map_pair`, `map_class`, `map_public` and `combine` find keys; a `Scenario` says
whose key it is, and `scenario_key` recodes a file to it. A store keeps it all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhole.environment.adding import add_form, add_forms, add_source, add_target, place
    from keyhole.environment.charts import prevalence_chart
    from keyhole.environment.crossing import compatibility
    from keyhole.environment.decision_files import proposals_to_toml, read_decision_file
    from keyhole.environment.drawing import draw_graph
    from keyhole.environment.enhancement import enhance
    from keyhole.environment.example import example_environment
    from keyhole.environment.exchange import read_environment, write_environment, write_forms
    from keyhole.environment.graph import CodingGraph
    from keyhole.environment.identification import p_identification
    from keyhole.environment.importers import (
        attach_labels,
        capture_microdata,
        read_forms,
        read_labels,
    )
    from keyhole.environment.joint import joint_keys
    from keyhole.environment.listing import list_environment, show
    from keyhole.environment.mapping import map_class, map_pair
    from keyhole.environment.minting import mint
    from keyhole.environment.model import Environment
    from keyhole.environment.presets import preset
    from keyhole.environment.proposals import propose
    from keyhole.environment.public import map_public, resource_index
    from keyhole.environment.recoding import scenario_key
    from keyhole.environment.scenario_files import read_scenarios, scenario_to_toml
    from keyhole.environment.scenarios import Scenario
    from keyhole.environment.stages import combine
    from keyhole.environment.store import open_store
    from keyhole.environment.trends import trend

_HOMES = {
    "add_form": "adding",
    "add_forms": "adding",
    "add_source": "adding",
    "add_target": "adding",
    "place": "adding",
    "prevalence_chart": "charts",
    "compatibility": "crossing",
    "proposals_to_toml": "decision_files",
    "read_decision_file": "decision_files",
    "draw_graph": "drawing",
    "enhance": "enhancement",
    "example_environment": "example",
    "read_environment": "exchange",
    "write_environment": "exchange",
    "write_forms": "exchange",
    "CodingGraph": "graph",
    "p_identification": "identification",
    "attach_labels": "importers",
    "capture_microdata": "importers",
    "read_forms": "importers",
    "read_labels": "importers",
    "joint_keys": "joint",
    "list_environment": "listing",
    "show": "listing",
    "map_class": "mapping",
    "map_pair": "mapping",
    "mint": "minting",
    "Environment": "model",
    "preset": "presets",
    "propose": "proposals",
    "map_public": "public",
    "resource_index": "public",
    "scenario_key": "recoding",
    "read_scenarios": "scenario_files",
    "scenario_to_toml": "scenario_files",
    "Scenario": "scenarios",
    "combine": "stages",
    "open_store": "store",
    "trend": "trends",
}

__all__ = [
    "CodingGraph",
    "Environment",
    "Scenario",
    "add_form",
    "add_forms",
    "add_source",
    "add_target",
    "attach_labels",
    "capture_microdata",
    "combine",
    "compatibility",
    "draw_graph",
    "enhance",
    "example_environment",
    "joint_keys",
    "list_environment",
    "map_class",
    "map_pair",
    "map_public",
    "mint",
    "open_store",
    "p_identification",
    "place",
    "preset",
    "prevalence_chart",
    "proposals_to_toml",
    "propose",
    "read_decision_file",
    "read_environment",
    "read_forms",
    "read_labels",
    "read_scenarios",
    "resource_index",
    "scenario_key",
    "scenario_to_toml",
    "show",
    "trend",
    "write_environment",
    "write_forms",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that nothing waits for what it does not use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
