"""Fast twins of the searches: the same sums as the plain forms, held equal by tests."""
