"""The measurements of the environment and of screening as tables, and what they must show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.targets import Target

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def environment_sections(found: Mapping[str, Any], table: Table) -> Iterator[str]:
    """Yield the sections of the page; `table` lays a table out."""
    environment = found.get("environment")
    if environment:
        yield (
            "## Class mapping\n\n"
            "60 columns against all forms of 60 fields each, threshold 0.3. The plain program goes "
            "form by form, and only over columns with listed categories; its answers are the "
            "same.\n\n"
            + table(
                ["forms", "graph s", "first mapping s", "again s", "plain s", "times"],
                [_mapping(case) for case in environment["mapping"]],
            )
        )
        yield "## Store and import of an environment\n\n" + table(
            ["what", "size", "in s", "out s"],
            [
                *([f"{c['place']}", f"{c['forms']:,} forms x 60", _s(c["write"]), _s(c["read"])]
                  for c in environment["store"]),
                *(["JSON Schema, read and added", f"{c['fields']:,} fields",
                   _s(c["read"] + c["add"]), ""] for c in environment["import"]),
            ],
        )  # fmt: skip
    if found.get("recognition"):
        yield (
            "## Recognition of fields\n\n"
            "Fields of public form families, from `benchmarks/recognition`. Rules were made by "
            "looking at the first table only. Precision is of what was placed "
            "without asking; recall is of key constructs, placed or among the first three "
            "proposals.\n\n"
            + table(
                ["table", "families", "fields", "precision", "recall", "asked per 12 fields"],
                [
                    [
                        name.replace("_", " "), str(c["families"]), str(c["fields"]),
                        *(f"{c[of]:.2f}" for of in ("precision", "recall", "asked_per_12")),
                    ]
                    for name, c in found["recognition"].items()
                ],
            )
        )  # fmt: skip
    if found.get("screening"):
        yield "## Screening\n\n" + table(
            ["records", "columns", "seconds"],
            [
                [
                    f"{c['records']:,}{', structure alone' * ('structure' in c)}",
                    f"{c['columns']:,}",
                    _s(c["seconds"]),
                ]
                for c in found["screening"]
            ],
        )


def _s(seconds: float) -> str:
    return f"{seconds:.2f}"


def _mapping(case: Mapping[str, Any]) -> list[str]:
    seconds = [case[name] for name in ("build", "first", "again", "plain")]
    return [f"{case['forms']:,}", *map(_s, seconds), f"{case['plain'] / case['first']:.0f}"]


def environment_targets(found: Mapping[str, Any]) -> Iterator[Target]:
    """Yield what the measurements must show."""
    environment = found.get("environment") or {"mapping": [], "import": []}
    for case in environment["mapping"]:
        if case["forms"] == 2_000:
            yield Target("class mapping, 2,000 forms x 60", case["first"], 0.5, "s")
    for case in environment.get("store", ()):
        if case["forms"] == 2_000:
            yield Target(f"opening a store in {case['place']}, 2,000 forms", case["open"], 0.3, "s")
    sizes = [(c["fields"], c["read"] + c["add"]) for c in environment["import"]]
    if len(sizes) > 1 and sizes[-1][0] >= 20_000:
        (small, before), (large, after) = sizes[0], sizes[-1]
        exponent = math.log(after / before) / math.log(large / small)
        yield Target("import, exponent of fields", exponent, 1.1, "")
        yield Target("import of 24,000 fields", after, 8.25, "s")
    for name, case in (found.get("recognition") or {}).items():
        words = f"recognition, {name.replace('_', ' ')}"
        yield Target(f"{words}: precision", case["precision"], 0.95, "", at_least=True)
        yield Target(f"{words}: recall", case["recall"], 0.9, "", at_least=True)
        yield Target(f"{words}: decisions for 12 fields", case["asked_per_12"], 1, "")
    screened = found.get("screening") or ()
    for case in screened:
        if case["records"] == 10**5:
            what = "structure of 10⁵ x 40" if "structure" in case else "screening 10⁵ x 40"
            yield Target(what, case["seconds"], 10, "s")
        if case["columns"] == 10_000:
            yield Target("screening 2,000 x 10,000, three levels", case["seconds"], 45, "s")
    for records, words in ((4, "nearly unique"), (2_000, "of three levels")):
        wide = [(c["columns"], c["seconds"]) for c in screened if c["records"] == records]
        if len(wide) > 1 and wide[-1][0] >= 8_000:
            (small, before), (large, after) = wide[0], wide[-1]
            exponent = math.log(after / before) / math.log(large / small)
            yield Target(f"screening, exponent of columns {words}", exponent, 1.1, "")
