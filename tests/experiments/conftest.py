"""A file's own toy experiment, and its record."""

import pytest
from toys import record


@pytest.fixture
def toy(request, tmp_path, monkeypatch):
    monkeypatch.setenv("VITBOOK_RUNS", str(tmp_path / "runs"))
    (tmp_path / "toy.py").write_text(request.module.TOY)
    return tmp_path / "toy.py"


@pytest.fixture
def recorded(toy):
    return record(toy)
