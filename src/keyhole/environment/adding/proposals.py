"""What is proposed for the fields of a captured form: a person confirms or changes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from keyhole.core.tables import Table
from keyhole.environment.adding.catalogue import Catalogue, captured_questions
from keyhole.environment.adding.decisions import Decision
from keyhole.environment.adding.ranking import Proposal, rank
from keyhole.environment.model import CapturedForm, Environment
from keyhole.environment.wording import require_none, short
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl


_SHOWN = 60
COLUMNS = ("field", "proposal", "construct", "coding", "score", "reason")


@dataclass(frozen=True, slots=True)
class FieldProposals:
    """The proposals for one field, the best first."""

    field: str
    label: str
    proposals: tuple[Proposal, ...]

    @property
    def best(self) -> Proposal:
        """The proposal with the highest score."""
        return self.proposals[0]


@dataclass(frozen=True, slots=True, repr=False)
class Proposals(Result):
    """What is proposed for each field of a form, in the form's order."""

    form: str
    fields: tuple[FieldProposals, ...]

    def best(self, threshold: float = 0.0) -> tuple[Decision, ...]:
        """Return as decisions the best proposal of each field at or above a threshold."""
        return tuple(f.best.decision() for f in self.fields if f.best.score >= threshold)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a proposal."""
        import polars as pl

        rows = [
            (p.field, i + 1, p.action, p.construct, p.name, p.coding, p.score, p.reason)
            for one in self.fields
            for i, p in enumerate(one.proposals)
        ]
        names = ["field", "rank", "action", "construct", "name", "coding", "score", "reason"]
        kinds = [pl.String, pl.Int64, *[pl.String] * 4, pl.Float64, pl.String]
        return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")

    def tables(self) -> list[Table]:
        """Return the proposals, the best of each field first."""
        rows = [row for one in self.fields[:_SHOWN] for row in proposal_rows(one)]
        more = len(self.fields) - _SHOWN
        notes = [f"and {more:,} more fields"] if more > 0 else []
        return [Table(f"Proposals for {short(self.form)}", COLUMNS, rows, notes)]


def proposal_rows(one: FieldProposals) -> Iterator[list[str]]:
    """Yield a row a proposal; the field is named once."""
    for i, p in enumerate(one.proposals):
        construct = f"{p.construct} {p.name}".strip() or p.identifier
        coding = p.coding or ", ".join(f"{t.relation} {t.coding}" for t in p.ties[:2])
        field = short(one.field) if i == 0 else ""
        yield [field, p.action, _cut(construct), coding, f"{p.score:.2f}", _cut(p.reason, 90)]


def _cut(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def propose(
    environment: Environment,
    captured: CapturedForm,
    *,
    exact_codes: bool = False,
    preview: bool = True,
) -> Proposals:
    """Propose for each field of a form which construct it asks and which coding it has.

    Parameters
    ----------
    environment
        What is known so far; it is not changed.
    captured
        The form, as an importer gives it.
    exact_codes
        Whether codings are the same only if their codes are, not just their labels: what
        the columns of a target need, since its records hold the codes.
    preview
        Whether to work out which harmonised codings would be minted.

    Examples
    --------
    >>> from keyhole.environment.model import CapturedField, Category, Coding, Construct, Form
    >>> known = Environment(
    ...     (Construct("SX", "sex"),),
    ...     (Coding("SX2.001", "SX", (Category("1", "Male"), Category("2", "Female"))),),
    ... )
    >>> asked = CapturedField("applicantGender", "", (Category("F"), Category("M")))
    >>> best = propose(known, CapturedForm(Form("claim"), (asked,))).fields[0].best
    >>> best.action, best.coding, best.score
    ('assimilate', 'SX2.001', 1.0)
    """
    from keyhole.environment.adding.placing import Placer, captured_problems

    require_none(captured_problems(captured))
    catalogue = Catalogue(environment)
    letters: dict[str, str] = {}
    found = []
    asked = captured_questions(captured.fields)
    for field, questions in zip(captured.fields, asked, strict=True):
        ranked = rank(catalogue, field, questions, exact_codes=exact_codes, letters=letters)
        ranked = tuple(
            _previewed(Placer, environment, field, one, minting=preview) for one in ranked
        )
        found.append(FieldProposals(field.name, field.label, ranked))
    return Proposals(captured.form.name, tuple(found))


def _previewed(
    placer: Any, environment: Environment, field: Any, proposal: Proposal, *, minting: bool
) -> Proposal:
    """Keep the ties that agree with what is stored; tell what would be minted."""
    if proposal.action != "accommodate" or not proposal.ties:
        return proposal
    placed = placer(environment, only=proposal.construct).accommodate(field, proposal.decision())
    return replace(
        proposal, ties=placed.ties, harmonised=placed.minted if minting else proposal.harmonised
    )
