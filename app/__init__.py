"""The forecasting service: HTTP, database and background training around ``ccmtl_core``."""
