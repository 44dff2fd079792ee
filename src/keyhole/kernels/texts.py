"""Delimited text: the different texts of each column, and which of them each record has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from keyhole.kernels.arrays import Bytes, Ints

# A column with more different texts than this is not numbered.
MOST_TEXTS = 1 << 12
_SLOT_BITS = 13
_MIX = np.uint64(0x9E3779B97F4A7C15)
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


@njit(nogil=True, cache=True)
def number_texts(
    text: Bytes,
    start: int,
    stop: int,
    delimiter: int,
    places: Ints,
    numbers: npt.NDArray[np.uint32],
    firsts: Ints,
    lengths: Ints,
    found: Ints,
) -> int:
    """Number the texts of the wanted columns of some lines in the order in which they come up.

    `places` has by column of the file its place among the wanted ones, or -1. By wanted column
    `numbers` gets the number of each record's text, `firsts` and `lengths` where each text is and
    how long, `found` how many there are: -1 if these are more than `MOST_TEXTS`, or a quotation
    mark is part of one. Returned are the records, or -1 if a line has other than one cell a column
    or a quotation mark that does not enclose one.
    """
    columns = len(places)
    keys = np.zeros((len(found), 1 << _SLOT_BITS), dtype=np.uint64)
    held = np.zeros(keys.shape, dtype=np.uint16)  # the number of the text and 1; 0: none
    mask, shift = (1 << _SLOT_BITS) - 1, np.uint64(64 - _SLOT_BITS)
    records, at = 0, start
    while at < stop:
        if text[at] in (_NEWLINE, _RETURN):  # an empty line, or the rest of an end
            at += 1
            continue
        for column in range(columns):
            quoted = at < stop and text[at] == _QUOTE
            at += quoted
            first, key = at, np.uint64(0)
            while at < stop:
                sign = text[at]
                if sign == _QUOTE:
                    if not quoted or at + 1 == stop or text[at + 1] != _QUOTE:
                        break
                    at += 1  # two stand for one that is part of the text
                    if places[column] >= 0:
                        found[places[column]] = -1
                elif not quoted and sign in (delimiter, _NEWLINE, _RETURN):
                    break
                if at - first < 8:  # a text of up to eight bytes is its own key
                    key = (key << np.uint64(8)) | np.uint64(sign)
                else:
                    key = (key ^ np.uint64(sign)) * _MIX
                at += 1
            length = at - first
            if quoted:
                if at == stop:
                    return -1
                at += 1
            ends = at == stop or text[at] in (_NEWLINE, _RETURN)
            if ends != (column == columns - 1) or not (ends or text[at] == delimiter):
                return -1
            at += 1
            place = places[column]
            if place < 0 or found[place] < 0:
                continue
            slot = np.int64(((key + np.uint64(length)) * _MIX) >> shift)
            while held[place, slot] > 0:
                number = held[place, slot] - 1
                if keys[place, slot] == key and lengths[place, number] == length:
                    same, other = 8, firsts[place, number]
                    while same < length and text[first + same] == text[other + same]:
                        same += 1
                    if same >= length:
                        break
                slot = (slot + 1) & mask
            if held[place, slot] == 0:
                number = found[place]
                if number == MOST_TEXTS:
                    found[place] = -1
                    continue
                keys[place, slot], held[place, slot] = key, number + 1
                firsts[place, number], lengths[place, number] = first, length
                found[place] += 1
            numbers[place, records] = held[place, slot] - 1
        records += 1
    return records
