"""Where records are counted: one small protocol, the same answers everywhere."""

from keyhole.engines.memory import MemoryEngine
from keyhole.engines.protocol import Cells, Engine, Missing, Records, Spectrum, Tally

__all__ = ["Cells", "Engine", "MemoryEngine", "Missing", "Records", "Spectrum", "Tally"]
