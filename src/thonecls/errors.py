"""The errors that thonecls raises on purpose: each says the rule, the value and the next step."""


class ThoneclsError(Exception):
    """Anything a user can correct; the command line prints it without a traceback.

    options: names of the options that help, which the command line adds as flags and a form can
    point at.
    """

    def __init__(self, message: str = "", *, options: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.options = options


class SceneError(ThoneclsError, ValueError):
    """A cube that cannot be used: its shape, its values, its bands."""


class LabelError(ThoneclsError, ValueError):
    """Labels that do not fit the scene, or are too few to learn from."""


class NoLabelError(LabelError):
    """Labels of which none marks a pixel of the scene: of several scenes, others may have some."""


class ConfigError(ThoneclsError, ValueError):
    """A setting outside its range."""


class ModelError(ThoneclsError, ValueError):
    """A model file that is damaged, of another version, or for other bands."""


class FileError(ThoneclsError, ValueError):
    """A file that is missing, unreadable or of an unknown form."""


class TrainingError(ThoneclsError, RuntimeError):
    """Training that cannot go on, such as a loss that is no longer finite."""


class ClusterError(ThoneclsError, RuntimeError):
    """A cluster that no longer answers, or whose workers die."""
