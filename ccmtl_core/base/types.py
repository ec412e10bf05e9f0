"""Names of array types, and a table of the letters used in formulas and compiled loops.

====== ======================= ===================== ===================================================
letter word                    shape                 meaning
====== ======================= ===================== ===================================================
T      ``n_tasks``                                   tasks (products, stores, schools)
P      ``n_features``                                features, shared by all tasks
n_t    ``n_samples[t]``                              rows of task t; n is their sum over the tasks
E      ``len(edges)``                                undirected edges of the task graph
X      ``X``                   (n, P)                features, rows grouped by task
y      ``y``                   (n,)                  targets
W      ``weights``             (T, P)                one linear model per task
W0     ``single_task_weights`` (T, P)                minimum-norm least squares of each task alone
G      ``gram``                (T, P, P)             X_tᵀ X_t
c      ``xty``                 (T, P)                X_tᵀ y_t
R      ``factor``              (T, P+1, P+1)         upper triangular, Rᵀ R = [X_t y_t]ᵀ [X_t y_t]
λ      ``fusion_strength``                           weight of the fusion penalty
k      ``n_neighbors``                               neighbours of each task in the graph
m      ``multiplicity``        (E,)                  1, or 2 where each task is the other's neighbour
r      ``radius``              (E,)                  λ m / 2, the weight of an edge in the penalty
w      ``edge_weights``        (E,)                  r / √(‖W_i − W_j‖² + ε²), of the alternation
====== ======================= ===================== ===================================================
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.integer[Any]]
BoolArray: TypeAlias = NDArray[np.bool_]

EPS = float(np.finfo(np.float64).eps)
