"""The base of values that hold read-only arrays, so that copies of them hold read-only arrays too.

Pickle, ``copy.deepcopy`` and joblib make arrays anew, and new arrays can be written to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmtl_core.base.arrays import locked


class FrozenValue:
    """A frozen dataclass whose arrays are read-only, also after it was pickled or copied."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            is_new = isinstance(value, np.ndarray) and value.flags.writeable
            self.__dict__[name] = locked(value) if is_new else value
