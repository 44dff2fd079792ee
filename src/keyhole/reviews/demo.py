"""The demonstration: a review of the example world, from its file to its report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from keyhole.core.extras import extra_problems
from keyhole.core.files import sweep
from keyhole.core.options import Problem, bind, documented
from keyhole.core.shared import FolderOption, ForceOption
from keyhole.data.examples import KEYS, LINK, veterans
from keyhole.data.examples.files import CODEBOOK
from keyhole.environment.exchange import example_environment, write_environment
from keyhole.environment.verbs import ladder_of
from keyhole.errors import OptionError
from keyhole.reviews.rendering import read_template
from keyhole.reviews.result import ReviewResult
from keyhole.reviews.runner import review
from keyhole.reviews.store import ResultStore, own_folder

PEOPLE = 200_000
DATA, REVIEW, RESULTS = "veterans.csv", "review.toml", "review"
EXTERNAL, TRUTH, ENVIRONMENT = "external.csv", "truth.csv", "environment.json"
REGIONS, STATES = "regions.csv", "GE54.001"

# Linked within sex; ag8r is only a coarser age.
NOT_LINKED = ("sex", "ag8r")


@documented
def demo(
    out: FolderOption,
    *,
    force: ForceOption = False,
    progress: Callable[[str], None] | None = None,
    people: int = PEOPLE,
) -> ReviewResult:
    """Run keyhole on a made-up file of veterans.

    The files, their review file and the results are written to the folder.

    Returns
    -------
    ReviewResult
        As of `keyhole.review`; its summary says where the report is and what to do next.
    """
    bind(demo, locals()).require()
    folder = Path(out)

    def check() -> None:
        """Take a new folder, an empty one, or that of an earlier demonstration."""
        sweep(folder)
        ours = {DATA, EXTERNAL, TRUTH, ENVIRONMENT, REGIONS, REVIEW, RESULTS}
        if not force and {path.name for path in folder.iterdir()} - ours:
            told = "{0!r} has other files in it. Give another folder, or {force} to write into it."
            raise OptionError(Problem(told, str(folder)))

    with own_folder(folder, check):
        if progress is not None:
            progress("making a population of veterans")
        write_world(folder, people, force=force)
        found = review(folder / REVIEW, out=folder / RESULTS, force=force, progress=progress)
    plan, results = folder / REVIEW, folder / RESULTS
    advice = (
        f"Open the report in a browser: {found.report.resolve().as_uri()}",
        f"Go on in the workbench: keyhole serve {folder}",
        f"Then change {plan}, for example a limit, and run: keyhole review {plan} --out {results}",
        "With your own file, begin with: keyhole init FILE",
    )
    return dataclasses.replace(found, advice=advice)


def write_world(folder: Path, people: int = PEOPLE, *, force: bool = False) -> None:
    """Make the example world in a folder: its files and the review of them."""
    world = veterans(people, seed=1)
    # The visitor may have edited the review file: that is what it is there for.
    if force or not (folder / REVIEW).exists():
        ResultStore(folder).write(REVIEW, _review_text(world.sample.names))
    environment = example_environment()
    write_environment(environment, folder / ENVIRONMENT, force=True)
    ResultStore(folder).write(REGIONS, ladder_of(environment, STATES).to_frame().write_csv())
    for name, data in ((DATA, world.sample), (EXTERNAL, world.external), (TRUTH, world.truth)):
        data.save(folder / name, force=True)


def _review_text(names: tuple[str, ...]) -> str:
    quoted = [f'"{name}"' for name in KEYS if name not in ("sex", "ag8r")]
    rows = [", ".join(quoted[i : i + 7]) for i in range(0, len(quoted), 7)]
    return read_template("demo-review.toml").format(
        review=REVIEW,
        results=RESULTS,
        data=DATA,
        external=EXTERNAL,
        truth=TRUTH,
        environment=ENVIRONMENT,
        regions=REGIONS,
        link=", ".join(f'"{name}"' for name in LINK if name not in NOT_LINKED),
        labels="\n".join(f'{name} = "{CODEBOOK[name].label}"' for name in names),
        candidates=",\n    ".join(rows) + ",",
        formula="# " if extra_problems("models") else "",
    )
