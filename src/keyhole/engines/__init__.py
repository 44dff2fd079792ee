"""Where records are counted: one small protocol, the same answers everywhere."""

from keyhole.engines.memory import MemoryEngine
from keyhole.engines.protocol import Engine, Missing, Tally

__all__ = ["Engine", "MemoryEngine", "Missing", "Tally"]
