"""Print how well fields are recognised: `python -m benchmarks.recognition [--errors]`."""

from __future__ import annotations

import sys

from benchmarks.recognition import errors, measure_recognition

if "--errors" in sys.argv:
    for line in errors():
        print(line)
for table, figures in measure_recognition().items():
    print(table, {name: round(value, 3) for name, value in figures.items()})
