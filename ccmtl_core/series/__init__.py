"""Series as data: their calendar, the panel of their values, lagged rows, and forecasts by recursion."""
