"""A store of an environment, the same on SQLite and on PostgreSQL."""

import datetime
import json
import subprocess
import sys
import textwrap
import threading
from dataclasses import fields, replace

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keyhole.environment.model import (
    COLLECTION_METHODS,
    CapturedQuestion,
    Category,
    CategoryMap,
    Coding,
    Construct,
    Environment,
    Field,
    Form,
    Intervals,
    Organisation,
    Overlap,
    Source,
    Target,
)
from keyhole.environment.scenarios.scenarios import PublicStage, RestrictedStage, Scenario
from keyhole.environment.soundness import KINDS, entities, ordered
from keyhole.environment.store import Snapshot, differences, open_store
from keyhole.errors import ConflictError, InputError, OptionError, RunError

DAY = datetime.date(2026, 3, 1)
ES3 = Coding(
    "ES3.001",
    "ES",
    (Category("1", "employed"), Category("2", "not employed"), Category("9", "", "not stated")),
    label="employment status",
    universe="16 and over",
    aliases=("CS3.01",),
)
ES2 = Coding("ES2.101", "ES", (Category("a", "yes"), Category("b", "no")))
AGE = Coding(
    "AG4.001",
    "AG",
    (Category("x", "refused", "not stated"),),
    Intervals("number", (0, 18, 65.5, float("inf"))),
)
BORN = Coding("AG0.002", "AG", (), Intervals("date", start=700000, stop=730000, unit="month"))
ASKED = CapturedQuestion(
    (Category("1", "Yes"), Category("9", "Refused", "not stated")),
    Intervals("number", (0.0, 18.0, float("inf"))),
    *("a/b", "adults", "YN2.001"),
)
WORLD = Environment(
    constructs=(Construct("AG", "age"), Construct("ES", "employment status", "main activity")),
    codings=(BORN, AGE, ES2, ES3),
    maps=(
        CategoryMap("ES3.001", "ES2.101", {"1": "a", "2": "b", "9": "b"}),
        CategoryMap("CS3.01", "ES2.101"),
    ),
    overlaps=(Overlap("AG4.001", "ES2.101", frozenset({("x", "a"), ("x", "b")})),),
    organisations=(Organisation("Agency", "health"), Organisation("Registry")),
    forms=(
        Form(
            "Claim",
            "Agency",
            "health",
            "benefits",
            "may be shared",
            "web searching",
            DAY,
            "site:agency",
            "2020 to 2026",
            "veterans",
            {"country": "US", "level": "federal"},
            (
                Field("status", "What do you do?", "CS3.01"),
                Field("born", coding="AG0.002", use="identifying"),
                Field("ssn", identifier="ssn", use="identifying"),
                Field("note"),
                Field("asked", question=ASKED),
            ),
        ),
        Form("Empty"),
    ),
    sources=(
        Source(
            *("Register", "informal", "observed", "voluntary", "all", 4, 3, 2, DAY),
            (Field("age", coding="AG4.001"),),
            *("web searching", "Free to use.", "a name, a town", "2026", "veterans"),
        ),
    ),
    targets=(Target("acs", DAY, (Field("ESR", coding="ES3.001", use="sensitive"),)),),
    scenarios=(
        Scenario(
            "a rival",
            *("A rival's database", *(f"point {i}" for i in range(1, 12))),
            restricted=(
                RestrictedStage(form="Claim"),
                RestrictedStage("", "health", "benefits", {"country": "US"}, 0.25),
                RestrictedStage(classifications={"country": "US", "level": "federal"}),
            ),
            public=PublicStage(7, ("observed", "secondary")),
            columns={"ESR": "ES2.101", "AGEP": ""},
            p_attempt=(0.125, 0.5),
            coverage=(0.5, 0.75),
            divergence=(0.125, 0.25),
            reasons=("few know of it", "it is forbidden"),
            example=True,
        ),
        Scenario("b", columns={"ESR": ""}),
    ),
)
AWKWARD = (
    *("it's", 'say "x"', "<b>bold</b>", "=1+1", "50%", "%(x)s", ":x", "a\nb", "😀 é ﷽", "\x1b[2J"),
    *("'); DROP TABLE forms; --", "\u202eabc", "null", "None", " space ", "x" * 400, "\\", "{}"),
)


def filled(place, environment=WORLD, **options):
    store = open_store(place, create=True, **options)
    return store, store.write(store.read(), environment, who="ann")


def with_label(environment, label):
    codings = tuple(
        replace(c, label=label) if c.name == "ES3.001" else c for c in environment.codings
    )
    return replace(environment, codings=codings)


def test_everything_an_environment_holds_comes_back(place):
    store, written = filled(place)
    again = open_store(place).read()
    assert again.environment == ordered(WORLD)
    assert again == written
    assert again.versions == dict.fromkeys(entities(WORLD), 1)
    assert store.created
    assert not open_store(place, create=True).created


def test_every_attribute_of_the_example_is_told_apart_from_its_default():
    # Else the test above could not see a column that is forgotten.
    for kind in KINDS:
        for field in fields(kind.type):
            values = [getattr(one, field.name) for one in kind.of(WORLD)]
            assert any(value != field.default and value != {} for value in values), field.name


def test_every_part_of_an_environment_is_a_kind_of_thing():
    assert [kind.attribute for kind in KINDS] == [field.name for field in fields(Environment)]


def test_a_thing_is_a_document(place):
    store, _ = filled(place)
    with store.reading() as connection:
        (text,) = connection.exec_driver_sql(
            "SELECT after FROM history WHERE kind = 'coding' AND name = 'ES2.101'"
        ).one()
    assert json.loads(text) == {
        "name": "ES2.101",
        "construct": "ES",
        "categories": [{"code": "a", "label": "yes"}, {"code": "b", "label": "no"}],
    }


texts = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
)
names = texts.filter(lambda text: text.strip() and " → " not in text and " ~ " not in text)
days = st.none() | st.dates()
numbers = st.floats(allow_nan=False)
categories = st.builds(
    Category, texts, texts, st.sampled_from(["value", "other", "not stated", "not applicable"])
)
intervals = st.builds(
    Intervals,
    st.sampled_from(["number", "date"]),
    st.lists(numbers, max_size=3).map(tuple),
    *[numbers] * 3,
    st.sampled_from([None, "day", "month", "year"]),
)


@st.composite
def environments(draw):
    letters = draw(st.lists(names.filter(lambda n: len(n) <= 240), max_size=3, unique=True))
    known = draw(st.lists(names.filter(lambda n: len(n) <= 200), max_size=6, unique=True))
    known = known if letters else []
    codings = [
        Coding(
            name,
            draw(st.sampled_from(letters)),
            tuple(draw(st.lists(categories, max_size=3))),
            draw(st.none() | intervals),
            draw(texts),
            draw(texts),
            (f"{name} too",) if f"{name} too" not in known and draw(st.booleans()) else (),
        )
        for name in known
    ]
    called = st.sampled_from([n for c in codings for n in (c.name, *c.aliases)] or [None])
    asked = st.builds(
        Field,
        texts,
        texts,
        st.none() | called,
        st.none() | texts,
        st.sampled_from(["identifying", "matching", "sensitive"]),
    )
    asks = st.lists(asked, max_size=3).map(tuple)
    pairs = draw(st.lists(st.tuples(called, called), max_size=3, unique=True)) if codings else []
    return Environment(
        tuple(Construct(one, draw(texts), draw(texts)) for one in letters),
        tuple(codings),
        tuple(
            CategoryMap(a, b, draw(st.none() | st.dictionaries(texts, texts, max_size=3)))
            for a, b in pairs
        ),
        tuple(
            Overlap(a, b, frozenset(draw(st.lists(st.tuples(texts, texts), max_size=3))))
            for a, b in pairs
        ),
        tuple(Organisation(n, draw(texts)) for n in draw(st.lists(names, max_size=2, unique=True))),
        tuple(
            Form(
                name,
                *(draw(texts) for _ in range(4)),
                draw(st.sampled_from(COLLECTION_METHODS)),
                draw(days),
                *(draw(texts) for _ in range(3)),
                draw(st.dictionaries(texts, texts, max_size=2)),
                draw(asks),
            )
            for name in draw(st.lists(names, max_size=3, unique=True))
        ),
        tuple(
            Source(name, coverage=draw(texts), cost=draw(st.integers(1, 3)), fields=draw(asks))
            for name in draw(st.lists(names, max_size=2, unique=True))
        ),
        tuple(
            Target(name, draw(days), draw(asks))
            for name in draw(st.lists(names, max_size=2, unique=True))
        ),
    )


def test_any_environment_can_follow_any_other(place):
    # One store for all examples: each is written over what the one before left.
    store = open_store(place, create=True)

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(environments())
    def check(environment):
        before = store.read()
        actions = {(True, False): "added", (False, True): "removed", (False, False): "changed"}
        told = {
            (key, actions[old is None, new is None])
            for key, (old, new) in differences(before.environment, environment).items()
        }
        written = store.write(before, environment, who="ann", note="again")
        after = store.read()
        assert after.environment == ordered(environment)
        assert after == written
        new = [change for change in store.history() if change.number > before.number]
        assert {((change.kind, change.name), change.action) for change in new} == told

    check()


def test_two_people_who_change_different_things_both_succeed(place):
    store, first = filled(place)
    other = open_store(place)
    seen = other.read()
    mine = store.write(first, with_label(first.environment, "work"), who="ann")
    more = (*seen.environment.organisations, Organisation("Bureau"))
    theirs = other.write(seen, replace(seen.environment, organisations=more), who="bob")
    assert mine.environment.codings != seen.environment.codings
    assert theirs.environment.codings == mine.environment.codings
    assert (
        theirs.environment.organisations == ordered(Environment(organisations=more)).organisations
    )
    assert store.read() == theirs
    assert theirs.versions["coding", "ES3.001"] == 2
    assert theirs.versions["organisation", "Bureau"] == 3


def test_two_people_who_change_the_same_thing_are_told_of_each_other(place):
    store, first = filled(place)
    now = datetime.datetime.now(datetime.UTC)
    after = store.write(first, with_label(first.environment, "work"), who="ann <a@b>")
    changed = with_label(replace(first.environment, organisations=()), "employment")
    with pytest.raises(ConflictError) as caught:
        store.write(first, changed, who="bob")
    thing, remedy = caught.value.problems
    assert thing.startswith(f"coding 'ES3.001' was changed by 'ann <a@b>' on {now:%Y-%m-%d}")
    assert "Read the store again" in remedy
    assert isinstance(caught.value, RunError)
    # The organisations, which nobody else touched, were not removed either.
    assert store.read() == after
    assert {change.who for change in store.history()} == {"ann", "ann <a@b>"}


def without(environment, attribute, name):
    kept = tuple(one for one in getattr(environment, attribute) if one.name != name)
    return replace(environment, **{attribute: kept})


@pytest.mark.parametrize("way", ["changed, removed", "removed, changed", "added twice", "back"])
def test_other_ways_of_being_in_each_others_way(place, way):
    store, first = filled(place)
    world = first.environment
    gone = without(world, "forms", "Empty")
    changed = replace(gone, forms=(*gone.forms, Form("Empty", purpose="none")))
    added = [replace(world, forms=(*world.forms, Form("New", purpose=p))) for p in "ab"]
    if way == "back":  # removed and added again: the same name, and not the same thing
        between = store.write(first, gone, who="ann")
        store.write(between, world, who="ann")
    earlier = {"changed, removed": changed, "removed, changed": gone, "added twice": added[0]}
    later = {"changed, removed": gone, "removed, changed": changed, "added twice": added[1]}
    if way in earlier:
        store.write(first, earlier[way], who="ann")
    before = store.read()
    with pytest.raises(ConflictError, match="'New'" if "twice" in way else "'Empty'"):
        store.write(first, later.get(way, changed), who="bob")
    assert store.read() == before


def test_people_who_do_the_same_are_not_in_each_others_way(place):
    store, first = filled(place)
    world = without(
        replace(first.environment, organisations=(Organisation("New"),)), "forms", "Empty"
    )
    one = store.write(first, world, who="ann")
    other = store.write(first, world, who="bob")
    assert other == one
    assert {change.who for change in store.history()} == {"ann"}


def test_a_change_that_no_longer_fits_is_refused(place):
    store, first = filled(place, Environment((Construct("SX", "sex"),), (Coding("SX2.001", "SX"),)))
    other = store.write(first, replace(first.environment, codings=()), who="ann")
    using = replace(first.environment, forms=(Form("F", fields=(Field("s", coding="SX2.001"),)),))
    with pytest.raises(ConflictError, match=r"field 's' 'SX2\.001', which does not exist"):
        store.write(first, using, who="bob")
    one, two = (Coding(name, "SX", aliases=("CS2.01",)) for name in ("SX2.002", "SX2.003"))
    store.write(other, replace(other.environment, codings=(one,)), who="ann")
    before = store.read()
    with pytest.raises(ConflictError, match=r"'CS2\.01': 2 have this name or alias"):
        store.write(other, replace(other.environment, codings=(two,)), who="bob")
    assert store.read() == before


def test_history_tells_who_changed_what_when(place):
    store, first = filled(place)
    start = datetime.datetime.now(datetime.UTC)
    world = without(with_label(first.environment, "work"), "forms", "Empty")
    store.write(first, world, who="bob", note="as in the new form")
    changes = [change for change in store.history() if change.who == "bob"]
    assert [(c.number, c.action, c.kind, c.name) for c in changes] == [
        (2, "changed", "coding", "ES3.001"),
        (2, "removed", "form", "Empty"),
    ]
    coding, form = changes
    assert (coding.before["label"], coding.after["label"]) == ("employment status", "work")
    assert (form.before, form.after) == ({"name": "Empty"}, None)
    assert coding.note == "as in the new form"
    assert coding.when.tzinfo is datetime.UTC
    assert start - datetime.timedelta(seconds=1) <= coding.when
    assert coding.when <= datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=1)
    assert [c.number for c in store.history("coding", "ES3.001")] == [1, 2]
    assert {c.kind for c in store.history("map")} == {"map"}
    assert [c.name for c in store.history(name="Claim")] == ["Claim"]
    assert store.history("form", "no\0ne") == store.history(name="\ud800") == []
    with pytest.raises(OptionError, match="kind must be one of construct, coding"):
        store.history("forms")


def test_nothing_changed_is_nothing_written(place):
    store, first = filled(place)
    backwards = replace(first.environment, codings=first.environment.codings[::-1])
    assert store.write(first, backwards, who="bob") == first
    assert store.read().number == 1


FAULTS = {
    "forms 'twice'": ({"forms": (Form("A"), Form("A"))}, "form 'A' exists 2 times"),
    "no name": ({"forms": (Form(" "),)}, r"forms\[0\] must have a name"),
    "long name": ({"forms": (Form("x" * 501),)}, "at most 500 characters. Got 501"),
    "nul": ({"forms": (Form("A", purpose="a\0b"),)}, "form 'A': purpose must have no NUL"),
    "nul in the name": ({"forms": (Form("A\0"),)}, r"form 'A\\x00': name must have no NUL"),
    "half a character": ({"forms": (Form("\ud800"),)}, "surrogate"),
    "not text": ({"forms": (Form("A", sector=3),)}, "sector must be text. Got a number"),
    "a list": ({"forms": (Form("A", fields=[]),)}, "fields must be a tuple. Got a list"),
    "not a form": ({"forms": (Target("A"),)}, r"forms\[0\] must be a Form. Got a Target"),
    "method": ({"forms": (Form("A", method="guess"),)}, "method must be one of 'form field"),
    "moment": (
        {"forms": (Form("A", collected=datetime.datetime(2026, 1, 1)),)},
        r"collected must be a day \(2026-11-16\). Got a datetime",
    ),
    "key": ({"forms": (Form("A", classifications={1: "x"}),)}, "a key must be text"),
    "rank": ({"sources": (Source("A", mode=2**40),)}, "mode must be a whole number"),
    "truth": ({"sources": (Source("A", mode=True),)}, "mode must be a whole number"),
    "nan": (
        {"codings": (Coding("A", "ES", (), Intervals("number", (float("nan"),))),)},
        r"edges\[0\] must be a number. Got not a number",
    ),
    "arrow": ({"codings": (Coding("A → B", "ES"),)}, "must have a name without"),
    "alias": ({"codings": (Coding("A", "ES", aliases=("A",)),)}, "'A': 2 have this name"),
    "no construct": ({"codings": (Coding("A", "XX"),)}, "its construct 'XX', which does not"),
    "no coding": (
        {"targets": (Target("A", fields=(Field("f", coding="B"),)),)},
        "target 'A' has as the coding of its field 'f' 'B', which does not exist",
    ),
    "no finer": ({"maps": (CategoryMap("A", "B"),)}, "its finer coding 'A', which does not"),
    "no left": ({"overlaps": (Overlap("A", "B", frozenset()),)}, "its left coding 'A'"),
}


def test_what_cannot_be_kept_is_refused_with_the_reason(place):
    store = open_store(place, create=True)
    base = store.read()
    environment = Environment(constructs=(Construct("ES", "employment"),))
    for given_, message in FAULTS.values():
        with pytest.raises(InputError, match=message):
            store.write(base, replace(environment, **given_), who="ann")
    assert store.read() == Snapshot(Environment(), {}, 0, store.place)


def test_all_problems_are_told_at_once(place):
    store = open_store(place, create=True)
    many = tuple(Form(f"form {i}", purpose="\0") for i in range(150))
    with pytest.raises(InputError) as caught:
        store.write(store.read(), Environment(forms=many), who="ann")
    assert len(caught.value.problems) == 101
    assert caught.value.problems[-1] == "and 50 more problems"


def test_who_must_be_said_and_the_snapshot_be_of_this_store(place, tmp_path):
    _, first = filled(place)
    other = open_store(tmp_path / "other.db", create=True)
    with pytest.raises(InputError) as caught:
        other.write(first, Environment(), who=" ", note="\0")
    assert [problem.split()[0] for problem in caught.value.problems] == ["snapshot", "who", "note"]
    with pytest.raises(InputError, match="opened for reading only"):
        open_store(place, writing=False).write(first, Environment(), who="ann")
    assert open_store(place, writing=False).read() == first


INCREMENT = """
    import sys
    from dataclasses import replace
    from keyhole.environment.model import Construct, Environment
    from keyhole.environment.store import open_store
    from keyhole.errors import ConflictError

    place, who = sys.argv[1:]
    store = open_store(place, create=True, timeout=500)
    done = 0
    while done < 8:
        snapshot = store.read()
        (one,) = snapshot.environment.constructs or (Construct("N", "0"),)
        one = replace(one, name=str(int(one.name) + 1), description=who)
        try:
            store.write(snapshot, Environment(constructs=(one,)), who=who)
            done += 1
        except ConflictError:
            pass
"""


def test_processes_that_write_at_once_lose_nothing(place):
    # They also make the store at once.
    command = [sys.executable, "-c", textwrap.dedent(INCREMENT), place]
    running = [subprocess.Popen([*command, who], stderr=subprocess.PIPE) for who in ("a", "b")]
    for process in running:
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()
    store = open_store(place)
    assert store.read().environment.constructs[0].name == "16"
    assert [change.after["name"] for change in store.history()] == [str(i + 1) for i in range(16)]
    assert {change.who for change in store.history()} == {"a", "b"}


def test_threads_share_a_store(place):
    store = open_store(place, create=True, timeout=500)
    base, failures = store.read(), []

    def add(name):
        try:
            store.write(base, Environment(organisations=(Organisation(name),)), who=name)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=add, args=(f"o{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [o.name for o in store.read().environment.organisations] == [f"o{i}" for i in range(6)]


CRASH = """
    import os, sys
    from dataclasses import replace
    from keyhole.environment.model import Environment
    from keyhole.environment import store as module

    store = module.open_store(sys.argv[1])
    module._rows = lambda *_: os._exit(9)  # everything is written but the history
    store.write(store.read(), Environment(), who="bob")
"""


def test_a_crash_in_the_middle_leaves_the_old_state(place):
    store, first = filled(place)
    script = textwrap.dedent(CRASH)
    done = subprocess.run([sys.executable, "-c", script, place], check=False)
    assert done.returncode == 9
    assert store.read() == first
    store.write(first, with_label(first.environment, "after"), who="ann")


def test_a_failure_in_the_middle_leaves_the_old_state(place, monkeypatch):
    store, first = filled(place)

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("keyhole.environment.store._rows", fail)
        with pytest.raises(KeyboardInterrupt):
            store.write(first, Environment(), who="bob")
    assert store.read() == first
    assert len(store.history()) == len(entities(WORLD))


def made(forms, each=60):
    held = [Coding(f"C{i}.001", "C", (Category("1"), Category("2"))) for i in range(50)]
    asked = [Field(f"q{j}", f"Question {j}", held[j % 50].name) for j in range(each)]
    return Environment(
        constructs=(Construct("C", "construct"),),
        codings=tuple(held),
        forms=tuple(Form(f"form {i:04}", fields=tuple(asked)) for i in range(forms)),
    )


def test_many_forms_take_as_many_statements_as_a_few(place):
    store = open_store(place, create=True)
    base, statements = store.read(), []
    sa.event.listen(store._engine, "before_cursor_execute", lambda *_: statements.append(1))
    few = store.write(base, made(3), who="ann")
    counted = len(statements)
    many = store.write(few, made(150), who="ann")
    assert len(statements) - counted <= counted
    assert store.read() == many
    assert sum(len(form.fields) for form in many.environment.forms) == 9000
    gone = store.write(many, Environment(), who="ann")
    assert store.read() == gone
