"""Fast versions of model parts. Tests check that they compute the same as the readable versions."""
