"""The protections there are, by the name they have in a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from keyhole.protection.checks import Method
from keyhole.protection.methods.areas import GEOGRAPHIC_THRESHOLD, merge_areas
from keyhole.protection.methods.dropping import DROP, drop
from keyhole.protection.methods.extremes import BOTTOM_CODE, TOP_CODE, bottom_code, top_code
from keyhole.protection.methods.generalising import GENERALISE, generalise
from keyhole.protection.methods.microaggregation import MICROAGGREGATE, microaggregate
from keyhole.protection.methods.noise import NOISE, add_noise
from keyhole.protection.methods.pram import PRAM, pram
from keyhole.protection.methods.rank_swapping import RANK_SWAP, rank_swap
from keyhole.protection.methods.recoding import RECODE, recode
from keyhole.protection.methods.record_swapping import SWAP_RECORDS, swap_records
from keyhole.protection.methods.rounding import ROUND, round_to_base
from keyhole.protection.methods.sampling import SAMPLE, sample
from keyhole.protection.methods.suppression import SUPPRESS, suppress
from keyhole.protection.protected import Protected

__all__ = ["METHODS", "Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A method and the function that carries it out."""

    method: Method
    apply: Callable[..., Protected]


METHODS: dict[str, Entry] = {
    method.name: Entry(method, apply)
    for method, apply in (
        (DROP, drop),
        (RECODE, recode),
        (TOP_CODE, top_code),
        (BOTTOM_CODE, bottom_code),
        (ROUND, round_to_base),
        (GENERALISE, generalise),
        (GEOGRAPHIC_THRESHOLD, merge_areas),
        (NOISE, add_noise),
        (RANK_SWAP, rank_swap),
        (SWAP_RECORDS, swap_records),
        (MICROAGGREGATE, microaggregate),
        (PRAM, pram),
        (SUPPRESS, suppress),
        (SAMPLE, sample),
    )
}
