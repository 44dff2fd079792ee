"""Settings of the whole suite."""

from hypothesis import HealthCheck, settings

# The first call of a kernel may compile it: no deadlines.
settings.register_profile(
    "keyhole", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60
)
settings.load_profile("keyhole")
