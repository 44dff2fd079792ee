"""Codings and how they relate: the graph of refinement, joins, overlaps, new codings."""
