"""Matching: what is proposed for each field, what a person decides, and what becomes of it."""
