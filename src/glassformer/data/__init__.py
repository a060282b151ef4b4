"""Text: from files to batches of ids. Knows no model.

Read in this order: :mod:`corpus` (pairs of lines), :mod:`doctor` (what is wrong with them),
:mod:`tokenizer` (subwords), :mod:`packed` (ids on disk), :mod:`batches` (what a step of training
reads); :mod:`phrasebook` is the built-in corpus.
"""
