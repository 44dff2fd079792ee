"""Cell keys: the noise is that of the perturbation table, and the same for the same cell."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import keyhole
from keyhole.cli.main import app
from keyhole.errors import ColumnError, OptionError
from keyhole.protection.tables.rounding import KEYS, PerturbationTable

SEED = 20261117


def people(records=4000, seed=1):
    drawn = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": np.arange(records),
            "area": drawn.integers(0, 40, records),
            "trade": drawn.geometric(0.3, records).clip(max=9),
            "sex": drawn.integers(0, 2, records),
            "income": drawn.gamma(2.0, 20_000, records).round(),
            "weight": drawn.integers(1, 20, records),
        }
    )


def protected(frame, **options):
    return keyhole.table(frame, protect="cell-key", **{"seed": SEED, **options})


def values(table, *names):
    frame = table.to_frame()
    return {tuple(row[n] for n in names): row["value"] for row in frame.iter_rows(named=True)}


# --- the perturbation table -----------------------------------------------------------------------


def slow_noise(table, count, key):
    """Walk along the probabilities of a count until they exceed the key."""
    row, total = table.probabilities[min(count, len(table.probabilities) - 1)], 0.0
    for noise, chance in zip(table.noise, row, strict=True):
        total += chance
        if key / KEYS < total:
            return noise
    return max(noise for noise, chance in zip(table.noise, row, strict=True) if chance)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 8), st.floats(0.05, 60), st.integers(0, 5),
       st.lists(st.tuples(st.integers(0, 30), st.integers(0, KEYS - 1)), min_size=1))  # fmt: skip
def test_the_noise_is_unbiased_and_keeps_what_is_never_published(largest, variance, never, cells):
    never = min(never, largest - 1)
    table = PerturbationTable(largest, min(variance, largest**2), never)
    counts, keys = np.array(cells).T
    noise = table.look_up(counts, keys)
    assert noise.tolist() == [slow_noise(table, *cell) for cell in cells]
    after = counts + noise
    assert not ((after < 0) | ((after > 0) & (after <= never))).any()
    assert (noise[counts == 0] == 0).all()
    assert np.abs(table.probabilities @ table.noise).max() < 1e-8
    assert table.probabilities.sum(axis=1) == pytest.approx(1)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 8), st.floats(0.05, 60), st.integers(0, 5))
def test_the_variance_is_as_asked_where_it_can_be(largest, variance, never):
    variance, never = min(variance, largest**2), min(never, largest - 1)
    table = PerturbationTable(largest, variance, never)
    for count, found in enumerate(table.variances[1:], 1):
        after = count + table.noise
        fit = table.noise[(after >= 0) & ((after == 0) | (after > never))]
        below, above = fit[fit < 0], fit[fit > 0]
        least = 0 if 0 in fit else -below.max() * above.min()
        most = -below.min() * above.max()
        assert found == pytest.approx(min(max(variance, least), most), abs=1e-6)


def test_the_noise_of_many_cells_is_distributed_as_the_table_says():
    table = PerturbationTable(5, 2.0, 2)
    keys = np.random.default_rng(SEED).integers(0, KEYS, 100_000)
    for count in (1, 2, 4, 7, 500):
        noise = table.look_up(np.full(len(keys), count), keys)
        chances = table.probabilities[min(count, len(table.probabilities) - 1)]
        found = np.bincount(noise + 5, minlength=11)
        expected = chances * len(keys)
        there = expected > 0
        assert (found[~there] == 0).all()
        squares = ((found - expected)[there] ** 2 / expected[there]).sum()
        assert squares < 35  # of at most 10 degrees of freedom: once in 10,000 times


def test_tables_that_differ_by_one_person_show_it_as_often_as_is_said():
    table = PerturbationTable(5, 2.0, 2)
    one, other = np.random.default_rng(SEED).integers(0, KEYS, (2, 100_000))
    many = np.full(len(one), 50)
    alike = (table.look_up(many, one) == table.look_up(many + 1, other)).mean()
    assert alike == pytest.approx(table.differences_shown, abs=0.01)


# --- tables ---------------------------------------------------------------------------------------


def test_the_same_cell_has_the_same_value_in_every_table():
    frame = people()
    areas = values(protected(frame, rows="area"), "area")
    both = values(protected(frame, rows="area", cols="sex"), "area", "sex")
    for (area,), value in areas.items():
        assert both[area, "Total"] == value
    alone = protected(frame.filter(pl.col("sex") == 1), rows="area", record_id="id")
    whole = protected(frame, rows="area", cols="sex", record_id="id")
    for (area,), value in values(alone, "area").items():
        assert values(whole, "area", "sex")[area, "1"] == value


def test_record_ids_give_the_same_table_in_any_order():
    frame = people()
    shuffled = frame.sample(fraction=1, shuffle=True, seed=3)
    tables = [protected(one, rows="area", cols="sex", record_id="id") for one in (frame, shuffled)]
    assert tables[0].to_frame().equals(tables[1].to_frame())
    other = protected(frame, rows="area", cols="sex", record_id="id", seed=SEED + 1)
    assert not tables[0].to_frame().equals(other.to_frame())


def test_zeros_stay_and_small_counts_are_never_published():
    frame = people(600)
    found = protected(frame, rows="area", cols="trade", smallest_published=4, noise=6)
    true = found.internal.table.values
    assert (found.shown[true == 0] == 0).all()
    assert not ((found.shown > 0) & (found.shown < 4)).any()
    assert (found.shown >= 0).all()
    assert np.abs(found.shown - true).max() <= 6
    counted = frame.group_by("area", "trade").len()
    cells = values(found, "area", "trade")
    assert all(
        abs(cells[str(area), str(trade)] - size) <= 6 for area, trade, size in counted.iter_rows()
    )


def test_the_noise_of_a_table_has_mean_0_and_the_variance_asked_for():
    frame = people(60_000)
    off = []
    for seed in range(1, 21):
        found = protected(frame, rows="area", cols="trade", noise=5, noise_variance=3.0, seed=seed)
        large = found.internal.table.counts > 10
        off.append((found.shown - found.internal.table.values)[large])
    noise = np.concatenate(off)
    assert abs(noise.mean()) < 4 * (3 / len(noise)) ** 0.5
    assert noise.var() == pytest.approx(3, rel=0.1)


def test_the_noise_of_100_000_cells_is_that_of_the_perturbation_table():
    row, col = np.random.default_rng(SEED + 1).integers(0, 320, (2, 500_000))
    frame = pl.DataFrame({"row": row, "col": col})
    found = protected(frame, rows="row", cols="col").internal
    inner = ~found.table.margin
    true, noise = found.table.counts[inner], (found.shown - found.table.values)[inner].astype(int)
    assert len(true) == 102_400
    expected = PerturbationTable(5, 2.0, 2)
    assert (noise[true == 0] == 0).all()
    for count in range(1, len(expected.probabilities)):
        there = true == count if count < len(expected.probabilities) - 1 else true >= count
        chances = expected.probabilities[count] * there.sum()
        seen = np.bincount(noise[there] + 5, minlength=11)
        assert (seen[chances == 0] == 0).all()
        some = chances > 0
        assert ((seen - chances)[some] ** 2 / chances[some]).sum() < 40
    many = true >= 8
    assert noise[many].var() == pytest.approx(2.0, rel=0.05)


def test_totals_that_add_up_are_the_sums_of_their_cells():
    found = protected(people(), rows="area", cols="sex", add_up=True)
    grid = found.shown.reshape(found.shape)
    assert (grid[:-1].sum(axis=0) == grid[-1]).all()
    assert (grid[:, :-1].sum(axis=1) == grid[:, -1]).all()
    apart = protected(people(), rows="area", cols="sex")
    inner = ~found.internal.table.margin
    assert (found.shown == apart.shown)[inner].all()
    assert "totals are sums" in str(found)
    assert "do not add up" in str(apart)


def test_weighted_counts_have_the_noise_of_their_records():
    frame = people()
    found = protected(frame, rows="area", weight="weight")
    plain = protected(frame, rows="area")
    true = found.internal.table
    each = true.values / true.counts
    assert found.shown == pytest.approx(true.values + each * (plain.shown - true.counts))


def test_amounts_are_off_by_a_share_of_the_largest_contribution():
    frame = people()
    found = protected(frame, rows="area", cols="trade", magnitude="income", noise_percent=(5, 20))
    true = found.internal.table
    there = true.counts > 0
    share = (found.shown - true.values)[there] / true.largest[there, 0]
    assert (np.abs(share) >= 0.05 - 1e-9).all()
    assert (np.abs(share) <= 0.20 + 1e-9).all()
    assert abs(share.mean()) < 0.02
    assert (found.shown[~there] == 0).all()


def test_what_an_outsider_can_derive_is_told_and_what_can_be_worked_out_is_refused():
    """A total of 3 in a table with noise of at most 1 leaves cells of 1 no room at all."""
    frame = pl.DataFrame({"area": ["a"] * 60 + ["b"] * 2, "sex": [0, 1] * 30 + [0, 1]})
    found = protected(frame, rows="area", cols="sex", noise=5)
    audit = found.internal
    assert (audit.low <= audit.table.values).all()
    assert (audit.high >= audit.table.values).all()
    assert (audit.high - audit.low >= 1)[audit.unsafe.cells].all()
    assert "show the true difference with probability 0." in " ".join(audit.said())
    assert "probability" not in str(found)


@pytest.mark.parametrize("options", [{"protect": "round"}, {"protect": "cell-key"}])
def test_a_category_left_with_zeros_has_no_row(options):
    """One person has trade c: a row of zeros would tell that somebody has it."""
    frame = pl.DataFrame({"area": [0, 1] * 30 + [0], "trade": ["a"] * 20 + ["b"] * 40 + ["c"]})
    seen = set()
    for seed in range(1, 30):
        found = keyhole.table(frame, rows="trade", cols="area", seed=seed, **options)
        assert {cell.get("trade") for cell in found.internal.table.cells} == {"a", "b", "c", None}
        assert np.prod(found.shape) == len(found.shown) == len(found.cells)
        for i, levels in enumerate(found.levels):
            grid = np.moveaxis(found.shown.reshape(found.shape), i, 0)
            assert all(grid[place].any() for place in range(len(levels)))
        kept = {(cell.get("trade"), cell.get("area")): cell["value"] for cell in found.cells}
        audit = found.internal
        for row in audit.to_frame().iter_rows(named=True):
            place = row["trade"], int(row["area"]) if row["area"] != "Total" else None
            place = tuple(None if one == "Total" else one for one in place)
            assert kept.get(place, 0) == row["shown"]
        seen.add("c" in found.levels[0])
    assert False in seen
    assert (True in seen) == (options["protect"] == "cell-key")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"protect": "cell-key"}, "needs seed"),
        ({"noise": 3}, "noise needs protect to be 'cell-key'"),
        ({"protect": "cell-key", "seed": 1, "noise": 2, "noise_variance": 5}, "at most the square"),
        (
            {"protect": "cell-key", "seed": 1, "smallest_published": 9},
            "at least smallest_published",
        ),
        ({"protect": "cell-key", "seed": 1, "record_id": "area"}, "must not be tabulated"),
        ({"protect": "cell-key", "seed": 1, "noise": 0}, "noise must be"),
        ({"protect": "cell-key", "seed": 1, "noise_percent": (9, 3)}, "Got '9,3' instead"),
        ({"protect": "cell-key", "seed": 1, "noise_percent": (3, 9)}, "noise_percent needs magnit"),
        (
            {"protect": "cell-key", "seed": 1, "magnitude": "income", "noise": 4},
            "noise is for counts, and magnitude for sums",
        ),
        ({"protect": "round", "cost": "cells"}, "cost needs protect to be 'suppress'"),
        ({"range_percent": 20}, "range_percent needs magnitude or weight"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, said):
    with pytest.raises(OptionError) as caught:
        keyhole.table(people(100), rows="area", **options)
    assert said in str(caught.value)
    assert str(SEED) not in str(caught.value)


def test_the_command_publishes_the_table_and_not_the_seed(tmp_path):
    people().write_csv(tmp_path / "people.csv")
    words = f"table {tmp_path}/people.csv --rows area --cols sex --protect cell-key --json"
    words += f" --record-id id --seed {SEED}"
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["protect"] == "cell-key"
    assert str(SEED) not in done.output
    assert any("random noise" in note for note in said["notes"])


def test_any_seed_will_do_and_ids_must_tell_records_apart():
    frame = people(400).with_columns(same=pl.lit(1), blank=pl.lit(None, pl.Int64))
    assert protected(frame, rows="sex", seed=0).shown.size == 3
    for name in ("same", "blank"):
        with pytest.raises(ColumnError, match="must have a value of its own for each record"):
            protected(frame, rows="sex", record_id=name)
    with pytest.raises(OptionError, match="names each column once"):
        protected(frame, rows=["sex", "sex"])


def test_only_counts_below_the_smallest_that_is_published_are_never_seen():
    """A cell of three may stay one of three, and is never shown as one or two."""
    frame = pl.DataFrame({"id": range(900), "area": [i // 3 for i in range(900)]})
    found = keyhole.table(
        frame, rows="area", protect="cell-key", seed=SEED, smallest_published=3, noise=4,
    )  # fmt: skip
    seen = {cell["value"] for cell in found.cells if not cell["total_over"]}
    assert {3, 4, 5} <= seen
    assert seen.isdisjoint({1, 2})
