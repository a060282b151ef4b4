"""The Transformer of *Attention Is All You Need* (Vaswani et al. 2017), part by part.

Read the files in this order; each cites its section and equation of the paper:

1. :mod:`masks`: the keys that each query may attend to (sections 3.1 and 3.2.3)
2. :mod:`attention`: scaled dot-product and multi-head attention (3.2)
3. :mod:`positions`: positional encoding (3.5)
4. :mod:`embeddings`: a vector for each token (3.4)
5. :mod:`blocks`: feed-forward network and residual block (3.1, 3.3)
6. :mod:`encoder`, :mod:`decoder`: one block, and the stack of blocks (3.1)
7. :mod:`cache`: the decoder's keys and values of earlier steps
8. :mod:`transformer`: the whole model (figure 1)
9. :mod:`forms`: the parts that a model is built from, and how a configuration sets them

:mod:`fast` holds quicker forms. A reader can skip it: ``parts=PLAIN`` runs without it.
"""
