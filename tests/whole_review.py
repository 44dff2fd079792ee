"""A small review with every kind of stage, for the tests of dossiers."""

SEED = 918273645
REVIEW = f"""\
title = "A whole review"
keys = ["sex", "ag8r", "ms", "race1"]

[release]
product = "protection"
to = "Researchers with a contract"
purpose = "Studies of income"
version = "2nd"
contact = "data@office.example"
conditions = ["No attempt to find anybody."]
notes = ["Ask for the codebook."]
board = ["Head of the office", "Disclosure officer"]

[data]
file = "veterans.csv"
missing_codes = [-9]

[data.roles]
puf_id = "identifier"
household = "household"
weight = "weight"

[screen]

[exposure]
limit = 0.01

[uniques]
max_size = 2

[selection]
keep = ["sex"]
candidates = ["ms", "race1", "cp"]
limit = 0.2

[frontier]

[protection]
seed = {SEED}

[[protection.step]]
method = "top-code"
column = "age"
value = 80

[[protection.step]]
method = "pram"
column = "race1"
p = 0.93

[[protection.step]]
method = "suppress"
keys = ["sex", "ag8r", "ms", "race1"]
k = 4

[synthesis]
keys = ["sex", "age", "ms"]
targets = ["age", "ms"]
drop = ["ag8r"]
implicates = 2
self_match = 50
seed = {SEED}
"""


def review_in(folder, sample, text=REVIEW, records=400):
    """Write the review and its data into a folder, and return the review file."""
    lines = sample.splitlines(keepends=True)
    (folder / "veterans.csv").write_bytes(b"".join(lines[: records + 1]))
    path = folder / "review.toml"
    path.write_text(text)
    return path


def files(folder):
    """Return the content of every file of a folder, by its path."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }
