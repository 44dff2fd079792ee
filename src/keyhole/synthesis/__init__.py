"""Partially synthetic releases: exposed records are changed, answers stay right."""
