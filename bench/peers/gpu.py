"""The GPU as the measurements ask it."""
import functools

import torch


FLUSH_BYTES = 256 << 20
SLEEP_CYCLES = 500_000  # about 0.3 ms: the host is ahead of the GPU when the timed launch comes


class Gpu:
    device = "cuda"

    def start(self):
        torch.cuda.init()
        torch.zeros(1, device=self.device)

    @functools.cached_property
    def _flushed(self):
        return torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=self.device)

    def launch_ms(self, run):
        """Of one call, after the L2 was flushed."""
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(SLEEP_CYCLES)
        self._flushed.zero_()
        start.record()
        result = run()
        stop.record()
        stop.synchronize()
        del result
        return start.elapsed_time(stop)

    def product(self):
        """The bf16 matrix product 8192^3 of the same rounds."""
        a, b = (torch.randn(8192, 8192, device=self.device, dtype=torch.float32).to(torch.bfloat16) for _ in range(2))
        c = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=c)

    def name(self):
        return torch.cuda.get_device_name()

    def synchronize(self):
        torch.cuda.synchronize()

    def empty_cache(self):
        torch.cuda.empty_cache()

    def allocated(self):
        """Bytes asked of torch's allocator and not given back."""
        return torch.cuda.memory_stats()["requested_bytes.all.current"]

    def peak(self):
        """The most of them since reset_peak."""
        return torch.cuda.memory_stats()["requested_bytes.all.peak"]

    def reset_peak(self):
        torch.cuda.reset_peak_memory_stats()

    def reserved(self):
        """Bytes that torch's allocator took from the device."""
        return torch.cuda.memory_reserved()

    def used(self):
        """Bytes of the device that are taken, by whomever."""
        free, total = torch.cuda.mem_get_info()
        return total - free

    def inputs(self, workload):
        """q, k, v of a workload, [batch, rows, heads, dim], the same numbers in every process."""
        generator = torch.Generator(device=self.device).manual_seed(0)

        def normal(rows, heads):
            whole = torch.empty(workload.batch, rows, heads, workload.head_dim, dtype=torch.bfloat16, device=self.device)
            for part in whole.view(-1).split(1 << 26):
                part.copy_(torch.randn(part.shape, generator=generator, device=self.device))
            return whole

        return normal(workload.rows, workload.heads), normal(workload.seqlen, workload.kv), normal(workload.seqlen, workload.kv)
