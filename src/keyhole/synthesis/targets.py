"""Targets: which values of the designated records are replaced, in what order, from what predicted.

Hawala & Funk (section 3.1) replaced the same variables of all records; "ideally we would have
imputed for the exact variables that put each of these records at risk". Targeted replacement does
so: of each record the fewest variables that break all its minimal uniques, but at least two.

They also found that their riskiest records were changed no more than the others. Graded
replacement changes that: all targets of every record are drawn, but one of high risk never draws
an equal value. (To let others keep a value would show it: it would be the same in all implicates.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from keyhole.core.names import quoted
from keyhole.core.notes import Note
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Flags, Ints, Words
from keyhole.synthesis.associations import KIN, NEVER_RELEASED, related
from keyhole.synthesis.designate import Designation

# Of so many variables every set can be tried.
MOST_TARGETS = 16
# Categories with more levels than this predict little and cost much.
MOST_LEVELS = 100


@dataclass(frozen=True, slots=True, eq=False)
class TargetChoice:
    """Which targets of which records are replaced.

    `replace` has a row a record and a column a target. `unbroken_sets` minimal uniques of
    `unbroken_records` records at risk hold no target: nothing that is replaced breaks them. The
    targets in `whole` are replaced in every record.
    """

    targets: tuple[str, ...]
    targeted: bool
    replace: Flags
    unbroken_sets: int
    unbroken_records: int
    notes: tuple[str, ...]
    whole: tuple[str, ...] = ()


def choose_targets(
    data: Microdata, designation: Designation, *, targets: Iterable[str], targeted: bool = False
) -> TargetChoice:
    """Choose which targets of the designated records are replaced.

    All of them, or, if `targeted`, in each record at risk the fewest that break all its minimal
    uniques; of equally many those that are in most of them, then any, by the designation's seed.
    Where that is a single one, the key variable of the most varied values is replaced too: a single
    value comes back unchanged too often. A record whose minimal uniques are not known (not
    alone, or alone only past the sizes searched) has one key variable replaced. A decoy is treated
    like a record at risk drawn at random, so that patterns do not tell.
    """
    names = tuple(targets)
    owner, mask, lost = _target_sets(designation, names)
    replace = np.repeat(designation.changed[:, None], len(names), axis=1)
    if targeted:
        replace = _targeted(data, designation, names, owner, mask)
    records = len(np.unique(lost))
    notes: list[str] = []
    if len(lost):
        notes.append(Note("synthesis.unbroken", uniques=len(lost), records=records))
    spared = [name for name in names if name not in designation.keys]
    if targeted and spared:
        said = "are in no key: targeted replacement leaves them as they are"
        if len(spared) == 1:
            said = "is in no key: targeted replacement leaves it as it is"
        notes.append(f"{quoted(spared)} {said}")
    return TargetChoice(names, targeted, replace, len(lost), records, tuple(notes))


def _target_sets(designation: Designation, names: tuple[str, ...]) -> tuple[Ints, Words, Ints]:
    """Return the minimal uniques of records at risk as masks of targets, and owners of the rest."""
    sets = designation.sets
    held = designation.at_risk[sets.owner]
    owner, keys = sets.owner[held], sets.mask[held]
    mask = np.zeros(len(keys), dtype=np.uint64)
    for place, name in enumerate(names):
        if name in designation.keys:
            bit = np.uint64(designation.keys.index(name))
            mask |= ((keys >> bit) & np.uint64(1)) << np.uint64(place)
    order = np.argsort(owner, kind="stable")
    owner, mask = owner[order], mask[order]
    return owner[mask > 0], mask[mask > 0], owner[mask == 0]


def _targeted(
    data: Microdata, designation: Designation, names: tuple[str, ...], owner: Ints, mask: Words
) -> Flags:
    from keyhole.kernels.smallest_sets import break_all

    rows = np.flatnonzero(designation.at_risk)
    generator = np.random.default_rng(np.random.SeedSequence(designation.seed, spawn_key=(2,)))
    # A record without minimal uniques stands out by its whole key.
    bare = np.setdiff1d(rows, owner)
    whole = sum(1 << t for t, name in enumerate(names) if name in designation.keys)
    owner = np.concatenate([owner, bare])
    mask = np.concatenate([mask, np.full(len(bare), whole, dtype=np.uint64)])
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.append(rows, designation.records))
    # Noise that adds to less than one settles ties and nothing else.
    noise = generator.random((len(rows), len(names))) / len(names)
    subsets = np.arange(1, 1 << len(names), dtype=np.uint64)
    by_size = subsets[np.argsort(np.bitwise_count(subsets), kind="stable")]
    chosen = break_all(starts, mask[order], noise, by_size)
    bits = (chosen[:, None] >> np.arange(len(names), dtype=np.uint64)) & np.uint64(1)
    replace, chosen_flags = np.zeros((designation.records, len(names)), bool), bits.astype(bool)
    # To a single target another one of the key is added, the one least likely to come back.
    # The chance that two records have the same value.
    shares = [np.bincount(data.codes(name).values) / data.records for name in names]
    coincidence = [float((one**2).sum()) for one in shares]
    free = [place for place, name in enumerate(names) if name in designation.keys]
    for place in sorted(free, key=lambda place: coincidence[place]):
        chosen_flags[chosen_flags.sum(axis=1) == 1, place] = True
    replace[rows] = chosen_flags
    decoys = np.flatnonzero(designation.decoy)
    if len(decoys):
        replace[decoys] = replace[generator.choice(rows, len(decoys))]
    return replace


def order_targets(data: Microdata, targets: Iterable[str]) -> tuple[str, ...]:
    """Order targets for filling: the most complete first, then those of fewest levels.

    What is filled early predicts what is filled later, so it should rest on the most data; a
    variable of few levels is filled with fewer errors. The declared order settles ties.
    """
    ranked = []
    for place, name in enumerate(data.require(targets, purpose="target")):
        codes = data.codes(name)
        gone = int((codes.values == len(codes.levels)).sum())
        ranked.append((gone, len(codes.levels), place, name))
    return tuple(name for *_, name in sorted(ranked))


def default_predictors(
    data: Microdata,
    *,
    keys: Iterable[str],
    targets: Iterable[str],
    strata: Iterable[str] = (),
    least: float = 0.0,
) -> dict[str, tuple[str, ...]]:
    """Return what predicts each target.

    A target outside the key is predicted by all columns: what is left out of its model is not
    kept together with it. One in the key is predicted by keys, targets and strata, and by every
    column whose Cramér's V with it is beyond chance, and at least `least`; its kin, the columns
    that would contradict it otherwise (an age group, a period of service), are among them always.

    Left out are free text, categories of more than a hundred levels, columns without two
    different values, and columns that name a record, a household or are to be dropped.
    """
    known, wanted, least = tuple(keys), tuple(targets), min(least, KIN)
    near = dict.fromkeys([*known, *wanted, *strata])
    data.require(near, purpose="predictor")
    fit = [name for name in dict.fromkeys([*near, *data.names]) if predicts(data, name)]
    chosen = {}
    for target in wanted:
        others = [name for name in fit if name not in near]
        close = related(data, target, others, least=least) if target in known else others
        chosen[target] = tuple(n for n in (*near, *close) if n in fit and n != target)
    return chosen


def predicts(data: Microdata, name: str) -> bool:
    """Tell whether a column can predict anything."""
    variable, levels = data.variable(name), len(data.codes(name).levels)
    if variable.role in NEVER_RELEASED or variable.kind == "text" or levels < 2:
        return False
    return variable.kind != "category" or levels <= MOST_LEVELS
