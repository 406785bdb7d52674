"""The kinds of calls and the roles of their tensors, from the tables of the library: `kinds()["forward"]`."""
import functools
from typing import NamedTuple, Tuple

from ._tables import tables


EXACT = "exact"  # the usual precision, but for what usual_without_lse says
_BLOCKS = ("q_blocks", "k_blocks")  # of rows that share a scale


class Role(NamedTuple):
    name: str
    is_tensor: bool  # with strides; else rows behind one another
    element: str  # that of "q", "k", "v" or "out", or "fp32", "i32" or "e4m3"
    extents: Tuple[str, ...]  # by the names of sizes, in the order of memory
    is_read: bool
    is_written: bool
    is_optional: bool
    is_offsets: bool = False  # an array with one element more, the end of the last

    @property
    def label(self):
        """In messages: a carry is given as a pair."""
        return self.name.replace("carry_", "carry: ")

    @property
    def may_lack(self):
        """The extent that arrays may leave out, where it is 1: of tables that all heads share, of blocks that are whole heads."""
        return next((extent for extent in self.extents if extent in ("tables", *_BLOCKS)), None)

    def extents_of(self, rank):
        """Of an array with so many dimensions."""
        return tuple(each for each in self.extents if each != self.may_lack) if rank + 1 == len(self.extents) else self.extents

    def shape(self, sizes):
        """Without blocks where heads have one scale each."""
        extents = self.extents if sizes.get("scale_rows") else (extent for extent in self.extents if extent not in _BLOCKS)
        return tuple(sizes[extent] + int(self.is_offsets) for extent in extents)  # int: sizes may be symbols of PyTorch


class Kind(NamedTuple):
    name: str
    base: str
    adds: str  # to which gradients: "none", "keys" (d_k, d_v) or "all"
    is_deterministic: bool
    roles: Tuple[Role, ...]  # sizes come from the first one that has them
    is_key_major: bool = False  # v, or what becomes of it, is [batch, value_dim, kv_heads, seqlen_k]

    def text(self, gradients_of=(), out=None, keys=None, precision="exact", scale_rows=0):
        """As calls and questions about kernels name it; `gradients_of`: numbers of arguments; `out`: the element of out where it is not the
        usual one; `keys`: that of k and v where it is not q's; `scale_rows`: how many rows of q and k share a scale, if not all of a head."""
        suffixes = tables()["kind_suffixes"]
        of_arguments = suffixes["gradients_of"] + "_".join(map(str, sorted(gradients_of))) if gradients_of else ""
        of_tensors = (keys and suffixes["keys"][keys] or "") + (out and suffixes["out"][out] or "")
        of_scales = suffixes["scale_rows"][str(scale_rows)] if scale_rows else ""
        return (self.name + of_arguments + of_tensors + (suffixes["precision"][precision]["suffix"] if precision != EXACT else "") + of_scales).encode()

    @property
    def takes_scales(self):
        """Of k and v, which may be of fewer bits than q."""
        return any(role.name == "descale_k" and role.is_read for role in self.roles)

    @property
    def takes_scale_rows(self):
        """Blocks of rows of q and k may have scales of their own."""
        return any(role.name == "descale_q" for role in self.roles)

    @property
    def has_pages(self):
        """Keys lie in pages or in rows with offsets, and sequences have lengths of their own."""
        return any(role.name == "page_table" for role in self.roles)

    @property
    def has_parts(self):
        """Sequences may be parts of a whole, which each of them says for itself."""
        return any(role.name == "whole_k" for role in self.roles)

    def writes(self, name):
        return any(role.name == name and role.is_written for role in self.roles)

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
    return Role(name, form == "tensor", element, tuple(extents), access != "write", access != "read", presence != "required", form == "offsets")


def _kind(name, base, adds, is_deterministic, roles, is_key_major=False, **_):
    return Kind(name, base, adds, is_deterministic, tuple(_role(**role) for role in roles), is_key_major)


@functools.lru_cache(maxsize=None)
def fields():
    """Names of the sizes that heddle_attention_args has fields for."""
    return tuple(each["name"] for each in tables()["sizes"] if each["is_field"])


def precisions():
    """Other than EXACT, by name: of which element, and what they add to the text of a kind."""
    return tables()["kind_suffixes"]["precision"]


@functools.lru_cache(maxsize=None)
def usual_without_lse(kind, element):
    """The precision of calls of `kind` with q of `element` that give no lse and do not say which."""
    fitting = (name for name, each in precisions().items() if each["is_usual_without_lse"] and each["of"] == element)
    return next(fitting, EXACT) if kind.base == "forward" else EXACT


@functools.lru_cache(maxsize=None)
def scale_rows():
    """How many rows of q and k may share a scale, if these are not all of a head."""
    return tuple(sorted(map(int, tables()["kind_suffixes"]["scale_rows"])))


@functools.lru_cache(maxsize=None)
def kinds():
    """By name."""
    return {each["name"]: _kind(**each) for each in tables()["kinds"]}


def forward():
    return kinds()["forward"]


def key_major(kind):
    """The same with key-major values; None: there is none."""
    return next((each for each in kinds().values() if each.base == kind.base and each.adds == kind.adds and each.is_key_major), None)


def of_gradients(adds, is_deterministic):
    """`adds`: the call adds to d_q, d_k and d_v."""
    choices = ("backward", "all" if adds else "none", is_deterministic)
    return next(kind for kind in kinds().values() if (kind.base, kind.adds, kind.is_deterministic) == choices)
