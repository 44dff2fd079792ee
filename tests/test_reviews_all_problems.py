"""All the problems of a review file are told at once, whatever section they are in."""

import pytest
from tests.whole_review import review_in

import keyhole
from keyhole.data.examples import veterans
from keyhole.environment.exchange import example_environment, write_environment
from keyhole.errors import InputError

# Each line with a fault ends with what must be told of it there.
REVIEW = """\
title = 3                                        # title must be text
keys = ["sex", "agge"]                           # key 'agge'
[release]
product = "nothing"                              # [release] product
board = "me"                                     # [release] board
[data]
file = "veterans.csv"
[data.roles]
weigth = "weight"                                # column 'weigth'
[screen]
sure = 4                                         # [screen] sure
[exposure]
cutoff = 0                                       # [exposure] cutoff
by = "homestate"                                 # by 'homestate'
[uniques]
max_size = 9                                     # [uniques] max_size
[selection]
candidates = ["ag8r|agee"]                       # candidate 'agee'
limit = 3                                        # [selection] limit
values = { lsr = 2 }                             # [selection] values
[frontier]
seconds = -1                                     # [frontier] seconds
[environment]
store = "environment.json"
scenarios = ["nosy neighbor"]                    # scenario 'nosy neighbor'
[scenario.mine]
preset = "journalst"                             # scenario 'mine': preset
p_attempt = [2, 3]                               # scenario 'mine': p_attempt
[scenario.other]
restricted = { sectr = "finance" }               # restricted[0].'sectr'
publc = 3                                        # 'publc' is unknown
[protection]
formula = "incme ~ age"                          # variable of the formula 'incme'
[[protection.step]]                              # 'rond' is not a method
method = "rond"
[[protection.step]]                              # column 'agee'
method = "top-code"
column = "agee"
value = 80
[[protection.step]]
method = "suppress"
keys = ["sex"]
k = 1                                            # k must be a whole number
[synthesis]                                      # needs 'seed'
targets = ["age", "mss"]                         # target 'mss'
implicates = 0                                   # [synthesis] implicates
folds = 1                                        # [synthesis] folds
crosses = [["sex", "agee"]]                      # cross-tabulated variable 'agee'
[synthesis.rules]
one = "age >> 3"                                 # rule 'one'
two = "agex > 3"                                 # rule 'two'
[study]
eif = "external.csv"
iuf = "truht.csv"                                # truht.csv' does not exist
puf_id = "puf_idd"                               # PUF id 'puf_idd'
eif_id = "eif_id"
link = ["age", "incme"]                          # linking variable 'incme'
metric = "taxicabb"                              # [study] metric
[study.candidates]
other = "nowhere.csv"                            # nowhere.csv' does not exist
"""


@pytest.fixture
def folder(tmp_path, sample):
    review_in(tmp_path, sample, REVIEW)
    veterans(1_000, seed=2).external.save(tmp_path / "external.csv")
    write_environment(example_environment(), tmp_path / "environment.json")
    return tmp_path


def test_every_section_tells_its_problems_with_their_lines(folder):
    with pytest.raises(InputError) as caught:
        keyhole.review(folder / "review.toml", out=folder / "out")
    told = list(caught.value.problems)
    lines = REVIEW.splitlines()
    expected = [
        (i, line.partition("   # ")[2]) for i, line in enumerate(lines, 1) if "   # " in line
    ]
    assert len(expected) > 30
    for number, words in expected:
        here = [text for text in told if text.startswith(f"review.toml, line {number}: ")]
        assert any(words in text for text in here), (number, words, here)
    told_of = {int(text.split("line ")[1].split(":")[0]) for text in told}
    assert told_of == {number for number, _ in expected}, "and nothing else is told"


def test_a_plan_that_draws_without_a_seed_has_its_other_problems_told_too(tmp_path, sample):
    text = """\
keys = ["sex"]
[data]
file = "veterans.csv"
[protection]
[[protection.step]]
method = "pram"
column = "ms"
p = 0.9
[[protection.step]]
method = "top-code"
column = "race1"
value = 3
"""
    with pytest.raises(InputError) as caught:
        keyhole.review(review_in(tmp_path, sample, text), out=tmp_path / "out")
    found = "\n".join(caught.value.problems)
    assert "line 4: [protection] needs a seed" in found
    assert "step 2 (top-code)" in found
