"""Learning: the loss (section 5.4), the optimiser and schedule (section 5.3), and the one loop."""
