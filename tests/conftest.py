"""Settings for all tests."""

from hypothesis import HealthCheck, settings

# Same examples in every run, and no test of time: the machine may be busy.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")
