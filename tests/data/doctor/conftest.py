"""The ways to ruin a corpus stand in ``ways.py``, for the tests beside it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
