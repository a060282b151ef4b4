"""Fast twins of the decoder: the same sums as the plain form, held equal by tests."""
