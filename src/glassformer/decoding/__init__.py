"""Search for a target by greedy search, beam search or sampling, with any step function and state.

Read the files in this order:

1. `protocols`: the step function, the state and the hypothesis
2. `greedy`: the most probable token at every step
3. `beam`: beam search with the paper's length penalty (section 6.1), one sentence at a time
4. `sampling`: targets drawn at random
5. `vocabulary`, `constraints`: the special ids, and the tokens that a target may or must hold
6. `logits_processors`: repetition penalty, n-grams that do not repeat, minimum length
7. `batched`: many sentences through a model
8. `engine`: one interface for the searches here and for other libraries

`fast` holds greedy and beam search of batches, and a quicker top-k. A reader can skip it.
"""
