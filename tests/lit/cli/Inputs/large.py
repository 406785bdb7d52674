"""Prints a pattern that is too large in one way: `arguments` or `nesting`."""
import sys

arguments = ", ".join(f"%a{i}: i32" for i in range(300)) if sys.argv[1] == "arguments" else ""
depth = 70 if sys.argv[1] == "nesting" else 0
print(f"attn.pattern @large({arguments}) {{\n  %0 = attn.causal")
for i in range(depth):
    print(f"  %{i + 1} = attn.not %{i}")
print(f"  attn.softmax union(%{depth})\n}}")
