"""All providers of a workload: heddle's, its peers and those of plug-ins. torch is imported when one of them makes a launch."""
import fnmatch
import importlib
from dataclasses import replace

from peers import own
from peers.launch import Provider


def _peer(name, where, is_slow=False, modules=()):
    """`modules`: of the compiler that it needs, which has caches."""
    module, function = where.split(".")

    def make(*arguments):
        return getattr(importlib.import_module(f"peers.{module}"), function)(*arguments)
    return Provider(name, make, is_slow, keeps_caches=bool(modules), modules=(f"peers.{module}", *modules))


PEERS = (_peer("cuDNN", "peers.cudnn"), _peer("FA2", "peers.fa2"), _peer("FA2 on the view", "permuted.fa2_view"),
         _peer("cuDNN per group, copied", "permuted.cudnn_permuted"), _peer("cuDNN per group, strided", "permuted.cudnn_strided"),
         _peer("FA2 composed", "permuted.fa2_composed"), _peer("FA2 per branch", "permuted.fa2_branches"), _peer("FA2 varlen", "peers.fa2_varlen"),
         _peer("FlexAttention", "peers.flex", is_slow=True, modules=("torch.nn.attention.flex_attention", "torch._dynamo", "torch._inductor")),
         _peer("SDPA with a mask", "peers.sdpa_masked", is_slow=True))


def _through_autograd(provider):
    def make(*arguments):
        return importlib.import_module("peers.gradients").through_autograd(provider.make, *arguments)
    return replace(provider, make=make)


class Providers:
    """`folder`: of databases; `globs`: the names wanted, "fast" stands for those that are quickly prepared; `added`: of plug-ins; `caches`: see
    own.Package."""

    def __init__(self, runtime, folder, globs=("*",), added=(), caches=None):
        self.runtime, self.folder, self.globs, self.added = runtime, folder, globs, added
        self.package = own.Package(folder, caches)

    def of(self, workload):
        return [provider for provider in self._all(workload) if self._is_wanted(provider)]

    def _all(self, workload):
        stored = own.stored_providers(self.runtime, self.folder, workload) if self.runtime else []
        found = [*stored, *self.package.providers(workload.backward), *PEERS, *self.added]
        return [_through_autograd(provider) if workload.backward and not provider.makes_gradients else provider for provider in found]

    def _is_wanted(self, provider):
        return any(not provider.is_slow if glob == "fast" else fnmatch.fnmatchcase(provider.name, glob) for glob in self.globs)

    def named(self, workload, name):
        return next(provider for provider in self._all(workload) if provider.name == name)
