"""The doctor, which examines parallel text before training."""
