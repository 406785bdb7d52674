"""Tensors of anybody who speaks DLPack, numpy arrays among them, as views; and results made by whoever made the input."""
import contextlib
import ctypes as C
import sys
import warnings

from . import _elements
from ._call import View, row_major
from .errors import InvalidArgumentError, UnsupportedError

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13


class _DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32), ("code", C.c_uint8),
                ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)), ("strides", C.POINTER(C.c_int64)),
                ("byte_offset", C.c_uint64)]


_pointer_of = C.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = C.c_void_p, (C.py_object, C.c_char_p)


def is_host_array(tensor):
    return hasattr(tensor, "__array_interface__")


def is_read_only(array):
    return is_host_array(array) and array.__array_interface__["data"][1]


def view(tensor, name, stream=None):
    """A View; the tensor's owner keeps it alive. `stream`: the CUDA stream that will read it, which its owner makes wait for its work."""
    if is_host_array(tensor):
        return _of_array(tensor, name)
    if not hasattr(tensor, "__dlpack__"):
        raise InvalidArgumentError(f"{name}: expected a tensor (PyTorch, numpy, or anything with DLPack), got {type(tensor).__name__}")
    device_type, device_id = tensor.__dlpack_device__()
    if device_type not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
        raise UnsupportedError(f"{name}: expected memory of a CUDA device or of the host, got DLPack device {int(device_type)}")
    is_device = device_type in (_CUDA, _CUDA_MANAGED)
    # 1 is DLPack's name of CUDA's default stream; 0 is not allowed.
    try:
        capsule = tensor.__dlpack__(stream=stream or 1) if is_device else tensor.__dlpack__()
    except BufferError as error:
        raise InvalidArgumentError(f"{name}: expected a tensor that its owner exports: {error}") from None
    return _of_capsule(capsule, int(device_id) if is_device else None, name)


def _of_capsule(capsule, device, name):
    found = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    dtype = _elements.of_dlpack(found.code, found.bits) if found.lanes == 1 else None
    shape = tuple(found.shape[i] for i in range(found.ndim))
    stride = tuple(found.strides[i] for i in range(found.ndim)) if found.strides else row_major(shape)
    return View((found.data or 0) + found.byte_offset, dtype or f"DLPack type {found.code} of {found.bits} bits", shape, stride, device)


def _of_array(array, name):
    """numpy, without the capsule: numpy exports no read-only array, and some of its types have no name in DLPack."""
    if type(array).__module__.startswith("numpy.ma"):
        raise InvalidArgumentError(f"{name}: expected an array without a mask of its own, which nothing here reads; {name}.filled(0) has none")
    interface = array.__array_interface__
    typestring = interface["typestr"]
    own = str(getattr(array, "dtype", typestring))
    dtype = _elements.of_typestring(typestring) or _elements.spelled(own) or own
    shape, strides = interface["shape"], interface.get("strides")
    if strides is None:
        return View(interface["data"][0], dtype, shape, row_major(shape), None)
    size = max(1, getattr(array, "itemsize", None) or int(typestring[2:]))
    for stride in strides:
        if stride % size:
            raise InvalidArgumentError(f"{name}: expected strides of whole elements, got {stride} bytes")
    return View(interface["data"][0], dtype, shape, tuple(stride // size for stride in strides), None)


def _space_of(like):
    """The module that makes tensors of this kind: its array namespace or, of CuPy, whose arrays know none, the one of its type."""
    if hasattr(like, "__array_namespace__"):
        return like.__array_namespace__()
    module = sys.modules.get(type(like).__module__)
    return module if getattr(module, "ndarray", None) is type(like) else None


def _current(device):
    """CuPy's devices are contexts, in which they are current."""
    return device if hasattr(device, "__enter__") else contextlib.nullcontext()


def _external(streams, address):
    """CuPy 14 deprecates ExternalStream for Stream.from_external, which destroys the stream when it ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return streams(address)


@contextlib.contextmanager
def stream_of(like, address):
    """Inside, the library that `like` belongs to makes tensors for this CUDA stream, as CuPy can: their memory is given to others after
    the work that is queued there when they end. Other libraries make them as ever."""
    streams = getattr(getattr(_space_of(like), "cuda", None), "ExternalStream", None)
    if streams is None:
        yield
        return
    with _current(like.device), _external(streams, address):
        yield


def empty(like, shape, dtype, name="out", instead="give out= and lse="):
    """A new tensor of the library that `like` belongs to: of its dtype, or of the element of this name."""
    if is_host_array(like):
        import numpy
        own = getattr(like, "dtype", None) or numpy.dtype(like.__array_interface__["typestr"])
        return numpy.empty(shape, own if dtype is None else numpy.dtype(_elements.torch_name(dtype)))
    space = _space_of(like)
    if space is not None and not type(like).__module__.startswith("jax"):
        wanted = dict(dtype=like.dtype if dtype is None else getattr(space, _elements.torch_name(dtype)))
        try:
            return space.empty(shape, device=like.device, **wanted)
        except TypeError:  # CuPy's own functions make it on the current device, and know no such word
            with _current(like.device):
                return space.empty(shape, **wanted)
    raise UnsupportedError(f"{name}: {type(like).__name__} says no way to make tensors that may be written; {instead}")
