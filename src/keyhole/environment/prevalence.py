"""Who asks what: shares of forms by year and sector, matrices of classes, and pictures of them.

The graph of a construct's codings is drawn as Figure 1 of Elliot, Mackey & Purdam (2011): codings
with fewer categories stand above those that refine them, and the way up from two codings meets at
their harmonisation. ``graph.svg`` draws it and escapes every text, since names and labels are data.
"""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations_with_replacement, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl

from keyhole import charts
from keyhole.charts import plain
from keyhole.core.marks import WHEN_SET, figure
from keyhole.core.names import plural, shown
from keyhole.core.options import Option, Problem, Question, bind, documented
from keyhole.core.tables import Table
from keyhole.environment.codings.categories import parse_name
from keyhole.environment.codings.graph import CodingGraph, Holder
from keyhole.environment.codings.partitions import informative_groups
from keyhole.environment.mapping.mapping import class_value, forms_in
from keyhole.environment.model import Environment, Form
from keyhole.environment.options import ClassOption, PurposeOption, SectorOption, StorePlace
from keyhole.environment.wording import frame_of, short
from keyhole.errors import InputError
from keyhole.results import Result, drawn_by, share

if TYPE_CHECKING:
    import altair as alt
    import jinja2

ACROSS, DOWN, MARGIN, HEAD = 138, 138, 76, 84
# Light to dark in one hue; the accent is kept for risk.
SHADES = ("#eef3f8", "#2f5d8a")
DARK = 0.55


@dataclass(frozen=True, slots=True)
class Prevalence:
    """How many forms (or sources) of a year ask a construct (`coding` empty), or a coding of it."""

    year: int
    construct: str
    coding: str
    forms: int
    of: int

    @property
    @figure()
    def share(self) -> float:
        """The share of the year's forms."""
        return self.forms / self.of


@dataclass(frozen=True, slots=True, repr=False)
class Trend(Result):
    """Prevalence of constructs and codings among the forms or sources collected in each year."""

    against: str
    years: tuple[int, ...]
    undated: int
    rows: tuple[Prevalence, ...]
    what: Literal["forms", "sources"] = "forms"

    def to_frame(self) -> pl.DataFrame:
        """Return one row a year, construct and coding."""
        names = {"construct": str, "coding": str}
        return frame_of(self.rows, year=int, **names, forms=int, of=int, share=float)

    def tables(self) -> list[Table]:
        """Return the share of each year's forms, a row for each construct and coding."""
        shares = {(r.construct, r.coding, r.year): r.share for r in self.rows}
        lines = sorted({(r.construct, r.coding) for r in self.rows})
        rows = [
            [*line, *(share(shares.get((*line, year), 0.0), 2) for year in self.years)]
            for line in lines
        ]
        notes = [f"A year's column is the share of the {self.what} collected in it."]
        if self.undated:
            notes.append(f"{plural(self.undated, self.what[:-1])} without a date: not counted.")
        columns = ["construct", "coding", *map(str, self.years)]
        return [Table(f"Prevalence by year, {self.against}", columns, rows, notes)]

    plot = drawn_by(
        "environment.prevalence.trend_chart",
        "Draw the share of each year's forms that ask each construct.",
    )


@documented
def trend(
    store: StorePlace,
    *,
    sector: SectorOption = None,
    purpose: PurposeOption = None,
    class_: ClassOption = None,
    construct: Annotated[str | None, Option("Only this construct.", metavar="LETTERS")] = None,
    of: Annotated[
        Literal["forms", "sources"], Option("What is counted: forms, or public sources.")
    ] = "forms",
) -> Trend:
    """Count, for each year, the share of its forms or sources that ask each construct."""
    bind(trend, locals()).require()
    graph = CodingGraph.of(store)
    holders: Sequence[Holder] = graph.environment.sources
    words = "all public sources"
    if of == "forms":
        holders, words = forms_in(graph, sector, purpose, class_)
    _require_construct(graph, construct)
    years: Counter[int] = Counter()
    counts: Counter[tuple[int, str, str]] = Counter()
    for holder in holders:
        if holder.collected is not None:
            year = holder.collected.year
            years[year] += 1
            for letters, codings in graph.asked(holder).items():
                if construct in (None, letters):
                    counts.update((year, letters, coding) for coding in ("", *codings))
    rows = tuple(
        Prevalence(year, letters, coding, count, years[year])
        for (year, letters, coding), count in sorted(counts.items())
    )
    return Trend(words, tuple(sorted(years)), len(holders) - years.total(), rows, of)


def trend_problems(asked: Question) -> Iterator[Problem]:
    """Refuse a class of sources."""
    if asked.of == "sources" and (asked.sector or asked.purpose or asked.class_):
        yield Problem("{sector}, {purpose} and {class_} apply to forms. Leave them out, or {of}.")


def _require_construct(graph: CodingGraph, construct: str | None) -> None:
    if construct is not None and construct not in {c.letters for c in graph.environment.constructs}:
        raise InputError(f"construct {shown(construct)} is not in the environment.")


@dataclass(frozen=True, slots=True, repr=False)
class HoldingMatrix(Result):
    """Classes against classes by the constructs on which they can be linked, or forms by codings.

    Of classes a cell counts the constructs that forms of both ask so that their codings join to two
    categories or more (`constructs` names them), on the diagonal those that a class asks.
    """

    what: Literal["classes", "codings"]
    by: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    constructs: Annotated[Mapping[str, tuple[str, ...]], WHEN_SET] = field(default_factory=dict)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a class or form, with a column for each class or coding."""
        head = {"class" if self.what == "classes" else "form": self.rows}
        cells = zip(*self.cells, strict=True)
        return pl.DataFrame(head | dict(zip(self.columns, cells, strict=True)))

    def tables(self) -> list[Table]:
        """Return the matrix."""
        title, head, notes = f"Codings of {self.by} that forms hold", "form", list[str]()
        if self.what == "classes":
            title, head = f"Constructs on which forms can be linked, by {self.by}", self.by
            notes = ["The diagonal: constructs that forms of the class ask."]
        rows = [
            [short(one), *(str(cell) if notes else "×" * cell for cell in row)]
            for one, row in zip(self.rows, self.cells, strict=True)
        ]
        return [Table(title, [head, *self.columns], rows, notes)]


@documented
def matrix(
    store: StorePlace,
    *,
    by: Annotated[
        str, Option("Classes against classes by sector, purpose or another classification.")
    ] = "sector",
    construct: Annotated[
        str | None,
        Option("Instead: the forms against the codings of this construct.", metavar="LETTERS"),
    ] = None,
) -> HoldingMatrix:
    """Count constructs on which two classes of forms can be linked, or list forms by coding."""
    bind(matrix, locals()).require()
    graph = CodingGraph.of(store)
    _require_construct(graph, construct)
    forms = sorted(graph.environment.forms, key=lambda form: form.name)
    if construct is not None:
        names = graph.family(construct)
        held = [graph.asked(form).get(construct, ()) for form in forms]
        cells = tuple(tuple(int(name in codings) for name in names) for codings in held)
        listed = tuple(form.name for form in forms)
        return HoldingMatrix("codings", construct, listed, names, cells)
    classes: dict[str, dict[str, set[str]]] = {}
    for form in forms:
        if value := class_value(graph, form, by):
            asked = classes.setdefault(value, {})
            for letters, codings in graph.asked(form).items():
                asked.setdefault(letters, set()).update(codings)
    if not classes:
        raise InputError(f"no form states its {shown(by)}: there are no classes to compare.")
    day = next((target.as_of for target in graph.environment.targets), None)

    def linked(one: str, other: str) -> bool:
        """Tell whether two codings can be matched on two groups of answers or more."""
        held, met = graph.node(one), graph.node(other)
        if held.tells(met) or met.tells(held) or (one == other and held.exact):
            return True
        relation = graph.overlap(one, other, as_of=day)
        return relation.resolved and informative_groups(held, relation.groups()[0]) > 1

    names = tuple(sorted(classes))
    shared: dict[str, tuple[str, ...]] = {}
    for a, b in combinations_with_replacement(names, 2):
        both = sorted(classes[a].keys() & classes[b].keys())
        pairs = {letters: product(classes[a][letters], classes[b][letters]) for letters in both}
        shared[f"{a} × {b}"] = tuple(
            letters for letters in both if a == b or any(linked(*pair) for pair in pairs[letters])
        )
    cells = tuple(tuple(len(shared[f"{min(a, b)} × {max(a, b)}"]) for b in names) for a in names)
    return HoldingMatrix("classes", by, names, names, cells, shared)


Counts = Mapping[tuple[str, str], tuple[int, int]]


def prevalence(environment: Environment | CodingGraph) -> dict[tuple[str, str], tuple[int, int]]:
    """Count, for each construct and sector, the forms that ask it and all forms."""
    graph = CodingGraph.of(environment)
    forms: dict[str, list[Form]] = defaultdict(list)
    for form in graph.environment.forms:
        forms[class_value(graph, form, "sector") or "(none)"].append(form)
    return {
        (one.letters, sector): (sum(one.letters in graph.asked(f) for f in members), len(members))
        for one in graph.environment.constructs
        for sector, members in sorted(forms.items())
    }


def prevalence_chart(environment: Environment | CodingGraph) -> alt.TopLevelMixin:
    """Draw the share of forms that ask each construct, by sector."""
    graph = CodingGraph.of(environment)
    found = prevalence(graph)
    if not found:
        raise InputError("the environment has no forms with constructs to draw; import some first.")
    names = {one.letters: one.name for one in graph.environment.constructs}
    chart, (first, best, of) = _shares(found, names)
    held = charts.percentage(best / of)
    title = f"Most widely held: {plain(names[first])}, asked by {held} of {of} forms"
    below = "The share of a sector's forms that ask the construct in any coding; empty: none does."
    return charts.house_style(chart, title=title, subtitle=below, width=70)


def trend_chart(trend: Trend) -> alt.TopLevelMixin:
    """Draw by year the share of the forms that ask each construct."""
    asked = [row for row in trend.rows if not row.coding]
    if not asked:
        raise InputError(
            f"no {trend.what[:-1]} has a day on which it was collected: there is nothing to draw."
        )
    found = {(row.construct, str(row.year)): (row.forms, row.of) for row in asked}
    chart, _ = _shares(found, defaultdict(str))
    below = f"The share of a year's {trend.what} that ask the construct, {plain(trend.against)}."
    title = f"What the {trend.what} of each year ask"
    return charts.house_style(chart, title=title, subtitle=below, width=70)


def _shares(found: Counts, names: Mapping[str, str]) -> tuple[Any, tuple[str, int, int]]:
    """Draw shares as shades, and return with them the construct that is asked most."""
    import altair as alt

    totals: dict[str, tuple[int, int]] = {}
    for (letters, _), (asking, of) in found.items():
        before = totals.get(letters, (0, 0))
        totals[letters] = before[0] + asking, before[1] + of
    order = sorted(totals, key=lambda letters: (-totals[letters][0], letters))
    rows = [
        {
            "place": order.index(letters),
            "construct": f"{plain(names[letters], 30)} ({plain(letters, 6)})".lstrip(),
            "sector": plain(sector, 20),
            "share": asking / of,
            "text": f"{asking} of {of}" if asking else "",
            "ink": "#ffffff" if asking / of > DARK else charts.INK,
        }
        for (letters, sector), (asking, of) in found.items()
    ]
    base = alt.Chart(charts.inline(rows)).encode(
        x=alt.X("sector:N", title=None).axis(
            orient="top", labelAngle=0, domain=False, ticks=False, labelFontSize=12
        ),
        y=alt.Y(
            "construct:N", title=None, sort=alt.EncodingSortField(field="place", order="ascending")
        ).axis(domain=False, ticks=False, labelFontSize=12),
    )
    cells = base.mark_rect(stroke="#ffffff", strokeWidth=2).encode(
        color=alt.Color("share:Q", title="share of forms")
        .scale(domain=[0, 1], range=list(SHADES))
        .legend(format="~%", orient="right")
    )
    figures = base.mark_text().encode(text="text:N", color=charts.own_colour("ink"))
    both = alt.layer(cells, figures).properties(width=alt.Step(96), height=alt.Step(25))
    return both.resolve_scale(color="independent"), (order[0], *totals[order[0]])


@cache
def _template() -> jinja2.Template:
    import jinja2

    drawing = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    drawing.filters["cut"] = plain
    drawing.globals |= {
        name.lower(): getattr(charts, name) for name in ("INK", "SOFT", "QUIET", "ACCENT", "FONTS")
    }
    return drawing.from_string(Path(__file__).with_name("graph.svg").read_text(encoding="utf-8"))


def draw_graph(environment: Environment | CodingGraph, construct: str, *, most: int = 60) -> str:
    """Draw the codings of a construct as SVG, at most so many: those that most forms ask.

    Examples
    --------
    >>> from keyhole.environment.exchange import example_environment
    >>> picture = draw_graph(example_environment(), "ES")
    >>> picture[:4], picture.count("<circle class='coding'"), picture.count("<rect class='coding'")
    ('<svg', 6, 1)
    """
    graph = CodingGraph.of(environment)
    family = graph.family(construct)
    known = {one.letters: one.name for one in graph.environment.constructs}
    if not family:
        there = ", ".join(sorted(known)) or "none"
        raise InputError(f"construct {shown(construct)} has no codings. There are {there}.")
    forms = Counter(
        name for form in graph.environment.forms for name in graph.asked(form).get(construct, ())
    )
    kept = sorted(sorted(family, key=lambda name: (-forms[name], name))[:most])
    as_of = next((target.as_of for target in graph.environment.targets), None)
    above = {name: graph.ancestors(name, as_of=as_of) for name in kept}
    for name in (name for name in kept if graph.node(name).open):
        above[name] = (*above[name], *graph.stand_ins(name))

    def among(pairs: Iterable[charts.Edge]) -> list[charts.Edge]:
        named = ((graph.names[a], graph.names[b]) for a, b in pairs)
        return sorted(pair for pair in named if set(pair) <= set(kept))

    solid = charts.reduce_edges(above)
    dashed = among((m.finer, m.coarser) for m in graph.environment.maps if m.pairs is None)
    layout = charts.lay_out(kept, [*solid, *dashed])
    width = round(max(layout.width * ACROSS + 2 * MARGIN, 760))
    start = (width - layout.width * ACROSS) / 2  # a narrow graph stands in the middle

    def point(place: tuple[float, int]) -> tuple[float, float]:
        return start + place[0] * ACROSS, HEAD + place[1] * DOWN + 44

    def path(edge: charts.Edge) -> str:
        """Go from node to node through the bends, upright where a layer is passed."""
        places = [layout.places[edge[0]], *layout.bends[edge], layout.places[edge[1]]]
        points = [point(place) for place in places]
        text = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
        for (x1, y1), (x2, y2) in pairwise(points):
            middle = (y1 + y2) / 2
            text += f"C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}"
        return text

    def bow(pair: charts.Edge) -> str:
        """Go past the edges, upon which a straight line could lie."""
        (x1, y1), (x2, y2) = (point(layout.places[name]) for name in pair)
        x, y = (x1 + x2) / 2 + (y2 - y1) * 0.18, (y1 + y2) / 2 - abs(x2 - x1) * 0.18
        return f"M{x1:.1f},{y1:.1f}Q{x:.1f},{y:.1f} {x2:.1f},{y2:.1f}"

    aims = {f.coding for target in graph.environment.targets for f in target.fields if f.coding}
    targets = {graph.node(name).name for name in aims}
    codings = []
    for name in kept:
        coding, (x, y) = graph.coding(name), point(layout.places[name])
        listed = ", ".join(category.label or category.code for category in coding.categories[:6])
        told = f"{name} {coding.label}{': ' * bool(listed)}{listed}".strip()
        codings.append(
            {
                "name": name,
                "at": f"{x:.1f},{y:.1f}",
                "told": told + ", …" * (len(coding.categories) > 6),
                "aimed": name in targets,
                "open": coding.open,
                "harmonised": parse_name(name).harmonised,
                "holds": "free text" if coding.open else f"{graph.node(name).size:,} cat.",
                "asked": plural(forms[name], "form") if forms[name] else "",
                "under": textwrap.wrap(plain(coding.label, 44), 22)[:2],
            }
        )
    left_out = len(family) - len(kept)
    more = f"; {left_out} more that few forms ask are not drawn" if left_out else ""
    return _template().render(
        title=f"{construct}: {known.get(construct, '')}",
        words=f"{len(kept)} codings, the coarser above what refines them{more}",
        width=width,
        height=layout.height * DOWN + HEAD + 40,
        solid=map(path, solid),
        dashed=map(path, dashed),
        overlaps=map(bow, among((o.left, o.right) for o in graph.environment.overlaps)),
        codings=codings,
    )
