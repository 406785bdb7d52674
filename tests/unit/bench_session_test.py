"""The measuring process of bench/peers.py with providers of a plug-in, and peers that are composed of several calls, with the processor in
place of a GPU. Skipped without a torch that has FlexAttention."""
import io
import json
import os
import sys
import tempfile
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.dont_write_bytecode = True

try:
    import torch
    import torch.nn.attention.flex_attention  # noqa: F401 - from 2.5 on
except ImportError as error:
    print("skipped:", error)
    sys.exit(0)

from peers import columns, gpu, gradients, masks, peers, permuted, reference, session  # noqa: E402
from peers.reference import COMPOSED_TOLERANCE, Reference  # noqa: E402
from peers.workload import Workload  # noqa: E402

PLUGIN = """
import torch
from peers.launch import Launch, Provider
from peers.masks import Window
from peers.workload import Workload

WORKLOADS = [Workload("window", "patterns/sliding_window.mlir", Window(7, 0), 1, 2, 40, 16, sizes=(("left", 7),))]


def heads_second(*tensors):
    return (tensor.transpose(1, 2) for tensor in tensors)


def masked(workload, q, k, v):
    places = torch.arange(q.shape[1])
    ahead = places[:, None] - places
    mask = (ahead >= 0) & (ahead <= 7)
    q, k, v = heads_second(q, k, v)
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


def right(*arguments):
    return Launch(masked(*arguments))


def unmasked(workload, q, k, v):
    q, k, v = heads_second(q, k, v)
    return Launch(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2))


def unsteady(*arguments):
    run, calls = masked(*arguments), []

    def other_bits():
        calls.append(1)
        return run() * (1 + 2 ** -7 * (len(calls) % 2))
    return Launch(other_bits, is_exact=True)


def unwritten(workload, q, k, v):
    out = torch.zeros_like(q)
    return Launch(lambda: out, is_exact=True, poison=lambda: out.fill_(float("nan")))


def broken(workload, q, k, v):
    raise NotImplementedError("only on Sundays\\nand holidays")


PROVIDERS = [Provider("own " + make.__name__, make) for make in (right, unmasked, unsteady, unwritten, broken)]
PROVIDERS += [Provider("own absent", lambda *_: None), Provider("own crashed", right)]
"""


class Host(gpu.Gpu):
    device = "cpu"

    def start(self):
        self.allocated = self.reserved = self.used = self.peak = lambda: 0
        self.synchronize = self.empty_cache = self.reset_peak = lambda: None

    def name(self):
        return "the processor"

    def launch_ms(self, run):
        run()
        return 1.0

    def product(self):
        return lambda: None


class Sessions(unittest.TestCase):
    def test_row(self):
        lines = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.py")
            with open(path, "w") as file:
                file.write(PLUGIN)
            skips = [json.dumps(["window", "own crashed", "run", "it crashed"]), json.dumps(["window", "own right", "host_us", "it hung"])]
            options = types.SimpleNamespace(plugin=[path], library="", db=folder, providers=["own *"], reps=2, skip=skips, turns=None,
                                            chosen_columns=columns.chosen(columns.STANDARD, ["times", "host_*us", "memory_bytes"]))
            made = session.Session(options, session.Lines(lines), Host())
            self.assertEqual(made.machine()["GPU"], "the processor")
            row = made.measure(made.bench.find("window"))
        entries = {entry["name"]: entry for entry in row["entries"]}
        self.assertEqual({name: entry["ok"] for name, entry in entries.items()},
                         {"own right": True, "own unmasked": False, "own unsteady": False, "own unwritten": False})
        self.assertEqual(row["failed"], {"own broken": "only on Sundays", "own crashed": "it crashed"})
        self.assertEqual(entries["own unsteady"]["note"], "results differ between launches")
        self.assertTrue(entries["own unwritten"]["nan"])
        right = entries["own right"]
        self.assertLess(right["values"]["error"], 1e-2)
        self.assertEqual((right["values"]["memory_bytes"], right["values"]["ms"]), (0, right["ms"]))
        self.assertGreater(right["values"]["host_small_us"], 0)
        self.assertEqual(right["no_value"], {"lse_error": "it returns no lse", "host_us": "it hung"})
        self.assertEqual(entries["own unmasked"]["no_value"]["memory_bytes"], "the result is wrong")
        self.check_steps(lines.getvalue())

    def test_gradients(self):
        """Through autograd of each forward launch; what is wrong forward is wrong backward."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.py")
            with open(path, "w") as file:
                file.write(PLUGIN)
            options = types.SimpleNamespace(plugin=[path], library="", db=folder, providers=["own *"], reps=2, skip=[], turns=None,
                                            chosen_columns=columns.chosen(columns.STANDARD, ["times", "memory_bytes"]))
            made = session.Session(options, session.Lines(io.StringIO()), Host())
            workload = made.bench.find("window_backward")
            row = made.measure(workload)
        self.assertEqual(row["flops"], 10 * 16 * workload.kept_pairs)
        entries = {entry["name"]: entry for entry in row["entries"]}
        self.assertEqual({name: entry["ok"] for name, entry in entries.items()}, {"own right": True, "own unmasked": False, "own unsteady": True,
                                                                                   "own crashed": True})
        self.assertLess(entries["own right"]["error"], 1e-2)
        self.assertEqual(row["failed"], {"own broken": "only on Sundays", "own unwritten": "its result has no gradient"})

    def check_steps(self, text):
        """Each step was named before it began."""
        steps = [line["doing"] for line in map(json.loads, text.splitlines())]
        for step in (["window", "own broken", "run"], ["window", "own right", "run"], ["window", "own right", "memory_bytes"]):
            self.assertIn(step, steps)
        self.assertNotIn(["window", "own crashed", "run"], steps)
        self.assertNotIn(["window", "own right", "host_us"], steps)
        self.assertIsNone(steps[-1])


def flash(q, k, v, left=None, right=None, causal=False):
    """What peers.flash returns, by the definition; causal from the last key on, as FlashAttention-2 has it."""
    share = q.shape[2] // k.shape[2]
    k, v = (tensor.float().repeat_interleave(share, 2) for tensor in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q.float(), k) / q.shape[-1] ** 0.5
    ahead = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1] - torch.arange(k.shape[1])
    kept = torch.ones_like(ahead, dtype=torch.bool)
    if causal:
        kept &= ahead >= 0
    if left is not None:
        kept &= (ahead <= left) & (ahead >= -right)
    scores = scores.masked_fill(~kept, -torch.inf)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).to(q.dtype), scores.logsumexp(-1)


class Gradients(unittest.TestCase):
    """References of gradients against those of the whole definition in fp64."""

    def check(self, mask, score="", sizes=(), heads=4, kv_heads=2):
        workload = Workload("w", "", mask, 2, heads, 40, 16, kv_heads=kv_heads, sizes=sizes, score=score, backward=True)
        q, k, v = Host().inputs(workload)
        leaves = [tensor.double().requires_grad_() for tensor in (q, k, v)]
        out = torch.stack([self.attend(workload, head, *leaves) for head in range(heads)], 2)
        found = torch.autograd.grad(out, leaves, gradients.of_out(q).double())
        reference = gradients.GradientReference(workload, q, k, v)
        right = reference.check_call([tensor.float() for tensor in found], True)
        self.assertTrue(right["ok"] and right["error"] < 1e-5, right)
        for place in range(3):
            off = [tensor.float().clone() for tensor in found]
            off[place][-1, 7, -1] *= 2
            self.assertFalse(reference.check_call(off, True)["ok"])

    def attend(self, workload, head, q, k, v):
        rows, keys = torch.arange(40)[:, None], torch.arange(40)
        kept = reference.keeper(workload, q.device)(torch.full_like(rows, head), rows, keys).expand(40, 40)
        group = head // (workload.heads // workload.kv)
        scores = q[:, :, head] @ k[:, :, group].transpose(1, 2) / 4
        scores = reference.score_of(workload, q.device)(scores, head, rows, keys)
        weights = scores.exp() * kept
        return weights / weights.sum(-1, keepdim=True).clamp_min(1e-300) @ v[:, :, group]

    def test_masks_and_scores(self):
        self.check(masks.Causal())
        self.check(masks.Window(7, 0), heads=3, kv_heads=3)
        self.check(masks.Window(-3, 9))  # the first rows keep nothing
        self.check(masks.Causal(), score="softcap", sizes=(("cap", 2.0),))
        self.check(masks.Groups(16, 2))


class Peers(unittest.TestCase):
    """Peers made of several calls, with calls by the definition."""

    def setUp(self):
        self.flash, permuted.flash = permuted.flash, flash

    def tearDown(self):
        permuted.flash = self.flash

    def check(self, make, mask, heads=4, kv_heads=0, seqlen=64, applies=True):
        workload = Workload("w", "", mask, 1, heads, seqlen, 16, kv_heads=kv_heads)
        q, k, v = Host().inputs(workload)
        launch = make(workload, q, k, v)
        self.assertEqual(launch is not None, applies)
        if applies:
            check = Reference(workload, q, k, v).check(launch.run(), tolerance=COMPOSED_TOLERANCE)
            self.assertTrue(check["ok"], check)

    def test_groups_of_heads(self):
        for make in (permuted.cudnn_permuted, permuted.cudnn_strided):
            self.check(make, masks.Groups(16, 2))
            self.check(make, masks.Groups(64, 2))  # the second segment is longer than the tokens
            self.check(make, masks.Groups(16, 2), heads=8, kv_heads=4)
            self.check(make, masks.Partition(masks.segments((16, 32), (2, 4), causal=True)))
            self.check(make, masks.Partition(masks.segments((16, 32), (1, 2))), heads=8, kv_heads=2)
            self.check(make, masks.Groups(16, 2), kv_heads=1, applies=False)  # a key's head in two groups
            self.check(make, masks.Groups(24, 2), applies=False)
            self.check(make, masks.Full(), applies=False)

    def test_branches(self):
        self.check(permuted.fa2_branches, masks.Mixture(masks.segments((8, 32), (1, 2), causal=True)))
        self.check(permuted.fa2_branches, masks.Mixture(masks.segments((8, 16, 128), (1, 2, 8), causal=True)), heads=3)
        self.check(permuted.fa2_branches, masks.Mixture(masks.segments((8, 16), (1, 2))))
        self.check(permuted.fa2_branches, masks.Mixture(masks.segments((12, 16), (1, 2))), applies=False)
        self.check(permuted.fa2_branches, masks.Causal(), applies=False)

    def test_views(self):
        self.check(permuted.fa2_view, masks.DilatedWindow(4, 3))
        self.check(permuted.fa2_view, masks.DilatedWindow(4, 3), kv_heads=2)
        self.check(permuted.fa2_view, masks.DilatedWindow(3, 3), applies=False)

    def test_masks_made_beforehand(self):
        """And made again, as the column of the set-up does."""
        compiled, torch.compile = torch.compile, lambda function, **_: function
        try:
            for mask in (masks.Window(7, 0), masks.SparseStrided(8), masks.Mixture(masks.segments((8, 32), (1, 2), causal=True))):
                self.check(peers.flex, mask, kv_heads=2)
                self.check(peers.sdpa_masked, mask, kv_heads=2)
            workload = Workload("w", "", masks.Window(7, 0), 1, 4, 64, 16)
            tensors = Host().inputs(workload)
            self.assertEqual(peers.flex(workload, *tensors).set_up().shape, (1, 1, 64, 64))
            self.assertEqual(int(peers.sdpa_masked(workload, *tensors).set_up().sum()), workload.kept_pairs // 4)
        finally:
            torch.compile = compiled

    def test_first_and_last_keys(self):
        self.check(peers.cudnn, masks.Columns(5, 9))
        self.check(peers.cudnn, masks.Columns(5, 0), kv_heads=2)

    def test_composed(self):
        self.check(permuted.fa2_composed, masks.Longformer(5, 6))
        self.check(permuted.fa2_composed, masks.Longformer(5, 6), kv_heads=2)


if __name__ == "__main__":
    unittest.main()
