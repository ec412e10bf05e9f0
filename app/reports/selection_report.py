"""Describes how a strength was chosen, for the reports of the service and of ``ccmtl fit``."""

from __future__ import annotations

import math
from typing import Any

from ccmtl_core import Selection


def described(selection: Selection) -> dict[str, Any]:
    """What a report keeps of the choice; errors are means over the folds.

    Parameters
    ----------
    selection : Selection
        Scored by the mean over tasks of their own root mean squared errors.

    Returns
    -------
    dict
        What JSON can hold; standard errors are null where one part alone was held out.
    """
    return {
        "folds": selection.folds,
        "order": selection.order,
        "n_folds": len(selection.fold_errors),
        "rule": selection.rule,
        "score": "rmse_mean_of_tasks",
        "fusion_strengths": selection.fusion_strengths.tolist(),
        "errors": selection.errors.tolist(),
        "standard_errors": [e if math.isfinite(e) else None for e in selection.standard_errors.tolist()],
        "n_groups": selection.n_groups.mean(axis=0).tolist(),
        "largest_gap": float(selection.gaps.max()),
        "chosen": selection.chosen,
        "rivals": {name: float(errors.mean()) for name, errors in selection.rivals.items()},
    }


def in_words(report: dict[str, Any]) -> str:
    """The same on one line."""
    rivals = ", ".join(f"{name.replace('_', ' ')} {error:.6g}" for name, error in report["rivals"].items())
    by = f" by the order of {report['order']}" if report["order"] else ""
    return (
        f"best of {len(report['errors'])} strengths on {report['n_folds']} {report['folds']} folds{by}: mean "
        f"RMSE of the tasks {report['errors'][report['chosen']]:.6g}; {rivals}"
    )
