"""For each lesson its probes, its faults as switches of a reference, and its laws."""
