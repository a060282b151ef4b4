"""Fast versions of training code. Tests compare each with its readable version."""
