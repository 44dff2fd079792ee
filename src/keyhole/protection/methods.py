"""The protections there are, by the name they have in a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from keyhole.protection.areas import GEOGRAPHIC_THRESHOLD, merge_areas
from keyhole.protection.dropping import DROP, drop
from keyhole.protection.extremes import BOTTOM_CODE, TOP_CODE, bottom_code, top_code
from keyhole.protection.generalising import GENERALISE, generalise
from keyhole.protection.microaggregation import MICROAGGREGATE, microaggregate
from keyhole.protection.noise import NOISE, add_noise
from keyhole.protection.options import Method
from keyhole.protection.pram import PRAM, pram
from keyhole.protection.protected import Protected
from keyhole.protection.rank_swapping import RANK_SWAP, rank_swap
from keyhole.protection.recoding import RECODE, recode
from keyhole.protection.record_swapping import SWAP_RECORDS, swap_records
from keyhole.protection.rounding import ROUND, round_to_base
from keyhole.protection.sampling import SAMPLE, sample
from keyhole.protection.suppression import SUPPRESS, suppress

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
