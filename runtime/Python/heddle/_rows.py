"""Tensors of all rows and of a rank's own: cut, and put together again."""
import torch

from .errors import InvalidArgumentError, UnsupportedError


def _checked(x, rows, dim, what):
    if not -x.dim() <= dim < x.dim() or x.shape[dim] != rows:
        raise InvalidArgumentError(f"{what}: expected {rows} rows along dimension {dim}, got {list(x.shape)}")
    return dim % x.dim()


def scattered(x, plan, rank, meeting, dim, source, device):
    """The rank's rows of a tensor that the rank `source` has. Collective."""
    if not 0 <= source < plan.ranks:
        raise InvalidArgumentError(f"shard: source: expected one of {plan.ranks} ranks, got {source}")
    wrong = said = None
    if rank == source:
        try:
            if x.requires_grad and torch.is_grad_enabled():
                raise UnsupportedError("shard: source: rows from another rank have no gradients: give x detached")
            said = _checked(x, plan.seqlen, dim, "shard"), tuple(x.shape), x.dtype
        except (InvalidArgumentError, UnsupportedError) as error:
            wrong = error
    said = meeting.told(rank, source, said if wrong is None else str(wrong))
    if wrong is not None:
        raise wrong
    if isinstance(said, str):
        raise InvalidArgumentError(f"rank {source} has no rows to give: {said}")
    dim, shape, dtype = said
    device = x.device if rank == source else device
    mine = torch.empty(*shape[:dim], plan.rows(rank), *shape[dim + 1:], dtype=dtype, device=device)
    nothing = mine.new_empty(0)
    pieces = [plan.shard(x.detach(), each, dim).contiguous() if rank == source else nothing for each in range(plan.ranks)]
    return meeting.swap(rank, pieces, [mine if each == source else nothing for each in range(plan.ranks)])[source]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(context, own, plan, rank, meeting, dim):
        context.call = plan, rank, meeting, dim
        first = own.movedim(dim, 0)
        padded = first.new_empty(max(plan.rows(each) for each in range(plan.ranks)), *first.shape[1:])
        padded[:len(first)] = first
        padded[len(first):] = 0
        whole = own.new_empty(*own.shape[:dim], plan.seqlen, *own.shape[dim + 1:])
        for rows, ranges in zip(meeting.gather(rank, padded), plan.layout):
            for begin, end in ranges:
                whole.narrow(dim, begin, end - begin).copy_(rows[:end - begin].movedim(0, dim))
                rows = rows[end - begin:]
        return whole

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context, d_whole):
        plan, rank, meeting, dim = context.call
        pieces = [plan.shard(d_whole, each, dim).contiguous() for each in range(plan.ranks)]
        came = meeting.swap(rank, pieces, [torch.empty_like(pieces[rank]) for _ in pieces])
        total = came[0].to(torch.promote_types(came[0].dtype, torch.float32))
        for each in came[1:]:  # in the order of ranks: the same bits in every run
            total = total + each
        return total.to(d_whole.dtype), None, None, None, None


def gathered(own, plan, rank, meeting, dim):
    """All rows, on every rank. Collective, and its gradient is."""
    dim = _checked(own, plan.rows(rank), dim, f"gather: rank {rank}")
    return _Gather.apply(own, plan, rank, meeting, dim)
