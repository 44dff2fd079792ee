"""Small examples of what the functions of this part return."""

from dataclasses import dataclass
from typing import Annotated

import polars as pl
import pytest

from keyhole.core import (
    codec,
    equivalents,
    expressions,
    kinds,
    marks,
    names,
    notes,
    options,
    schemas,
    tables,
    tokens,
    toml,
    verbs,
)
from keyhole.data import deriving, inference, load
from keyhole.errors import FileError
from keyhole.results import share


def test_names_plural():
    assert (
        names.plural(1, "record"),
        names.plural(2000, "record"),
        names.plural(2, "category", "categories"),
    ) == ("1 record", "2,000 records", "2 categories")


def test_names_were():
    assert (names.were(1), names.were(2)) == ("was", "were")


def test_names_quoted():
    assert (names.quoted(["age", "sex"]), names.quoted("abc", most=2)) == (
        "'age', 'sex'",
        "'a', 'b' and 1 more",
    )


def test_names_nearest():
    assert names.nearest("agee", ["sex", "age", "AGE"]) == ["age", "AGE"]
    assert names.nearest("zzz", ["sex", "age"]) == []


def test_names_absent():
    assert names.absent(["agee"], ["age", "sex"], purpose="key") == [
        "key 'agee' is not a column of the data. Did you mean 'age'?"
    ]


def test_names_are_vouched():
    assert (
        names.are_vouched(["age", "sexx"], ["age", "sex"]),
        names.are_vouched(["age"], ["Jane", "Doe"]),
    ) == (True, False)


def test_names_repeated():
    assert names.repeated(["a", "b", "a"]) == ["a"]


def test_names_repeated_places():
    assert (
        names.repeated_places(["a", "b", "a", "c", "b", "a"])
        == "columns 1, 3 and 6; columns 2 and 5"
    )


def test_kinds_split_words():
    assert kinds.split_words('a, "b,c" ,d', ",") == ["a", "b,c", "d"]


def test_kinds_alternatives():
    assert (kinds.alternatives("age|age10"), kinds.alternatives('"a|b"|c')) == (
        ("age", "age10"),
        ("a|b", "c"),
    )


def test_kinds_listed_names():
    assert (
        kinds.listed_names("age"),
        kinds.listed_names(("age", "sex")),
        kinds.listed_names(3),
    ) == (["age"], ["age", "sex"], None)


def test_kinds_require_list():
    assert (kinds.require_list("age", "keys"), kinds.require_list(["age", "sex"], "keys")) == (
        ("age",),
        ("age", "sex"),
    )


def test_kinds_kind_problems():
    assert kinds.kind_problems("limit", kinds.Number(low=0, high=1), 2) == [
        "limit must be a number from 0 to 1. Got 2 instead."
    ]


def test_kinds_path_problems():
    assert (kinds.path_problems("out", None), kinds.path_problems("out", 3)) == (
        [],
        ["out must be the path of a file. Got 3 instead."],
    )


def test_expressions_read_definitions():
    assert expressions.read_definitions('age10 = band(age,10); "zip 3" = prefix(zip, 3)') == [
        ("age10", "band(age, 10)"),
        ("zip 3", "prefix(zip, 3)"),
    ]


def test_expressions_write_definition():
    assert expressions.write_definition("zip 3", "prefix(zip, 3)") == '"zip 3" = prefix(zip, 3)'


def test_expressions_source_columns():
    assert expressions.source_columns(
        expressions.parse_expression("join(sex, band(age, 10), sex)")
    ) == ("sex", "age")


def test_expressions_coding_files():
    assert expressions.coding_files(
        expressions.parse_expression('pool(map(job, "jobs.csv"), 10)')
    ) == ("jobs.csv",)


def test_expressions_definition_problems():
    assert expressions.definition_problems({"age": "band(age, 10)"}) == [
        "derived column 'age' must not be made from itself. Give it another name, such as 'age_2'."
    ]


def test_expressions_derivations_settle():
    assert expressions.Derivations().settle(["age10 = band(age,10)"]) == {"age10": "band(age, 10)"}


def test_options_name_as_flag():
    assert (options.name_as_flag("max_size"), options.name_as_flag("class_")) == (
        "--max-size",
        "--class",
    )


def test_options_unknown_problems():
    assert options.unknown_problems({"cutoff": 3}, {"cutof": 5}, "[exposure]") == [
        "[exposure] cutof is not a setting. Did you mean 'cutoff'?"
    ]


def test_options_shown_value():
    assert (
        options.shown_value("own"),
        options.shown_value([]),
        options.shown_value({"a": 1}),
        options.shown_value(None),
    ) == ("'own'", "an empty list", "a table", "none")


def test_tokens_tokenreader():
    reader = tokens.TokenReader("age >= 65", ">=|<=", "rule")
    assert [token.text for token in reader.tokens] == ["age", ">=", "65", ""]


def test_codec_to_plain():
    assert codec.to_plain({"rp": float("nan"), "cells": (1, 2), 3: float("inf")}) == {
        "rp": None,
        "cells": [1, 2],
        "3": None,
    }


def test_schemas_output_schema():
    assert schemas.output_schema("risk")["$defs"]["Exposure"]["properties"]["uniques"] == {
        "type": "integer",
        "minimum": 0,
        "description": "Records alone in their cell.",
    }


def test_schemas_schema_of():
    assert schemas.schema_of(tuple[int, ...]) == {"type": "array", "items": {"type": "integer"}}


def test_notes_collect_notes():
    assert notes.collect_notes(
        {"notes": [notes.Note("sample.kept", records=20)], "rows": [["a"]]}
    ) == [{"text": "20 records were kept", "code": "sample.kept", "values": {"records": 20}}]


def test_notes_restore_notes():
    kept = notes.collect_notes([notes.Note("sample.kept", records=2)])
    assert (
        notes.restore_notes({"notes": kept})["2 records were kept"].hiding(3)
        == "fewer than 3 records were kept"
    )


def test_notes_with_notes():
    note = notes.Note("sample.kept", records=2)
    assert (
        notes.with_notes({"notes": [str(note), "else"]}, {str(note): note})["notes"][0].code
        == "sample.kept"
    )


def test_expressions_derive_line():
    assert (
        expressions.derive_line("birth date", "year", "year({})")
        == '"birth date_year" = year("birth date")'
    )


def test_expressions_drop_line():
    assert str(expressions.drop_line("name")) == 'step = [{ method = "drop", columns = ["name"] }]'


def test_tables_table_to_plain():
    assert tables.Table.from_plain(tables.Table("Risk", ["step"], [["F1"]]).to_plain()).rows == [
        ["F1"]
    ]


def test_tables_table_to_html():
    assert (
        tables.Table("", ["step", "rp"], [["F1", "0.011"]]).to_html()[-77:]
        == '<tr><th scope="row">F1</th><td class="figure">0.011</td></tr></tbody></table>'
    )


def test_verbs_imported():
    assert verbs.imported("keyhole.errors.OptionError").__name__ == "OptionError"


def test_verbs_verb_named():
    assert (verbs.verb_named("risk").name, verbs.verb_named("environment list").name) == (
        "risk",
        "list",
    )


def test_equivalents_python_literal():
    assert str(equivalents.python_literal({"a": ("x", 2)})) == '{"a": ["x", 2]}'


def test_names_shown():
    assert (names.shown("sex\x1b[2J"), len(names.shown("a" * 200))) == (r"'sex\x1b[2J'", 62)


def test_expressions_without_tables():
    text = 'map(sex, {"f": "women", "m": "men"})'
    assert expressions.without_tables(text) == "map(sex, {…})"


def test_options_problem():
    problem = options.Problem("{rank_cap} must be {0}. Got {1} instead.", "above 0", 0)
    assert problem == "rank_cap must be above 0. Got 0 instead."
    assert problem.named(options.name_as_flag) == "--rank-cap must be above 0. Got 0 instead."


def count(data, *, cutoff: Annotated[int, options.Option("A size.", low=1)] = 3): ...


def test_options_told_with():
    with options.told_with(["'a.svg' exists."]):
        assert options.bind(count, {"cutoff": 0}).problems == (
            "cutoff must be a whole number of at least 1. Got 0 instead.",
            "'a.svg' exists.",
        )


@dataclass(frozen=True)
class Cells:
    keys: Annotated[tuple[str, ...], marks.PUBLIC]
    uniques: Annotated[int, marks.WHEN_SET]
    each: Annotated[object, marks.HIDDEN] = None


def test_codec_members_of():
    found = codec.members_of(Cells).items()
    assert [(name, one.has(marks.WHEN_SET)) for name, one in found] == [
        ("keys", False),
        ("uniques", True),
    ]


def test_codec_public_view():
    view = codec.PublicView(Cells(("age",), 3))
    assert view.keys == ("age",)
    with pytest.raises(AttributeError, match="'uniques' of Cells is not public"):
        view.uniques  # noqa: B018


def test_notes_note():
    note = notes.Note("suppress.values", values=1, records=1)
    assert note == "1 value in 1 record was suppressed (set to missing)"
    few = "fewer than 3 values in fewer than 3 records were suppressed (set to missing)"
    assert note.hiding(3) == few
    assert (note.code, note.values) == ("suppress.values", {"values": 1, "records": 1})


def test_toml_is_read_and_written():
    assert toml.parse_toml("a = 1", "x.toml") == {"a": 1}
    with pytest.raises(FileError, match=r"x\.toml is nested too deeply"):
        toml.parse_toml("a = " + "[" * 100_000, "x.toml")
    assert toml.quote('say "no"\n') == r'"say \"no\"\n"'
    assert toml.comment("one\ntwo") == "one\ufffdtwo"


def test_results_share():
    assert (share(0.64401), share(None)) == ("0.6440", "not estimable")


def test_equivalents_equivalent():
    question = {"keys": ["age", "home state"], "cutoff": 5}
    both = equivalents.equivalent("risk", question, "people.csv")
    assert both.command == "keyhole risk people.csv --keys 'age,home state' --cutoff 5"
    assert both.python == 'keyhole.risk("people.csv", keys=["age", "home state"], cutoff=5)'
    both = equivalents.equivalent(
        "risk", {"keys": "age"}, "p.csv", {"missing_codes": {"age": [-9]}}
    )
    assert both.command == "keyhole risk p.csv --keys age --missing-codes age:-9"
    loaded = 'keyhole.load("p.csv", missing_codes={"age": [-9]})'
    assert both.python == f'keyhole.risk({loaded}, keys=["age"])'
    both = equivalents.equivalent("environment list", {"store": "env.db", "what": "forms"})
    assert both.command == "keyhole environment list forms --store env.db"
    assert both.python == 'keyhole.environment.list_environment("env.db", "forms")'


def test_deriving_fit_derivations():
    people = load({"job": [*"aab"]}, derive="jobs = pool(job, 2)")
    fitted = {"jobs": 'map(job, {"a": "a"}, other="other")'}
    assert deriving.fit_derivations(people) == fitted


def test_inference_render_floats():
    numbers = pl.Series([1.5, 2.0])
    assert inference.render_floats(numbers, decimals=2).to_list() == ["1.50", "2.00"]
    assert inference.render_floats(numbers, trimmed=True).to_list() == ["1.5", "2"]
