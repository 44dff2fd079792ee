"""Scripts that bring a store from one version to the next, run by ``store/versions.py``."""
