"""Why the server says no; the words are for people."""

# The step where a project's folder is of no use, and the option that it names.
ANOTHER, PROJECT = "choose another 'project'", ("project",)


class NotReadyError(Exception):
    """What is asked for is still being made."""


class ConflictError(Exception):
    """What is asked for cannot be done now; the words say what to do first."""


class NothingThereError(Exception):
    """There is no such thing, or no longer."""
