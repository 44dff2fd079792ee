"""What `import keyhole` offers, and what it costs."""

import ast
import subprocess
import sys
from importlib.metadata import version
from types import ModuleType

import pytest

import keyhole
from keyhole.core.verbs import VERBS

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


LATER = (
    "numba", "scipy", "pyarrow", "pandas", "narwhals", "duckdb", "sqlalchemy", "pyspark", "sklearn",
    "statsmodels", "altair", "vl_convert", "jinja2", "yaml", "starlette", "uvicorn", "fastexcel",
    "pyreadstat", "keyhole.environment.matching", "keyhole.environment.importers",
)  # fmt: skip


def test_importing_a_verb_imports_nothing_that_can_wait_until_it_is_used():
    verbs = {name: verb for name, verb in VERBS.items() if not verb.verbs}
    verbs |= {f"environment {verb.name}": verb for verb in VERBS["environment"].verbs}
    code = (
        "import sys; from keyhole.core.verbs import imported\n"
        f"later, seen = set({LATER}), set()\n"
        f"for name, path in {[(name, verb.path) for name, verb in verbs.items()]}:\n"
        "    imported(path); print(name, sorted(later & set(sys.modules) - seen), sep='=')\n"
        "    seen = set(sys.modules)"
    )
    found = dict(line.split("=") for line in _python(code).splitlines())
    assert list(found) == list(verbs)
    used = {name: set(ast.literal_eval(modules)) for name, modules in found.items()}
    # What recognises the questions of forms is always used to import them.
    assert {name: some for name, some in used.items() if some} == {
        "environment import": set(LATER[-2:])
    }


def test_other_attributes_of_the_package_can_be_set(monkeypatch):
    monkeypatch.setattr(keyhole, "risk", 1)
    assert keyhole.risk == 1
