"""`keyhole init`: a review file drafted by looking at a data file."""

import json
import random
import re
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keyhole
from keyhole.cli.main import run
from keyhole.data import load
from keyhole.errors import InputError
from keyhole.reviews.checks import read_review
from keyhole.reviews.column_guesses import guess_codes, guess_kinds, guess_sensitive
from keyhole.reviews.drafting import _some
from keyhole.screening.screen import screen

SECTIONS = [["release"], ["selection", "frontier"], ["protection"], ["synthesis"]]


@pytest.fixture
def folder(tmp_path, sample):
    (tmp_path / "veterans.csv").write_bytes(sample)
    return tmp_path


def draft(folder, **options):
    return keyhole.init(folder / "veterans.csv", out=folder / "review.toml", **options)


def uncommented(text, sections):
    """Take the marks away from the lines of some sections."""
    out, on = [], False
    for line in text.split("\n"):
        heading = re.match(r"# \[\[?(\w+)", line)
        if heading:
            on = heading[1] in sections
        if not line:
            on = False
        out.append(re.sub(r"^# ?", "", line) if on else line)
    return "\n".join(out)


@pytest.mark.usefixtures("plain_charts")
def test_the_draft_runs_as_it_is(folder):
    found = draft(folder)
    assert found.guess.keys == ("sex", "age", "race1", "ethnic", "homstate", "period")
    assert found.guess.roles == {
        "puf_id": "identifier",
        "household": "household",
        "weight": "weight",
        "means": "sensitive",
        "income": "sensitive",
    }
    result = keyhole.review(found.path, out=folder / "out")
    assert {"screen", "exposure", "uniques"} <= set(result.records)
    assert result.results()["exposure"]["keys"] == list(found.guess.keys)
    assert {"means", "income"} == set(result.results()["attributes"]["sensitive"])


@pytest.mark.parametrize("sections", SECTIONS, ids=lambda names: names[0])
def test_sections_that_are_comments_fit_the_file_once_the_marks_are_gone(folder, sections):
    path = draft(folder).path
    text = uncommented(path.read_text(), sections)
    assert set(sections) <= set(tomllib.loads(text))
    assert "seed = " not in text.replace("# Add a line with a secret seed: seed =", ""), (
        "a secret is your own"
    )
    path.write_text(text.replace("# Add a line with a secret seed: seed =", "seed = 7  #"))
    review, _ = read_review(path)
    assert getattr(review, sections[0]) is not None


def test_sensitive_columns_are_proposed_by_name_label_and_contents(tmp_path, monkeypatch):
    monkeypatch.setattr("keyhole.reviews.column_guesses.MOST_CATEGORIES", 5)  # as many as of dx
    draw = random.Random(3)
    held = {
        "sex": [*"fm"],
        "age": [*range(20, 70)],
        "region": [*"nesw"],
        "WAGP": [*range(0, 5000, 10)],
        "q7": ["Catholic", "Muslim", "none"],
        "dx": ["A01.1", "B20", "C34.9", "F32.1", "E11"],
        "arrested": ["yes", "no"],
        "colour": ["red", "green", "blue"],
        "orientation": ["north", "south"],
    }
    people = pl.DataFrame({n: [draw.choice(some) for _ in range(500)] for n, some in held.items()})
    people.write_csv(tmp_path / "people.csv")
    found = keyhole.init(tmp_path / "people.csv", out=tmp_path / "review.toml")
    assert {n: found.guess.why[n] for n in found.guess.with_role("sensitive")} == {
        "WAGP": "income or wealth, by its name",
        "q7": "religion or belief, by its categories",
        "dx": "health, by its codes of diagnoses",
        "arrested": "crime, by its name",
    }
    text = found.path.read_text()
    assert 'dx = "sensitive"    # health, by its codes of diagnoses' in text
    assert tomllib.loads(text)["attributes"] == {"limit": 0.05}
    assert "Catholic" not in text
    kept = keyhole.init(
        tmp_path / "people.csv", out=tmp_path / "two.toml", keys=["sex", "arrested"]
    )
    assert "arrested" not in kept.guess.roles, "what an intruder knows is no secret"


def test_the_first_hour_of_a_wide_file(tmp_path):
    """Codes, places that repeat, weights and their replicates, birth columns, dirty levels."""
    random, n = np.random.default_rng(5), 6_000
    occupations = np.sort(random.choice(np.arange(10, 9_920, 5), 120, replace=False))
    chances = random.dirichlet(np.full(120, 0.5))
    state = random.integers(1, 6, n)
    frame = pl.DataFrame(
        {
            "RECNO": np.arange(n) + 40_001,
            "STATE": state,
            "PUMA": [f"{p:05d}" for p in random.integers(1, 9, n) * 100],  # anew in each state
            "REGION": state // 3,
            "birth_year": random.integers(1930, 2005, n),
            "SEX": random.integers(1, 3, n),
            "MSP": random.integers(1, 6, n),
            "RAC1P": random.integers(1, 9, n),
            "q11": random.choice(occupations, n, p=chances),
            "INDP": random.choice(occupations, n, p=chances[::-1]),
            "hours": np.clip(random.normal(40, 12, n).round(), 1, 99).astype(int),
            "rent": (random.gamma(3, 400, n) // 50 * 50).astype(int),
            "commute": random.choice([5, 10, 15, 20, 30, 45, 60, 7, 12, 17, 22, 33, 90], n),
            "WAGP": np.where(random.random(n) < 0.4, 0, random.gamma(2, 2e4, n).round(-2)),
            "tenure": random.choice(["Owned", "owned ", "Rented"], n),
            "STNAME": [f"state {one}" for one in state],
            "DECILE": random.integers(1, 11, n),
            "POVPIP": [str(one) if one else "N" for one in random.integers(0, 300, n)],
            "PWGTP": random.integers(10, 300, n),
            "WGTP": random.integers(0, 300, n),
            **{f"PWGTP{i}": random.integers(10, 300, n) for i in range(1, 9)},
        }
    )
    frame = frame.with_columns(pl.col("WAGP").cast(pl.Int64))
    frame.write_parquet(tmp_path / "wide.parquet")
    labels = {"STNAME": "The state, in words", "DECILE": "Income decile within the state"}
    book = {name: {"label": label} for name, label in labels.items()}
    book["SEX"] = {"values": {"1": "Male", "2": "Female"}}
    (tmp_path / "book.json").write_text(json.dumps(book))
    found = keyhole.init(
        tmp_path / "wide.parquet", out=tmp_path / "review.toml", codebook=tmp_path / "book.json"
    )
    made = found.guess
    assert set(made.keys) == {
        "SEX", "birth_year", "RAC1P", "MSP", "PUMA", "STATE", "INDP", "tenure"
    }  # fmt: skip
    assert made.coarser == {"STATE": "REGION"}
    assert dict(made.codes) == {
        "q11": "a code, by its values: they have gaps and irregular frequencies",
        "INDP": "a code, by its name",
    }
    assert made.roles == {
        "RECNO": "identifier", "PWGTP": "weight", "WAGP": "sensitive", "DECILE": "sensitive"
    }  # fmt: skip
    assert made.also_sensitive == ("POVPIP",)
    assert made.equivalent == {"STNAME": "STATE"}
    assert made.missing_codes == {"POVPIP": ("N",)}  # else no amount could be read
    assert made.weights == ("WGTP",)
    assert made.replicates == tuple(f"PWGTP{i}" for i in range(1, 9))
    assert made.alike == {"tenure": 1}
    assert not {*made.candidates} & {*made.replicates}
    values = tomllib.loads(found.path.read_text())
    assert values["data"]["kinds"] == {"q11": "category", "INDP": "category"}
    assert values["data"]["codebook"] == "book.json"
    reasons = dict.fromkeys(["WGTP", *made.replicates], "a weight, made by the office")
    assert values["release"] == {"steps": ["solve"], "drop": ["STNAME"], "not_knowable": reasons}
    assert values["solve"]["evaluations"] == 670_000  # of 4,000,000,000 // n
    said = str(found)
    assert "8 replicate weights: PWGTP1 to PWGTP8." in said
    assert "1 levels of tenure" not in said
    assert "1 level of tenure differs from another only in case or spaces." in said


def test_the_draft_of_the_acs_is_the_one_documented(tmp_path):
    """Made-up values under the names and labels of the ACS: the page's table, column by column."""
    page = (Path(__file__).parents[1] / "docs/how-to/first-draft.md").read_text()
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in page.splitlines()]
    rows = {row[0]: row[1:] for row in cells if row and row[0].isupper()}
    assert len(rows) == 38
    assert all((expert == drafted) == (not why) for _, _, expert, drafted, why in rows.values())
    random, n = np.random.default_rng(4), 4_000
    sizes = {"HISP": 20, "SCHL": 24, "CIT": 5, "RAC1P": 9, "OCCP": 90, "INDP": 60, "FOD1P": 50,
             "STATE": 9, "COW": 8, "MIL": 1, "JWTRNS": 12, "ESR": 4}  # fmt: skip
    filled = {"ENG": 0.06, "FOD1P": 0.3, "FER": 0.04, "MIGSP": 0.08, "INDP": 0.55, "OCCP": 0.55,
              "COW": 0.55, "WKHP": 0.45, "WKWN": 0.45, "JWMNP": 0.35, "JWTRNS": 0.4}  # fmt: skip
    held, book = {}, {}
    for name, (label, values, *_) in rows.items():
        many = sizes.get(name, 60 if values == "quantity" else 2)
        codes = random.integers(1, many + 1, n)
        held[name] = pl.Series(codes).set(pl.Series(random.random(n) >= filled.get(name, 1)), None)
        named = {str(i): f"category {i}" for i in range(1, many + 1)} if values == "code" else {}
        book[name] = {"label": label, "values": named}
    held["SERIALNO"] = pl.Series([f"2023HU{i * 19 // 20:07}" for i in range(n)])
    held["NATIVITY"] = (held["CIT"] > 3).cast(pl.Int64) + 1
    book["SERIALNO"]["values"] = {}
    pl.DataFrame(held).write_parquet(tmp_path / "acs.parquet")
    (tmp_path / "book.json").write_text(json.dumps(book))
    draft = keyhole.init(
        tmp_path / "acs.parquet", codebook=tmp_path / "book.json", out=tmp_path / "review.toml"
    )
    made, text = draft.guess, draft.path.read_text()
    found = {**dict.fromkeys(rows, "left alone"), **dict.fromkeys(made.keys, "key"), **made.roles,
             **dict.fromkeys(made.knowable, "others could know it"),
             **dict.fromkeys(made.also_sensitive, "sensitive too"),
             **dict.fromkeys(made.coarser.values(), "coarser version")}  # fmt: skip
    assert found == {name: drafted for name, (*_, drafted, _) in rows.items()}
    data = load(tmp_path / "acs.parquet", codebook=tmp_path / "book.json")
    kinds = {"category": "code", "measure": "quantity"}
    assert {v.name: kinds[v.kind] for v in data.variables} == {n: r[1] for n, r in rows.items()}
    assert '# PUBCOV = "sensitive"    # health insurance, by its name' in text
    assert "have two columns already: POVPIP, PUBCOV, DEYE, DREM, DPHY." in str(draft)
    assert not {"SPORDER", "MIL"} & {*made.candidates}


@pytest.mark.parametrize(
    ("name", "others", "weighs"),
    [("weight", ["birth_year"], True), ("weight", ["height_cm"], False),
     ("weight_kg", ["birth_year"], False), ("PWGTP", ["bmi"], True),
     ("birth_weight", ["sex"], False)],
)  # fmt: skip
def test_a_bodys_weight_weighs_nobody(tmp_path, name, others, weighs):
    random = np.random.default_rng(len(name))
    columns = {name: random.integers(40, 120, 500), "sex": random.integers(1, 3, 500)}
    columns |= {other: random.integers(1, 90, 500) for other in others}
    pl.DataFrame(columns).write_csv(tmp_path / "people.csv")
    made = keyhole.init(tmp_path / "people.csv", out=tmp_path / "review.toml").guess
    assert (made.roles.get(name) == "weight") == weighs


def test_a_key_that_is_cut_short_says_what_it_left_out(tmp_path):
    random = np.random.default_rng(1)
    known = ["sex", "age", "race", "hisp", "marital", "state", "educ", "occup", "citizen",
             "language", "religion", "veteran"]  # fmt: skip
    held = {name: random.integers(1, 7, 800) for name in known}
    pl.DataFrame(held).write_csv(tmp_path / "people.csv")
    found = keyhole.init(tmp_path / "people.csv", out=tmp_path / "review.toml")
    assert found.guess.keys == tuple(known[:10])
    assert found.guess.knowable == ("religion", "veteran")
    assert "the draft has 10 keys without them: religion, veteran." in str(found)
    assert '    # "religion",    # others could know it too' in found.path.read_text()


def test_studies_and_environments_are_there_as_comments(folder):
    text = draft(folder).path.read_text()
    values = tomllib.loads(uncommented(text, ["study", "environment"]))
    assert values["study"]["link"] == values["keys"]
    assert "store" in values["environment"]


def test_a_review_that_exists_is_not_replaced_without_force(folder):
    path = folder / "review.toml"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists"):
        draft(folder)
    assert path.read_text() == "mine"
    draft(folder, force=True)
    assert "Review of veterans" in path.read_text()


def test_keys_may_be_given_and_all_that_is_wrong_with_them_is_told(folder):
    assert draft(folder, keys=["ms", "sex"]).guess.keys == ("ms", "sex")
    with pytest.raises(InputError) as caught:
        draft(folder, keys=["sexx", "mss"])
    assert len(caught.value.problems) == 3  # the review file exists, too
    with pytest.raises(InputError, match=r"once\. Got 'sex', 'sex' instead"):
        draft(folder, keys=["sex", "sex"], force=True)


@pytest.mark.parametrize(
    ("out", "words"),
    [("review.txt", "must be a .toml file"), ("nowhere/review.toml", "does not exist")],
)
def test_where_it_cannot_be_written_nothing_is_looked_at(folder, out, words):
    with pytest.raises(InputError, match=words):
        keyhole.init(folder / "missing.csv", out=folder / out)


def test_no_value_of_a_record_is_in_the_draft(tmp_path):
    """Every value is a word that could not be there by chance, but for a code of many records."""
    values = [f"qzx{i}word" for i in range(40)]
    frame = pl.DataFrame(
        {
            "sex": [values[i % 2] for i in range(200)],
            "state": [values[i % 7 + 2] for i in range(200)],
            "email": [f"{values[i % 40]}{i}@example.org" for i in range(200)],
            "race": [*(values[i % 5 + 10] for i in range(190)), *["NA"] * 10],
            "income": [30_011 + 17 * i for i in range(200)],
            "children": [*([0, 1, 2] * 66), -9, -9],
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    text = keyhole.init(tmp_path / "people.csv", out=tmp_path / "review.toml").path.read_text()
    assert not re.search(r"qzx|example\.org", text)
    given = tomllib.loads(text)["data"]
    assert given["missing_codes"] == {"race": ["NA"]}, "two records with -9 are too few to tell"
    seen = {int(n) for n in re.findall(r"\b\d{5,6}\b", text)}
    assert not seen & set(frame["income"].to_list())
    assert given["roles"]["email"] == "identifier"


@given(
    codes=st.lists(st.sampled_from([-9, -8, -99, 3, 7, 40]), min_size=1, max_size=60),
    nines=st.integers(0, 5),
)
def test_codes_are_guessed_as_one_would_by_hand(codes, nines):
    column = codes + [999] * nines
    sure, doubtful = guess_codes(keyhole.load(pl.DataFrame({"a": column})))
    often = {c for c in column if c in (-9, -8, -99, 999) and column.count(c) >= 3}
    values = [c for c in column if c not in often]
    below = {c for c in often if c < 0} if values and min(values) >= 0 else set()
    assert set(sure.get("a", ())) == below
    most = max((values.count(c) for c in values if c < 0), default=0)
    spikes = {c for c in often if c < 0 and most and column.count(c) > 5 * most}
    assert set(doubtful.get("a", ())) == ((often & {999}) | spikes if values else set())


def test_suspected_codes_stand_in_the_draft_as_comments_with_their_share(tmp_path):
    frame = pl.DataFrame(
        {
            "sex": [*"fm"] * 50,
            "state": [*["MD", "VA", "DC"] * 30, *["-9"] * 10],
            "race": [*["white", "black", "asian"] * 25, *["unknown"] * 25],
            "score": [*[1, 2, 3, 4, 5] * 15, *[97] * 5, *[98] * 5, *[99] * 15],
            "gain": [*range(-20, 55), *[-9] * 25],
            "children": [*[0, 1, 2, 3] * 20, *[-9] * 10, *[99] * 10],
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    found = keyhole.init(tmp_path / "people.csv", out=tmp_path / "review.toml")
    text = found.path.read_text()
    lines = text.splitlines()
    assert tomllib.loads(text)["data"]["missing_codes"] == {"children": [-9]}
    for line in (
        "children = [-9]    # 10% of the records; 99 (10%) may be one too: [-9, 99]",
        '# state = ["-9"]    # 10% of the records',
        '# race = ["unknown"]    # 25% of the records',
        "# score = [97, 98, 99]    # 25% of the records",
        "# gain = [-9]    # 26% of the records",
    ):
        assert line in lines
    said = found.summary()
    assert "-9 in state; unknown in race; 97, 98, 99 in score; -9 in gain" in said
    # With the marks taken away they are where they belong.
    marked = [line[2:] if line.startswith(("# state", "# race", "# gain")) else line
              for line in lines]  # fmt: skip
    taken = tomllib.loads("\n".join(marked))["data"]["missing_codes"]
    assert set(taken) == {"children", "state", "race", "gain"}


def test_suspected_codes_alone_have_a_section_to_be_unmarked(tmp_path):
    pl.DataFrame({"sex": [*"fm"] * 20, "state": ["MD", "VA", "-8", "-9"] * 10}).write_csv(
        tmp_path / "people.csv"
    )
    path = keyhole.init(tmp_path / "people.csv", out=tmp_path / "review.toml").path
    text = path.read_text()
    assert "missing_codes" not in tomllib.loads(text)["data"]
    text = text.replace("# [data.missing", "[data.missing").replace("# state = [", "state = [")
    path.write_text(text)
    assert read_review(path)[0].data.missing_codes == {"state": ["-8", "-9"]}


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1.5, 2.5, 3.5, 4.5]},
        {"id": [1, 2, 3, 4]},
        {'we|rd "name"': ["x", "y"] * 30, "tab\tbed": [1, 2] * 30},
        {"*": ["x", "y"] * 30, "sex": ["f", "m"] * 30},
        {"weight": [70.5, 81.5] * 30, "height": [170, 181] * 30, "sex": ["f", "m"] * 30},
    ],
    ids=["numbers", "identifiers", "names", "star", "body"],
)
def test_odd_files_give_drafts_that_can_be_read(tmp_path, columns):
    pl.DataFrame(columns).write_csv(tmp_path / "odd.csv")
    found = keyhole.init(tmp_path / "odd.csv", out=tmp_path / "review.toml")
    review, _ = read_review(found.path)
    assert set(review.keys) <= set(columns)
    assert "weight" not in found.guess.roles.values(), "a body's weight is no weight"


def test_a_statistical_file_keeps_its_labels_and_codes_to_itself(tmp_path, sample):
    (tmp_path / "veterans.csv").write_bytes(sample)
    data = keyhole.load(tmp_path / "veterans.csv", labels={"ms": "Marital status"})
    data.save(tmp_path / "veterans.sav")
    path = keyhole.init(tmp_path / "veterans.sav", out=tmp_path / "review.toml").path
    assert "Marital status" not in path.read_text()
    review, _ = read_review(path)
    assert "ms" in review.keys, "the label told what it is"


def test_the_verb(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert run(["init", "veterans.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["review"] == "review.toml"
    assert found["keys"][:2] == ["sex", "age"]
    assert run(["init", "veterans.csv"]) == 2
    assert "--force" in capsys.readouterr().err
    assert run(["init", "veterans.csv", "--force", "--missing-codes", "ms:W"]) == 0
    assert tomllib.loads((folder / "review.toml").read_text())["data"]["missing_codes"] == {
        "ms": ["W"]
    }


def test_integers_beyond_64_bits_are_looked_at_as_numbers(tmp_path):
    wide = pl.Series([2**70 + i % 9 for i in range(120)], dtype=pl.Int128)
    narrow = pl.Series([i % 9 for i in range(120)], dtype=pl.Int128)
    pl.DataFrame({"wide": wide, "narrow": narrow}).write_parquet(tmp_path / "people.parquet")
    found = keyhole.init(tmp_path / "people.parquet", out=tmp_path / "review.toml")
    assert "kinds" not in tomllib.loads(found.path.read_text())["data"]


def test_codes_kinds_and_subjects_are_told_by_names_and_values():
    ages = [30, 41, 52, -9] * 5 + [999] * 4
    found = guess_codes(load(pl.DataFrame({"age": ages, "sex": ["f", "m", "NA"] * 8})))
    assert found == ({"age": (-9,), "sex": ("NA",)}, {"age": (999,)})
    states = load(pl.DataFrame({"state": ["MD", "VA", "-9", "unknown"] * 5}))
    assert guess_codes(states) == ({}, {"state": ("-9", "unknown")})
    deciles = load(pl.DataFrame({"decile": ["1", "2", "3", "N"] * 5}))
    assert guess_codes(deciles) == ({}, {"decile": ("N",)})
    frame = pl.DataFrame({"OCCP": [10, 4720] * 30, "wage": [0, 4720, 12] * 20})
    coded = load(frame, kinds={"OCCP": "measure"})
    assert guess_kinds(coded) == {"OCCP": "a code, by its name"}
    people = load(pl.DataFrame({"wage": [900, 1200, 900], "c1": ["HIV", "cancer", "none"]}))
    subjects = dict(guess_sensitive(people, screen(people).inspections, ()))
    assert subjects == {"wage": "income or wealth, by its name", "c1": "health, by its categories"}


@pytest.mark.parametrize("count", [1, 19, 20, 21, 30])
def test_a_note_names_twenty_columns(count):
    names = [f"c{i}" for i in range(count)]
    more = f" and {count - 20} more, see the review file" if count > 20 else ""
    assert _some(names) == ", ".join(names[:20]) + more
