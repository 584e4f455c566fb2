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
PROMISED = "help install book serve unit test test-deep lint format notebooks experiments"
PROMISED += " bundle release publish experiments-verify bench clean distclean lock page links"
PROMISED += " colab grader"
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text("utf8"))["jobs"]
    for path in (ROOT / ".github/workflows").glob("*.yml")
}
CHECK, WEEKLY = WORKFLOWS["check"], WORKFLOWS["weekly"]


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)


make = partial(run, "make", "--no-print-directory")


def test_make_lists_every_promised_target_with_a_word_on_it_and_can_plan_it():
    listed = dict(line.split(maxsplit=1) for line in make().stdout.splitlines()[1:])
    assert set(PROMISED.split()) <= set(listed)
    assert all(len(words) > 8 for words in listed.values())
    done = make("--dry-run", *listed, f"PYTHON={sys.executable}")  # it need not be looked for
    assert done.returncode == 0, done.stderr


def test_what_make_the_hooks_and_the_workflows_call_exists():
    modules = {
        name.replace(".", "/") for name in re.findall(r"-m ((?:tools|website)[\w.]*)", MAKEFILE)
    }
    files = (f"{name}{end}" for name in modules for end in (".py", "/__main__.py"))
    assert sum((ROOT / file).is_file() for file in files) == len(modules)
    jobs = [job for jobs in WORKFLOWS.values() for job in jobs.values()]
    steps = [step.get("run", "") for job in jobs for step in job["steps"]]
    called = set(re.findall(r"\bmake ((?!git)[a-z-]+)", "\n".join(steps)))
    assert called
    assert called - set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)) == set()
    script = ROOT / ".ci/run"
    assert "bash .ci/run" in steps
    assert os.access(script, os.X_OK)
    assert re.findall(r"^exec (make \w+)", script.read_text(), re.MULTILINE) == ["make test"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf8"))["repos"]
    lint = re.search(r"^lint:.*\n((?:\t.+\n)+)", MAKEFILE, re.MULTILINE)[1]
    for hook in hooks[0]["hooks"]:
        command = re.match(r"\.venv/bin/(python -m )?([\w.]+(?: (?:check|format))?)", hook["entry"])
        begins = "$(PY) -m " if command[1] else "$(VENV)/bin/"
        assert f"{begins}{command[2]}" in lint, hook["id"]
    assert [one["repo"] for one in hooks] == ["local"]  # nothing is downloaded


def test_without_a_new_python_make_says_what_is_missing():
    done = make("install", "PYTHON=")
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stdout


def test_one_thread_wherever_numbers_are_made():
    environment = {**os.environ, "OMP_NUM_THREADS": "7"}
    shown = make("--eval", "show: ; @echo $$OMP_NUM_THREADS", "show", env=environment)
    assert shown.stdout.strip() == "1"


def test_the_workflows_test_every_python_the_oldest_packages_and_what_make_unit_does():
    said = re.findall(r"'python-version': '(.*?)'", str(CHECK["test"]))
    tested = {*said, *CHECK["unit"]["strategy"]["matrix"]["python"]}
    assert set(re.findall(r"python(3\.\d+)", MAKEFILE)) == tested
    oldest = "\n".join(step.get("run", "") for step in CHECK["lowest"]["steps"])
    assert "--resolution lowest-direct pyproject.toml" in oldest
    file, name = re.search(r"--deselect (\S+)::(\w+)", oldest).groups()
    assert f"def {name}(" in (ROOT / file).read_text("utf8")
    unit = re.search(r"^unit:.*\n\t@\$\(PY\) (.*) \$\(ARGS\)$", MAKEFILE, re.MULTILINE)[1]
    assert f"python {unit}" in [step.get("run") for step in WEEKLY["elsewhere"]["steps"]]


def test_each_weekly_job_that_fails_is_reported():
    report, jobs = WEEKLY["report"], {*WEEKLY} - {"report"}
    assert set(report["needs"]) == jobs
    told = report["steps"][0]["env"]["RESULTS"]
    assert set(re.findall(r"needs\.([a-z-]+)\.result", told)) == jobs
    assert all(WEEKLY[job]["timeout-minutes"] <= 350 for job in jobs)  # GitHub stops at 360


@pytest.mark.parametrize("job", [CHECK["test"], WEEKLY["fresh-install"], WEEKLY["elsewhere"]])
def test_a_step_that_fails_keeps_no_other_from_testing(job):
    tests = re.compile(r"\.ci/run|test-deep|build\.execute")
    wanted = [step["if"] for step in job["steps"] if tests.search(step.get("run", ""))]
    assert wanted == ["${{ !cancelled() }}"]


# --- the environment -------------------------------------------------------------------------


LOCK = """# made by a tool
numpy==2.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via torch
nvidia-cublas==13 ; sys_platform == 'linux' \\
    --hash=sha256:cc
torch==2.14.1 \\
    --hash=sha256:dd
    # via timm
torchvision==0.29.2 ; python_version > '3' \\
    --hash=sha256:ee
triton==3.8 ; sys_platform == 'linux' \\
    --hash=sha256:ff
uv==0.13.9 \\
    --hash=sha256:11
"""


def test_the_cpu_install_keeps_all_hashes_but_torchs_and_drops_cuda():
    torch, rest = environment.split_for_cpu(LOCK)
    assert torch == ["torch==2.14.1", "torchvision==0.29.2"]
    names = [line.split("==")[0] for line in rest.splitlines() if "==" in line]
    assert names == ["numpy", "uv"]
    assert rest.count("--hash") == 3
    assert "via" not in rest


def test_the_real_lock_pins_every_requirement_with_a_hash():
    lock = (ROOT / "requirements.txt").read_text("utf8")
    found = environment.blocks(lock)
    assert len(found) == len(re.findall(r"^[a-z0-9][^\n]*==", lock, re.MULTILINE | re.IGNORECASE))
    assert all("--hash=sha256:" in block for block in found)
    assert any(block.startswith("uv==") for block in found)


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
    does()
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "python": "3.10"}))
    does("new", "default")  # it does not start
    (venv / "half").touch()
    environment.emptied(venv)
    assert [*venv.iterdir()] == [stamp]
    environment.claim(checkout, venv, {"root": str(checkout)})
    (venv / "half").touch()
    does("new", "default")  # its making was stopped at once; it is still ours


OTHERS = {
    "a link": ("other", "/other", "is a link to"),
    "made for another folder": ("clone/.venv", "/other", "was made for /other"),
    "a file": ("file", "", "was not made by 'make install'"),
}


@pytest.mark.parametrize(("place", "root", "says"), OTHERS.values(), ids=OTHERS)
def test_an_environment_of_another_folder_is_never_removed(
    checkout, monkeypatch, place, root, says
):
    venv, kept = checkout / ".venv", checkout.parent / place
    if place == "file":  # some tools keep the place of an environment in a file of that name
        venv.write_text("/somewhere")
    else:
        (kept / "lib").mkdir(parents=True)
        (kept / "lib/keep_me").touch()
        if root:
            (kept / "environment.json").write_text(json.dumps({"root": root}))
    if place == "other":
        venv.symlink_to(kept)
    monkeypatch.setattr(environment, "run", lambda *_: pytest.fail("something was installed"))
    monkeypatch.setattr(sys, "argv", ["environment.py", "--venv", str(venv), "--verbose"])
    before = sorted(checkout.parent.rglob("*"))
    with pytest.raises(SystemExit, match=says):
        environment.main()
    assert sorted(checkout.parent.rglob("*")) == before


PIPS = {
    "complete Python": (True, True, True, "venv"),
    "no ensurepip, but pip": (False, True, True, "system pip"),
    "neither, root on Debian": (False, False, True, "apt"),
    "neither, and no root": (False, False, False, "error"),
}


@pytest.mark.parametrize(("ensurepip", "pip", "apt", "expected"), PIPS.values(), ids=PIPS)
def test_an_incomplete_python_is_helped_or_explained(
    tmp_path, monkeypatch, ensurepip, pip, apt, expected
):
    ran, asked = [], []
    monkeypatch.setattr(environment, "has_ensurepip", lambda: ensurepip)
    monkeypatch.setattr(environment, "works", lambda *command: pip or "pip" not in command)
    monkeypatch.setattr(environment, "run", lambda *command: ran.append(command))
    monkeypatch.setattr(environment, "apt_install", lambda *names: asked.extend(names) or apt)
    package = f"python3.{sys.version_info[1]}-venv"
    if expected == "error":
        with pytest.raises(environment.InstallError, match=f"sudo apt install {package}"):
            environment.pip_of(tmp_path / "v", reuse=False)
        return
    command = environment.pip_of(tmp_path / "v", reuse=False)
    assert ("--python" in command) == (expected == "system pip")
    assert asked == ([package] if expected == "apt" else [])
    assert any("--without-pip" in command for command in ran) == (expected == "system pip")


def test_the_environment_tool_needs_nothing_but_python():
    code = "import sys; sys.path.insert(0, '.'); from tools import environment, browser, links"
    assert run(sys.executable, "-I", "-S", "-c", code).returncode == 0


def test_an_install_is_told_briefly_and_a_failure_in_full(capfd):
    code = "print('Prepared 2 packages'); print(' + torch==1'); raise SystemExit({})"
    environment.run_briefly(sys.executable, "-c", code.format(0))
    assert capfd.readouterr().out.splitlines()[1:] == ["Prepared 2 packages"]
    with pytest.raises(subprocess.CalledProcessError):
        environment.run_briefly(sys.executable, "-c", code.format(1))
    assert " + torch==1" in capfd.readouterr().out


# --- the browser, the link check ---------------------------------------------------------------


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts programs on a machine without a browser, whose playwright lacks a library."""

    def program(name, text="#!/bin/sh\n"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
        return str(tmp_path / name)

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VITBOOK_CHROMIUM", raising=False)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(browser, "NAMES", ["our-chromium", "our-chrome"])
    monkeypatch.setattr(browser, "MAC", str(tmp_path / "nothing"))
    monkeypatch.setattr(browser.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["browser.py", "--install"])
    program(browser.DRIVER, LACKING)
    return program


LACKING = """#!/bin/sh
[ -e libatomic ] && exit 0
echo "node: error while loading shared libraries: libatomic.so.1: cannot open" >&2
exit 127
"""


def test_chromium_is_found_where_it_is_named_or_usual_and_ubuntus_snap_starter_is_not_taken(
    program, monkeypatch
):
    assert browser.find_chromium() is None
    program("our-chromium", "#!/bin/sh\nexec /snap/bin/chromium\n")
    assert browser.find_chromium() is None
    mac = sys.platform == "darwin"
    inside = "chrome-mac/C.app/Contents/MacOS/C" if mac else "chrome-linux/chrome"
    for build in ("chromium-100", "chromium-200"):
        own = program(f"{build}/{inside}")
    assert browser.find_chromium() == own
    chrome = program("our-chrome")
    assert browser.find_chromium() == chrome
    monkeypatch.setenv("VITBOOK_CHROMIUM", own)
    assert browser.find_chromium() == own
    monkeypatch.setenv("VITBOOK_CHROMIUM", "missing")
    with pytest.raises(ValueError, match="VITBOOK_CHROMIUM"):
        browser.find_chromium()


def test_a_driver_that_lacks_a_library_is_a_sentence_with_the_command_that_mends_it(
    program, monkeypatch
):
    program("our-chrome")
    monkeypatch.setattr(environment, "apt_install", lambda *packages: False)
    with pytest.raises(SystemExit, match=r"libatomic.so.1.*sudo apt install libatomic1"):
        browser.main()


def test_what_a_bare_machine_lacks_is_installed_before_a_browser_is_asked_for(
    program, monkeypatch, capsys
):
    asked = []

    def apt_install(*packages):
        asked.extend(packages)
        program({"libatomic1": "libatomic", "chromium": "our-chromium"}[packages[0]])
        return True

    monkeypatch.setattr(browser, "is_debian", lambda: True)
    monkeypatch.setattr(environment, "apt_install", apt_install)
    assert browser.main() == 0
    assert asked == ["libatomic1", "chromium"]
    assert capsys.readouterr().out == browser.find_chromium() + "\n"


def test_the_link_check_gathers_outside_addresses_once(tmp_path):
    text = '<a class="x" href="https://example.org/a?b=1&amp;c=2#part">a</a><a href="b.html">b</a>'
    text += '<a href="https://us.example.org/newer.html">of this book</a>'
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text(text)
    found = links.addresses(tmp_path, own="https://us.example.org/")
    assert found == {"https://example.org/a?b=1&c=2": ["a.html", "b.html"]}


@pytest.mark.parametrize(("code", "gone"), [(404, True), (429, False)])
def test_the_link_check_tells_gone_from_busy(monkeypatch, code, gone):
    def urlopen(request, timeout):
        raise links.urllib.error.HTTPError(request.full_url, code, "", {}, None)

    monkeypatch.setattr(links.urllib.request, "urlopen", urlopen)
    assert links.ask("https://example.org/") == (str(code), gone)
