"""The CUDA driver that the library opened, for what heddle.h says nothing of."""
import ctypes as C
import functools
import os

_CAPTURE_IMPLICIT = 906  # CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: of the default stream, while another stream is captured


@functools.lru_cache(maxsize=None)
def _is_capturing():
    """cuStreamIsCapturing, None where there is none."""
    try:
        function = C.CDLL(os.environ.get("HEDDLE_CUDA_DRIVER_LIBRARY") or "libcuda.so.1").cuStreamIsCapturing
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = (C.c_void_p, C.POINTER(C.c_int)), C.c_int
    return function


def is_captured(stream):
    """Whether a stream, an address, is captured into a graph."""
    function, status = _is_capturing(), C.c_int()
    return function is not None and (function(stream, C.byref(status)) == _CAPTURE_IMPLICIT or status.value != 0)
