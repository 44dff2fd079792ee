"""Protection methods, one module each; a module that is put here is a method of every plan."""

from __future__ import annotations

import importlib
import pkgutil
import typing

from keyhole.protection.method import METHODS, Effect

__all__ = ["METHODS"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

# In the order of what they do: columns left out first, records last.
_ORDER = typing.get_args(Effect)
for _name in sorted(METHODS, key=lambda name: _ORDER.index(METHODS[name].effect)):
    METHODS[_name] = METHODS.pop(_name)
