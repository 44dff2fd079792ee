"""Compiled array code: arrays in, arrays out; each kernel has a slow twin in the tests."""
