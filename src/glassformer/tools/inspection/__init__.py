"""Tools to look inside a translator: capture its sublayers, change it, and draw it.

The page, the pictures of a sentence and the tests all read the numbers of one record, the trace.
Reading order:

1. ``capture``: every sublayer of any run of a model.
2. ``attention_of``: the attention maps of one sentence, with labels.
3. ``ablation``: a model with heads or positions switched off.
4. ``scoring``: the probability of a target, and of a target without one source word.
5. ``beam_graph``: a beam search as a tree.
6. ``figure1``: the boxes of the paper's figure 1 with shapes and parameters.
7. ``trace/``: ``schema`` (the record), ``subwords`` and ``array_codec`` (its parts), ``query`` (the
   question), ``captured`` (the records of one run), ``build`` (all together).
8. ``plots/``: the pictures.
"""
