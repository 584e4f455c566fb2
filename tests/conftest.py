"""Shared by tests: small image files in the real formats, and one Chromium for the whole session.

`VITBOOK_REQUIRE_BROWSER=1` turns "no browser, skipped" into a failure, and
`VITBOOK_REQUIRE_SANDBOX=1` "no sandbox, skipped"; `make test` sets both.
`VITBOOK_CHROMIUM=/path/to/chromium` names the program, if it is not found by itself.
"""

import hashlib
import os
import pickle
import signal
import sys

import numpy as np
import pytest

from tools.browser import FLAGS, driver_complaint, find_chromium
from tools.sandbox import in_chroot

# A shell ignores Ctrl-C in what it starts in the background, and processes inherit that: the tests
# that stop a process with Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """For a GPU that is not there, torch.manual_seed would keep the stack trace of each call, three
    times: that takes longer than many a test."""
    if "torch" in sys.modules:
        import torch

        for device in (torch.cuda, torch.xpu, torch.mtia):
            if not device.is_available():
                device.manual_seed_all = lambda seed: None


@pytest.fixture
def small_image_files(tmp_path, monkeypatch):
    """MNIST, Fashion-MNIST and CIFAR-10 with noise instead of images; VITBOOK_DATA leads there.

    30 training and 10 test images of each class; in this process the experiments take 20 of a
    class to learn from. Without archives beside them the files are only checked for their length.
    """
    from experiments.machinery import image_sets

    folder, random = tmp_path / "small data", np.random.default_rng(0)
    for name in ("MNIST", "FashionMNIST"):
        raw = folder / name / "raw"
        raw.mkdir(parents=True)
        for part, per_class in (("train", 30), ("t10k", 10)):
            labels = random.permutation(np.arange(10 * per_class) % 10)
            images = random.integers(0, 256, (len(labels), 28, 28))
            for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
                sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
                data = bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()
                (raw / f"{part}-{kind}-ubyte").write_bytes(data)
    _small_cifar(folder / "cifar-10-batches-py", random, monkeypatch)
    monkeypatch.setenv("VITBOOK_DATA", str(folder))
    monkeypatch.setattr(image_sets, "PER_CLASS", {"train": 20, "validation": 2})
    return folder


def _small_cifar(folder, random, monkeypatch):
    """CIFAR-10 with as many images; torchvision takes their checksums for the right ones."""
    from torchvision.datasets import CIFAR10

    contents = {"batches.meta": {"label_names": list("abcdefghij")}}
    for name, per_class in (("data_batch_1", 30), ("test_batch", 10)):
        labels = random.permutation(np.arange(10 * per_class) % 10)
        images = random.integers(0, 256, (len(labels), 3 * 32 * 32), dtype=np.uint8)
        contents[name] = {"data": images, "labels": labels.tolist()}
    folder.mkdir()
    found = {}
    for name, content in contents.items():
        (folder / name).write_bytes(pickle.dumps(content))
        found[name] = hashlib.md5((folder / name).read_bytes()).hexdigest()
    meta = {"filename": "batches.meta", "key": "label_names", "md5": found.pop("batches.meta")}
    train, test = ([item] for item in found.items())
    for attribute, value in (("train_list", train), ("test_list", test), ("meta", meta)):
        monkeypatch.setattr(CIFAR10, attribute, value)


@pytest.fixture(scope="session")
def browser():
    """A running Chromium (playwright's sync API); skips with the reason where there is none."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        _no_browser(f"playwright is not installed ({error})")
    if complaint := driver_complaint():
        _no_browser(complaint)
    program = find_chromium()
    if program is None:
        _no_browser("no Chromium was found; install it or set VITBOOK_CHROMIUM")
    with sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        except Error as error:
            _no_browser(f"{program} does not start: {str(error).splitlines()[0]}")
        yield chromium
        chromium.close()


def _no_browser(reason: str):
    if os.environ.get("VITBOOK_REQUIRE_BROWSER") == "1":
        pytest.fail(f"a browser is required: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def no_sandbox():
    """Called with a reason it fails where a sandbox is required, but for a chroot: it skips."""

    def missing(reason: str):
        if os.environ.get("VITBOOK_REQUIRE_SANDBOX") == "1" and not in_chroot():
            pytest.fail(f"a sandbox is required: {reason}", pytrace=False)
        pytest.skip(f"no sandbox{' in a chroot' if in_chroot() else ''}: {reason}")

    return missing
