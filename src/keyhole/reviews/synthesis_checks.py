"""Checks of a review's synthesis: what the verb would refuse is told with the rest, at its line."""

from __future__ import annotations

from keyhole.core.kinds import Place
from keyhole.core.options import Problem as OptionProblem
from keyhole.core.options import Question
from keyhole.data import Microdata
from keyhole.errors import InputError
from keyhole.reviews.files import read_steadily
from keyhole.reviews.source import Problem, ReviewSource
from keyhole.synthesis.planning import data_problems
from keyhole.synthesis.rules import EditRules
from keyhole.synthesis.synthesise import synthesise_problems

__all__ = ["check_synthesis"]


def check_synthesis(
    source: ReviewSource, given: Question, data: Microdata
) -> tuple[Question, list[Problem]]:
    """Say everything that is wrong with a synthesis, absent columns aside.

    Parameters
    ----------
    source
        The review file.
    given
        The settings, as far as they are fit.
    data
        The file under review.

    Returns
    -------
    tuple
        The settings with the rules in place, and the problems.
    """
    found: list[tuple[Place, str]] = []
    if given.rules_file is not None:
        try:
            read, _ = read_steadily(source.path.parent / given.rules_file, EditRules.read)
            given = given.replace(rules={rule.name: rule.text for rule in read.rules})
        except InputError as error:
            found += [(("rules",), text) for text in error.problems]
    found += [((problem.options[0],), problem) for problem in synthesise_problems(given)]
    found += data_problems(given, data)
    return given, [source.problem(("synthesis", *at), _worded(text)) for at, text in found]


def _worded(problem: str) -> str:
    if isinstance(problem, OptionProblem) and problem.options:
        return problem.named(lambda name: f"[synthesis] {name}")
    return f"[synthesis] {problem}"
