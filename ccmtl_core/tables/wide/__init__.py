"""Tables with a column for each period, or for each series: told from long ones, and written as such."""
