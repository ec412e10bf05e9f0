"""The regular expressions that texts of requests must match, and a sentence for each."""

from __future__ import annotations

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
NAME = rf"^{_NAME}$"
NO_NUL = r"^[^\x00]*$"  # PostgreSQL's text cannot hold it
AFTER = "after-"
NAME_CURSOR = rf"^{AFTER}{_NAME}$"

IN_WORDS = {
    NAME: "must be 1 to 100 characters, each one of A to Z, a to z, 0 to 9, dot, dash and underscore; "
    "the first must be a letter or a digit",
    NO_NUL: "must not contain the character NUL",
    NAME_CURSOR: "must be `next_cursor` of the page before, unchanged",
}
