"""What is left in the end, compared with what was accepted."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterator

import httpx2
import numpy as np
import polars as pl
from sqlalchemy import select

from app.persistence.database import Database
from app.persistence.models import Dataset, DatasetVersion, Model, ModelVersion, TrainingJob
from app.persistence.storage import SegmentDamaged, Storage
from app.settings import Settings
from benchmarks.chaos.load import Record, Rows, Sent

Version = tuple[str, int]


def lost_or_changed(settings: Settings, record: Record, *, may_be_full: bool) -> Iterator[str]:
    """Yield what is wrong with what is stored, in words."""
    database, storage = Database(settings), Storage(settings.data_dir)
    try:
        yield from _datasets(_Stored(database, storage), record)
        yield from _jobs(database, record, may_be_full=may_be_full)
        yield from _versions(database, record)
    finally:
        database.dispose()


class _Stored:
    """The versions of datasets, by name and number, and what their newest rows are."""

    def __init__(self, database: Database, storage: Storage) -> None:
        with database.read() as session:
            found = session.execute(select(Dataset.name, DatasetVersion).join(DatasetVersion.dataset)).all()
            numbers = [
                ((name, version.number), [s.sha256 for s in version.segments]) for name, version in found
            ]
        self.digests = dict(numbers)
        self.twice = [at for at, n in Counter(at for at, _ in numbers).items() if n > 1]
        self._storage = storage
        self._contents: dict[str, str] = {}

    def content(self, at: Version) -> str:
        """Return a digest of the rows that a version added; raise SegmentDamaged if they cannot be read."""
        digest = self.digests[at][-1]
        if digest not in self._contents:
            rows = pl.read_parquet(self._storage.verified_segment(digest))
            self._contents[digest] = _content(rows.select("unique_id", "ds", "y"))
        return self._contents[digest]


def _content(frame: pl.DataFrame) -> str:
    return hashlib.sha256(frame.write_csv(datetime_format="%Y-%m-%d").encode()).hexdigest()


def _sent_content(rows: Rows) -> str:
    frame = pl.DataFrame(rows, schema=["unique_id", "ds", "y"], orient="row")
    return _content(frame.with_columns(pl.col("ds").str.to_datetime(time_unit="us")))


def _datasets(stored: _Stored, record: Record) -> Iterator[str]:
    """Each accepted file is a version, with its rows as they were sent, and nothing else is one."""
    yield from (f"dataset {name} has version {number} twice" for name, number in stored.twice)
    for name in {name for name, _ in stored.digests}:
        numbers = sorted(number for of, number in stored.digests if of == name)
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"dataset {name} has the versions {numbers}"
    explained: set[Version] = set()
    for sent in record.uploads:
        found, problems = _versions_of(sent, stored)
        explained |= found
        yield from problems
    for sent in record.unanswered:
        explained |= _versions_of(sent, stored)[0]
    for name, number in set(stored.digests) - explained:
        yield f"version {number} of dataset {name} is none of the accepted files"


def _versions_of(sent: Sent, stored: _Stored) -> tuple[set[Version], list[str]]:
    """Return the versions that a file became, more than one if it was sent again, and what is wrong."""
    at = sent.version and (sent.dataset, sent.version)
    if at and at not in stored.digests:
        return set(), [f"version {sent.version} of dataset {sent.dataset} was accepted and is lost"]
    content, found, problems = _sent_content(sent.rows), set(), []
    is_certain = at and not sent.is_repeated
    for candidate in [at] if at and is_certain else [one for one in stored.digests if one[0] == sent.dataset]:
        which = f"version {candidate[1]} of dataset {candidate[0]}"
        try:
            is_same = stored.content(candidate) == content
        except SegmentDamaged as error:
            problems.append(f"{which}: {error}")
            continue
        before = stored.digests.get((candidate[0], candidate[1] - 1), []) if sent.is_append else []
        if is_same and stored.digests[candidate][:-1] != before:
            problems.append(f"{which} does not follow the one before")
        elif is_same:
            found.add(candidate)
    if at and at not in found and not problems:
        problems.append(f"version {at[1]} of dataset {at[0]} has other rows than were sent")
    if not found and not problems:
        problems.append(f"no version of dataset {sent.dataset} has the rows of an accepted file")
    return found, problems


def _jobs(database: Database, record: Record, *, may_be_full: bool) -> Iterator[str]:
    """Each accepted job has ended, and published once; none is there that nobody asked for."""
    with database.read() as session:
        stored = {job.id: job for job in session.scalars(select(TrainingJob))}
        published = Counter(session.scalars(select(ModelVersion.training_job_id)))
    for key, (job_id, _) in record.jobs.items():
        job = stored.get(job_id)
        if job is None:
            yield f"job {job_id} was accepted and is lost"
            continue
        if job.idempotency_key != key:
            yield f"job {job_id} has the key {job.idempotency_key}, not {key}"
        code = (job.error or {}).get("code")
        excused = may_be_full and code == "storage_full"
        if job.state != "succeeded" and not excused:
            yield f"job {job_id} is {job.state} after attempt {job.attempt}: {job.error}"
        if published[job_id] != (job.state == "succeeded"):
            yield f"job {job_id} is {job.state} and published {published[job_id]} versions"
    known = {job for job, _ in record.jobs.values()}
    for job in stored.values():
        if job.id not in known and job.idempotency_key not in record.unknown_keys:
            yield f"job {job.id} was never answered"


def _versions(database: Database, record: Record) -> Iterator[str]:
    """Numbers of versions count on without a gap or a repetition."""
    with database.read() as session:
        found = session.execute(select(Model.name, ModelVersion.number).join(ModelVersion.model)).all()
    for name in {name for name, _ in found}:
        numbers = sorted(number for of, number in found if of == name)
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"model {name} has the versions {numbers}"
    gone = {(made.model, made.version) for made in record.predictions} - {tuple(row) for row in found}
    yield from (f"version {version} of {model} has answered and is not stored" for model, version in gone)


def wrong_predictions(urls: list[str], record: Record) -> Iterator[str]:
    """Yield what of the answers differs from the weights that are published, or of these between the APIs."""
    by_version: dict[tuple[str, int], list[tuple[str, tuple[float, ...], float]]] = {}
    for made in record.predictions:
        answer = made.unique_id, made.features, made.value
        by_version.setdefault((made.model, made.version), []).append(answer)
    for (model, version), answers in by_version.items():
        tables = []
        for url in urls:
            path = f"{url}/v1/models/{model}/versions/{version}/weights"
            told = httpx2.get(path, headers={"Accept": "application/vnd.apache.parquet"}, timeout=60)
            if told.status_code != 200:
                yield f"the weights of {model}, version {version}: {told.status_code} {told.text[:300]}"
                break
            tables.append(pl.read_parquet(io.BytesIO(told.content)))
        else:
            yield from _differences(f"{model}, version {version}", tables, answers)


def _differences(
    which: str, tables: list[pl.DataFrame], answers: list[tuple[str, tuple[float, ...], float]]
) -> Iterator[str]:
    first = tables[0]
    if not all(table.equals(first) for table in tables):
        yield f"{which}: the APIs export different weights"
    numbers = first.drop("unique_id").to_numpy()
    if not np.isfinite(numbers).all():
        yield f"{which}: weights are not finite"
    place = {one: row for row, one in enumerate(first["unique_id"])}
    for one, features, value in answers:
        intercept, *weights = numbers[place[one]].tolist()
        expected = float(np.dot(weights, features) + intercept)
        if abs(expected - value) > 1e-9 * max(1.0, abs(expected)):
            yield f"{which} predicted {value} for {one} and {features}; its weights say {expected}"
