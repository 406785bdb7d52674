"""heddle.attention, heddle.attention_backward, heddle.prepare, heddle.kernel, heddle.tune: calls, whoever owns the tensors."""
from typing import Any, Optional, Sequence, Tuple, Union

from . import _call, _direct, _engine, _kinds, _quantize, _scales, patterns
from ._direct import Task
from ._quantize import Quantized
from .errors import InvalidArgumentError
from .patterns import Pattern
from .words import Mask, Softmax

__all__ = ["attention", "attention_backward", "prepare", "kernel", "tune", "quantize", "random_signs", "Prepared", "Quantized", "Task"]

PatternLike = Union[Pattern, Mask, Softmax, str]
Carry = Optional[Tuple[Any, Any]]
Scales = Optional[Tuple[Any, Any, Any]]


def attention(q, k, v, pattern: PatternLike, *, scale: Optional[float] = None, return_lse: bool = False, out=None, lse=None,
              q_origin: Optional[int] = None, k_origin: int = 0, carry: Carry = None, stream: Optional[int] = None, precision: Optional[str] = None,
              descale: Scales = None, **arguments: Any):
    """Attention over exactly the pairs that the pattern keeps.

    q [batch, seqlen_q, heads, head_dim], k [batch, seqlen_k, kv_heads, head_dim], v [batch, seqlen_k, kv_heads, value_dim]; heads is a
    multiple of kv_heads. bf16, fp16, fp32, or e4m3 (float8_e4m3fn). The last stride is 1, any others that are multiples of 16 bytes
    will do (in host memory: any): pass tensors [batch, heads, seqlen, dim] as `q.transpose(1, 2)`, nothing is copied. k and v alone
    may be e4m3 beside q in bf16 or fp16. v in e4m3 beside such q and k may have stride 1 along seqlen_k in the place of value_dim: pass
    [batch, kv_heads, value_dim, seqlen_k] as `v.permute(0, 3, 1, 2)`; on a GPU for patterns whose keys have no stride.

    pattern     a Pattern, words (`causal & window(left=1023)`), MLIR text, or a name of the package's library
    scale       of q . k; None: 1 / sqrt(head_dim)
    return_lse  returns (out, lse); lse is fp32 [batch, heads, seqlen_q], natural logarithm, -inf for rows that keep nothing
    out, lse    results to write, completely; out has the dtype of q (of e4m3: bf16, or fp16), or fp32
    q_origin    position of query 0, of patterns whose q_origin is given; k_origin: position of key 0
    carry       (out, lse) of an earlier call with the same queries over other keys, row-major fp32: the results are those of one call over the
                keys of both. They go to other memory than the carry
    stream      the CUDA stream of tensors that are not PyTorch's (an address; None: the default stream). PyTorch's current one else
    precision   on a GPU: "exact"; of fp32 also "tf32", products of operands rounded to 11 bits, a third as many; of e4m3 also "fast": weights
                come from the bits of scores, not from exponentials, those above 2^-12 of the largest within 8.5% (exact ones within 6%, as
                e4m3 has four bits), and lse is that of these weights. None: fast of e4m3 without return_lse, lse and carry, exact else.
                Flags of PyTorch are not looked at
    descale     what elements of q, k and v of e4m3 are multiplied by: three fp32 tensors, [batch, heads], [batch, kv_heads] and
                [batch, kv_heads], of positive numbers, or None for 1; those of q and k may be of blocks of 64 rows or of 128 (scale_rows of
                heddle.quantize): [batch, heads, blocks] and [batch, kv_heads, blocks]. A number or a tensor of one is that of a whole tensor;
                q may have one for each kv head, as FlashAttention has them
    arguments   sizes, numbers and tensors of the pattern, by name, over its defaults

    Returns out [batch, seqlen_q, heads, value_dim] of the library that q belongs to. On a GPU the work is only queued; a first call of a
    pattern finds or compiles its kernel. PyTorch tensors that require gradients get them, through out and lse, with every tensor of floats
    that the pattern reads (those in host memory only). There are no second derivatives, no tangents and no transforms of torch.func:
    UnsupportedError.
    Raises InvalidArgumentError and the other classes of heddle.errors; nothing was launched then.
    """
    if carry is not None:
        carry = _call.pair_of(carry)
    if descale is not None:
        descale = _scales.spread(descale, q, k, v)
    is_compiling = _direct.is_compiling()
    if not is_compiling and type(pattern) is not Pattern:
        pattern = patterns.resolved(pattern)
    if precision is None and (return_lse or lse is not None or carry is not None):
        precision = _kinds.EXACT
    spec = _call.CallSpec(q, k, v, pattern, scale, out, lse, q_origin, k_origin, carry, stream, arguments, precision, descale)
    return (_in_graph if is_compiling else _direct.attention)(spec, return_lse)


def attention_backward(d_out, q, k, v, out, lse, pattern: PatternLike, *, d_lse=None, scale: Optional[float] = None, q_origin: Optional[int] = None,
                       k_origin: int = 0, gradients_of: Sequence[str] = (), add_to: Optional[Tuple[Any, Any, Any]] = None, deterministic: bool = False,
                       stream: Optional[int] = None, precision: str = "exact", **arguments: Any):
    """The gradients of heddle.attention, for tensors of any library; PyTorch's autograd calls it by itself.

    d_out         the gradient of out, of its shape and dtype; d_lse: that of lse, row-major fp32, or None
    out, lse      what heddle.attention gave for q, k, v and the same pattern, scale, origins and arguments, with return_lse=True
    gradients_of  names of numbers and tensors that the pattern's scores read, or of its sink
    add_to        (d_q, d_k, d_v) in fp32, which this call adds to and returns: with out and lse of all keys and k_origin, calls over parts of
                  the keys sum up to the gradients of one call. UnsupportedError of parts where the pattern says gradient(detached)
    deterministic the same bits in every run: always so in host memory; on a GPU UnsupportedError where no kernel does it. PyTorch's
                  torch.use_deterministic_algorithms(True) asks for it too, also of autograd

    Returns (d_q, d_k, d_v), and with gradients_of a fourth: a dict of those gradients, in fp32. Rows that keep nothing, and keys that nothing
    keeps, have gradients of 0. Failures as of heddle.attention; NotFoundError says how a kernel is made where only the runtime is.
    """
    names = (gradients_of,) if isinstance(gradients_of, str) else tuple(gradients_of)
    spec = _call.GradientSpec(q, k, v, out, lse, d_out, pattern, d_lse, scale, q_origin, k_origin, names, stream, arguments,
                              None if add_to is None else _call.three_of(add_to), bool(deterministic), precision)
    is_node = _direct.is_compiling() and isinstance(pattern, (str, Pattern)) and stream is None and add_to is None and not deterministic
    if is_node:
        from . import _torch_op
    results = (_torch_op.backward if is_node else _outside("backward"))(spec)
    return (*results[:3], dict(zip(names, results[3:]))) if names else tuple(results)


def _in_graph(spec, return_lse):
    """A node; what cannot be one breaks the graph of torch.compile."""
    is_fixed = isinstance(spec.pattern, (str, Pattern))
    if _direct.is_traced() and not (is_fixed and not _direct.is_torch(spec.scale)):
        from . import _torch_outside
        return _torch_outside.attention(spec, return_lse)
    if spec.stream is not None:
        raise _direct.no_stream("attention")
    from . import _torch_op
    if not is_fixed:
        spec = spec._replace(pattern=patterns.resolved(spec.pattern))
    if isinstance(spec.pattern, Pattern) and spec.pattern.also_of_calls:
        spec.refuse_unclear("attention", return_lse=return_lse or None)
    return _torch_op.attention(spec, return_lse)


def _outside(name):
    """The function of _direct, which torch.compile does not look into."""
    if not _direct.is_traced():
        return getattr(_direct, name)
    from . import _torch_outside
    return getattr(_torch_outside, name)


class Prepared:
    """A call whose tensors are fixed: checked once, launched by calling it. `out` and `lse` hold the results of the last call (lse is None
    where precision is "fast" because nobody asked for it), `kernel` is what runs (None in host memory). It keeps its tensors alive; any thread may call it, on one stream at a time where it has a workspace."""

    __reduce__ = _call.no_copy

    def __init__(self, bound):
        self._bound = bound
        self.out, self.lse, self.kernel = bound.out, None if bound.lacks_lse else bound.lse, bound.kernel

    def _open(self):
        if self._bound is None:
            raise InvalidArgumentError("this prepared call is closed")

    def count_pairs(self, pairs: Optional[int] = None):
        """Says how many pairs of queries and keys one launch keeps, over batch and heads, for heddle.stats(): a kernel does not know. None:
        the compiler counts them, UnsupportedError where it has no closed form or tensors decide."""
        self._open()
        self._bound.count_pairs(pairs)

    def __call__(self):
        self._open()
        if self._bound.is_traced():
            _outside("launch")(self._bound)
        else:
            self._bound.launch()
        return self.out

    def close(self):
        """Lets go of the tensors and the launch, also while work is still queued, but not while a captured graph may be replayed that holds
        it. Calls raise from then on."""
        if self._bound is not None:
            self._bound.close()
        self._bound = None


def prepare(q, k, v, pattern: PatternLike, *, scale: Optional[float] = None, out=None, lse=None, q_origin: Optional[int] = None, k_origin: int = 0,
            carry: Carry = None, stream: Optional[int] = None, precision: Optional[str] = None, descale: Scales = None, **arguments: Any):
    """Checks a call once; calling what it returns launches it, and returns `out`.

    Arguments as of heddle.attention, but that scales are tensors of each head. Addresses are frozen: write new values into q, k, v, and the scales,
    and read `prepared.out`, `prepared.lse`. The
    kernel stays the one of this moment. PyTorch: on the stream that is current when it is called, also while that is captured into a
    CUDA graph. Keep what this returns for as long as that graph is replayed; queued work does not need it.
    """
    scales = None if descale is None else _scales.factors_of(descale)
    if precision is None and (lse is not None or carry is not None):
        precision = _kinds.EXACT
    return _outside("prepare")(_call.CallSpec(q, k, v, pattern, scale, out, lse, q_origin, k_origin, carry, stream, arguments, precision, scales),
                               Prepared)


def kernel(q, k, v, pattern: PatternLike, *, q_origin: Optional[int] = None, k_origin: int = 0, backward: bool = False,
           gradients_of: Sequence[str] = (), deterministic: bool = False, precision: Optional[str] = None, **arguments: Any) -> _engine.Kernel:
    """The kernel that a call with these tensors would run now (of e4m3 one that is not asked for lse, or say precision="exact"); with backward=True that of the call for its gradients, which gradients_of and
    deterministic say as in heddle.attention_backward."""
    wanted = _direct.gradients(backward, gradients_of, deterministic)
    return _outside("kernel")(_call.CallSpec(q, k, v, pattern, q_origin=q_origin, k_origin=k_origin, arguments=arguments, precision=precision), wanted)


def quantize(q, k, v, pattern: Optional[PatternLike] = None, *, smooth_k: bool = False, rotation=None, scale_rows: int = 0,
             v_key_major: bool = False) -> Quantized:
    """q, k and v as e4m3, for calls with descale=:

        low = heddle.quantize(q, k, v)
        out = heddle.attention(low.q, low.k, low.v, "causal", descale=low.descale)

    q [batch, seqlen_q, heads, head_dim], k [batch, seqlen_k, kv_heads, head_dim] and v [batch, seqlen_k, kv_heads, value_dim] are PyTorch tensors
    in bf16, fp16 or fp32, with strides as of heddle.attention; on a GPU head dims are multiples of 16. Of each (batch, head) the largest finite
    magnitude becomes 448; infinity and NaN become NaN. A length of 0 leaves a tensor out. One launch, which reads each element from memory once
    where a head fits the second-level cache; the same bits in every run, on GPUs and processors alike. No gradients.

    smooth_k  first subtracts from the rows of k the mean of those of their head, which is `k_mean` of the result: it adds the same number to all
              scores of a query, which no weight sees. lse lacks scale * (q . k_mean). `pattern` is that of the calls; UnsupportedError where its
              scores are not linear (softcap, score_map), or a sink stands beside them
    rotation  fp32 [head_dim] of 1 and -1, as heddle.random_signs makes them, where q is: rows of q and k are rotated before all else, by a
              Hadamard matrix of these signs for each n elements, n the largest power of two up to 256 that divides head_dim. Scores stay, and
              elements that stand out in a few channels are spread over n. k_mean is of rotated rows
    scale_rows  64 or 128: so many rows of q, and of k, of a head share a scale; 0: all of them. A row that stands out by a factor of thousands then costs its block alone, and
              heddle.attention on Hopper multiplies each score by the scales of its row and its key. v keeps one for each head, against which
              weights are rounded. descale_q and descale_k are [batch, heads, blocks], the last block of what is left
    v_key_major  v of the result, of the same shape, has neighbouring keys beside each other in memory, as [batch, kv_heads, value_dim, seqlen_k] with
              rows at multiples of 16 bytes: heddle.attention on Hopper takes it as it lies, and turns over no values
    """
    spec = _quantize.QuantizeSpec(q, k, v, pattern, bool(smooth_k), rotation, scale_rows, bool(v_key_major))
    if not _direct.is_recorded(q):
        return _quantize.quantize(spec)
    is_fixed = pattern is None or isinstance(pattern, (str, Pattern))
    if _direct.is_traced() and not (is_fixed and isinstance(scale_rows, int)):
        from . import _torch_outside
        return _torch_outside.quantize(spec)
    from . import _torch_quantize_op
    return _torch_quantize_op.quantize(spec if is_fixed else spec._replace(pattern=patterns.resolved(pattern)))


def random_signs(head_dim: int, seed: int = 0, device=None):
    """For `rotation` of heddle.quantize: fp32 [head_dim], each 1 or -1, as `heddle make-inputs --kind=quantize_rotated --seed=N` has them."""
    import torch
    return torch.tensor(_quantize.signs(head_dim, seed), dtype=torch.float32, device=device)


def tune(pattern: PatternLike, q, k, v, *, budget: float = 20.0, wait: bool = True, strategy: Optional[str] = None,
         q_origin: Optional[int] = None, k_origin: int = 0, backward: bool = False, gradients_of: Sequence[str] = (), deterministic: bool = False,
         precision: Optional[str] = None, **arguments: Any):
    """Searches the fastest kernel for calls with these sizes (backward=True: for those of their gradients, with gradients_of and deterministic as in
    heddle.attention_backward) for `budget` seconds, and files it in the database.

    Of e4m3 these are calls that are not asked for lse; those that are run the kernel of precision="exact".
    Returns the winner as a heddle.Kernel, or, with wait=False, a Task at once. Calls use the winner once the Task was waited for, else when
    they next ask for a better kernel, at the latest a minute after the search. Needs the compiler and a GPU, which searches share with this process's own work.
    """
    spec = _call.CallSpec(q, k, v, pattern, q_origin=q_origin, k_origin=k_origin, arguments=arguments, precision=precision)
    return _outside("tune")(spec, _direct.Search(budget, wait, strategy, _direct.gradients(backward, gradients_of, deterministic)))
