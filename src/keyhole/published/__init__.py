"""The published examples, rerun on the user's machine."""
