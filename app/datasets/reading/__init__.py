"""From a file to typed columns, or to faults that name row and column."""
