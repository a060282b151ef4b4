"""The preparation of a training, with options, data, sizes and the continuation of a run."""
