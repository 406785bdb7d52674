"""What a failing call raises: one class for each status of heddle.h, with the text that the C interface gives.

Every class is also the nearest built-in one, so that code which knows nothing of heddle catches it: InvalidArgumentError is a
ValueError, NotFoundError a LookupError, and so on.
"""


class Error(Exception):
    """A failing call. `status` is the name of the code in heddle.h, in small letters."""

    status = "internal"


class InvalidArgumentError(Error, ValueError):
    status = "invalid_argument"


class NotFoundError(Error, LookupError):
    status = "not_found"


class UnsupportedError(Error, NotImplementedError):
    status = "unsupported"


class UnavailableError(Error, RuntimeError):
    """No driver, no GPU, no compiler: this machine, or this wheel, lacks something."""

    status = "unavailable"


class CorruptError(Error, ValueError):
    status = "corrupt"


class NewerError(Error, RuntimeError):
    """The file was written by a newer version of heddle."""

    status = "newer"


class IoError(Error, OSError):
    status = "io"


class DeniedError(Error, PermissionError):
    status = "denied"


class InternalError(Error, RuntimeError):
    status = "internal"


# In the order of heddle_status; 0 is HEDDLE_OK.
BY_STATUS = (None, InvalidArgumentError, NotFoundError, UnsupportedError, UnavailableError, CorruptError, NewerError, IoError, DeniedError,
             InternalError)


def of_status(status, message):
    """The exception for a code other than HEDDLE_OK."""
    kind = BY_STATUS[status] if 0 < status < len(BY_STATUS) else InternalError
    return kind(message or f"status {status}")
