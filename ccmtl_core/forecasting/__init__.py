"""Forecasts of many series: what users import for them, with the series' own calendar, panel and lags.

They stand in the stub beside this file; each is imported when it is first asked for.
"""

from ccmtl_core.base import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
