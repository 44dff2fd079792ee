"""Opening a store: what is not one, other versions, locks, and passwords that stay unseen."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from keyhole.cli.main import run
from keyhole.environment.exchange import read_environment
from keyhole.environment.model import Coding, Construct, Environment, Organisation
from keyhole.environment.store import APPLICATION, history, metadata, open_store, place_of_store
from keyhole.errors import ConflictError, FileError, InputError, KeyholeError, OptionError, RunError

WORLD = Environment(
    constructs=(Construct("SX", "sex"),), organisations=(Organisation("Registry", "health"),)
)


def filled(place, **options):
    store = open_store(place, create=True, **options)
    return store, store.write(store.read(), WORLD, who="ann")


def execute(place, statement):
    """Do something to a store behind its back."""
    if place.startswith("postgresql"):
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(statement)
    else:
        with closing(sqlite3.connect(place)) as connection, connection:
            connection.execute(statement)


@contextmanager
def locked(place):
    if place.startswith("postgresql"):
        statement = (
            f"SELECT pg_advisory_xact_lock({APPLICATION}, hashtext(coalesce(current_schema(), '')))"
        )
        with psycopg.connect(place) as connection:
            connection.execute(statement)
            yield
    else:
        with closing(sqlite3.connect(place, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield


def test_a_locked_store_says_so(place):
    _, first = filled(place)
    store = open_store(place, timeout=0.2)
    with locked(place), pytest.raises(RunError, match=r"in use by another process.* 0\.2 seconds"):
        store.write(first, Environment(), who="bob")
    assert store.read() == first
    store.write(first, Environment(), who="bob")


def test_a_locked_file_says_so_to_readers_too(new_place):
    place = new_place("sqlite")
    store, _ = filled(place, timeout=0.2)
    with locked(place):
        with pytest.raises(RunError, match="in use by another process"):
            store.read()
        with pytest.raises(RunError, match="in use by another process"):
            open_store(place, timeout=0.2)


def test_a_reader_waits_no_longer_than_the_writer_writes(new_place):
    place = new_place("postgresql")
    store, first = filled(place, timeout=0.2)
    with locked(place):
        assert store.read() == first


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(place):
    store, first = filled(place)
    execute(place, "UPDATE keyhole_store_version SET version_num = '0931'")
    before = None if place.startswith("postgresql") else Path(place).read_bytes()
    message = r"version '0931', which a newer keyhole made; this one knows versions up to 0003"
    for options in ({}, {"create": True}, {"writing": False}):
        with pytest.raises(FileError, match=message):
            open_store(place, **options)
    with pytest.raises(FileError, match=message):
        store.read()
    with pytest.raises(FileError, match=message):
        store.write(first, Environment(), who="bob")
    assert before is None or Path(place).read_bytes() == before
    execute(place, "UPDATE keyhole_store_version SET version_num = '0003'")
    assert open_store(place).read() == first


# The tables of versions 0001 and 0002 that matter: the history, and the attributes in columns.
OLD = """
CREATE TABLE keyhole_store_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
CREATE TABLE changes (number INTEGER NOT NULL PRIMARY KEY, at TIMESTAMPTZ NOT NULL,
  who TEXT NOT NULL, note TEXT NOT NULL);
CREATE TABLE entities (id INTEGER NOT NULL PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,
  version INTEGER NOT NULL REFERENCES changes (number),
  CONSTRAINT one_of_a_name UNIQUE (kind, name));
CREATE TABLE history (change INTEGER NOT NULL REFERENCES changes (number),
  position INTEGER NOT NULL, action TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  before TEXT, after TEXT, PRIMARY KEY (change, position));
CREATE INDEX history_of_a_name ON history (kind, name);
CREATE TABLE constructs (entity INTEGER NOT NULL PRIMARY KEY
  REFERENCES entities (id) ON DELETE CASCADE, letters TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL, description TEXT NOT NULL);
CREATE TABLE codings (entity INTEGER NOT NULL PRIMARY KEY
  REFERENCES entities (id) ON DELETE CASCADE, name TEXT NOT NULL, construct TEXT NOT NULL
  REFERENCES constructs (letters) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO keyhole_store_version VALUES ('0002');
INSERT INTO changes VALUES (1, '2026-03-01 12:00:00.000000', 'ann', 'init');
INSERT INTO changes VALUES (2, '2026-03-02 12:00:00.000000', 'bob', '');
INSERT INTO entities VALUES (1, 'construct', 'SX', 2);
INSERT INTO entities VALUES (2, 'coding', 'SX0.001', 1);
INSERT INTO constructs VALUES (1, 'SX', 'sex', '');
INSERT INTO codings VALUES (2, 'SX0.001', 'SX');
INSERT INTO history VALUES (1, 0, 'added', 'construct', 'SX', NULL,
  '{"letters":"SX","name":"gender"}');
INSERT INTO history VALUES (1, 1, 'added', 'coding', 'SX0.001', NULL,
  '{"name":"SX0.001","construct":"SX"}');
INSERT INTO history VALUES (1, 2, 'added', 'form', 'Claim', NULL, '{"name":"Claim"}');
INSERT INTO history VALUES (2, 0, 'changed', 'construct', 'SX',
  '{"letters":"SX","name":"gender"}', '{"letters":"SX","name":"sex"}');
INSERT INTO history VALUES (2, 1, 'removed', 'form', 'Claim', '{"name":"Claim"}', NULL)
"""
HELD_OF_OLD = Environment((Construct("SX", "sex"),), (Coding("SX0.001", "SX"),))


@pytest.fixture
def old(place):
    """The place of a store that an earlier keyhole made."""
    for statement in OLD.split(";\n"):
        execute(place, statement)
    if not place.startswith("postgresql"):
        execute(place, f"PRAGMA application_id = {APPLICATION}")
    return place


def tables(place):
    with open_store(place, writing=False).reading() as connection:
        return set(sa.inspect(connection).get_table_names())


@pytest.mark.parametrize("version", ["0001", "0002"])
def test_an_older_store_is_read_as_it_is_and_brought_up_when_opened_for_writing(old, version):
    execute(old, f"UPDATE keyhole_store_version SET version_num = '{version}'")
    before = open_store(old, writing=False)
    first, told = before.read(), before.history()
    assert first.environment == HELD_OF_OLD
    assert first.versions == {("construct", "SX"): 2, ("coding", "SX0.001"): 1}
    assert [(c.number, c.who, c.action, c.name) for c in told][2:] == [
        *((1, "ann", "added", "Claim"), (2, "bob", "changed", "SX"), (2, "bob", "removed", "Claim"))
    ]
    assert "codings" in tables(old)
    store = open_store(old)
    assert not store.created
    assert (store.read(), store.history()) == (first, told)
    assert tables(old) == set(metadata.tables)
    store.write(first, Environment(), who="bob")
    assert before.read() == open_store(old).read()
    assert before.read().environment == Environment()


def test_a_migration_that_fails_leaves_the_old_version(old, monkeypatch):
    first = open_store(old, writing=False).read()
    with monkeypatch.context() as patch:
        patch.setattr("keyhole.environment.store.sa.update", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            open_store(old)
    assert {"entities", "constructs", "codings"} < tables(old)
    assert open_store(old).read() == first


def test_an_older_store_whose_history_is_not_whole_is_left_as_it_is(old):
    execute(old, "DELETE FROM history WHERE name = 'SX0.001'")
    with pytest.raises(FileError, match="is damaged"):
        open_store(old)
    assert "codings" in tables(old)


def test_tables_of_others_beside_an_older_store_stay(old):
    execute(old, "CREATE TABLE colours (name TEXT)")
    open_store(old)
    assert tables(old) == {*metadata.tables, "colours"}


def test_foreign_keys_are_on(place):
    store, _ = filled(place)
    row = (99, 0, "added", "form", "A", None, "{}")
    with pytest.raises(ConflictError), store.alone() as connection:
        connection.execute(sa.insert(history).values(row))


def another(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE forms (name TEXT)")


def text(path):
    path.write_text("name,age\nann,3\n")


def cut(path):
    filled(str(path))
    path.write_bytes(path.read_bytes()[:60])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (text, "must be a store of keyhole. It holds something else and was left as it is"),
        (another, "another program's SQLite database and was left as it is"),
        (cut, "another program's SQLite database|holds something else"),
        (Path.mkdir, "must be a file. Got a folder instead"),
        (os.mkfifo, "must be a file. Got a pipe"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"create": True}, {"writing": False}])
def test_what_is_not_a_store_is_refused_and_left_as_it_is(tmp_path, make, message, options):
    path = tmp_path / "some file?.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(FileError, match=message):
        open_store(path, **options)
    assert before is None or path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["some file?.db"]


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE history",
        "UPDATE history SET after = 'no json'",
        "UPDATE history SET after = '[]'",
        "UPDATE history SET after = replace(after, 'name', 'mane')",
        "UPDATE history SET kind = 'colour'",
        "DELETE FROM keyhole_store_version",
    ],
)
def test_a_damaged_store_says_so(place, statement):
    filled(place)
    execute(place, statement)
    with pytest.raises(FileError, match="is damaged"):
        open_store(place).read()


def test_a_damaged_history_says_so(place):
    filled(place)
    execute(place, "UPDATE history SET after = 'no json'")
    with pytest.raises(FileError, match="is damaged"):
        open_store(place).history()


@pytest.mark.parametrize(
    "statement",
    ["UPDATE changes SET at = -1", "UPDATE changes SET at = 'yesterday'",
     "UPDATE changes SET who = CAST(x'ff' AS TEXT)"],
)  # fmt: skip
def test_a_history_that_holds_other_values_says_so(new_place, statement):
    place = new_place("sqlite")
    filled(place)
    execute(place, statement)
    with pytest.raises(FileError, match="is damaged"):
        open_store(place).history()


def test_pages_that_are_damaged_say_so(new_place):
    place = new_place("sqlite")
    filled(place)
    content = Path(place).read_bytes()
    Path(place).write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(FileError, match="is damaged"):
        open_store(place).read()


def test_a_store_whose_words_are_damaged_says_so(new_place):
    place = new_place("sqlite")
    filled(place)
    content = Path(place).read_bytes()
    # The message of the database quotes a name, which is no text.
    table = b"tablehistoryhistory"
    assert table in content
    changed = content.replace(table, b"table\xff\xfe" + table[7:])
    Path(place).write_bytes(changed.replace(b"CREATE TABLE history", b"CREATE TABLX history"))
    with pytest.raises(FileError, match="is damaged"):
        open_store(place).read()


def test_a_schema_with_other_tables_is_refused_and_left_as_it_is(new_place):
    place = new_place("postgresql")
    execute(place, "CREATE TABLE forms (name text)")
    with pytest.raises(FileError, match="holds tables of something else and was left as it is"):
        open_store(place, create=True)
    with psycopg.connect(place) as connection:
        found = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        ).fetchall()
    assert found == [("forms",)]


def test_a_schema_that_is_not_there_is_told(new_place):
    place = new_place("postgresql")
    with pytest.raises(FileError, match="has no schema to write in"):
        open_store(f"{place}none", create=True)


def test_a_snapshot_of_another_schema_is_refused(new_place):
    _, first = filled(new_place("postgresql"))
    with pytest.raises(InputError, match="Got one of another store"):
        open_store(new_place("postgresql"), create=True).write(first, Environment(), who="ann")


def test_nothing_is_made_unless_asked_for(place):
    for options in ({}, {"writing": False}):
        with pytest.raises(FileError, match="keyhole environment init"):
            open_store(place, **options)
    if not place.startswith("postgresql"):
        assert not Path(place).exists()
        Path(place).touch()
        with pytest.raises(FileError, match="holds nothing"):
            open_store(place)
    assert open_store(place, create=True).created


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(FileError, match=r"the folder .* does not exist"):
        open_store(tmp_path / "none" / "environment.db", create=True)
    with pytest.raises(FileError, match="cannot be opened"):
        open_store("/proc/environment.db", create=True)
    with pytest.raises(FileError, match="cannot be read"):
        open_store(tmp_path / ("x" * 300))


def test_a_store_that_goes_away_is_not_made_anew(new_place):
    place = new_place("sqlite")
    store, first = filled(place)
    Path(place).unlink()
    for attempt in (store.read, lambda: store.write(first, Environment(), who="ann")):
        with pytest.raises(FileError, match="cannot be opened"):
            attempt()
    assert not Path(place).exists()


def test_a_store_that_may_only_be_read_is_read(new_place):
    place = new_place("postgresql")
    store, first = filled(place)
    reader = open_store(place, writing=False)
    reader._writing = True  # as if nobody looked: the server still refuses
    with pytest.raises(FileError, match="may only be read"):
        reader.write(first, Environment(), who="bob")
    assert store.read() == first


def test_paths_and_urls_lead_to_the_same_file(tmp_path, monkeypatch):
    path = tmp_path / "a folder%20#" / "environment é?.db"
    path.parent.mkdir()
    _, first = filled(str(path))
    assert open_store(path).read() == first
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    plain = tmp_path / "plain.db"
    _, second = filled(f"sqlite:///{plain}")
    monkeypatch.chdir(tmp_path)
    near = open_store("plain.db")
    monkeypatch.chdir("/")
    assert near.read() == second
    near.write(second, Environment(), who="ann")


@pytest.mark.parametrize(
    "place",
    [
        "mysql://ann:hush@host/db",
        "postgresql+psycopg2://ann:hush@host/db",
        "postgresql://ann:hu@hush@host/db",
        "postgresql://ann:hush@host:hush/db",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///a.db?password=hush",
        "://hush",
        "",
        "a\0b",
        b"environment.db",
    ],
)
def test_a_place_that_is_none_is_refused(place):
    with pytest.raises(OptionError) as caught:
        open_store(place, create=True)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hush@127.0.0.1:9/db",
        "postgres://ann:hush@no.such.host.invalid/db",
        "postgresql:///db?host=/nowhere&password=hush&user=ann",
    ],
)
def test_a_server_that_cannot_be_reached_is_told_without_the_password(url):
    with pytest.raises(RunError, match="cannot be reached: ") as caught:
        open_store(url, timeout=1)
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(caught.value)
    assert "hush" not in str(place_of_store(url))


@pytest.mark.parametrize(
    "option",
    ["nosuch=1", "connect_timeout=abc", "sslmode=maybe", "port=abc", "options=-c%20nosuch%3D1",
     "options=-c%20statement_timeout%3Dabc", "client_encoding=klingon"],
)  # fmt: skip
def test_an_option_of_a_url_that_is_none_is_told(postgres, option):
    with pytest.raises(OptionError, match=r"Correct what stands behind the \?") as caught:
        open_store(f"{postgres}{'&' if '?' in postgres else '?'}{option}&password=hush")
    assert "hush" not in str(caught.value)


def test_a_password_that_is_wrong_is_not_shown(postgres):
    url = postgres.replace("postgres:@", "nobody:hush@")
    with pytest.raises(RunError, match="no such user") as caught:
        open_store(url)
    assert "hush" not in str(caught.value)


def test_the_store_does_not_show_its_password(new_place):
    place = new_place("postgresql").replace("postgres:@", "postgres:hush@")
    store, first = filled(place)
    assert "hush" not in f"{store!r} {store.place} {first.place}"


def test_options_are_checked(tmp_path):
    with pytest.raises(OptionError, match="timeout must be a number of seconds above 0"):
        open_store(tmp_path / "a.db", timeout=0)
    with pytest.raises(OptionError, match="create must be left out"):
        open_store(tmp_path / "a.db", create=True, writing=False)


def test_every_refusal_is_foreseen():
    assert issubclass(FileError, InputError)
    assert issubclass(RunError, KeyholeError)


def test_nothing_heavy_is_loaded_before_it_is_used():
    code = "import sys, keyhole.environment.exchange; print('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql:/ann:hunter2@host/db",
        "postgresql//ann:hunter2@host/db",
        "POSTGRESQL:ann:hunter2@host/db",
        "ann:hunter2@host/db",
        "postgres://ann:hun@hunter2@host/db",
        "mysql://ann:hunter2@host/db",
        "postgresql://ann:hunter2",
    ],
)
def test_a_place_that_is_half_a_url_never_shows_its_password(text):
    with pytest.raises(OptionError) as caught:
        open_store(text)
    assert "hunter2" not in str(caught.value)


def test_the_scheme_of_a_url_may_have_any_case():
    assert str(place_of_store("PostgreSQL://ann:x@host/db")) == "'postgresql://host/db'"


# Writes until pages of an unfinished transaction are in the file, and dies.
HALFWAY = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("CREATE TABLE lost (text)")
connection.executemany("INSERT INTO lost VALUES (?)", [("x" * 4000,)] * 200)
os._exit(9)
"""


def test_a_store_whose_writer_was_killed_is_read_as_it_was(tmp_path):
    place = tmp_path / "environment.db"
    written = filled(place)[1].environment
    died = subprocess.run([sys.executable, "-c", HALFWAY, str(place)], check=False)
    assert died.returncode == 9
    journal = tmp_path / "environment.db-journal"
    assert journal.stat().st_size > 0, "the journal is hot"
    copy, exported = tmp_path / "copy", tmp_path / "copy" / "environment.json"
    copy.mkdir()
    for file in (place, journal):
        shutil.copy(file, copy)
    asked = ["--store", str(copy / place.name), "--out", str(exported)]
    assert run(["environment", "export", *asked]) == 0
    assert read_environment(exported) == written
    shutil.rmtree(copy)
    reader = open_store(place, writing=False)
    assert reader.read().environment == written
    assert [path.name for path in tmp_path.iterdir()] == ["environment.db"]
    with pytest.raises(InputError, match="reading only"):
        reader.write(reader.read(), replace(written, constructs=()), who="ann")
