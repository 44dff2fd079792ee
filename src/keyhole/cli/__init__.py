"""Command line: commands made from the signatures of the verbs, and what they print."""
