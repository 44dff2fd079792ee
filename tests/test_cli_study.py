"""``keyhole study``: it prints what the function finds, writes pairs, and tells bad input well."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from jsonschema import Draft202012Validator

from keyhole.cli.main import run
from keyhole.core.codec import plain_values
from keyhole.data import load
from keyhole.data.examples import veterans
from keyhole.reidentification.study import study

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schemas" / "study.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
LINK = ("sex", "age", "race1", "homstate")


@pytest.fixture
def keyhole(capsys):
    def call(*words):
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    world = veterans(2_000, seed=1)
    # Missing ages of the EIF are -9, as agencies write them.
    external = world.external.frame.with_columns(pl.col("age").fill_null(-9))
    for name, frame in (
        ("puf", world.sample.frame), ("eif", external), ("iuf", world.truth.frame),
    ):  # fmt: skip
        frame.write_csv(folder / f"{name}.csv")
    return folder


def words_for(folder, *more):
    files = [
        word for name in ("puf", "eif", "iuf") for word in (f"--{name}", folder / f"{name}.csv")
    ]
    ids = ["--puf-id", "puf_id", "--eif-id", "eif_id", "--link", ",".join(LINK)]
    return ["study", *files, *ids, *more]


ASKED = {
    "--metric unicity": {"metric": "unicity"},
    "--orders highest --permutations 5": {"orders": "highest", "permutations": 5},
    "--metric taxicab --numeric age --cuts each --seed 7": {
        "metric": "taxicab", "numeric": ["age"], "cuts": "each", "seed": 7,
    },
    "--metric taxicab --alpha 0.8 --rank-cap 3 --strata ms": {
        "metric": "taxicab", "alpha": 0.8, "rank_cap": 3, "strata": ["ms"],
    },
    "--metric euclidean --numeric age --threshold derived --permutations 0": {
        "metric": "euclidean", "numeric": ["age"], "threshold": "derived", "permutations": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("options", ASKED)
def test_the_verb_prints_what_the_function_finds(files, keyhole, options):
    words = words_for(files, *options.split(), "--missing-codes", "age:-9", "--json")
    code, out, err = keyhole(*words)
    assert (code, err) == (0, "")
    found = json.loads(out)
    VALIDATOR.validate(found)
    expected = study(
        puf=files / "puf.csv", eif=load(files / "eif.csv", missing_codes={"age": [-9]}),
        iuf=files / "iuf.csv", puf_id="puf_id", eif_id="eif_id", link=LINK, **ASKED[options],
    )  # fmt: skip
    assert found == plain_values(expected.to_dict())


SCORES = """
sex = { exact = 5 }
age = { absolute = [[0, 5], [1, 4], [3, 2]], beyond = 0 }
race1 = { table = [["B", "C", 3]], same = 5, other = 0 }
homstate = { exact = 4.5 }
"""


def test_adhoc_scores_come_from_a_file(files, keyhole, tmp_path):
    path = tmp_path / "scores.toml"
    path.write_text(SCORES)
    words = words_for(files, "--metric", "adhoc", "--scores", path, "--missing-codes", "-9")
    code, out, err = keyhole(*words, "--pairs", tmp_path / "pairs.csv", "--json")
    assert (code, err) == (0, f"Wrote the pairs to {tmp_path / 'pairs.csv'}\n")
    found = json.loads(out)
    VALIDATOR.validate(found)
    assert found["effective_threshold"] == 10
    pairs = pl.read_csv(tmp_path / "pairs.csv")
    assert pairs.height == found["pairs"] > 0
    assert pairs["score"].min() > 10
    assert pairs["score"].max() == 19.5
    assert pairs["puf_id"].n_unique() == found["suspected"]
    falls = pairs.sort("puf_id", "rank").select(pl.col("score").diff().over("puf_id") <= 0)
    assert falls.to_series().drop_nulls().all()


def test_codes_that_are_no_numbers_do_not_spoil_a_type(files, keyhole, tmp_path):
    for name in ("puf", "iuf"):
        (tmp_path / f"{name}.csv").write_bytes((files / f"{name}.csv").read_bytes())
    text = pl.read_csv(files / "eif.csv", infer_schema=False)
    text.with_columns(pl.col("age").replace("-9", "unknown")).write_csv(tmp_path / "eif.csv")
    asked = ["--metric", "taxicab", "--numeric", "age", "--json"]
    assert keyhole(*words_for(tmp_path, *asked))[0] == 2  # numbers here, text there
    found = [
        keyhole(*words_for(folder, *asked, "--missing-codes", f"age:{code}"))[1]
        for folder, code in ((tmp_path, "unknown"), (files, "-9"))
    ]
    assert found[0] == found[1] != ""


def test_missing_codes_matter(files, keyhole):
    counts = []
    for more in ([], ["--missing-codes", "-9"], ["--missing-codes", "age:-9"]):
        _, out, _ = keyhole(*words_for(files, "--metric", "taxicab", "--json", *more))
        counts.append(json.loads(out)["pairs"])
    assert counts[0] != counts[1] == counts[2]


def test_kinds_are_declared_for_all_the_files(files, keyhole):
    _, out, _ = keyhole(*words_for(files, "--metric", "taxicab", "--json"))
    code, again, err = keyhole(
        *words_for(files, "--metric", "taxicab", "--json", "--kinds", "ms=category,age=measure")
    )
    assert (code, err) == (0, "")
    assert json.loads(again)["pairs"] == json.loads(out)["pairs"]
    code, _, err = keyhole(*words_for(files, "--kinds", "age=number"))
    assert code == 2
    assert "kind of 'age'" in err


def test_the_summary_is_readable(files, keyhole):
    code, out, err = keyhole(*words_for(files, "--metric", "taxicab"))
    assert (code, err) == (0, "")
    named = "The findings in words"
    for words in ("suspected", "conditional", "95% interval", named, "No proof of safety"):
        assert words in out


def test_pairs_are_written_whole_and_only_once(files, keyhole, tmp_path):
    out = tmp_path / "pairs.csv"
    words = words_for(files, "--metric", "taxicab", "--pairs", out, "--json")
    code, printed, _ = keyhole(*words)
    assert code == 0
    found = json.loads(printed)
    pairs = pl.read_csv(out)
    assert pairs.columns == ["puf_id", "eif_id", "score", "rank", "confirmed"]
    assert pairs.height == found["pairs"]
    assert pairs["confirmed"].cast(pl.Int64).sum() == found["true_pairs"]
    before = out.read_bytes()
    code, printed, err = keyhole(*words)
    assert (code, printed) == (2, "")
    assert "--pairs" in err
    assert "exists" in err
    assert out.read_bytes() == before
    assert keyhole(*words, "--force")[0] == 0


@pytest.mark.parametrize("name", ["p.parquet", "p.sav", "p.dta", "p.xlsx", "p.csv.gz", "p.arrow"])
def test_pairs_go_into_every_kind_of_file(files, keyhole, tmp_path, name):
    for metric, place in (("unicity", "subset"), ("taxicab", "rank")):
        words = words_for(files, "--metric", metric, "--permutations", 0, "--force")
        code, _, err = keyhole(*words, "--pairs", tmp_path / name)
        assert (code, err) == (0, f"Wrote the pairs to {tmp_path / name}\n")
        assert place in load(tmp_path / name).names
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_picture_is_drawn(files, keyhole, tmp_path):
    out = tmp_path / "study.svg"
    assert keyhole(*words_for(files, "--metric", "taxicab", "--plot", out))[0] == 0
    assert "Of the records an intruder would suspect" in out.read_text()


# Bad input: one message, exit code 2, nothing written, no id or value of a record shown.

SECRET, NUMBER = "zqx7391", 739173
GOOD = {
    "puf": f"puf_id,sex,age,state\n1,f,{NUMBER},{SECRET}\n2,m,40,ny\n3,f,51,ca\n",
    "eif": f"eif_id,sex,age,state\n{SECRET},f,{NUMBER},{SECRET}\nb,m,41,ny\n",
    "iuf": f"puf_id,eif_id\n1,{SECRET}\n",
}
BAD = {
    "PUF id missing": (
        {"puf": f"puf_id,sex,age,state\n1,f,3,{SECRET}\n,m,{NUMBER},ny\n"}, "",
        "PUF's id 'puf_id' must be there.*1 of 2 records without.*leave them out",
    ),
    "EIF id repeated": (
        {"eif": f"eif_id,sex,age,state\n{SECRET},f,3,ny\n{SECRET},m,4,ny\n"}, "",
        "EIF's id 'eif_id' must identify each record.*2 of 2 records",
    ),
    "id column absent": ({}, "--puf-id puffid", "'puffid' is not a column.*Did you mean 'puf_id'"),
    "id absent from the IUF": (
        {"iuf": f"puf,eif_id\n1,{SECRET}\n"}, "", "PUF id 'puf_id' is not a column of 'iuf'",
    ),
    "one id for both": (
        {"eif": GOOD["eif"].replace("eif_id", "puf_id")}, "--eif-id puf_id",
        "names of their own.*rename",
    ),
    "IUF names nobody's id": (
        {"iuf": f"puf_id,eif_id\n1,{SECRET}\n{NUMBER},b\n"}, "",
        "id 'puf_id' in the IUF must be one of the PUF.*1 of 2 rows.*leave those rows out",
    ),
    "linking variable absent from one file": (
        {"eif": f"eif_id,sex,age\n{SECRET},f,3\nb,m,{NUMBER}\n"}, "", "'state' is not a column of",
    ),
    "linking variable of another type": (
        {"eif": f"eif_id,sex,age,state\n{SECRET},1,3,ny\nb,2,{NUMBER},ny\n"}, "", "'sex'",
    ),
    "numeric that holds text": ({}, "--numeric state", "'state'.*number"),
    "numeric that is not linked": ({}, "--numeric income", "'income'"),
    "no linking variable": ({}, "--link ,", "empty name|at least one"),
    "one linking variable": ({}, "--link sex", "at least two"),
    "linking variable twice": ({}, "--link sex,sex", "once. Got 'sex', 'sex' instead"),
    "no category in both": (
        {"eif": f"eif_id,sex,age,state\n{SECRET},x,3,zz\nb,y,{NUMBER},yy\n"}, "--link sex,state",
        "'sex'",
    ),
    "all missing": (
        {"eif": f"eif_id,sex,age,state\n{SECRET},,3,ny\nb,,{NUMBER},ny\n"}, "", "'sex'",
    ),
    "stratum absent": ({}, "--strata county", "'county' is not a column of"),
    "empty strata": (
        {"eif": f"eif_id,sex,age,state\n{SECRET},f,3,zz\nb,m,{NUMBER},yy\n"},
        "--link sex,age --strata state", "strata.*stratum in common",
    ),
    "no records in the PUF": ({"puf": "puf_id,sex,age,state\n"}, "", "no records"),
    "no records in the EIF": ({"eif": "eif_id,sex,age,state\n"}, "", "no records"),
    "no rows in the IUF": ({"iuf": "puf_id,eif_id\n"}, "", "IUF 'iuf' has a header but no records"),
    "alpha of two": ({}, "--metric taxicab --alpha 2", "alpha must be"),
    "alpha no number": ({}, "--metric taxicab --alpha half", "alpha must be a number"),
    "rank cap of zero": ({}, "--metric taxicab --rank-cap 0", "rank.cap must be"),
    "permutations below zero": ({}, "--permutations -1", "permutations must be"),
    "seed below zero": ({}, "--seed -1", "seed must be"),
    "adhoc without scores": ({}, "--metric adhoc", "--scores must say how.*TOML file"),
    "scores outside 0-5": (
        {"scores": "sex = { exact = 6 }\nage = { absolute = [[0, -1]] }\nstate = { exact = 5 }\n"},
        "--metric adhoc --scores scores.toml",
        "score of 'sex'.*from 0 to 5. Got 6 instead.*score of 'age'.*from 0 to 5. Got -1",
    ),
    "scores of no linking variable": (
        {"scores": "sexx = { exact = 5 }\n"}, "--metric adhoc --scores scores.toml",
        "'sexx'.*Did you mean 'sex'.*'age' must have a score.*'state' must have a score",
    ),
    "scores that are no TOML": (
        {"scores": "sex is exact\n"}, "--metric adhoc --scores scores.toml", "must be a TOML file",
    ),
    "scores for another metric": (
        {"scores": "sex = { exact = 5 }\n"}, "--metric taxicab --scores scores.toml",
        "--scores can only be used with --metric adhoc",
    ),
    "scores that are not there": ({}, "--metric adhoc --scores nowhere.toml", "nowhere.toml"),
    "engine not there": ({}, "--engine disk", "engine must be"),
    "master without Spark": ({}, "--master local[2]", "master is for counting on Spark"),
    "no master of Spark": ({}, "--engine spark --master locall", "master must be"),
    "what Spark cannot do": (
        {}, "--engine spark --pairs pairs.csv --metric unicity,taxicab --blank sex",
        "engine must be memory for comparing.*for --blank.*for --pairs",
    ),
    "kinds of no column": ({}, "--kinds agee=measure", "'agee'.*none of the files"),
    "missing codes of no column": ({}, "--missing-codes agee:-9", "'agee'.*none of the files"),
    "pairs in no format": ({}, "--pairs pairs.pdf", "--pairs"),
    "pairs over the EIF": ({}, "--pairs {eif} --force", "--pairs.*is the input file"),
    "picture in no format": ({}, "--plot study.pdf", "--plot"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_ends_with_one_message(case, keyhole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts, options, said = BAD[case]
    paths = {name: tmp_path / f"{name}.csv" for name in GOOD}
    for name, path in paths.items():
        path.write_text(texts.get(name, GOOD[name]))
    (tmp_path / "scores.toml").write_text(texts.get("scores", ""))
    words = [word for name, path in paths.items() for word in (f"--{name}", path)]
    usual = {"--puf-id": "puf_id", "--eif-id": "eif_id", "--link": "sex,age,state"}
    words += [w for pair in usual.items() if pair[0] not in options.split() for w in pair]
    more = [word.format(**{k: str(v) for k, v in paths.items()}) for word in options.split()]
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = keyhole("study", *words, *more)
    assert (code, out) == (2, "")
    assert err.startswith("keyhole: ")
    assert "Traceback" not in err
    assert re.search(said, err, re.DOTALL), err
    assert SECRET not in err
    assert str(NUMBER) not in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_good_files_are_good(keyhole, tmp_path):
    for name, text in GOOD.items():
        (tmp_path / f"{name}.csv").write_text(text)
    words = [w for name in GOOD for w in (f"--{name}", tmp_path / f"{name}.csv")]
    ids = ["--puf-id", "puf_id", "--eif-id", "eif_id"]
    code, out, err = keyhole("study", *words, *ids, "--link", "sex,age,state", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["confirmed"] == 1


def test_problems_of_several_files_are_told_at_once(keyhole, tmp_path):
    (tmp_path / "puf.csv").write_text("puf_id,sex\n1,f\n1,m\n")
    (tmp_path / "eif.csv").write_text("eif_id,age\n1,4\n")
    words = words_for(tmp_path, "--pairs", tmp_path / "nowhere" / "pairs.csv")
    code, _, err = keyhole(*words)
    assert code == 2
    for part in ("'nowhere'", "nowhere", "'age'", "iuf.csv", "'sex'"):
        assert part.strip("'") in err


# Several candidates, several metrics


def test_candidates_and_metrics_are_compared(files, keyhole, tmp_path):
    frame = pl.read_csv(files / "puf.csv")
    frame.drop("homstate").write_csv(tmp_path / "coarse.csv")
    words = words_for(files, "--metric", "unicity,taxicab", "--missing-codes", "age:-9")
    words[words.index("--puf") + 1] = f"as it is={files / 'puf.csv'}"
    words += ["--puf", f"{tmp_path / 'coarse.csv'}", "--permutations", "5"]
    code, out, err = keyhole(*words, "--json", "--plot", tmp_path / "both.svg")
    assert code == 0, err
    rows = json.loads(out)["comparison"]
    assert [(row["release"], row["metric"]) for row in rows] == [
        ("as it is", "unicity"), ("as it is", "taxicab"), ("coarse", "unicity"),
        ("coarse", "taxicab"),
    ]  # fmt: skip
    assert "'homstate' is not in this release" in rows[2]["warnings"][0]
    _, alone, _ = keyhole(*words_for(files, "--metric", "taxicab", "--missing-codes", "age:-9",
                                     "--permutations", "5", "--json"))  # fmt: skip
    assert rows[1]["conditional_rate"] == json.loads(alone)["conditional_rate"]
    assert (tmp_path / "both.svg").stat().st_size > 1000


def test_a_release_without_ids_is_attacked_by_its_rows(files, keyhole, tmp_path):
    release = tmp_path / "protected" / "release"
    release.mkdir(parents=True)
    frame = pl.read_csv(files / "puf.csv", infer_schema=False)
    frame.drop("puf_id").write_csv(release / "implicate-1.csv")
    plain = ["--missing-codes", "age:-9", "--permutations", "5", "--json"]
    words = words_for(files, *plain)
    words[words.index("--puf") + 1] = tmp_path / "protected"
    code, out, err = keyhole(*words, "--ids-from", files / "puf.csv")
    assert code == 0, err
    assert json.loads(out) == json.loads(keyhole(*words_for(files, *plain))[1])
    code, _, err = keyhole(*words)
    assert code == 2
    assert "'puf_id' is not a column" in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--metric taxikab", "--metric must be one of .* Did you mean 'taxicab'"),
        (
            "--metric unicity,taxicab --pairs pairs.csv",
            "--pairs needs one --puf, --eif and --metric",
        ),
        ("--puf puf={puf}", "--puf must be .* Got the name 'puf' twice"),
    ],
)
def test_what_cannot_be_compared_is_told(files, keyhole, tmp_path, monkeypatch, more, said):
    monkeypatch.chdir(tmp_path)
    words = words_for(files, *more.format(puf=files / "puf.csv").split())
    code, out, err = keyhole(*words)
    assert (code, out) == (2, "")
    assert re.search(said, err), err


def test_a_linking_variable_may_be_blank_if_asked(files, keyhole, tmp_path):
    pl.read_csv(files / "puf.csv").drop("homstate").write_csv(tmp_path / "puf.csv")
    words = words_for(files, "--missing-codes", "age:-9", "--permutations", "0")
    words[words.index("--puf") + 1] = tmp_path / "puf.csv"
    assert keyhole(*words)[0] == 2
    code, out, _ = keyhole(*words, "--blank", "homstate")
    assert code == 0
    assert "Warning: 'homstate' is not in this release" in out


def test_candidates_may_lack_what_is_blank(files, keyhole, tmp_path):
    pl.read_csv(files / "puf.csv").drop("homstate").write_csv(tmp_path / "coarse.csv")
    words = words_for(files, "--missing-codes", "age:-9", "--permutations", "0", "--json")
    words += ["--puf", tmp_path / "coarse.csv", "--blank", "homstate"]
    code, out, err = keyhole(*words)
    assert (code, err) == (0, "")
    rows = json.loads(out)["comparison"]
    assert [row["release"] for row in rows] == ["puf", "coarse"]
    said = ["'homstate' is not in this release" in " ".join(r["warnings"]) for r in rows]
    assert said == [False, True]
