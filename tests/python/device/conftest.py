"""The machine that tests of this folder run on, and what they say beside right and wrong.

`pytest tests/python/device` with a PyTorch for CUDA runs all of them, HEDDLE_CUDA_DRIVER_LIBRARY unset. Without a GPU those marked `gpu` are
skipped, the others compute in host memory. The summary prints what each test says(), figures mostly; --junitxml=FILE keeps it.
"""
import os

import pytest

import heddle
from time_limit import time_limit

LIMIT = 300  # seconds of a test; one that hangs ends the program


def without_gpu():
    """Why there is none to test on; None if there is one."""
    if os.environ.get("HEDDLE_CUDA_DRIVER_LIBRARY"):
        return "HEDDLE_CUDA_DRIVER_LIBRARY stands in for the driver of a GPU"
    try:
        import torch
    except ImportError:
        return "no PyTorch"
    return None if torch.cuda.is_available() else "no GPU that PyTorch sees"


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU")


def pytest_collection_modifyitems(items):
    reason = without_gpu()
    for item in items:
        if reason and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def place():
    from place import Place
    return Place("cpu" if without_gpu() else "cuda")


@pytest.fixture(scope="module", autouse=True)
def best_kernels_of_a_new_database(tmp_path_factory):
    heddle.configure(database=tmp_path_factory.mktemp("database") / "kernels.db", first="best")
    yield
    heddle.configure()


@pytest.fixture(scope="session")
def stderr_of_the_program(pytestconfig):
    """Not the file that pytest captures it in, which is lost where a test that hangs ends the program."""
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        copy = os.fdopen(os.dup(2), "w")
    yield copy
    copy.close()


@pytest.fixture(autouse=True)
def in_time(stderr_of_the_program):
    with time_limit(LIMIT, stderr_of_the_program):
        yield


@pytest.fixture
def says(request):
    return lambda what: request.node.user_properties.append(("says", what))


def pytest_terminal_summary(terminalreporter):
    for report in [each for end in ("passed", "failed", "skipped") for each in terminalreporter.getreports(end)]:
        for name, what in getattr(report, "user_properties", ()):  # modules that are skipped have none
            if name == "says":
                terminalreporter.write_line(f"{report.location[2]}: {what}")
