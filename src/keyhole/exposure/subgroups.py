"""A file cut into the groups that a column makes."""

from __future__ import annotations

from keyhole.engines import Records
from keyhole.engines.choose import group_of

__all__ = ["groups_of"]


def groups_of(data: Records, by: str) -> list[tuple[str, Records]]:
    """Cut a file by the categories of a column; a missing one is a group of its own."""
    codes = data.codes(by)
    labels = data.variable(by).value_labels
    names = [str(labels.get(level, level)) for level in codes.levels.to_list()]
    names += ["(missing)"] if codes.has_missing else []
    return [(name, group_of(data, by, i)) for i, name in enumerate(names)]
