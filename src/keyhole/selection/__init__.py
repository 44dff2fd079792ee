"""Selection of the variables that can be released (Lin & Garin), and the exact frontier."""

from keyhole.selection.criteria import Criterion, named_criterion
from keyhole.selection.search import backward, forward, stepwise

__all__ = ["Criterion", "backward", "forward", "named_criterion", "stepwise"]
