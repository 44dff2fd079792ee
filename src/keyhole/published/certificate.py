"""The certificate: published figures beside those that this machine computes.

Three things are rerun on the code that the verbs use: the selections that Lin & Garin printed,
the ten-record example of the SDC Practice Guide, and counts of a random table against counts made
the slow, obvious way.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from keyhole.results import Result, Table
from keyhole.reviews.store import versions

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Certificate", "Comparison", "selftest"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One published figure beside ours."""

    example: str
    what: str
    published: str
    ours: str
    agrees: bool


@dataclass(frozen=True, slots=True, repr=False)
class Certificate(Result):
    """Every published figure that was rerun, beside ours, and what it was run with."""

    rows: tuple[Comparison, ...]
    versions: dict[str, str]
    machine: str

    @property
    def passed(self) -> bool:
        """Whether every figure agrees."""
        return bool(self.rows) and all(row.agrees for row in self.rows)

    @property
    def sha256(self) -> str:
        """The hash of the figures alone: the same on every machine that computes the same."""
        lines = ("\t".join(map(str, asdict(row).values())) for row in self.rows)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain values."""
        return {
            "passed": self.passed,
            "rows": [asdict(row) for row in self.rows],
            "versions": dict(self.versions),
            "machine": self.machine,
            "sha256": self.sha256,
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a figure."""
        import polars as pl

        return pl.DataFrame([asdict(row) for row in self.rows])

    def tables(self) -> list[Table]:
        """Return the figures by example, and whether all agree."""
        tables = [
            Table(
                example,
                ["", "expected", "ours", "agrees"],
                [
                    [r.what, r.published, r.ours, "yes" if r.agrees else "NO"]
                    for r in self.rows
                    if r.example == example
                ],
            )
            for example in dict.fromkeys(row.example for row in self.rows)
        ]
        return [*tables, self._ending()]

    def _ending(self) -> Table:
        wrong = sum(not row.agrees for row in self.rows)
        end = f"all {len(self.rows)} figures agree"
        if not self.passed:
            end = f"{wrong} of {len(self.rows)} differ: do not rely on this installation"
        made = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        rows = [["result", end], ["figures", f"SHA-256 {self.sha256}"], ["machine", self.machine]]
        notes = [
            "Printed ratios have three decimals; α, a quotient of two, agrees within 0.005.",
            f"Made with {made}.",
        ]
        return Table("Certificate", ["", ""], rows, notes)


Example = Callable[[], Iterator[tuple[str, str, str, bool]]]
"""Yields what was compared, the published figure, ours, and whether they agree."""


def selftest() -> Certificate:
    """Rerun the published examples here, for a certificate.

    Each figure stands beside the published one. The exit code of the command is 1 if any differs.

    Returns
    -------
    Certificate
        With `passed`, one row a figure, the versions and a hash of the figures.

    Notes
    -----
    Lin & Garin, "Methods of Selecting Variables in Data Disclosure": forward at 30%, backward at
    5%, stepwise at 55% and 35%. Benschop, Machingauta & Welch, "Statistical Disclosure Control
    for Microdata: A Practice Guide": f, F, individual risk, SUDA and DIS-SUDA of ten records.

    Examples
    --------
    >>> selftest().passed
    True
    """
    from keyhole.published.examples import EXAMPLES

    rows = [row for name, run in EXAMPLES.items() for row in _compared(name, run)]
    machine = f"{platform.system()} {platform.machine()}"
    return Certificate(tuple(rows), versions(), machine)


def _compared(example: str, run: Example) -> list[Comparison]:
    """Run an example to its end; if it cannot be run, that is what the certificate says."""
    rows: list[Comparison] = []
    try:
        rows.extend(Comparison(example, *figures) for figures in run())
    except Exception as error:
        reason = f"stopped: {type(error).__name__}"
        rows.append(Comparison(example, "the run", "to its end", reason, False))
    return rows
