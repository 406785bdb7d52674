"""What flex.py calls inside torch.compile: as Python, not as nodes of a graph. A file of its own, as torch.compiler.disable takes seconds to
load."""
import torch

from . import flex

pattern_now = torch.compiler.disable(flex.pattern_now)
