"""Opening a store: what is not one, other versions, locks, and passwords that stay unseen."""

import math
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
from keyhole.environment.model import (
    CapturedQuestion,
    Category,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
    Organisation,
    Target,
)
from keyhole.environment.store import open_store, tables, versions
from keyhole.environment.store.places import APPLICATION, place_of_store
from keyhole.errors import FileError, InputError, KeyholeError, OptionError, RunError

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
    execute(place, f"UPDATE {versions.TABLE} SET version_num = '0931'")
    before = None if place.startswith("postgresql") else Path(place).read_bytes()
    message = r"version '0931', which a newer keyhole made; this one knows versions up to 0002"
    for options in ({}, {"create": True}, {"writing": False}):
        with pytest.raises(FileError, match=message):
            open_store(place, **options)
    with pytest.raises(FileError, match=message):
        store.read()
    with pytest.raises(FileError, match=message):
        store.write(first, Environment(), who="bob")
    assert before is None or Path(place).read_bytes() == before
    execute(place, f"UPDATE {versions.TABLE} SET version_num = '0002'")
    assert open_store(place).read() == first


SECOND = '''
"""Colours."""
import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade():
    op.create_table("colours", sa.Column("name", sa.Text))
    op.execute("UPDATE organisations SET sector = 'public'")
    {more}
'''


@pytest.fixture
def newer(tmp_path, monkeypatch):
    """A keyhole with one version more."""

    def make(more=""):
        folder = tmp_path / "migrations"
        shutil.copytree(versions.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "versions" / "v0003_colours.py").write_text(SECOND.format(more=more))
        monkeypatch.setattr(versions, "FOLDER", folder)
        monkeypatch.setattr(versions, "VERSIONS", ("0001", "0002", "0003"))

    return make


def test_an_older_store_is_brought_up_when_opened_for_writing(place, newer):
    old, first = filled(place)
    newer()
    with pytest.raises(FileError, match="is a store of version 0002, and this keyhole reads 0003"):
        open_store(place, writing=False)
    store = open_store(place)
    assert not store.created
    assert store.read().environment.organisations == (Organisation("Registry", "public"),)
    assert store.read().versions == first.versions
    with store.reading() as connection:
        assert "colours" in sa.inspect(connection).get_table_names()
        assert versions.stored_version(connection) == "0003"
    assert old.read() == open_store(place).read()


def test_a_migration_that_fails_leaves_the_old_version(place, newer, monkeypatch):
    store, first = filled(place)
    with monkeypatch.context():
        newer("raise KeyboardInterrupt")
        with pytest.raises(KeyboardInterrupt):
            open_store(place)
    monkeypatch.undo()
    with store.reading() as connection:
        assert "colours" not in sa.inspect(connection).get_table_names()
    assert store.read() == first


def test_a_store_without_questions_gets_them(place, monkeypatch):
    """The first stores kept nothing of what an unplaced field asked."""
    with monkeypatch.context() as patch:
        patch.setattr(versions, "VERSIONS", ("0001",))
        assert open_store(place, create=True).created
    store = open_store(place)
    snapshot = store.read()
    span = Intervals("number", edges=(0.0, 18.0, math.inf))
    asked = CapturedQuestion(
        (Category("1", "Yes"), Category("9", "Refused", "not stated")), span, "a/b"
    )
    form = Form("Claim", fields=(Field("x"), Field("y", question=asked), Field("z", "Z")))
    target = Target("t", fields=(Field("a", question=CapturedQuestion(universe="adults")),))
    whole = replace(snapshot.environment, forms=(form,), targets=(target,))
    store.write(snapshot, whole, who="ann")
    assert open_store(place).read().environment == whole


def test_the_migrations_make_the_tables_of_the_program(place):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    store = open_store(place, create=True)
    options = {"version_table": versions.TABLE, "compare_type": True}
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, tables.metadata) == []


def test_the_versions_are_those_of_the_scripts():
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(versions.FOLDER))
    assert [one.revision for one in scripts.walk_revisions()][::-1] == list(versions.VERSIONS)


def test_foreign_keys_are_on(place):
    store, _ = filled(place)
    part = sa.insert(tables.classifications).values((99, 0, "a", "b"))
    with pytest.raises(sa.exc.IntegrityError), store.alone() as connection:
        connection.execute(part)
    with store.alone() as connection:
        connection.execute(sa.insert(tables.entities).values((99, "coding", "A", 1)))
    row = (99, "A", "no construct", "", "", None, None, None, None, None)
    with pytest.raises(sa.exc.IntegrityError), store.alone() as connection:
        connection.execute(sa.insert(tables.codings).values(row))


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


def test_a_damaged_store_says_so(place):
    filled(place)
    execute(place, "DROP TABLE interval_edges")
    with pytest.raises(FileError, match="is damaged"):
        open_store(place).read()


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
    table = b"tablemap_pairsmap_pairs"
    assert table in content
    changed = content.replace(table, b"table\xff\xfe" + table[7:])
    Path(place).write_bytes(changed.replace(b"CREATE TABLE map_pairs", b"CREATE TABLX map_pairs"))
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
    code = "import sys, keyhole.environment.store; print('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_opening_a_store_does_not_load_the_migrations(new_place):
    place = new_place("sqlite")
    filled(place)
    code = (
        "import sys; from keyhole.environment.store import open_store; "
        "open_store(sys.argv[1]).read(); print('alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", code, place]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
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
    assert run(["environment", "export", "--store", str(copy / place.name), str(exported)]) == 0
    assert read_environment(exported) == written
    shutil.rmtree(copy)
    reader = open_store(place, writing=False)
    assert reader.read().environment == written
    assert [path.name for path in tmp_path.iterdir()] == ["environment.db"]
    with pytest.raises(InputError, match="reading only"):
        reader.write(reader.read(), replace(written, constructs=()), who="ann")
