"""The tests themselves: each of them can fail, because it asserts something."""

import ast
import builtins
from pathlib import Path

from tests.mutants import TESTS
from tests.mutations import ROOT, Finder, with_changes

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
