# Text in, text out. Needs FileCheck; the paths come from the build (lit.site.cfg.py.in).
import os
import subprocess
import sys

import lit.formats

config.name = "heddle"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PATH"] = os.pathsep.join(
    [config.heddle_bin, config.filecheck_bin, config.environment["PATH"]])
# A database of the person who runs the tests must never be touched.
config.environment["HEDDLE_DB"] = os.path.join(config.test_exec_root, "no-such.db")
for name in ("CUDA_HOME", "HEDDLE_NVRTC_LIBRARY", "HEDDLE_NVRTC_BEHIND", "HEDDLE_NVRTC_CACHE"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.substitutions.append(("%fake_gpu", "env HEDDLE_CUDA_DRIVER_LIBRARY=" + config.fake_cuda + " HEDDLE_FAKE_CUDA_THREADS=1024"))
config.substitutions.append(("%fake_cuda_library", config.fake_cuda))
config.substitutions.append(("%fake_nccl", config.fake_nccl))
config.substitutions.append(("%counted_calls", config.counted_calls))
config.substitutions.append(("%patterns", config.patterns))
config.substitutions.append(("%tables", os.path.join(os.path.dirname(config.patterns), "tests", "data", "tuner")))
config.substitutions.append(("%version", config.version))
config.substitutions.append(("%python", sys.executable))

# Sanitizers take terabytes of addresses.
if subprocess.run(["bash", "-c", 'ulimit -v 4000000 && exec "$0" --version', os.path.join(config.heddle_bin, "heddle")], capture_output=True).returncode == 0:
    config.available_features.add("memory-limit")

# The program itself knows best whether it finds NVRTC: exit code 3 is "not here".
compile_one = [os.path.join(config.heddle_bin, "heddle"), "compile", os.path.join(config.patterns, "full.mlir"),
               "--arch=" + config.baseline_arch, "--emit=ptx", "-o", os.devnull]
if subprocess.run(compile_one, env=config.environment, capture_output=True).returncode != 3:
    config.available_features.add("nvrtc")

# What ./dev test --all runs beside the rest.
if os.environ.get("HEDDLE_TEST_ALL"):
    config.available_features.add("all")
