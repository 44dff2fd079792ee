"""Random forms sent to the workbench, with hostile names and texts: each page answers."""

from __future__ import annotations

import datetime as dt
import functools
import random
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
from tests import fuzzing_texts, workbench
from tests.fuzzing import JUNK, NAMES, SECRET, Seed, UnfitError, judged
from tests.workbench import Workbench
from tests.workbench_environment import small_environment

import keyhole
from keyhole.environment import write_environment
from keyhole.errors import KeyholeError
from keyhole.reviews import runner
from keyhole.workbench.jobs import Jobs
from keyhole.workbench.pages import PAGES
from keyhole.workbench.state import WorkbenchState

_PLAIN = [str(one) for one in JUNK if isinstance(one, str | int | float)]
TEXTS = [*NAMES, *(one for one in _PLAIN if one.isprintable()), "10, 20", "2000-01-31", "1e300",
         "0.5", "5", "²", "9" * 5000, "age, state"]  # fmt: skip
REVIEW = fuzzing_texts.toml_text(
    {
        "keys": ["age", "state", "*", "<script>"],
        "data": {"file": "people.parquet"},
        "exposure": {"limit": 0.2},
        "selection": {"candidates": [["age"], ["state"], ["sex"]], "limit": 0.9},
        "solve": {"limit": 0.5, "seconds": 0.3},
        "table": [{"rows": ["state"], "cols": ["sex"]}],
        "protection": {"step": [{"method": "recode", "column": "age", "cuts": [25, 30]}]},
        "environment": {"store": "environment.json"},
    }
)
ROWS = 120
COLUMNS = ["age", "state", "sex", "income", "id", "born", "note", "*", "<script>"]


class Fields(HTMLParser):
    """The forms of a page: where each is sent, and its fields with the values that they offer."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, list[str]]]] = [("", {})]
        self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a form, a field of one, or a value that a list offers."""
        about = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append((about.get("action", ""), {}))
        if tag == "select":
            self._select = about.get("name", "")
        name = self._select if tag == "option" else about.get("name", "")
        if tag in ("input", "select", "option", "textarea", "button") and name:
            found = self.forms[-1][1].setdefault(name, [])
            found += [about["value"]] if "value" in about else []


class _NoJobs(Jobs):
    """Jobs that are asked for and not done."""

    def start(self, *_: Any) -> Any:
        """Do nothing."""


@functools.cache
def _bench() -> Workbench:
    folder = Path(tempfile.mkdtemp(prefix="keyhole-fuzz-"))
    frame = pl.read_csv(workbench.write_people(folder, ROWS))
    odd = {"*": [None, "a"], "<script>": [1.5, float("inf")], "note": [f"{SECRET} 1", None],
           "born": [dt.date(1950, 1, 1), dt.date(1980, 5, 5)]}  # fmt: skip
    frame = frame.with_columns(pl.Series(n, v * (ROWS // 2)) for n, v in odd.items())
    frame.write_parquet(folder / "people.parquet")
    write_environment(small_environment(), folder / "environment.json")
    bench = workbench.start(folder, REVIEW, jobs=_NoJobs(WorkbenchState.of(folder)))
    runner._save = fuzzing_texts._draw_nothing
    keyhole.review(folder / "review.toml", out=folder / "review")
    return bench


def call_page(seed: Seed, folder: Path) -> str:  # noqa: ARG001
    """Look at a page, and send one of its forms with other values."""
    random_ = random.Random(seed)
    bench = _bench()
    bench.project.path.write_text(REVIEW)

    def drawn(offered: list[str]) -> str:
        some = random_.choice([offered, offered, COLUMNS, TEXTS])
        return random_.choice(some or TEXTS)

    def call() -> None:
        page = random_.choice(PAGES).name
        names = ("column", "look", "values", "way", "step", "method", "key", "scenario", "form")
        asked = {one: drawn(["shown"]) for one in names if random_.random() < 0.2}
        answer = bench.client.get(bench.address(page), params=asked)
        forms = Fields(answer.text).forms
        where, fields = random_.choice(forms)
        if where and "/do/" not in where:
            sent: dict[str, Any] = {}
            for name, offered in fields.items():
                if random_.random() < 0.8:
                    sent[name] = [drawn(offered) for _ in range(random_.choice([1, 1, 1, 2]))]
            if "version" in fields:
                sent["version"] = bench.project.look().version
            answer = bench.client.post(
                bench.client.base_url.join(answer.url).join(where), data=sent, follow_redirects=True
            )
        if answer.status_code not in (200, 404, 409, 422):
            raise UnfitError(f"{page} answers {answer.status_code}")
        if answer.status_code == 422:
            raise KeyholeError("refused")

    return judged(seed, "a page", call)
