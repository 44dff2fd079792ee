"""Compiled array code: arrays in, arrays out; each kernel has a slow twin in the tests."""

from keyhole.kernels.caching import settle_cache

settle_cache()
