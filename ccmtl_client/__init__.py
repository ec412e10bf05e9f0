"""A client of the service: upload, train, wait, forecast and predict from Python.

It knows the HTTP interface alone, and imports neither the service nor the library.
"""

try:
    import httpx2 as _httpx2  # noqa: F401 - said here in words, rather than by what imports it below
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "ccmtl_client needs httpx2: pip install httpx2 (the extra `client` of ccmtl brings it)", name="httpx2"
    ) from error

from ccmtl_client.client import Client
from ccmtl_client.errors import (
    ApiError,
    BadRequest,
    ClientError,
    Conflict,
    Forbidden,
    InvalidContent,
    JobFailed,
    MissingLibrary,
    NoAnswer,
    NotFound,
    PayloadTooLarge,
    ServiceFailed,
    ServiceUnavailable,
    StrangeAnswer,
    TooManyRequests,
    Unauthorized,
    WaitedTooLong,
)
from ccmtl_client.jobs import Job
from ccmtl_client.progress import Progress

__all__ = [
    "ApiError",
    "BadRequest",
    "Client",
    "ClientError",
    "Conflict",
    "Forbidden",
    "InvalidContent",
    "Job",
    "JobFailed",
    "MissingLibrary",
    "NoAnswer",
    "NotFound",
    "PayloadTooLarge",
    "Progress",
    "ServiceFailed",
    "ServiceUnavailable",
    "StrangeAnswer",
    "TooManyRequests",
    "Unauthorized",
    "WaitedTooLong",
]
