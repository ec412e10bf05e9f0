"""The base of values that hold read-only arrays, and whose copies do, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmtl_core.base.arrays import locked


class FrozenValue:
    """A frozen dataclass whose arrays stay read-only when pickle, ``copy.deepcopy`` or joblib copies them."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            is_new = isinstance(value, np.ndarray) and value.flags.writeable
            self.__dict__[name] = locked(value) if is_new else value
