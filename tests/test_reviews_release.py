"""One release: each step starts from what the one before left, and is judged on what goes out."""

import json
import random
import re
from types import SimpleNamespace

import polars as pl
import pytest

import keyhole
from keyhole.charts import percentage
from keyhole.cli.main import run
from keyhole.data import load
from keyhole.errors import InputError
from keyhole.reviews import verdict
from keyhole.reviews.stages import outgoing
from keyhole.reviews.stages.outgoing import Intruder, _on_key
from keyhole.reviews.stages.products import plan_of_release

pytestmark = pytest.mark.usefixtures("plain_charts")

HEAD = """\
keys = ["sex", "age", "region"]
[release]
drop = ["serial"]
[release.not_knowable]
income = "only the tax office knows it"
[data]
file = "people.csv"
[exposure]
limit = 0.2
"""
REVIEW = f"""\
{HEAD}[selection]
method = "backward"
limit = 0.2
keep = ["sex"]
candidates = ["age", "region", "party"]
[protection]
seed = 9007199254740993
[[protection.step]]
method = "recode"
column = "age"
width = 20
[[protection.step]]
method = "top-code"
column = "income"
value = 60000
[synthesis]
keys = ["sex", "income", "smokes"]
targets = ["income"]
drop = ["serial"]
seed = 9007199254740993
implicates = 2
"""
STEPS = ("selection", "protection", "synthesis")
KEYS = ["sex", "age", "region"]


def released(path):
    """Read an implicate in the order of the original's records."""
    rows = pl.read_parquet(path.parents[1] / "internal" / "records.parquet")["release_row"]
    return pl.read_csv(path)[rows - 1]


@pytest.fixture
def folder(tmp_path):
    draw = random.Random(4)
    people = {
        "serial": [f"P{i:05d}" for i in range(300)],
        "sex": [draw.choice("fm") for _ in range(300)],
        "age": [draw.randint(18, 80) for _ in range(300)],
        "region": [draw.choice("nesw") for _ in range(300)],
        "party": [draw.choice("xyz") for _ in range(300)],
        "income": [draw.randint(10, 90) * 1000 for _ in range(300)],
        "smokes": [draw.choice(["yes", "no", None]) for _ in range(300)],
    }
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    return tmp_path


def reviewed(folder, text=REVIEW, name="out"):
    (folder / "review.toml").write_text(text)
    return keyhole.review(folder / "review.toml", out=folder / name)


def answers(found):
    return {one.what: one.answer for one in found.verdict.reasons}


def small(frame, keys, cutoff=3):
    """Return the share of records in small cells, a missing value as a category."""
    return (frame.select(pl.len().over(keys)).to_series() < cutoff).mean()


def test_each_step_starts_from_what_the_one_before_left(folder):
    found = reviewed(folder)
    source = pl.read_csv(folder / "people.csv")
    protected = pl.read_csv(folder / "out/protection/release/protected.csv")
    taken = found.results()["selection-backward"]["within_limit"]
    gone = {"serial", *(n for n in ("age", "region", "party") if n not in taken)}
    assert gone > {"serial"}
    for place in (1, 2):
        implicate = released(folder / f"out/synthesis/release/implicate-{place}.csv")
        assert set(source.columns) - set(implicate.columns) == gone
        assert implicate.columns == protected.columns
        assert implicate.drop("income").equals(protected.drop("income")), "in the new order"
        assert not implicate["income"].equals(protected["income"])
        assert implicate["income"].max() <= 60000 < source["income"].max()


@pytest.mark.parametrize("steps", [STEPS, ("selection", "protection"), ("protection",), ()])
def test_every_figure_of_the_verdict_is_that_of_the_files(folder, steps):
    listed = json.dumps(steps)
    found = reviewed(folder, REVIEW.replace("[release]\n", f"[release]\nsteps = {listed}\n", 1))
    outgoing = found.results()["outgoing"]
    root = folder if outgoing["files"] == ["people.csv"] else folder / "out"
    files = [pl.read_csv(root / name) for name in outgoing["files"]]
    source = pl.read_csv(folder / "people.csv")
    assert all(file.columns == outgoing["columns"] for file in files)
    assert "serial" not in outgoing["columns"]
    for key in outgoing["keys"]:
        assert key["rp"] == pytest.approx(max(small(file, key["columns"]) for file in files))
        if key["knows"] == "the keys":
            assert key["original"] == pytest.approx(small(source, ["sex", "age", "region"]))
    base = outgoing["keys"][0]["columns"]
    assert {one["name"] for one in outgoing["not_counted"]} == set(files[0].columns) - {
        name for key in outgoing["keys"] for name in key["columns"]
    }
    for one in outgoing["not_counted"]:
        assert one["rp_if_known"] == pytest.approx(small(files[0], [*base, one["name"]]))


def test_a_synthesis_is_judged_by_records_with_the_values_they_had(folder):
    text = REVIEW.replace('"region"]\n[rel', '"region", "income"]\n[rel')
    key = reviewed(folder, text).results()["outgoing"]["keys"][0]
    assert "income" in key["columns"]
    before = pl.read_csv(folder / "out/protection/release/protected.csv")
    shares = []
    for place in (1, 2):
        after = released(folder / f"out/synthesis/release/implicate-{place}.csv")
        same = pl.DataFrame([before[n].eq_missing(after[n]) for n in key["columns"]])
        sizes = after.select(pl.len().over(key["columns"])).to_series()
        shares.append(((sizes < 3) & same.select(pl.all_horizontal(pl.all())).to_series()).mean())
    assert key["rp_true"] == pytest.approx(max(shares))
    assert key["rp_true"] < key["rp"]


def test_a_serial_number_is_not_met_until_it_is_gone(folder):
    text = REVIEW.partition("[selection]")[0]
    kept = reviewed(folder, text.replace('drop = ["serial"]\n', ""), "kept")
    assert answers(kept)["Direct identifiers"] == "not_met"
    assert kept.verdict.answer == "not_met"
    assert 'drop = ["serial"]' in kept.verdict.reasons[0].remedy
    gone = reviewed(folder, text, "gone")
    assert answers(gone)["Direct identifiers"] == "met"
    assert "serial" not in pl.read_csv(folder / "gone/protection/release/protected.csv").columns


def test_a_column_in_no_key_is_judged_once_it_is_a_key_or_cannot_be_known(folder):
    what = "Columns released and in no key"
    text = REVIEW.replace('income = "only the tax office knows it"', "")
    open_ = reviewed(folder, text, "open")
    assert answers(open_)[what] == "not_judged"
    assert open_.verdict.answer == "not_judged"
    named = {"income": "only the tax office knows it", "smokes": "nobody asked them"}
    lines = "\n".join(f'{name} = "{why}"' for name, why in named.items())
    known = reviewed(folder, REVIEW.replace('income = "only the tax office knows it"', lines), "a")
    assert answers(known)[what] == "met"
    assert known.verdict.answer == "met"
    assert known.verdict.sentence.startswith("This release may go out: all ")
    as_key = text.replace('"region"]\n[rel', '"region", "income"]\n[rel')
    on_keys = "RP(3) on the keys"
    uniques = as_key.replace("[synthesis]\n", "[synthesis]\ncutoff = 2\n")
    assert answers(reviewed(folder, uniques, "b"))[on_keys] == "not_met", "pairs stay as they were"
    found = reviewed(folder, as_key, "c")
    assert found.review.synthesis.cutoff == 3, "that of the review, for a step of its release"
    assert answers(found)[on_keys] == "met"


def test_a_check_exits_with_3_unless_all_is_met(folder, capsys):
    text = REVIEW + "\n"
    met = text.replace('only the tax office knows it"', 'no"\nsmokes = "no"')
    (folder / "met.toml").write_text(met)
    (folder / "open.toml").write_text(
        text.replace("= 0.2", "= 0.0001").replace("drop =", "steps = []\ndrop =", 1)
    )
    for name, code in (("met", 0), ("open", 3)):
        words = ["review", str(folder / f"{name}.toml"), "--out", str(folder / name)]
        assert run(words) == 0
        assert run([*words, "--check", "--json"]) == code
        printed = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
        assert (printed["verdict"]["answer"] == "met") == (code == 0)


def test_a_review_without_a_release_section_means_what_it_meant(folder):
    text = REVIEW.replace('[release]\ndrop = ["serial"]\n', "")
    text = text.replace('[release.not_knowable]\nincome = "only the tax office knows it"\n', "")
    text = text.replace("[data]\n", '[data]\nroles = { serial = "identifier" }\n')
    found = reviewed(folder, text)
    assert found.review.release.product == "synthesis"
    source = pl.read_csv(folder / "people.csv").drop("serial")
    implicate = released(folder / "out/synthesis/release/implicate-1.csv")
    assert implicate.columns == source.columns
    assert implicate["age"].equals(source["age"]), "of the file as it is, in its order"
    assert implicate["income"].max() > 60000


def test_who_knows_a_column_knows_what_is_derived_from_it(folder):
    text = REVIEW.partition("[selection]")[0]
    text = text.replace('["serial"]', '["serial", "age"]')
    found = reviewed(folder, text + '[derive]\nage20 = "band(age, 20)"\n')
    outgoing = found.results()["outgoing"]
    key = outgoing["keys"][0]
    assert key["columns"] == ["sex", "region", "age20"]
    file = pl.read_csv(folder / "out" / outgoing["files"][0])
    assert "age" not in file.columns
    assert key["rp"] == pytest.approx(small(file, key["columns"]))


def test_the_best_release_is_made_and_judged_on_what_goes_out(folder):
    text = REVIEW.partition("[selection]")[0] + '[solve]\nmust = ["sex"]\n'
    found = reviewed(folder, text)
    solved, outgoing = found.results()["solve"], found.results()["outgoing"]
    file = pl.read_csv(folder / "out" / outgoing["files"][0])
    key = outgoing["keys"][0]
    assert solved["complete"]
    assert key["rp"] == pytest.approx(solved["rp"]) == pytest.approx(small(file, key["columns"]))
    assert key["rp"] <= 0.2 < key["original"]
    assert set(key["columns"]) == {one["column"] for one in solved["columns"]}
    assert '<section id="solve">' in found.report.read_text()
    assert keyhole.verify(folder / "out").same


def test_the_best_release_may_blank_and_remove_records(folder):
    text = REVIEW.partition("[selection]")[0]
    text += '[solve]\nmust = ["sex", "region"]\nlimit = 0.02\nsuppress = 0.05\nremove = 0.05\n'
    found = reviewed(folder, text)
    solved, outgoing = found.results()["solve"], found.results()["outgoing"]
    file = pl.read_csv(folder / "out" / outgoing["files"][0])
    source = pl.read_csv(folder / "people.csv")
    assert solved["suppressed"] + solved["removed"] > 0
    assert file.height == source.height - solved["removed"] == outgoing["records"]
    key = outgoing["keys"][0]
    assert key["rp"] == pytest.approx(solved["rp"]) == pytest.approx(small(file, key["columns"]))
    assert key["rp"] <= 0.02
    assert keyhole.verify(folder / "out").same


def test_the_set_taken_is_released_in_place_of_the_one_proposed(folder):
    found = reviewed(folder, REVIEW.replace("[release]\n", '[release]\ntake = ["party"]\n', 1))
    columns = found.results()["outgoing"]["columns"]
    assert "party" in columns
    assert not {"age", "region"} & set(columns)


def test_a_step_with_nothing_left_to_do_makes_no_product(folder):
    text = REVIEW.replace('targets = ["income"]', 'targets = ["age"]')
    found = reviewed(folder, text.replace("[release]\n", '[release]\ntake = ["party"]\n', 1))
    assert "synthesis" not in found.records
    assert found.results()["outgoing"]["files"] == ["protection/release/protected.csv"]
    assert "(implicates)" not in found.report.read_text()
    assert keyhole.verify(folder / "out").same


def test_what_is_wrong_with_a_release_is_told_with_its_line(folder):
    text = REVIEW.partition("[selection]")[0].replace(
        '[release]\ndrop = ["serial"]\n',
        '[release]\nproduct = "file"\nsteps = ["selection"]\ntake = ["sex"]\ndrop = ["seral"]\n',
    )
    with pytest.raises(InputError) as caught:
        reviewed(folder, text.replace("income =", "incom ="))
    told = "\n".join(caught.value.problems)
    for part in (
        "line 3: [release] product names one product by itself, and steps and take and drop belong",
        "line 4: [release] steps has 'selection', but there is no [selection].",
        "line 5: [release] take needs a [selection]",
        "'seral' is not a column of 'people'",
        "'incom' is not a column of 'people'",
    ):
        assert part in told, told


def test_a_glance_shows_what_is_released_beside_the_original(folder):
    found = reviewed(folder)
    page = re.sub("</?abbr[^>]*>", "", found.report.read_text())
    glance = re.search(r'<dl class="glance".*?</dl>', page, re.S)[0]
    outgoing = found.results()["outgoing"]
    key = outgoing["keys"][0]
    left_out = len(outgoing["left_out"])
    assert "<dt>Records</dt><dd>300</dd><dd>all of the original</dd>" in glance
    are = "is" if left_out == 1 else "are"
    beside = f"{left_out} of the original {are} left out"
    columns = f"<dd>{len(outgoing['columns'])}</dd><dd>{beside}</dd>"
    assert columns in glance
    shown = percentage(key["rp_true"])
    assert f"<dt>RP(3) on the keys</dt><dd>{shown}</dd>" in glance
    assert f"<dd>{percentage(key['original'])} in the original</dd>" in glance
    assert len(re.findall("<dt>", glance)) == 2 + len(outgoing["keys"]), "nothing that was tried"
    answers = [one.answer for one in found.verdict.reasons]
    assert answers == sorted(answers, key=["not_met", "not_judged", "met"].index)


def test_a_share_of_very_few_records_is_not_told():
    words = [verdict.shown_share(count / 900, 900, 3, 0.05) for count in (0, 1, 2, 3, 45)]
    assert words == ["0%", "fewer than 3", "fewer than 3", "0.33%", "5%"]


EVERY_STEP = """\
{head}{choice}
[derive]
born = "year(birthday)"
[protection]
seed = 9007199254740993
[[protection.step]]
method = "derive"
name = "incomes"
expression = "band(top(income, 60000), 20000)"
[[protection.step]]
method = "drop"
columns = ["income", "birthday", "party"]
[synthesis]
keys = ["sex", "smokes", "born"]
targets = ["smokes"]
seed = 9007199254740993
implicates = 2
"""
CHOICES = {
    "solve": '[solve]\nmust = ["sex"]\nremove = 0.02\n',
    "selection": '[selection]\nlimit = 0.2\nkeep = ["sex"]\ncandidates = ["age", "region"]\n',
}


SUPPRESSED = """\
[[protection.step]]
method = "recode"
column = "age"
width = 30
[[protection.step]]
method = "suppress"
keys = ["sex", "age", "region"]
k = 10
never = ["sex", "age"]
"""


def test_the_limit_is_judged_with_what_can_be_read_off(folder):
    source = pl.read_csv(folder / "people.csv")
    source.with_columns(town=pl.col("region") + pl.col("party")).write_csv(folder / "people.csv")
    text = HEAD.replace("limit = 0.2", "limit = 0.01\ncutoff = 10") + SUPPRESSED
    found = reviewed(folder, text)
    judged = {one.what: one for one in found.verdict.reasons}["RP(10) on the keys"]
    out = pl.read_csv(folder / "out/protection/release/protected.csv")
    told = out.with_columns(region=pl.col("town").str.head(1))
    plain, read_off = ((f.select(pl.len().over(KEYS)).to_series() < 10).mean() for f in (out, told))
    assert judged.found == pytest.approx(read_off)
    assert plain <= 0.01 < read_off
    assert judged.answer == "not_met"
    assert judged.remedy.startswith("This includes values recoverable from retained columns")
    dropped = reviewed(folder, text.replace('["serial"]', '["serial", "town"]'), "b")
    again = {one.what: one for one in dropped.verdict.reasons}["RP(10) on the keys"]
    assert (again.answer, again.found) == ("met", pytest.approx(plain))


def test_a_reason_may_be_that_of_a_column_which_the_plan_derives(folder):
    text = EVERY_STEP.format(head=HEAD, choice=CHOICES["selection"]).partition("[synthesis]")[0]
    (folder / "people.csv").write_text(
        pl.read_csv(folder / "people.csv").with_columns(birthday=pl.lit("1950-01-02")).write_csv()
    )
    risky = {one.name for one in reviewed(folder, text).by_stage()["outgoing"].not_counted}
    assert "incomes" in risky
    known = text.replace("income = ", "incomes = ", 1)
    found = {
        one.name: one for one in reviewed(folder, known, "b").by_stage()["outgoing"].not_counted
    }
    assert found["incomes"].reason == "only the tax office knows it"
    with pytest.raises(InputError, match="line 5: column 'incoms' is not a column"):
        reviewed(folder, text.replace("income = ", "incoms = ", 1), "c")


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("drops", [False, True])
def test_with_every_step_the_verdict_is_what_anybody_counts_in_the_files(folder, choice, drops):
    source = pl.read_csv(folder / "people.csv").with_columns(
        birthday=pl.date(1950, 1, 1) + pl.duration(days=pl.int_range(pl.len()) * 37)
    )
    source.write_csv(folder / "people.csv")
    text = EVERY_STEP.format(head=HEAD, choice=CHOICES[choice])
    if not drops:  # the synthesis refuses a serial number of its own, unless it is allowed
        text = text.replace('drop = ["serial"]\n', "") + 'allow = ["serial"]\n'
    found = reviewed(folder, text)
    judged, outgoing = found.to_dict()["verdict"], found.results()["outgoing"]
    assert found.review.release.steps == (choice, "protection", "synthesis")
    files = [released(folder / "out" / name) for name in outgoing["files"]]
    assert len(files) == 2
    without = drops or choice == "solve"  # which releases no direct identifier
    gone = {"income", "birthday", "party", *(["serial"] if without else [])}
    for file in files:
        assert gone.isdisjoint(file.columns)
        assert {"incomes", "born", "sex"} <= set(file.columns)
        assert file.columns == outgoing["columns"]
    reasons = {one["what"]: one for one in judged["reasons"]}
    assert (reasons["Direct identifiers"]["answer"] == "met") == without
    assert without or judged["answer"] == "not_met"
    start = pl.read_csv(folder / "out/protection/release/protected.csv")
    limit = 0.2
    for key in outgoing["keys"]:
        columns = key["columns"]
        assert key["rp"] == pytest.approx(max(small(file, columns) for file in files))
        true = []
        for file in files:
            same = [start[name].eq_missing(file[name]) for name in columns]
            held = pl.DataFrame(same).select(pl.all_horizontal(pl.all())).to_series()
            true.append(((file.select(pl.len().over(columns)).to_series() < 3) & held).mean())
        reason = reasons[f"RP(3) on {key['knows']}"]
        assert reason["found"] == key["rp_true"] == pytest.approx(max(true))
        assert reason["answer"] == ("met" if max(true) <= limit else "not_met")
    base = outgoing["keys"][0]["columns"]
    counted = {name for key in outgoing["keys"] for name in key["columns"]}
    risky = []
    for one in outgoing["not_counted"]:
        assert one["name"] not in counted
        again = small(files[0], [*base, one["name"]])
        assert one["rp_if_known"] == pytest.approx(again)
        risky += [again] if again > limit else []
    assert {one["name"] for one in outgoing["not_counted"]} == set(files[0].columns) - counted
    in_no_key = reasons["Columns released and in no key"]
    assert in_no_key["answer"] == ("not_judged" if risky else "met")
    assert in_no_key["found"] == (pytest.approx(max(risky)) if risky else None)
    assert keyhole.verify(folder / "out").same


@pytest.mark.parametrize(
    ("steps", "product", "through"),
    [(None, "protection", True), (None, "file", False), (("selection",), "protection", False)],
)
def test_a_plan_is_that_of_the_released_file_only(steps, product, through):
    release = SimpleNamespace(protects=False, steps=steps, product=product)
    given = SimpleNamespace(plan='[[step]]\nmethod = "drop"\ncolumns = ["age"]\n')
    review = SimpleNamespace(release=release, protection=given)
    assert (plan_of_release(review, {}) is not None) == through


def test_the_risk_of_implicates_is_that_of_the_worst():
    """By hand, on three files: nobody, two of four and all four are alone."""
    made = [
        load(pl.DataFrame({"age": ages})) for ages in ([1, 1, 1, 1], [1, 1, 2, 3], [1, 2, 3, 4])
    ]
    who = Intruder("age", ("age",))
    for order in (made[:2], made[1::-1]):
        found = _on_key(who, made[2], order, None, 2)
        assert (found.at_risk, found.rp, found.rp_wildcard, found.original) == (2, 0.5, 0.5, 1.0)
        assert found.rp_true is None
        kept = _on_key(who, made[2], order, made[1], 2)  # records 3 and 4 are as they were
        assert kept.rp_true == 0.5
    assert _on_key(Intruder("pay", ("pay",)), made[2], made[:2], None, 2).rp is None


def on_key(**figures):
    figures = dict.fromkeys(("rp", "rp_wildcard", "rp_true", "original")) | figures
    return outgoing.OnKey("the keys", ("a", "b"), 1_000, None, **figures)


def attribute(**figures):
    return outgoing.AttributeOnKey("the keys", "ill", ("a", "b"), 1_000, **figures)


def answer_of_columns(figure):
    found = SimpleNamespace(not_counted=(outgoing.UncountedColumn("c", figure),))
    (reason,) = verdict._not_counted(found, 0.1)
    return reason


@pytest.mark.parametrize(
    "judge",
    [
        lambda figure: verdict._on_key(on_key(rp=figure), 3, 0.1, None),
        lambda figure: verdict._on_key(on_key(rp=0.5, rp_true=figure), 3, 0.1, None),
        lambda figure: verdict._on_key(on_key(rp=0.01), 3, 0.1, figure),  # what can be read off
        lambda figure: verdict._attribute("", attribute(homogeneous=figure), 3, 0.1, ["ill"]),
        lambda figure: verdict._attribute(
            "", attribute(homogeneous=0.5, right=figure), 3, 0.1, ["ill"]
        ),
        answer_of_columns,
    ],
)
def test_a_figure_that_is_just_the_limit_meets_it(judge):
    answers = [judge(figure) for figure in (0.099, 0.1, 0.101)]
    assert [one.answer == "met" for one in answers] == [True, True, False]
    assert answers[-1].remedy is not None
