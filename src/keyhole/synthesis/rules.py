"""Rules of consistency, which no synthetic record may break if its original kept them.

Strong relationships (Hawala & Funk, section 2.2: whoever served in a period has a certain age)
are written as conditions on the columns of a record, in a small language of their own
(`keyhole.synthesis.rule_language`), in TOML::

    [rules]
    vietnam = "served_vietnam => age >= 65"
    income = "income is missing or income >= 0"

or, where order matters, as ``[[rules]]`` with ``name`` and ``rule``. A rule is broken where it is
certainly false: with a value missing it may be unknown, which breaks nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.names import quoted, repeated
from keyhole.core.tokens import SyntaxProblem
from keyhole.core.toml import open_toml
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, FileError, OptionError
from keyhole.kernels.arrays import Flags
from keyhole.synthesis.rule_language import RuleBinder, RuleNode, parse_rule, rule_columns

MOST_RULES = 1_000
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its name, its text, and what it was read as."""

    name: str
    text: str
    tree: RuleNode

    @property
    def columns(self) -> frozenset[str]:
        """The columns it mentions."""
        return rule_columns(self.tree)


class EditRules:
    """Rules on the columns of a record.

    Examples
    --------
    >>> rules = EditRules.parse({"vietnam": "served => age >= 65"})
    >>> rules.names, sorted(rules.columns)
    (('vietnam',), ['age', 'served'])
    >>> people = pl.DataFrame({"served": [True, True, None], "age": [70, 40, 40]})
    >>> rules.broken(people).tolist()
    [[False], [True], [False]]
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.columns: frozenset[str] = frozenset().union(*(rule.columns for rule in self.rules))
        """The columns that any of the rules mentions."""
        self._last: tuple[tuple[tuple[str, pl.DataType], ...], BoundRules] | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> EditRules:
        """Read rules from a TOML file."""
        rules, problems = cls.sound(path)
        if problems:
            raise FileError(problems)
        return rules

    @classmethod
    def parse(cls, given: Mapping[str, str] | Sequence[Any]) -> EditRules:
        """Read rules from texts by name, or from a list of texts or of name and rule.

        Examples
        --------
        >>> EditRules.parse(["age >= 17", {"name": "paid", "rule": "income > 0"}])
        Rules: rule 1, paid
        >>> EditRules.parse({"a": "age >", "b": "age ? 5"})
        Traceback (most recent call last):
        ...
        keyhole.errors.OptionError: rule 'a', character 6: a value is expected, not the end.
        rule 'b', character 5: '?' means nothing in a rule. Put unusual column names in backquotes.
        """
        is_file = isinstance(given, str | os.PathLike)  # which `read` reads
        rules, problems = (cls([]), _named(given)[1]) if is_file else cls.sound(given)
        if problems:
            raise OptionError(problems)
        return rules

    @classmethod
    def sound(cls, given: Any) -> tuple[EditRules, list[str]]:
        """Return the rules that can be read, of a file too, and what is wrong with the others."""
        if isinstance(given, EditRules):
            return given, []
        where = ""
        if isinstance(given, str | os.PathLike):
            content, where = open_toml(given, "rules"), f"rules {str(given)!r}"
            strange = [key for key in content if key != "rules"]
            if strange or "rules" not in content:
                got = quoted(strange, most=3) if strange else "none"
                raise FileError(
                    f"{where} must have a table [rules], or tables [[rules]], and nothing else. "
                    f"Got {got} instead."
                )
            given, where = content["rules"], f"{where}: "
        named, problems = _named(given)
        rules = []
        for name, text in named:
            try:
                rules.append(Rule(name, text, parse_rule(text)))
            except SyntaxProblem as problem:
                problems.append(f"rule {name!r}, {problem}")
        return cls(rules), [f"{where}{problem}" for problem in problems]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(rule.name for rule in self.rules)

    def bind(self, schema: Mapping[str, pl.DataType] | Microdata) -> BoundRules:
        """Bind the rules to columns, or say everything that makes no sense in any of them."""
        if isinstance(schema, Microdata):
            data = schema
            known = self.columns & set(data.names)
            schema = {**data.frame.schema, **{name: data.column(name).dtype for name in known}}
        bound, problems = [], []
        for rule in self.rules:
            binder = RuleBinder(schema)
            expression = binder.condition(rule.tree)
            if expression is not None:
                bound.append((rule.name, expression, binder.flags))
            found = sorted(binder.problems, key=lambda problem: problem.at)
            problems += [f"rule {rule.name!r}, {problem}" for problem in found]
        if problems:
            raise ColumnError(problems)
        return BoundRules(tuple(bound))

    def broken(self, data: pl.DataFrame | Microdata) -> Flags:
        """Tell for each record (row) and rule (column) whether the record breaks it.

        A frame must have null where a value is missing, as `Microdata.column` gives it.
        """
        if isinstance(data, Microdata):
            bound = self.bind(data)
            return bound.broken(pl.DataFrame([data.column(n) for n in sorted(self.columns)]))
        schema = tuple(data.schema.items())
        if self._last is None or self._last[0] != schema:
            self._last = (schema, self.bind(data.schema))
        return self._last[1].broken(data)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"Rules: {', '.join(self.names) or 'none'}"


@dataclass(frozen=True, slots=True, eq=False)
class BoundRules:
    """Rules tied to columns: names, expressions, and the numbers used as conditions (0 or 1)."""

    bound: tuple[tuple[str, pl.Expr, list[RuleNode]], ...]

    def broken(self, frame: pl.DataFrame) -> Flags:
        """Tell for each record (row) and rule (column) whether the record breaks it."""
        # A number alone is a condition only if it says no more than yes or no.
        problems = [
            f"rule {name!r}, character {flag.at}: column {flag.value!r} is used as a condition "
            f"and must hold 0, 1 or nothing. Got other numbers instead: compare it, as in "
            f"{flag.value} == 1."
            for name, _, flags in self.bound
            for flag in flags
            if frame[flag.value].cast(pl.Float64).fill_nan(None).is_in([0.0, 1.0]).not_().any()
        ]
        if problems:
            raise ColumnError(problems)
        if not self.bound:
            return np.zeros((frame.height, 0), dtype=np.bool_)
        held = frame.select(
            expression.fill_null(True).alias(str(i))
            for i, (_, expression, _) in enumerate(self.bound)
        )
        broken = ~held.to_numpy().astype(np.bool_, copy=False)
        if held.height != frame.height:  # no rule depends on a value
            broken = np.repeat(broken[:1], frame.height, axis=0)
        return broken


def _named(given: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """Return names and texts, and what is wrong with either."""
    if isinstance(given, Mapping):
        pairs: list[tuple[Any, Any]] = list(given.items())
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        pairs = []
        for i, entry in enumerate(given, start=1):
            if isinstance(entry, Mapping) and set(entry) <= {"name", "rule"}:
                pairs.append((entry.get("name", f"rule {i}"), entry.get("rule")))
            else:
                pairs.append((f"rule {i}", entry) if isinstance(entry, str) else (None, None))
    else:
        got = type(given).__name__
        return [], [f"rules must be texts by name, or a list of rules. Got {got} instead."]
    if len(pairs) > MOST_RULES:
        return [], [f"rules must be at most {MOST_RULES:,}. Got {len(pairs):,} instead."]
    good, problems = [], []
    for i, (name, text) in enumerate(pairs, start=1):
        if isinstance(name, str) and isinstance(text, str):
            good.append((name, text))
            continue
        which = repr(name) if isinstance(name, str) and name.isprintable() else str(i)
        told = "must be a text, or a table of name and rule"
        problems.append(f"rule {which[:LONGEST_NAME]} {told}.")
    problems += [
        f"rule {i} must have a name of 1 to {LONGEST_NAME} printable characters."
        for i, (name, _) in enumerate(good, start=1)
        if not (0 < len(name) <= LONGEST_NAME and name.isprintable())
    ]
    if not problems:
        problems += [
            f"rule {n!r} is listed twice. Rename one." for n in repeated(n for n, _ in good)
        ]
    return ([] if problems else good), problems
