"""What every part of the library uses: array types, checks of arguments and arrays, errors, display."""
