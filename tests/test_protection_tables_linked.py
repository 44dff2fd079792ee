"""Hierarchies and linked tables, attacked by a program of our own; registers and files."""

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from keyhole.cli.main import run
from keyhole.errors import InputError, OptionError
from keyhole.protection.tables import publication, suppression, table
from keyhole.protection.tables.attackers import Witnesses
from keyhole.protection.tables.cells import Linked
from keyhole.protection.tables.hierarchies import read_code_list, tree_of
from keyhole.protection.tables.hypercubes import Hypercubes, joint_axes


def people(seed, records=300, areas=3, parts=4):
    rng = np.random.default_rng(seed)
    area = rng.integers(0, areas, records)
    return pl.DataFrame(
        {
            "area": area,
            "part": area * 10 + rng.geometric(0.45, records).clip(max=parts),
            "within": rng.integers(1, parts, records),  # codes that every area has
            "sex": rng.choice(["f", "m"], records, p=[0.25, 0.75]),
            "trade": rng.geometric(0.4, records).clip(max=4),
            "income": rng.gamma(1.2, 100, records).round(),
        }
    )


def outsider(frame, tables):
    """What an outsider derives from tables who knows nothing of how they were made.

    Every cell is named by what it counts; a total is the sum of the cells one category further down
    that are in the same table.
    """
    cells, sums = {}, []
    for made in tables:
        names = made.variables
        own = {}
        for cell in made.cells:
            key = frozenset((name, cell[name]) for name in names if name in cell)
            own[key] = cells.setdefault(key, (len(cells), cell["value"]))[0]
            assert cells[key][1] == cell["value"]  # shared cells agree
        leaves = list(frame.select(names).unique().iter_rows(named=True))
        for key, place in own.items():
            for name in names:
                if name in dict(key):
                    continue
                below = {
                    key | {(name, row[name])} for row in leaves if key <= frozenset(row.items())
                }
                if below and all(one in own for one in below):
                    sums.append(([own[one] for one in below], place))
    values = np.array([np.nan if value is None else value for _, value in cells.values()], float)
    rows = np.zeros((len(sums), len(values)))
    for row, (parts, total) in zip(rows, sums, strict=True):
        row[parts] += 1
        row[total] -= 1
    return list(cells), values, rows


def true_cells(frame, keys, value):
    found = []
    for key in keys:
        part = frame.filter([pl.col(name) == level for name, level in key]) if key else frame
        found.append((part.height, part.height if value is None else part[value].sum(), part))
    return found


def require_nothing_recovered(frame, tables, threshold, *, value=None, p=None):
    """Attack every unsafe cell by linear programs; a count must seem to be able to be safe."""
    keys, shown, rows = outsider(frame, tables)
    hidden = np.isnan(shown)
    true = true_cells(frame, keys, value)
    at_least = 1.0 if value is None else 0.0
    bounds = [(at_least, None) if h else (v, v) for h, v in zip(hidden, shown, strict=True)]
    attacked = 0
    for cell, (count, amount, part) in enumerate(true):
        wanted = 0.0
        if 0 < count < threshold:
            wanted = threshold - count if value is None else 0.3 * amount
        if p is not None and count:
            first, second = [*part[value].sort(descending=True)[:2].to_list(), 0][:2]
            wanted = max(wanted, p / 100 * first - (amount - first - second))
        if wanted <= 1e-9 * amount:
            assert not hidden[cell] or count
            continue
        assert hidden[cell]
        aim = np.zeros(len(keys))
        aim[cell] = -1
        done = linprog(aim, A_eq=rows, b_eq=np.zeros(len(rows)), bounds=bounds)
        assert done.status in (0, 3), done.message
        if done.status == 0:
            assert -done.fun >= amount + wanted * (1 - 1e-6)
        attacked += 1
    return attacked


@pytest.mark.parametrize("seed", range(30))
def test_no_hierarchy_gives_a_small_cell_away(seed, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(suppression, "EXACT_CELLS", 0)
        monkeypatch.setattr(publication, "MOST_AUDITED", 0)
    frame = people(seed, records=110)
    rows, options = ["area", "part"], {"seconds": 0.5}
    if seed % 3 == 0:
        rows, options = ["area", "within"], {"nested": ["area", "within"], "seconds": 0.5}
    if seed % 5 == 0:
        options |= {"magnitude": "income", "p_percent": 10.0, "singletons": False}
    found = table(frame, rows=rows, cols="sex", **options)
    assert found.internal.safe
    value, p = options.get("magnitude"), options.get("p_percent")
    assert require_nothing_recovered(frame, [found], 3, value=value, p=p)
    # No area stands beside a part of another area.
    assert len(found.cells) == 3 * (1 + 3 + frame.select(rows).unique().height)


@pytest.mark.parametrize("seed", range(8))
def test_what_hypercubes_do_not_protect_is_protected_by_programs(seed, monkeypatch):
    """Without a single cube, blocks of cells have to do, and all of them together."""
    monkeypatch.setattr(suppression, "EXACT_CELLS", 0)
    monkeypatch.setattr(suppression.Hypercubes, "proofs", lambda *_: None)
    if seed % 2:
        monkeypatch.setattr(suppression, "WHOLE", 1)
    options = {"magnitude": "income", "p_percent": 10.0, "singletons": False} if seed > 5 else {}
    frame = people(seed, records=110)
    found = table(frame, rows=["area", "part"], cols="sex", **options)
    value, p = options.get("magnitude"), options.get("p_percent")
    assert require_nothing_recovered(frame, [found], 3, value=value, p=p)
    monkeypatch.undo()
    best = table(frame, rows=["area", "part"], cols="sex", **options).internal.pattern
    assert best.cost <= found.internal.pattern.cost <= 1.6 * best.cost


@pytest.mark.parametrize("seed", range(20))
def test_linked_tables_give_nothing_away_together(seed, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(suppression, "EXACT_CELLS", 0)
    frame = people(100 + seed, records=70 + 20 * (seed % 3), parts=3)
    other = ["area,part x trade", "part x trade", "part x sex", "trade x part"][seed % 4]
    found = table(frame, rows="area", cols="sex", tables=[other], seconds=0.5)
    (second,) = found.others
    assert require_nothing_recovered(frame, [found, second], 3)


def test_tables_made_apart_would_give_small_cells_away():
    """Each is safe by itself; the attack on both finds what only one of them hides."""
    given = 0
    for seed in range(6):
        frame = people(200 + seed, records=70)
        apart = [table(frame, rows="part", cols="sex"), table(frame, rows="area", cols="trade")]
        apart.append(table(frame, rows="part"))
        try:
            require_nothing_recovered(frame, apart, 3)
        except AssertionError:
            given += 1
    assert given


@pytest.mark.parametrize("seed", range(6))
def test_large_tables_cost_little_more_than_the_best(seed, monkeypatch):
    frame = people(300 + seed, records=240)
    options = {"rows": ["area", "part"], "cols": ["sex"]}
    best = table(frame, **options).internal.pattern
    monkeypatch.setattr(suppression, "EXACT_CELLS", 0)
    fast = table(frame, **options).internal.pattern
    assert best.proven
    assert best.cost <= fast.cost <= 1.1 * best.cost
    hasty = table(frame, **options, seconds=1e-9).internal.pattern
    assert (hasty.suppressed == fast.suppressed).all()  # whatever the clock says


def slow_cheapest(linked, axes, table_number, cell, open_, up, down, step, cost):
    """Every product of moves, one by one, each corner in a dictionary.

    Cells of the same records are one, so that a product may break a sum of another table: it is
    passed over.
    """
    best = np.inf
    options = []
    for axis in axes:
        ups, downs = axis.moves(linked, table_number, cell)
        options.append(list(zip(ups.tolist(), downs.tolist(), strict=True)))
    for moves in itertools.product(*options):
        corners = {}
        for t, place in enumerate(linked.places):
            parts = []
            for axis, (one, other) in zip(axes, moves, strict=True):
                signed = {}
                for leaf, sign in ((one, 1), (other, -1)):
                    for node in axis.chains[t][leaf] if leaf >= 0 else ():
                        if node >= 0:
                            signed[int(node)] = signed.get(int(node), 0) + sign
                parts.append([(node, sign) for node, sign in signed.items() if sign])
            for some in itertools.product(*parts):
                joint = int(place[sum(node for node, _ in some)])
                sign = int(np.prod([sign for _, sign in some]))
                assert corners.setdefault(joint, sign) == sign
        fits = all(open_[c] and (up[c] if s > 0 else down[c]) >= step for c, s in corners.items())
        move = np.zeros(linked.size)
        move[list(corners)] = list(corners.values())
        keeps = not (linked.matrix @ move).any()
        assert keeps or len(linked.tables) > 1
        if fits and keeps:
            best = min(best, sum(cost[c] for c in corners))
    return best


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
@example(2298, True)
def test_the_cheapest_hypercube_is_that_of_trying_all(seed, linked_tables):
    frame = people(seed, records=60)
    more = {"tables": ["area x trade"]} if linked_tables else {}
    made = table(frame, rows=["area", "part"], cols="sex", protect="none", **more)
    linked = Linked.of([one.internal.table for one in (made, *made.others)])
    rng = np.random.default_rng(seed)
    cell = int(rng.choice(np.flatnonzero(linked.counts)))
    allowed = linked.counts > 0
    allowed &= rng.random(linked.size) < 0.9
    allowed[cell] = True
    down, up = linked.values, np.full(linked.size, np.inf)
    cost, step = rng.random(linked.size), float(rng.integers(1, 4))
    problem = suppression.SuppressionProblem(
        linked.sums, up, down, cost, allowed & False, allowed, cost, cost, cost
    )
    for whole in (False, True):  # magnitudes are no whole numbers
        assert (Witnesses(replace(problem, whole=whole)).whole is not None) == whole
    cubes = Hypercubes(linked, Witnesses(problem))
    assert (np.bincount(cubes.places[cubes.first]) == 1).all(), "each cell is counted once"
    cubes.open_ = allowed
    price, cells = cubes._cube(cell, 1, step, allowed, 0.5)
    slow = slow_cheapest(
        linked, joint_axes(linked), *cubes.homes[cell].tolist(), allowed, up, down, step, cost
    )
    assert price == pytest.approx(slow, abs=1e-4)
    assert np.isinf(price) or cell in cells.tolist()


def test_a_code_list_gives_subtotals_at_every_level(tmp_path):
    codes = tmp_path / "codes.csv"
    codes.write_text("parent,child\nA,01\nA,02\nB,03\nB,04\nX,A\nX,B\nY,05\n")
    frame = pl.DataFrame(
        {"code": ["01"] * 9 + ["02"] * 2 + ["03"] * 7 + ["04"] * 8 + ["05"] * 30, "one": [1] * 56}
    )
    found = table(frame, rows="code", hierarchy=str(codes), protect="none")
    values = {row["code"]: row["value"] for row in found.to_frame().iter_rows(named=True)}
    assert values == {"01": 9, "02": 2, "A": 11, "03": 7, "04": 8, "B": 15, "X": 26, "05": 30,
                      "Y": 30, "Total": 56}  # fmt: skip
    protected = table(frame, rows="code", hierarchy=str(codes))
    hidden = protected.to_frame().filter("suppressed")["code"].to_list()
    assert hidden == ["01", "02"]
    assert protected.cells[2] == {"code": "A", "total_over": ["code"], "value": 11,
                                  "suppressed": False}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("parent,child\nA,1\nB,1\n", "each child one parent. Got several for '1'"),
        ("parent,child\nA,B\nB,A\nA,1\n", "among its own ancestors"),
        ("above,below\nA,1\n", "Got no 'parent'"),
        ("parent,child\nA,1\n", "every category of 'code' as a child. Got no 1 of 2"),
        ("parent,child\nA,1\nA,2\n1,3\n", "1 of them are parents of others"),
        ("parent,child\nA,\nA,1\nA,2\n", "a parent and a child in every row"),
    ],
)
def test_code_lists_that_are_no_hierarchy_are_refused(tmp_path, text, said):
    codes = tmp_path / "codes.csv"
    codes.write_text(text)
    frame = pl.DataFrame({"code": [1] * 9 + [2] * 8})
    with pytest.raises(InputError) as caught:
        table(frame, rows="code", hierarchy=str(codes))
    assert said in str(caught.value)
    assert tree_of([("A", "1")]) == {"1": "A"}
    with pytest.raises(InputError):
        read_code_list(str(tmp_path / "none.csv"))


def test_a_later_table_is_protected_against_those_published(tmp_path):
    frame = people(7, records=220)
    register, next_ = tmp_path / "one.json", tmp_path / "two.json"
    first = table(frame, rows="part", cols="sex")
    first.save_register(register)
    later = table(frame, rows="part", cols="trade", against=str(register))
    assert require_nothing_recovered(frame, [first, later], 3)
    later.save_register(next_)
    assert len(json.loads(next_.read_text())["tables"]) == 2
    # What is published stays as it is, and the same table is the same again.
    again = table(frame, rows="part", cols="sex", against=str(next_))
    assert again.cells == first.cells
    # Another file contradicts what is published.
    with pytest.raises(OptionError, match=r"table 1 of the register must be of this file"):
        table(frame.head(200), rows="part", cols="trade", against=str(register))
    with pytest.raises(InputError, match="must be a register of published tables"):
        table(frame, rows="part", cols="trade", against=str(tmp_path / "none.json"))
    noisy = table(frame, rows="part", protect="cell-key", seed=4)
    with pytest.raises(OptionError, match="a register holds tables with suppressed cells"):
        noisy.save_register(tmp_path / "three.json")


def test_a_register_may_have_columns_that_the_new_table_has_not(tmp_path, capsys):
    people(7, records=220).write_csv(tmp_path / "people.csv")
    words, register = ["table", str(tmp_path / "people.csv")], str(tmp_path / "one.json")
    assert run([*words, "--rows", "part", "--cols", "sex", "--register", register]) == 0
    later = [*words, "--rows", "area", "--cols", "trade", "--against", register]
    assert run(later) == 0
    # Contradictory totals are refused, and nothing is written.
    text = (tmp_path / "one.json").read_text().replace('"value": 220,', '"value": 219,')
    (tmp_path / "one.json").write_text(text)
    assert run([*later, "--out", str(tmp_path / "later.csv")]) == 2
    assert "table 1 of the register must be of this file" in capsys.readouterr().err
    assert not (tmp_path / "later.csv").exists()


def test_rounded_tables_agree_in_what_they_share():
    frame = people(8, records=200)
    found = table(frame, rows="part", cols="sex", tables=["part x trade"], protect="round", base=5)
    shared = [
        {cell["part"]: cell["value"] for cell in one.cells if len(cell["total_over"]) == 1
         and "part" in cell}
        for one in (found, *found.others)
    ]  # fmt: skip
    assert shared[0] == shared[1]


def test_cell_keys_at_every_level_and_in_every_table():
    frame = people(9, records=4000)
    options = {"protect": "cell-key", "seed": 5}
    found = table(frame, rows=["area", "part"], cols="sex", tables=["area x trade"], **options)
    areas = [
        {cell["area"]: cell["value"] for cell in one.cells
         if "area" in cell and len(cell["total_over"]) == len(one.variables) - 1}
        for one in (found, *found.others, table(frame, rows="area", **options))
    ]  # fmt: skip
    assert areas[0] == areas[1] == areas[2]
    sums = table(frame, rows=["area", "part"], cols="sex", add_up=True, **options)
    made = sums.internal.table
    np.testing.assert_allclose(made.add_up(sums.shown), sums.shown)
    assert any("root mean square" in note for note in sums.notes)


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        # Three people in three cells that are known not to be empty, and their number is known.
        (pl.DataFrame({"area": ["a", "b", "c"]}), {}),
        # The total itself is unsafe: one firm is nearly everything.
        (
            pl.DataFrame({"area": ["a"] * 5 + ["b"] * 5, "sales": [9_000] + [1] * 9}),
            {"magnitude": "sales", "p_percent": 20.0},
        ),
        # Rounded to multiples of 1 nothing is hidden, and by noise of 2 % too little.
        (pl.DataFrame({"area": list("aabbbccc")}), {"protect": "round", "base": 1}),
        (
            pl.DataFrame({"area": list("aabbbbcccc"), "sales": [5, 9, 8, 7, 6, 5, 9, 8, 7, 6]}),
            {"protect": "cell-key", "seed": 3, "magnitude": "sales", "noise_percent": (1, 2),
             "sliding_percent": 5.0},
        ),
    ],
)  # fmt: skip
def test_every_remedy_that_a_refusal_names_helps(frame, options):
    with pytest.raises(OptionError) as caught:
        table(frame, rows="area", **options)
    for remedy in str(caught.value).split("each of these helps: ")[1].rstrip(".").split("; "):
        made, change = frame, dict[str, object]()
        if pool := re.search(r"pool\((\w+),(\d+)\)", remedy):
            few = pl.when(pl.len().over(pool[1]) < int(pool[2])).then(pl.lit("pooled"))
            made = frame.with_columns(few.otherwise(pl.col(pool[1]).cast(pl.String)).alias(pool[1]))
        elif base := re.search(r"round to ([\d.]+)", remedy):
            change = {"protect": "round", "base": float(base[1])}
        elif noise := re.search(r"noise_percent to (\d+),(\d+)", remedy):
            change = {"noise_percent": (float(noise[1]), float(noise[2]))}
        else:
            (change,) = (
                change
                for words, change in {
                    "total_known to false": {"total_known": False},
                    "hidden_zeros": {"hidden_zeros": True},
                    "suppress cells instead": {"protect": "suppress"},
                }.items()
                if words in remedy
            )
        rules = ("magnitude", "p_percent", "sliding_percent")
        kept = {n: v for n, v in options.items() if n in rules or "protect" not in change}
        assert table(made, rows="area", **{**kept, **change}).internal.safe, remedy


def test_remedies_that_do_not_help_are_not_named():
    frame = pl.DataFrame({"area": ["a", "b", "c"]})
    with pytest.raises(OptionError) as caught:
        table(frame, rows="area")
    for name, value in {"total_known": False, "hidden_zeros": True, "protect": "round"}.items():
        try:
            table(frame, rows="area", **{name: value})
        except OptionError:
            assert name not in str(caught.value)
        else:
            assert name in str(caught.value)


def test_files_for_people_and_machines(tmp_path, capsys):
    frame = people(11, records=220)
    path = tmp_path / "people.csv"
    frame.write_csv(path)
    words = ["table", str(path), "--table", "area,part x sex", "--table", "area x trade"]
    assert (
        run([*words, "--out", str(tmp_path / "t.xlsx"), "--register", str(tmp_path / "r.json")])
        == 0
    )
    assert "Records by area, part and sex" in capsys.readouterr().out
    sheet = pl.read_excel(tmp_path / "t.xlsx", sheet_name="Cells")
    flags = pl.read_csv(_csv(words, tmp_path))
    assert (sheet["flag"].fill_null("") == "c").to_list() == flags["suppressed"].to_list()
    assert (tmp_path / "t-2.xlsx").exists()
    assert run([*words, "--out", str(tmp_path / "t.json")]) == 0
    stat = json.loads((tmp_path / "t.json").read_text())
    assert stat["class"] == "dataset"
    sizes, place = stat["size"], []
    row = flags.filter(~pl.col("suppressed")).row(5, named=True)
    for name in stat["id"]:
        place.append(stat["dimension"][name]["category"]["index"].index(str(row[name])))
    assert stat["value"][str(np.ravel_multi_index(place, sizes))] == row["value"]
    assert len(stat["status"]) == flags["suppressed"].sum()
    assert run(["table", str(path), "--rows", "area", "--method", "cell-key", "--seed-file",
                str(_seed(tmp_path)), "--json"]) == 0  # fmt: skip


def _csv(words, folder):
    assert run([*words, "--out", str(folder / "t.csv")]) == 0
    return folder / "t.csv"


def _seed(folder):
    (folder / "seed.txt").write_text("20261117\n")
    return folder / "seed.txt"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "rows must be a list of at least one"),
        ({"tables": "area"}, "tables must be tables, each as its rows"),
        ({"rows": "area", "tables": ["area x area"]}, "List it once"),
        ({"rows": "area", "tables": ["aera"]}, "Did you mean 'area'"),
        ({"rows": "area", "nested": ["area", "part"]}, "nested must name variables of the table"),
        ({"rows": ["area", "part"], "hierarchy": "x.csv"}, "must name just that one"),
        ({"rows": "area", "against": "x.json", "protect": "round"}, "against needs protect"),
    ],
)
def test_wrong_options_of_linked_tables(options, said):
    with pytest.raises(InputError) as caught:
        table(people(1), **options)
    assert said in str(caught.value)
