"""Which target word was made from which source word."""
