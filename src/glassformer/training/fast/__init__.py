"""Fast twins of training code; tests hold each twin's sums equal to the plain form's sums."""
