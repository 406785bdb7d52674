"""The table of elements: names of numpy, PyTorch, DLPack and patterns lead to the same element."""
import pytest
from heddle import _dlpack, _elements, _structs

np = pytest.importorskip("numpy")


class Exported:
    """An array that speaks DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **given):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Described:
    """One of which the interface of arrays is all there is."""

    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__


@pytest.mark.parametrize("element", _elements.elements(), ids=lambda element: element.name)
def test_every_name_of_an_element_leads_to_it(element):
    assert _elements.of_pattern(element.mlir) == element.name
    assert _elements.spelled(element.torch) == element.name
    assert _elements.of_dlpack(element.dlpack, 8 * element.bytes) == element.name
    if not hasattr(np, element.torch):
        return
    array = np.zeros((2, 3), element.torch)
    assert array.itemsize == element.bytes
    for each in (array, Exported(array), Described(array)):
        assert _dlpack.view(each, "q").dtype == element.name


@pytest.mark.parametrize("element", _elements.elements(), ids=lambda element: element.name)
def test_pytorch(element):
    torch = pytest.importorskip("torch")
    from heddle import _torch
    tensor = torch.zeros(2, 3, dtype=getattr(torch, element.torch))
    assert tensor.element_size() == element.bytes
    assert _torch.view(tensor, "q").dtype == element.name


def test_numbers_are_those_of_the_header():
    assert _elements.numbers() == {"bf16": _structs.BF16, "fp16": _structs.FP16, "fp32": _structs.FP32, "e4m3": _structs.E4M3}
    assert _elements.listed() == "bf16, fp16, fp32 or e4m3"


def test_types_that_are_not_in_the_table_keep_a_name():
    for dtype, name in (("float64", "fp64"), ("uint8", "u8"), (">f4", ">f4"), ("complex64", "complex64"), ("bool", "bool")):
        assert _dlpack.view(np.zeros(3, dtype), "q").dtype == name
    assert _dlpack.view(Exported(np.zeros(3)), "q").dtype == "fp64"
