"""Fast twins of the searches' sums: the same as the plain forms, held equal by tests."""

__all__: list[str] = []
