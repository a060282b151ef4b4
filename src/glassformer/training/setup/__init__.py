"""The preparation of a training: options, data, sizes, resuming."""
