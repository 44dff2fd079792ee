"""Attacks with a control in a review: held-out records, chapter, verdict, figures recounted."""

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tests.reviews import ILL_IS_SENSITIVE, edit, plain_pictures, problems, run

import keyhole
from keyhole.data import load
from keyhole.errors import InputError
from keyhole.reidentification.residual_risk import Attack, Trials
from keyhole.reviews.schema import CONTROLLED
from keyhole.reviews.settings import resolve_attacks
from keyhole.reviews.stages.attacks import few_of, without_small
from keyhole.reviews.study_chapters import ATTACK_TITLES
from keyhole.reviews.verdict import _residual
from keyhole.reviews.verifying import verify

pytestmark = pytest.mark.usefixtures("plain_charts")

HEAD = f"""\
keys = ["sex", "age", "state"]
[release]
[data]
file = "people.csv"
[data.roles]
serial = "identifier"
{ILL_IS_SENSITIVE}limit = 1
"""
SYNTHESIS = """\
[synthesis]
targets = ["age", "state"]
seed = 9007199254740993
implicates = 2
self_match = 0
hold_out = 0.4
"""
ATTACKS = """\
[attacks]
second_link = ["job"]
limit = 0.1
"""
DROP = "[[protection.step]]\nmethod = 'drop'\ncolumns = ['{}']\n"
BANDS = """\
[[protection.step]]
method = "derive"
name = "age10"
expression = "band(age, 10)"
[[protection.step]]
method = "drop"
columns = ["age"]
"""


def released(path):
    """Read an implicate in the order of the original's records."""
    rows = pl.read_parquet(path.parents[1] / "internal" / "records.parquet")["release_row"]
    return pl.read_csv(path)[rows - 1]


def people(count, seed):
    """The illness depends on age and sex; jobs are people's own."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 90, count), rng.integers(0, 2, count)
    ill = (age // 10 + sex + (rng.random(count) < 0.3)) % 4
    return pl.DataFrame({
        "serial": [f"P{seed:02d}-{i:05d}" for i in range(count)],
        "sex": [("f", "m")[one] for one in sex],
        "age": age,
        "state": [f"s{one}" for one in rng.integers(0, 12, count)],
        "job": [f"j{one}" for one in rng.integers(0, 25, count)],
        "ill": [None if rng.random() < 0.05 else f"i{one}" for one in ill],
    })  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    people(500, 1).write_csv(tmp_path / "people.csv")
    people(300, 2).write_csv(tmp_path / "others.csv")
    return tmp_path


def reviewed(folder, *sections):
    (folder / "review.toml").write_text("".join((HEAD, *sections)))
    return run(folder)


def reasons(found):
    return {one.what: one for one in found.verdict.reasons}


NOT_MADE = [
    "no column that the intruder knows is released",
    "no column of the second source is released",
    "no secret is released",
]
TITLES = [
    "Singling out",
    "Linking two sources",
    "Inferring a secret",
    "Detecting who is in the file",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacks")
    people(500, 1).write_csv(folder / "people.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.reviews.runner._pictures", plain_pictures)
        return folder, reviewed(folder, SYNTHESIS, ATTACKS)


def nearest(person, release, names):
    """Return the distance to each record: 0 or 1 a category, ages by the range of the release."""
    span = release["age"].max() - release["age"].min()
    total = np.zeros(release.height)
    for name in names:
        if name == "age":
            total += np.minimum(1, (release["age"] - person["age"]).abs().to_numpy() / span)
        else:
            total += np.array([value != person[name] for value in release[name]])
    return total


def test_the_people_attacked_are_those_of_the_release_and_the_control_those_held_out(made):
    folder, found = made
    inside = pl.read_csv(folder / "out/synthesis/internal/original.csv")
    outside = pl.read_csv(folder / "out/synthesis/internal/control.csv")
    whole = pl.read_csv(folder / "people.csv")
    assert pl.concat([inside, outside]).sort("serial").equals(whole.sort("serial"))
    assert (inside.height, outside.height) == (300, 200)
    for place in (1, 2):
        release = released(folder / f"out/synthesis/release/implicate-{place}.csv")
        stored = found.results()["attacks"]["files"][place - 1]
        assert stored["file"] == f"synthesis/release/implicate-{place}.csv"
        wide = ["sex", "age", "state", "job", "ill"]
        distances = [
            [nearest(one, release, wide).min() for one in side.to_dicts()]
            for side in (inside, outside)
        ]
        wins = [np.sign(o - i) / 2 + 0.5 for i in distances[0] for o in distances[1]
                if abs(o - i) > 1e-9] + [0.5 for i in distances[0] for o in distances[1]
                                         if abs(o - i) <= 1e-9]  # fmt: skip
        assert stored["attacks"]["present"]["roc_area"] == pytest.approx(np.mean(wins))
        # The guess of the closest records, where one pattern is the closest and one value leads.
        known, right, asked = release.drop_nulls("ill"), 0, 0
        unsure = 0
        for one in inside.drop_nulls("ill").to_dicts():
            far = nearest(one, known, ["sex", "age", "state"])
            cell = known.filter(pl.Series(far <= far.min() + 1e-9))
            votes = cell.group_by("ill").len().sort("len", descending=True)
            one_cell = cell.select("sex", "age", "state").n_unique() == 1
            clear = one_cell and (votes.height == 1 or votes["len"][0] > votes["len"][1])
            unsure += not clear
            right += clear and votes["ill"][0] == one["ill"]
            asked += 1
        inferred = stored["attacks"]["inferred"]
        assert inferred["attempts"] == asked
        assert right <= round(inferred["success"] * asked) <= right + unsure
        assert unsure < asked / 2


def test_what_is_measured_beside_the_implicates_has_their_records(made):
    folder, found = made
    inside = pl.read_csv(folder / "out/synthesis/internal/original.csv")
    shares = []
    for place in (1, 2):
        release = released(folder / f"out/synthesis/release/implicate-{place}.csv")
        keys = ["sex", "age", "state"]
        sizes = release.select(pl.len().over(keys)).to_series()
        same = pl.select(pl.all_horizontal(*(release[k].eq_missing(inside[k]) for k in keys)))
        shares.append(((sizes < 3) & same.to_series()).sum() / release.height)
    on_keys = found.results()["outgoing"]["keys"][0]
    assert on_keys["rp_true"] == pytest.approx(max(shares))
    assert on_keys["records"] == 300
    rows = found.results()["remaining"]["rows"]
    still = [row["still"] for row in rows if row["product"] == "implicate 1 of the synthesis"]
    first = released(folder / "out/synthesis/release/implicate-1.csv")
    alone = [one.select(pl.len().over(keys)).to_series() == 1 for one in (inside, first)]
    same = [first[k].eq_missing(inside[k]) for k in keys]
    assert still[0] == (alone[0] & alone[1] & same[0] & same[1] & same[2]).sum()


def test_the_worst_implicate_is_judged_and_told_in_a_sentence_each(made):
    folder, found = made
    files = found.results()["attacks"]["files"]
    told = reasons(found)
    names = ["singled-out", "linked", "inferred", "present"]
    page = (folder / "out/report.html").read_text()
    for name, title in zip(names, TITLES, strict=True):
        risks = [one["attacks"][name]["risk"] for one in files]
        known = [risk for risk in risks if risk is not None]
        assert told[title].found == max(known, default=None)
        assert (told[title].answer == "not_met") == (max(known, default=0) > 0.1)
        assert f"<p>{title}: " in page
    assert '<section id="attacks">' in page
    assert "The control was held out at random before the synthesis." in page
    assert (folder / "out/charts/attacks.svg").exists()
    assert "P01-0" not in page


def test_the_public_note_is_silent_and_a_verification_finds_the_same(made):
    folder, _ = made
    note = (folder / "out/public-note.html").read_text().lower()
    for word in ("attack", "control", "held out", "residual"):
        assert word not in note
    assert verify(folder / "out").same
    path = folder / "out/stages/attacks.json"
    stored = path.read_text()
    changed = json.loads(stored)
    changed["result"]["files"][0]["attacks"]["linked"]["success"] += 0.01
    path.write_text(json.dumps(changed))
    assert not verify(folder / "out").same
    path.write_text(stored)


def test_a_copy_is_not_released_and_a_coarse_file_of_others_control_is_coded_alike(folder):
    found = reviewed(folder, ATTACKS, 'control = "others.csv"\nattacks = ["inferred", "present"]\n')
    assert [reasons(found)[one].answer for one in TITLES[2:]] == ["not_met", "not_met"]
    copied = found.results()["attacks"]["files"][0]["attacks"]
    found = reviewed(folder, BANDS, ATTACKS, 'control = "others.csv"\n')
    stored = found.results()["attacks"]
    assert stored["left_out"] == ["age"]
    assert stored["files"][0]["link"] == ["sex", "state", "age10"]
    made = stored["files"][0]["attacks"]
    assert made["present"]["roc_area"] < copied["present"]["roc_area"]
    assert copied["present"]["success"] > 0.95
    # The same figures from files that are banded by hand.
    band = (pl.col("age") // 10 * 10).alias("age10")
    frames = [pl.read_csv(folder / name) for name in ("people.csv", "others.csv")]
    by_hand = [one.with_columns(band) for one in frames]
    release = pl.read_csv(folder / "out/protection/release/protected.csv")
    release = release.with_columns(pl.col("age10").str.extract(r"^(\d+)").cast(pl.Int64))
    same = keyhole.study(
        puf=release, original=by_hand[0], control=by_hand[1], attacks="linked", secret=["ill"],
        link=["sex", "state", "age10"], second_link="job",
    ).attacks["linked"]  # fmt: skip
    assert made["linked"]["success"] == pytest.approx(same.success, abs=0.02)
    assert made["linked"]["attempts"] == same.attempts == 500


@pytest.mark.parametrize(
    ("sections", "answer", "words"),
    [
        ([ATTACKS.replace("limit = 0.1\n", "")], "not_judged", "no limit is set"),
        ([ATTACKS], "not_judged", "there is no control of people outside the file"),
        ([ATTACKS, 'control = "few.csv"\n'], "not_judged", "fewer than 30 people in the control"),
        ([ATTACKS.replace("0.1", "0.993"), 'control = "thirty.csv"\n'], "not_judged",
         "which the interval exceeds"),
        ([ATTACKS, 'control = "thirty.csv"\nattacks = ["singled-out"]\n'], "not_judged",
         "no better than the guess"),
        (['[[protection.step]]\nmethod = "drop"\ncolumns = ["ill", "sex", "age", "state"]\n',
          ATTACKS], "met", NOT_MADE[0]),
        ([DROP.format("job"), ATTACKS], "met", NOT_MADE[1]),
        ([DROP.format("ill"), ATTACKS], "met", NOT_MADE[2]),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_says_so_and_what_would_change_it(folder, sections, answer, words):
    people(20, 3).write_csv(folder / "few.csv")
    people(30, 3).write_csv(folder / "thirty.csv")
    found = reviewed(folder, *sections)
    told = reasons(found)
    mine = [told[name] for name in ("Attacks with a control", *TITLES) if name in told]
    assert any(one.answer == answer and words in one.said for one in mine)
    assert [one for one in NOT_MADE if any(one in mine.said for mine in told.values())] == [
        one for one in NOT_MADE if one == words
    ]
    without = "there is no control of people outside it" in found.report.read_text()
    assert without == ("control =" not in "".join(sections))
    for one in mine:
        assert one.answer != "not_judged" or one.remedy


def test_figures_of_very_few_people_are_hidden_with_the_risk_that_tells_them():
    one = Attack.measured(Trials(2, 900), Trials(0, 400), Trials(0, 900))
    assert few_of(one, 3) == {"success"}
    hidden = without_small(one, 3)
    assert hidden.success is hidden.risk is None
    assert hidden.intervals["success"] is hidden.intervals["risk"] is None
    assert hidden.control == 0
    enough = Attack.measured(Trials(30, 900), Trials(3, 400), Trials(2, 900))
    assert few_of(enough, 3) == {"baseline"}
    assert without_small(enough, 3).risk == enough.risk


def test_all_that_is_wrong_is_told_at_once_and_nothing_is_written(folder):
    text = (
        HEAD + SYNTHESIS + ATTACKS + 'control = "others.csv"\nsecret = ["il"]\nnumeric = ["sx"]\n'
    )
    (folder / "review.toml").write_text(text)
    said = problems(folder, "hold_out = 0.4", "hold_out = 1.4\nheld = 1")
    for words in ("[synthesis] hold_out must be", "held is not", "'il'", "'sx'"):
        assert words in said
    edit(folder, "hold_out = 1.4\nheld = 1", "hold_out = 0.4")
    said = problems(folder, '"il"', '"sex"')
    assert "control and [synthesis] hold_out both give people outside" in said
    edit(folder, 'numeric = ["sx"]\n', "")
    said = problems(folder, "hold_out = 0.4\n", "")
    assert "[attacks] link and secret both name 'sex'" in said
    edit(folder, 'secret = ["sex"]', 'secret = ["ill"]')
    pl.read_csv(folder / "others.csv").drop("job").write_csv(folder / "others.csv")
    assert "'job'" in problems(folder, "limit = 0.1", "limit = 0.2")
    assert "other.csv" in problems(folder, "others.csv", "other.csv")


def test_an_attack_that_was_not_made_is_not_judged():
    tried = Attack(None, None, None, None, {"risk": None}, 0, 0)
    found = SimpleNamespace(cutoff=3, control="file")
    judged = {title: _residual(title, tried, found, 0.1).answer for title in ATTACK_TITLES.values()}
    met = judged.pop(ATTACK_TITLES["singled-out"])
    assert (met, set(judged.values())) == ("met", {"not_judged"})


@pytest.mark.parametrize(("hits", "answer"), [(301, "not_met"), (300, "not_judged"), (200, "met")])
def test_a_risk_is_beyond_a_limit_only_if_it_is_larger(hits, answer):
    """No control is attacked with success, so that the risk is the rate: 0.25 of 300 in 1,200."""
    one = Attack.measured(Trials(hits, 1_200), Trials(0, 400), Trials(0, 1_200))
    judged = _residual("an attack", one, SimpleNamespace(cutoff=3, control="file"), 0.25)
    assert (judged.found, judged.answer) == (hits / 1_200, answer)


@pytest.mark.parametrize("keys", ["3.5", "[]", '"nobody"'])
def test_attacks_beside_keys_that_are_unfit_are_told_with_them(tmp_path, sample, keys):
    (tmp_path / "veterans.csv").write_bytes(sample)
    text = f'keys = {keys}\n[data]\nfile = "veterans.csv"\n[attributes]\n[attacks]\n'
    (tmp_path / "review.toml").write_text(text)
    with pytest.raises(InputError, match="keys"):
        keyhole.review(tmp_path / "review.toml", out=tmp_path / "out")


def test_attacks_are_by_default_on_what_is_not_known_already():
    """By hand: what links is neither a secret nor left out of the numbers."""
    names = ["sex", "age", "job", "pay", "ill"]
    data = load(
        pl.DataFrame({name: [1.5, 2.5, 3.5] for name in names}),
        kinds={**dict.fromkeys(names, "measure"), "sex": "category", "ill": "category"},
    )
    secrets = SimpleNamespace(sensitive=("age", "job", "pay", "ill"))
    review = SimpleNamespace(keys=("sex", "age"), attributes=secrets)
    found = resolve_attacks({"second_link": ["job"]}, review, data)
    assert (found.link, found.secret) == (("sex", "age"), ("pay", "ill"))
    assert found.numeric == ("age", "job", "pay")
    assert found.attacks == CONTROLLED
    alone = resolve_attacks({"link": ["sex"], "numeric": []}, review, data)
    assert (alone.link, alone.secret, alone.numeric) == (("sex",), secrets.sensitive, ())
    assert alone.attacks == tuple(one for one in CONTROLLED if one != "linked")
    given = resolve_attacks({"secret": [], "attacks": ["linked"]}, review, data)
    assert (given.secret, given.attacks) == ((), ("linked",))
    none = resolve_attacks({}, SimpleNamespace(keys=("sex",), attributes=None), data)
    assert none.attacks == tuple(one for one in CONTROLLED if one not in ("linked", "inferred"))
