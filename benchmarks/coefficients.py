"""How many coefficients of `coefficients.toml` a release of implicates keeps.

    python -m benchmarks.coefficients ORIGINAL.parquet RELEASE/implicate-*.parquet

Plain Polars and NumPy that share nothing with keyhole: ordinary least squares in each file, and
Reiter's rules for partially synthetic data. A coefficient is kept if the original's estimate is
in the combined 95 % interval.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import t as student

MODELS = Path(__file__).with_name("coefficients.toml")


def estimates(frame: pl.DataFrame) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the names, the coefficients and their variances, without intercepts."""
    asked = tomllib.loads(MODELS.read_text("utf-8"))
    terms = [
        pl.sql_expr(text).cast(pl.Float64).alias(name) for name, text in asked["terms"].items()
    ]
    names, found, variances = [], [], []
    for name, model in asked["models"].items():
        some = frame.filter(pl.sql_expr(model["where"])) if "where" in model else frame
        x = np.column_stack([np.ones(some.height), some.select(terms).to_numpy()])
        y = some[model["outcome"]].cast(pl.Float64).to_numpy()
        inverse = np.linalg.inv(x.T @ x)
        b = inverse @ (x.T @ y)
        s2 = float(((y - x @ b) ** 2).sum()) / (len(y) - x.shape[1])
        names += [f"{name}: {term}" for term in asked["terms"]]
        found.append(b[1:])
        variances.append(s2 * np.diag(inverse)[1:])
    return names, np.concatenate(found), np.concatenate(variances)


def compare(original: pl.DataFrame, implicates: list[pl.DataFrame]) -> pl.DataFrame:
    """Return a row a coefficient: before, combined with its interval, and whether it is kept."""
    names, before, variance = estimates(original)
    drawn = [estimates(one)[1:] for one in implicates]
    q, v = (np.stack([one[part] for one in drawn]) for part in (0, 1))
    between = q.var(axis=0, ddof=1) / len(drawn)
    total = v.mean(axis=0) + between
    df = (len(drawn) - 1) * (1 + v.mean(axis=0) / between) ** 2
    half = student.ppf(0.975, df) * np.sqrt(total)
    after = q.mean(axis=0)
    return pl.DataFrame({"coefficient": names, "original": before, "combined": after}).with_columns(
        low=after - half,
        high=after + half,
        off=(after - before) / np.sqrt(variance),  # in standard errors of the original
        relative=np.abs(after - before) / np.abs(before),
        kept=np.abs(after - before) <= half,
    )


if __name__ == "__main__":
    table = compare(pl.read_parquet(sys.argv[1]), [pl.read_parquet(path) for path in sys.argv[2:]])
    with pl.Config(tbl_rows=len(table), tbl_cols=-1, tbl_width_chars=140):
        print(table)
    print(f"{table['kept'].sum()} of {len(table)} within the combined interval")
