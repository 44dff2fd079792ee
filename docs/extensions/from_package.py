"""Parts of pages that are made from the package itself, so that they cannot drift from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RUNS: dict[str, dict[str, float]] = {
    "forward": {"limit": 0.30},
    "backward": {"limit": 0.05},
    "stepwise": {"limit": 0.55, "drop_limit": 0.35},
}


def verbs() -> dict[str, Any]:
    """Return the verbs of the command line, by name; those of a group as ``group verb``."""
    from keyhole.cli.main import all_commands
    from keyhole.core.verbs import VERBS

    found: dict[str, Any] = {}
    for name, command in all_commands().items():
        parts = {f"{name} {one.name}": one.name for one in VERBS[name].verbs}
        found |= {whole: command.get_command(None, part) for whole, part in parts.items()}
        found |= {} if parts else {name: command}
    return found


def options_table(verb: str) -> str:
    """Write the arguments and options of a verb as a Markdown table."""
    import typer

    command = verbs()[verb]
    context = typer.Context(command, info_name=verb)
    records = [p.get_help_record(context) for p in command.params if p.name != "help"]
    return _table(["option", "meaning", "default"], [_option(*r) for r in records if r])


def _option(name: str, text: str) -> list[str]:
    """Take what --help says apart: ``[required]`` and ``[default: …]`` stand at its end."""
    said = re.fullmatch(r"(.*?)(?:\s*\[(?:default: (.*)|(required))\])?", text, re.DOTALL)
    meaning, default, required = said.groups() if said else (text, None, None)
    shown = f"`{default}`" if default else "required" if required else ""
    return [f"`{name}`", " ".join(meaning.split()), shown]


def methods_table() -> str:
    """Write the protection methods with their options; what stays secret is marked."""
    from keyhole.protection.methods import METHODS

    rows = [
        [
            f"`{name}`",
            method.summary,
            ", ".join(f"`{o}`" + ("\\*" if o in method.secret else "") for o in method.parameters),
        ]
        for name, method in METHODS.items()
    ]
    return _table(["method", "what it does", "options"], rows)


def measures_table() -> str:
    """Write the measures of the risk on a key as a Markdown table."""
    from keyhole.exposure.measures import MEASURES

    rows = [[f"`{name}`", measure.help] for name, measure in MEASURES.items()]
    return _table(["measure", "meaning"], rows)


def settings_table(section: str) -> str:
    """Write the settings of a section of a review file as a Markdown table."""
    from keyhole.reviews.schema import SECTIONS, TOP

    known = TOP if section == "top" else SECTIONS[section]
    rows = [[f"`{name}`", setting.help, _shown_default(setting)] for name, setting in known.items()]
    return _table(["setting", "meaning", "default"], rows)


def _shown_default(setting: Any) -> str:
    if setting.required:
        return "required"
    value = setting.default
    empty = value is None or value is False or value in ((), {})
    return "" if empty else f"`{setting.kind.write(setting.settle(value))}`"


def published_table(name: str) -> str:
    """Write a run of Lin & Garin: what the paper did in each step, and what keyhole does."""
    from keyhole.published.figures import LIN_GARIN_VARIABLES, summary_rows

    kept, everything = LIN_GARIN_VARIABLES[:2], LIN_GARIN_VARIABLES
    before, rows = set(everything if name == "backward" else kept), []
    found = published_run(name)
    for printed, step in zip(summary_rows(name), found.steps, strict=True):
        after = set(printed["variables"].split())
        ours = _move(step.step, step.variable)
        paper = ", ".join(_move(printed["step"], v) for v in before ^ after)
        alpha = "" if step.alpha is None else f"{step.alpha:.3f}"
        figures = [_padded(printed[figure]) for figure in ("rp", "cr", "ratio")]
        rows.append([printed["step"], paper, ours, _padded(printed["alpha"]), alpha, *figures])
        before = after
    columns = ["step", "paper", "keyhole", "α of the paper", "α of keyhole", "RP", "CR", "RP/CR"]
    return _table(columns, rows, right_from=3) + "\n\n" + _ending(found)


def _move(step: str, variable: str) -> str:
    return f"{'+' if step.startswith('F') else '−'} `{variable}`"


def published_run(name: str) -> Any:
    """Search as in the paper, over the figures it printed."""
    from keyhole import selection
    from keyhole.published.figures import LIN_GARIN_VARIABLES, PublishedEvaluator

    search: Callable[..., Any] = getattr(selection, name)
    keep, candidates = LIN_GARIN_VARIABLES[:2], LIN_GARIN_VARIABLES[2:]
    return search(PublishedEvaluator(), keep=keep, candidates=candidates, **RUNS[name])


def _padded(figure: str) -> str:
    return f"{float(figure):.3f}" if figure else ""


def _ending(found: Any) -> str:
    notes = found.tables()[0].notes
    within = ", ".join(f"`{name}`" for name in found.within_limit)
    return f"{notes[0]} Within the limit: {within}."


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], right_from: int = 99) -> str:
    rule = ["---:" if place >= right_from else "---" for place in range(len(columns))]
    lines = [columns, rule, *([_cell(c) for c in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def schema_list() -> str:
    """List the JSON Schemas of what verbs print, each to be downloaded."""
    paths = (Path(__file__).parents[1] / "schemas").glob("*.json")
    names = sorted(path.stem for path in paths if path.stem != "review-file")
    return "\n".join(f"- {{download}}`{name} </schemas/{name}.json>`" for name in names)


class _FromPackage(SphinxDirective):
    """Put Markdown made from the package in the place of the directive."""

    optional_arguments = 1
    final_argument_whitespace = True  # a verb of a group has two words
    make: Callable[..., str]

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(type(self).make(*self.arguments))


class _Options(_FromPackage):
    make = options_table


class _Methods(_FromPackage):
    make = methods_table


class _Measures(_FromPackage):
    make = measures_table


class _Settings(_FromPackage):
    make = settings_table


class _PublishedRun(_FromPackage):
    make = published_table


class _Schemas(_FromPackage):
    make = schema_list


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directives known."""
    app.add_directive("verb-options", _Options)
    app.add_directive("protection-methods", _Methods)

    app.add_directive("section-settings", _Settings)
    app.add_directive("risk-measures", _Measures)
    app.add_directive("published-run", _PublishedRun)
    app.add_directive("schema-list", _Schemas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
