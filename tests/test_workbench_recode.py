"""The page Recode: categories merged, numbers and dates cut, places by hierarchy."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workbench import REVIEW, Workbench, start
from tests.workbench_jobs import do_jobs_at_once

import keyhole
from keyhole.data import load
from keyhole.errors import OptionError
from keyhole.reviews.checks import read_review
from keyhole.workbench.live import CellCounter
from keyhole.workbench.page import SentForm
from keyhole.workbench.recoding import RecodedColumn, recoded_figures

pytestmark = pytest.mark.usefixtures("plain_charts")
KEYS = ["sex", "age", "zip", "born"]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    do_jobs_at_once(monkeypatch)


def people(records: int = 400) -> pl.DataFrame:
    draw = np.random.default_rng(3)
    days = draw.integers(0, 9000, records)
    return pl.DataFrame(
        {
            "sex": draw.choice(["f", "m", None], records),
            "age": pl.Series(draw.integers(0, 30, records)).replace({7: None}),
            "zip": [f"{one:04}" for one in draw.choice([1101, 1102, 1201, 2101, 2102], records)],
            "born": [date.fromordinal(date(1960, 1, 1).toordinal() + int(day)) for day in days],
            "income": draw.lognormal(10, 1, records).round(2),
        }
    )


def values(bench: Workbench) -> dict[str, Any]:
    read_review(bench.folder / "review.toml")
    return tomllib.loads((bench.folder / "review.toml").read_text())


def form_of(**values: str | list[str]) -> SentForm:
    return SentForm({name: one if isinstance(one, list) else [one] for name, one in values.items()})


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    frame = people().with_columns(pl.lit(1).alias("x"))
    frame = pl.concat([frame, frame[:1].with_columns(sex=pl.lit("hermit"))])
    frame.write_parquet(tmp_path / "people.parquet")
    text = REVIEW.replace("people.csv", "people.parquet")
    return start(tmp_path, text.replace('"sex", "age", "state"', '"sex", "age", "zip"'))


@pytest.mark.parametrize("missing", ["own", "wildcard", "drop"])
@pytest.mark.parametrize(
    ("column", "form"),
    [
        ("age", {"way": "cuts", "cuts": "5, 12 20"}),
        ("sex", {"way": "merge", "tick": ["0", "1"], "into": "person"}),
        ("zip", {"way": "prefix", "length": "2"}),
        ("zip", {"way": "merge", "group-0": "1201", "group-3": "west", "group-4": "west"}),
        ("born", {"unit": "decade"}),
        ("born", {"way": "cuts", "cuts": "1970-05-01, 1980-01-01"}),
        ("income", {"cuts": "10000.5, 30000"}),
    ],
)
def test_what_is_shown_while_it_moves_is_what_the_ledger_says(
    column: str, form: dict[str, Any], missing: Any, tmp_path: Path
) -> None:
    data, sent = load(people()), form_of(**form)
    one = RecodedColumn(data, column, 3, tmp_path)
    review: Any = SimpleNamespace(keys=KEYS, exposure=SimpleNamespace(missing=missing, cutoff=3))
    told = recoded_figures(one, sent, review, CellCounter(data))
    found = one.read(sent)
    plan = keyhole.ledger(data, found.steps, keys=KEYS, targets=[column], missing=missing)
    assert told["before"]["rp"] == plan.lines[0].rp
    assert told["after"]["rp"] == plan.lines[-1].rp
    assert told["after"]["uniques"] == plan.lines[-1].uniques
    assert told["lost"] == pytest.approx(plan.lines[-1].price.lost, abs=1e-12)
    made = load(data, derive={"made": found.expression})
    assert made.column("made").drop_nulls().n_unique() == len(set(found.members))


@given(
    rows=st.lists(st.tuples(*[st.sampled_from(["a", "b", "c", None])] * 4), min_size=1),
    asked=st.lists(st.sets(st.sampled_from("wxyz"), min_size=1), min_size=1, max_size=6),
    groups=st.lists(st.integers(0, 2), min_size=4, max_size=4),
)
def test_cells_follow_every_change_of_the_keys(
    rows: list[tuple[str | None, ...]], asked: list[set[str]], groups: list[int]
) -> None:
    frame = pl.DataFrame(rows, schema=dict.fromkeys("wxyz", pl.String), orient="row")
    data = load(frame)
    counter = CellCounter(data)
    for keys in map(sorted, asked):
        plain = frame.group_by(keys).len()
        assert sorted(counter.count(keys).sizes.tolist()) == sorted(plain["len"].to_list())
        held, risky = counter.levels_at_risk(3)[keys[0]]
        codes = data.codes(keys[0])
        at_risk = frame.with_columns(pl.len().over(keys).alias("f")).filter(pl.col("f") < 3)
        for at, level in enumerate(codes.levels.to_list()):
            assert held[at] == (frame[keys[0]] == level).sum()
            assert risky[at] == (at_risk[keys[0]] == level).sum()
        new = np.array(groups[: codes.size], np.int32)
        named = frame.with_columns(pl.Series(keys[0], new[codes.values]))
        sizes = counter.recoded(keys, keys[0], new).tolist()
        assert sorted(sizes) == sorted(named.group_by(keys).len()["len"].to_list())


def test_a_cut_becomes_a_step_and_another_takes_its_place(bench: Workbench) -> None:
    page = bench.get("recode?column=age&way=cuts").text
    assert "How the records spread" in page
    sent = {"column": "age", "way": "cuts", "do": "plan"}
    assert bench.post("recode/add?column=age", {**sent, "cuts": "ten"}).status_code == 422
    assert 'value="ten"' in bench.get("recode?column=age").text
    assert bench.post("recode/add?column=age", {**sent, "cuts": "20 10"}).status_code == 303
    step = {"method": "recode", "column": "age", "cuts": [10, 20]}
    assert values(bench)["protection"]["step"] == [step]
    bench.wait()
    assert 'value="10, 20"' in bench.get("recode?column=age").text
    merged = {"column": "sex", "way": "merge", "do": "plan", "group-rare": "m"}
    assert bench.post("recode/add?column=sex", merged).status_code == 303
    assert bench.post("recode/add?column=age", {**sent, "cuts": "15"}).status_code == 303
    rare = {"method": "recode", "column": "sex", "map": {"hermit": "m"}, "keep_rest": True}
    assert values(bench)["protection"]["step"] == [rare, {**step, "cuts": [15]}]
    assert bench.project.steps()[0] == "recode age"


def test_no_rare_value_and_none_at_all_is_named_unless_asked_for(bench: Workbench) -> None:
    hidden, page = bench.get("recode?column=sex").text, bench.get("recode?column=sex&values=shown")
    assert 'aria-label="f becomes"' not in hidden
    assert 'aria-label="f becomes"' in page.text
    assert "hermit" not in hidden + page.text
    assert "The 1 rarest" in page.text
    spread = RecodedColumn(load(people()), "age", 3, bench.folder).histogram()
    counts = people()["age"].drop_nulls().value_counts().sort("age")
    up = counts.with_columns(pl.col("count").cum_sum()).filter(pl.col("count") >= 3)
    assert spread["low"] == up["age"][0], "so many records that may be told of lie at the end"


def test_a_derived_column_stands_for_the_old_one(bench: Workbench) -> None:
    (bench.folder / "areas.csv").write_text(
        "zip,area\n1101,north\n1102,north\n1201,south\n2101,west\n2102,west\n"
    )
    sent = {"column": "zip", "way": "file", "file": "areas.csv", "do": "derive", "instead": "yes"}
    outside = {**sent, "file": "../areas.csv"}
    assert bench.post("recode/add?column=zip", outside).status_code == 422
    assert bench.post("recode/add?column=zip", {**sent, "name": "sex"}).status_code == 422
    told = bench.post("live", sent).json()
    answer = bench.post("recode/add?column=zip", {**sent, "name": "area"})
    assert answer.status_code == 303, answer.text
    review = values(bench)
    assert review["derive"] == {"area": 'map(zip, "areas.csv")'}
    assert review["keys"] == ["sex", "age", "area"]
    assert review["data"]["roles"] == {"zip": "drop"}
    bench.wait()
    found = bench.post("live", {"keys": review["keys"]}).json()
    below = sum(count for size, count in found["sizes"].items() if int(size) < 3)
    assert below / found["records"] == told["after"]["rp"]
    bench.bench.live.close()


def test_figures_come_without_scripts_and_from_the_resident_process(bench: Workbench) -> None:
    sent = {"column": "age", "way": "cuts", "cuts": "10"}
    answer = bench.post("recode/look?column=age", sent)
    page = bench.client.get(answer.headers["location"]).text
    told = bench.post("live", sent).json()
    assert f"{told['after']['uniques']:,}. 29 values become 2 categories" in page
    bench.post("recode/add?column=sex", {"column": "sex", "do": "plan", "group-rare": "m"})
    again = bench.post("live", sent).json()
    assert again["before"]["uniques"] <= told["before"]["uniques"], "other steps come first"
    assert "no longer in the file" in bench.post("recode/add", {"column": "nobody"}).text
    assert bench.post("live", {"column": "nobody"}).json()["problems"]
    assert bench.post("live", {"column": "age", "way": "merge?"}).json()["problems"]
    bench.bench.live.close()


def test_an_infinite_number_a_name_without_a_form_and_an_absurd_tick_are_borne() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, float("inf"), float("-inf")], "a\0": ["ab", "cd"] * 2})
    spread = RecodedColumn(load(frame), "x", 1, Path()).histogram()
    assert (spread["low"], spread["high"]) == (1, 3)
    code = RecodedColumn(load(frame), "a\0", 1, Path())
    with pytest.raises(OptionError, match=r"cannot be derived from: U\+0000 .* Rename it"):
        code.read(form_of(way="prefix", length="1"))
    with pytest.raises(OptionError, match="no category is merged"):
        code.read(form_of(way="merge", tick="9" * 5000, into="z"))


def test_a_column_of_lists_is_listed_and_not_recoded(tmp_path: Path) -> None:
    people().with_columns(many=pl.lit([1, 2])).write_parquet(tmp_path / "people.parquet")
    text = REVIEW.replace("people.csv", "people.parquet").replace('"age", "state"', '"age"')
    bench = start(tmp_path, text)
    assert "many" in bench.get("data?values=shown").text
    answer = bench.get("recode?column=many")
    assert answer.status_code == 200
    assert 'value="many"' not in answer.text
