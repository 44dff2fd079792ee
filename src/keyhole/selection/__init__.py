"""Choosing the variables that can go out (Lin & Garin)."""

from keyhole.selection.search import backward, forward, stepwise

__all__ = ["backward", "forward", "stepwise"]
