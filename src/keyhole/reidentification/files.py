"""Files of a study: read, and made ready with ids, absent variables and a scenario's key."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from keyhole.core.kinds import LARGEST, Amounts, Columns, Kind, Number, Whole, WordsByColumn
from keyhole.core.names import absent, plural, quoted
from keyhole.core.options import Problem, Question, unknown_problems
from keyhole.core.toml import open_toml
from keyhole.data.columns import named
from keyhole.data.deriving import Derivation, derivations_of, derive_codes, fit_derivations
from keyhole.data.implicates import first_implicate, in_original_order
from keyhole.data.microdata import Microdata, require_key
from keyhole.data.reading import load
from keyhole.engines.opening import HOW, DataFile
from keyhole.errors import ColumnError, InputError, OptionError

# Whether two files have their records in the same order shows if there are so many, on columns that
# agree less often than this by chance, by so many standard errors.
LEAST_ORDERED, MOST_CHANCE, FAR_BEYOND = 200, 0.9, 5.0

if TYPE_CHECKING:
    from keyhole.environment.scenarios.recoding import ScenarioKey


@dataclass(frozen=True, slots=True)
class StudyFiles:
    """The files of a study; those attacked and the internal ones by the name of the release."""

    pufs: Mapping[str, Microdata]
    iufs: Mapping[str, Microdata]
    eif: Microdata
    ids: Microdata | None = None  # the file with the ids of releases that have none
    people: Any = None  # for attacks with a control, the file that the release was made from
    control: Microdata | None = None  # and people who were not in it
    key: ScenarioKey | None = None  # that of a scenario, to whose detail all are recoded
    prepared: tuple[str, ...] = ()  # what was done to the EIF


def read_files(question: Question, problems: Iterable[str] = ()) -> StudyFiles:
    """Read the columns that are needed of each file; what is wrong with any is told at once.

    Releases are read whole where they may lack some of them. A table of internal files with the
    names of the releases gives each its own.
    """
    reader, pufs = _Reader(), question.puf or {}
    may_lack = question.scenario or question.blank or question.ids_from is not None
    shared = (*question.link, *question.strata)
    attacked = tuple(dict.fromkeys((*question.link, *question.second_link, *question.secret)))
    of_puf = () if may_lack or len(pufs) > 1 else (*(question.puf_id or ()), *shared, *attacked)
    whole = question.scenario or question.prepare is not None
    of_eif = () if whole else (*(question.eif_id or ()), *shared)
    read = {name: reader.read(puf, "PUF", of_puf) for name, puf in pufs.items()}
    eif = reader.read(question.eif, "EIF", of_eif)
    if isinstance(question.iuf, Mapping) and set(question.iuf) == set(pufs):
        iufs = {name: reader.read(iuf, "IUF") for name, iuf in question.iuf.items()}
    else:
        iufs = dict.fromkeys(pufs, reader.read(question.iuf, "IUF"))
    ids = reader.read(question.ids_from, "file of ids")
    source = question.original
    if source is None and set(question.attacks) - {"found"}:
        source = question.ids_from
    people = reader.read(source, "original", attacked)
    control = reader.read(question.control, "control", attacked)
    given = [question.eif, question.iuf, question.ids_from, question.original, question.control]
    reader.require([*pufs.values(), *given], problems)
    known: Any = read, iufs, eif, ids, people, control  # none of the needed is absent now
    files = StudyFiles(*known)
    if question.prepare is None:
        return files
    prepared, said = prepare_eif(files.eif, question.prepare)
    return dataclasses.replace(files, eif=prepared, prepared=said)


class _Reader:
    """Reads files one after the other, and keeps what is wrong with any."""

    def __init__(self) -> None:
        self._problems: list[str] = []
        self._error: type[InputError] = OptionError
        self._columns: set[str] = set()
        self._derived: dict[str, str] = {}
        self._unread = False

    def read(self, source: Any, name: str, columns: Sequence[str] = ()) -> Microdata | None:
        """Read a file, or return none; a frame, which has no name, is called by its part."""
        if source is None:  # what is needed and absent has been told
            return None
        given, how = (source.path, source.reading) if isinstance(source, DataFile) else (source, {})
        lines = how.get("derive")
        try:
            wanted: Any = {}
            if isinstance(given, str | os.PathLike):
                given = first_implicate(Path(given)) if name == "PUF" else given
                wanted = {"columns": None if lines else list(dict.fromkeys(columns)) or None}
            data = load(given, **wanted, **{n: how[n] for n in HOW if n in how})
            if name == "PUF" and isinstance(given, Path):
                data = in_original_order(data, given)
            self._columns.update(data.names)
            declared = declared_for(data.names, how)
            data = load(data, **declared) if any(declared.values()) else data
            if lines:  # what was counted in the first file holds for the others too
                made = {one.name: str(one.tree) for one in derivations_of(lines)}
                data = load(data, derive={**made, **self._derived}, partial=True)
                self._derived = {**fit_derivations(data), **self._derived}
        except InputError as error:
            self._error = type(error)
            self._problems += error.problems
            with suppress(InputError):  # what is declared of its columns is looked at all the same
                self._columns.update(load(given, **{n: how[n] for n in HOW if n in how}).names)
                return None
            self._unread = True
            return None
        self._columns.update(data.names)
        return data.replace(name=name) if data.name == "data" else data

    def require(self, sources: Iterable[Any], told: Iterable[str]) -> None:
        """Raise what is wrong with the files, if anything is, with what was told before."""
        declared = [] if self._unread else declaration_problems(sources, self._columns)
        wrong = [*self._problems, *declared]
        if wrong:
            raise self._error(dict.fromkeys([*told, *wrong]))


def declared_for(names: Iterable[str], reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the missing codes and kinds that are declared of the columns of a file."""
    known = {*names, "*"}
    return {
        "codebook": reading.get("codebook"),
        **{option: {name: value for name, value in reading.get(option, {}).items() if name in known}
        for option in ("missing_codes", "kinds")},
    }  # fmt: skip


def declaration_problems(sources: Iterable[Any], known: Iterable[str]) -> list[str]:
    """Say which missing codes and kinds are for a column that no file has."""
    read = [one.reading for one in sources if isinstance(one, DataFile)]
    lines = (how["derive"] for how in read if how.get("derive"))
    derived = derivations_of(next(lines, None))
    columns = {*known, "*", *(one.name for one in derived)}
    problems: list[str] = [
        Problem(f"{{{option}}} names {{0!r}}, which is a column of none of the files.", name)
        for how in read
        for option in ("missing_codes", "kinds")
        for name in how.get(option, ())
        if name not in columns
    ]
    template = "{derive} makes {0!r} from {1!r}, which is a column of none of the files."
    sources = ((made.name, name) for made in derived for name in made.columns)
    return problems + [Problem(template, *pair) for pair in sources if pair[1] not in columns]


def attach_ids(puf: Microdata, source: Microdata, ids: Sequence[str]) -> Microdata:
    """Give a release the ids of the file it was made from, whose records are in the same order."""
    source.require(ids, purpose="PUF id")
    if source.records != puf.records:
        raise ColumnError(
            f"{source.name!r} must have the ids of {puf.name!r} in the same rows. Got "
            f"{source.records:,} records and {puf.records:,} instead: give the file that the "
            f"release was made from."
        )
    if _in_another_order(puf, source, ids):
        raise ColumnError(
            f"{source.name!r} must have the ids of {puf.name!r} in the same rows. Got records that "
            f"agree on no column more often than by chance: leave a release in its folder, beside "
            f"internal, which holds the order, or put the ids into the PUF."
        )
    held = [source.frame[name] for name in ids]
    kept = [name for name in puf.names if name not in ids]
    whole = puf.replace(frame=puf.frame.select(named(kept)).with_columns(held))
    return whole.with_variables(
        source.variable(name) if name in ids else whole.variable(name) for name in whole.names
    )


def _in_another_order(puf: Microdata, source: Microdata, ids: Sequence[str]) -> bool:
    """Tell whether rows agree on no column more often than records paired at random do."""
    if puf.records < LEAST_ORDERED:
        return False
    order = np.random.default_rng(0).permutation(puf.records)
    judged = False
    for name in (one for one in puf.names if one in source.names and one not in ids):
        released, held = (data.column(name).cast(pl.String) for data in (puf, source))
        if not released.drop_nulls().is_in(held.drop_nulls().unique()).any():
            continue  # blank, or coded otherwise
        agree, chance = (
            int(released.eq_missing(other).sum()) / puf.records
            for other in (held, held.gather(order))
        )
        error = math.sqrt(2 * chance * (1 - chance) / puf.records) + 1 / puf.records
        if agree > chance + FAR_BEYOND * error:
            return False
        judged |= chance < MOST_CHANCE
    return judged


def blank_variables(puf: Microdata, link: Sequence[str]) -> tuple[str, ...]:
    """Return the linking variables of which a release tells nothing."""
    return tuple(
        name
        for name in link
        if name not in puf.names or puf.column(name).null_count() == puf.records
    )


def with_blanks(
    puf: Microdata, eif: Microdata, blank: Sequence[str]
) -> tuple[Microdata, list[str]]:
    """Take what a release does not tell as missing in every record, with a warning."""
    gone = [name for name in blank_variables(puf, blank) if name in eif.names]
    if not gone:
        return puf, []
    # Of the EIF's type, so that nothing is said of types that clash.
    empty = [pl.Series(name, [None] * puf.records, eif.column(name).dtype) for name in gone]
    kept = puf.select([name for name in puf.names if name not in gone])
    whole = kept.replace(frame=kept.frame.with_columns(empty))
    return whole, [
        f"{quoted(gone)} {'is' if len(gone) == 1 else 'are'} not in this release: taken as missing "
        f"in every record"
    ]


def linking_keys(scenario: ScenarioKey, eif: Microdata, question: Question) -> tuple[str, ...]:
    """Return what is linked on: as asked, or the key as far as the EIF has it, but for strata."""
    require_key(scenario)
    problems: list[str] = []
    strange = [name for name in question.link if name not in scenario.keys]
    if strange:
        template = (
            "{link} must be in the key of scenario {0!r}. Got {1} instead: nobody in the scenario "
            "can match them."
        )
        problems.append(Problem(template, scenario.name, quoted(strange)))
    if question.numeric:
        template = (
            "{numeric} and a scenario exclude each other: the key holds groups. Got {0} instead: "
            "leave it out."
        )
        problems.append(Problem(template, quoted(question.numeric)))
    held = [name for name in scenario.keys if name in eif.names]
    shared = question.link or tuple(name for name in held if name not in question.strata)
    if not shared:
        problems.append(
            f"the EIF {eif.name!r} has no column of the key of scenario {scenario.name!r}. Name "
            f"its columns as the target's."
        )
    if problems:
        raise OptionError(problems)
    return shared


_WEAR: dict[str, Kind] = {
    "columns": Columns("column to wear"),
    "error": Number(low=0, high=1),
    "missing": Number(low=0, high=1),
    "seed": Whole(low=0),
}
_SECTIONS: dict[str, Kind | None] = {
    "rename": WordsByColumn(),
    "recode": WordsByColumn(),
    "age": Amounts(each=Number()),
    "wear": None,
}


def read_preparation(given: Any) -> dict[str, Any]:
    """Read how an EIF is prepared, or say everything that is wrong with it."""
    plan = open_toml(given, "preparation") if isinstance(given, str | os.PathLike) else dict(given)
    problems = unknown_problems(_SECTIONS, plan, "prepare:")
    for name, kind in _SECTIONS.items():
        value = plan.get(name, {})
        if kind is not None and (fault := kind.fault(value)):
            problems.append(f"prepare: [{name}] must be {fault}.")
        elif kind is None and isinstance(value, Mapping):
            problems += unknown_problems(_WEAR, value, f"prepare: [{name}]")
            faults = {key: _WEAR[key].fault(value[key]) for key in _WEAR if key in value}
            problems += [f"prepare: [{name}] {k} must be {f}." for k, f in faults.items() if f]
        elif kind is None:
            problems.append(f"prepare: [{name}] must be a table.")
    if problems:
        raise OptionError(problems)
    return plan


def prepare_eif(eif: Microdata, given: Any) -> tuple[Microdata, tuple[str, ...]]:
    """Return the EIF as the preparation makes it, and what was done in words."""
    plan, said = read_preparation(given), []
    names = {old: new for new, old in plan.get("rename", {}).items()}
    problems = absent(names, eif.names, purpose="prepare: [rename]", where=repr(eif.name))
    taken = set(names.values()) & set(eif.names).difference(names)
    if taken:
        problems.append(f"prepare: [rename] makes {quoted(sorted(taken))}, which the EIF has.")
    if problems:
        raise ColumnError(problems)
    if names:
        variables = [replace(one, name=names.get(one.name, one.name)) for one in eif.variables]
        frame = eif.frame.rename({old: new for old, new in names.items() if old != new})
        eif = Microdata(frame, tuple(variables), eif.name, eif.origin)
        said.append(f"{plural(len(names), 'column')} renamed")
    for name, expression in plan.get("recode", {}).items():
        eif = _recoded(eif, name, expression)
    if plan.get("recode"):
        said.append(f"{plural(len(plan['recode']), 'column')} recoded")
    for name, years in plan.get("age", {}).items():
        eif.require([name], purpose="prepare: [age]")
        if not eif.column(name).dtype.is_numeric():
            raise ColumnError(f"prepare: [age] {name!r} must hold numbers. Got others instead.")
        held = eif.column(name)
        if held.dtype.is_integer():  # a year added to 255 of one byte would be 0
            ends: list[Any] = [held.min() or 0, held.max() or 0]
            if max(map(abs, ends)) > LARGEST or abs(years) > LARGEST:
                raise ColumnError(
                    f"prepare: [age] {name!r} and its years must be at most {LARGEST:,}."
                )
            held = held.cast(pl.Int64)
        kept = held + years
        eif = eif.replace(frame=eif.frame.with_columns(kept.alias(name)))
        said.append(f"{name} aged by {years:g}")
    worn, words = _worn(eif, plan.get("wear", {}))
    return worn, (f"The EIF was prepared: {'; '.join([*said, *words])}.",) * bool(said or words)


def _recoded(eif: Microdata, name: str, expression: str) -> Microdata:
    """Make a column of others, or of itself, in the place of one that has its name."""
    try:
        derivation = Derivation.of(name, expression)
        eif.require(derivation.columns, purpose=f"prepare: [recode] {name}: column")
        variable, codes = derive_codes(eif, derivation)
    except (InputError, ValueError) as error:
        raise OptionError(f"prepare: [recode] {name}: {error}") from None
    new = eif.replace(frame=eif.frame.with_columns(codes.decoded().alias(name)))
    return new.with_variables([variable])


def _worn(eif: Microdata, wear: Mapping[str, Any]) -> tuple[Microdata, list[str]]:
    """Exchange some values for those of other records, and blank some, by a seed."""
    error, missing = float(wear.get("error", 0)), float(wear.get("missing", 0))
    columns = eif.require(wear.get("columns", ()), purpose="prepare: [wear] column")
    if not columns or not (error or missing):
        return eif, []
    rng, made = np.random.default_rng(wear.get("seed", 1)), []
    for name in columns:
        values = eif.column(name)
        wrong, gone = (rng.random(eif.records) < share for share in (error, missing))
        others = values.gather(rng.permutation(eif.records))
        values = others.zip_with(pl.Series(wrong), values)
        made.append(values.set(pl.Series(gone), None).alias(name))
    worn = eif.replace(frame=eif.frame.with_columns(made))
    shares = f"{error:.1%} of the values exchanged and {missing:.1%} blank"
    return worn, [f"{shares} in {', '.join(columns)}"]
