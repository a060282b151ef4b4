"""Text, from files to batches of ids; this package knows no model.

Read in this order: :mod:`corpus` (pairs of lines), :mod:`tokenizer` (subwords), :mod:`token_store`
(ids on disk), :mod:`batches` (the tensors of a training step). Two tools of the package ``tools``
use corpora: the doctor examines a corpus, and the phrasebook makes a corpus.
"""
