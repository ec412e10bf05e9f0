"""The client: where the service is, who asks, and what can be asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx2

from ccmtl_client.datasets import Datasets
from ccmtl_client.frames import (
    ARROW,
    KINDS,
    Kind,
    arrow_parts,
    as_kind,
    as_polars,
    cells,
    forecasts_frame,
    library,
    read_arrow,
)
from ccmtl_client.jobs import Job, Jobs
from ccmtl_client.models import Models, model_path
from ccmtl_client.schedules import Schedules
from ccmtl_client.webhooks import Webhooks
from ccmtl_client.wire import Answer, Response, Wire


class Client:
    """A client of the service; threads may share one.

    What fails on its way, or is answered 408, 429, 502, 503, 504 or ``dataset_changed``, is sent again, with
    pauses that grow, and as long as ``Retry-After`` asks for. Requests that must not be carried out twice
    have a key by which the service knows them again.

    Parameters
    ----------
    base_url : str
        Where the service is.
    api_key : str, optional
        A key that ``ccmtl keys create`` printed.
    timeout : float
        Seconds to wait for a connection (at most 10 of them), and for each piece of an answer.
    retry_for : float
        Seconds after a first failure in which a request is sent again; 0: never.
    tables : {"polars", "pandas", "arrow"}
        The library whose tables are returned.
    transport : httpx2.BaseTransport, optional
        What carries requests, as for a proxy of your own or for tests.

    Raises
    ------
    ValueError
        The address begins with neither http:// nor https://, the key cannot be one, or there are no such
        tables.

    Examples
    --------
    >>> with Client("http://127.0.0.1:8000", api_key="ccmtl_KEY") as client:
    ...     print(client)
    Client('http://127.0.0.1:8000')
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        retry_for: float = 60.0,
        tables: Kind = "polars",
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"base_url must begin with http:// or https://, not {base_url!r}")
        if tables not in KINDS:
            raise ValueError(f"tables must be one of {', '.join(map(repr, KINDS))}, not {tables!r}")
        headers = {"User-Agent": "ccmtl_client"}
        if api_key is not None:
            if not re.fullmatch("[!-~]+", api_key):
                raise ValueError("api_key must be the key alone, without spaces or the end of a line")
            headers["Authorization"] = f"Bearer {api_key}"
        http = httpx2.Client(base_url=base_url, headers=headers, transport=transport)
        self._base_url, self._tables = base_url, tables
        self._wire = Wire(http, timeout, retry_for)
        self.datasets = Datasets(self._wire)
        self.jobs = Jobs(self._wire)
        self.models = Models(self._wire, tables)
        self.schedules = Schedules(self._wire)
        self.webhooks = Webhooks(self._wire)

    def __repr__(self) -> str:
        return f"Client({self._base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._wire.http.close()

    def request(self, method: str, path: str, json: Any = None, **params: Any) -> Any:
        """Send any request of the reference, with the tries and errors of all others.

        Parameters
        ----------
        method : str
            As ``"GET"``; a ``POST`` is sent again only where it cannot have been carried out before.
        path : str
            As ``"/v1/models/shop/clusters"``.
        json : optional
            The body.
        **params
            Of the query.

        Returns
        -------
        object
            The JSON of the answer; None where it is empty.

        Examples
        --------
        >>> client.request("GET", "/v1/models/shop/tasks", unique_id="0001")["n_samples"]
        54
        """
        return self._wire.call(method, path, json=json, params=params, repeatable=method != "POST")

    def train(self, dataset: str, model: str, *, idempotency_key: str | None = None, **request: Any) -> Job:
        """Queue a training of a model on the newest version of a dataset.

        Parameters
        ----------
        dataset : str
            The dataset.
        model : str
            Where the next version is published.
        idempotency_key : str, optional
            The same key with the same request returns the job that it created before, as for a program that
            may be started twice; without one, each call makes one job.
        **request
            The rest of the request, as ``horizon=7``, ``fusion_strength="auto"`` or ``version=3``.

        Returns
        -------
        Job
            Its ``wait`` follows it to its end.

        Raises
        ------
        InvalidContent
            The training cannot work; ``faults`` has every reason.

        Examples
        --------
        >>> client.train("shop", "shop", lags=2, fusion_strength=1, idempotency_key="night-1").state
        'queued'
        """
        return self.jobs.start({"dataset": dataset, "model": model, **request}, idempotency_key)

    def predict(self, model: str, rows: Any) -> Any:
        """Predict rows of features.

        Parameters
        ----------
        model : str
            The model, an alias or a version.
        rows : mapping or table
            Columns: ``unique_id``, and one for each feature. A mapping of lists is sent as JSON, which needs
            no other library; a table of polars, pandas or Arrow as Arrow, which is faster for many rows.

        Returns
        -------
        dict or table
            ``unique_id``, ``yhat`` and ``status``: of lists for a mapping, else a table. ``yhat`` is null
            where the status is not ``ok``.

        Raises
        ------
        NotFound
            The model, or the product of a single row, is unknown.
        InvalidContent
            Features are missing, unknown or not finite.

        Examples
        --------
        >>> client.predict("shop", {"unique_id": ["0001"], "lag_1": [3], "lag_2": [1]})["status"]
        ['ok']
        """
        path = f"{model_path(model)}/predict"
        if isinstance(rows, Mapping):
            columns = cells(rows) or {}
            body = {"unique_id": columns.pop("unique_id", []), "features": columns}
            answer = self._wire.call("POST", path, json=body)
            return {name: answer[name] for name in ("unique_id", "yhat", "status")}
        headers = {"Content-Type": ARROW}
        answers = [
            read_arrow(self._wire.send("POST", path, Response.read, content=part, headers=headers))
            for part in arrow_parts(as_polars(rows))
        ]
        return as_kind(library("polars", "a table").concat(answers), self._tables)

    def forecast(
        self,
        model: str,
        unique_id: str | Iterable[str],
        h: int | None = None,
        *,
        level: Sequence[float] = (),
        quantiles: Sequence[float] = (),
        future: Any = None,
        attributes: Any = None,
        history: Any = None,
    ) -> Any:
        """Forecast some products from their newest values that are stored.

        Parameters
        ----------
        model : str
            The model, an alias or a version.
        unique_id : str or iterable of str
            The products.
        h : int, optional
            Periods ahead; by default the model's horizon.
        level : sequence of float
            Percentages of values that ranges shall hold: 80 adds ``yhat_lo_80`` and ``yhat_hi_80``.
        quantiles : sequence of float
            Probabilities that a value is not above the quantile: 0.1 adds ``yhat_q_10``.
        future, attributes, history : mapping or table, optional
            What will be known of the periods ahead, and attributes and first values of new products.

        Returns
        -------
        table
            A row for each product and period: ``unique_id``, ``ds``, ``yhat``, ranges, quantiles, ``status``.

        Raises
        ------
        InvalidContent
            What must be known is missing (``missing_columns``), or something else is wrong with the request.

        Examples
        --------
        >>> client.forecast("shop", ["0001", "0002"], h=3).shape
        (6, 4)
        """
        body = {
            "unique_id": [unique_id] if isinstance(unique_id, str) else list(unique_id),
            **_ahead(h, level, quantiles, future),
            "attributes": cells(attributes),
            "history": cells(history),
        }
        answer = self._wire.call("POST", f"{model_path(model)}/forecast", json=body)
        return as_kind(forecasts_frame(answer["forecasts"]), self._tables)

    def forecast_all(
        self,
        model: str,
        h: int | None = None,
        *,
        level: Sequence[float] = (),
        quantiles: Sequence[float] = (),
        future: Any = None,
    ) -> Any:
        """Forecast all products, which come as one Arrow stream.

        Parameters
        ----------
        model, h, level, quantiles, future
            As of :meth:`forecast`.

        Returns
        -------
        table
            As of :meth:`forecast`, without products that cannot be forecast.

        Examples
        --------
        >>> client.forecast_all("shop", h=3).height
        90
        """
        path, body = f"{model_path(model)}/forecasts", _ahead(h, level, quantiles, future)
        content = self._wire.send("POST", path, Response.read, json=body, headers={"Accept": ARROW})
        return as_kind(read_arrow(content), self._tables)

    def missing_columns(
        self, model: str, unique_id: str | Iterable[str] = (), h: int | None = None
    ) -> list[Answer]:
        """List what must be known for forecasts of some or all products, and is not stored.

        Parameters
        ----------
        model, unique_id, h
            As of :meth:`forecast`; without products, all are meant.

        Returns
        -------
        list of dict
            ``unique_id``, ``ds`` and ``columns``.
        """
        ids = [unique_id] if isinstance(unique_id, str) else list(unique_id)
        answer = self._wire.call(
            "GET", f"{model_path(model)}/missing-columns", params={"unique_id": ids or None, "h": h}
        )
        missing: list[Answer] = answer["missing"]
        return missing


def _ahead(h: int | None, level: Sequence[float], quantiles: Sequence[float], future: Any) -> Answer:
    ranges = {"level": list(level) or None, "quantiles": list(quantiles) or None}
    return {"h": h, **ranges, "future": cells(future)}
