"""The language of rules, against a slow evaluator of its own and against hostile input."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.core.tokens import DEEPEST
from keyhole.core.tokens import SyntaxProblem as RuleProblem
from keyhole.data import Variable
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, FileError, OptionError
from keyhole.synthesis.rule_language import parse_rule, rule_columns
from keyhole.synthesis.rules import EditRules

PEOPLE = pl.DataFrame(
    {
        "age": pl.Series([70, 40, None, 17], dtype=pl.UInt8),
        "served": [True, True, True, False],
        "state": ["NY", None, "CA", "TX"],
        "income": [0.1, 0.2, float("nan"), -1.0],
        "born": [date(1954, 5, 1), date(1984, 5, 1), None, date(2007, 5, 1)],
        "entered": [date(1972, 5, 1), date(2000, 5, 1), date(2001, 1, 1), None],
        "pow": [1, 0, None, 0],
        "age at entry": [18, 16, 20, None],
    }
)


def broken(rule: str, frame: pl.DataFrame = PEOPLE) -> list[bool]:
    return EditRules.parse([rule]).broken(frame)[:, 0].tolist()


@pytest.mark.parametrize(
    ("rule", "records"),
    [
        ("served => age >= 65", [1]),
        ("served implies age >= 65", [1]),
        ("age = 70 or age <> 40", [1]),
        ("not age < 18", [3]),
        ("age - 65 >= 0", [1, 3]),
        ("state in ('NY', 'CA')", [3]),
        ("state not in ('NY',)", [0]),
        ("state is missing", [0, 2, 3]),
        ("age is not missing", [2]),
        ("income is not missing", [2]),
        ("income * 3 == 0.3 or income != 0.1", []),
        ("born < 1984-05-01", [1, 3]),
        ("entered - born >= 17 * 365", [1]),
        ("entered + 31 > 1972-06-01 or entered is missing", [0]),
        ("pow => age > 80", [0]),
        ("pow or age < 50", []),
        ("served == true", [3]),
        ("served and (age > 50) == (pow = 1)", [3]),
        ("`age at entry` >= 17", [1]),
        ("age IS MISSING OR 1 < 2", []),
        ("-age < -17", [3]),
        ("age / pow > 5", []),
        ("age in (-1, 70.0, 40)", [3]),
        ("born in (1954-05-01, 1984-05-01)", [3]),
        ("state >= 'NY'", [2]),
        ("age >= 17 => age >= 18 => age >= 41", [1]),
    ],
)
def test_which_records_break_a_rule(rule: str, records: list[int]) -> None:
    assert np.flatnonzero(broken(rule)).tolist() == records


def test_a_number_with_decimals_is_a_condition_where_it_says_yes_or_no() -> None:
    frame = pl.DataFrame({"pow": [1.0, 0.0, None, float("nan")], "age": [70.5, 90, 90, 90]})
    assert broken("pow => age > 80", frame) == [True, False, False, False]
    with pytest.raises(ColumnError, match="column 'age' is used as a condition and must hold 0, 1"):
        broken("age => pow", frame)


def test_several_rules_are_columns_in_order() -> None:
    rules = EditRules.parse({"adult": "age >= 18", "earner": "income >= 0"})
    assert rules.names == ("adult", "earner")
    assert rules.columns == {"age", "income"}
    assert rules.broken(PEOPLE).tolist() == [[False] * 2, [False] * 2, [False] * 2, [True] * 2]
    assert len(rules) == 2


def strip(node: object) -> object:
    """Leave out where a part stands."""
    if isinstance(node, tuple):
        return tuple(strip(part) for part in node)
    if not hasattr(node, "__slots__"):
        return node
    parts = [strip(getattr(node, name)) for name in node.__slots__ if name != "at"]
    return (type(node).__name__, *parts)


@pytest.mark.parametrize(
    ("loose", "tight"),
    [
        ("a or b and not c => d", "((a or (b and (not c))) => d)"),
        ("a => b => c", "a => (b => c)"),
        ("a - b - c < d * e + f", "((a - b) - c) < ((d * e) + f)"),
        ("a / b / c = -d + e", "((a / b) / c) = ((-d) + e)"),
        ("not a = b", "not (a = b)"),
        ("a and b or c and d", "(a and b) or (c and d)"),
    ],
)
def test_signs_bind_as_the_table_says(loose: str, tight: str) -> None:
    assert strip(parse_rule(loose)) == strip(parse_rule(tight))


# A slow evaluator: a rule as nested tuples, written out and evaluated record by record.

VALUES = {
    "a": [None, -2, 0, 1, 3],
    "b": [None, -1.5, 0.0, 1.0, 2.5],
    "t": [None, "x", "yy", "it's"],
    "d": [None, date(2000, 1, 1), date(2001, 1, 1)],
    "p": [None, True, False],
}
COMPARE = {
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}
numbers = st.recursive(
    st.one_of(
        st.sampled_from([("column", "a"), ("column", "b")]),
        st.sampled_from([0, 1, 2.5, 3]).map(lambda v: ("number", v)),
    ),
    lambda part: st.one_of(
        st.tuples(st.sampled_from("+-*/"), part, part), st.tuples(st.just("minus"), part)
    ),
    max_leaves=4,
)
texts = st.sampled_from([("column", "t"), ("text", "x"), ("text", "it's")])
dates = st.sampled_from([("column", "d"), ("date", date(2000, 7, 1)), ("date", date(2001, 1, 1))])
conditions = st.recursive(
    st.one_of(
        st.tuples(st.sampled_from(sorted(COMPARE)), numbers, numbers),
        st.tuples(st.sampled_from(sorted(COMPARE)), texts, texts),
        st.tuples(st.sampled_from(sorted(COMPARE)), dates, dates),
        st.tuples(st.sampled_from(["in", "not in"]), numbers, st.just((0, 2.5, 3))),
        st.tuples(st.sampled_from(["is missing", "is not missing"]), st.one_of(numbers, texts)),
        st.just(("column", "p")),
    ),
    lambda part: st.one_of(
        st.tuples(st.sampled_from(["and", "or", "=>"]), part, part),
        st.tuples(st.just("not"), part),
    ),
    max_leaves=6,
)


def written(tree: tuple) -> str:
    match tree:
        case ("column", name):
            return f"`{name}`"
        case ("number", value):
            return str(value)
        case ("text", value):
            return "'" + value.replace("'", "''") + "'"
        case ("date", value):
            return value.isoformat()
        case ("minus", part):
            return f"(-{written(part)})"
        case ("not", part):
            return f"(not {written(part)})"
        case ("is missing" | "is not missing", part):
            return f"({written(part)} {tree[0]})"
        case ("in" | "not in", part, items):
            return f"({written(part)} {tree[0]} ({', '.join(map(str, items))}))"
    return f"({written(tree[1])} {tree[0]} {written(tree[2])})"


def evaluated(tree: tuple, record: dict) -> object:
    """Give the value of a part, None where it is missing or unknown."""
    kind, *parts = tree
    if kind == "column":
        return record[parts[0]]
    if kind in ("number", "text", "date"):
        return parts[0]
    if kind in ("in", "not in"):
        value = evaluated(parts[0], record)
        return None if value is None else (value in parts[1]) == (kind == "in")
    values = [evaluated(part, record) for part in parts]
    if kind in ("is missing", "is not missing"):
        return (values[0] is None) == (kind == "is missing")
    if kind in ("and", "or", "=>", "not"):
        return logic(kind, *values)
    if None in values or (kind == "/" and values[1] == 0):
        return None
    if kind == "minus":
        return -values[0]
    if kind in COMPARE:
        return compared(kind, *values)
    x, y = values
    return {"+": x + y, "-": x - y, "*": x * y}[kind] if kind != "/" else x / y


def compared(sign: str, x: object, y: object) -> bool:
    if isinstance(x, int | float) and abs(x - y) <= 1e-9 * max(abs(x), abs(y), 1):
        return sign in ("==", "<=", ">=")
    return COMPARE[sign](x, y)


def logic(kind: str, x: bool | None, y: bool | None = None) -> bool | None:
    """Kleene's tables, by trying what the unknown could be."""
    meaning = {
        "and": lambda a, b: a and b,
        "or": lambda a, b: a or b,
        "=>": lambda a, b: not a or b,
        "not": lambda a, _: not a,
    }[kind]
    could = {meaning(a, b) for a in maybe(x) for b in maybe(y)}
    return could.pop() if len(could) == 1 else None


def maybe(x: bool | None) -> list[bool]:
    return [True, False] if x is None else [x]


def everybody() -> pl.DataFrame:
    generator = np.random.default_rng(5)
    drawn = {n: [v[i] for i in generator.integers(len(v), size=60)] for n, v in VALUES.items()}
    return pl.DataFrame(drawn, schema_overrides={"a": pl.Int8})


@settings(max_examples=150, deadline=None)
@given(conditions)
def test_rules_agree_with_a_slow_evaluator(tree: tuple) -> None:
    frame = everybody()
    text = f"({written(tree)}) and (a is missing or a is not missing)"
    expected = [evaluated(tree, record) is False for record in frame.iter_rows(named=True)]
    assert broken(text, frame) == expected


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab1.5 ()<>=!-+*/,'\"`\0\n√‮andortisTRUE"), max_size=40))
def test_any_text_is_a_rule_or_a_problem(text: str) -> None:
    try:
        tree = parse_rule(text)
    except RuleProblem as caught:
        tree, problem = None, caught
    if tree is None:
        assert 1 <= problem.at <= len(text) + 1
        assert problem.text
    else:
        assert rule_columns(tree)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 10**6,
        "(" * 10**4 + "a" + ")" * 10**4,
        "not " * 3_000 + "a",
        "-" * 10_000 + "a > 1",
        "a => " * 3_000 + "a",
        "a > " + " + ".join(["1"] * 4_000),
        "a > 1\0",
        "a = 'x\0y'",
        "a ＝ 1",
        "a > 1 \u202e",
        "a = '\ud800'",
        "",
        "   ",
        "'unclosed",
        "`unclosed",
        "1 < 2",
        "a < 1e999",
        "a = 12abc",
        "a = 2020-13-45",
        "1 < a < 3",
        "a )",
        "(a > 1",
        "a in 3",
        "a in (b)",
        "a in ()",
        "a is 3",
        "a not 3",
        "and",
        "import os",
        "__import__('os').system('x')",
        "a; b",
        "a.b()",
    ],
)
def test_a_bad_rule_is_one_message(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        EditRules.parse({"bad": text})
    assert len(caught.value.problems) == 1
    message = str(caught.value)
    assert message.startswith("rule 'bad', character ")
    assert len(message) < 300
    assert all(c.isprintable() for c in message)


def test_long_chains_and_lists_are_no_nesting() -> None:
    chain = " and ".join(["age > 0"] * 1_500)
    listed = f"age in ({', '.join(map(str, range(3_000)))})"
    assert broken(chain) == [False] * 4
    assert broken(listed) == [False] * 4


def test_nested_quotients_stay_small() -> None:
    # Each level written out twice would be a thousand thousand million terms, and never done.
    rule = "1" + "/(1" * 40 + "+ age" + ")" * 40 + " > 0"
    assert broken(rule) == [False] * 4


def test_all_problems_of_all_rules_are_told_with_their_place() -> None:
    rules = EditRules.parse(
        {
            "one": "agee > 5 and state = 3",
            "two": "served < true",
            "three": "born > '2000-01-01' or state + 1 = 2",
            "four": "state => served",
            "five": "age in (1, 'x')",
        }
    )
    with pytest.raises(ColumnError) as caught:
        rules.bind(PEOPLE.schema)
    problems = caught.value.problems
    assert [p.split(":")[0] for p in problems] == [
        "rule 'one', character 1",
        "rule 'one', character 22",
        "rule 'two', character 8",
        "rule 'three', character 8",
        "rule 'three', character 30",
        "rule 'four', character 1",
        "rule 'five', character 12",
    ]
    assert "Did you mean 'age'" in problems[0]
    assert "quotes" in problems[1]
    assert "without quotes" in problems[3]


def test_syntax_problems_of_all_rules_are_told_at_once() -> None:
    with pytest.raises(OptionError) as caught:
        EditRules.parse({"one": "age >", "two": "age > 1", "three": "(age"})
    assert [p.split(",")[0] for p in caught.value.problems] == ["rule 'one'", "rule 'three'"]


def test_a_number_alone_is_a_condition_only_if_it_is_0_or_1() -> None:
    rules = EditRules.parse({"flag": "age => served"})
    with pytest.raises(ColumnError, match=r"character 1: column 'age' .* 0, 1") as caught:
        rules.broken(PEOPLE)
    assert "70" not in str(caught.value)


def test_declared_missing_codes_are_missing() -> None:
    frame = pl.DataFrame({"age": [-9, 12, 30], "sex": ["1", "9", ""]})
    data = Microdata(
        frame,
        (
            Variable("age", "measure", missing_codes=(-9,)),
            Variable("sex", "category", missing_codes=(9,)),
        ),
    )
    rules = EditRules.parse(["age >= 18", "sex = '1'", "sex is missing"])
    assert rules.broken(data).T.tolist() == [
        [False, True, False],
        [False, False, False],
        [True, False, False],
    ]


def test_types_that_compare_in_a_way_of_their_own() -> None:
    frame = pl.DataFrame(
        {
            "big": pl.Series([2**63 + 5, 1], dtype=pl.UInt64),
            "grade": pl.Series(["b", "a"], dtype=pl.Categorical),
            "price": pl.Series(["1.10", "2.20"]).cast(pl.Decimal(scale=2)),
            "seen": [datetime(2020, 1, 1, 12), datetime(2019, 12, 31)],
            "none": [None, None],
            "list": [[1], [2]],
        }
    )
    assert broken("big > 10", frame) == [False, True]
    assert broken("grade = 'a'", frame) == [True, False]
    assert broken("price + price = 2.2", frame) == [False, True]
    assert broken("seen > 2020-01-01", frame) == [False, True]
    assert broken("none > 3", frame) == [False, False]
    assert broken("none => none in (1, 2)", frame) == [False, False]
    assert broken("none is missing", frame) == [False, False]
    with pytest.raises(ColumnError, match="'list' holds values that rules cannot compare"):
        broken("list = 1", frame)


def test_no_records_and_no_rules() -> None:
    assert EditRules.parse({"a": "age > 1", "b": "age > 2"}).broken(PEOPLE.clear()).shape == (0, 2)
    nothing = pl.DataFrame({"none": pl.Series([], dtype=pl.Null)})
    assert EditRules.parse(["none > 1"]).broken(nothing).shape == (0, 1)
    assert EditRules.parse({}).broken(PEOPLE).shape == (4, 0)


def test_toml_of_either_shape(tmp_path) -> None:
    table, tables = tmp_path / "table.toml", tmp_path / "tables.toml"
    table.write_text('[rules]\nadult = "age >= 18"\nny = \'state = "NY"\'\n', encoding="utf-8")
    tables.write_text(
        '[[rules]]\nname = "adult"\nrule = "age >= 18"\n[[rules]]\nrule = "age < 99"\n',
        encoding="utf-8",
    )
    assert EditRules.read(table).names == ("adult", "ny")
    assert EditRules.read(tables).names == ("adult", "rule 2")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", r"\[rules\]"),
        (b"[rule]\na = 'age > 1'", "'rule'"),
        (b"rules = 3", "Got int instead"),
        (b"[rules]\na = 3", "rule 'a' must be a text"),
        (b"[[rules]]\nname = 'a'", "rule 'a' must be a text"),
        (b"[[rules]]\nnom = 'a'\nrule = 'age > 1'", "rule 1 must be a text"),
        (b"[[rules]]\nname = 'a'\nrule = 'b > 1'\n[[rules]]\nname = 'a'\nrule = 'c > 1'", "twice"),
        (b"[rules]\n'' = 'age > 1'", "rule 1 must have a name"),
        (b"[rules]\na = 'age >'", "rule 'a', character 6"),
        (b"\xff\xfe", "UTF-8"),
        (b"a = ", "TOML"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_files_that_are_no_rules(tmp_path, content: bytes, says: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_bytes(content)
    with pytest.raises(FileError, match=says) as caught:
        EditRules.read(path)
    assert str(path)[-10:] in str(caught.value)


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        EditRules.read(tmp_path / "none.toml")


@pytest.mark.parametrize("given_rules", ["age > 1", 3, None, [3], {"a": 3}, {3: "age > 1"}])
def test_what_is_no_rules(given_rules: object) -> None:
    with pytest.raises(OptionError, match="rule"):
        EditRules.parse(given_rules)


@pytest.mark.parametrize("before", ["not a = 1 and ", "(a = 1) and ", "a = -(-(1)) and "])
def test_what_was_left_again_is_not_nested(before):
    """The depth of a rule is that of its deepest part, however many there were before."""
    opened, closed = "(" * (DEEPEST - 1), ")" * (DEEPEST - 1)
    assert parse_rule(f"{before * 20}a = {opened}1{closed}")
    with pytest.raises(RuleProblem, match="nested more than"):
        parse_rule(f"{before * 20}a = {opened}(1){closed}")
