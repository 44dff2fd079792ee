"""Studies prepared: an EIF renamed, recoded, aged and worn; several EIFs; what the cap lost."""

import numpy as np
import polars as pl
import pytest

import keyhole
from keyhole.cli.main import run
from keyhole.data import load
from keyhole.data.examples import veterans
from keyhole.errors import InputError
from keyhole.reidentification.files import prepare_eif

WORLD = veterans(2_000, seed=4)
LINK = ["sex", "age", "race1", "homstate", "ms"]
IDS = {"puf_id": "puf_id", "eif_id": "eif_id"}
PREPARE = {
    "rename": {"sex": "GENDER"},
    "recode": {"sex": 'map(sex, {"1": "m", "2": "f"})', "age10": "band(age, 10)"},
    "age": {"age": 2},
    "wear": {"columns": ["age", "ms"], "error": 0.2, "missing": 0.3, "seed": 7},
}


def eif_of(rows: slice = slice(None)) -> pl.DataFrame:
    return WORLD.external.frame[rows].rename({"sex": "GENDER"})


def test_an_eif_is_renamed_recoded_aged_and_worn_in_this_order() -> None:
    before = eif_of()
    made, said = prepare_eif(load(before), PREPARE)
    names = {1: "m", 2: "f", None: None}
    assert made.column("sex").to_list() == [names[x] for x in before["GENDER"].to_list()]
    decade = [None if x is None else f"{x // 10 * 10}-{x // 10 * 10 + 9}" for x in before["age"]]
    assert made.column("age10").to_list() == decade
    aged = (before["age"] + 2).to_list()
    worn = made.column("age").to_list()
    gone = sum(a is not None and b is None for a, b in zip(aged, worn, strict=True))
    assert gone == pytest.approx(0.3 * made.records, rel=0.35)
    changed = [b not in (a, None) for a, b in zip(aged, worn, strict=True)]
    assert 0.05 < np.mean(changed) < 0.2
    assert set(worn) - {None} <= set(aged)
    again, _ = prepare_eif(load(before), PREPARE)
    assert again.frame.equals(made.frame)
    assert made.frame["race1"].equals(before["race1"])
    assert said == (
        "The EIF was prepared: 1 column renamed; 2 columns recoded; age aged by 2; 20.0% of the "
        "values exchanged and 30.0% blank in age, ms.",
    )


@pytest.mark.parametrize(
    ("dtype", "years", "expected"),
    [(pl.UInt8, -1, [-1, 254]), (pl.UInt8, 1, [1, 256]), (pl.UInt8, 0.5, [0.5, 255.5]),
     (pl.UInt64, -300, [-300, -45])],
)  # fmt: skip
def test_ages_of_any_type_become_older_and_younger(dtype, years, expected) -> None:
    ages = pl.DataFrame({"age": pl.Series([0, 255], dtype=dtype), "sex": [*"fm"]})
    made, _ = prepare_eif(load(ages), {"age": {"age": years}})
    assert made.column("age").to_list() == expected
    ids, eif = ({n: [1, 2], "age": expected, "sex": [*"fm"]} for n in ("puf_id", "eif_id"))
    truth = pl.DataFrame({"puf_id": [1, 2], "eif_id": [1, 2]})
    found = keyhole.study(
        puf=pl.DataFrame(ids),
        eif=pl.DataFrame({**eif, "age": ages["age"]}),
        iuf=truth,
        **IDS,
        link=["age", "sex"],
        prepare={"age": {"age": years}},
    )
    assert found.confirmed == 2


def test_a_study_takes_a_preparation_from_toml(tmp_path, capsys) -> None:
    eif_of().write_csv(tmp_path / "eif.csv")
    WORLD.sample.save(tmp_path / "puf.csv")
    WORLD.truth.select(["puf_id", "eif_id"]).save(tmp_path / "iuf.csv")
    (tmp_path / "prepare.toml").write_text('[rename]\nsex = "GENDER"\n[age]\nage = -1\n')
    files = [f"--{name}={tmp_path / name}.csv" for name in ("puf", "eif", "iuf")]
    words = ["--puf-id", "puf_id", "--eif-id", "eif_id", "--link", ",".join(LINK)]
    asked = ["--prepare", str(tmp_path / "prepare.toml"), "--permutations", "0"]
    assert run(["study", *files, *words, *asked, "--metric", "taxicab"]) == 0
    out = capsys.readouterr().out
    assert "The EIF was prepared: 1 column renamed; age aged by -1." in out
    assert run(["study", *files, *words, "--metric", "taxicab"]) == 2


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({None: None}, "prepare: None is not a setting"),
        ({"renam": {}}, "prepare: renam is not a setting. Did you mean 'rename'"),
        ({"rename": {"sex": "GENDR"}}, "GENDER"),
        ({"rename": {"age": "GENDER"}}, "which the EIF has"),
        ({"wear": {"error": 2}}, r"\[wear\] error must be a number from 0 to 1"),
        ({"wear": 3}, r"\[wear\] must be a table"),
        ({"age": {"age": "x"}}, r"\[age\] must be a table"),
        ({"age": {"age": -(10**18)}}, "'age' and its years must be at most"),
        ({"recode": {"a": "bnad(age, 10)"}}, "Did you mean 'band'"),
        ({"recode": {"a": "band(agee, 10)"}}, "agee"),
    ],
)
def test_what_is_wrong_with_a_preparation_is_told(plan, said) -> None:
    with pytest.raises(InputError, match=said):
        prepare_eif(load(eif_of()), plan)


def test_several_sources_give_a_study_each_and_all_together() -> None:
    half = WORLD.external.records // 2
    parts = {"first": WORLD.external.frame[:half], "second": WORLD.external.frame[half:]}
    truth = WORLD.truth.frame.select("puf_id", "eif_id")
    iufs = {name: truth.filter(pl.col("eif_id").is_in(one["eif_id"].implode()))
            for name, one in parts.items()}  # fmt: skip
    options = {"link": LINK, **IDS, "metric": "taxicab", "permutations": 0}
    found = keyhole.study(puf=WORLD.sample, eif=parts, iuf=iufs, **options)
    assert [row.release for row in found.rows] == ["first", "second", "all sources together"]
    hits = set()
    for row in found.rows[:2]:
        frame = row.study.pairs_frame()
        hits |= set(frame.filter("confirmed")["puf_id"].to_list())
        alone = keyhole.study(
            puf=WORLD.sample, eif=parts[row.release], iuf=iufs[row.release], **options
        )
        assert alone.rates == row.rates
    assert found.rows[2].rates.confirmed == len(hits)
    assert found.rows[2].rates.pairs == sum(row.rates.pairs for row in found.rows[:2])
    with pytest.raises(InputError, match="iuf must be given for each eif, by the same names"):
        keyhole.study(puf=WORLD.sample, eif=parts, iuf=truth, **options)


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("taxicab", {}),
        ("euclidean", {"numeric": ["age"], "threshold": "derived"}),
        ("adhoc", {"scores": {**{n: {"exact": 5} for n in LINK if n != "age"},
                              "age": {"absolute": [[0, 5], [2, 3]], "beyond": 1}}}),
    ],
)  # fmt: skip
def test_what_the_rank_cap_lost_is_what_a_larger_cap_keeps(metric, options) -> None:
    asked = {"puf": WORLD.sample, "eif": WORLD.external, "iuf": WORLD.truth.select([*IDS]),
             "link": LINK, **IDS, "metric": metric, "permutations": 0, **options}  # fmt: skip
    capped = keyhole.study(**asked, rank_cap=1)
    whole = keyhole.study(**asked, rank_cap=10_000)
    assert whole.lost_to_rank_cap == 0
    lost = whole.rates.true_pairs - capped.rates.true_pairs
    assert capped.lost_to_rank_cap == lost > 0
    assert f"{lost} true pair" in capped.summary()
