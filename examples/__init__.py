"""What can be done with CCMTL, as programs to run and read."""
