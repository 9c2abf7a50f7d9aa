"""What every test shares."""

from hypothesis import settings

# The same examples each time, here and in CI; `--hypothesis-profile=default --hypothesis-seed=N` looks for others.
settings.register_profile("ottla", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("ottla")
