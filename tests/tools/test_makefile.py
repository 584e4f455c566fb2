"""The commands: what make offers, how the environment is made, what the workflows call."""

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from tools import browser, environment, links

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text("utf8")
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text("utf8"))["jobs"]
    for path in (ROOT / ".github/workflows").glob("*.yml")
}


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)


make = partial(run, "make", "--no-print-directory")


def test_make_plans_what_is_promised_asks_for_a_python_and_computes_with_one_thread():
    texts = [(ROOT / name).read_text("utf8") for name in ("README.md", "CONTRIBUTING.md")]
    texts.append((ROOT / "tools/README.md").read_text("utf8"))
    promised = set(re.findall(r"`make ([a-z-]+)", "".join(texts)))
    listed = {line.split()[0] for line in make().stdout.splitlines()[1:]}
    assert {"book", "test"} <= promised <= listed
    done = make("--dry-run", *listed, f"PYTHON={sys.executable}")  # it need not be looked for
    assert done.returncode == 0, done.stderr
    done = make("install", "PYTHON=")
    assert (done.returncode, "Python 3.11 or newer is needed" in done.stdout) == (2, True)
    several = {**os.environ, "OMP_NUM_THREADS": "7"}
    shown = make("--eval", "show: ; @echo $$OMP_NUM_THREADS", "show", env=several)
    assert shown.stdout.strip() == "1"


def test_what_make_and_the_workflows_call_exists_and_no_failing_job_is_left_out():
    for name in re.findall(r"-m ((?:tools|website)[\w.]*)", MAKEFILE):
        path = ROOT / name.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), name
    steps = [step for jobs in WORKFLOWS.values() for job in jobs.values() for step in job["steps"]]
    ran = "\n".join(step.get("run", "") for step in steps)
    called = set(re.findall(r"\bmake ((?!git)[a-z-]+)", ran + (ROOT / ".ci/run").read_text()))
    assert called <= set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    report = WORKFLOWS["weekly"]["report"]
    told = set(re.findall(r"needs\.([a-z-]+)\.result", report["steps"][0]["env"]["RESULTS"]))
    assert set(report["needs"]) == told == {*WORKFLOWS["weekly"]} - {"report"}


LOCK = """# made by a tool
numpy==2.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via torch
nvidia-cublas==13 ; sys_platform == 'linux' \\
    --hash=sha256:cc
torch==2.14.1 \\
    --hash=sha256:dd
torchvision==0.29.2 ; python_version > '3' \\
    --hash=sha256:ee
uv==0.13.9 \\
    --hash=sha256:11
"""


def test_the_cpu_install_keeps_all_hashes_but_torchs_and_the_real_lock_has_one_for_all():
    torch, rest = environment.split_for_cpu(LOCK)
    assert torch == ["torch==2.14.1", "torchvision==0.29.2"]
    kept = re.findall(r"^(\w+)==|(--hash)", rest, re.MULTILINE)
    assert ["".join(one) for one in kept] == ["numpy", "--hash", "--hash", "uv", "--hash"]
    found = environment.blocks((ROOT / "requirements.txt").read_text("utf8"))
    assert len(found) > 100
    assert all("--hash=sha256:" in block for block in found)


NEEDED = ["requirements.txt", "pyproject.toml", "src/gradebox/pyproject.toml"]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    for name in NEEDED:
        (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "clone" / name).write_text(LOCK)
    monkeypatch.setattr(environment, "ROOT", tmp_path / "clone")
    return tmp_path / "clone"


def test_an_environment_is_made_when_something_has_changed_and_only_then(checkout, monkeypatch):
    venv, calls = checkout / ".venv", []
    stamp = venv / "environment.json"

    def pip_of(venv, reuse):
        calls.append("reuse" if reuse else "new")
        (venv / "bin").mkdir(exist_ok=True)
        if not (venv / "bin/python").exists():
            (venv / "bin/python").symlink_to(sys.executable)

    def install(root, venv, torch, pip, run):
        calls.append(torch)
        if (root / "broken").exists():
            raise subprocess.CalledProcessError(1, ["uv"])

    def does(*wanted, torch=None):
        calls.clear()
        assert environment.ensure(checkout, venv, torch) == bool(wanted)
        assert calls == list(wanted)

    monkeypatch.setattr(environment, "pip_of", pip_of)
    monkeypatch.setattr(environment, "install", install)
    (checkout / "broken").touch()
    with pytest.raises(subprocess.CalledProcessError):
        environment.ensure(checkout, venv, "cpu")
    (checkout / "broken").unlink()
    does("reuse", "cpu")  # an interrupted install is done again
    does()  # and the choice of the CPU lasts
    for name in NEEDED:
        (checkout / name).write_text("# more\n")
        does("reuse", "cpu")
    does("new", "default", torch="default")
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "python": "3.10"}))
    does("new", "default")  # it does not start
    environment.claim(checkout, venv, {"root": str(checkout)})
    (venv / "half").touch()
    does("new", "default")  # its making was stopped at once; it is still ours
    environment.emptied(venv)
    assert [*venv.iterdir()] == [stamp]


@pytest.mark.parametrize("says", ["is a link to", "was made for /other", "was not made by"])
def test_an_environment_of_another_folder_is_never_removed(checkout, monkeypatch, says):
    venv = checkout / ".venv"
    other = checkout.parent / "other" if "link" in says else venv
    other.mkdir()
    (other / "keep_me").touch()
    if "/other" in says:
        (venv / "environment.json").write_text('{"root": "/other"}')
    if "link" in says:
        venv.symlink_to(other)
    monkeypatch.setattr(environment, "run", lambda *_: pytest.fail("something was installed"))
    monkeypatch.setattr(sys, "argv", ["environment.py", "--venv", str(venv), "--verbose"])
    with pytest.raises(SystemExit, match=says):
        environment.main()
    assert (other / "keep_me").exists()


def test_an_incomplete_python_is_helped_by_the_systems_pip_or_explained(tmp_path, monkeypatch):
    ran, works = [], []
    monkeypatch.setattr(environment, "has_ensurepip", lambda: False)
    monkeypatch.setattr(environment, "works", lambda *command: command in works)
    monkeypatch.setattr(environment, "run", lambda *command: ran.append(command))
    monkeypatch.setattr(environment, "apt_install", lambda *names: False)
    with pytest.raises(environment.InstallError, match=r"sudo apt install python3\.\d+-venv"):
        environment.pip_of(tmp_path / "v", reuse=False)
    works.append((sys.executable, "-m", "pip", "--version"))
    assert "--python" in environment.pip_of(tmp_path / "v", reuse=False)
    assert "--without-pip" in ran[0]


def test_the_tools_need_nothing_but_python():
    code = "import sys; sys.path.insert(0, '.'); from tools import environment, browser, links"
    assert run(sys.executable, "-I", "-S", "-c", code).returncode == 0


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts programs on a machine without a browser, whose playwright lacks a library."""

    def program(name, text="#!/bin/sh\n"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
        return str(tmp_path / name)

    monkeypatch.delenv("VITBOOK_CHROMIUM", raising=False)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "NAMES", ["our-chromium", "our-chrome"])
    monkeypatch.setattr(browser, "MAC", str(tmp_path / "nothing"))
    monkeypatch.setattr(browser.sysconfig, "get_path", lambda name: str(tmp_path))
    program(browser.DRIVER, "#!/bin/sh\necho node: error: libatomic.so.1: gone >&2\nexit 127\n")
    return program


def test_chromium_is_found_where_it_is_named_or_usual_and_ubuntus_snap_starter_is_not_taken(
    program, monkeypatch
):
    program("our-chromium", "#!/bin/sh\nexec /snap/bin/chromium\n")
    assert browser.find_chromium() is None
    mac = sys.platform == "darwin"
    inside = "chrome-mac/C.app/Contents/MacOS/C" if mac else "chrome-linux/chrome"
    own = [program(f"{build}/{inside}") for build in ("chromium-100", "chromium-200")][-1]
    assert browser.find_chromium() == own
    chrome = program("our-chrome")
    assert browser.find_chromium() == chrome
    monkeypatch.setenv("VITBOOK_CHROMIUM", own)
    assert browser.find_chromium() == own
    monkeypatch.setenv("VITBOOK_CHROMIUM", "missing")
    with pytest.raises(ValueError, match="VITBOOK_CHROMIUM"):
        browser.find_chromium()


def test_what_a_machine_lacks_is_told_with_the_command_that_mends_it(program, monkeypatch):
    monkeypatch.setattr(environment, "apt_install", lambda *packages: False)
    monkeypatch.setattr(sys, "argv", ["browser.py", "--install"])
    with pytest.raises(SystemExit, match="need Chromium"):
        browser.main()
    program("our-chrome")
    with pytest.raises(SystemExit, match=r"libatomic.so.1.*sudo apt install libatomic1"):
        browser.main()


def test_the_link_check_gathers_outside_addresses_once_and_tells_gone_from_busy(
    tmp_path, monkeypatch
):
    text = '<a class="x" href="https://example.org/a?b=1&amp;c=2#part">a</a><a href="b.html">b</a>'
    text += '<a href="https://us.example.org/newer.html">of this book</a>'
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text(text)
    found = links.addresses(tmp_path, own="https://us.example.org/")
    assert found == {"https://example.org/a?b=1&c=2": ["a.html", "b.html"]}

    def urlopen(request, timeout):
        code = int(request.full_url[-3:])
        raise links.urllib.error.HTTPError(request.full_url, code, "", {}, None)

    monkeypatch.setattr(links.urllib.request, "urlopen", urlopen)
    assert links.ask("https://example.org/404") == ("404", True)
    assert links.ask("https://example.org/429") == ("429", False)
