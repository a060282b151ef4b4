"""What README's figures come from: ours beside its peers. ``python -m benchmarks --help``."""
