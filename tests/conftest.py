"""What every test stands on: no network, one thread a worker, properties without a clock."""

from __future__ import annotations

import gc
import os

from hypothesis import settings

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the package is compiled once, not by each command that is started
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a test that wants the hub asks for it
os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded: workers share the processor

# no deadline: the machine may be busy; in CI the same examples every time
settings.register_profile("assay", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("assay")


def pytest_collection_finish() -> None:
    """What is loaded by now stays: to look through it again for garbage, at every 700th object, is a fifth of a run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
