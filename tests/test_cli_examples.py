"""Small examples of what the functions of this part return."""

from keyhole.cli import output
from keyhole.published import figures


def test_output_one_file_problems():
    assert output.one_file_problems(
        {"--out": output.Path("a.csv"), "--plot": output.Path("b/../a.csv")}, {}
    ) == ["--plot: 'b/../a.csv' is also the file of --out. Give another name."]


def test_figures_figures():
    assert figures.figures("lin_garin_summaries")[0]["variables"] == "sex ag8r pow"
