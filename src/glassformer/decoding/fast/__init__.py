"""Fast twins of the searches: the same sums as the plain forms; tests hold them equal."""
