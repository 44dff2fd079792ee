"""Environments and scenarios of reviews: the file or store that holds one, and what is chosen."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tomlkit
from tomlkit.toml_document import TOMLDocument

from keyhole.data import Microdata
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.exchange import current_user, read_place
from keyhole.environment.model import Environment
from keyhole.environment.scenarios.recoding import scenario_key
from keyhole.environment.scenarios.scenarios import Scenario, scenario_to_toml
from keyhole.environment.soundness import ordered
from keyhole.errors import FileError, InputError
from keyhole.reviews.files import Memory, read_again, remembered, remembering
from keyhole.reviews.settings import Review
from keyhole.workbench import editing
from keyhole.workbench.page import View
from keyhole.workbench.projects import Project, inside, path_below, walk

if TYPE_CHECKING:
    from keyhole.environment.store import Change, Snapshot, Store


STORE = "environment.db"
SUFFIXES = (".json", ".db", ".sqlite")
MOST_FILES, MOST_LOOKED_AT = 100, 5_000
_MARK = b'"keyhole_environment"'


@dataclass(frozen=True, slots=True)
class EnvironmentPlace:
    """Where an environment is kept: a JSON file is only read, a store is written to as well."""

    name: str  # for reading, without a password
    place: str  # the path or the URL by which it is opened
    kind: Literal["json", "store", "server"]
    memory: Memory = field(default_factory=dict, repr=False, compare=False)  # of files read

    @property
    def writable(self) -> bool:
        """Whether something can be added to it."""
        return self.kind != "json"

    def read(self) -> tuple[Environment, int]:
        """Return the environment and the number of its last change; 0 of a JSON file."""
        if self.kind == "json":
            with remembering(self.memory):
                return read_again(Path(self.place), read_place), 0
        found = self._store(writing=False).read()
        return found.environment, found.number

    def graph(self, environment: Environment) -> CodingGraph:
        """Return the coding graph of what was read; it is made once."""
        with remembering(self.memory):
            return remembered("graph", (environment,), lambda: CodingGraph.of(environment))

    def snapshot(self) -> Snapshot:
        """Return what is kept, to be written to."""
        return self._store(writing=True).read()

    def write(self, snapshot: Snapshot, environment: Environment, note: str) -> None:
        """Write what changed since a snapshot; a conflict changes nothing."""
        self._store(writing=True).write(snapshot, environment, who=current_user(), note=note[:400])

    def history(self, most: int) -> list[list[str]]:
        """Return who changed what and when, the last first; what was written together, in one."""
        if self.kind == "json":
            return []
        together: dict[int, list[Change]] = {}
        for change in self._store(writing=False).history():
            together.setdefault(change.number, []).append(change)
        last = list(together.values())[-most:]
        return [
            [f"{some[0].when:%Y-%m-%d %H:%M}", some[0].who, _summary(some), some[0].note]
            for some in reversed(last)
        ]

    def _store(self, *, writing: bool) -> Store:
        from keyhole.environment.store import open_store

        return open_store(self.place, writing=writing)


def _summary(changes: Sequence[Change]) -> str:
    """Say what was changed together: one thing by name, several by their number."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        kinds.setdefault((change.action, change.kind), []).append(change.name)
    return ", ".join(
        f"{action} {kind} {names[0]}" if len(names) == 1 else f"{action} {len(names):,} {kind}s"
        for (action, kind), names in kinds.items()
    )


def environment_place(project: Project, store: str) -> EnvironmentPlace:
    """Return where the environment is that a review names; a password is not shown."""
    if "://" in store:
        from keyhole.environment.store import place_of_store

        name = str(place_of_store(store)).strip("'")
        return EnvironmentPlace(name, store, "server", project.memory)
    path = project.path.parent / store
    kind: Literal["json", "store"] = "json" if path.suffix.lower() == ".json" else "store"
    return EnvironmentPlace(store, str(path), kind, project.memory)


def review_environment(view: View) -> Environment:
    """Return the environment that a review names; an empty one if it names none."""
    settings = view.review.scenarios
    if settings is None:
        return Environment()
    return environment_place(view.project, settings.store).read()[0]


def environments_below(folder: Path) -> list[str]:
    """List the environments below a folder, as seen from it: stores and exported files."""
    named = (
        path for path in islice(walk(folder), MOST_LOOKED_AT) if path.suffix.lower() in SUFFIXES
    )
    return sorted(path_below(folder, path) for path in named if _is_environment(path))[:MOST_FILES]


def _is_environment(path: Path) -> bool:
    from keyhole.environment.store import FilePlace

    try:
        if path.is_symlink() or not path.is_file():
            return False
        if path.suffix.lower() == ".json":
            with path.open("rb") as file:
                return _MARK in file.read(200)
        FilePlace(path).check(create=False)
    except (OSError, FileError):
        return False
    return True


def make_store(path: Path, environment: Environment) -> None:
    """Make a store that holds an environment; one that holds just this is taken as it is.

    So a change of the review that is refused can be asked for again.
    """
    from keyhole.environment.store import open_store

    wanted, opened = ordered(environment), open_store(path, create=True)
    snapshot = opened.read()
    if snapshot.environment not in (wanted, Environment()):
        raise InputError(
            f"{path.name!r} beside the review holds another environment already. Choose it, or "
            f"move it away first."
        )
    opened.write(snapshot, wanted, who=current_user(), note="made in the workbench")


def chosen_file(project: Project, name: str) -> tuple[str, EnvironmentPlace]:
    """Return an environment of the list as the review is to name it."""
    path = inside(project.state.folder, name)
    if not name or not path.is_file() or not _is_environment(path):
        raise FileError("there is no such environment. Choose one from the list.")
    seen = Path(os.path.relpath(path, project.path.parent.resolve())).as_posix()
    return seen, environment_place(project, seen)


def stories_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the scenarios that a review tells itself."""
    told = document.get("scenario", {})
    return tuple(str(name) for name in told) if isinstance(told, Mapping) else ()


def set_scenarios(document: TOMLDocument, names: Sequence[str]) -> None:
    """Set which of the environment's scenarios are looked at; none is a list without names."""
    if names:
        editing.put_setting(document, "environment", "scenarios", list(names))
        return
    section: Any = document["environment"]
    section["scenarios"] = tomlkit.array()


def hold_scenarios(document: TOMLDocument, review: Review) -> None:
    """Say which of the environment's scenarios are looked at, where that was left unsaid.

    Left unsaid it means all of them, unless the review tells some itself: then none. So it would
    change its meaning when the first story is added, or the last one goes.
    """
    section: Any = document.get("environment", {})
    if review.scenarios is None or "scenarios" in section:
        return
    own = stories_of(document)
    set_scenarios(document, [name for name in review.scenarios.names if name not in own])


def put_story(document: TOMLDocument, scenario: Scenario) -> None:
    """Write a scenario into the review, every point of it, in place of one of its name."""
    if "scenario" not in document:
        document["scenario"] = tomlkit.table(is_super_table=True)
    section: Any = document["scenario"]
    section[scenario.name] = _told(scenario)


def _told(scenario: Scenario) -> Any:
    section: Any = tomlkit.parse(scenario_to_toml(scenario))["scenario"]
    return section[scenario.name]


def change_story(document: TOMLDocument, before: Scenario, changes: Mapping[str, Any]) -> None:
    """Change attributes of one of the review's own scenarios, and leave the rest as it stands."""
    after = dataclasses.replace(before, **changes)
    names = [name for name in changes if getattr(after, name) != getattr(before, name)]
    section: Any = document["scenario"]
    story: Any = section[before.name]
    # A stage may have gone; text may be empty, and says so.
    gone = [name for name in names if getattr(after, name) in (None, (), {})]
    if "preset" in story and gone:
        # What a preset says can only be taken away by telling the whole.
        put_story(document, after)
        return
    told = _told(after)
    for name in names:
        if name in gone:
            story.pop(name, None)
        else:
            story[name] = told[name].unwrap() if name == "public" else told[name]


def remove_story(document: TOMLDocument, name: str) -> None:
    """Take one of the review's own scenarios out of it."""
    section: Any = document["scenario"]
    del section[name]
    if not section:
        document.pop("scenario")


def fit_environment(document: TOMLDocument, environment: Environment, data: Microdata) -> None:
    """Leave out the target and scenarios that an environment does not have, or has for others.

    A scenario is left out whose key cannot be derived for the file: an example's, say, whose
    target describes other columns. It can be ticked again when the file is described.
    """
    section: Any = document["environment"]
    target = _fit_target(section.get("target"), environment, data)
    editing.put_setting(document, "environment", "target", target)
    own = stories_of(document)
    said = section.get("scenarios")
    everything = [one.name for one in environment.scenarios]
    wanted = everything if said is None and not own else [str(name) for name in said or ()]
    usable = set(_usable(environment, data, target))
    kept = [name for name in wanted if name in usable or name in own]
    if said is not None or kept != wanted:
        set_scenarios(document, kept)


def _fit_target(said: Any, environment: Environment, data: Microdata) -> str | None:
    """Keep the target where it is there; of several take the one with most of the columns."""
    names = [one.name for one in environment.targets]
    if said in names:
        return str(said)
    if len(names) < 2:
        return None
    have = set(data.names)
    alike = {t.name: sum(f.name in have for f in t.fields) for t in environment.targets}
    return max(names, key=lambda name: (name == data.name, alike[name]))


def _usable(environment: Environment, data: Microdata, target: str | None) -> Iterator[str]:
    """Yield the scenarios whose key can be derived for the file."""
    if not environment.targets:
        return
    try:
        graph = CodingGraph.of(environment)
    except InputError:
        return
    for one in environment.scenarios:
        try:
            scenario_key(graph, one, data, target)
        except InputError:
            continue
        yield one.name
