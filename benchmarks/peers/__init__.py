"""One program for each peer, in an environment of its own: ``python -m benchmarks.peers.NAME``.

A program reads a job (a JSON file, see ``measure.py``), and prints one line of JSON. It imports
numpy, its library and ``measure.py``, and nothing of Glassformer (but for ``ours.py``).
"""
