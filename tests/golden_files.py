"""The files that the golden cases read: the example world, a coded survey file, real records.

Everything is made by arithmetic on row numbers, so that every machine makes the same bytes.
"""

from pathlib import Path

import polars as pl
import pyreadstat

from keyhole.cli.main import run
from keyhole.data.examples import veterans

REAL_FILE = Path(__file__).parents[2] / "shared" / "data" / "acs2024_veterans.parquet"

# By column: the codes of the coded file that mean missing.
CODES = {"age": (-9, -8), "income": (-1,), "psrcd": (-9,), "ms": ("?",), "race1": ("?",)}


def write_world(folder, *, people=15_000, seed=7):
    """Write the public, the external and the internal file of an example world."""
    world = veterans(people, seed=seed)
    for name, data in (("puf", world.sample), ("eif", world.external), ("iuf", world.truth)):
        data.frame.write_csv(folder / f"{name}.csv")
    puf = world.sample.frame
    puf.with_columns(pl.col("age") // 10 * 10).write_csv(folder / "puf-tens.csv")
    puf.drop("homstate").write_csv(folder / "puf-stateless.csv")
    puf.drop("puf_id").write_csv(folder / "puf-without-ids.csv")
    puf.with_columns(age10=pl.col("age") // 10).write_csv(folder / "puf-age10.csv")
    (folder / "scores.toml").write_text(SCORES)
    (folder / "rules.toml").write_text(RULES)
    for name, text in PLANS.items():
        (folder / f"{name}.toml").write_text(text)


def write_coded(folder):
    """Write a survey file with labels, missing codes and weights: for SPSS, for Stata, as CSV."""
    sample = veterans(12_000, seed=11).sample
    row = pl.int_range(pl.len())
    frame = sample.frame.with_columns(
        *(_with_codes(name, codes, salt) for salt, (name, codes) in enumerate(CODES.items())),
        weight=pl.col("weight") + (row % 4) * 0.25,
    )
    frame.write_csv(folder / "coded.csv")
    labels = {v.name: dict(v.value_labels) for v in sample.variables if v.value_labels}
    about = {v.name: v.label for v in sample.variables}
    pyreadstat.write_sav(
        frame, str(folder / "coded.sav"), column_labels=about, variable_value_labels=labels,
        missing_ranges={name: list(codes) for name, codes in CODES.items()},
    )  # fmt: skip
    numeric = {n: v for n, v in labels.items() if frame.schema[n].is_integer()}
    pyreadstat.write_dta(
        frame, str(folder / "coded.dta"), column_labels=about, variable_value_labels=numeric
    )


def _with_codes(name, codes, salt):
    place = (pl.int_range(pl.len()) * 7919 + salt * 104_729) % 97
    column = pl.col(name)
    for at, code in enumerate(codes):
        column = pl.when(place % 29 == 3 * at + 1).then(pl.lit(code)).otherwise(column)
    return column.alias(name)


def write_real(folder):
    """Write every twentieth real record, with codes where values do not apply."""
    real = pl.read_parquet(REAL_FILE).gather_every(20)
    real.with_columns(
        pl.col("WKHP", "POVPIP").fill_null(-1), pl.col("ENG", "COW").fill_null(-9)
    ).write_parquet(folder / "acs.parquet")


def write_review(folder, *, people=6_000):
    """Write a review with every section, and what it reads."""
    world = veterans(people, seed=13)
    frame = world.sample.frame.with_columns(
        _with_codes("age", (-9, -8), 0), _with_codes("ms", ("?",), 1)
    )
    frame.write_csv(folder / "people.csv")
    world.external.frame.write_csv(folder / "external.csv")
    world.truth.frame.write_csv(folder / "truth.csv")
    frame.drop("homstate").write_csv(folder / "stateless.csv")
    (folder / "review.toml").write_text(REVIEW)
    store = str(folder / "made.db")
    assert run(["environment", "init", "--store", store, "--example", "--who", "nobody"]) == 0
    exported = str(folder / "environment.json")
    assert run(["environment", "export", "--store", store, "--out", exported]) == 0


SCORES = """\
sex = { exact = 5 }
age = { absolute = [[0, 5], [2, 3]] }
race1 = { exact = 4 }
homstate = { exact = 5 }
"""

RULES = """\
[rules]
widowed = "ms == 'W' => age >= 25"
income = "income >= 0"
"""

PLANS = {
    "plan-coarser": """\
[[step]]
method = "drop"
columns = ["puf_id", "household", "area"]

[[step]]
method = "recode"
column = "ms"
map = { W = "F", D = "F", S = "F" }
keep_rest = true

[[step]]
method = "recode"
column = "age"
cuts = [25, 35, 45, 55, 65, 75, 85]
output = "label"

[[step]]
method = "top-code"
column = "income"
share = 0.02
replace = "mean"

[[step]]
method = "bottom-code"
column = "income"
value = 2000

[[step]]
method = "round"
column = "income"
base = 500

[[step]]
method = "generalise"
column = "race1"
groups = { white = ["B"], other = ["3", "8", "9", "A"], unknown = ["C", "D"] }

[[step]]
method = "geographic-threshold"
column = "homstate"
threshold = 300
population = "weight"
ordered = true

[[step]]
method = "suppress"
keys = ["sex", "ag8r", "race1", "ms", "homstate"]
k = 3
""",
    "plan-random": """\
[[step]]
method = "drop"
columns = ["puf_id", "household", "area", "ag8r", "period"]

[[step]]
method = "noise"
columns = ["income"]
size = 0.1

[[step]]
method = "rank-swap"
columns = ["age"]
share = 0.05

[[step]]
method = "swap-records"
area = ["homstate"]
match = ["sex", "psrcd"]
keys = ["sex", "race1", "ms", "homstate"]
cutoff = 2
share = 0.05

[[step]]
method = "pram"
column = "source"
p = 0.9
invariant = true

[[step]]
method = "round"
column = "weight"
base = 2
how = "random"

[[step]]
method = "sample"
fraction = 0.8
by = ["sex"]
weight = "weight"
""",
    "plan-grouped": """\
keep_order = true

[[step]]
method = "microaggregate"
columns = ["age", "income"]
k = 4
by = ["sex"]

[[step]]
method = "pram"
column = "means"
p = 0.85
spread = "frequent"

[[step]]
method = "noise"
columns = ["income"]
size = 0.2
kind = "multiplicative"

[[step]]
method = "suppress"
keys = ["sex", "ag8r", "race1", "ms"]
limit = 0.05
cutoff = 3
missing = "own"
never = ["sex"]
""",
    "plan-coded": """\
[[step]]
method = "top-code"
column = "age"
value = 84
replace = "median"

[[step]]
method = "recode"
column = "psrcd"
map = { 1 = 2, 2 = 2 }
keep_rest = true

[[step]]
method = "microaggregate"
columns = ["income"]
k = 3
replace = "median"

[[step]]
method = "suppress"
keys = ["sex", "ag8r", "race1", "ms"]
k = 2
importance = { ms = 2 }
""",
}

REVIEW = """\
title = "Made-up veterans"
keys = ["sex", "ag8r", "ms", "race1", "homstate"]

[release]
product = "protection"
to = "anybody"
purpose = "studies of health"
version = "1"
contact = "the office"
conditions = ["No attempt to find a person."]
notes = ["Ages are as of 2024."]
board = ["The disclosure officer"]

[data]
file = "people.csv"
name = "people"
missing_codes = { age = [-9, -8], ms = ["?"] }

[data.roles]
puf_id = "identifier"
household = "household"
weight = "weight"

[data.kinds]
age = "measure"
ag8r = "category"

[data.labels]
ms = "Marital status"

[screen]
year = 2024
sure = 0.4
nearly = 0.85

[exposure]
cutoff = 3
by = "psrcd"
named_groups = ["1"]
limit = 0.10
approximation = "sdcmicro"

[environment]
store = "environment.json"
scenarios = ["nosy neighbour", "commercial database"]

[scenario.editor]
preset = "journalist"
p_attempt = [0.2, 0.6]
reasons = ["two papers asked", "neither has staff for it"]
public = { resources = 7 }

[uniques]
max_size = 3
convention = "sdcmicro"
availability = { ms = 2.0 }
identifiability = { race1 = 0.5 }

[drivers]
level = 0.9

[selection]
methods = ["stepwise", "forward"]
keep = ["sex"]
candidates = ["ag8r", "ms", "race1", "homstate", "psx|psrcd", "pow"]
limit = 0.10
drop_limit = 0.05
criterion = "difference"
cr_weight = 0.4
skip_dependent = true
by = "sex"
values = { race1 = 2 }
limits = [0.2]
cutoffs = [5]

[frontier]
limit = 0.15

[study]
eif = "external.csv"
iuf = "truth.csv"
puf_id = "puf_id"
eif_id = "eif_id"
link = ["age", "ms", "race1", "homstate", "psx"]
numeric = ["age"]
metrics = ["unicity", "taxicab", "euclidean", "adhoc"]
alpha = 0.6
threshold = "derived"
cuts = "each"
orders = "highest"
rank_cap = 4
strata = ["sex"]
permutations = 20
seed = 3
limit = 0.10
missing_codes = { age = [-9, -8], ms = ["?"] }

[study.scores]
age = { absolute = [[0, 5], [2, 3]] }
ms = { exact = 4 }
race1 = { exact = 4 }
homstate = { exact = 5 }
psx = { exact = 3 }

[study.candidates]
"without the state" = "stateless.csv"

[protection]
formula = "income ~ age + sex"
targets = ["sex", "age", "ag8r", "ms", "race1", "homstate"]
missing = "own"
limit = 0.2
seed = 314159265358979

[[protection.step]]
method = "drop"
columns = ["puf_id", "household", "area"]

[[protection.step]]
method = "top-code"
column = "age"
value = 84

[[protection.step]]
method = "noise"
columns = ["income"]
size = 0.05

[[protection.step]]
method = "suppress"
keys = ["sex", "ag8r", "ms", "race1", "homstate"]
limit = 0.2
missing = "own"

[synthesis]
keys = ["sex", "age", "ms", "race1"]
targets = ["age", "ms"]
strata = ["sex"]
implicates = 2
decoys = 0.5
cutoff = 3
drop = ["household", "ag8r", "area"]
predictors = { age = ["psx", "income", "ms"] }
donors = "folds"
folds = 3
match = "k-closest"
neighbours = 4
cycles = 1
knots = 4
dimensions = 2
ridge = 2
bootstrap = "all"
donor_model = "refit"
models = { age = "quantile" }
change = 3
relations = 0.1
crosses = [["sex", "ms"]]
formula = "income ~ age + sex"
self_match = 200
seed = 271828182845904

[synthesis.rules]
widowed = "ms == 'W' => age >= 25"
"""
