"""How a module of heddle.nn computes over the ranks of a group: what it cuts, and what it gathers."""
from typing import Any, NamedTuple

import torch

from . import _own_plans, distributed
from .errors import InvalidArgumentError


class OverRanks(NamedTuple):
    group: Any      # as of distributed.attention
    way: _own_plans.Way
    whole: bool     # inputs have all rows, on every rank
    gather: bool    # so has the output
    plan: Any = None

    @staticmethod
    def of(group, whole, gather, **way):
        return OverRanks(group, _own_plans.Way(**way), whole, gather)

    def __deepcopy__(self, memo):
        return self  # groups of torch.distributed have no copies

    def _plan(self, sizes, rows, device, pattern):
        group = distributed._group_for(self.group, device)
        way = self.way._replace(seqlen=rows) if self.whole else self.way
        return group, distributed._plan_of(pattern, group, sizes, rows, device, way, {})[0]

    def attention(self, q, k, v, pattern, scale):
        """Of a module without projections."""
        if self.plan is not None:
            return distributed.attention(q, k, v, self.plan, self.group, scale=scale)
        if not self.whole and not self.gather:
            return distributed.attention(q, k, v, pattern, self.group, scale=scale, **self.way._asdict())
        group = distributed._group_for(self.group, q.device)
        way = self.way._replace(seqlen=q.shape[1]) if self.whole else self.way
        plan, _ = distributed._plan_for(q, k, v, pattern, group, way, {})
        if self.whole:
            q, k, v = (plan.shard(each, group.rank) for each in (q, k, v))
        out = distributed.attention(q, k, v, plan, group, scale=scale)
        return distributed.gather(out, plan, group) if self.gather else out

    def projected(self, tensors, heads, pattern, compute):
        """compute(*tensors, over) with the rank's rows of each, [batch, rows, embed_dim]; `over` is of the attention inside."""
        first = tensors[0]
        if any(each.dim() != 3 or each.shape[1:2] != first.shape[1:2] for each in tensors):
            error = InvalidArgumentError("query, key, value: expected [batch, rows, embed_dim] with as many rows each, got "
                                         f"{[list(each.shape) for each in tensors]}")
            way = self.way._replace(seqlen=self.way.seqlen or -1) if self.whole else self.way
            _own_plans.refuse(distributed._group_for(self.group, first.device), pattern, tensors, way, {}, error)
            raise error
        if not self.whole and not self.gather:
            return compute(*tensors, self)
        head_dim = first.shape[2] // heads
        sizes = _own_plans.Sizes(first.shape[0], heads, heads, head_dim, head_dim, first.dtype, torch.is_grad_enabled())
        group, plan = self._plan(sizes, first.shape[1], first.device, pattern)
        if self.whole:
            own = {id(each): plan.shard(each, group.rank) for each in tensors}  # one tensor is cut once
            tensors = [own[id(each)] for each in tensors]
        out = compute(*tensors, self._replace(group=group, plan=plan))
        return distributed.gather(out, plan, group) if self.gather else out
