"""Search for the best target: greedy, beam, sampling, on any step function and state."""
