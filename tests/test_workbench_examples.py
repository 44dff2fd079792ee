"""Small examples of what the functions of this part return."""

import tomlkit

from keyhole.workbench import editing, environments, form_adding, projects, safety
from keyhole.workbench.page import SentForm
from keyhole.workbench.pages import environment, protect


def test_page_share():
    assert SentForm({"limit": ["7.5"]}).share("limit") == 0.075


def test_editing_in_former_order():
    assert editing.in_former_order(["age", "ms", "sex"], ["sex", "age"]) == ["sex", "age", "ms"]


def test_editing_numbered_lines():
    assert editing.numbered_lines("first\n\n  third ") == [(1, "first"), (3, "third")]


def test_environments_stories_of():
    assert environments.stories_of({"scenario": {"a friend": {"columns": ["age"]}}}) == (
        "a friend",
    )


def test_projects_plain_problem():
    assert (
        projects.plain_problem("review.toml, line 4: [exposure] limit must be a share.")
        == "[exposure] limit must be a share."
    )


def test_safety_own_hosts():
    assert sorted(safety.own_hosts(8000)) == ["127.0.0.1:8000", "[::1]:8000", "localhost:8000"]


def test_form_adding_known_places():
    from keyhole.environment.model import Category, Coding, Construct

    coding = Coding("SX2.001", "SX", (Category("f"), Category("m")), label="Sex")
    assert form_adding.known_places(
        form_adding.Environment((Construct("SX", "sex"),), (coding,))
    ) == [("SX", "sex"), ("SX2.001", "a coding of sex, 2 categories: Sex")]


def test_form_adding_place_manually():
    from keyhole.environment.model import Category, Coding, Construct

    coding = Coding("SX2.001", "SX", (Category("1", "Male"), Category("2", "Female")))
    known = form_adding.Environment((Construct("SX", "sex"),), (coding,))
    asked = form_adding.CapturedField("q7", "", (Category("1"), Category("2")))
    assert (
        form_adding.place_manually("SX2.001", asked, known, exact_codes=True).action == "assimilate"
    )
    assert form_adding.place_manually("sex", asked, known, exact_codes=True).action == "accommodate"


def test_protect_read_step():
    assert protect.read_step("round", protect.SentForm({"column": ["age"], "base": ["5"]})) == {
        "method": "round",
        "column": "age",
        "base": 5,
    }
    assert protect.read_step("sample", protect.SentForm({"fraction": ["12.5"]})) == {
        "method": "sample",
        "fraction": 0.125,
    }


def test_environment_lists():
    from keyhole.environment.model import Form

    known = environment.Environment(
        forms=(Form("Loan"), Form("Claim"), Form("Card", sector="bank"))
    )
    assert [row[0] for row in environment._lists(known, None)[0]["table"].rows] == [
        "Claim",
        "Loan",
        "Card",
    ]
    assert [row[0] for row in environment._lists(known, "BANK")[0]["table"].rows] == ["Card"]


def test_editing_put_setting():
    review = editing.parse_review("[exposure]\ncutoff = 3   # as agreed\n")
    editing.put_setting(review, "exposure", "limit", 0.1)
    editing.put_setting(review, "exposure", "cutoff", 5)
    assert review.as_string().strip().splitlines() == [
        "[exposure]",
        "cutoff = 5   # as agreed",
        "limit = 0.1",
    ]


def test_editing_add_step():
    review = editing.parse_review(
        '[[protection.step]]\nmethod = "drop"\n\n# of the study\n[study]\n'
    )
    editing.add_step(review, {"method": "round"})
    assert review.as_string().strip().splitlines() == [
        "[[protection.step]]",
        'method = "drop"',
        "",
        "[[protection.step]]",
        'method = "round"',
        "",
        "# of the study",
        "[study]",
    ]


def test_editing_move_step():
    review = editing.parse_review(
        '[[protection.step]]\nmethod = "drop"\n[[protection.step]]\nmethod = "round"\n'
        "# of the study\n[study]\n"
    )
    editing.move_step(review, 1, 0)
    assert review.as_string().strip().splitlines() == [
        "[[protection.step]]",
        'method = "round"',
        "[[protection.step]]",
        'method = "drop"',
        "# of the study",
        "[study]",
    ]


def test_comments_tie_leads():
    review = tomlkit.parse("[exposure]\ncutoff = 3\n\n# What is singled out.\n[uniques]\n")
    editing.tie_leads(review)
    review["exposure"]["limit"] = 0.1
    assert review.as_string().strip().splitlines() == [
        "[exposure]",
        "cutoff = 3",
        "limit = 0.1",
        "",
        "# What is singled out.",
        "[uniques]",
    ]


def test_comments_leave_lead():
    review = tomlkit.parse("[a]\nx = 1\n\n# a sketch\n\n# of b\n[b]\ny = 2\n\n# of c\n[c]\n")
    editing.tie_leads(review)
    editing.leave_lead(review, "b")
    del review["b"]
    assert review.as_string().strip().splitlines() == [
        "[a]",
        "x = 1",
        "",
        "# a sketch",
        "",
        "# of c",
        "[c]",
    ]


def test_comments_place_sections():
    before = '[data]\n\n# [release]\n# to = "all"\n\n# [study]\n'
    assert str(
        editing.place_sections(before, before + '\n[release]\nto = "us"\n').strip()
    ).splitlines() == [
        "[data]",
        "",
        "# [release]",
        '# to = "all"',
        "",
        "[release]",
        'to = "us"',
        "",
        "# [study]",
    ]
