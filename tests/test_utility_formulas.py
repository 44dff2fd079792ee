"""Formulas do nothing but name columns."""

import pytest

from keyhole.errors import OptionError
from keyhole.utility.formulas import formula_columns

NAMES = ["income", "age", "sex"]


@pytest.mark.parametrize(
    "formula",
    [
        "income ~ I(9**9**9**9)",
        "income ~ age**9",
        "income ~ (age + sex)**12",
        "income ~ I(age**2**2)",
        "income ~ age**sex",
        "income ~ 2**2 + age",
        "income ~ (((age**5)**5)**5)**5",
    ],
)
def test_powers_are_small_and_few(formula):
    with pytest.raises(OptionError, match=r"\*\*"):
        formula_columns(formula, NAMES)


def test_small_powers_are_kept():
    assert formula_columns("income ~ (age + sex)**2 + I(age**3)", NAMES) == NAMES


def test_a_formula_has_an_end():
    with pytest.raises(OptionError, match="at most"):
        formula_columns("income ~ " + " + ".join(["age"] * 500), NAMES)
