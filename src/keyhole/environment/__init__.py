"""The data environment: what could an intruder know? (Elliot, Mackey & Purdam 2011).

`model` has the vocabulary. Forms come in by `importers`, `propose` and `add_forms`; `CodingGraph`
joins codings; `map_pair`, `map_class`, `map_public` and `combine_keys` find keys; a `Scenario` says
whose key it is, and `scenario_key` recodes a file to it. A store keeps it all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhole.environment.codings.graph import CodingGraph as CodingGraph
    from keyhole.environment.codings.joins import compatibility as compatibility
    from keyhole.environment.exchange import example_environment as example_environment
    from keyhole.environment.exchange import read_environment as read_environment
    from keyhole.environment.exchange import write_environment as write_environment
    from keyhole.environment.mapping.mapping import map_class as map_class
    from keyhole.environment.mapping.mapping import map_pair as map_pair
    from keyhole.environment.mapping.public import combine_keys as combine_keys
    from keyhole.environment.mapping.public import map_public as map_public
    from keyhole.environment.matching.adding import add_form as add_form
    from keyhole.environment.matching.adding import add_forms as add_forms
    from keyhole.environment.matching.proposals import propose as propose
    from keyhole.environment.model import Environment as Environment
    from keyhole.environment.scenarios.recoding import scenario_key as scenario_key
    from keyhole.environment.scenarios.scenarios import Scenario as Scenario
    from keyhole.environment.store import open_store as open_store

_MODULES = {
    "matching.adding": "add_form add_forms add_source add_target captured_again decide place",
    "matching.importing": "import_files undo",
    "matching.placing": "tie_codings",
    "matching.proposals": "propose proposals_to_toml read_decision_file",
    "codings.graph": "CodingGraph",
    "codings.joins": "compatibility mint",
    "exchange": "example_environment read_environment write_environment",
    "importers.microdata": "attach_labels capture_microdata read_labels",
    "importers.reading": "read_forms",
    "importers.table": "write_forms",
    "listing": "history list_environment show",
    "mapping.mapping": "joint_keys map_class map_pair",
    "mapping.public": "combine_keys enhance map_public resource_index",
    "mapping.undecided": "waiting",
    "model": "Environment",
    "prevalence": "draw_graph matrix prevalence_chart trend",
    "scenarios.recoding": "file_weights scenario_key",
    "scenarios.scenarios": "Scenario p_identification preset read_scenarios scenario_to_toml",
    "soundness": "remove",
    "store": "open_store",
    "verbs": "export_environment find_join find_key init_store map_target remove_thing tie",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that nothing waits for what it does not use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
