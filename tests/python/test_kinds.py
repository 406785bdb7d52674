"""Checks of calls of any kind, from the table of runtime/Core/Kinds.h."""
import re
from types import SimpleNamespace

import heddle
import pytest
from heddle import _call, _dlpack, _kinds, _structs

ROW_DOT = _kinds.KINDS["row_dot"]


def test_every_line_of_the_table_is_read(root):
    text = open(f"{root}/runtime/Core/Kinds.h", encoding="utf-8").read()
    names = re.findall(r"^  KIND\(\w+, (\w+)", text, re.M)
    assert len(names) >= 2 and list(_kinds.KINDS) == names
    for kind in _kinds.KINDS.values():
        uses = re.search(rf"KIND\(\w+, {kind.name},(.*?[}})])\)", text, re.S).group(1)
        access = re.search(r"HEDDLE_GRADIENT_ROLES\((\w+)", uses)
        if access:
            uses = re.search(r"#define HEDDLE_GRADIENT_ROLES\(access\)(.*?)\n\n", text, re.S).group(1).replace("::access", f"::{access[1]}")
        assert len(kind.roles) == uses.count("Role::") and len(kind.written) == uses.count("Access::write") + uses.count("Access::both")
        assert len(kind.read) == len(kind.roles) - uses.count("Access::write")
        assert sum(role.is_optional for role in kind.roles) == uses.count("Presence::")


def test_roles_are_fields_of_the_struct():
    fields = dict(_structs.AttentionArgs._fields_)
    for kind in _kinds.KINDS.values():
        for role in kind.roles:
            assert (fields[role.name] is _structs.Tensor) == role.is_tensor
    assert [role.name for role in _kinds.FORWARD.roles] == ["q", "k", "v", "out", "lse", "carry_out", "carry_lse"]
    assert _kinds.FORWARD.roles[4].extents == ("batch", "heads", "seqlen_q")


def view(dtype, *shape):
    return lambda ptr=64: _call.View(ptr, dtype, shape, _dlpack.row_major(shape), None)


def inputs(out=view("fp32", 2, 5, 3, 8), d_out=view("fp32", 2, 5, 3, 8)):
    pattern = SimpleNamespace(name="none", arguments=())
    spec = SimpleNamespace(pattern=pattern, arguments={}, given=lambda: dict(out=out(), d_out=d_out(1024)))
    return _call.inputs_of(spec, lambda tensor, name: tensor, ROW_DOT)


def test_another_kind_is_checked_by_its_own_roles():
    found = inputs()
    assert found.sizes == dict(batch=2, seqlen_q=5, heads=3, value_dim=8) and found.shape("delta") == (2, 3, 5)
    _call.check_results(found, {"delta": view("fp32", 2, 3, 5)(4096)})


@pytest.mark.parametrize("change, message", [
    (dict(d_out=view("fp32", 2, 5, 3, 4)), "d_out: size of dim: expected 8, got 4"),
    (dict(d_out=view("fp32", 2, 5, 3)), "d_out: expected 4 dimensions (batch, row, head, dim), got 3"),
    (dict(d_out=view("bf16", 2, 5, 3, 8)), "d_out: dtype: expected fp32 as out, got bf16"),
    (dict(out=view("i32", 2, 5, 3, 8)), "out: dtype: expected bf16, fp16 or fp32, got i32"),
])
def test_what_does_not_fit_is_named(change, message):
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        inputs(**change)
    assert str(raised.value) == f"attention arguments: {message}"


def test_results_of_another_kind_are_its_own():
    with pytest.raises(heddle.InvalidArgumentError, match=r"delta: expected row-major fp32 of \[2, 3, 5\] \(batch, heads, seqlen_q\), got fp32 of \[2, 5, 3\]"):
        _call.check_results(inputs(), {"delta": view("fp32", 2, 5, 3)()})
