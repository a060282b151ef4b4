"""Fast twins of the decoder: the same sums as the plain form; tests hold them equal."""
