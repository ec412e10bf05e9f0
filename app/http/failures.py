"""Tell what is answered where the database or the disk fails."""

from __future__ import annotations

import errno

from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.http.errors import AppError, InsufficientStorage, ServiceUnavailable

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_UNUSABLE = {
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ESTALE, errno.ETIMEDOUT),  # the folder is gone
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),  # the process or the machine is at its limit
}


def _storage_full() -> InsufficientStorage:
    return InsufficientStorage(
        "storage_full",
        "The service's disk is full. Nothing of this request was stored; send it again when there is room.",
    )


def is_full(error: OSError) -> bool:
    """Whether an error of a file says that there is no room left."""
    return error.errno in _FULL


def _is_database_full(error: SQLAlchemyError) -> bool:
    driver = getattr(error, "orig", None)
    name, state = getattr(driver, "sqlite_errorname", None), getattr(driver, "sqlstate", None)
    return name == "SQLITE_FULL" or state == "53100"


def failure_of(error: SQLAlchemyError | OSError) -> AppError | None:
    """Return what is answered where the database or the data folder fails; None: the program is at fault."""
    if isinstance(error, OSError):
        if error.errno not in _FULL | _UNUSABLE:
            return None
        if is_full(error):
            return _storage_full()
        detail = "The service cannot use its data folder; the operator's log says why. Nothing was stored."
        return ServiceUnavailable("storage_unavailable", detail)
    if not isinstance(error, OperationalError | PoolTimeout):
        return None
    if _is_database_full(error):
        return _storage_full()
    detail = "The database does not answer, or cannot be used; try again."
    return ServiceUnavailable("database_unavailable", detail)
