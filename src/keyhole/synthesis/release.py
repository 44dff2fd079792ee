"""Synthesis, the result of `synthesise`, and its release folder: implicates, codebook, note.

There are two outputs, never mixed: ``release/`` for the analyst, ``internal/`` for the producer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from keyhole.charts import listed
from keyhole.core.files import sweep, write_folder
from keyhole.core.marks import COUNT, HIDDEN, PUBLIC, SPREAD, WHEN_SET, figure
from keyhole.core.options import Problem
from keyhole.core.tables import Table
from keyhole.data.formats import written_suffix
from keyhole.data.implicates import RECORDS, RELEASE_ROW
from keyhole.data.microdata import Microdata
from keyhole.errors import OptionError
from keyhole.kernels.arrays import Ints
from keyhole.results import Result
from keyhole.screening.identifiers import recognise
from keyhole.synthesis.associations import NEVER_RELEASED, Relations
from keyhole.synthesis.constraints import revealing_columns
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.evaluation import Evaluation
from keyhole.synthesis.implicates import Implicates, Subgroup
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.targets import TargetChoice

if TYPE_CHECKING:
    import altair


# From this share of different values on, a column names records.
NEARLY_ALL = 0.9
# Fewer records than this may all differ by chance.
LEAST_FILE = 50
# How sure one must be that a name is that of a direct identifier.
SURE = 0.8
# From this strength on a relation is worth a word, and from this change on it is not kept.
WORTH, NOT_KEPT = 0.05, 0.02
# So many relations are named.
MOST_NAMED = 12
NOTE = """\
# How to analyse these files

{folder}
Records and columns come from the original file; do not rely on the order of the records. Values
not mentioned here are those of the original file. {replaced}

## What to do

{doing}

## What is kept, and what is not

{kept}

## Method

Values were drawn by predictive mean matching on semi-parametric additive models, after Hawala and
Funk (2007).{trees}
"""
SOME = """\
In some
records values of {targets} were replaced, to protect the people they are about: each replaced
value was taken from another record that is predicted to be similar. Which values were replaced is
not disclosed."""
EVERY = """\
Of
{targets} every value was replaced, in all records, by the value of another record that is
predicted to be similar: none of them is the person's own, unless by chance."""
TREES = """ Those of {targets} were drawn from the leaves of trees instead (Reiter 2005, *Journal of
Official Statistics* 21)."""
FOLDER = "This folder holds {m} versions of the same data: `implicate-1` … `implicate-{m}`."
ALONE = "This folder holds one version of the data, `implicate-1`."
SEVERAL = """\
Run your analysis on each implicate by itself, as if it were the original file; then combine the
results by the rules below. Do not stack the implicates, and do not average the values of records
over them.

## Combining rules

Let qᵢ be an estimate from implicate i, and uᵢ its estimated variance (the squared standard error),
i = 1 … m. Then (Reiter 2003, *Survey Methodology* 29, for partially synthetic data):

- the estimate is q̄ = Σ qᵢ / m;
- its variance is T = ū + b/m, with ū = Σ uᵢ / m and b = Σ (qᵢ - q̄)² / (m - 1);
- intervals take Student's t with (m - 1)(1 + ū / (b/m))² degrees of freedom, infinitely many if b
  is 0.

These are not Rubin's rules for missing data, which have (1 + 1/m) b.

In Python, `keyhole.utility.combine(estimates, variances)` does it, `keyhole.utility.combine_fits`
for fitted models of statsmodels, and `keyhole tabulate FOLDER --rows A --cols B` makes tables."""
SINGLE = """\
Run your analysis as if this were the original file. Standard errors and intervals are then
somewhat too small: what drawing the values adds to them cannot be estimated from one version.
`keyhole tabulate FOLDER --rows A --cols B` makes tables, with a remark that says so."""
KEPT = """\
Distributions of the columns named above, and their relations with each other and with the other
columns, are kept as far as models of main effects keep them. A relation that only shows in the
interaction of several columns may be weaker than it was."""
WEAKER = """\
These relations are weaker than in the original file (Cramér's V, numbers in ten bins): {named}."""
STRONGER = "These are stronger: {named}."
NO_CHANGE = "Each pair of a replaced and another column was compared; no relation differs by much."
PARTS = frozenset({"release", "internal"})
RELEASED = 0x6F72646572
"""Tells the draw of the order from the seed's other uses."""


def dropped_columns(data: Microdata) -> list[str]:
    """Return the columns that stay at home."""
    return [variable.name for variable in data.variables if variable.role in NEVER_RELEASED]


def unsafe_columns(
    data: Microdata, *, keys: Sequence[str], targets: Sequence[str], allow: Sequence[str] = ()
) -> list[Problem]:
    """Say which columns of a release tell who somebody is, or what a target was."""
    targets = [target for target in targets if target in data.names]
    kept = [name for name in data.names if data.variable(name).role not in NEVER_RELEASED]
    loose = [name for name in kept if name not in targets and name not in allow]
    naming = {}
    for name in loose:
        variable, column = data.variable(name), data.frame[name]
        found = recognise(name, variable.label)
        varies = column.dtype.is_float() or column.dtype.is_temporal() or variable.kind == "date"
        counted = not varies and data.records >= LEAST_FILE
        if found is not None and found.confidence >= SURE:
            naming[name] = f"looks like a direct identifier ({found.kind}: {found.reason})"
        elif counted and len(data.codes(name).levels) >= NEARLY_ALL * data.records:
            naming[name] = "is different in nearly every record"
    named = (
        "column {0!r} {1}, so it would identify records: leave it out with {drop}, or, if it may "
        "be released, name it in {allow}."
    )
    told = (
        "column {0!r} determines target {1!r} almost exactly, so that replacing {1!r} protects "
        "nobody: leave {0!r} out with {drop}, make it one of the {targets} too, or, if it may be "
        "released, name it in {allow}."
    )
    problems = [Problem(named, name, why) for name, why in naming.items() if name not in keys]
    pairs = revealing_columns(data, targets, [name for name in loose if name not in naming])
    return problems + [Problem(told, name, target) for target, name in pairs]


def analysts_note(
    targets: Sequence[str],
    implicates: int,
    relations: Relations,
    *,
    whole: Sequence[str] = (),
    trees: Sequence[str] = (),
) -> str:
    """Return the note of a release; the targets in `whole` were drawn for every record."""

    def told(text: str, some: Sequence[str]) -> str:
        *rest, last = (_quoted(name) for name in some)
        return text.format(targets=f"{', '.join(rest)} and {last}" if rest else last)

    kinds = (SOME, [name for name in targets if name not in whole]), (EVERY, whole)
    replaced = "\n\n".join(told(text, some) for text, some in kinds if some)
    differ = [one for one in relations.beyond(NOT_KEPT) if max(one.original, one.synthetic) > WORTH]
    said = [KEPT]
    for text, sign in ((WEAKER, -1), (STRONGER, 1)):
        changed = [one for one in differ if sign * one.difference > 0]
        named = [
            f"{_quoted(one.target)} with {_quoted(one.column)}, {one.synthetic:.2f} instead of "
            f"{one.original:.2f}"
            for one in changed[:MOST_NAMED]
        ]
        more = len(changed) - len(named)
        named += [f"and {more:,} more, which changed less"] if more else []
        said += [text.format(named="; ".join(named))] if named else []
    said += [] if differ else [NO_CHANGE]
    folder, doing = (ALONE, SINGLE) if implicates == 1 else (FOLDER.format(m=implicates), SEVERAL)
    by_tree = told(TREES, trees) if trees else ""
    kept = "\n\n".join(said)
    return NOTE.format(folder=folder, replaced=replaced, doing=doing, kept=kept, trees=by_tree)


def _quoted(name: str) -> str:
    """Write a column's name as code that it cannot break out of."""
    safe = (c if c.isprintable() and c != "`" else "\N{REPLACEMENT CHARACTER}" for c in name)
    return f"`{''.join(safe)}`"


def write_release(made: Synthesis, out: Path, *, force: bool) -> Path:
    """Write the release and what belongs to the producer alone, whole or not at all."""
    problems = require_free(out, force)
    if problems:
        raise OptionError(problems)
    with new_release(out) as temporary:
        order, shuffled = np.arange(made.records), made.parameters["shuffle"]
        if shuffled:
            order = np.random.default_rng([made.parameters["seed"], RELEASED]).permutation(order)
        _fill_release(made, order, temporary / "release")
        folder = temporary / "internal"
        parameters = {"keyhole": version("keyhole"), **made.parameters}
        (folder / "parameters.json").write_text(_json(parameters))
        # A file that can be edited and given as `rules`.
        rules = made.parameters["rules"].items()
        lines = [f"{json.dumps(name)} = {json.dumps(text)}" for name, text in rules]
        (folder / "rules.toml").write_text("\n".join(["[rules]", *lines, ""]), encoding="utf-8")
        (folder / "evaluation.json").write_text(_json(made.to_dict()))
        (folder / "evaluation.txt").write_text(made.summary() + "\n", encoding="utf-8")
        held, people = made.designation.to_frame(), made.implicates.data
        if shuffled:
            held = held.with_columns(pl.Series(RELEASE_ROW, np.argsort(order) + 1))
        held.write_parquet(folder / RECORDS)
        suffix = written_suffix(people.origin.suffix)
        if made.control is not None:
            people.save(folder / f"original{suffix}")
            made.control.save(folder / f"control{suffix}")
    return out


@contextmanager
def new_release(folder: Path) -> Iterator[Path]:
    """Make ``release/`` and ``internal/`` to be filled, whole or not at all; the latter private."""
    with write_folder(folder) as temporary:
        (temporary / "release").mkdir()
        (temporary / "internal").mkdir(mode=0o700)
        yield temporary
        for path in (temporary / "internal").iterdir():
            path.chmod(0o600)


def require_free(out: Path, force: bool) -> list[str]:
    """Return what stands in the way of writing a release there."""
    name = repr(str(out))
    sweep(out.parent)
    try:
        if "\0" not in str(out):
            if not out.parent.is_dir():
                return [f"{name} cannot be written: its folder does not exist. Make it first."]
            if not os.path.lexists(out):
                return []
            if not force:
                text = "{0} exists. Choose another name, or replace it with {force}."
                return [Problem(text, name)]
            if out.is_symlink() or not out.is_dir() or {p.name for p in out.iterdir()} - PARTS:
                return [f"{name} holds other things than a release. Choose another name."]
            return []
    except (OSError, ValueError):
        pass
    return [f"{name} cannot be written. Choose another name."]


def _fill_release(made: Synthesis, order: Ints, folder: Path) -> None:
    data, codebook = made.implicates.data, []
    released = [one for one in data.variables if one.role not in NEVER_RELEASED]
    suffix = written_suffix(data.origin.suffix)
    for i in range(len(made.implicates)):
        whole = data.replace(frame=made.implicates.frame(i)[order], name=f"implicate-{i + 1}")
        whole.select([v.name for v in released]).save(folder / f"implicate-{i + 1}{suffix}")
    for one in released:
        held: dict[str, Any] = {"name": one.name, "label": one.label, "kind": one.kind}
        held["values"] = {str(value): words for value, words in one.value_labels.items()}
        held["missing_codes"] = [str(code) for code in one.missing_codes]
        held |= {"may_be_synthetic": one.name in made.choice.targets}
        codebook.append(held | {"is_synthetic": True} if one.name in made.choice.whole else held)
    (folder / "codebook.json").write_text(_json({"variables": codebook}))
    models, count = made.parameters["models"], len(made.implicates)
    trees = [name for name in made.choice.targets if models.get(name) == "tree"]
    asked = (made.choice.targets, count, made.evaluation.relations)
    note = analysts_note(*asked, whole=made.choice.whole, trees=trees)
    (folder / "analysts-note.md").write_text(note, encoding="utf-8")


def _json(value: Mapping[str, Any]) -> str:
    def plain(value: Any) -> Any:
        own = value.tolist() if hasattr(value, "tolist") else str(value)
        return dict(value) if isinstance(value, Mapping) else own

    return json.dumps(value, indent=2, ensure_ascii=False, default=plain) + "\n"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Synthesis(Result):
    """A partially synthetic file, with who was at risk and what the evaluation found.

    `choice` says which targets of which record were to be replaced, `borrowing` which subgroups
    borrowed a model, `withheld` which columns are not released. `parameters` are what was asked
    for, the seed included: for the producer alone. `control` are the records held out.
    """

    designation: Annotated[Designation, "Who was at risk and why."]
    targets: Annotated[tuple[str, ...], PUBLIC, "In the order in which they were filled."]
    replaced: Annotated[int, COUNT, "Records of which any target was to be replaced."]
    subgroups: int
    borrowed: Annotated[int, "Subgroups too small for a model of their own."]
    borrowing: tuple[Subgroup, ...]
    withheld: tuple[str, ...]
    evaluation: Annotated[Evaluation, SPREAD]
    notes: tuple[str, ...]
    choice: Annotated[TargetChoice, HIDDEN]
    implicates: Annotated[Implicates, HIDDEN]
    rules: Annotated[EditRules | None, HIDDEN]
    parameters: Annotated[Mapping[str, Any], HIDDEN]
    held_out: Annotated[int | None, COUNT, WHEN_SET, "Records kept out of the synthesis."] = None
    control: Annotated[Microdata | None, HIDDEN] = None

    @property
    @figure(COUNT)
    def records(self) -> int:
        """The records of the file."""
        return self.designation.records

    @property
    @figure()
    def keys(self) -> tuple[str, ...]:
        """The key that is protected."""
        return self.designation.keys

    @property
    @figure(COUNT)
    def at_risk(self) -> int:
        """The records at risk on it."""
        return self.designation.risky

    @property
    @figure(COUNT)
    def decoys(self) -> int:
        """The common records that were replaced too."""
        return self.designation.decoys

    def frame(self, implicate: int = 1) -> pl.DataFrame:
        """Return the file of one implicate, counted from 1."""
        if not 1 <= implicate <= len(self.implicates):
            raise OptionError(
                f"implicate must be from 1 to {len(self.implicates)}. Got {implicate} instead."
            )
        return self.implicates.frame(implicate - 1)

    def save(self, out: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write ``release/`` and ``internal/`` into a folder, whole or not at all."""
        return write_release(self, Path(out), force=force)

    def to_frame(self) -> pl.DataFrame:
        """Return the change-by-level table."""
        return self.evaluation.to_frame()

    def tables(self) -> list[Table]:
        """Return what was done, and the evaluation."""
        rows = [
            ["records", f"{self.records:,}"],
            *([["held out", f"{self.held_out:,}"]] if self.held_out else []),
            ["at risk", f"{self.at_risk:,}"],
            ["decoys", f"{self.decoys:,}"],
            ["targets", ", ".join(self.targets)],
            *([["… drawn for every record", listed(self.choice.whole)]] * bool(self.choice.whole)),
            ["implicates", f"{self.evaluation.implicates:,}"],
            ["subgroups", f"{self.subgroups:,}"],
            ["… that borrowed a model", f"{self.borrowed:,}"],
        ]
        rows += [["not released", ", ".join(self.withheld)]] if self.withheld else []
        notes = [note for note in self.notes if note not in self.evaluation.notes]
        if self.parameters.get("donors") == "folds":
            strata = self.parameters.get("strata", ())
            what = f"the combinations of {listed(strata)}" if strata else "the whole file"
            apart = "with records at risk apart from the others where there are enough"
            notes.append(f"Subgroups: {what}, {apart}")
        return [Table("Synthesis", ["", ""], rows, notes), *self.evaluation.tables()]

    def plot(self) -> altair.TopLevelMixin:
        """Return the picture of the evaluation."""
        return self.evaluation.plot()
