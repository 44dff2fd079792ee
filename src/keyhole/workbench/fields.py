"""Form fields of options: one for each, made from what the option declares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tomlkit.toml_document import TOMLDocument

from keyhole.core.kinds import Choice, Flag, Number, Several
from keyhole.core.options import Parameter, Question
from keyhole.workbench import editing
from keyhole.workbench.page import SentForm

ASKED = "asked"
"""The field that lists the options a form has: an empty box sends nothing of itself."""


@dataclass(frozen=True, slots=True)
class FormField:
    """One option, as a form asks for it; `prefix` sets sections of one form apart."""

    parameter: Parameter
    value: Any
    prefix: str = ""

    @property
    def name(self) -> str:
        """The name of the field: that of the option, after the prefix."""
        return self.prefix + self.parameter.name

    @property
    def label(self) -> str:
        """What stands above the field."""
        words = {"cols": "columns"}.get(self.parameter.name, self.parameter.name)
        words = words.replace("_", " ").capitalize()
        return f"{words} (needed)" if self.parameter.required else words

    @property
    def help(self) -> str:
        """What the option means."""
        unit = " In percent." if _are_shares(self.parameter) else ""
        words = self.parameter.help.replace("`", "") + unit
        words = words.replace(", from 0 to 1", "") if is_percentage(self.parameter) else words
        return words[:1].upper() + words[1:]

    @property
    def widget(self) -> str:
        """What kind of field it is; a share is asked for in percent."""
        if _is_open_flag(self.parameter):
            return "choice"
        return "percent" if is_percentage(self.parameter) else self.parameter.kind.widget

    @property
    def low(self) -> float | None:
        """The smallest number that is accepted."""
        return self.parameter.kind.low if isinstance(self.parameter.kind, Number) else None

    @property
    def words(self) -> list[tuple[str, str]]:
        """The words to choose from, with what is shown of each."""
        kind = self.parameter.kind
        words = kind.words if isinstance(kind, Choice) else ("yes", "no")
        usual = [("", "as usual")] if self.parameter.optional else []
        return usual + [(word, word) for word in words]

    @property
    def chosen(self) -> Any:
        """The word that is chosen."""
        return {True: "yes", False: "no"}.get(self.value, self.value)

    @property
    def text(self) -> str:
        """The value as it stands in a field of text."""
        if self.value is None or self.parameter.option.secret:
            return ""
        if _are_shares(self.parameter):
            return ", ".join(f"{100 * share:g}" for share in self.value)
        return self.parameter.kind.write(self.value)


def form_fields(
    question: Question,
    names: Iterable[str] | None = None,
    prefix: str = "",
    but: Collection[str] = (),
) -> list[FormField]:
    """Return the fields of a section's options, or of some of them."""
    wanted = set(question.parameters if names is None else names) - set(but)
    known = question.parameters.items()
    return [FormField(one, question.values[n], prefix) for n, one in known if n in wanted]


def read_fields(known: Mapping[str, Parameter], form: SentForm, prefix: str = "") -> dict[str, Any]:
    """Return what a form says of options; one that is empty is None.

    An option that the form does not have is left out. What cannot be read stays as it was typed,
    for the checks of the review file to refuse.
    """
    asked = set(form.texts(ASKED)) | set(form.values)
    named = {name: prefix + name for name in known}
    return {n: _read(p, form, named[n]) for n, p in known.items() if named[n] in asked}


def take_fields(
    document: TOMLDocument,
    section: str,
    known: Mapping[str, Parameter],
    form: SentForm,
    prefix: str = "",
    now: Mapping[str, Any] | None = None,
) -> None:
    """Write what a form says of a section's options into a review file.

    A default is written only where the file states it already, and a value that the option has
    `now`, wherever it comes from, stays as it stands.
    """
    stated = editing.opened_section(document, section)
    for name, value in read_fields(known, form, prefix).items():
        before = stated.get(name) if now is None else now[name]
        if isinstance(value, list) and known[name].kind.widget == "columns":
            value = editing.in_former_order(value, before or ())  # boxes have that of the columns
        fit = not known[name].fault(value)
        if (known[name].settle(value) if fit else value) == before:
            continue
        may_be_default = not (known[name].required or known[name].kind.fault(value))
        is_default = may_be_default and known[name].settle(value) == known[name].settled_default
        if name in stated or not is_default:
            editing.put_setting(document, section, name, value)


def _read(parameter: Parameter, form: SentForm, name: str) -> Any:
    value: Any
    widget = parameter.kind.widget
    if is_percentage(parameter):
        return form.share(name)
    if _are_shares(parameter):
        typed = [one.strip().removesuffix("%") for one in (form.text(name) or "").split(",")]
        return [SentForm({name: [one]}).share(name) for one in typed if one] or None
    if widget == "number":
        return form.number(name)
    if _is_open_flag(parameter):
        text = form.text(name)
        return {"yes": True, "no": False}.get(text or "", text)
    if widget == "flag":
        return form.flag(name)
    if widget == "columns":
        value = form.texts(name)
    else:
        value = form.text(name)
        if value is not None and widget not in ("column", "choice"):
            try:
                value = parameter.kind.read(value)
            except ValueError:
                return value
    fit = value is not None and not parameter.kind.fault(value)
    return _plain(parameter.settle(value)) if fit else value


def is_percentage(parameter: Parameter) -> bool:
    """Tell whether an option is a share, which forms ask for in percent."""
    kind = parameter.kind
    return isinstance(kind, Number) and 1 in (kind.high, kind.below) and (kind.low or 0) < 1


def _are_shares(parameter: Parameter) -> bool:
    """Tell whether an option is several shares."""
    kind = parameter.kind
    return isinstance(kind, Several) and isinstance(kind.of, Number) and kind.of.high == 1


def _is_open_flag(parameter: Parameter) -> bool:
    """Tell whether an option is yes, no, or left open."""
    return isinstance(parameter.kind, Flag) and parameter.optional


def _plain(value: Any) -> Any:
    """Return lists and tables as TOML has them."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, Mapping) else value
