"""``keyhole frontier``."""

from __future__ import annotations

from typing import Annotated

from keyhole.cli import options as opt
from keyhole.cli.choice import Choice
from keyhole.cli.output import Outputs
from keyhole.cli.progress import working
from keyhole.cli.scenario import (
    AskedScenario,
    ScenarioName,
    StorePlace,
    TargetName,
    require_none,
)
from keyhole.cli.source import Source

__all__ = ["EXAMPLE", "frontier"]

EXAMPLE = "keyhole frontier people.csv --keep sex --candidates age,state,race --limit 0.05"

HERE_FOR = "the frontier"

Seconds = Annotated[
    float | None,
    opt.number(
        "seconds",
        "S",
        "Stop after about this time with what was found; the result says that it is not complete.",
    ),
]


def frontier(
    file: opt.File,
    limit: opt.Limit,
    keep: opt.Keep = None,
    candidates: opt.Candidates = None,
    scenario: ScenarioName = None,
    store: StorePlace = None,
    target: TargetName = None,
    cutoff: opt.Cutoff = 3,
    seconds: Seconds = None,
    values: opt.Values = None,
    missing_codes: opt.MissingCodes = None,
    kinds: opt.Kinds = None,
    engine: opt.EngineHere = "auto",
    memory: opt.Memory = None,
    work_folder: opt.WorkFolder = None,
    master: opt.NoMaster = None,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    sheet: opt.Sheet = None,
    plot: opt.Plot = None,
    json: opt.Json = False,
    force: opt.Force = False,
) -> None:
    """Find all the largest sets of variables within the limit.

    Exactly, not step by step: every set to which nothing can be added, the best of them, and
    how near the searches of keyhole select come to it.
    """
    source = Source(
        file, missing_codes, kinds, engine, encoding, delimiter, sheet, memory, work_folder, master
    )
    outputs = Outputs(json, plot, None, force)
    asked = AskedScenario.parse(scenario, store, target)
    with working("Searching the frontier") as report:
        from keyhole.selection.frontier import frontier as search
        from keyhole.selection.frontier import option_problems

        key = None if asked is None else asked.key(source.read(()))
        if key is None:
            choice = Choice.parse(source, keep, candidates, values, here_for=HERE_FOR)
        else:
            choice = Choice.of_key(key.keys, keep, candidates, values)
        problems = option_problems(limit=limit, cutoff=cutoff, seconds=seconds)
        problems += [*choice.problems(), *outputs.problems(file)]
        if key is None:
            data = source.open(choice.names, problems, here_for=HERE_FOR)
        else:
            require_none(problems)
            data = key.microdata
        found = search(
            data, keep=choice.keep, candidates=choice.candidates, scenario=key,
            limit=limit, cutoff=cutoff, seconds=seconds, values=choice.values, progress=report,
        )  # fmt: skip
    outputs.give(found, more={} if key is None else {"key": key.mapping})
