"""Exceptions: one class for each status of the C library, all of them kinds of RkvError."""


class RkvError(Exception):
    """The library refused a call; a refused call leaves the cache as it was.

    `status` is the rkv_status, `native_code` the code of the system or device below (0: none); the
    message is the library's text, which names the argument, the value given and the value needed.
    """

    status: int = 0

    def __init__(self, text: str, native_code: int = 0) -> None:
        super().__init__(text)
        self.native_code = native_code


class InvalidArgumentError(RkvError, ValueError):
    """A value, shape, type or stride that no state of the cache would make right."""

    status = 1


class UnsupportedError(RkvError, NotImplementedError):
    """A valid request that this version of the library, or this device, cannot serve."""

    status = 2


class CapacityError(RkvError):
    """The request needs more than the cache was made for."""

    status = 3


class BufferTooSmallError(RkvError, ValueError):
    """A buffer of the caller is shorter than the text says it must be."""

    status = 4


class BadStateError(RkvError, RuntimeError):
    """Not now: the cache is closed or in use, or the sequence is in another state."""

    status = 5


class DeviceError(RkvError, RuntimeError):
    """The device failed; after that only `close` is valid."""

    status = 6


class AbiMismatchError(RkvError, ImportError):
    """The library that was loaded, or the imported bytes, are of another ABI."""

    status = 7


class CorruptDataError(RkvError, ValueError):
    """Imported bytes that do not agree with their checksum, with each other or with the slot."""

    status = 8


class OutOfMemoryError(RkvError, MemoryError):
    """The system or the device has no memory of that size."""

    status = 9


class InternalError(RkvError, RuntimeError):
    """A fault of the library itself."""

    status = 10


_BY_STATUS: dict[int, type[RkvError]] = {
    kind.status: kind
    for kind in (
        InvalidArgumentError,
        UnsupportedError,
        CapacityError,
        BufferTooSmallError,
        BadStateError,
        DeviceError,
        AbiMismatchError,
        CorruptDataError,
        OutOfMemoryError,
        InternalError,
    )
}


def make_error(status: int, native_code: int, text: str) -> RkvError:
    """The exception for a status; called by the extension module, also for statuses to come."""
    kind = _BY_STATUS.get(status, RkvError)
    error = kind(text, native_code)
    error.status = status
    return error
