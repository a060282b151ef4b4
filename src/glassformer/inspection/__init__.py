"""Looking inside: capture what a model computes, and draw it."""
