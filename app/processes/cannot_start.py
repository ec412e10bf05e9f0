"""The error of a process that cannot start for a reason that an operator can mend."""


class CannotStart(Exception):
    """Its text is one sentence: what is wrong, and what to do."""
