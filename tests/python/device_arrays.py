"""Arrays "on GPU 0" for the recording driver, whose device memory is host memory: bf16, spoken to through DLPack only."""
import ctypes as C

import numpy as np

CUDA = 2


class _DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32), ("code", C.c_uint8),
                ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)), ("strides", C.POINTER(C.c_int64)),
                ("byte_offset", C.c_uint64), ("manager", C.c_void_p), ("deleter", C.c_void_p)]


_new_capsule = C.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = C.py_object, (C.c_void_p, C.c_char_p, C.c_void_p)
# code, bits and the numpy type that holds the bits
TYPES = {"bfloat16": (4, 16, np.uint16), "float32": (2, 32, np.float32), "float16": (2, 16, np.float16), "int32": (0, 32, np.int32),
         "float8_e4m3fn": (10, 8, np.uint8)}


def aligned(shape, dtype):
    """Uninitialised, at a multiple of 256 bytes."""
    itemsize = np.dtype(dtype).itemsize
    raw = np.empty(int(np.prod(shape)) * itemsize + 256, np.uint8)
    start = -raw.ctypes.data % 256
    return raw[start:start + int(np.prod(shape)) * itemsize].view(dtype).reshape(shape)


class DeviceArray:
    def __init__(self, bits, dtype, device=0):
        self.bits, self.dtype, self.device = bits, dtype, device
        self.streams = []  # those that a consumer named

    def __dlpack_device__(self):
        return CUDA, self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        code, bits, _ = TYPES[self.dtype]
        n = self.bits.ndim
        shape = (C.c_int64 * n)(*self.bits.shape)
        strides = (C.c_int64 * n)(*(each // self.bits.itemsize for each in self.bits.strides))
        # Half of the address goes into byte_offset, as for a view into an allocation.
        self._held = _DLTensor(self.bits.ctypes.data - 64, CUDA, self.device, n, code, bits, 1, shape, strides, 64, None, None), shape, strides
        return _new_capsule(C.addressof(self._held[0]), b"dltensor", None)

    def __array_namespace__(self):
        return Space


class Space:
    float32 = "float32"

    @staticmethod
    def empty(shape, dtype, device):
        bits = aligned(shape, TYPES[dtype][2])
        np.atleast_1d(bits).view(np.uint8).fill(0xff)  # NaN, so that what is not written is seen
        return DeviceArray(bits, dtype, device)


class SpaceOfGpu0:
    """Knows no word for devices, and makes tensors on GPU 0."""
    float32 = "float32"

    @staticmethod
    def empty(shape, dtype):
        return Space.empty(shape, dtype, 0)


def bf16(values, device=0):
    """Rounded by cutting off."""
    values = np.asarray(values, np.float32)
    bits = aligned(values.shape, np.uint16)
    bits[...] = values.view(np.uint32) >> 16
    return DeviceArray(bits, "bfloat16", device)


def to_float(array):
    if array.dtype == "float32":
        return np.array(array.bits)
    return (array.bits.astype(np.uint32) << 16).view(np.float32)
