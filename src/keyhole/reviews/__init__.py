"""A review from one file: its stages, their results, and the report."""

from keyhole.reviews.runner import review

__all__ = ["review"]
