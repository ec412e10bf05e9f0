"""The version of this program, read once: each look at the metadata of the installed package parses them."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("ccmtl")
