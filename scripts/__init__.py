"""Programs for those who work on this repository; the Makefile runs them."""
