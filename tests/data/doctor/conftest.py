"""The ways to ruin a corpus stand in the benchmarks, beside the package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
