"""Tables that may be published: frequency and magnitude tables, protected and audited.

Unsafe cells are found by sensitivity rules (`cells`) and suppressed with the cheapest set of others
that keeps an outsider uncertain about them (`suppression`), or the table is rounded so that its
sums hold (`rounding`). What an outsider can still derive is worked out cell by cell
(`attackers`).
"""

from __future__ import annotations

from keyhole.protection.tables.attackers import SuppressionProblem
from keyhole.protection.tables.cells import SensitivityRules, Unsafe, find_unsafe
from keyhole.protection.tables.publication import table
from keyhole.protection.tables.result import ProtectedTable, TableAudit
from keyhole.protection.tables.suppression import Pattern, find_pattern

__all__ = [
    "Pattern",
    "ProtectedTable",
    "SensitivityRules",
    "SuppressionProblem",
    "TableAudit",
    "Unsafe",
    "find_pattern",
    "find_unsafe",
    "table",
]
