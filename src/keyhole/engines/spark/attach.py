"""The records with the sizes of their cells, as a frame that stays on the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keyhole.engines.protocol import Missing
from keyhole.engines.spark import sql
from keyhole.engines.spark.data import Encoded, SourceData, elsewhere
from keyhole.engines.spark.jobs import View
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["attach_sizes"]


def attach_sizes(data: Any, *, keys: Sequence[str], missing: Missing = "own") -> DataFrame:
    """Return the records with a column ``f`` beside theirs: the size of each one's cell.

    The sizes are joined to the records on the cluster; nothing is collected. Write the frame
    with Spark, or go on with it.

    Parameters
    ----------
    data
        What `keyhole.engines.choose.open_records` returned for ``engine="spark"``.
    keys
        The key.
    missing
        ``own``, or ``drop``: then f is 0 where a key is missing.
    """
    if not isinstance(data, SourceData):
        raise OptionError(
            "data must be what open_records gives for a file or a frame on Spark. Got "
            f"{type(data).__name__} instead."
        )
    if missing == "wildcard":
        elsewhere("missing values that match everything")
    if "f" in data.names:
        raise OptionError("the data has a column 'f' already. Rename it, or leave it out.")
    names = data.require(keys)
    columns = data.described(names)
    ordered = [*names, *(name for name in data.names if name not in columns)]
    view = View(data.coded(names, beside=ordered))
    key = list(Encoded.of(view, columns).fields.values())
    values = [f"v{ordered.index(name)}" for name in data.names]
    sized = view.ask(sql.attached(view.name, key, values, drop=missing == "drop"))
    view.close()  # the frame knows by now what it is made of
    return sized.toDF(*data.names, "f")
