"""What leaves the house, and what must not."""

import json
import stat

import numpy as np
import polars as pl
import pytest

import keyhole
from keyhole.cli.main import run
from keyhole.data.examples import veterans_sample
from keyhole.errors import InputError
from keyhole.synthesis.associations import Relation, Relations
from keyhole.synthesis.release import analysts_note

SEED = 271828
ASKED = {
    "keys": ["sex", "age", "race1", "homstate"],
    "targets": ["age", "race1", "income"],
    "implicates": 2,
    "seed": SEED,
    "self_match": 50,
}


@pytest.fixture(scope="module")
def people():
    return veterans_sample(1_500, seed=5)


@pytest.fixture(scope="module")
def csv(people, tmp_path_factory):
    path = tmp_path_factory.mktemp("people") / "people.csv"
    people.frame.drop("puf_id", "household").write_csv(path)
    return path


@pytest.fixture(scope="module")
def released(csv, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "made"
    keyhole.synthesise(csv, strata=["sex"], out=out, **ASKED)
    return out


def files(folder):
    return {p.name: p.read_bytes() for p in sorted((folder / "release").iterdir())}


def test_the_release_has_the_files_and_nothing_else(released):
    assert sorted(p.name for p in released.iterdir()) == ["internal", "release"]
    assert list(files(released)) == [
        "analysts-note.md",
        "codebook.json",
        "implicate-1.csv",
        "implicate-2.csv",
    ]
    assert stat.S_IMODE((released / "internal").stat().st_mode) == 0o700


def test_nothing_in_the_release_tells_seed_or_parameters(released):
    for name, content in files(released).items():
        assert str(SEED).encode() not in content, name
        if not name.startswith("implicate"):
            for word in (b"seed", b"folds", b"decoy", b"cutoff", b"at_risk", b"at risk", b"strata"):
                assert word not in content.lower(), (name, word)
    kept = json.loads((released / "internal" / "parameters.json").read_text())
    assert kept["seed"] == SEED
    assert kept["strata"] == ["sex"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_same_seed_gives_the_same_bytes(people, tmp_path, suffix):
    source = tmp_path / f"people.{suffix}"
    keyhole.load(people.frame.drop("puf_id", "household")).save(source)
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        keyhole.synthesise(source, out=tmp_path / name, **{**ASKED, "seed": seed})
    a, b, c = (files(tmp_path / name) for name in "abc")
    assert a == b
    assert a[f"implicate-1.{suffix}"] != c[f"implicate-1.{suffix}"]


def test_a_single_implicate_does_not_tell_which_records_changed(csv, tmp_path):
    """Hunt for tells: order, formats, types, rare values, whatever sets changed lines apart."""
    made = keyhole.synthesise(csv, out=tmp_path / "one", **{**ASKED, "implicates": 1})
    before = csv.read_text().splitlines()
    after = (tmp_path / "one" / "release" / "implicate-1.csv").read_text().splitlines()
    assert before[0] == after[0]
    assert len(before) == len(after)
    rows = pl.read_parquet(tmp_path / "one" / "internal" / "records.parquet")["release_row"]
    assert rows.sort().to_list() == list(range(1, len(before)))
    assert (rows.diff().abs() == 1).sum() < 12  # neighbours are apart
    after = [after[0], *(after[row] for row in rows)]
    changed = np.array([a != b for a, b in zip(before[1:], after[1:], strict=True)])
    assert 0.2 < changed.mean() < 1
    places = [before[0].split(",").index(t) for t in ASKED["targets"]]
    old, new = ([line.split(",") for line in lines[1:]] for lines in (before, after))
    for row, (a, b) in enumerate(zip(old, new, strict=True)):
        assert [x for i, x in enumerate(a) if i not in places] == [
            x for i, x in enumerate(b) if i not in places
        ], row
    for place in places:
        # Every text that occurs was there before, so that no format is new.
        assert {row[place] for row in new} <= {row[place] for row in old}
        given = np.array([row[place] for row in new])
        told = set(given[changed]) - set(given[~changed])
        common = made.frame(1).height
        assert len(told) < common  # values only among the changed are values of the file
    shape = lambda line: [len(cell) - len(cell.strip()) for cell in line.split(",")]  # noqa: E731
    assert all(shape(line) == shape(after[1]) for line in after[1:])
    note = (tmp_path / "one" / "release" / "analysts-note.md").read_text()
    assert "one version" in note


@pytest.mark.parametrize("decoys", [0.5, 1.0, 3.0])
def test_decoys_bring_the_chance_to_the_asked_level(csv, decoys):
    made = keyhole.synthesise(
        csv, keys=["sex", "age", "race1"], targets=["age", "race1"], implicates=3, seed=1,
        decoys=decoys, self_match=0,
    )  # fmt: skip
    chance = made.to_dict()["visibly_changed"]["p_unique"]
    assert chance == pytest.approx(1 / (1 + decoys), abs=0.03)


def test_identifiers_stay_at_home(people, tmp_path):
    keyhole.synthesise(people, out=tmp_path / "made", **ASKED)
    made = pl.read_parquet(tmp_path / "made" / "release" / "implicate-1.parquet")
    assert "puf_id" not in made.columns
    assert "age" in made.columns


def test_a_folder_of_other_things_is_never_replaced(csv, tmp_path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    for force in (False, True):
        with pytest.raises(InputError, match="mine"):
            keyhole.synthesise(csv, out=out, force=force, **ASKED)
    assert [p.name for p in out.iterdir()] == ["thesis.tex"]


def test_force_replaces_a_release_whole(csv, tmp_path):
    out = tmp_path / "again"
    keyhole.synthesise(csv, out=out, **ASKED)
    with pytest.raises(InputError, match="exists"):
        keyhole.synthesise(csv, out=out, **ASKED)
    keyhole.synthesise(csv, out=out, force=True, **{**ASKED, "implicates": 1})
    assert "implicate-2.csv" not in files(out)
    assert [p.name for p in tmp_path.iterdir()] == ["again"]


BAD = {
    "none at risk": ({"keys": ["sex"]}, "no record is at risk"),
    "common donors only": (
        {"keys": ["income", "age", "homstate", "race1", "ms"], "donors": "common", "cutoff": 999},
        "no common record",
    ),
    "no implicates": ({"implicates": 0}, "implicates must be a whole number from 1"),
    "an absent target": ({"targets": ["agee"]}, "'age'"),
    "a target twice": ({"targets": ["age", "age"]}, "age"),
    "a target that is a stratum": ({"strata": ["age"]}, "strata and targets both name"),
    "a rule nobody keeps": ({"rules": {"old": "age > 1000"}}, "kept by no record"),
    "a rule on nothing": ({"rules": {"old": "agee > 1"}}, "agee"),
    "an unknown word": ({"match": "closst"}, "Did you mean 'closest'?"),
    "a seed that is none": ({"seed": "x"}, "seed"),
    "decoys below nothing": ({"decoys": -1}, "decoys"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_said_clearly_and_nothing_is_written(csv, tmp_path, name):
    change, told = BAD[name]
    with pytest.raises(InputError) as error:
        keyhole.synthesise(csv, out=tmp_path / "made", **{**ASKED, **change})
    assert told in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_target_missing_everywhere_is_refused(people):
    frame = people.frame.with_columns(pl.lit(None, pl.Int64).alias("race1"))
    with pytest.raises(InputError, match="missing everywhere"):
        keyhole.synthesise(frame, **ASKED)


def test_the_only_key_can_be_the_only_target():
    random = np.random.default_rng(1)
    frame = pl.DataFrame({"age": np.append(random.integers(20, 60, 500), [97, 98, 99])})
    made = keyhole.synthesise(frame, keys=["age"], targets=["age"], implicates=1, seed=1)
    assert len(made.implicates.rows) >= 3


def test_a_category_with_thousands_of_levels_works():
    random = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"code": [f"c{i}" for i in random.integers(0, 3_000, 4_000)], "sex": ["f", "m"] * 2_000}
    )
    made = keyhole.synthesise(
        frame, keys=["code", "sex"], targets=["code"], implicates=1, seed=1, self_match=0
    )
    assert set(made.frame(1)["code"]) <= set(frame["code"])


def test_the_command_line_writes_and_tells(csv, tmp_path, capsys):
    out = tmp_path / "made"
    words = ["synthesise", str(csv), "--keys", "sex,age,race1,homstate", "--targets", "age,race1"]
    words += ["--implicates", "2", "--seed", "7", "--self-match", "0", "--out", str(out), "--json"]
    assert run(words) == 0
    told = json.loads(capsys.readouterr().out)
    for key in ("records", "at_risk", "implicates", "changed_by_level", "mean_mode_attack"):
        assert key in told
    assert {"homogeneity", "moments"} <= told.keys()
    assert "seed" not in json.dumps(told)
    assert run(words) == 2
    assert "exists" in capsys.readouterr().err
    assert run(["tabulate", str(out / "release"), "--rows", "race1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"]


def test_the_command_line_tells_all_problems_at_once(csv, tmp_path, capsys):
    words = ["synthesise", str(csv), "--keys", "sexx,age", "--targets", "agee", "--seed", "1"]
    assert run([*words, "--implicates", "0", "--out", str(tmp_path / "no" / "made")]) == 2
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("factor", [1e300, float("inf")])
def test_values_without_moments_do_not_stop_the_run(people, factor):
    frame = people.frame.with_columns(
        pl.when(pl.col("age") > 80).then(pl.col("income") * factor).otherwise(pl.col("income"))
    )
    made = keyhole.synthesise(frame, drop=["puf_id", "household"], **ASKED)
    assert "not estimable" in made.summary()


def test_a_cycle_over_subgroups_with_few_records_to_replace():
    random = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "sex": random.choice(["f", "m"], 120),
            "state": random.choice(list("abcdefgh"), 120),
            "age": random.integers(20, 26, 120),
            "ms": random.choice(list("swdm"), 120),
        }
    )
    made = keyhole.synthesise(
        frame, keys=["sex", "state", "age"], targets=["state", "ms"], strata=["sex"], cycles=1,
        implicates=1, seed=1, self_match=0,
    )  # fmt: skip
    assert made.frame(1).height == 120


def test_the_seed_may_stand_in_a_file(csv, tmp_path, capsys):
    (tmp_path / "seed").write_text("7\n")
    words = ["synthesise", str(csv), "--keys", "sex,age,race1,homstate", "--targets", "age,race1"]
    words += ["--implicates", "1", "--self-match", "0", "--no-graded"]
    assert run([*words, "--seed", "7", "--out", str(tmp_path / "a")]) == 0
    assert run([*words, "--seed-file", str(tmp_path / "seed"), "--out", str(tmp_path / "b")]) == 0
    assert files(tmp_path / "a") == files(tmp_path / "b")
    capsys.readouterr()
    assert run([*words, "--out", str(tmp_path / "c")]) == 2
    assert capsys.readouterr().err.count("--seed") == 1


def held_out(csv, out, **more):
    keyhole.synthesise(csv, strata=["sex"], out=out, hold_out=0.25, **{**ASKED, **more})
    ext = [pl.read_csv(out / "internal" / f"{name}.csv") for name in ("original", "control")]
    return pl.read_csv(out / "release" / "implicate-1.csv"), *ext


def test_a_part_can_be_held_out_before_the_synthesis(csv, tmp_path):
    numbered = pl.read_csv(csv).with_row_index("row")
    path = tmp_path / "numbered.csv"
    numbered.write_csv(path)
    made, original, control = held_out(path, tmp_path / "made", drop=["row"])
    assert control.height == round(0.25 * numbered.height)
    assert made.height == original.height == numbered.height - control.height
    assert sorted([*original["row"], *control["row"]]) == numbered["row"].to_list()
    assert original.equals(numbered.filter(pl.col("row").is_in(original["row"].implode())))
    assert control["row"].to_list() != list(range(control.height))
    targets = ASKED["targets"]
    rows = pl.read_parquet(tmp_path / "made" / "internal" / "records.parquet")["release_row"] - 1
    assert made[rows].drop(targets).equals(original.drop("row", *targets))
    assert "control" not in str(sorted((tmp_path / "made" / "release").iterdir()))
    for name in ("original", "control"):
        mode = (tmp_path / "made" / "internal" / f"{name}.csv").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
    again = held_out(path, tmp_path / "again", drop=["row"], implicates=1)[2]
    other = held_out(path, tmp_path / "other", drop=["row"], implicates=1, seed=5)[2]
    assert again.equals(control)
    assert not other.equals(control)


def test_nothing_more_is_written_without_a_hold_out(released):
    assert sorted(p.name for p in (released / "internal").iterdir()) == [
        "evaluation.json", "evaluation.txt", "parameters.json", "records.parquet", "rules.toml",
    ]  # fmt: skip
    assert "hold_out" not in json.loads((released / "internal" / "parameters.json").read_text())


@pytest.mark.parametrize("share", [0, 1, 0.0001])
def test_a_hold_out_leaves_records_on_both_sides(csv, share):
    with pytest.raises(InputError, match="hold_out must"):
        keyhole.synthesise(csv, hold_out=share, **ASKED)


def test_the_note_of_a_release_names_the_twelve_relations_that_changed_most_and_counts_others():
    """A relation is named that changed by more than 0.02, beyond chance, and is more than weak."""
    weaker = [Relation("pay", f"x{i}", 0.5, 0.4 - i / 100) for i in range(13, -1, -1)]
    weak, chance = Relation("pay", "w", 0.05, 0.01), Relation("pay", "c", 0.3, 0.35, 0.06)
    stronger = Relation("pay", "s", 0.2, 0.23)
    note = analysts_note(["pay"], 2, Relations((*weaker, weak, chance, stronger), 2))
    assert [i for i in range(14) if f"x{i}`, 0." in note] == [*range(2, 14)]
    assert "`x13`, 0.27 instead of 0.50" in note
    assert "`x2`, 0.38 instead of 0.50; and 2 more, which changed less." in note
    assert "stronger: `pay` with `s`, 0.23 instead of 0.20." in note
    assert not any(f"`{name}`" in note for name in "wc")
