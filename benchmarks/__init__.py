"""Measurements of keyhole side by side with what a user would write instead."""
