"""Microdata from any file or frame: typed columns, roles, missing codes, labels."""

from keyhole.data.columns import Codes, Variable
from keyhole.data.microdata import Microdata
from keyhole.data.reading import derive, load

__all__ = ["Codes", "Microdata", "Variable", "derive", "load"]
