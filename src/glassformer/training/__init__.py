"""Training, with the loss (section 5.4), optimiser and schedule (section 5.3), and one loop."""
