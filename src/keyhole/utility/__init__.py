"""Utility of synthetic and protected data: combining rules, tabulations and comparisons.

The first half is for the analyst who receives implicates (`combine`, `combine_fits`,
`tabulate`), the second for the producer who compares them with the original (Hawala & Funk 3.2):
`compare_distributions`, `compare_moments`, `compare_correlations`, `compare_coefficients` and
`propensity_score`.
"""

from keyhole.utility.coefficients import Coefficients, compare_coefficients, interval_overlap
from keyhole.utility.combining import Combined, combine, combine_fits
from keyhole.utility.distributions import (
    Distributions,
    Homogeneity,
    compare_distributions,
    holm,
    homogeneity_test,
)
from keyhole.utility.information import InformationLoss, information_loss
from keyhole.utility.moments import Correlations, Moments, compare_correlations, compare_moments
from keyhole.utility.propensity import Propensity, propensity_score
from keyhole.utility.tabulation import Tabulation, tabulate

__all__ = [
    "Coefficients",
    "Combined",
    "Correlations",
    "Distributions",
    "Homogeneity",
    "InformationLoss",
    "Moments",
    "Propensity",
    "Tabulation",
    "combine",
    "combine_fits",
    "compare_coefficients",
    "compare_correlations",
    "compare_distributions",
    "compare_moments",
    "holm",
    "homogeneity_test",
    "information_loss",
    "interval_overlap",
    "propensity_score",
    "tabulate",
]
