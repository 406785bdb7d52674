"""The kinds of calls and the roles of their tensors, from the tables of the library: `kinds()["forward"]`."""
import functools
from typing import NamedTuple, Tuple

from ._tables import tables


class Role(NamedTuple):
    name: str
    is_tensor: bool  # with strides; else rows behind one another
    element: str  # "dtype" or "out_dtype" of the kernel, or "fp32"
    extents: Tuple[str, ...]  # by the names of sizes, in the order of memory
    is_read: bool
    is_written: bool
    is_optional: bool

    @property
    def label(self):
        """In messages: a carry is given as a pair."""
        return self.name.replace("carry_", "carry: ")

    def shape(self, sizes):
        return tuple(sizes[extent] for extent in self.extents)


class Kind(NamedTuple):
    name: str
    roles: Tuple[Role, ...]  # sizes come from the first one that has them

    @property
    def read(self):
        return [role for role in self.roles if role.is_read]

    @property
    def written(self):
        return [role for role in self.roles if role.is_written]

    @property
    def made(self):
        """What is written and not read."""
        return [role for role in self.roles if not role.is_read]


def _role(name, form, element, extents, access, presence, **_):
    return Role(name, form == "tensor", element, tuple(extents), access != "write", access != "read", presence != "required")


@functools.lru_cache(maxsize=None)
def kinds():
    """By name."""
    return {each["name"]: Kind(each["name"], tuple(_role(**role) for role in each["roles"])) for each in tables()["kinds"]}


def forward():
    return kinds()["forward"]


def of_gradients(accumulates, is_deterministic):
    return kinds()["backward" + accumulates * "_accumulate" + is_deterministic * "_deterministic"]
