"""heddle as providers: stored kernels through the C interface, and the Python package. torch is imported when a launch is made."""
import functools
import os

from peers import database
from peers.heddle import Library
from peers.launch import Launch, Provider

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Runtime:
    """libheddle_runtime.so and the GPU, opened when a kernel is asked for."""

    def __init__(self, path):
        self.path = path

    @functools.cached_property
    def library(self):
        return Library(os.path.abspath(self.path))

    @functools.cached_property
    def device(self):
        return self.library.open_device()

    def find(self, path, workload, kind="forward"):
        store = self.library.open_store(path)
        kernel = self.library.find_kernel(store, self.device, workload, kind=kind)
        store.close()
        return kernel


def stored(runtime, path, workload, q, k, v):
    """A kernel of a database, prepared; results in memory of its own. Of gradients, out and lse are those of the forward kernel of the
    same database."""
    import torch
    from peers.reference import tensor_of
    out = torch.empty_like(q)
    lse = torch.empty(workload.batch, workload.heads, workload.rows, dtype=torch.float32, device=q.device)
    tensors = [(tensor_of(operand, q.device), operand.length) for operand in workload.operands.values()]

    def arguments(kernel):
        return kernel.arguments(q, k, v, out, lse, [value for _, value in workload.sizes], tensors=tensors)

    forward = runtime.find(path, workload)
    launch = _prepared(forward, arguments(forward), (out, lse), (q, k, v, tensors))
    if not workload.backward:
        launch.is_exact = True
        return launch
    launch.run()
    from peers.gradients import of_out
    kernel, d_out = runtime.find(path, workload, "backward"), of_out(q)
    gradients = tuple(map(torch.empty_like, (q, k, v)))
    args = kernel.with_gradients(arguments(kernel), d_out, *gradients)
    launch = _prepared(kernel, args, gradients, (q, k, v, tensors, out, lse, d_out))
    launch.sums_in_any_order = True
    return launch


def _prepared(kernel, args, written, keep):
    """A launch of the kernel with a workspace; `keep`: what it reads."""
    import torch
    needed = kernel.workspace_bytes(args)
    workspace = torch.empty(max(256, needed), dtype=torch.uint8, device=written[0].device)
    args.workspace, args.workspace_bytes = (workspace.data_ptr(), needed) if needed else (None, 0)
    stream = torch.cuda.current_stream().cuda_stream
    launch = kernel.prepare(args, stream)
    keep = keep, workspace

    def run():
        launch()
        return written

    def poison(keep=keep):
        for tensor in written:
            tensor.fill_(float("nan"))

    return Launch(run, set_up=lambda: kernel.prepare(args, stream), workspace_bytes=needed, poison=poison, info=kernel.info())


def stored_providers(runtime, folder, workload):
    """One for each database of the workload."""
    return [Provider(f"heddle {tag}".strip(), functools.partial(stored, runtime, path),
                     makes_gradients=True, never_cold="the runtime alone compiles nothing: a database with the kernel is there", modules=("peers.reference",))
            for tag, path in database.find(folder, workload).items()]


class Package:
    """The Python package `heddle`. In a first call (`caches`) kernels come from a database there, empty when it is cold; else from
    the databases that were measured, or they are compiled for this GPU once."""

    def __init__(self, folder, caches=None):
        self.folder, self.caches, self.configured = folder, caches, None

    def providers(self, backward=False):
        """Of gradients, which prepared calls have none of, heddle.attention alone."""
        modules = ("heddle", "peers.reference")
        attention = Provider("heddle.attention", self.attention, modules=modules)
        prepared = Provider("heddle.prepare", self.prepared, modules=modules, never_cold="as of heddle.attention")
        return [attention] if backward else [attention, prepared]

    def attention(self, workload, q, k, v):
        """heddle.attention, which allocates its results."""
        heddle = self._loaded(workload)
        given = self._arguments(heddle, workload, q.device)
        return Launch(lambda: heddle.attention(q, k, v, return_lse=True, **given), is_exact=True, settle=self._settle(heddle, q, k, v, given))

    def prepared(self, workload, q, k, v):
        """A call of heddle.prepare."""
        heddle = self._loaded(workload)
        given = self._arguments(heddle, workload, q.device)
        call = heddle.prepare(q, k, v, **given)
        workspace = getattr(call, "workspace", None)

        def poison():
            call.out.fill_(float("nan"))
            call.lse.fill_(float("nan"))

        known = {name: getattr(call.kernel, name) for name in ("config", "arch", "match", "registers", "spill_bytes", "note") if call.kernel}
        return Launch(lambda: (call(), call.lse), info=known, set_up=lambda: heddle.prepare(q, k, v, **given), poison=poison, is_exact=True,
                      workspace_bytes=0 if workspace is None else workspace.numel(), settle=self._settle(heddle, q, k, v, given))

    def _loaded(self, workload):
        """The module with its databases set, once for a workload: calls ask anew where they were set anew."""
        import heddle
        if not heddle.has_compiler():
            raise RuntimeError("the package holds the runtime alone: a pattern file needs the compiler")
        if self.configured != workload.name:
            self._configure(heddle, workload)
            self.configured = workload.name
        return heddle

    def _configure(self, heddle, workload):
        if self.caches:
            heddle.configure(database=self._fresh_database())
        else:
            shipped = tuple(database.find(self.folder, workload).values())
            heddle.configure(database=os.path.join(self.folder, "package.compiled"), shipped=shipped, first="best")

    def _fresh_database(self):
        return os.path.join(self.caches, "package.compiled")

    def _arguments(self, heddle, workload, device):
        tensors = {}
        if workload.operands:
            from peers.reference import tensor_of
            tensors = {name: tensor_of(operand, device) for name, operand in workload.operands.items()}
        return {"pattern": heddle.load(os.path.join(ROOT, workload.pattern)), **dict(workload.sizes), **tensors}

    def _settle(self, heddle, q, k, v, given):
        """The first call got the portable kernel; the one for this GPU, which is compiled in the background, is filed too."""
        def settle():
            heddle.configure(database=self._fresh_database(), first="best")
            heddle.kernel(q, k, v, **given)
        return settle if self.caches else None
