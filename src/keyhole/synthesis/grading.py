"""How much of a record is replaced, by its risk level.

Hawala & Funk found that their riskiest records were changed no more than the others. Here a
record of high risk loses all its targets, one of medium risk keeps one of them every other time,
and one of low risk always keeps one: enough is replaced to break its fingerprint, and the
analyst loses less.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from keyhole.kernels.arrays import Flags

__all__ = ["KEPT", "grade"]


# The chance that a record of each level, 0 (a decoy) to 3, keeps one of its targets.
KEPT = (1.0, 1.0, 0.5, 0.0)


def grade(replace: Flags, level: npt.NDArray[np.integer], random: np.random.Generator) -> Flags:
    """Let records of lower levels keep one of their targets, drawn at random.

    A record with a single target keeps none: it would not be protected at all.

    Examples
    --------
    >>> replace = np.ones((4, 3), dtype=bool)
    >>> graded = grade(replace, np.array([1, 1, 3, 3]), np.random.default_rng(1))
    >>> graded.sum(axis=1).tolist()
    [2, 2, 3, 3]
    """
    chance = np.asarray(KEPT)[level]
    keeps = (random.random(len(level)) < chance) & (replace.sum(axis=1) > 1)
    lots = np.where(replace, random.random(replace.shape), -1.0)
    out = replace.copy()
    who = np.flatnonzero(keeps)
    out[who, lots[who].argmax(axis=1)] = False
    return out
