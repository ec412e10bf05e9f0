"""Models: their versions, the aliases that say which of them is served, and their weights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ccmtl_client.datasets import delete
from ccmtl_client.errors import Conflict
from ccmtl_client.frames import ARROW, Kind, as_kind, read_arrow
from ccmtl_client.wire import Answer, Response, Wire

PARQUET = "application/vnd.apache.parquet"


class Models:
    """The models of the service: ``client.models``.

    A model is named as in the paths of the service: ``"shop"`` is its newest version, ``"shop@production"``
    the one that an alias names, ``"shop/versions/3"`` a certain one.
    """

    def __init__(self, wire: Wire, tables: Kind) -> None:
        self._wire, self._tables = wire, tables

    def list(self) -> Iterator[Answer]:
        """Yield all models by name."""
        return self._wire.pages("/v1/models")

    def get(self, model: str) -> Answer:
        """Return a model and its newest version, or one version with its metrics and configuration."""
        found: Answer = self._wire.call("GET", model_path(model))
        return found

    def versions(self, name: str) -> Iterator[Answer]:
        """Yield a model's versions, newest first."""
        return self._wire.pages(f"{model_path(name)}/versions")

    def aliases(self, name: str) -> dict[str, int]:
        """Return the version that each alias of a model names."""
        found = self._wire.call("GET", f"{model_path(name)}/aliases")["items"]
        return {item["alias"]: item["version"] for item in found}

    def promote(self, name: str, version: int, alias: str = "production") -> Answer:
        """Let an alias name a version: at once, in other API processes within a second.

        Parameters
        ----------
        name : str
            The model.
        version : int
            The number of the version.
        alias : str
            The alias; it is made if there is none of this name.

        Returns
        -------
        dict
            The alias, with ``version`` and ``previous_version``.

        Examples
        --------
        >>> client.models.promote("shop", 1)["version"]
        1
        """
        put: Answer = self._wire.call("PUT", self._alias(name, alias), json={"version": version})
        return put

    def rollback(self, name: str, alias: str = "production") -> Answer:
        """Let an alias name the version that it named before.

        Parameters
        ----------
        name, alias : str
            The model, and its alias.

        Returns
        -------
        dict
            The alias, with the version that it names now.

        Raises
        ------
        Conflict
            There is no version to go back to, as after a rollback.
        """
        path = self._alias(name, alias)
        before = self._wire.call("GET", path)["previous_version"]
        try:
            alias_now: Answer = self._wire.call("POST", f"{path}/rollback")
        except Conflict as error:  # it may be done by a try whose answer was lost
            alias_now = self._wire.call("GET", path)
            if not error.maybe_done or alias_now["version"] != before:
                raise
        return alias_now

    def weights(self, model: str) -> Any:
        """Return the weights of all products: a row of each, with ``unique_id``, ``intercept``, ``weight_…``.

        Parameters
        ----------
        model : str
            The model, an alias or a version.

        Returns
        -------
        DataFrame or Table
            Of the library that the client was made with.

        Examples
        --------
        >>> client.models.weights("shop").columns
        ['unique_id', 'intercept', 'weight_lag_1', 'weight_lag_2']
        """
        path = f"{model_path(model)}/weights"
        content = self._wire.send("GET", path, Response.read, headers={"Accept": ARROW})
        return as_kind(read_arrow(content), self._tables)

    def save_weights(self, model: str, file: str | os.PathLike[str]) -> Path:
        """Write the weights to a Parquet file, whole or not at all, and return its path."""
        path, part = Path(file), Path(f"{os.fspath(file)}.part")

        def read(response: Response) -> None:
            with part.open("wb") as target:
                for piece in response.iter_bytes():
                    target.write(piece)
            part.replace(path)

        try:
            self._wire.send("GET", f"{model_path(model)}/weights", read, headers={"Accept": PARQUET})
        finally:
            part.unlink(missing_ok=True)
        return path

    def delete(self, model: str) -> None:
        """Delete a model with all versions, or the one version that is named; aliases protect theirs."""
        delete(self._wire, model_path(model))

    @staticmethod
    def _alias(name: str, alias: str) -> str:
        return f"{model_path(name)}/aliases/{quote(alias, safe='')}"


def model_path(model: str) -> str:
    """Return the path of a model, an alias or a version."""
    return f"/v1/models/{quote(model, safe='/@')}"
