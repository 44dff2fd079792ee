"""Options that make no sense end with exit code 2 and one message with a remedy."""

import re
import shlex

import pytest

from keyhole.cli.main import run

SECRET = "zqx7391"  # stands in the data, and in no message
PEOPLE = f"""sex,age,state,weight
f,30,{SECRET},1.5
m,739173,ny,2
f,30,{SECRET},1
"""

# The words after "keyhole" (the file goes after the verb), and below them what must be said.
WRONG = """
risk --keys sex,agee
    'agee'.*Did you mean 'age'
risk --keys sxe,agee
    'sex'.*'age'
risk --keys sex,age --weight wieght
    Did you mean 'weight'
risk --keys sex,age --by stat
    Did you mean 'state'
select --candidates agee --limit 0.1
    Did you mean 'age'
risk --keys sex,age,sex
    names each column once. Got 'sex', 'sex' instead
uniques --keys sex,sex
    names each column once. Got 'sex', 'sex' instead
select --candidates sex,age,sex --limit 0.1
    --candidates and --keep must name each variable once. Got 'sex' twice
risk --keys ''
    --keys must be a list of at least one column name
risk --keys sex,,age
    --keys must be written like A,B,…. Got an empty name
risk --keys sex,age --weight weight --fraction 0.1
    --weight and --fraction.*Give one of them
risk --keys sex,age --fraction 2
    --fraction must be a number from 1e-12 to 1. Got 2.0
risk --keys sex,age --delimiter ;
    one column.*Give the delimiter
risk --keys sex,age --delimiter ;;
    delimiter must be one ASCII character
risk --keys sex,age --encoding klingon
    encoding must be one that Python knows
risk --keys sex,age --engine memory --memory 1GB
    --memory and --work-folder are for counting on disk.*--engine disk
risk --keys sex,age --engine disk --memory plenty
    memory must be an amount like 1GB.*Got 'plenty' instead
risk --keys sex,age --engine disk --memory 1MB
    memory must be at least 256 MB. Got '1MB' instead
uniques --keys sex,age --engine spark
    engine must be memory or disk for minimal uniques
risk --keys sex,age --master local[2]
    --master is for counting on Spark
risk --keys sex,age --engine steam
    --engine must be one of 'auto', 'memory'.*Got 'steam'
risk --keys sex,age --missing-codes agee:-9
    Did you mean 'age'
risk --keys sex,age --cutoff 0
    cutoff must be a whole number of at least 1. Got 0 instead
risk --keys sex,age --cutoff -3
    cutoff must be.*at least 1. Got -3
risk --keys sex,age --cutoff three
    --cutoff must be a whole number of at least 1. Got 'three' instead
risk --keys sex,age --cutoff 2.5
    --cutoff must be a whole number of at least 1. Got '2.5'
uniques --keys sex,age --cutoff 0
    cutoff must be.*at least 1
select --candidates sex,age --limit 0.1 --cutoff 0
    cutoff must be.*at least 1
select --candidates sex,age --limit 0.1 --cutoff x
    --cutoff must be a whole number of at least 1, or several. Got 'x'
frontier --candidates sex,age --limit 0.1 --cutoff 0
    cutoff must be.*at least 1
select --candidates sex,age --limit 5
    --limit must be a number from 0 to 1, or several. Got 5.0
select --candidates sex,age --limit -0.1
    --limit must be a number from 0 to 1, or several. Got -0.1
select --candidates sex,age --limit nan
    --limit must be a number from 0 to 1, or several. Got nan
select --candidates sex,age --limit few
    --limit must be a number from 0 to 1, or several. Got 'few'
frontier --candidates sex,age --limit 1.5
    --limit must be a number from 0 to 1. Got 1.5
frontier --candidates sex,age --limit few
    --limit must be a number from 0 to 1. Got 'few'
risk --keys sex,age --limit 1.5
    --limit must be a number from 0 to 1
risk --keys sex,age --limit 0.5 --missing drop
    --limit needs --missing to be 'own'
select --candidates sex,age --limit 0.1 --drop-limit 2
    --drop-limit must be a number from 0 to 1
select --candidates sex,age
    Missing option '--limit'
select --candidates sex,age --limit 0.1 --method sideways
    --method must be one of 'forward', 'backward', 'stepwise', or several. Got 'sideways'
select --candidates sex,age --limit 0.1 --criterion difference --cr-weight -1
    --cr-weight must be a number of at least 0
select --candidates sex,age --limit 0.1 --values agee=2
    --values names 'agee'
select --candidates sex,age --limit 0.1 --values age=0
    --values must be a table that gives for each column a number above 0
select --candidates sex,age --limit 0.1 --values age=x,sex=2
    a number above 0. Got 'age=x' instead
solve --keys sex,age --limit 0.1 --worth age=-1
    --worth must be a table that gives for each column a number above 0. Got 'age=-1.0'
solve --keys sex,age --limit 0.1 --limits sex
    --limits must be written like A.B=0.02,…. Got sex instead
solve --keys sex,age --limit 0.1 --limits sex|age=3
    each a table of `keys` and `limit`, from 0 to 1. Got 'sex.age=3.0' instead
table --rows sex --protect cell-key --seed 1 --noise-percent 20,5
    --noise-percent must be two percentages .* like 5,15. Got '20.0,5.0' instead
table --rows sex --protect cell-key --seed 1 --noise-percent 5,15,25
    --noise-percent must be two percentages .* like 5,15. Got '5.0,15.0,25.0' instead
select --candidates sex,age --limit 0.1 --criterion difference --cr-weight 1e308
    --cr-weight must be a number of at most 1,000,000,000. Got 1e.308
select --candidates sex,age --limit 0.1 --values age
    --values must be written like A=3,B=2
select --candidates sex,age --limit 1 --table F99
    --table must be a step.*F1.*Got 'F99'
select --candidates sex,age --limit 0.1,0.2 --tables
    --tables can only be used with one selection
select --keep sex --limit 0.1
    --candidates must name.*--candidates can name.* of 'people': 'age', 'state', 'weight'
frontier --limit 0.1
    --candidates must name.*--candidates can name these columns of 'people': 'sex', 'age'
frontier --candidates sex,age --limit 0.1 --seconds 0
    seconds must be a number above 0
uniques --keys sex,age --max-size 9
    --max-size must be at most the number of --keys .2.. Got 9
uniques --keys sex,age --availability state=2
    --availability must name --keys only. Got 'state'
uniques --keys sex,age --availability age=3
    --availability must be.*a number above 0 and at most 2
select --candidates sex,age --limit 0.1 --method ''
    --method must be one of 'forward', 'backward', 'stepwise', or several. Got an empty list
select --candidates sex,age --limit 0.1 --cutoff 9223372036854775808
    --cutoff must be a whole number of at most 1,000,000,000
risk --keys sex,age --fraction 1e-320
    --fraction must be a number from 1e-12
risk --keys sex,age --kinds agee=category
    Did you mean 'age'
risk --keys sex,age --kinds age=number
    kind of 'age' must be one of.*'category'
uniques --keys sex,age --kinds age
    --kinds must be written like A=KIND,…. Got age instead.$
select --candidates sex,age --limit 0.1 --kinds sex=measure
    'sex' must hold numbers
frontier --candidates sex,age --limit 0.1 --kinds age=text,age=measure
    --kinds must be written like
risk --keys sex,age --kyes sex
    No such option.*See 'keyhole risk --help'
"""
CASES = re.findall(r"^(\S.*)\n    (.*)$", WRONG, re.MULTILINE)


@pytest.fixture
def keyhole(capsys):
    def call(*words):
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def test_all_cases_are_read():
    assert len(CASES) == len(WRONG.strip().splitlines()) / 2 > 50


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(("words", "message"), CASES, ids=[words for words, _ in CASES])
def test_a_wrong_option_is_refused(people, keyhole, words, message, as_json):
    verb, *options = shlex.split(words)
    kind = "--records" if verb in ("risk", "uniques") else "--plot"
    output = people.with_name("out.csv" if kind == "--records" else "out.svg")
    code, out, err = keyhole(verb, people, *options, kind, output, *(["--json"] * as_json))
    assert (code, out) == (2, "")
    assert re.search(message, err, re.DOTALL), err
    assert err.startswith("keyhole: ")
    assert err.count("keyhole: ") == 1
    assert "Traceback" not in err
    assert SECRET not in err
    assert "739173" not in err
    assert [file.name for file in people.parent.iterdir()] == ["people.csv"]  # nothing written


def test_all_problems_are_told_at_once(people, tmp_path, keyhole):
    code, out, err = keyhole(
        *("risk", people, "--keys", "sxe", "--cutoff", 0, "--master", "here", "--limit", 2),
        *("--records", tmp_path / "no" / "out.csv", "--plot", tmp_path / "out.pdf"),
    )
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 6
    for part in ("'sxe'", "cutoff", "master", "limit", "--records", "--plot"):
        assert part in err


def test_all_problems_of_uniques_are_told_at_once(people, keyhole):
    code, out, err = keyhole(
        *("uniques", people, "--keys", "sxe,age", "--cutoff", 0, "--max-size", 9, "--fraction", 7),
        *("--availability", "age=3", "--plot", "out.pdf", "--kinds", "age=number"),
    )
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 7
    for part in ("'sxe'", "cutoff", "max-size", "fraction", "availability", "--plot", "kind"):
        assert part in err


def test_all_problems_of_the_others_are_told_at_once(people, keyhole):
    words = ("risk", people, "--keys", "sxe", "--weight", "weight", "--fraction", 7)
    assert len(keyhole(*words)[2].splitlines()) == 2
    words = ("select", people, "--candidates", "sxe", "--limit", 2, "--cr-weight", -1)
    said = keyhole(*words, "--method", "up,down")[2]
    assert len(said.splitlines()) == 4
    assert "Got 'up', 'down' instead" in said
    words = ("frontier", people, "--candidates", "sxe", "--limit", 2, "--seconds", 0)
    assert len(keyhole(*words)[2].splitlines()) == 3


@pytest.mark.parametrize(
    "verb",
    [
        "risk --keys sxe,band --cutoff 0",
        "screen --keys sxe,band --sure 7",
        "solve --keys sxe,band --limit 7",
        "tabulate --rows sxe,band --level 7",
        "synthesise --keys sex --targets sxe,band --seed 1 --out here --cycles -1",
    ],
)
@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (("--missing-codes", "agge:-9"), "column 'agge'"),
        (("--kinds", "agge=category"), "column 'agge'"),
        (("--derive", "band = band(agge, 5)"), "derived column 'band': column 'agge'"),
    ],
)
def test_what_is_declared_of_columns_is_told_with_the_rest(people, keyhole, verb, declared, said):
    name, *options = verb.split()
    code, out, err = keyhole(name, people, *options, *declared)
    assert (code, out) == (2, "")
    assert all(words in err for words in (said, "'sxe' is not a column", options[-2])), err
    assert ("'band' is not a column" in err) == (declared[0] != "--derive")
    assert len(err.splitlines()) == 3 + (declared[0] != "--derive")


def test_what_is_declared_for_a_study_is_told_with_the_rest(people, keyhole):
    files = [word for flag in ("--puf", "--eif", "--iuf") for word in (flag, people)]
    ids = ("--puf-id", "weight", "--eif-id", "weight", "--link", "sxe,age", "--alpha", 7)
    code, _, err = keyhole("study", *files, *ids, "--missing-codes", "agge:-9")
    assert code == 2
    assert all(words in err for words in ("--missing-codes names 'agge'", "'sxe'", "--alpha")), err


@pytest.mark.parametrize(
    "words",
    [
        "risk --keys sex --weight none",
        "table --rows sex --magnitude none",
        "tabulate --rows sex --mean none",
        "protect --plan plan.toml --out out.csv --keys sex",
    ],
)
def test_a_column_without_values_is_called_so(people, keyhole, words):
    people.write_text("sex,none\n" + "f,\nm,\n" * 9)
    plan = people.with_name("plan.toml")
    plan.write_text('[[step]]\nmethod = "round"\ncolumn = "none"\nbase = 5\n')
    verb, *options = words.replace("plan.toml", str(plan)).split()
    code, _, err = keyhole(verb, people, *options)
    assert code == 2
    assert "must hold numbers. Got only missing values instead: choose another column" in err


def test_what_cannot_be_read_is_told_once(people, keyhole):
    code, _, err = keyhole("tabulate", people, "--rows", "sxe", "--derive", "band = bnad(")
    assert code == 2
    assert len(err.splitlines()) == 1
    code, _, err = keyhole("tabulate", people, "--rows", "sxe", "--missing-codes", "-9")
    assert code == 2
    assert len(err.splitlines()) == 1
