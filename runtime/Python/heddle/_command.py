"""The command line of the package: `heddle explain` and `heddle show` for patterns in Python."""
import json
import os
import shutil
import subprocess

from . import _library, _scalars
from .errors import InvalidArgumentError, UnavailableError

_EXPLAIN = ("seqlen", "seqlen_k", "heads", "kv_heads", "head_dim", "value_dim", "dtype", "batch", "block_m", "block_n", "q_origin", "gpu")
_SHOW = ("seqlen", "seqlen_k", "heads", "head", "block_m", "block_n", "q_origin", "max_cells")


def program():
    """The path of heddle: of the package, beside the library, or on PATH. UnavailableError if it is nowhere."""
    folders = [os.path.join(_library.package_folder(), "bin")]
    path = _library.library().path
    if os.path.isabs(path):
        folders.append(os.path.join(os.path.dirname(os.path.dirname(path)), "bin"))
    for folder in folders:
        file = os.path.join(folder, "heddle")
        if os.access(file, os.X_OK):
            return file
    found = shutil.which("heddle")
    if not found:
        raise UnavailableError(f"no program heddle in {' or '.join(folders)} or on PATH; install a wheel with the compiler")
    return found


def _run(verb, options, pattern):
    command = [program(), verb, *options, "--pattern", pattern.name, "-"]
    done = subprocess.run(command, input=pattern.text, capture_output=True, encoding="utf-8")
    if done.returncode:
        kind = UnavailableError if done.returncode == 3 else InvalidArgumentError
        raise kind(done.stderr.strip() or f"heddle {verb} ended with {done.returncode}")
    return done.stdout


def _options(pattern, sizes, known):
    """--name=value of what the verb knows, --set and --operand of what the pattern does."""
    options, values = [], dict(pattern.values)
    pattern.refuse_unclear("sizes", set(known) & sizes.keys() - {"seqlen"})
    for name, value in sizes.items():
        if name in known:
            options.append(f"--{name.replace('_', '-')}={_scalars.plain(value)}")
        elif name in pattern.by_name:
            values[name] = value
        else:
            raise InvalidArgumentError(f"pattern {pattern.name}: {name!r}: expected one of {', '.join(known)} or an argument of the pattern")
    for name, value in values.items():
        if pattern.argument(name).kind == "tensor":
            options += ["--operand", f"{name}={value}"]  # FILE:TENSOR of a safetensors file
        else:
            options += ["--set", f"{name}={pattern.checked(name, value)}"]
    return options


def explain(pattern, sizes):
    return json.loads(_run("explain", [*_options(pattern, sizes, _EXPLAIN), "--json"], pattern))


def draw(pattern, sizes):
    return _run("show", [*_options(pattern, sizes, _SHOW), "--format=svg"], pattern)


def main():
    """`python -m heddle` and the script of the wheel: the command line itself."""
    import sys
    try:
        file = program()
    except UnavailableError as error:
        sys.exit(f"heddle: {error}")
    os.execv(file, [file, *sys.argv[1:]])
