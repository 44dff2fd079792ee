"""Every remedy that is named can be carried out by the line beside it, with the same figures."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
import pytest

import keyhole


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    draw = np.random.default_rng(5)
    n = 600
    return pl.DataFrame(
        {
            "age": draw.integers(18, 99, n),
            "grade": draw.integers(1, 9, n) / 2,
            "zip": draw.choice(["02134", "03601", "10001", "94110"], n),
            "code": draw.choice([2134, 3601, 10001], n),
            "birth date": [
                date(1920 + y, m, 1)
                for y, m in zip(draw.integers(0, 80, n), draw.integers(1, 13, n), strict=True)
            ],
            "job": draw.choice([*"abcdefgh"], n, p=[0.6, 0.3, *[0.1 / 6] * 6]),
            "county": draw.choice(["Kent", "Essex", "Surrey"], n),
        }
    )


def test_every_fix_is_carried_out_by_its_line(people, tmp_path):
    data = keyhole.load(people, kinds={"grade": "measure", "age": "measure"})
    keys = ["age", "birth date", "job", "grade"]
    fixes = keyhole.cheapest_fix(data, keys=keys, limit=0.05).fixes
    assert {fix.action for fix in fixes} == {"drop", "regroup", "top-code", "bottom-code", "pool"}
    for fix in fixes:
        others = [key for key in keys if key != fix.variable]
        if fix.action == "drop":
            plan = tmp_path / "plan.toml"
            plan.write_text(fix.line, encoding="utf-8")
            left = keyhole.protect(data, plan=plan, keys=others).data.names
            assert left == tuple(name for name in data.names if name != fix.variable)
            continue
        derived = keyhole.derive(data, fix.line)
        made = derived.names[-1]
        found = keyhole.risk(derived, keys=[*others, made])
        assert (found.rp, found.cr) == (fix.rp, fix.cr), fix.line


def test_every_finding_of_safe_harbor_is_put_right_by_its_line(people):
    named = people.with_columns(pl.col("code").alias("zip code")).drop("code")
    found = [one for check in keyhole.screen(named).safe_harbor for one in check.findings]
    lines = {one.column: one.line for one in found}
    assert {"age", "zip", "birth date", "county", "zip code"} <= {*lines}
    assert 'method = "drop"' in lines["county"]
    derived = [line for line in dict.fromkeys(lines.values()) if "method" not in line]
    after = keyhole.derive(keyhole.load(named), derived)
    gone = {one.column for one in found}
    released = after.select(name for name in after.names if name not in gone)
    again = [one for check in keyhole.screen(released).safe_harbor for one in check.findings]
    assert not again
    assert {"000", "021"} <= {*released.column("zip_3")}
    assert {*released.column("zip code_3")} == {"000", "021", "100"}


def test_lines_are_printed_beside_the_remedies(people):
    assert "age_top = top(age, 90)" in keyhole.screen(people).summary()
    fixes = keyhole.cheapest_fix(people, keys=["age", "job"], limit=0.01)
    assert "age_band = band(age, " in fixes.summary()
    assert fixes.fixes[0].line in keyhole.risk(people, keys=["age", "job"], limit=0.01).summary()
