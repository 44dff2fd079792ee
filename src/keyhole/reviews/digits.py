"""Shares beside their limit: as many digits as tell on which side they are, and no more."""

from __future__ import annotations

from collections.abc import Iterable

from keyhole.charts import percentage

# Beyond the limit's own digits; what is nearer yet is said in words.
MOST = 4
# Of a limit; finer than any that is set, and coarser than the rounding of a product.
FINEST = 10


def limit_percentage(limit: float) -> str:
    """Write a limit with all its digits.

    Examples
    --------
    >>> limit_percentage(0.1), limit_percentage(0.155), limit_percentage(0.0005)
    ('10%', '15.5%', '0.05%')
    """
    return f"{_exactly(100 * limit)}%"


def rate(value: float, limit: float | None = None) -> str:
    """Write a share for a column of them: in percent, with one decimal.

    Beside a limit it shows on which side it is; nothing and everything are said only where exact.

    Examples
    --------
    >>> [rate(v) for v in (0, 0.0001, 0.0213, 0.05, 0.4, 0.99996, 1)]
    ['0.0%', '<0.1%', '2.1%', '5.0%', '40.0%', '>99.9%', '100.0%']
    >>> rate(0.10003, 0.1), rate(0.1, 0.1), rate(0.3458, 0.1)
    ('10.003%', '10.0%', '34.6%')
    """
    words = f"{100 * value:.1f}%"
    if words == "0.0%" and value > 0:
        words = "<0.1%"
    elif words == "100.0%" and value < 1:
        words = ">99.9%"
    if limit is None or value == limit or words != f"{100 * limit:.1f}%":
        return words
    return percentage_beside(value, limit)


def percentage_beside(found: float, limit: float) -> str:
    """Write a share in percent so that it shows whether it is above the limit.

    Examples
    --------
    >>> [percentage_beside(f, 0.1) for f in (0.3458, 0.1, 0.10003, 0.0999999999, 0, 0.0002, 1)]
    ['35%', '10%', '10.003%', 'just below 10%', '0%', '0.02%', '100%']
    """
    return percentage_near(found, (limit,))


def percentage_near(found: float, limits: Iterable[float]) -> str:
    """Write a share in percent as everywhere, but with more digits than round across a limit.

    Examples
    --------
    >>> [percentage_near(f, (0.05, 0.3)) for f in (0.4676, 0.0503, 0.05, 0.29996, 0.9984, -0.0312)]
    ['47%', '5.03%', '5%', '29.996%', '99.84%', '−3.1%']
    >>> percentage_near(0.1551, [0.155])
    '15.51%'
    """
    if found < 0:
        return f"−{percentage(-found)}"
    words = percentage(found)
    for limit in limits:
        if not words[0].isdigit():  # less than 0.01%, more than 99.99%
            if not 1e-4 <= limit <= 1 - 1e-4 and _side(found, limit):
                beyond = "below" if found < limit else "above"
                return f"just {beyond} {limit_percentage(limit)}"
            continue
        exact, shown = _exactly(100 * limit), float(words[:-1])
        near = "." in exact and abs(found - limit) < 0.01
        if near or _side(shown, float(exact)) != _side(found, limit):
            return f"{_beside(100 * found, 100 * limit)}%"
    return words


def _beside(found: float, limit: float) -> str:
    side, exact = _side(found, limit), _exactly(limit)
    if side == 0 or found == round(found):
        return _exactly(found)
    for digits in range(1, max(1, len(exact.partition(".")[2])) + MOST + 1):
        text = f"{found:.{digits}f}"
        # Nothing and everything are said only where exact.
        if _side(float(text), float(exact)) == side and float(text) not in (0, 100):
            return text
    return f"just {'below' if side < 0 else 'above'} {exact}"


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


def _exactly(value: float) -> str:
    return f"{value:.{FINEST}f}".rstrip("0").rstrip(".")
