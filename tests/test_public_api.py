"""What `import keyhole` offers, and what it costs."""

import subprocess
import sys
from importlib.metadata import version
from types import ModuleType

import pytest

import keyhole

PUBLIC = [
    "Microdata",
    "__version__",
    "apply_plan",
    "attributes",
    "cheapest_fix",
    "compare_plans",
    "compare_studies",
    "derive",
    "drivers",
    "errors",
    "frontier",
    "init",
    "ledger",
    "load",
    "protect",
    "report",
    "review",
    "risk",
    "screen",
    "select",
    "selftest",
    "solve",
    "study",
    "synthesise",
    "table",
    "tabulate",
    "uniques",
    "verify",
]


def test_the_public_names_are_these():
    assert keyhole.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(keyhole))


def test_nothing_else_is_offered():
    offered = {name for name in dir(keyhole) if not name.startswith("__")}
    assert offered == {name for name in PUBLIC if name != "__version__"}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name):
    found = getattr(keyhole, name)
    assert found is getattr(keyhole, name)
    assert isinstance(found, ModuleType) == (name == "errors")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'rsik'"):
        _ = keyhole.rsik


def test_the_version_is_the_installed_one():
    assert keyhole.__version__ == version("keyhole")


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_keyhole_imports_nothing_heavy():
    heavy = "{'numpy', 'polars', 'numba', 'scipy', 'pyarrow', 'altair', 'typer', 'rich', 'pandas'}"
    assert _python(f"import sys, keyhole; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_other_attributes_of_the_package_can_be_set(monkeypatch):
    monkeypatch.setattr(keyhole, "risk", 1)
    assert keyhole.risk == 1
