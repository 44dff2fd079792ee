"""What a mapping answers: the key variables of a target, at the detail they can be matched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyVariable:
    """One column of the target and the coding at which others hold it too.

    ``groups`` gives, for each category of the target's coding in its order (intervals
    first), the number of the group it falls into; ``labels`` names the groups. ``coding``
    is the name of the stored coding with these groups, or of the one to be minted
    (``stored`` is false then). ``entropy`` is in bits, ``lost`` what harmonising took.
    ``explanation`` says which forms, which path up the graph, which categories merged;
    ``codings`` are those in which it is held, where one holder has them all.
    """

    construct: str
    column: str
    target_coding: str
    coding: str
    stored: bool
    groups: tuple[int, ...]
    labels: tuple[str, ...]
    entropy: float
    lost: float
    holders: int
    of: int
    antichain: tuple[str, ...] = ()
    exact: bool = True
    explanation: tuple[str, ...] = ()
    codings: tuple[str, ...] = ()
