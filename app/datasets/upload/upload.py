"""Make a decoded upload the next version of its dataset, or refuse it and leave nothing behind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import polars as pl
from sqlalchemy.orm import Session

from app.datasets import repository
from app.datasets.definition import Definition, SeriesDefinition
from app.datasets.receive import Bounds
from app.datasets.schemas import OverlapPolicy, UploadMode, UploadOutcome, UploadReport
from app.datasets.stored.coverage import Summary, drop_summary, find_summary, save_summary
from app.datasets.stored.frames import definition_of, discard, read_segments, unreadable
from app.datasets.stored.period_values import PeriodValues, by_period
from app.datasets.stored.segment_file import write_segment
from app.datasets.upload.extent import Base, summary_of_rows
from app.datasets.upload.ingest import Upload, ingest
from app.http.errors import Conflict
from app.persistence.database import Database
from app.persistence.models import DatasetVersion, Segment
from app.persistence.storage import SegmentDamaged, Storage, file_sha256

_MOST_ATTEMPTS = 10


class _Changed(Conflict):
    """Another upload was stored first, so that this one was checked against what is no longer the newest."""


class _SentBefore(Exception):
    """The same upload with the same idempotency key was stored before."""

    def __init__(self, name: str, version: DatasetVersion) -> None:
        super().__init__(version.number)
        self.outcome = _outcome(name, version, UploadReport.model_validate(version.report))


class _Target(NamedTuple):
    """The dataset that an upload goes to, and the version that it is appended to, if any."""

    dataset_id: str
    definition: Definition
    base: Base | None
    digests: Sequence[str]  # of the segments of the newest version


def add_version(
    database: Database, storage: Storage, name: str, upload: Upload, bounds: Bounds
) -> UploadOutcome:
    """Validate an upload and, unless it is a dry run, make it the newest version of the dataset.

    An append that another one came before is checked again, against the version that has become the newest.
    One that was stored before under the same idempotency key returns the version that it made. Raise
    InvalidContent with every fault of the file, and Conflict if its rows may be there already, its key is
    that of another upload, or the dataset keeps changing meanwhile.
    """
    try:
        for _ in range(_MOST_ATTEMPTS - 1):
            try:
                return _add_version(database, storage, name, upload, bounds)
            except _Changed:
                continue
        return _add_version(database, storage, name, upload, bounds)
    except _SentBefore as sent:
        return sent.outcome


def _add_version(
    database: Database, storage: Storage, name: str, upload: Upload, bounds: Bounds
) -> UploadOutcome:
    target = _target(database, storage, name, upload.mode)
    base = target.base

    def refuse_repeated(digest: str) -> None:
        if base is not None and digest in base.digests:
            with database.read() as session:
                number = repository.first_version_with(session, target.dataset_id, digest)
                earlier = repository.version_with_key(session, target.dataset_id, upload.key)
            if earlier is not None and earlier.number == number:
                raise _sent_before(name, earlier, is_same=earlier.report["mode"] == upload.mode)
            raise Conflict(
                "already_appended",
                f"The dataset {name!r} has these very rows since version {number}: they would count twice. "
                "If the answer to this upload was lost, that version is what it made.",
                suggestions=[str(number)],
            )

    def refuse_repeated_segment(segment: pl.DataFrame) -> None:
        with storage.incoming() as path:
            write_segment(segment, path)
            refuse_repeated(file_sha256(path))

    stored = partial(_stored, storage, target) if target.digests else None
    with storage.incoming() as path:
        extent, report = ingest(
            upload, target.definition, base, bounds, stored, refuse_repeated_segment, storage, path
        )
        if extent.segment is not None:
            write_segment(extent.segment, path)
        digest = file_sha256(path)
        refuse_repeated(digest)
        if upload.overlap is OverlapPolicy.REFUSE and extent.overlap and extent.overlap.is_doubtful:
            raise extent.overlap.refusal(name, report.inspection)
        version = None
        if not upload.dry_run:
            try:
                with storage.publishing():
                    n_bytes = storage.commit(path, digest)
                    added = Segment(sha256=digest, n_rows=extent.upload.values, n_bytes=n_bytes)
                    with database.write() as session:
                        version = _insert(session, name, target, added, extent.summary, report)
            except BaseException:
                discard(database, storage, digest)
                raise
    return _outcome(name, version, report)


def _outcome(name: str, version: DatasetVersion | None, report: UploadReport) -> UploadOutcome:
    return UploadOutcome(
        dataset=name,
        version=version and version.number,
        id=version and version.id,
        created_at=version and version.created_at,
        report=report,
    )


def _target(database: Database, storage: Storage, name: str, mode: UploadMode) -> _Target:
    with database.read() as session:
        dataset = repository.find_dataset(session, name)
        definition = definition_of(dataset)
        newest = repository.newest_version(session, dataset.id)
        if newest is None:
            return _Target(dataset.id, definition, None, ())
        digests = [segment.sha256 for segment in repository.segments_of(session, newest.id)]
        if mode is UploadMode.FULL:
            return _Target(dataset.id, definition, None, digests)
        summary = find_summary(session, newest.id)
    if summary is None:  # the version is from before summaries were stored
        try:
            summary = _summary(storage, definition, digests)
        except SegmentDamaged as error:
            raise unreadable(database, newest.id, error) from error
    report = UploadReport.model_validate(newest.report)
    dropped = [
        one.model_copy(update={"version": one.version or newest.number}) for one in report.dropped_periods
    ]
    base = Base(newest.id, digests, report.time_zone, summary, dropped)
    return _Target(dataset.id, definition, base, digests)


def _stored(storage: Storage, target: _Target) -> PeriodValues | None:
    """The values of the newest version; None where it is damaged and to be replaced."""
    definition = target.definition
    if not isinstance(definition, SeriesDefinition):
        return None
    try:
        rows = read_segments(storage, target.digests)
    except SegmentDamaged:  # what reads the version tells of it; an upload in full replaces it
        return None
    return by_period(rows, definition.frequency, definition.aggregation)


def _summary(storage: Storage, definition: Definition, digests: Sequence[str]) -> Summary:
    if isinstance(definition, SeriesDefinition):
        rows = read_segments(storage, digests)
        return Summary(by_period(rows, definition.frequency, definition.aggregation).runs())
    return summary_of_rows(read_segments(storage, [digest]) for digest in digests)


def _check_key(session: Session, name: str, dataset_id: str, added: Segment, report: UploadReport) -> None:
    """Raise where a version has the idempotency key: _SentBefore if it has the same data, else Conflict."""
    earlier = repository.version_with_key(session, dataset_id, report.idempotency_key)
    if earlier is None:
        return
    *_, last = repository.segments_of(session, earlier.id)
    is_same = (last.sha256, earlier.report["mode"]) == (added.sha256, report.mode)
    raise _sent_before(name, earlier, is_same=is_same)


def _sent_before(name: str, earlier: DatasetVersion, *, is_same: bool) -> Exception:
    """What ends an upload whose idempotency key made a version: that version if it is the same upload."""
    if is_same:
        return _SentBefore(name, earlier)
    return Conflict(
        "idempotency_key_reused",
        f"This Idempotency-Key belongs to the upload that made version {earlier.number}, which was another.",
    )


def _insert(
    session: Session, name: str, target: _Target, added: Segment, summary: Summary, report: UploadReport
) -> DatasetVersion:
    dataset = repository.find_dataset(session, name, lock=True)
    _check_key(session, name, dataset.id, added, report)
    newest = repository.newest_version(session, dataset.id)
    is_append = report.mode is UploadMode.APPEND
    base_id, newest_id = target.base and target.base.id, newest and newest.id
    if dataset.id != target.dataset_id or (is_append and newest_id != base_id):
        raise _Changed("dataset_changed", f"The dataset {name!r} changed during the upload; send it again.")
    kept = repository.segments_of(session, newest.id) if newest is not None and is_append else []
    version = DatasetVersion(
        dataset_id=dataset.id,
        number=1 if newest is None else newest.number + 1,
        report=report.model_dump(mode="json"),
        segments=[
            Segment(position=i, sha256=s.sha256, n_rows=s.n_rows, n_bytes=s.n_bytes)
            for i, s in enumerate([*kept, added])
        ],
    )
    session.add(version)
    session.flush()
    save_summary(session, version.id, summary, target.definition)
    if newest is not None:
        drop_summary(session, newest.id)
    return version
