"""Choosing the variables that can go out (Lin & Garin), and the exact frontier behind them."""

from keyhole.selection.criteria import Criterion, named_criterion
from keyhole.selection.search import backward, forward, stepwise

__all__ = ["Criterion", "backward", "forward", "named_criterion", "stepwise"]
