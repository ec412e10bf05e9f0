"""Each error is of this library and of the fitting builtin, survives pickling, and reads well."""

from __future__ import annotations

import pickle

import pytest

from ccmtl_core import (
    CCMTLError,
    ConvergenceError,
    DataError,
    ModelFileError,
    ParameterError,
    UnknownTaskError,
)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (DataError("x"), ValueError),
        (ParameterError("x"), ValueError),
        (UnknownTaskError("x"), KeyError),
        (ModelFileError("x"), ValueError),
        (ConvergenceError("x"), RuntimeError),
    ],
)
def test_errors_belong_to_both_trees(error: CCMTLError, builtin: type[Exception]) -> None:
    assert isinstance(error, CCMTLError)
    assert isinstance(error, builtin)


@pytest.mark.parametrize(
    "error", [DataError(["a", "b"], n_faults=70), DataError("a"), UnknownTaskError("q", ["p"])]
)
def test_errors_cross_process_borders(error: CCMTLError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_long_list_of_faults_is_shortened_in_the_message_only() -> None:
    error = DataError([f"fault {i}" for i in range(15)], n_faults=40)
    assert str(error).splitlines()[0] == "40 faults in the data:"
    assert str(error).splitlines()[-1] == "- and 30 more"
    assert len(error.faults) == 15


def test_a_single_fault_is_the_message() -> None:
    assert str(DataError(["only this"])) == "only this"
