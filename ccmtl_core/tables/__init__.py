"""Tables in files and databases, read into datasets and statistics."""

from ccmtl_core.tables.dialects.dialect import Dialect, ReadOptions, Trait
from ccmtl_core.tables.dialects.read_table import ReadTable, read_table
from ccmtl_core.tables.table import Note

__all__ = ["Dialect", "Note", "ReadOptions", "ReadTable", "Trait", "read_table"]
