"""Why the server says no; the words are for people."""


class NotReadyError(Exception):
    """What is asked for is still being made."""


class ConflictError(Exception):
    """What is asked for cannot be done now; the words say what to do first."""


class NothingThereError(Exception):
    """There is no such thing, or no longer."""
