"""The example world: veterans who do not exist, under Lin & Garin's variable names.

No data is stored: people are drawn from tables of rounded public figures, so that the files
look like an agency's and their truth is known. The same seed gives the same world everywhere.
"""

from keyhole.data.examples.files import KEYS, LINK
from keyhole.data.examples.world import Settings, World, veterans, veterans_sample

__all__ = ["KEYS", "LINK", "Settings", "World", "veterans", "veterans_sample"]
