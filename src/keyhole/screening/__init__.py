"""Screening of a file before anything is measured: identifiers, Safe Harbor, dependences."""
