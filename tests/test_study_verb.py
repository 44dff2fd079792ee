"""A whole study: planted truths come out, and the result says what it found and cannot say."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from jsonschema import Draft202012Validator

from keyhole.core.codec import plain_values
from keyhole.data import load
from keyhole.data.examples import veterans
from keyhole.errors import InputError, OptionError
from keyhole.reidentification.compare import compare_studies
from keyhole.reidentification.study import study
from keyhole.synthesis.synthesise import synthesise

SCHEMA = Path(__file__).parents[1] / "docs" / "schemas" / "study.json"
VALIDATOR = Draft202012Validator(json.loads(SCHEMA.read_text()))
METRICS = ("unicity", "taxicab", "euclidean")
# Each of these goes wrong or missing by itself in the example world.
APART = ("sex", "age", "ms", "ethnic", "race1", "area", "psx", "income")
IDS = {"puf_id": "puf_id", "eif_id": "eif_id"}


def of(world, **asked):
    return study(puf=world.sample, eif=world.external, iuf=world.truth, **IDS, **asked)


def within(value, interval):
    return interval[0] <= value <= interval[1]


@pytest.fixture(scope="module")
def world():
    return veterans(4_000, seed=1)


@pytest.fixture(scope="module")
def found(world):
    link = ["age", "race1", "homstate", "ms"]
    return of(world, link=link, numeric=["age"], metric="taxicab", strata=["sex"])


# Planted truths


def planted(seed, people=1500, known=0.5, right=0.7, wrong=0.2):
    """Make files of people known by one code: theirs, another's, or nobody's in the EIF."""
    random = np.random.default_rng(seed)
    order = random.permutation(people)
    inside, others = order[: int(people * known)], order[int(people * known) :]
    fate = random.random(len(inside))
    code = np.where(fate < right, inside, people + np.arange(len(inside)))
    taken = fate >= 1 - wrong
    code[taken] = others[: taken.sum()]
    puf = pl.DataFrame({"p": np.arange(people), "code": np.arange(people).astype(str)})
    eif = pl.DataFrame({"e": np.arange(len(inside)), "code": code.astype(str)})
    iuf = pl.DataFrame({"p": inside, "e": eif["e"]})
    alike = pl.lit("everybody").alias("planet")
    return {"puf": puf.with_columns(alike), "eif": eif.with_columns(alike), "iuf": iuf}


@pytest.mark.parametrize("metric", ["unicity", "taxicab", "euclidean"])
def test_planted_rates_lie_in_the_intervals(metric):
    missed = {"putative_rate": 0, "confirmed_rate": 0, "conditional_rate": 0}
    expected = {"putative_rate": 0.45, "confirmed_rate": 0.35, "conditional_rate": 7 / 9}
    for seed in range(12):
        asked = {"puf_id": "p", "eif_id": "e", "link": ["code", "planet"]}
        rates = study(**planted(seed), **asked, metric=metric, permutations=0).rates
        named = rates.named()
        for name, value in expected.items():
            missed[name] += not within(value, named[name].interval)
    assert max(missed.values()) <= 2  # of twelve, one in twenty is missed on average


@pytest.mark.parametrize(
    ("overlap", "error_rate", "missing_rate"), [(0.5, 0.0, 0.0), (0.5, 0.03, 0.05), (0.8, 0.1, 0.0)]
)
def test_the_example_worlds_overlap_and_noise_come_out(overlap, error_rate, missing_rate):
    world = veterans(
        8_000, seed=2, overlap=overlap, error_rate=error_rate, missing_rate=missing_rate, years=0
    )
    rates = of(world, link=APART, orders="highest", permutations=0).rates
    # A true pair is found if nothing of it is wrong or missing: these values tell people apart.
    whole = ((1 - error_rate) * (1 - missing_rate)) ** len(APART)
    assert within(overlap * whole, rates.intervals["confirmed_rate"])
    assert within(overlap * whole, rates.intervals["putative_rate"])
    assert rates.conditional_rate > 0.99


def test_without_noise_those_alone_in_both_files_are_confirmed():
    world = veterans(3_000, seed=3, error_rate=0, missing_rate=0, years=0)
    link = ["sex", "ms", "race1", "homstate"]

    def alone(data):
        frame = data.frame.select(*link, pl.first().alias("id"))
        return frame.filter(pl.len().over(link) == 1)

    both = alone(world.sample).join(alone(world.external), on=link, suffix="_eif")
    true = both.join(world.truth.frame, left_on=["id", "id_eif"], right_on=["puf_id", "eif_id"])
    rates = of(world, link=link, orders="highest", permutations=0).rates
    assert (rates.suspected, rates.confirmed) == (both.height, true.height)
    assert 0 < true.height < both.height


@pytest.mark.parametrize("metric", METRICS)
def test_without_overlap_nobody_is_confirmed_and_chance_agrees(metric):
    world = veterans(3_000, seed=1, overlap=0)
    # Nobody is in both: the internal file has the PUF's ids only.
    truth = world.sample.frame.select("puf_id", eif_id=pl.lit(None, pl.Int64))
    link = ["sex", "age", "race1", "homstate"]
    found = study(
        puf=world.sample, eif=world.external, iuf=truth, **IDS, link=link, metric=metric,
        permutations=20,
    )  # fmt: skip
    assert found.suspected > 0
    assert (found.confirmed, found.conditional_rate) == (0, 0.0)
    assert found.baseline.confirmed == 0
    assert found.baseline.p_value == 1
    assert found.to_dict()["overlap"] == {"records": 0, "found": None, "interval": None}
    assert "names no pair" in found.verdict["overlap"]
    assert "no more than chance" in found.verdict["chance"]


def test_a_truth_dealt_out_at_random_is_confirmed_as_chance_says(world):
    shuffled = np.random.default_rng(5).permutation(world.external.records)[: world.truth.records]
    wrong = world.truth.frame.select("puf_id", eif_id=pl.Series(shuffled + 1))
    found = study(
        puf=world.sample, eif=world.external, iuf=wrong, **IDS, metric="taxicab",
        link=["sex", "age", "race1"],
    )  # fmt: skip
    assert found.baseline.p_value > 0.05
    assert "no more than chance" in found.verdict["chance"]


def test_better_than_chance_is_called_so(found):
    assert found.baseline.p_value < 0.01
    assert "The study confirms more." in found.verdict["chance"]


# What a result holds


def test_the_dictionary_keeps_the_contract_and_the_schema(world, found):
    for metric in METRICS:
        one = of(world, link=["sex", "race1", "ms"], metric=metric, permutations=3)
        VALIDATOR.validate(plain_values(one.to_dict()))
    told = found.to_dict()
    VALIDATOR.validate(plain_values(told))
    assert told["metric"] == "taxicab"
    assert (told["puf_records"], told["eif_records"]) == (400, 400)
    assert told["link"] == ["age", "race1", "homstate", "ms"]
    assert told["conditional_rate"] == told["confirmed"] / told["suspected"]
    assert told["effective_threshold"] == 0.25
    assert told["baseline"]["within_strata"]


def test_parts_add_up(found):
    rates = found.rates
    for parts in (found.by_stratum, found.by_agreement, found.by_rank):
        assert sum(part.rates.pairs for part in parts) == rates.pairs
        assert sum(part.rates.true_pairs for part in parts) == rates.true_pairs
    assert sum(part.rates.puf_records for part in found.by_stratum) == found.puf_records
    assert sum(part.rates.suspected for part in found.by_stratum) == rates.suspected
    elsewhere = found.eif_records - sum(part.eif_records for part in found.by_stratum)
    assert elsewhere > 0  # the EIF's missing values are a stratum that the PUF does not have
    assert found.to_dict()["notes"] == [
        f"{elsewhere} EIF records have no value of sex, unlike any PUF record, and cannot be linked"
    ]
    chance = sum(part.baseline.confirmed for part in found.by_stratum)
    assert chance == pytest.approx(found.baseline.confirmed)
    assert [part.label for part in found.by_rank] == list(range(1, len(found.by_rank) + 1))
    agreed = sum(use.pairs_agreeing for use in found.by_variables)
    assert agreed == sum(part.label * part.rates.pairs for part in found.by_agreement)


def test_pairs_have_ids_scores_ranks_and_truth(world, found):
    pairs = found.pairs_frame()
    assert pairs.columns == ["puf_id", "eif_id", "score", "rank", "confirmed"]
    true = set(world.truth.frame.select("puf_id", "eif_id").iter_rows())
    for puf, eif, score, rank, confirmed in pairs.iter_rows():
        assert ((puf, eif) in true) == confirmed
        assert score < 0.25
        assert 1 <= rank <= 5
    assert pairs["puf_id"].n_unique() == found.suspected
    assert pairs.filter("confirmed")["puf_id"].n_unique() == found.confirmed


def test_the_pairs_of_unicity_tell_the_smallest_subset(world):
    found = of(world, link=["sex", "race1", "homstate", "ms"], permutations=0)
    pairs = found.pairs_frame()
    assert pairs.columns == ["puf_id", "eif_id", "score", "subset", "confirmed"]
    sizes = pairs["subset"].str.split(" + ").list.len()
    assert sizes.to_list() == found.linked.score.tolist()
    puf = world.sample.frame.rename({"puf_id": "id"})
    eif = world.external.frame.rename({"eif_id": "id"})
    for puf_id, eif_id, _, subset, _ in pairs.head(40).iter_rows():
        names = subset.split(" + ")
        mine = puf.filter(id=puf_id).select(names)
        for file, own in ((puf, puf_id), (eif, eif_id)):
            assert mine.join(file.select("id", *names), on=names)["id"].to_list() == [own]


def test_ids_of_one_name_are_told_apart_in_the_pairs():
    frame = pl.DataFrame({"state": ["ny", "ca"], "rank": [1, 2], "x": ["a", "b"], "y": [1, 2]})
    eif = frame.rename({"rank": "number"})
    found = study(
        puf=frame, eif=eif, iuf=frame.with_columns(number=pl.col("rank")), metric="taxicab",
        puf_id=["state", "rank"], eif_id=["state", "number"], link=["x", "y"],
        permutations=0,
    )  # fmt: skip
    columns = ["puf_state", "puf_rank", "eif_state", "number", "score", "rank", "confirmed"]
    assert found.pairs_frame().columns == columns
    assert found.conditional_rate == 1


def test_nobody_suspected_is_not_estimable_and_says_why():
    puf = {"p": [1, 2], "x": ["a", "a"], "y": ["b", "b"]}
    eif, iuf = {"e": [1], "x": ["a"], "y": ["b"]}, {"p": [1], "e": [1]}
    asked = {"puf_id": "p", "eif_id": "e", "link": ["x", "y"]}
    found = study(puf=puf, eif=eif, iuf=iuf, **asked, permutations=5)
    told = found.to_dict()
    VALIDATOR.validate(plain_values(told))
    assert told["suspected"] == 0
    assert told["conditional_rate"] is None
    assert told["intervals"]["conditional_rate"] is None
    assert "conditional_rate and pair_precision are null: nobody is suspected" in told["notes"]
    assert "not estimable" in found.summary()
    assert found.plot().to_dict()["title"]["text"] == ["No record is suspected among 2 PUF records"]


def test_no_permutations_no_baseline(world):
    found = of(world, link=["sex", "race1"], permutations=0)
    assert found.baseline is None
    assert found.to_dict()["baseline"] is None
    assert "not computed" in found.verdict["chance"]
    VALIDATOR.validate(plain_values(found.to_dict()))


def test_the_verdict_carries_the_papers_caveats(found):
    words = " ".join(found.verdict.values())
    for caveat in ("One point in time", "No intimate knowledge", "No proof of safety"):
        assert caveat in words
    assert "linked within sex" in words
    assert "finer" in words
    assert f"{found.suspected} ({found.suspected / found.puf_records:.0%})" in words
    text = " ".join(found.summary().split())
    assert "does not confirm that the file is safe" in text


def test_the_same_seed_gives_the_same_study(world):
    asked = {"link": ["sex", "age", "race1"], "metric": "taxicab", "permutations": 30}
    first, again, other = (of(world, **asked, seed=seed).to_dict() for seed in (1, 1, 2))
    assert first == again
    assert first["baseline"] != other["baseline"]
    assert {**first, "baseline": 0, "seed": 0, "verdict": 0} == {
        **other, "baseline": 0, "seed": 0, "verdict": 0,
    }  # fmt: skip


def test_no_value_or_id_of_a_record_is_shown():
    secret = "zq7391"
    puf = pl.DataFrame({"p": [secret + "p", "b"], "x": [secret, "c"], "y": ["1", "2"]})
    eif = puf.rename({"p": "e"})
    iuf = pl.DataFrame({"p": puf["p"], "e": eif["e"], "x": [secret + "x", "c"]})
    found = study(
        puf=puf, eif=eif, iuf=iuf, puf_id="p", eif_id="e", link=["x", "y"], metric="taxicab"
    )
    shown = [found.summary(), repr(found), found._repr_html_(), json.dumps(found.to_dict())]
    shown += [str(found.to_frame()), json.dumps(found.plot().to_dict())]
    assert all(secret not in text for text in shown)
    assert secret in str(found.pairs_frame()["p"][0])


# Perturbation


def test_what_the_perturbation_bought():
    n = 60
    code = [f"c{i}" for i in range(n)]
    swapped = [code[i ^ 1] if i < 20 else code[i] for i in range(n)]
    puf = pl.DataFrame({"p": range(n), "code": swapped, "planet": ["earth"] * n})
    eif = pl.DataFrame({"e": range(n), "code": code, "planet": ["earth"] * n})
    iuf = pl.DataFrame({"p": range(n), "e": range(n), "code": code})
    asked = {"puf_id": "p", "eif_id": "e", "link": ["code", "planet"], "permutations": 0}
    found = study(puf=puf, eif=eif, iuf=iuf, **asked)
    assert (found.suspected, found.confirmed) == (60, 40)
    told = found.to_dict()["perturbation"]
    assert told["changed"] == {"code": 20}
    assert told["without"]["confirmed"] == 60
    assert told["bought"]["confirmed"] == 20
    assert told["bought"]["conditional_rate"] == pytest.approx(1 / 3)
    assert "20 fewer" in found.verdict["perturbation"]
    assert "Effect of the perturbation" in found.summary()
    VALIDATOR.validate(plain_values(found.to_dict()))


def test_values_as_they_are_in_the_puf_are_no_perturbation(world):
    assert set(APART) <= set(world.truth.names)
    found = of(world, link=["sex", "age"], numeric=["age"], metric="taxicab", permutations=0)
    assert found.perturbation is None
    assert found.warnings == ()


def test_values_that_match_nobody_before_the_perturbation_are_a_warning():
    puf, eif = {"p": [1], "x": [1], "y": [1]}, {"e": [1], "x": [1], "y": [1]}
    iuf = {"p": [1], "e": [1], "x": [2]}
    found = study(puf=puf, eif=eif, iuf=iuf, puf_id="p", eif_id="e", link=["x", "y"],
                  permutations=0)  # fmt: skip
    assert (found.suspected, found.perturbation) == (1, None)
    assert any("not run without the perturbation: linking" in text for text in found.warnings)


def test_values_that_cannot_be_undone_are_a_warning():
    puf, eif = {"p": [1], "x": [1], "y": [1]}, {"e": [1], "x": [1], "y": [1]}
    iuf = {"p": [1], "e": [1], "x": ["a"]}
    asked = {"puf_id": "p", "eif_id": "e", "link": ["x", "y"], "permutations": 0}
    found = study(puf=puf, eif=eif, iuf=iuf, **asked)
    assert found.perturbation is None
    assert "'x' holds values of another type" in found.warnings[0]


# Warnings and errors


@pytest.mark.parametrize(
    ("variables", "threshold", "warned"),
    [(16, "published", False), (17, "published", True), (17, "derived", False)],
)
def test_a_threshold_that_lets_everything_pass_is_told(world, variables, threshold, warned):
    link = [f"v{i}" for i in range(variables)]
    sex = world.sample.frame["sex"][:30]
    puf = pl.DataFrame({"p": range(30), **dict.fromkeys(link, sex)})
    eif = puf.rename({"p": "e"})
    iuf = pl.DataFrame({"p": range(30), "e": range(30)})
    asked = {"metric": "euclidean", "threshold": threshold, "permutations": 0}
    found = study(puf=puf, eif=eif, iuf=iuf, puf_id="p", eif_id="e", link=link, **asked)
    assert bool(found.warnings) == warned
    assert ("only the ranks choose" in " ".join(found.summary().split())) == warned


def test_rows_of_the_internal_file_with_one_id_are_told():
    puf, eif = {"p": [1, 2], "x": [1, 2], "y": [1, 2]}, {"e": [1, 2], "x": [1, 2], "y": [1, 2]}
    iuf = {"p": [1, 2], "e": [1, None]}
    asked = {"puf_id": "p", "eif_id": "e", "link": ["x", "y"], "permutations": 0}
    found = study(puf=puf, eif=eif, iuf=iuf, **asked)
    assert found.warnings == (
        "1 of 2 rows of the IUF have only one of the two ids and name no pair",
    )


@pytest.mark.parametrize("wrong", [{"permutations": -1}, {"permutations": 2.5}, {"seed": "x"}])
def test_chance_needs_whole_numbers(world, wrong):
    with pytest.raises(
        InputError, match=r"must be a whole number (from 0 to 100,000|of at least 0)\. Got"
    ):
        of(world, link=["sex"], **wrong)


def test_all_problems_at_once():
    puf, eif = {"p": [1, 1], "x": [1, 2]}, {"e": [1, None], "x": [1, 2]}
    with pytest.raises(InputError) as caught:
        study(
            puf=puf, eif=eif, iuf={"p": [1], "e": [1]}, puf_id="p", eif_id="e",
            link=["x", "agee"], permutations=-1,
        )  # fmt: skip
    text = str(caught.value)
    for part in ("permutations", "PUF's id", "EIF's id", "'agee'"):
        assert part in text


# Comparison


def test_releases_and_metrics_in_one_table(world):
    frame = world.sample.frame
    pufs = {"as collected": frame, "without age": frame.with_columns(age=pl.lit(50))}
    asked = {"link": ["sex", "age", "race1", "homstate"], "numeric": ["age"], "permutations": 10}
    compared = compare_studies(
        pufs, eif=world.external, iuf=world.truth, metrics=["unicity", "taxicab"], **IDS, **asked
    )
    rows = compared.to_frame()
    assert rows.select("release", "metric").rows() == [
        ("as collected", "unicity"), ("as collected", "taxicab"),
        ("without age", "unicity"), ("without age", "taxicab"),
    ]  # fmt: skip
    one = of(world, metric="taxicab", **asked)
    assert rows["conditional_rate"][1] == one.conditional_rate
    assert rows["confirmed"][2] < rows["confirmed"][0]
    assert "as collected  taxicab" in compared.summary()
    chances = [row[-1] for row in compared.tables()[0].rows]
    assert chances == [f"{row.baseline_conditional_rate:.4f}" for row in compared.rows]
    text = compared.plot().to_dict()["title"]["text"]
    assert text[0].startswith("Of the suspected")
    assert len(compared.to_dict()["comparison"]) == 4


def test_a_release_may_have_an_internal_file_of_its_own(world):
    fewer = world.sample.frame.filter(pl.col("puf_id") <= 200)
    truth = world.truth.frame
    asked = {"eif": world.external, "metrics": ["taxicab"], "link": ["sex", "ms"]}
    with pytest.raises(InputError, match="release 'fewer': every id 'puf_id' in the IUF"):
        compare_studies({"fewer": fewer}, iuf=truth, **IDS, **asked)
    own = {"all": truth, "fewer": truth.filter(pl.col("puf_id") <= 200)}
    compared = compare_studies({"all": world.sample, "fewer": fewer}, iuf=own, **IDS, **asked)
    assert [row.study.puf_records for row in compared.rows] == [400, 200]


def test_a_comparison_of_nothing_is_refused(world):
    with pytest.raises(OptionError, match="at least one"):
        compare_studies({}, eif=world.external, iuf=world.truth, link="sex", **IDS)


# Pictures


@pytest.mark.parametrize("metric", METRICS)
def test_the_picture_says_the_finding_and_holds_no_record(world, metric):
    found = of(world, link=["sex", "age", "race1"], numeric=["age"], metric=metric)
    spec = found.plot().to_dict()
    assert spec["title"]["text"][0].startswith("Of the records an intruder would suspect")
    rows = [row for part in spec["datasets"].values() for row in part]
    pairs = sum(row["pairs"] for row in rows if "pairs" in row)
    assert pairs == found.rates.pairs
    true = sum(row["pairs"] for row in rows if row.get("kind") == "true pairs")
    assert true == found.rates.true_pairs
    whiskers = {row["name"]: (row["low"], row["high"]) for row in rows if "below" in row}
    assert whiskers["Conditional"] == found.rates.intervals["conditional_rate"]


def test_loaded_files_keep_their_names_in_messages(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text("p,x\n1,a\n")
    with pytest.raises(InputError, match="not a column of 'public'"):
        study(
            puf=load(path), eif={"e": [1], "x": ["a"]}, iuf={"p": [1], "e": [1]}, puf_id="q",
            eif_id="e", link="x",
        )  # fmt: skip


# What a new user's pass found


def test_an_internal_file_without_rows_is_refused(world):
    empty = world.truth.frame.clear()
    with pytest.raises(InputError, match=r"the IUF .* has a header but no records"):
        study(puf=world.sample, eif=world.external, iuf=empty, **IDS, link=["sex", "ms"])


def test_a_candidate_may_leave_out_what_others_tell(world):
    frame = world.sample.frame
    blank = frame.with_columns(homstate=pl.lit(None, pl.String))
    pufs = {"whole": frame, "dropped": frame.drop("homstate"), "blanked": blank}
    asked = {"eif": world.external, "iuf": world.truth, "permutations": 0}
    link = ["sex", "race1", "homstate", "ms"]
    for metric in METRICS:
        compared = compare_studies(pufs, metrics=metric, link=link, **asked, **IDS)
        whole, dropped, blanked = (row.study for row in compared.rows)
        assert whole.warnings == ()
        assert "'homstate' is not in this release" in dropped.warnings[0]
        assert dropped.rates == blanked.rates
        assert dropped.confirmed < whole.confirmed
        assert {use.variable: use.pairs_agreeing for use in dropped.by_variables}["homstate"] == 0
    assert "Warning (dropped, blanked; euclidean)" in compared.summary()


def test_a_variable_that_no_candidate_tells_is_an_error(world):
    frame = world.sample.frame.drop("ms")
    with pytest.raises(InputError, match="'ms' is not a column"):
        compare_studies(
            {"a": frame, "b": frame}, eif=world.external, iuf=world.truth, link=["sex", "ms"], **IDS
        )


def test_scores_go_to_adhoc_alone_in_a_comparison(world):
    scores = {"sex": {"exact": 5}, "ms": {"exact": 5}, "race1": {"exact": 5}}
    compared = compare_studies(
        {"a": world.sample}, eif=world.external, iuf=world.truth, metrics=["taxicab", "adhoc"],
        link=list(scores), scores=scores, permutations=0, **IDS,
    )  # fmt: skip
    assert [row.study.metric for row in compared.rows] == ["taxicab", "adhoc"]


def test_ids_come_from_the_file_a_release_was_made_from(world):
    link = ["sex", "race1", "homstate", "ms"]
    release = world.sample.frame.drop("puf_id")
    asked = {"eif": world.external, "iuf": world.truth, "link": link, "permutations": 0, **IDS}
    assert study(puf=release, ids_from=world.sample, **asked).rates == of(
        world, link=link, permutations=0
    ).rates  # fmt: skip
    turned = world.sample.frame.reverse()  # its own ids come first
    assert study(puf=turned, ids_from=world.sample, **asked).rates == study(
        puf=turned, **asked
    ).rates  # fmt: skip
    with pytest.raises(InputError, match="in the same rows"):
        study(puf=release.head(9), ids_from=world.sample, **asked)


def test_a_release_in_another_order_has_its_ids_by_what_internal_holds(world, tmp_path):
    people = world.sample.frame.sort("age")  # neighbours would tell the ages that were replaced
    people.write_csv(tmp_path / "puf.csv")
    made = synthesise(
        tmp_path / "puf.csv", keys=["sex", "age", "race1"], targets=["age", "race1"], seed=3,
        implicates=1, drop=["puf_id", "household"], self_match=0, out=tmp_path / "made",
    )  # fmt: skip
    link = ["sex", "race1", "homstate", "ms"]
    asked = {"eif": world.external, "iuf": world.truth, "link": link, "permutations": 0, **IDS}
    ordered = study(puf=made.frame(1).drop("puf_id"), ids_from=people, **asked).rates
    file = tmp_path / "made" / "release" / "implicate-1.csv"
    assert pl.read_csv(file)["age"].to_list() != made.frame(1)["age"].to_list()
    for puf in (tmp_path / "made", file):
        assert study(puf=puf, ids_from=tmp_path / "puf.csv", **asked).rates == ordered
    alone = file.rename(tmp_path / "implicate-1.csv")  # nothing tells its order any more
    with pytest.raises(InputError, match="Got records that agree on no column"):
        study(puf=alone, ids_from=tmp_path / "puf.csv", **asked)


def test_under_adhoc_a_pair_agrees_where_it_has_the_highest_score():
    puf = pl.DataFrame({"p": [1], "ms": ["M"], "age": [40], "pay": [100.0], "x": ["a"]})
    eif = pl.DataFrame({"e": [1], "ms": ["W"], "age": [42], "pay": [108.0], "x": [None]})
    scores = {
        "ms": {"table": [["M", "W", 4]], "same": 3},  # the table's score is the highest
        "age": {"absolute": [[2, 5], [4, 3]]},
        "pay": {"relative": [[0.05, 5], [0.1, 4]]},  # the second band is not
        "x": {"exact": 5},
    }
    found = study(
        puf=puf, eif=eif.with_columns(pl.col("x").cast(pl.String)).vstack(
            pl.DataFrame({"e": [2], "ms": ["D"], "age": [90], "pay": [9.0], "x": ["a"]})
        ),
        iuf={"p": [1], "e": [1]}, puf_id="p", eif_id="e", link=list(scores), metric="adhoc",
        scores=scores, permutations=0,
    )  # fmt: skip
    agreed = {use.variable: use.pairs_agreeing for use in found.by_variables}
    assert (found.rates.pairs, agreed) == (1, {"ms": 1, "age": 1, "pay": 0, "x": 0})
    assert "highest score" in found.summary()


def test_what_agreeing_means_stands_below_the_table(found):
    assert "A pair agrees on a variable where" in found.summary()


def test_missing_strata_are_told_as_such():
    puf = pl.DataFrame({"p": [1, 2, 3], "s": ["a", "b", None], "x": [1, 2, 3], "y": [1, 2, 3]})
    eif = puf.with_columns(s=pl.Series(["a", None, None])).rename({"p": "e"})
    found = study(
        puf=puf, eif=eif, iuf={"p": [1], "e": [1]}, puf_id="p", eif_id="e", link=["x", "y"],
        strata="s", permutations=0,
    )  # fmt: skip
    assert found.to_dict()["unlinked"] == {
        "puf": {"missing_stratum": 1, "missing_stratum_unlinked": 0, "other_unlinked": 1},
        "eif": {"missing_stratum": 2, "missing_stratum_unlinked": 0, "other_unlinked": 0},
    }
    said = found.summary()
    assert "1 PUF records have no value of s, which makes a stratum of their own." in said
    assert "1 PUF records are in strata without EIF records and cannot be linked." in said
    VALIDATOR.validate(plain_values(found.to_dict()))


def test_numbers_and_strata_are_named_and_a_measure_taken_as_category_is_told(world):
    asked = {"link": ["age", "race1", "income"], "permutations": 0, "strata": ["sex"]}
    said = of(world, numeric=["age"], **asked).summary()
    assert "Numbers: age; the others are categories. Linked within sex." in said
    assert "Warning: 'income' holds many different numbers and is linked as a category" in said
    assert "Warning: 'age'" not in said


def test_the_picture_shows_the_rates_without_the_perturbation_too():
    n = 60
    code = [f"c{i}" for i in range(n)]
    swapped = [code[i ^ 1] if i < 20 else code[i] for i in range(n)]
    puf = pl.DataFrame({"p": range(n), "code": swapped, "planet": ["earth"] * n})
    eif = pl.DataFrame({"e": range(n), "code": code, "planet": ["earth"] * n})
    iuf = pl.DataFrame({"p": range(n), "e": range(n), "code": code})
    found = study(
        puf=puf, eif=eif, iuf=iuf, puf_id="p", eif_id="e", link=["code", "planet"], permutations=0
    )
    spec = json.dumps(found.plot().to_dict())
    assert spec.count("without the perturbation 100%") == 3


def test_bars_of_few_scores_stand_on_ticks_and_the_threshold_is_drawn(world):
    found = of(world, link=["sex", "age", "race1"], numeric=["age"], metric="taxicab")
    spec = found.plot().to_dict()
    bars, rule, _ = spec["hconcat"][1]["layer"]
    ticks = bars["encoding"]["x"]["axis"]["values"]
    assert ticks == sorted(set(found.linked.score.tolist()))
    assert rule["mark"]["type"] == "rule"
    assert "threshold 0.25" in json.dumps(spec)


def test_a_stratum_of_fewer_than_three_is_not_described_unless_asked_for():
    ages = range(30, 37)
    where = ["town"] * 3 + ["two farms"] * 2 + ["lone hamlet", "lone house"]
    puf = pl.DataFrame({"p": range(7), "age": ages, "sex": 1, "where": where})
    eif = pl.DataFrame({"e": range(7), "age": ages, "sex": 1, "where": where})
    truth = pl.DataFrame({"p": range(7), "e": range(7)})
    asked = {"puf": puf, "eif": eif, "iuf": truth, "puf_id": "p", "eif_id": "e",
             "link": ["age", "sex"], "strata": ["where"], "metric": "taxicab"}  # fmt: skip
    found = study(**asked)
    assert [part.label for part in found.by_stratum] == sorted({*where})
    assert [name for name in {*where} if name in found.summary()] == ["town"]
    assert "(3 smaller)" in found.summary()
    assert all(name in study(**asked, name_small_groups=True).summary() for name in where)
