"""Symbols that stand for positions and scores while a function is called once, and the region that what it does is written into.

A symbol is i32, i1 or f32. Whatever is asked of it (an operator, a method, a function of torch or a ufunc of numpy) is looked up under
its name in the region's table of operations, _operations.py; what is not there is refused, at the line of the user's function.
"""
import math
import os
import struct
import sys

from . import _mlir
from .errors import UnsupportedError

_HERE = os.path.dirname(os.path.abspath(__file__))
_KINDS = {"torch.bool": "i1", "torch.int32": "i32", "torch.int64": "i32", "torch.float32": "f32", "torch.float64": "f32"}
_DTYPES = {"i1": "bool", "i32": "int32", "f32": "float32"}


# ---------------------------------------------------------------- refusals
def _folders_of_others():
    loaded = (sys.modules.get(name) for name in ("torch", "numpy"))
    return (_HERE, *(os.path.dirname(os.path.abspath(each.__file__)) for each in loaded if getattr(each, "__file__", None)))


def _place():
    """"file:line: in name: " of the innermost frame that is neither heddle's nor PyTorch's nor numpy's; "" where tracing has none."""
    others = tuple(folder + os.sep for folder in _folders_of_others())
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "traced" and os.path.dirname(os.path.abspath(code.co_filename)) == _HERE:
            return ""
        if not os.path.abspath(code.co_filename).startswith(others):
            return f"{code.co_filename}:{frame.f_lineno}: in {code.co_name}: "
        frame = frame.f_back
    return ""


def refuse(what, instead="use words of heddle.words, or write the region in MLIR", place=None):
    raise UnsupportedError(f"{_place() if place is None else place}a traced function {what}; {instead}")


_TRUTH = ("needs the truth of a position or a score (if, and, or, not, in, a < b < c, min, max, assert), which differs from pair to pair",
          "use &, |, ~, torch.where, torch.minimum and torch.maximum")
_VALUE = ("asks for the value of a position or a score (as an index, a number, a text), which differs from pair to pair",
          "torch functions take symbols, those of math, lists and print do not")
_WRITE = ("writes into a position, a score or a tensor", "a function returns what it makes: a = a + b")


# ---------------------------------------------------------------- regions
def _takes_gradients():
    torch = sys.modules.get("torch")
    return torch is not None and torch.is_grad_enabled()


def _float_text(value):
    """As MLIR reads an f32. What it does not hold is an infinity, as in PyTorch."""
    try:
        struct.pack("f", value)
    except OverflowError:
        value = math.copysign(math.inf, value)
    if value == -math.inf:
        return "0xFF800000"
    if not math.isfinite(value):
        refuse(f"makes a number of {value}, as which a score has no weight", "-inf is a key that is not kept")
    return _mlir.float_text(value)


class Region:
    """The lines of a region. `is_mask`: of attn.predicate, which has arith only; attn.score_map has math too, but makes no ints of floats."""

    def __init__(self, operations, is_mask):
        self.operations, self.is_mask = operations, is_mask
        self.lines = []
        self._constants = {}
        self._follows_gradients = not is_mask and _takes_gradients()

    def add(self, text, kind):
        name = f"%{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        return Symbol(self, name, kind)

    def constant(self, value, kind):
        if kind == "i32" and not -2**31 <= value < 2**31:
            refuse(f"computes with {value}, which 32 bits do not hold")
        text = str(bool(value)).lower() if kind == "i1" else f"{_float_text(float(value)) if kind == 'f32' else int(value)} : {kind}"
        known = self._constants.get(text)
        if known is None:
            known = self._constants[text] = self.add("arith.constant " + text, kind)
        return known

    def lift(self, value, kind=None):
        """A symbol of that kind, else of its own, of a symbol or of what `number` takes."""
        value = number(value)
        if not isinstance(value, Symbol):
            return self.constant(value, kind or kind_of(value))
        if value.region is not self:
            refuse("keeps a position or a score of another call", "everything follows from the arguments of this call")
        if kind in (None, value.kind):
            return value
        if kind == "i1":
            return self.compute("ne", value, 0)
        if kind == "f32":
            return self.add(f"arith.{'uitofp' if value.kind == 'i1' else 'sitofp'} {value.name} : {value.kind} to f32", "f32")
        if value.kind == "i1":
            return self.add(f"arith.extui {value.name} : i1 to i32", "i32")
        if not self.is_mask:
            refuse("makes an int of a score or a fraction, which attn.score_map cannot",
                   "torch.floor, torch.ceil and torch.trunc keep it a float; // divides ints")
        fits = self.compute("where", self.compute("lt", self.compute("abs", value), 2.0**31), value, 0.0)  # else no result is defined
        return self.add(f"arith.fptosi {fits.name} : f32 to i32", "i32")

    def compute(self, name, *args, **named):
        """What the operation of that name makes of symbols and numbers."""
        operation = self.operations.get(name)
        if operation is None:
            what, instead = next((said for names, said in _NAMED if name in names), (f"calls {name}, which regions do not have", None))
            refuse(what, *([instead] if instead else []))
        if self._follows_gradients and not _takes_gradients() and any(isinstance(each, Symbol) and each.kind == "f32" for each in args):
            refuse("computes where PyTorch follows no gradients (torch.no_grad, forward of an autograd.Function)",
                   "the gradient of a score is that of all that its function computes")
        try:
            return operation(self, *args, **named)
        except TypeError as error:
            return refuse(f"calls {name} with arguments that it does not take here: {error}")


_NAMED = ((("getitem", "index", "index_select", "gather", "take", "embedding", "select"),
           ("reads a tensor at a position", "tensors are arguments of the pattern: heddle.words.bias, relative, csr and documents read them")),
          (("setitem", "copy", "fill", "index_put", "scatter"), _WRITE),
          (("item", "tolist", "numpy"), _VALUE),
          (("allclose", "isclose", "any", "all"), _TRUTH))


# ---------------------------------------------------------------- values
def number(value):
    """A symbol, or the bool, int or float that a value of Python, numpy or PyTorch is; tensors of no dimension count as they are now."""
    if isinstance(value, (Symbol, bool, int, float)):
        return value
    module = type(value).__module__.partition(".")[0]
    if module == "numpy" and getattr(value, "ndim", None) == 0:  # np.int64 and its like
        return number(value.item())
    if module == "torch" and getattr(value, "ndim", None) == 0:
        if value.device.type != "cpu":
            refuse(f"reads a tensor on {value.device}, whose value would have to be waited for", "read a number: .item() before the call")
        if value.requires_grad:
            refuse("reads a tensor that requires gradients, and would give it none",
                   "what is learned is an argument of the pattern: attn.score_map lists it behind `with`")
        return number(value.item())
    what = f"{type(value).__name__} of {list(value.shape)}" if hasattr(value, "shape") else type(value).__name__
    return refuse(f"reads {what}", "tensors are arguments of the pattern, numbers may be read: heddle.words.bias, relative, csr and documents read tensors")


def kind_of(value):
    """Of what `number` gives."""
    return value.kind if isinstance(value, Symbol) else "i1" if isinstance(value, bool) else "i32" if isinstance(value, int) else "f32"


def kind_of_dtype(dtype):
    kind = _KINDS.get(str(dtype))
    return kind or refuse(f"makes a number of {dtype}", "regions have torch.bool, 32-bit ints and torch.float32; 64-bit types stand for those")


# ---------------------------------------------------------------- symbols
class Symbol:
    """A value of a region. Not a number: `if`, `int()` and texts of it are refused. ==, < and the other operators make symbols."""

    __hash__ = object.__hash__  # as tensors: by which one it is

    def __init__(self, region, name, kind):
        self.region, self.name, self.kind = region, name, kind

    def __repr__(self):
        return f"<{self.kind} {self.name} of a traced function>"

    def __bool__(self):
        return refuse(*_TRUTH)

    __contains__ = __bool__

    def _value(self, *_):
        return refuse(*_VALUE)

    __int__ = __float__ = __index__ = __complex__ = __str__ = __format__ = __len__ = __iter__ = __getitem__ = __round__ = _value

    def __setitem__(self, *_):
        refuse(*_WRITE)

    def __getattr__(self, name):
        if name.startswith("__"):  # what Python and numpy look for
            raise AttributeError(name)
        torch = sys.modules.get("torch")
        if torch is not None and name in ("dtype", "device"):
            return torch.device("cpu") if name == "device" else getattr(torch, _DTYPES[self.kind])
        if name in ("shape", "ndim"):
            return () if name == "shape" else 0
        if name.endswith("_"):
            refuse(*_WRITE)
        name = "where_of" if name == "where" else name
        if name not in self.region.operations and not any(name in names for names, _ in _NAMED):
            refuse(f"asks a position or a score for .{name}, which regions do not have")
        return lambda *args, **named: self.region.compute(name, self, *args, **named)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        spelled = getattr(function, "__name__", "").partition(".")[0]
        name = spelled.strip("_")
        module = getattr(function, "__module__", None) or "torch"
        if module.partition(".")[0] != "torch" or module.startswith("torch._ops.") and module != "torch._ops.aten":
            refuse(f"calls {function}, of which nothing is known but its name", "write it with PyTorch's own functions")
        name = name[len("special_"):] if name.startswith("special_") else name
        if spelled.endswith("_") and not spelled.startswith("__"):
            refuse(*_WRITE)
        if name == "where" and type(function).__name__ == "method_descriptor":
            name = "where_of"
        return _region_of(args, kwargs or {}, "torch." + name).compute(name, *args, **(kwargs or {}))

    def __array_ufunc__(self, ufunc, method, *args, **named):
        return self.region.compute(ufunc.__name__ if method == "__call__" else method, *args, **named)


def _region_of(args, named, what):
    given = [*args, *named.values()]
    given += [each for part in given if isinstance(part, (list, tuple)) for each in part]
    found = next((each for each in given if isinstance(each, Symbol)), None)
    return found.region if found is not None else refuse(f"calls {what} on nested lists")


def _operator(name, swapped):
    if swapped:
        return lambda self, other: self.region.compute(name, other, self)
    return lambda self, *other: self.region.compute(name, self, *other)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "divmod", "matmul"):
    setattr(Symbol, f"__{_name}__", _operator(_name, False))
    setattr(Symbol, f"__r{_name}__", _operator(_name, True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert"):
    setattr(Symbol, f"__{_name}__", _operator(_name, False))
