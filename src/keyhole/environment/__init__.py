"""The data environment: what could an intruder know? (Elliot, Mackey & Purdam 2011).

`model` has the vocabulary. Forms come in by `importers`, `propose` and `add_forms`; `CodingGraph`
joins codings; `map_pair`, `map_class`, `map_public` and `combine_keys` find keys; a `Scenario` says
whose key it is, and `scenario_key` recodes a file to it. A store keeps it all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhole.environment.adding.adding import (
        add_form,
        add_forms,
        add_source,
        add_target,
        captured_again,
        decide,
        place,
    )
    from keyhole.environment.adding.decisions import proposals_to_toml, read_decision_file
    from keyhole.environment.adding.importing import import_files, undo
    from keyhole.environment.adding.placing import tie_codings
    from keyhole.environment.adding.proposals import propose
    from keyhole.environment.codings.graph import CodingGraph
    from keyhole.environment.codings.joins import compatibility, mint
    from keyhole.environment.example import example_environment
    from keyhole.environment.exchange import read_environment, write_environment
    from keyhole.environment.importers import (
        attach_labels,
        capture_microdata,
        read_forms,
        read_labels,
    )
    from keyhole.environment.importers.table import write_forms
    from keyhole.environment.key_verbs import find_join, find_key, map_target
    from keyhole.environment.listing import history, list_environment, show
    from keyhole.environment.mapping.joint import joint_keys
    from keyhole.environment.mapping.mapping import map_class, map_pair
    from keyhole.environment.mapping.public import combine_keys, enhance, map_public, resource_index
    from keyhole.environment.mapping.trends import trend
    from keyhole.environment.mapping.waiting import waiting
    from keyhole.environment.model import Environment
    from keyhole.environment.pictures.charts import prevalence_chart
    from keyhole.environment.pictures.drawing import draw_graph
    from keyhole.environment.removing import remove
    from keyhole.environment.scenarios.files import read_scenarios, scenario_to_toml
    from keyhole.environment.scenarios.identification import p_identification
    from keyhole.environment.scenarios.recoding import file_weights, scenario_key
    from keyhole.environment.scenarios.scenarios import Scenario, preset
    from keyhole.environment.store import open_store
    from keyhole.environment.store_verbs import (
        export_environment,
        init_store,
        remove_thing,
        tie,
    )

_HOMES = {
    "add_form": "adding.adding",
    "add_forms": "adding.adding",
    "add_source": "adding.adding",
    "add_target": "adding.adding",
    "decide": "adding.adding",
    "place": "adding.adding",
    "captured_again": "adding.adding",
    "tie_codings": "adding.placing",
    "remove": "removing",
    "file_weights": "scenarios.recoding",
    "prevalence_chart": "pictures.charts",
    "compatibility": "codings.joins",
    "proposals_to_toml": "adding.decisions",
    "read_decision_file": "adding.decisions",
    "draw_graph": "pictures.drawing",
    "enhance": "mapping.public",
    "example_environment": "example",
    "read_environment": "exchange",
    "write_environment": "exchange",
    "write_forms": "importers.table",
    "CodingGraph": "codings.graph",
    "p_identification": "scenarios.identification",
    "attach_labels": "importers",
    "capture_microdata": "importers",
    "read_forms": "importers",
    "read_labels": "importers",
    "joint_keys": "mapping.joint",
    "list_environment": "listing",
    "show": "listing",
    "map_class": "mapping.mapping",
    "map_pair": "mapping.mapping",
    "mint": "codings.joins",
    "Environment": "model",
    "preset": "scenarios.scenarios",
    "propose": "adding.proposals",
    "map_public": "mapping.public",
    "resource_index": "mapping.public",
    "scenario_key": "scenarios.recoding",
    "read_scenarios": "scenarios.files",
    "scenario_to_toml": "scenarios.files",
    "Scenario": "scenarios.scenarios",
    "combine_keys": "mapping.public",
    "open_store": "store",
    "trend": "mapping.trends",
    "waiting": "mapping.waiting",
    "init_store": "store_verbs",
    "export_environment": "store_verbs",
    "remove_thing": "store_verbs",
    "tie": "store_verbs",
    "import_files": "adding.importing",
    "undo": "adding.importing",
    "history": "listing",
    "map_target": "key_verbs",
    "find_join": "key_verbs",
    "find_key": "key_verbs",
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
    "captured_again",
    "combine_keys",
    "compatibility",
    "decide",
    "draw_graph",
    "enhance",
    "example_environment",
    "export_environment",
    "file_weights",
    "find_join",
    "find_key",
    "history",
    "import_files",
    "init_store",
    "joint_keys",
    "list_environment",
    "map_class",
    "map_pair",
    "map_public",
    "map_target",
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
    "remove",
    "remove_thing",
    "resource_index",
    "scenario_key",
    "scenario_to_toml",
    "show",
    "tie",
    "tie_codings",
    "trend",
    "undo",
    "waiting",
    "write_environment",
    "write_forms",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that nothing waits for what it does not use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
