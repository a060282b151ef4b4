"""Search for the best target: greedy, beam, sampling, on any step function and state.

Reading order: `step.py` (what a search and a model agree on), `greedy.py`, `beam.py` (section 6.1
of the paper), `sampling.py`, `constraints.py`, `glossary.py`, `sentences.py` (many sentences
through a model).
"""
