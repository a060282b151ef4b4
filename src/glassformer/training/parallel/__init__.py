"""Training on several ranks, which a run with one process does not need."""
