"""Patterns do not change, and those that nobody holds do not fill the memory."""
import copy
import os
import pickle
import threading

import heddle
import pytest
from heddle.patterns import _Kept

TEXT = "attn.pattern @mine(%left: i32 {{attn.default = 7 : i32}}) {{\n  %m = attn.window [%left, {right}]\n  attn.softmax union(%m)\n}}\n"


def one(right=0):
    return heddle.pattern(TEXT.format(right=right))


@pytest.mark.parametrize("name", ["text", "name", "values", "arguments", "label", "takes_q_origin", "anything"])
def test_a_pattern_does_not_change(name):
    made = one()
    before = made.text, made.name, made.values, made.arguments, hash(made)
    with pytest.raises(AttributeError, match="heddle.Pattern is immutable"):
        setattr(made, name, "other")
    with pytest.raises(AttributeError, match="heddle.Pattern is immutable"):
        delattr(made, name)
    assert (made.text, made.name, made.values, made.arguments, hash(made)) == before


def test_what_a_pattern_gives_is_not_its_own():
    made = one()(left=3)
    made.values["left"] = 4
    assert made.values == {"left": 3}
    with pytest.raises(TypeError):
        made.by_name["other"] = None


def test_copies_are_equal():
    made = one()(left=3)
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other == made and hash(other) == hash(made) and other.values == {"left": 3}


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.compiler
def test_patterns_that_were_dropped_cost_no_memory():
    for right in range(1, 151):
        one(right)
    before = resident()
    for right in range(151, 551):
        one(right)
    assert resident() - before < 20e6  # a context of MLIR for each took 98 MB


@pytest.mark.compiler
def test_a_pattern_works_after_hundreds_of_others():
    np = pytest.importorskip("numpy")
    q = np.linspace(-1, 1, 8 * 64, dtype=np.float32).reshape(1, 8, 1, 64)
    first = one(0)
    digest, before = first.digest, heddle.attention(q, q, q, first, left=2)
    others = [one(right) for right in range(1, 200)]
    assert first.digest == digest and first(left=5).values == {"left": 5}
    assert (heddle.attention(q, q, q, first, left=2) == before).all()
    assert others[0].digest != digest


class Made:
    def __init__(self, text):
        self.text = text


def test_kept_patterns_have_a_bound_in_bytes():
    kept = _Kept(Made, 10 * _Kept.EACH + 100_000)
    first = kept("0")
    assert kept("0") is first
    for number in range(1, 100):
        kept(str(number))
        assert kept("0") is first  # used all the time
        assert kept._bytes == sum(entry[1] for entry in kept._entries.values()) <= 10 * _Kept.EACH + 100_000
    assert len(kept._entries) <= 10
    kept("x" * 10_000_000)  # larger than the whole
    assert kept._bytes >= 40_000_000 and len(kept._entries) == 1
    kept("y")
    assert list(kept._entries) == [("y",)]


def test_kept_patterns_of_many_threads():
    kept = _Kept(Made, 8 * _Kept.EACH)
    failures = []

    def work():
        for round in range(300):
            if kept(str(round % 20)).text != str(round % 20):
                failures.append(round)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert kept._bytes == sum(entry[1] for entry in kept._entries.values()) <= 8 * _Kept.EACH


def test_files_without_an_end_are_refused(tmp_path):
    path = tmp_path / "long.mlir"
    path.write_text("//" + "x" * (1 << 20))
    for name in (path, "/dev/zero"):
        with pytest.raises(heddle.InvalidArgumentError, match="expected a pattern of at most 1048576 characters, got more"):
            heddle.load(name)
