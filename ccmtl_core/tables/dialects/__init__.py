"""How a file is written: what is stated of it, and what is guessed and why; and its reading as a table."""
