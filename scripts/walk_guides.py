"""Goes through the guides as a newcomer would: runs each command and program that they print, in order.

With a real service, on SQLite and then on PostgreSQL, in a throw-away folder that holds links to this
checkout. Nothing is installed. Run by `make guides`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg import connect

from scripts.guide_blocks import DATABASES, MARKS, PAGES, ROOT, Block, blocks_of
from scripts.postgres_server import NoServerError, client_programs, postgres_server
from scripts.terminal import Stopped, Terminal

DOCUMENTED = "http://127.0.0.1:8000"
PATIENCE = 300.0  # seconds for a block; the first fit on a machine compiles
NOT_LINKED = {".git", ".venv", "var", "backup", ".env"}


@dataclass(frozen=True)
class Done:
    """A block that was run, or left out, and what it printed."""

    block: Block
    output: str = ""


class BlockFailed(Exception):
    """A block of a guide does not work; says where, which command, and what it printed."""

    def __init__(self, block: Block, stopped: Stopped) -> None:
        line = stopped.line or block.line
        command = stopped.command or block.text.splitlines()[line - block.line]
        super().__init__(f"{block.page}, line {line}, failed:\n    {command}\n{stopped.output.strip()}")


class Walk:
    """One way through pages on one database, in a folder made for it."""

    def __init__(self, pages: Sequence[str], database: str, folder: Path, root: Path) -> None:
        self._blocks = [block for block in blocks_of(pages, root) if block.belongs_to(database)]
        self._folder, self._database, self._root = folder, database, root
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CCMTL_", "MAKE", "PG", "VENV"))
        }
        self._environment |= {"CCMTL_PORT": str(_free_port()), "PYTHONPATH": str(ROOT)}
        self._terminals: dict[tuple[str, str], Terminal] = {}
        self._server: Terminal | None = None
        self._fresh = False

    def run(self, tell: Callable[[str], None]) -> list[Done]:
        """Run the blocks in order, up to the first that fails."""
        with ExitStack() as stack:
            stack.callback(self._close)
            self._make_folder()
            if self._database == "postgresql":
                stack.enter_context(self._postgres())
            if any(DOCUMENTED in block.text or block.marks & {"server", "fresh"} for block in self._blocks):
                tell(f"{self._database:10}  starting the service\n")
                self._serve()
            return [self._in_its_place(block, tell) for block in self._blocks]

    def _in_its_place(self, block: Block, tell: Callable[[str], None]) -> Done:
        """Run a block after the service has been stopped for it, or started again."""
        fresh = "fresh" in block.marks
        if fresh and not self._fresh:
            self._lose_everything()
        if self._fresh and not fresh:
            self._serve()
        self._fresh = fresh
        return self._run(block, tell)

    def _run(self, block: Block, tell: Callable[[str], None]) -> Done:
        tell(f"{self._database:10}  {block!s:22}  {block.title:60}  ")
        start, output = time.monotonic(), ""
        if block.skipped:
            tell(f"not run: {block.skipped}\n")
            return Done(block)
        if "server" not in block.marks:
            output = self._typed(block, self._terminal(block))
        tell(f"{time.monotonic() - start:.1f} s\n")
        return Done(block, output)

    def _terminal(self, block: Block) -> Terminal:
        """The reader's second terminal, or Python: new for each page, so that no page needs another's."""
        key = block.page, block.language
        if key not in self._terminals:
            self._terminals[key] = Terminal(block.language, self._folder, self._environment)
        return self._terminals[key]

    def _typed(self, block: Block, terminal: Terminal, until: str = "") -> str:
        text = "\n" * (block.line - 1) + block.text  # so that line numbers are the page's
        tag = block.page if block.language == "python" else "refused" if "refused" in block.marks else "-"
        terminal.type(text.replace(DOCUMENTED, f"http://127.0.0.1:{self._environment['CCMTL_PORT']}"), tag)
        try:
            return terminal.wait_for(PATIENCE, until) if until else terminal.wait_for(PATIENCE)
        except Stopped as stopped:
            raise BlockFailed(block, stopped) from None

    def _serve(self) -> None:
        """Open the terminal of the service, unless it is open, and start the service in it."""
        server = self._server or self._prepared()
        for block in blocks_of(PAGES):
            if "server" in block.marks and "postgresql" not in block.marks:
                self._typed(block, server, until="listening on")

    def _prepared(self) -> Terminal:
        """Open the terminal of the service, with a database that is set up."""
        self._server = Terminal("sh", self._folder, self._environment)
        for block in blocks_of(PAGES):
            if "server" in block.marks and self._database in block.marks:
                self._typed(block, self._server)
        return self._server

    def _lose_everything(self) -> None:
        """Leave what a fresh host has: the program, a database that is set up, and the backup."""
        assert self._server is not None
        self._server.close()
        shutil.rmtree(self._folder / "var")
        if self._database == "postgresql":
            with connect(host=self._environment["SERVER_FOLDER"], user="postgres", autocommit=True,
                         port=int(self._environment["PGPORT"])) as connection:  # fmt: skip
                connection.execute("DROP DATABASE ccmtl WITH (FORCE)")
                connection.execute("DROP ROLE ccmtl")
        self._prepared()

    def _make_folder(self) -> None:
        for entry in self._root.iterdir():
            if entry.name not in NOT_LINKED:
                (self._folder / entry.name).symlink_to(entry)
        (self._folder / ".venv").symlink_to(sys.prefix)

    @contextmanager
    def _postgres(self) -> Iterator[None]:
        port = _free_port()
        with postgres_server(port) as url:
            folder = url.partition("host=")[2].partition("&")[0]
            # What a reader types when pg_dump asks for the password is what operations.md writes.
            self._environment |= {"SERVER_FOLDER": folder, "PGPORT": str(port), "PGPASSWORD": "PASSWORD"}
            self._environment["PATH"] = f"{client_programs()}:{self._environment['PATH']}"
            yield

    def _close(self) -> None:
        for terminal in (*self._terminals.values(), *([self._server] if self._server else [])):
            terminal.close()


def walk(pages: Sequence[str], database: str, tell: Callable[[str], None], root: Path = ROOT) -> list[Done]:
    """Run all blocks of the pages on a database.

    Parameters
    ----------
    pages : sequence of str
        In the order to read them, mostly of ``PAGES``.
    database : {"sqlite", "postgresql"}
        What the service stores models in.
    tell : callable
        Given pieces of text about the progress.
    root : Path
        The folder with the pages.

    Returns
    -------
    list of Done
        The blocks with what they printed.

    Raises
    ------
    BlockFailed
        At the first block that fails.
    NoServerError
        No PostgreSQL is installed.
    """
    with tempfile.TemporaryDirectory(prefix="ccmtl-guides-") as folder:
        return Walk(pages, database, Path(folder), root).run(tell)


def table(done: dict[str, list[Done]]) -> str:
    """Return the numbers of blocks that were run and left out, by page and database, and why."""
    lines, why = [f"{'page':20}  {'database':10}  {'run':>5}  {'not run':>7}"], Counter[str]()
    for database, results in done.items():
        for page in dict.fromkeys(result.block.page for result in results):
            blocks = [result.block for result in results if result.block.page == page]
            skipped = [block.skipped for block in blocks if block.skipped]
            why.update(skipped)
            lines.append(f"{page:20}  {database:10}  {len(blocks) - len(skipped):5}  {len(skipped):7}")
    lines += [f"not run, {count} times: {reason}" for reason, count in why.items()]
    return "\n".join(lines)


def main() -> None:
    """Walk as the arguments say; end with 1 at the first block that fails."""
    marks = "\n".join(f"  {name:10}  {meaning}" for name, meaning in MARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m scripts.walk_guides",
        description=__doc__,
        epilog=f"Marks of a block, behind its language:\n{marks}\n  skip: why   is left out, and says why",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="both")
    parser.add_argument("--page", choices=PAGES, action="append", help="only this page; may be repeated")
    given = parser.parse_args()
    pages = [page for page in PAGES if page in (given.page or PAGES)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and the service with it
    done = {}
    try:
        for database in DATABASES if given.database == "both" else [given.database]:
            done[database] = walk(pages, database, lambda text: print(text, end="", flush=True))
    except (BlockFailed, NoServerError) as error:
        sys.exit(f"\n{error}")
    print(f"\n{table(done)}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
