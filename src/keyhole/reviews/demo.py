"""The demonstration: a review of the example world, from its file to its report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

from keyhole.core.files import sweep
from keyhole.core.options import Problem, bind, documented
from keyhole.core.shared import FolderOption, ForceOption
from keyhole.data.examples import KEYS, LINK, veterans
from keyhole.data.examples.codebook import CODEBOOK
from keyhole.environment.example import example_environment
from keyhole.environment.exchange import write_environment
from keyhole.errors import OptionError
from keyhole.reviews.folders import own_folder
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.runner import review
from keyhole.reviews.store import ResultStore

PEOPLE = 200_000
DATA, REVIEW, RESULTS = "veterans.csv", "review.toml", "review"
EXTERNAL, TRUTH, ENVIRONMENT = "external.csv", "truth.csv", "environment.json"

# Linked within sex; ag8r is only a coarser age.
NOT_LINKED = ("sex", "ag8r")

_REVIEW = """\
# The review of a made-up file of veterans. Change it and run it again, in this folder:
#   keyhole review {review} --out {results}
# Only what a change touches is computed anew.

title = "Public use file of veterans (made up)"

# What an intruder could know of a veteran.
keys = ["sex", "ag8r", "ms", "race1", "ethnic", "homstate", "psrcd"]

# What is to go out and to whom: the first chapter of the report, and the public note beside it.
[release]
product = "protection"    # or "selection", "synthesis", "file"
to = "anybody"
purpose = "studies of veterans' health and income"
version = "1"
contact = "the office that made the file up"
conditions = ["No attempt to find a person in the file."]
board = ["The head of the office", "The disclosure officer"]

[data]
file = "{data}"

[data.roles]
puf_id = "identifier"
household = "household"
weight = "weight"

[data.labels]
{labels}

# What must be seen to before anything is measured: identifiers, Safe Harbor, dependences.
[screen]
year = 2024

[exposure]
cutoff = 3      # records in cells smaller than this are at risk
limit = 0.10    # the highest share of them that is acceptable

# Who could know what, from a made-up catalogue of forms and public sources; see the chapter
# Scenarios. To use one of these keys everywhere: keys = "scenario:veterans association"
[environment]
store = "{environment}"
scenarios = ["nosy neighbour", "commercial database", "veterans association"]

[uniques]
max_size = 4    # singled out by at most so many variables

[selection]
method = ["forward", "backward", "stepwise"]    # the first makes the proposal
keep = ["sex", "ag8r"]
candidates = [
    {candidates}
]
limit = 0.10
skip_dependent = true    # psrcd is only a coarser psx

[frontier]
seconds = 10

# An attack with a file that an intruder could have: other people's numbers, a year later, with
# errors and gaps. Half of the veterans are in it, and truth.csv knows who is who.
[study]
eif = "{external}"
iuf = "{truth}"
puf_id = "puf_id"
eif_id = "eif_id"
# or the key of a scenario: link = "scenario:veterans association"
link = [{link}]
numeric = ["age", "income"]
strata = ["sex"]
metrics = ["unicity", "taxicab"]    # the first leads
limit = 0.10    # of those suspected, the highest share truly found that is acceptable

# The classical way: coarser columns first, then single values taken away where that is not enough.
# The ledger tells after each step the risk that is left and what the analyst has lost. A step is
# undone by leaving it out. The protected file is in {results}/protection/release.
[protection]
formula = "income ~ age + sex"
targets = ["sex", "age", "ag8r", "ms", "race1", "ethnic", "homstate", "psrcd"]

[[protection.step]]
method = "drop"
columns = ["puf_id", "household", "area"]    # they name people, or would give the state away

[[protection.step]]
method = "top-code"
column = "age"
value = 84

[[protection.step]]
method = "recode"
column = "ms"
map = {{ W = "formerly married", D = "formerly married", S = "formerly married" }}
keep_rest = true

[[protection.step]]
method = "suppress"
keys = ["sex", "ag8r", "ms", "race1", "ethnic", "homstate", "psrcd"]
limit = 0.10
never = ["sex", "ag8r", "psrcd"]    # age and psx, which stay, would tell them

# If single years of age must go out all the same: what makes records stand out is replaced by
# values of others like them. The versions to be released are in {results}/synthesis/release.
[synthesis]
keys = ["sex", "age", "ms", "race1", "psx"]
targets = ["age", "ms", "race1"]
strata = ["sex"]    # a woman's values come from women
implicates = 3
decoys = 0.5        # for two records at risk a common one changes too
formula = "income ~ age + sex"    # what an analyst may want to know
drop = ["household", "ag8r", "area"]    # who lives together; what would tell age and state before
seed = 271828       # a secret: choose your own, and tell nobody

[synthesis.rules]
widowed = "ms == 'W' => age >= 25"
"""


@documented
def demo(
    out: FolderOption,
    *,
    force: ForceOption = False,
    progress: Callable[[str], None] | None = None,
    people: int = PEOPLE,
) -> ReviewResult:
    """See keyhole at work on a made-up file of veterans.

    The folder gets the files, their review file and the results.

    Returns
    -------
    ReviewResult
        As of `keyhole.review`; its summary says where the report is and what to do next.
    """
    bind(demo, locals()).require()
    folder = Path(out)
    with own_folder(folder, partial(_check, folder, force)):
        if progress is not None:
            progress("making a population of veterans")
        write_world(folder, people, force=force)
        found = review(folder / REVIEW, out=folder / RESULTS, force=force, progress=progress)
    return dataclasses.replace(found, advice=tuple(_advice(found, folder)))


def write_world(folder: Path, people: int = PEOPLE, *, force: bool = False) -> None:
    """Make the example world in a folder: its files and the review of them."""
    world = veterans(people, seed=1)
    # The visitor may have edited the review file: that is what it is there for.
    if force or not (folder / REVIEW).exists():
        ResultStore(folder).write(REVIEW, _review_text(world.sample.names))
    write_environment(example_environment(), folder / ENVIRONMENT, force=True)
    for name, data in ((DATA, world.sample), (EXTERNAL, world.external), (TRUTH, world.truth)):
        data.save(folder / name, force=True)


def _check(folder: Path, force: bool) -> None:
    """Take a new folder, an empty one, or that of an earlier demonstration."""
    sweep(folder)
    ours = {DATA, EXTERNAL, TRUTH, ENVIRONMENT, REVIEW, RESULTS}
    if not force and {path.name for path in folder.iterdir()} - ours:
        raise OptionError(
            Problem(
                "{0!r} has other files in it. Give another folder, or {force} to write into it.",
                str(folder),
            )
        )


def _review_text(names: tuple[str, ...]) -> str:
    quoted = [f'"{name}"' for name in KEYS if name not in ("sex", "ag8r")]
    rows = [", ".join(quoted[i : i + 7]) for i in range(0, len(quoted), 7)]
    return _REVIEW.format(
        review=REVIEW,
        results=RESULTS,
        data=DATA,
        external=EXTERNAL,
        truth=TRUTH,
        environment=ENVIRONMENT,
        link=", ".join(f'"{name}"' for name in LINK if name not in NOT_LINKED),
        labels="\n".join(f'{name} = "{CODEBOOK[name].label}"' for name in names),
        candidates=",\n    ".join(rows) + ",",
    )


def _advice(found: ReviewResult, folder: Path) -> list[str]:
    plan, results = folder / REVIEW, folder / RESULTS
    return [
        f"Open it in a browser: {found.report.resolve().as_uri()}",
        f"Go on in the workbench: keyhole serve {folder}",
        f"Then change {plan}, say the limit, and run: keyhole review {plan} --out {results}",
        "With your own file, begin with: keyhole risk FILE --keys A,B",
    ]
