"""A store of an environment: read it, write what changed, see who changed what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from keyhole.environment.kinds import KIND_OF
from keyhole.environment.model import Environment
from keyhole.environment.plain import encode_thing
from keyhole.environment.soundness import plain_form, unfit_names, use_problems
from keyhole.environment.store.failures import told
from keyhole.environment.store.places import Place
from keyhole.environment.store.reading import read_history, read_snapshot
from keyhole.environment.store.snapshots import Change, Difference, Snapshot, differences
from keyhole.environment.store.versions import lock, require_current
from keyhole.environment.store.writing import Forms, write_differences
from keyhole.environment.wording import require_none
from keyhole.errors import InputError, OptionError


class Store:
    """A data environment that is kept, with its history; `open_store` gives one.

    Attributes
    ----------
    place
        Where it is, without a password.
    created
        Whether it was made when it was opened.
    """

    __slots__ = ("_engine", "_place", "_timeout", "_writing", "created", "place")

    def __init__(
        self,
        place: Place,
        engine: sa.Engine,
        *,
        writing: bool,
        timeout: float,
        created: bool = False,
    ) -> None:
        self._place, self._engine = place, engine
        self._writing, self._timeout = writing, timeout
        self.place, self.created = place.identity, created

    def __repr__(self) -> str:
        return f"Store({self._place})"

    def read(self) -> Snapshot:
        """Read the whole environment as it is at one moment."""
        with told(self._place, self._timeout), self.reading() as connection:
            require_current(connection, self._place)
            return read_snapshot(connection, self.place)

    def write(
        self, snapshot: Snapshot, environment: Environment, *, who: str, note: str = ""
    ) -> Snapshot:
        """Write what differs between a snapshot and an environment made from it.

        Everything is written, or nothing. What others changed since the snapshot stays, and is
        in the snapshot that is returned. If somebody else changed one of the same things, to
        something else, nothing is written.

        Parameters
        ----------
        snapshot
            What was read from this store.
        environment
            What the store is to hold.
        who
            Who changes it, for the history.
        note
            Why, for the history.

        Returns
        -------
        Snapshot
            What the store holds now.

        Raises
        ------
        ConflictError
            Somebody else changed the same things; who and when is told.
        InputError
            The environment does not hang together; all its problems.
        """
        self._check(snapshot, who, note)
        require_none(unfit_names(environment))
        wanted = differences(snapshot.environment, environment)
        if not wanted:
            return snapshot
        forms = _forms(wanted)
        require_none(use_problems(environment))
        with told(self._place, self._timeout), self.alone() as connection:
            lock(connection)
            require_current(connection, self._place)
            return write_differences(connection, snapshot, wanted, forms, (who, note))

    def history(self, kind: str | None = None, name: str | None = None) -> list[Change]:
        """Tell who changed what when, the oldest first; of one kind, of one name."""
        if kind is not None and kind not in KIND_OF:
            raise OptionError(f"kind must be one of {', '.join(KIND_OF)}. Got {kind!r} instead.")
        if name is not None and not _clean(name):
            return []
        with told(self._place, self._timeout), self.reading() as connection:
            require_current(connection, self._place)
            return read_history(connection, kind, name)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection that sees one moment."""
        options: dict[str, Any] = {}
        if self._engine.dialect.name == "postgresql":
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._engine.connect() as connection:
            connection = connection.execution_options(**options)
            with connection.begin():
                yield connection

    @contextmanager
    def alone(self) -> Iterator[sa.Connection]:
        """Give a connection that writes everything, or nothing."""
        with self._engine.connect() as connection:
            connection = connection.execution_options(alone=True)
            with connection.begin():
                yield connection

    def _check(self, snapshot: Snapshot, who: str, note: str) -> None:
        problems = []
        if not self._writing:
            problems.append(f"{self._place} was opened for reading only. Open it for writing.")
        if snapshot.place != self.place:
            problems.append(
                f"snapshot must be of the store {self._place}. Got one of another store: read "
                f"this one, and write the environment against that."
            )
        for words, text, least in (("who", who, 1), ("note", note, 0)):
            if not isinstance(text, str) or len(text.strip()) < least or not _clean(text):
                problems.append(f"{words} must be text without NUL{', and not empty' * least}.")
        require_none(problems)


def _clean(text: str) -> bool:
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


def _forms(wanted: list[Difference]) -> Forms:
    """Give the plain forms of what differs, or say what cannot be kept."""
    problems: list[str] = []
    forms = {}
    for one in wanted:
        kind = KIND_OF[one.key[0]]
        before = None if one.before is None else encode_thing(one.before, [])
        after = None if one.after is None else plain_form(kind, one.after, problems)
        forms[one.key] = before, after
    require_none(problems, InputError)
    return forms
