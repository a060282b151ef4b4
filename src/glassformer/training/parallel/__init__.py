"""Training on several ranks; a reader with one process can skip it."""
