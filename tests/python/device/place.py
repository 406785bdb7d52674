"""Where tensors are and what they are made of."""
import torch


class Place:
    def __init__(self, device):
        self.device, self.on_gpu = device, device == "cuda"
        self.length = 777 if self.on_gpu else 427  # of tests that compute a lot
        self.dtype = torch.bfloat16 if self.on_gpu else torch.float32

    def draw(self, batch=2, n=777, heads=4, kv=2, d=64, seed=0):
        generator = torch.Generator(self.device).manual_seed(seed)
        return [torch.randn(batch, n, each, d, device=self.device, generator=generator).to(self.dtype) for each in (heads, kv, kv)]

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()
