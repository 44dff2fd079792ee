"""Settings of the whole suite, and what many of its files share."""

import gc
import os
import shutil
import sys
import tempfile
import uuid
import warnings

import pytest
from hypothesis import HealthCheck, settings

# The first call of a kernel may compile it: no deadlines.
settings.register_profile(
    "keyhole", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60
)
settings.load_profile("keyhole")

# Nothing of what is imported to be tested is ever let go of: there is nothing to collect in it.
gc.disable()

# The files that take longest are begun first, so that all workers are busy to the end.
LONGEST = [
    "spark", "workbench_browser", "docs", "goldens", "shown_commands", "workbench_hostile",
    "reviews", "reviews_release", "reviews_synthesis", "study_linking", "study_attacks",
    "workbench_protect", "workbench_core", "workbench_safety", "reviews_attacking", "killed",
    "synthesis_evaluation", "reviews_hidden_counts", "reviews_protection", "reviews_dossier",
]  # fmt: skip


def pytest_addoption(parser):
    """Take the options of the goldens."""
    parser.addoption("--record-goldens", action="store_true", help="store each verb's JSON anew")
    parser.addoption("--golden-words", action="store_true", help="compare the wording of notes too")


def pytest_collection_modifyitems(items):
    """Begin with what takes longest."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(work_unit(item.nodeid), len(ranks)))


def pytest_collection_finish():
    """Collect garbage from here on, of what tests make."""
    gc.freeze()
    gc.enable()


def work_unit(nodeid):
    """Return the file that a test is in; all that Spark is needed for counts as one."""
    file = nodeid.split("::")[0]
    return "spark" if "spark" in nodeid.lower() else file.removeprefix("tests/test_")[: -len(".py")]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each file to one worker, so that what its tests share is made once; and so Spark."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return work_unit(nodeid)

    config.option.loadscopereorder = False  # they come in the order of our own
    return ByFile(config, log) if config.option.dist == "load" else None


@pytest.fixture(scope="session", autouse=True)
def _readers_are_forked():
    """Fork the processes that files are read in, instead of starting an interpreter for each."""
    from tests.forking import fork_readers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyhole.core.apart.subprocess", fork_readers())
        yield


@pytest.fixture(scope="session")
def postgres():
    """The URL of a PostgreSQL server: KEYHOLE_TEST_POSTGRES, or one that is started for us."""
    given = os.environ.get("KEYHOLE_TEST_POSTGRES")
    if given:
        yield given
        return
    import psycopg

    # A path short enough for a socket, where the server's own user may go.
    folder = tempfile.mkdtemp(prefix="keyhole-", dir="/tmp")
    os.chmod(folder, 0o755)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("XDG_RUNTIME_DIR", folder)
        pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL to test on")
        server = pgserver.get_server(f"{folder}/data", cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):  # nothing is kept
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def new_place(request, tmp_path):
    """Give a place for a store where nothing is yet: a file, or a schema of PostgreSQL."""

    def make(kind):
        name = f"t{uuid.uuid4().hex}"
        if kind == "sqlite":
            return str(tmp_path / f"{name}.db")
        import psycopg

        url = request.getfixturevalue("postgres")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"

    return make


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, new_place):
    """A place for a store, once of each kind."""
    return new_place(request.param)


@pytest.fixture
def plain_charts(monkeypatch):
    """Draw nothing in reviews: charts take most of the time, and few tests are about them."""
    from tests.reviews import plain_pictures

    monkeypatch.setattr("keyhole.reviews.runner._pictures", plain_pictures)


@pytest.fixture
def built_charts(request, monkeypatch):
    """Build the charts of reviews after all, but draw none of them."""
    from tests.reviews import built_pictures, draw_plainly

    request.getfixturevalue("plain_charts")  # whose stand-in is replaced here
    monkeypatch.setattr("keyhole.reviews.runner._pictures", built_pictures)
    monkeypatch.setattr("keyhole.reviews.runner._save", lambda _, path: draw_plainly(path))


@pytest.fixture(scope="session")
def sample():
    """The bytes of a small file of veterans, as CSV."""
    from keyhole.data.examples import veterans_sample

    with tempfile.TemporaryDirectory() as folder:
        path = veterans_sample(600).save(f"{folder}/veterans.csv")
        return path.read_bytes()


@pytest.fixture(scope="session")
def spark():
    """A Spark session on two threads that gives a failed task a second try."""
    from keyhole.spark.session import open_session

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Small queries take longer to be compiled than to run.
        java = "--driver-memory 1g --driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'"
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{java} pyspark-shell")
        session = open_session("local[2,2]")
    session.conf.set("spark.sql.shuffle.partitions", "4")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_job_goes_on():
    """Stop the jobs that a test of the workbench started and did not wait for."""
    yield
    workbench = sys.modules.get("tests.workbench")
    if workbench is not None:
        workbench.stop_jobs()
