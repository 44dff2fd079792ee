"""Scenarios of attack, and the file recoded to the key that a scenario gives."""
