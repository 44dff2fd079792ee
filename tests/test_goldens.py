"""Every verb's JSON is what it was: compared member by member with what is stored in goldens/.

Integers, texts and flags must be equal, floats to 1e-9 of their size. More members may be added
to any object. A sentence may be worded anew as long as it has the same numbers and quoted names;
``--golden-words`` holds it to its words too. ``--record-goldens`` stores what comes out now.
"""

import contextlib
import hashlib
import html
import io
import json
import math
import re
import shlex
import shutil
import tomllib
from collections import Counter
from pathlib import Path

import polars as pl
import pyreadstat
import pytest
from tests import golden_files
from tests.golden_cases import CASES
from tests.reviews import plain_pictures

from keyhole.cli.main import run

GOLDENS = Path(__file__).with_name("goldens")
OLD_DOSSIER = GOLDENS / "old-dossier.tar.xz"

# Members that belong to a machine, a version or a file's bytes, not to an answer.
VARIES = {"sha256", "versions", "version", "python", "platform", "machine", "seconds", "date"}
VARIES |= {"figures"}  # how many values verify compared: more with every member that is added
WIDTH = 100
MOST_SHOWN = 40


class Runner:
    """Runs cases in one folder, each once, after those whose files it needs."""

    def __init__(self, folder):
        self.folder = folder
        self.outcomes = {}

    def outcome(self, name):
        """Return the JSON that a case prints, and what it writes."""
        if name not in self.outcomes:
            case = CASES[name]
            for earlier in case.after:
                self.outcome(earlier)
            printed = self.printed(case.words)
            files = {path: contents(self.folder / path) for path in case.writes}
            self.outcomes[name] = {"json": printed, **({"files": files} if files else {})}
        return self.outcomes[name]

    def printed(self, words):
        """Return what a command line prints as JSON."""
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run([*shlex.split(words), "--json"])
        assert code == 0, err.getvalue()
        return json.loads(out.getvalue())


@pytest.fixture(scope="module", autouse=True)
def _plain_charts():
    """Build and draw no charts of reviews: no JSON holds one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.reviews.runner._pictures", plain_pictures)
        yield


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    folder = tmp_path_factory.mktemp("goldens")
    golden_files.write_world(folder)
    golden_files.write_coded(folder)
    golden_files.write_review(folder)
    if golden_files.REAL_FILE.exists():
        golden_files.write_real(folder)
    return Runner(folder)


@pytest.mark.usefixtures("plain_charts")
@pytest.mark.parametrize("name", CASES)
def test_the_json_is_what_it_was(runner, name, request):
    if name.startswith("acs-") and not golden_files.REAL_FILE.exists():
        pytest.skip("the real records (../shared/data/acs2024_veterans.parquet) are not here")
    outcome = steady(runner.outcome(name), VARIES.union(CASES[name].varies))
    place = GOLDENS / f"{CASES[name].golden or name}.json"
    if request.config.getoption("--record-goldens") and not CASES[name].golden:
        place.write_text(readable({"command": CASES[name].words, **outcome}) + "\n")
        return
    golden = json.loads(place.read_text())
    by_words = request.config.getoption("--golden-words")
    found = list(
        differences({k: v for k, v in golden.items() if k != "command"}, outcome, by_words)
    )
    assert not found, told(name, found, added(golden, outcome))


def test_no_golden_is_left_over():
    assert {path.stem for path in GOLDENS.glob("*.json")} == {
        name for name, case in CASES.items() if not case.golden
    }


def test_a_dossier_of_version_0_1_is_verified(tmp_path, capsys):
    """The archive holds a review of 300 records by 0.1.0: its inputs, and `findings`."""
    shutil.unpack_archive(OLD_DOSSIER, tmp_path, filter="data")
    assert run(["verify", str(tmp_path / "findings")]) == 0, capsys.readouterr().err


# --- comparing ---------------------------------------------------------------------------------


def steady(value, varies):
    """Leave out what belongs to a machine or a version, but not that it is there."""
    if isinstance(value, dict):
        return {k: "(varies)" if k in varies else steady(v, varies) for k, v in value.items()}
    return [steady(item, varies) for item in value] if isinstance(value, list) else value


def differences(golden, found, by_words, path="$"):
    """Give the JSON path of each difference, and what differs there."""
    if isinstance(golden, dict) and isinstance(found, dict):
        for name, value in golden.items():
            if name not in found:
                yield f"{path}.{name}", "is missing"
            else:
                yield from differences(value, found[name], by_words, f"{path}.{name}")
    elif isinstance(golden, list) and isinstance(found, list):
        if len(golden) != len(found):
            yield path, f"had {len(golden)} items, has {len(found)}"
        for at, (one, other) in enumerate(zip(golden, found, strict=False)):
            yield from differences(one, other, by_words, f"{path}[{at}]")
    elif not same(golden, found, by_words):
        yield path, f"was {golden!r}, is {found!r}"


def same(golden, found, by_words=False):
    """Compare two values that hold no others.

    Examples
    --------
    >>> same(1, 1.0), same(0.1, 0.1 + 1e-15), same(None, 0), same("sex", "age")
    (False, True, False, False)
    >>> same("3 records of 'age' were taken away.", "In 'age', 3 records were suppressed.")
    True
    """
    if type(golden) is not type(found):
        return False
    if isinstance(golden, float):
        return math.isclose(golden, found, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(golden, str) and " " in golden and not by_words:
        return figures(golden) == figures(found)
    return golden == found


def figures(sentence):
    """Count the numbers and the quoted names of a sentence."""
    return Counter(re.findall(r"'[^']*'|\d+(?:[.,]\d+)*", sentence))


def added(golden, found, path="$"):
    """Give the paths of members that the golden lacks."""
    if isinstance(golden, dict) and isinstance(found, dict):
        for name, value in found.items():
            if name in golden:
                yield from added(golden[name], value, f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif isinstance(golden, list) and isinstance(found, list):
        for at, (one, other) in enumerate(zip(golden, found, strict=False)):
            yield from added(one, other, f"{path}[{at}]")


def told(name, found, more):
    lines = [f"{path}: {what}" for path, what in found]
    lines += [f"{path}: is new (allowed)" for path in more]
    left = len(lines) - MOST_SHOWN
    shown = lines[:MOST_SHOWN] + ([f"and {left} more"] if left > 0 else [])
    return "\n".join([f"{name}: keyhole {CASES[name].words}", *shown])


# --- storing -----------------------------------------------------------------------------------


def contents(path):
    """Say what a written file holds: a page's lines, a plan's values, hashes of columns."""
    if path.suffix == ".html":
        return page_lines(path.read_text())
    if path.suffix == ".toml":
        return tomllib.loads(path.read_text())
    if path.suffix == ".sav":
        frame, _ = pyreadstat.read_sav(str(path), user_missing=True, output_format="polars")
    else:
        frame = pl.read_csv(path, infer_schema=False)
    return {
        "rows": frame.height,
        "names": frame.columns,
        "hashes": {name: column_hash(frame[name]) for name in frame.columns},
    }


# Hashes, days, versions and places of this run.
BLOCKS = r"p|h\d|li|d[tld]|tr|table|caption|section|div|summary"
OF_A_RUN = r"\b[0-9a-f]{7,64}\b|\d{4}-\d\d-\d\d\S*|\b\d+\.\d+\.\d+\S*|/\S+"


def page_lines(page):
    """Return the lines of a page that are read, the cells of a table's rows apart.

    Examples
    --------
    >>> page_lines("<style>p</style><p>On <b>sex</b>,\\n 3 cells.</p><tr><td>a b<td>2</tr>")
    ['On sex, 3 cells.', ['a b', '2']]
    """
    page = re.sub(r"(?s)<(style|script|svg|title)\b.*?</\1>|<!--.*?-->", "", page)
    page = re.sub(r"\s+", " ", page)
    page = re.sub(r"<t[dh]\b[^>]*>", "\t", page)
    page = re.sub(
        r"</?(?:p|h\d|li|d[tld]|tr|table|caption|section|div|summary)\b[^>]*>", "\n", page
    )
    text = re.sub(OF_A_RUN, "(varies)", html.unescape(re.sub(r"<[^>]*>", "", page)))
    lines = [[cell.strip() for cell in line.split("\t")] for line in text.split("\n")]
    return [line[0] if len(line) == 1 else line[1:] for line in lines if any(line)]


def column_hash(column):
    text = "\n".join(map(cell_text, column.to_list()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cell_text(value):
    """Write a number of a file to ten digits, anything else as it stands."""
    text = "" if value is None else str(value)
    return f"{float(text):.10g}" if re.fullmatch(r"-?\d*\.\d+(e-?\d+)?", text) else text


def readable(value, indent=""):
    """Write JSON with what is short on one line, to be read in a difference.

    Examples
    --------
    >>> readable({"a": [1, 2]})
    '{"a": [1, 2]}'
    """
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + len(indent) <= WIDTH or not isinstance(value, dict | list):
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(k)}: {readable(v, deeper)}" for k, v in value.items()]
        first, last = "{", "}"
    else:
        parts = [readable(item, deeper) for item in value]
        first, last = "[", "]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{last}"
