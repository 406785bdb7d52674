"""The kinds of calls and the roles of their tensors, read from the table itself, runtime/Core/Kinds.h: `KINDS["forward"]`."""
import re
from typing import NamedTuple, Tuple

from . import _structs

_WORDS = {"seqlenQ": "seqlen_q", "seqlenK": "seqlen_k", "kvHeads": "kv_heads", "headDim": "head_dim", "valueDim": "value_dim"}


class Role(NamedTuple):
    name: str
    is_tensor: bool  # with strides; else rows behind one another
    element: str  # "dtype" or "outDtype" of the kernel, or "fp32"
    extents: Tuple[str, ...]  # by the names of sizes, in the order of memory
    is_read: bool = True
    is_written: bool = False
    is_optional: bool = False

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


def _role(name, form, element, rows, heads, dim):
    extents = ("batch", *(_WORDS.get(each, each) for each in ((heads, rows) if dim == "one" else (rows, heads, dim))))
    return Role(name, form == "tensor", element, extents)


def _used(role, access, is_optional):
    element = "fp32" if access == "Access::both" else role.element
    return role._replace(element=element, is_read=access != "Access::write", is_written=access != "Access::read", is_optional=is_optional)


def _read(text):
    roles_of = re.search(r"#define HEDDLE_GRADIENT_ROLES\(access\) (.*)", text)[1]
    text = re.sub(r"HEDDLE_GRADIENT_ROLES\((\w+)\)", lambda used: roles_of.replace("Access::access", f"Access::{used[1]}"), text)
    roles = {each[0]: _role(*each[1:]) for each in re.findall(r"ROLE\((\w+), (\w+), (\w+), (\w+), (\w+), (\w+), (\w+)\)", text)}
    for name, given in re.findall(r"KIND\(\w+, (\w+), (\{.*?\})\)", text):
        uses = (use.split(", ") for use in re.findall(r"\{ ?Role::(.*?) ?\}", given))
        yield Kind(name, tuple(_used(roles[use[0]], use[1], len(use) > 2) for use in uses))


# The lines of a table end in a backslash.
KINDS = {kind.name: kind for kind in _read(re.sub(r"\s*\\\n\s*", " ", _structs.text_of("runtime", "Core", "Kinds.h")))}
FORWARD, BACKWARD = KINDS["forward"], KINDS["backward"]


def of_gradients(accumulates, is_deterministic):
    return KINDS[BACKWARD.name + accumulates * "_accumulate" + is_deterministic * "_deterministic"]
