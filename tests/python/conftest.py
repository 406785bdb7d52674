"""Which library and which parts are there. HEDDLE_LIBRARY names the library; tests of the compiler, of numpy or of PyTorch are skipped,
with the reason, where these are missing."""
import importlib.metadata
import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if not os.environ.get("HEDDLE_TEST_INSTALLED"):  # else the package that is installed, tests/install/wheel.sh
    sys.path.insert(0, os.path.join(ROOT, "runtime", "Python"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import heddle  # noqa: E402


def _version_of_torch():
    try:
        return tuple(map(int, importlib.metadata.version("torch").split(".")[:2]))
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None


if (_version_of_torch() or (2, 4)) < (2, 4):  # that of a distribution: tests skip as if there were none
    sys.modules["torch"] = None


def pytest_configure(config):
    config.addinivalue_line("markers", "compiler: needs libheddle, not the runtime alone")


def pytest_collection_modifyitems(items):
    if not heddle.has_compiler():
        for item in items:
            if item.get_closest_marker("compiler"):
                item.add_marker(pytest.mark.skip(reason="HEDDLE_LIBRARY is the runtime alone"))


@pytest.fixture(scope="session")
def root():
    return ROOT

