"""Checks of calls of any kind, from the tables of the library."""
from types import SimpleNamespace

import heddle
import pytest
from heddle import _call, _dlpack, _kinds, _structs

ROW_DOT = _kinds.kinds()["row_dot"]


def test_roles_say_what_becomes_of_them():
    def used(kind):
        return {role.name: (role.is_read, role.is_written, role.is_optional) for role in _kinds.kinds()[kind].roles}
    assert used("row_dot") == dict(out=(True, False, False), d_out=(True, False, False), delta=(False, True, False))
    assert used("backward")["d_q"] == (False, True, False) and used("backward")["d_lse"] == (True, False, True)
    assert used("backward_accumulate")["d_q"] == (True, True, False)
    assert used("forward")["carry_lse"] == (True, False, True)


def test_roles_are_fields_of_the_struct():
    fields = dict(_structs.AttentionArgs._fields_)
    for kind in _kinds.kinds().values():
        for role in kind.roles:
            assert (fields[role.name] is _structs.Tensor) == role.is_tensor
    assert [role.name for role in _kinds.forward().roles] == ["q", "k", "v", "out", "lse", "carry_out", "carry_lse", "descale_q",
                                                              "descale_k", "descale_v"]
    assert _kinds.forward().roles[4].extents == ("batch", "heads", "seqlen_q")


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
    (dict(out=view("i32", 2, 5, 3, 8)), "out: dtype: expected bf16, fp16, fp32 or e4m3, got i32"),
])
def test_what_does_not_fit_is_named(change, message):
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        inputs(**change)
    assert str(raised.value) == f"attention arguments: {message}"


def test_results_of_another_kind_are_its_own():
    with pytest.raises(heddle.InvalidArgumentError, match=r"delta: expected row-major fp32 of \[2, 3, 5\] \(batch, heads, seqlen_q\), got fp32 of \[2, 5, 3\]"):
        _call.check_results(inputs(), {"delta": view("fp32", 2, 5, 3)()})
