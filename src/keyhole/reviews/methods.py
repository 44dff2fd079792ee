"""How the figures of a report are made, each with who wrote the method down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhole.reviews.settings import Review
from keyhole.selection.result import ASSUMPTION

_LIN_GARIN = (
    "Lin, C. C. & Garin, T. Methods of Selecting Variables in Data Disclosure. "
    "Department of Veterans Affairs, Washington."
)
_EL_EMAM = (
    "El Emam, K. (2011). Methods for the de-identification of electronic health records for "
    "genomic research. Genome Medicine 3, 25."
)
_BENEDETTI = (
    "Benedetti, R. & Franconi, L. (1998). Statistical and technological solutions for "
    "controlled data dissemination. New Techniques and Technologies for Statistics."
)
_POLETTINI = (
    "Franconi, L. & Polettini, S. (2004). Individual risk estimation in μ-Argus: a review. "
    "Privacy in Statistical Databases."
)
_SKINNER = (
    "Skinner, C. J. & Elliot, M. J. (2002). A measure of disclosure risk for microdata. "
    "Journal of the Royal Statistical Society B 64, 855-867."
)
_TEMPL = (
    "Templ, M., Kowarik, A. & Meindl, B. (2015). Statistical disclosure control for micro-data "
    "using the R package sdcMicro. Journal of Statistical Software 67(4)."
)
_MANNING = (
    "Elliot, M. J., Manning, A. M. & Ford, R. W. (2002). A computational algorithm for handling "
    "the special uniques problem. International Journal of Uncertainty, Fuzziness and "
    "Knowledge-Based Systems 10, 493-509."
)
_FIRTH = (
    "Firth, D. (1993). Bias reduction of maximum likelihood estimates. Biometrika 80, 27-38. "
    "Woolf, B. (1955). On estimating the relation between blood group and disease. Annals of "
    "Human Genetics 19, 251-253."
)
_HAWALA = "Hawala, S. & Funk, J. Model Based Disclosure Avoidance for Data on Veterans."
_MAXIMAL = (
    "Burdick, D., Calimlim, M. & Gehrke, J. (2001). MAFIA: a maximal frequent itemset algorithm "
    "for transactional databases. ICDE. Gouda, K. & Zaki, M. J. (2005). GenMax: an efficient "
    "algorithm for mining maximal frequent itemsets. Data Mining and Knowledge Discovery 11."
)
_SINGER = (
    "Singer, P. & Dajani, A. (2020). Re-Identification Primer using Four Metrics – Updated. "
    "Working paper CED-DA-FY20-001, U.S. Census Bureau."
)
_REITER = (
    "Reiter, J. P. (2003). Inference for partially synthetic, public use microdata sets. Survey "
    "Methodology 29, 181-188."
)
_STUART = (
    "Stuart, A. (1955). A test for homogeneity of the marginal distributions in a two-way "
    "classification. Biometrika 42, 412-416. Maxwell, A. E. (1970). British Journal of "
    "Psychiatry 116, 651-655. Holm, S. (1979). Scandinavian Journal of Statistics 6, 65-70."
)
_SNOKE = (
    "Snoke, J., Raab, G. M., Nowok, B., Dibben, C. & Slavkovic, A. (2018). General and specific "
    "utility measures for synthetic data. Journal of the Royal Statistical Society A 181, 663-688."
)
_KOOIMAN = (
    "Kooiman, P., Willenborg, L. & Gouweleeuw, J. (1998). PRAM: a method for disclosure "
    "limitation of microdata. Statistics Netherlands. Yancey, W. E., Winkler, W. E. & Creecy, "
    "R. H. (2002). Disclosure risk assessment in perturbative microdata protection. Inference "
    "Control in Statistical Databases."
)
_SAFE_HARBOR = (
    "Health Insurance Portability and Accountability Act, Privacy Rule, 45 CFR 164.514(b)(2)(i)."
)
_HUNDEPOOL = "Hundepool, A. et al. (2012). Statistical Disclosure Control. Wiley."
_FISCHETTI = (
    "Fischetti, M. & Salazar-González, J. J. (2000). Models and algorithms for optimizing cell "
    "suppression in tabular data with linear constraints. Journal of the American Statistical "
    "Association 95, 916-928."
)
_ELLIOT = (
    "Elliot, M., Mackey, E. & Purdam, K. (2011). Formalizing the Selection of Key Variables in "
    "Disclosure Risk Scenarios. World Statistics Congress of the ISI, Dublin."
)
_DALE = (
    "Elliot, M. & Dale, A. (1999). Scenarios of attack: a data intruder’s perspective on "
    "statistical disclosure risk. Netherlands Official Statistics 14, 6-10."
)
_CLOPPER = (
    "Clopper, C. J. & Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated "
    "in the case of the binomial. Biometrika 26, 404-413."
)


@dataclass(frozen=True, slots=True)
class CitedMethod:
    """A method in a sentence or two, and where it is from."""

    name: str
    text: str
    sources: tuple[str, ...] = ()


_METHODS: Mapping[str, CitedMethod] = {
    "screen": CitedMethod(
        "Screening",
        "Columns are looked through for direct identifiers by name, label and contents, and for "
        "what Safe Harbor lists; for numbers that tie releases together; and for variables that "
        "determine one another. What was not recognised may be there all the same.",
        (_SAFE_HARBOR,),
    ),
    "exposure": CitedMethod(
        "Risk proportion and cell ratio",
        "A cell is a distinct pattern of the key and f the number of its records. RP(c) is the "
        "share of records with f < c; CR is the number of cells over the number of records, the "
        "mean of 1/f.",
        (_LIN_GARIN, _EL_EMAM),
    ),
    "population": CitedMethod(
        "Risk in the population",
        "F, the size of a record’s cell in the population, is estimated by the sum of the "
        "weights in the cell (or f over the sampling fraction). The individual risk is the mean "
        "of 1/F given f under a negative binomial distribution; the global risk is its mean over "
        "the records. The probability that a unique match is right comes from data intrusion "
        "simulation: n₁π / (n₁π + 2n₂(1 − π)), n₁ and n₂ the cells of size one and two.",
        (_BENEDETTI, _POLETTINI, _SKINNER),
    ),
    "household": CitedMethod(
        "Household risk",
        "The risk that any member of a household is re-identified is 1 − Π(1 − r) over the "
        "members’ individual risks r, taken as independent.",
        (_TEMPL,),
    ),
    "scenarios": CitedMethod(
        "Scenarios",
        "A scenario says who would attack the file, why and with what, in eleven points. Its key "
        "is what the databases and public sources it names have in common with the file, at the "
        "finest detail at which both can be coded alike; the file is recoded to that detail "
        "before it is measured. p(identification) is p(identification | attempt) · p(attempt); "
        "p(attempt) is 1 where nobody argues that it is less.",
        (_ELLIOT, _DALE),
    ),
    "uniques": CitedMethod(
        "Minimal uniques",
        "A minimal unique is a set of key variables on which a record is alone while on no "
        "smaller part of the set it is. The fewer variables it takes, and the more such sets a "
        "record has, the higher its score (SUDA). A missing value matches nothing. The level of a "
        "record says how little it takes to single it out: the number of variables in its "
        "smallest minimal unique. Up to two is high, three medium, more low; a record that is at "
        "risk but not alone is low too. A variable with a declared weight w counts as 1 / w.",
        (_MANNING, _HAWALA),
    ),
    "drivers": CitedMethod(
        "Drivers",
        "Each level of a variable is held against the rest of it: the odds ratio of lying in a "
        "small cell, by itself with Woolf’s interval (a half added where a count is 0), and with "
        "the other variables held equal from a logistic model with Firth’s penalty. Merges and "
        "subpopulations are counted from the cells they change.",
        (_LIN_GARIN, _FIRTH),
    ),
    "fix": CitedMethod(
        "Cheapest fix",
        "Each key variable in turn is left out, banded, top- or bottom-coded, or has its rare "
        "categories pooled. Of the changes that meet the limit the one that costs least CR is "
        "named; if none meets it, the one that comes nearest.",
    ),
    "selection": CitedMethod(
        "Selection of variables",
        "Forward adds the variable with the smallest RP/CR while RP stays within the limit; "
        "backward removes the variable that leaves the smallest RP/CR until RP would fall below "
        "it; stepwise adds, and removes from the drop limit on. α compares RP/CR after a step "
        "with that before it. Where the published rule stops above the limit, the same rule goes "
        "on until RP is within it.",
        (_LIN_GARIN,),
    ),
    "frontier": CitedMethod(
        "Frontier",
        "RP only grows as variables are added. So all sets within the limit to which no variable "
        "can be added are found exactly, by a search that leaves out what lies above a set beyond "
        "the limit or inside a set already found.",
        (_MAXIMAL,),
    ),
    "study": CitedMethod(
        "Re-identification study",
        "The public file (PUF) is linked with a file that an intruder could have (EIF), and the "
        "pairs suspected are compared with the internal file (IUF), which knows who is who. By "
        "unicity a pair is suspected where both records are alone with the same values of some "
        "set of variables; by taxicab, euclidean and adhoc where the score of the pair passes a "
        "threshold, in the ranks that hold few pairs of a PUF record. All rates are by PUF "
        "record; their intervals are exact. The baseline deals the ids out at random and keeps "
        "the pairs.",
        (_SINGER, _CLOPPER),
    ),
    "protection": CitedMethod(
        "Protection and its price",
        "The steps of the plan are carried out one after the other. Information lost is the "
        "entropy of a variable that its protected version no longer tells, as a share, averaged "
        "over the variables; IL1s the mean distance of numbers in standard deviations over √2. "
        "The original is told in the protected file’s categories before distributions are "
        "compared (Stuart-Maxwell, pMSE), so that these show what was done beyond coarser "
        "categories.",
        (_HUNDEPOOL, _KOOIMAN, _STUART, _SNOKE),
    ),
    "synthesis": CitedMethod(
        "Partial synthesis",
        "Values of the records at risk are replaced by those of donors that a semi-parametric "
        "model, fitted to a bootstrap of the subgroup, predicts to be alike; anew for each "
        "implicate. Distributions before and after are compared by the Stuart-Maxwell test, its "
        "p adjusted after Holm; the ratio of propensity scores is near 1 where a model cannot "
        "tell original and synthetic. True exposure is the share of the uniques that are still "
        "alone with their own key. In the mean or mode attack an intruder takes the mean of a "
        "number over the implicates and the mode of a category. Self-match links protected "
        "records with the original file. Analysts combine their results by Reiter’s rules.",
        (_HAWALA, _REITER, _STUART, _SNOKE),
    ),
    "table": CitedMethod(
        "Protected tables",
        "A cell is unsafe that has too few contributors, or in which few of them have most of the "
        "amount. Unsafe cells are suppressed with the cheapest set of others for which no interval "
        "that an outsider can derive from the rest is narrower than asked; or all cells are "
        "rounded so that rows and columns still add up. The audit solves for every such interval.",
        (_HUNDEPOOL, _FISCHETTI),
    ),
}


def methods_used(results: Mapping[str, Any]) -> list[CitedMethod]:
    """Return the methods behind the results of a review, in the order of the work."""
    population = results["exposure"].population
    used = {
        "screen": "screen" in results,
        "exposure": True,
        "population": population is not None,
        "household": population is not None and population.of_households,
        "scenarios": "scenarios" in results,
        "uniques": "uniques" in results,
        "drivers": "drivers" in results,
        "fix": "fix" in results,
        "selection": any(name.startswith("selection") for name in results),
        "frontier": "frontier" in results,
        "study": any(name.startswith("study") for name in results),
        "protection": "protection" in results,
        "synthesis": "synthesis" in results,
        "table": "table" in results,
    }
    return [method for name, method in _METHODS.items() if used[name]]


def sources(*names: str) -> list[str]:
    """Return where methods are from, each source once."""
    return list(dict.fromkeys(source for name in names for source in _METHODS[name].sources))


def assumptions(review: Review, results: Mapping[str, Any]) -> list[str]:
    """Return what must hold for the figures to mean what they seem to."""
    missing = {
        "own": "A missing key is a category of its own: an intruder can see that it is missing.",
        "wildcard": "A missing key matches every value, both ways. This is the less cautious "
        "reading: cells only grow.",
        "drop": "Records with a missing key are left out of the count; RP and CR are still taken "
        "over all records.",
    }
    found = [
        ASSUMPTION,
        f"An intruder knows the {len(review.keys)} keys {_known(review)}, and "
        f"nothing else of it. Error, age and other codings in the intruder’s data make matching "
        f"harder; knowledge of further variables makes it easier.",
        missing[review.exposure.missing],
    ]
    if results["exposure"].population is not None:
        found.append(_population(review))
    if review.selection is not None:
        found.append(
            "Selection and frontier count a missing value as a category of its own, and bound the "
            "risk of the file as a whole: single records may be far more exposed than RP says."
        )
    found.append(
        "The review describes this file at one point in time. It is not a proof of safety: other "
        "releases, and an intruder who knows a person well, are outside of it."
    )
    return found


def _known(review: Review) -> str:
    chosen = None if review.scenarios is None else review.scenarios.chosen
    if chosen is None:
        return "exactly as they stand in the file"
    return f"of the file at the detail of scenario {chosen!r}, exactly"


def _population(review: Review) -> str:
    if review.exposure.weight is not None:
        return "The weights say how many people of the population each record stands for."
    if review.exposure.fraction is not None:
        return "Everybody had the same chance to be in the file, the sampling fraction."
    return "The file is taken as the whole population: neither weights nor a fraction are given."
