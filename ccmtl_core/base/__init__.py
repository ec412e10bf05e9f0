"""What every part of the library uses: array types, checks of arguments and arrays, errors, display."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from sys import modules
from typing import Any


def named_in_stub(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package whose stub imports what users name.

    A name is imported when it is first asked for, so that a process loads no more than it uses.

    Parameters
    ----------
    package, file : str
        Its ``__name__`` and its ``__file__``, beside which the stub is.

    Returns
    -------
    (list of str, callable, callable)
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [one for one in stub.body if isinstance(one, ast.ImportFrom)]
    home = {name.name: str(one.module) for one in imports for name in one.names}
    names = next(ast.literal_eval(one.value) for one in stub.body if isinstance(one, ast.Assign))

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(modules[package], name, value)
        return value

    return names, find, lambda: list(names)
