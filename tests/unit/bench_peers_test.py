"""The torch-free half of bench/peers: workloads against brute force and against `heddle explain`, the C interface through
ctypes against the recording driver, the report. Parts whose program or library is not named in the environment are
skipped: HEDDLE, HEDDLE_RUNTIME, HEDDLE_FAKE_CUDA_LIBRARY."""
import ctypes
import dataclasses
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.dont_write_bytecode = True

from peers import columns, database, heddle, report  # noqa: E402
from peers.turns import Turns  # noqa: E402
from peers.block_masks import *  # noqa: E402, F403
from peers.masks import *  # noqa: E402, F403
from peers.tensor_masks import *  # noqa: E402, F403
from peers.workloads import DEFAULT, LIBRARY, WORKLOADS, Target, find  # noqa: E402

HEDDLE = os.environ.get("HEDDLE", "")
RUNTIME = os.environ.get("HEDDLE_RUNTIME", "")
FAKE = os.environ.get("HEDDLE_FAKE_CUDA_LIBRARY", "")


def brute_force(mask, heads, n):
    kept = getattr(mask, "copies", mask.keep)
    rows = mask.rows(n) if hasattr(mask, "rows") else n
    return sum(int(kept(head, heads, n, q, k)) for head in range(heads) for q in range(rows) for k in range(n))


class Masks(unittest.TestCase):
    def test_closed_forms(self):
        cases = [(Full(), 2, 9), (Causal(), 2, 9), (Window(3, 0), 1, 17), (Window(30, 2), 1, 9), (DilatedWindow(4, 2), 2, 30),
                 (DilatedWindow(3, 9), 1, 14), (Groups(4, 3), 3, 32), (Groups(4, 3), 6, 37), (Groups(8, 4), 4, 64), (Longformer(2, 3), 2, 20),
                 (Longformer(5, 9), 1, 8), (Columns(3, 0), 2, 12), (Columns(3, 4), 1, 12), (Streaming(2, 3), 2, 17), (Streaming(9, 2), 1, 8),
                 (Prefix(5), 2, 17), (Prefix(20), 1, 9), (Partition(segments((4, 8, 16), (1, 2, 3), causal=True)), 6, 37),
                 (Partition(segments((4, 8), (1, 2))), 4, 21), (Mixture(segments((4, 8, 16), (1, 2, 4), causal=True)), 5, 37),
                 (Hierarchical(4, 3), 2, 45), (SparseStrided(4), 3, 19), (SparseFixed(8, 2), 3, 29), (BlockWindow(1, 4), 2, 22),
                 (BlockDistances((0, 2), 4), 1, 23), (BlockGlobal(1, 1, 4), 1, 23), (BlockLevels(2), 1, 61), (BlockStrided(3, 4), 1, 30),
                 (BlockThinned(4), 3, 27), (WindowStrided(3, 4), 2, 29),
                 (RandomBlocks(3, 1, 1, 4), 1, 37), (RandomBlocks(2, block=4), 2, 40), (RandomBlocks(3, 1, 1, 4, causal=True), 2, 37),
                 (BlockDilatedHeads(2, block=4), 4, 61), (BlockDilatedHeads(1, (1, 3), 3), 4, 32),
                 (BlockLists(3, 4), 3, 41), (BlockLists(2, 4, causal=True), 3, 41), (BlockLists(9, 8), 1, 20),
                 (Documents((0, 5, 5, 6, 20), (0, 5, 5, 6, 20)), 2, 20), (Documents((0, 5, 6, 20), (0, 2, 3, 9)), 2, 20),
                 (Documents((0, 5, 6, 20), (0, 2, 3, 9), 3), 1, 20), (DraftTree(binary_tree(5), 5, 17), 2, 17),
                 (DraftTree((-1, -1, 0), 7, 9), 1, 9), (DraftTrees((-1, -1, 0), 7, 9), 1, 9), (DraftTrees(binary_tree(5), 5, 17), 2, 17)]
        for mask, heads, n in cases:
            with self.subTest(mask=mask, n=n):
                self.assertEqual(mask.pairs(heads, n), brute_force(mask, heads, n))

    def test_definitions(self):
        """Kept keys of single rows, written out."""
        def keys(mask, head, heads, n, q):
            return [k for k in range(n) if mask.keep(head, heads, n, q, k)]
        self.assertEqual(keys(Window(2, 0), 0, 1, 9, 5), [3, 4, 5])
        self.assertEqual(keys(DilatedWindow(4, 1), 0, 1, 20, 9), [5, 9, 13])
        self.assertEqual(keys(Groups(4, 3), 0, 3, 32, 5), [4, 5, 6, 7])
        self.assertEqual(keys(Groups(4, 3), 1, 3, 32, 9), [9, 11, 13, 15])
        self.assertEqual(keys(Groups(4, 3), 1, 3, 32, 8), [])
        self.assertEqual(keys(Groups(4, 3), 2, 3, 32, 18), [18, 22, 26, 30])
        self.assertEqual(keys(Longformer(1, 2), 0, 1, 8, 5), [0, 1, 4, 5, 6])
        self.assertEqual(keys(Columns(1, 2), 0, 1, 8, 5), [0, 6, 7])

    def test_definitions_with_tensors(self):
        """Kept keys of single rows, and the tensors that say them, written out."""
        def keys(mask, n, q, head=0):
            return [k for k in range(n) if mask.keep(head, 2, n, q, k)]
        packed, chunked = Documents((0, 3, 8), (0, 3, 8)), Documents((0, 3, 8), (0, 1, 4), 2)
        self.assertEqual([keys(packed, 8, q) for q in (2, 3, 5)], [[0, 1, 2], [3], [3, 4, 5]])
        self.assertEqual([keys(chunked, 8, q) for q in (0, 1, 3)], [[0, 1, 2], [3, 4, 5], [5, 6, 7]])
        self.assertEqual({name: operand.values for name, operand in chunked.operands(2, 8).items()},
                         {"cu_q": (0, 1, 4), "cu_k": (0, 3, 8), "used_k": (3, 5)})
        tree = DraftTree((-1, 0, 0), 4, 6)
        self.assertEqual([keys(tree, 6, q) for q in range(4)], [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 5]])
        self.assertEqual(tree.operands(2, 6)["ancestors"].values, (1, 3, 5))
        trees = DraftTrees((-1, 0), 4, 6)
        self.assertEqual([keys(trees, 6, q) for q in range(4)], [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]])
        self.assertEqual({name: (each.shape, each.values) for name, each in trees.operands(2, 6).items()}, {"ancestors": ((1, 2), (1, 3)), "drafts": ((1,), (2,))})
        self.assertEqual(DraftTree(binary_tree(64), 64, 64).operands(1, 64)["ancestors"].values[63], (1 << 31 | 1 << 15 | 1 << 7 | 1 << 3 | 1 << 1 | 1) - (1 << 63))
        lists = BlockLists(2, 2)
        offsets, indices = lists.operands(2, 8)["offsets"], lists.operands(2, 8)["indices"]
        self.assertEqual((offsets.shape, offsets.values), ((1, 2, 5), (0, 2, 4, 6, 8, 8, 10, 12, 14, 16)))
        for head in range(2):
            for i in range(4):
                listed = indices.values[offsets.values[5 * head + i]:offsets.values[5 * head + i + 1]]
                self.assertEqual(keys(lists, 8, 2 * i, head), [k for j in listed for k in (2 * j, 2 * j + 1)])
        self.assertNotEqual(indices.values[:8], indices.values[8:])

    def test_permutations(self):
        """The values of docs/language.md."""
        self.assertEqual([random_permutation(0, t, 256)(x) for x in (0, 1) for t in range(4)], [10, 59, 49, 186, 173, 135, 246, 156])
        for size in (1, 2, 3, 7, 100, 129):
            self.assertEqual(sorted(map(random_permutation(5, 2, size), range(size))), list(range(size)))

    def test_ranges_have_equal_work(self):
        one, two = WORKLOADS["one_range"], WORKLOADS["two_ranges"]
        self.assertEqual(one.kept_pairs, two.kept_pairs)
        self.assertEqual((one.shape_text(), two.companion), (two.shape_text(), "one_range"))


def explain(workload, *options):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([HEDDLE, "explain", os.path.join(ROOT, workload.pattern), "--json", *database.length_options(workload),
                               f"--heads={workload.heads}", f"--kv-heads={workload.kv}", f"--head-dim={workload.head_dim}",
                               *database.sizes_options(workload), *database.operand_options(workload, folder), *options],
                              capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def arguments_of(pattern):
    """Names of a pattern file's arguments, in order."""
    with open(os.path.join(ROOT, pattern)) as file:
        text = re.sub(r'//.*|"[^"]*"', "", file.read())
    first, depth = text.index("("), 0
    for end in range(first, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            break
    return re.findall(r"%(\w+):", text[first:end])


@unittest.skipUnless(HEDDLE, "no heddle in the environment")
class Patterns(unittest.TestCase):
    def test_pairs_of_every_workload(self):
        for workload in WORKLOADS.values():
            with self.subTest(workload=workload.name):
                counted = explain(workload)
                self.assertEqual(counted["kept_pairs"], workload.kept_pairs)
                self.assertEqual(list(counted["sizes"].get("parameters") or {}), [name for name, _ in workload.sizes])
                self.assertEqual(arguments_of(workload.pattern), [*workload.operands, *(name for name, _ in workload.sizes)])

    def test_pairs_of_the_sweep(self):
        """At sizes that no list of workloads holds."""
        for name in ("library_longnet_2k_d128_gqa", "library_bigbird_2k_d256", "library_dilated_scaled_2k", "library_random_blocks_2k_d64_gqa",
                     "library_document_window_4k", "library_longvit_32k_1m"):
            with self.subTest(name):
                self.assertEqual(explain(find(name))["kept_pairs"], find(name).kept_pairs)

    def test_ranges_visit_the_same_full_tiles(self):
        for block_n in (48, 64, 80, 96, 128):
            tiles = [explain(WORKLOADS[name], f"--block-n={block_n}")["tiles"] for name in ("one_range", "two_ranges")]
            self.assertEqual(tiles[0], tiles[1])
            self.assertEqual(tiles[0]["partial"], 0)


class DeviceArray:
    """Contiguous memory of the recording driver with the tensor methods that the binding reads."""

    def __init__(self, fake, shape, width):
        self.shape = shape
        address, count = ctypes.c_uint64(), width
        for size in shape:
            count *= size
        assert fake.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(count)) == 0
        self.address = address.value

    def data_ptr(self):
        return self.address

    def stride(self):
        strides = [1]
        for size in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * size)
        return strides


@unittest.skipUnless(HEDDLE and RUNTIME and FAKE, "no heddle, runtime or recording driver in the environment")
class Binding(unittest.TestCase):
    """A kernel from the compiler's database, found by name, prepared and launched through ctypes."""
    # 384 threads, which the recording driver's kernels allow
    CONFIG = "block_m=128,block_n=64,stages=1"

    @classmethod
    def setUpClass(cls):
        os.environ["HEDDLE_CUDA_DRIVER_LIBRARY"] = FAKE
        cls.scratch = tempfile.TemporaryDirectory()
        cls.fake = ctypes.CDLL(FAKE)
        cls.library = heddle.Library(RUNTIME)
        cls.fake.fakeCudaSetCurrent(0)
        cls.device = cls.library.open_device()

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def kernel(self, workload):
        path = database.path_of(self.scratch.name, workload, "default")
        command = database.compile_command(HEDDLE, ROOT, workload, path) + [f"--config={self.CONFIG}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 3:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(database.find(self.scratch.name, workload), {"default": path})
        store = self.library.open_store(path)
        kernel = self.library.find_kernel(store, self.device, workload)
        store.close()
        return kernel

    def launches(self):
        return self.fake.fakeCudaCalls(b"cuLaunchKernel") + self.fake.fakeCudaCalls(b"cuGraphLaunch")

    def test_launch(self):
        workload = dataclasses.replace(WORKLOADS["two_ranges"], heads=4, kv_heads=2, seqlen=1920)
        kernel = self.kernel(workload)
        info = kernel.info()
        self.assertEqual((info["match"], info["arch"]), ("untuned default", database.ARCH))
        self.assertIn("block_m=128", info["config"])
        q, out = (DeviceArray(self.fake, (1, 1920, 4, 128), 2) for _ in range(2))
        k, v = (DeviceArray(self.fake, (1, 1920, 2, 128), 2) for _ in range(2))
        lse = DeviceArray(self.fake, (1, 4, 1920), 4)
        args = kernel.arguments(q, k, v, out, lse, [value for _, value in workload.sizes])
        self.assertEqual(kernel.workspace_bytes(args), 0)
        run = kernel.prepare(args)
        before = self.launches()
        run()
        run()
        self.assertEqual(self.launches() - before, 2)
        with self.assertRaisesRegex(heddle.HeddleError, "heddle_prepare: "):
            kernel.prepare(kernel.arguments(q, k, v, out, lse))  # the sizes of the pattern are missing

    def test_launch_with_tensors(self):
        for pattern in ("document_window", "tree_decode", "relative_bias", "bias", "sink"):
            with self.subTest(pattern=pattern):
                self.launch_with_tensors(dataclasses.replace(WORKLOADS[f"library_{pattern}_8k"], name=pattern, heads=4, seqlen=2048))

    def launch_with_tensors(self, workload):
        kernel = self.kernel(workload)
        q, out = (DeviceArray(self.fake, (1, workload.rows, 4, 64), 2) for _ in range(2))
        k, v = (DeviceArray(self.fake, (1, workload.seqlen, 4, 64), 2) for _ in range(2))
        lse = DeviceArray(self.fake, (1, 4, workload.rows), 4)
        tensors = [(DeviceArray(self.fake, operand.shape, 8), operand.length) for operand in workload.operands.values()]
        args = kernel.arguments(q, k, v, out, lse, [value for _, value in workload.sizes], tensors=tensors)
        workspace = DeviceArray(self.fake, (max(1, kernel.workspace_bytes(args)),), 1)
        args.workspace, args.workspace_bytes = workspace.data_ptr(), workspace.shape[0]
        before = self.launches()
        kernel.prepare(args)()
        self.assertEqual(self.launches() - before, 1)
        with self.assertRaisesRegex(heddle.HeddleError, "is missing|no tensor|null"):
            kernel.prepare(kernel.arguments(q, k, v, out, lse, tensors=tensors[:-1]))

    def test_gradients(self):
        """Of the same database as the forward kernel."""
        workload = dataclasses.replace(find("small_causal_backward"), heads=4, kv_heads=2, seqlen=640)
        path = database.path_of(self.scratch.name, workload, "default")
        for kind, config in (("forward", [f"--config={self.CONFIG}"]), ("backward", [])):
            done = subprocess.run(database.compile_command(HEDDLE, ROOT, workload, path, kind) + config, capture_output=True, text=True)
            if done.returncode == 3:
                self.skipTest(done.stderr.strip())
            self.assertEqual(done.returncode, 0, done.stderr)
        store = self.library.open_store(path)
        forward = self.library.find_kernel(store, self.device, workload)
        kernel = self.library.find_kernel(store, self.device, workload, kind="backward")
        store.close()
        self.assertIn("block_m=128", forward.info()["config"])
        self.assertIn("sm90_backward", kernel.info()["config"])
        q, out, d_out, d_q = (DeviceArray(self.fake, (1, 640, 4, 64), 2) for _ in range(4))
        k, v, d_k, d_v = (DeviceArray(self.fake, (1, 640, 2, 64), 2) for _ in range(4))
        lse = DeviceArray(self.fake, (1, 4, 640), 4)
        args = kernel.with_gradients(kernel.arguments(q, k, v, out, lse), d_out, d_q, d_k, d_v)
        workspace = DeviceArray(self.fake, (kernel.workspace_bytes(args),), 1)
        args.workspace, args.workspace_bytes = workspace.data_ptr(), workspace.shape[0]
        before = self.launches()
        kernel.prepare(args)()
        self.assertGreaterEqual(self.launches() - before, 1)
        with self.assertRaisesRegex(heddle.HeddleError, "heddle_prepare: "):
            kernel.prepare(kernel.arguments(q, k, v, out, lse))  # without gradients

    def test_refusals(self):
        with self.assertRaisesRegex(heddle.HeddleError, "heddle_store_open: .*missing.db"):
            self.library.open_store(os.path.join(self.scratch.name, "missing.db"))


class Commands(unittest.TestCase):
    def test_tune(self):
        command = database.tune_command("heddle", "/r", WORKLOADS["win4k_1m"], "f.db", "5s")
        self.assertEqual(command[:3], ["heddle", "tune", "/r/patterns/sliding_window.mlir"])
        for word in ("--seqlen=131072", "left=4095", "--heads=8", "--kv-heads=8", "--budget=5s", "--name=win4k_1m"):
            self.assertIn(word, command)

    def test_gradients(self):
        workload = find("win1k_32k_backward")
        command = database.tune_command("heddle", "/r", workload, "f.db", "5s")
        for word in ("--kind=backward", "left=1023", "--name=win1k_32k_backward"):
            self.assertIn(word, command)
        self.assertIn("--kind=backward", database.compile_command("heddle", "/r", workload, "f.db"))
        self.assertIn("--kind=forward", database.compile_command("heddle", "/r", workload, "f.db", "forward"))
        self.assertEqual(workload.flops, 2.5 * WORKLOADS["win1k_32k"].flops)

    def test_tune_with_tensors(self):
        with tempfile.TemporaryDirectory() as folder:
            command = database.tune_command("heddle", "/r", WORKLOADS["library_tree_decode_8k"], os.path.join(folder, "f.db"), "5s")
            file = os.path.join(folder, "library_tree_decode_8k.operands.safetensors")
            for word in ("--seqlen=64", "--seqlen-k=8192", f"ancestors={file}"):
                self.assertIn(word, command)
            self.assertTrue(os.path.exists(file))

    def test_default_names(self):
        self.assertEqual([name for name in WORKLOADS if name not in DEFAULT + LIBRARY],
                         ["dense_2k_d128", "causal_2k_d128", "document_32k", "bsparse10_32k", "small_dense", "small_causal", "small_window", "one_range"])
        for name in DEFAULT:
            self.assertIsNotNone(WORKLOADS[name].target, name)


class Report(unittest.TestCase):
    CHECK = {"rows": 4, "error": 1e-3, "nan": False, "ok": True}

    def entries(self, workload, **milliseconds):
        return [report.entry(name.replace("_", " "), workload, [ms, ms, 9 * ms], 1.4, self.CHECK) for name, ms in milliseconds.items()]

    def test_judgement(self):
        workload = WORKLOADS["dense_8k_d128"]
        entries = self.entries(workload, heddle=1.0, heddle_default=1.1, cuDNN=1.25, FA2=1.2)
        judged = report.judge(workload, entries)
        self.assertEqual((judged["heddle"], judged["best_peer"], judged["verdict"]), ("heddle", "FA2", "must"))
        self.assertAlmostEqual(judged["value"], 1.25)
        self.assertAlmostEqual(entries[0]["tflops"], workload.flops / 1e9)
        entries[0]["ok"] = False
        self.assertEqual(report.judge(workload, entries)["verdict"], "below")
        entries[1]["ok"] = False
        self.assertEqual(report.judge(workload, entries)["verdict"], "no right result")

    def test_judgement_of_gradients(self):
        workload = find("causal_8k_d128_backward")
        entries = self.entries(workload, heddle=1.0, cuDNN=1.25, FA3=1.05)
        judged = report.judge(workload, entries)
        self.assertEqual((judged["kind"], judged["verdict"], judged["best_peer"]), ("fa3", "must", "FA3"))
        self.assertAlmostEqual(judged["value"], 1.05)
        self.assertEqual(report.judge(workload, entries[:2])["verdict"], "not compared")

    def test_cost(self):
        workload, one = WORKLOADS["two_ranges"], WORKLOADS["one_range"]
        entries = self.entries(workload, heddle=1.02) + self.entries(one, heddle=1.0)
        judged = report.judge(workload, entries)
        self.assertEqual(judged["verdict"], "must")
        self.assertAlmostEqual(judged["value"], 2.0)

    def test_table(self):
        workload = dataclasses.replace(WORKLOADS["win1k_32k"], target=Target("product", 1, 1000))
        entries = self.entries(workload, heddle=1.0, FA2=2.0)
        row = {"name": workload.name, "shape": workload.shape_text(), "kept_pairs": workload.kept_pairs, "product_tflops": 785.0,
               "clock": {"sm_mhz": 1700.0, "power_w": 690.0, "temperature_c": 60.0}, "entries": entries, "failed": {"cuDNN": "refused"},
               "judged": report.judge(workload, entries)}
        results = {"date": "today", "command": "c", "machine": {"GPU": "g"}, "method": "m", "workloads": [row], "not_measured": {}}
        text = report.markdown(results, columns.STANDARD)
        self.assertIn("| win1k_32k | 1x16x32768x128 | 1.000 | 271 |", text)
        self.assertIn("2.00 x FA2", text)
        self.assertIn("| must |", text)
        self.assertIn("- cuDNN: refused (win1k_32k)", text)


class SharedGpu(unittest.TestCase):
    def test_turns(self):
        """Two prepare at once; who measures waits for them and is alone, also before those who came later to prepare."""
        with tempfile.TemporaryDirectory() as folder:
            order = []
            both, wants = threading.Barrier(3), threading.Event()

            def prepare():
                with Turns(folder).preparing():
                    both.wait()
                    wants.wait()
                    order.append("prepared")

            def late():
                with Turns(folder).preparing():
                    order.append("late")

            preparing = [threading.Thread(target=prepare) for _ in range(2)]
            for thread in preparing:
                thread.start()
            both.wait()
            come_late = threading.Thread(target=late)

            def measure():
                with Turns(folder).measuring():
                    order.append("measured")

            measuring = threading.Thread(target=measure)
            measuring.start()
            while _is_free(os.path.join(folder, "door")):
                pass
            come_late.start()
            wants.set()
            for thread in (*preparing, measuring, come_late):
                thread.join()
            self.assertEqual(order, ["prepared", "prepared", "measured", "late"])

    def test_alone_without_a_folder(self):
        with Turns().preparing(), Turns().measuring():
            pass


def _is_free(path):
    if not os.path.exists(path):
        return True
    with open(path, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


if __name__ == "__main__":
    unittest.main()
