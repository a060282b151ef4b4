"""The trace: one versioned record that the page, the plots and the tests read."""
