"""The doctor: examines parallel text before training."""
