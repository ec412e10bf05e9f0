"""From a table to an understood dataset, with a report of what was found, repaired and left out."""

from ccmtl_core.inspection.inspecting import inspect
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.report import Accounts, Finding, InspectionReport, Sample, Trait

__all__ = ["Accounts", "Finding", "InspectionReport", "Policies", "Sample", "Trait", "inspect"]
