"""CCMTL and the methods that its paper compares with, as estimators of scikit-learn.

The extra "reproduce" brings scikit-learn; nothing else of the library needs it.

Examples
--------
>>> from ccmtl_core.methods import CCMTL, Trace
>>> X, y, shop = [[1.0], [2.0], [1.0], [2.0]], [1.0, 2.0, 3.0, 6.5], ["a", "a", "b", "b"]
>>> [type(m).__name__ for m in (CCMTL(0.1), Trace(0.1)) if m.fit(X, y, shop).predict([[1.0]], ["b"]) > 3]
['CCMTL', 'Trace']
"""

from ccmtl_core.methods.clustered import CMTL
from ccmtl_core.methods.estimator import TaskRegressor
from ccmtl_core.methods.factors import BiFactor, TriFactor
from ccmtl_core.methods.fused import ADMM, CCMTL, SRMTL, FuseMTL
from ccmtl_core.methods.low_rank import L21, RMTL, Trace
from ccmtl_core.methods.single import ITL, STL, Shrunk

__all__ = [
    "ADMM", "CCMTL", "CMTL", "ITL", "L21", "RMTL", "SRMTL", "STL", "BiFactor", "FuseMTL", "Shrunk",
    "TaskRegressor", "Trace", "TriFactor",
]  # fmt: skip
