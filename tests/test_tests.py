"""The tests themselves: each of them can fail, because it asserts something."""

import ast
import builtins
from pathlib import Path

from tests import mutations
from tests.mutants import TESTS, Tree, Watched, quickest
from tests.mutations import MARK, ROOT, Finder, outermost, with_changes, with_marks

SAYS = {"raises", "warns", "fail", "expect", "validate"}


def names_called(function):
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {getattr(called, "id", getattr(called, "attr", "")) for called in calls}


def asserts(function, helpers):
    written = any(isinstance(node, ast.Assert) for node in ast.walk(function))
    called = names_called(function)
    return written or any(name in SAYS | helpers or name.startswith("assert_") for name in called)


def test_every_test_asserts_something():
    functions = [
        (f"{path.name}::{node.name}", node)
        for path in sorted(Path(__file__).parent.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]
    tests = [(place, node) for place, node in functions if node.name.startswith("test_")]
    others = [node for _, node in functions if not node.name.startswith("test_")]
    helpers, before = set(), None
    while helpers != before:  # a helper may leave it to another
        before, helpers = helpers, {node.name for node in others if asserts(node, helpers)}
    assert len(tests) > 1_000
    assert [place for place, node in tests if not asserts(node, helpers)] == []


def test_mutants_are_tried_with_tests_that_are_there():
    """A file that was renamed would be left out of `make mutants`, and nobody would see it."""
    named = [f"tests/test_{one}.py" for words in TESTS.values() for one in words.split()]
    assert [one for one in named if not [*ROOT.glob(one)]] == []
    assert [one for one in TESTS if not [*(ROOT / "src/keyhole" / one).glob("*.py")]] == []


def test_a_mutant_is_the_code_as_it_is_until_it_is_asked_for(monkeypatch):
    """All changes of a module stand in one copy of it, and each is made by its number."""
    path = "src/keyhole/reviews/column_guesses.py"
    changes = dict(enumerate(Finder(ROOT / path).found))
    told = "code > _APART * highest -> code >= _APART * highest"
    (number,) = (str(at) for at, one in changes.items() if one.told.endswith(told))
    names = {"__name__": __name__, "__builtins__": vars(builtins)}
    exec(
        compile(with_changes((ROOT / path).read_bytes(), changes), path, "exec", dont_inherit=True),
        names,
    )
    is_apart, asked = names["_apart"], []
    assert not is_apart(5, 4)
    monkeypatch.setattr(builtins, "mutated", lambda one: asked.append(one), raising=False)
    assert not is_apart(5, 4)
    assert number in asked
    monkeypatch.setattr(builtins, "mutated", number.__eq__)
    assert is_apart(5, 4)


def test_the_quickest_tests_near_a_change_are_tried_first():
    watched = [
        Watched("one.py::slow", 3.0, 0.0, [1]),
        Watched("two.py::far", 1.0, 0.0, [2]),
        Watched("one.py::near", 2.0, 0.0, [1, 3]),
        Watched("two.py::elsewhere", 1.0, 0.0, [9]),
    ]
    tried = [test.name for test in quickest(watched, {1, 2}, {1, 9}, 10)]
    assert tried == ["one.py::near", "one.py::slow", "two.py::far"]
    assert [test.name for test in quickest(watched, {1, 2}, {1, 9}, 1)] == tried[:1]


CODE = """
def first(rows, least=1 + 1):
    kept = sorted((x for x in rows if x > least and not x == 3), key=lambda x: x - 1)
    return (kept[0] if kept else 0), lambda y: y + len(kept) - 1
"""


def test_whoever_comes_to_a_change_comes_to_the_mark_around_it(monkeypatch, tmp_path):
    """Fewer marks than changes stand in the code that is watched, and no test is missed by them."""
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    (tmp_path / "first.py").write_text(CODE)
    changes, asked, marked = Finder(tmp_path / "first.py").found, set(), set()
    marks = outermost(changes, {"first.py": CODE.encode()})
    assert 3 < len({*marks}) < len(changes)
    monkeypatch.setattr(builtins, "mutated", lambda one: asked.add(int(one)), raising=False)
    monkeypatch.setattr(builtins, MARK, marked.add, raising=False)
    asking, marking = ({"__builtins__": vars(builtins)} for _ in range(2))
    exec(with_changes(CODE.encode(), dict(enumerate(changes))), asking)
    exec(with_marks(CODE.encode(), {n: changes[n] for n in marks}), marking)
    seen = []
    for rows in ([], [1], [5, 4], [3]):
        given = [names["first"](rows) for names in (asking, marking)]
        assert given[0][0] == given[1][0]
        seen.append(len(marked))
        assert given[0][1](2) == given[1][1](2)
        assert {marks[number] for number in asked} == marked
    assert seen[0] < len(marked) < len(changes)


CONSTANTS = """
LEAST, MOST = 3, 5

def few(x):
    return x + 1

def many(x):
    if x > MOST:
        return x + 2
    return x * few(LEAST)
"""


def test_a_constant_is_tried_first_by_tests_of_what_uses_it(monkeypatch, tmp_path):
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.py").write_text(CONSTANTS)
    changes = Finder(tmp_path / "first.py").found
    tree = Tree([("package", change) for change in changes])
    used = {one.told: {changes[n].line for n in tree.users(one)} for one in changes}
    assert used["2: 3 -> 4"] == {8, 10}
    assert used["5: 1 -> 2"] == set()
