"""PyTorch's random numbers, refused inside traced functions. A file of its own: it needs PyTorch."""
from torch.overrides import TorchFunctionMode

from . import _symbols

_NAMES = frozenset(("bernoulli", "binomial", "cauchy", "dropout", "alpha_dropout", "feature_alpha_dropout", "exponential", "geometric", "gumbel_softmax",
                    "log_normal", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random",
                    "randperm", "rrelu", "uniform"))


class Refused(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "").strip("_")
        if name in _NAMES:
            _symbols.refuse(f"draws random numbers by torch.{name}, one for all pairs", "heddle.words.random keeps random keys")
        return function(*args, **(kwargs or {}))
