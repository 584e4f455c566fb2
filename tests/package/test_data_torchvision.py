"""Downloads of small files made here, from a server on this machine; never the network."""

import functools
import gzip
import hashlib
import http.server
import pickle
import tarfile
import threading
from pathlib import Path

import pytest
import torch
from torchvision import datasets

from vitbook.data import DataError, load_torchvision

TRAIN, TEST = 300, 100  # images of the small sets


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


@pytest.fixture
def mirror(small_image_files, tmp_path, monkeypatch):
    """A folder with the archives of the small sets; torchvision's checksums are those."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    for file in sorted((small_image_files / "MNIST" / "raw").iterdir()):
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    resources = [(path.name, md5(path)) for path in folder.iterdir()]
    for cls in (datasets.MNIST, datasets.FashionMNIST):
        monkeypatch.setattr(cls, "resources", resources)
        monkeypatch.setattr(cls, "mirrors", ["http://127.0.0.1:9/"])
    archive = folder / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(small_image_files / "cifar-10-batches-py", "cifar-10-batches-py")
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5(archive))
    monkeypatch.setattr(datasets.CIFAR10, "url", "http://127.0.0.1:9/cifar-10-python.tar.gz")
    return folder


@pytest.fixture
def server(mirror):
    """The same folder over HTTP, on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(mirror))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def fetched(name, root, server):
    return load_torchvision(name, root, download=True, mirror=server)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_grey_images_are_downloaded_checked_and_read(name, tmp_path, server, small_image_files):
    images, labels = fetched(name, tmp_path / "new" / "data", server)
    raw = small_image_files / "MNIST" / "raw"  # heads of 16 and of 8 bytes
    assert images.dtype == torch.uint8
    assert images.shape == (TRAIN, 1, 28, 28)
    assert images.numpy().tobytes() == (raw / "train-images-idx3-ubyte").read_bytes()[16:]
    assert bytes(labels.tolist()) == (raw / "train-labels-idx1-ubyte").read_bytes()[8:]


def test_colour_images_are_downloaded_checked_and_read(tmp_path, server, small_image_files):
    images, labels = fetched("cifar10", tmp_path / "data", server)
    batch = pickle.loads((small_image_files / "cifar-10-batches-py/data_batch_1").read_bytes())
    assert images.is_contiguous()
    assert torch.equal(images, torch.tensor(batch["data"]).view(-1, 3, 32, 32))
    assert labels.tolist() == batch["labels"]


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_server_serves_as_a_mirror_and_the_next_load_needs_none(name, tmp_path, server):
    first = load_torchvision(name, tmp_path, "test", download=True, mirror=server)
    again = load_torchvision(name, tmp_path, "test")
    assert len(first.images) == TEST
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_tenth_of_each_training_class_validates(name, tmp_path, server):
    whole = fetched(name, tmp_path, server)
    train, validation = (load_torchvision(name, tmp_path, p) for p in ("train", "validation"))
    assert validation.labels.bincount().tolist() == [3] * 10
    assert len(train.labels) == TRAIN - 30
    rows = {image.numpy().tobytes() for image in whole.images}
    both = torch.cat([train.images, validation.images])
    assert {image.numpy().tobytes() for image in both} == rows


# --- what can go wrong: for each kind of damage, what the message must say


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def change(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


DAMAGE = [
    ("mnist", "MNIST/raw/train-images-idx3-ubyte.gz", cut, "is truncated"),
    ("mnist", "MNIST/raw/t10k-labels-idx1-ubyte.gz", change, "has the wrong checksum (MD5"),
    ("mnist", "MNIST/raw/t10k-images-idx3-ubyte", cut, "is truncated"),
    ("cifar10", "cifar-10-batches-py/data_batch_1", cut, "is truncated"),
    ("cifar10", "cifar-10-batches-py/test_batch", Path.unlink, "is missing"),
]


@pytest.mark.parametrize(("name", "file", "damage", "words"), DAMAGE)
def test_a_damaged_file_is_named_and_download_mends_it(name, file, damage, words, tmp_path, server):
    fetched(name, tmp_path, server)
    damage(tmp_path / file)
    with pytest.raises(DataError) as caught:
        load_torchvision(name, tmp_path)
    message = str(caught.value)
    assert str(tmp_path / file) in message
    assert words in message
    assert "download=True" in message
    assert len(fetched(name, tmp_path, server).images) == TRAIN


@pytest.mark.parametrize(
    ("name", "file"),
    [("mnist", "train-labels-idx1-ubyte.gz"), ("cifar10", "cifar-10-python.tar.gz")],
)
@pytest.mark.parametrize(("damage", "words"), [(cut, "is truncated"), (change, "wrong checksum")])
def test_a_download_that_arrives_damaged_is_not_used(
    name, file, damage, words, tmp_path, mirror, server
):
    damage(mirror / file)
    with pytest.raises(DataError) as caught:
        fetched(name, tmp_path / "data", server)
    assert words in str(caught.value)
    assert "run it again, or name another mirror" in str(caught.value)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_without_a_network_the_message_says_what_to_do(name, tmp_path):
    with http.server.HTTPServer(("127.0.0.1", 0), None) as closed:
        nobody = f"http://127.0.0.1:{closed.server_address[1]}"
    with pytest.raises(DataError) as caught:
        load_torchvision(name, tmp_path, download=True, mirror=nobody)
    message = str(caught.value)
    assert nobody in message
    assert "check the network" in message
    assert "\n" not in message


BAD_INPUT = [
    (("imagenet", "."), {}, ValueError, "name must be one of 'mnist'"),
    (("mnist", ".", "dev"), {}, ValueError, "part must be one of 'train'"),
    (("mnist", "."), {"mirror": "file:///a"}, ValueError, "mirror must be an address"),
    (("mnist", "/nowhere/x"), {}, DataError, "/nowhere/x does not exist"),
    (("mnist", "/"), {}, DataError, "is missing: fetch mnist with download=True"),
]


def test_bad_input_is_named(bad_input, refused):
    arguments, options, error, words = bad_input
    refused(lambda: load_torchvision(*arguments, **options), error, words)
