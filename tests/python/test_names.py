"""Arguments of patterns that are called as keywords of calls."""
import heddle
import pytest
from heddle.words import bias, causal, number, size, softcap, tensor, union, window

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.compiler


def draw():
    generator = np.random.default_rng(3)
    return [generator.standard_normal((1, 30, 4, 16)).astype(np.float32) for _ in range(3)]


def scaled():
    return heddle.pattern(union(causal, scores=softcap(number("scale", 9.0, min=1.0))))


@pytest.mark.parametrize("call, what", [(heddle.attention, "attention"), (heddle.prepare, "prepare")])
@pytest.mark.parametrize("name, value", [("scale", 3), ("k_origin", 5), ("carry", (0, 0)), ("out", np.zeros(1)), ("stream", 1), ("lse", np.zeros(1))])
def test_a_keyword_that_may_be_the_pattern_s_is_refused(call, what, name, value):
    pattern = heddle.pattern(causal & window(left=size(name, 5)))
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        call(*draw(), pattern, **{name: value})
    assert str(raised.value) == (f"{what}: {name}: pattern pattern has an argument of that name too, and which one is meant is not clear; bind the "
                                 f"pattern's before, pattern({name}=...), or give it another name")


def test_words_are_refused_too():
    with pytest.raises(heddle.InvalidArgumentError, match="attention: scale: pattern pattern has an argument of that name too"):
        heddle.attention(*draw(), causal & window(left=size("scale", 5)), scale=3)


def test_beside_a_bound_one_the_keyword_is_the_call_s():
    tensors = draw()
    same = heddle.pattern(union(causal, scores=softcap(number("cap", 9.0, min=1.0))))
    expected = heddle.attention(*tensors, same, cap=2.0, scale=0.3)
    np.testing.assert_array_equal(heddle.attention(*tensors, scaled()(scale=2.0), scale=0.3), expected)
    np.testing.assert_array_equal(heddle.prepare(*tensors, scaled()(scale=2.0), scale=0.3)(), expected)
    np.testing.assert_array_equal(heddle.attention(*tensors, scaled()), heddle.attention(*tensors, same))


def test_tensors_cannot_be_bound():
    pattern = heddle.pattern(union(causal, scores=bias(tensor("out", "1x1x?x?xf32"))))
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(*draw(), pattern, out=np.zeros((1, 1, 30, 30), np.float32))
    assert str(raised.value).endswith("not clear; give it another name")


def test_sizes_of_pictures_are_told_from_arguments():
    pattern = heddle.pattern(causal & window(left=size("heads", 5)))
    for call in (pattern.explain, pattern.draw):
        with pytest.raises(heddle.InvalidArgumentError, match="sizes: heads: pattern pattern has an argument of that name too"):
            call(seqlen=64, heads=3)


def test_torch_and_its_graphs_refuse_it():
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    tensors = [torch.from_numpy(each) for each in draw()]
    pattern, bound = scaled(), scaled()(scale=2.0)
    for call in (lambda *each: heddle.attention(*each, pattern, scale=3.0), torch.compile(lambda *each: heddle.attention(*each, pattern, scale=3.0), backend="eager")):
        with pytest.raises(heddle.InvalidArgumentError, match="attention: scale: pattern pattern has an argument of that name too"):
            call(*tensors)
    compiled = torch.compile(lambda *each: heddle.attention(*each, bound, scale=0.3), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*tensors), heddle.attention(*tensors, bound, scale=0.3))
