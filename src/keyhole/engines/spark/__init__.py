"""Counting on Spark: the records stay on the cluster, and only counts come back."""
