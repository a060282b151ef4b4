"""Text: from files to batches of ids. Knows no model.

Read in this order: :mod:`corpus` (pairs of lines), :mod:`tokenizer` (subwords), :mod:`token_store`
(ids on disk), :mod:`batches` (the tensors of a step of training). Of the tools, the doctor examines
a corpus, and the phrasebook makes one.
"""
