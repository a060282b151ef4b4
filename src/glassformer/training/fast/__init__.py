"""Fast twins of training: the same sums as the plain form, held equal by tests."""
