"""The Transformer of *Attention Is All You Need* (Vaswani et al. 2017), part by part.

Read the files in this order; each cites its section and equation of the paper:

1. :mod:`masks`: who may attend to whom (sections 3.1 and 3.2.3)
2. :mod:`attention`: scaled dot-product and multi-head attention (3.2)
3. :mod:`positions`: positional encoding (3.5)
4. :mod:`embeddings`: tokens as vectors, and vectors as tokens again (3.4)
5. :mod:`blocks`: feed-forward network and residual block (3.1, 3.3), with :mod:`dropout` (5.4)
6. :mod:`encoder`, :mod:`decoder`: one block, and the stack of them (3.1)
7. :mod:`state`: what the decoder carries from step to step
8. :mod:`transformer`: the whole (figure 1)
"""
