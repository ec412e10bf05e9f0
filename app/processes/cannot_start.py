"""The error for a process that cannot start for a reason that an operator can remove."""


class CannotStart(Exception):
    """Its text is one sentence: what is wrong, and what to do."""
