"""Fast versions of the searches. Tests check that they find the same as the readable versions."""
