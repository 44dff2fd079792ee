"""Extras of the package: what each is for, and what to say where one is not installed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

from keyhole.errors import OptionError

EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "charts": ("Charts need Altair and vl-convert.", ("altair", "vl_convert")),
    "excel": ("Excel workbooks need fastexcel and XlsxWriter.", ("fastexcel", "xlsxwriter")),
    "models": ("Regressions (formula) need statsmodels.", ("statsmodels", "pandas")),
    "postgres": ("A PostgreSQL store needs psycopg and SQLAlchemy.", ("psycopg", "sqlalchemy")),
    "spark": ("The spark engine needs PySpark and sqlglot.", ("pyspark", "sqlglot")),
    "statistical": ("SAS, SPSS and Stata files need pyreadstat.", ("pyreadstat",)),
    "stores": (
        "Stores of environments need SQLAlchemy; an exported environment (.json) does not.",
        ("sqlalchemy",),
    ),
    "trees": ("Models by trees need scikit-learn.", ("sklearn",)),
    "workbench": (
        "The workbench needs FastAPI, Uvicorn, tomlkit, SQLAlchemy and charts.",
        ("fastapi", "uvicorn", "python_multipart", "tomlkit", "sqlalchemy", "altair", "vl_convert"),
    ),
}
"""By extra, the sentence that says what it is for, and the modules that it brings."""

Work = TypeVar("Work", bound=Callable[..., Any])


def extra_problems(name: str) -> list[str]:
    """Say how an extra is installed, if it is not."""
    words, modules = EXTRAS[name]
    if all(find_spec(module) is not None for module in modules):
        return []
    return [f"{words} Run: pip install 'keyhole[{name}]'"]


def require_extra(name: str) -> None:
    """Raise how an extra is installed, if it is not."""
    if problems := extra_problems(name):
        raise OptionError(problems)


def needing(name: str) -> Callable[[Work], Work]:
    """Have a function say how its extra is installed, before it imports anything of it."""

    def wrap(work: Work) -> Work:
        @functools.wraps(work)
        def checked(*args: Any, **kwargs: Any) -> Any:
            require_extra(name)
            return work(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return wrap
