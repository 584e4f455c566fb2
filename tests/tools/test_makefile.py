"""The commands: what make offers, how the environment is made, what the workflows call."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

from tools import browser, environment, links
from tools.render import digest, watched

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text("utf8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
PROMISED = "help install book serve unit test test-deep lint format notebooks experiments"
PROMISED += " bundle release publish experiments-verify bench clean distclean lock page links"
PROMISED += " colab grader"


def make(*arguments, **variables):
    return subprocess.run(
        ["make", "--no-print-directory", *arguments, *(f"{k}={v}" for k, v in variables.items())],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_make_alone_lists_every_promised_target_with_a_word_on_it():
    lines = make().stdout.splitlines()
    listed = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1:]}
    assert set(PROMISED.split()) <= set(listed)
    assert all(len(words) > 8 for words in listed.values())


@pytest.mark.parametrize("target", sorted(set(PROMISED.split()) - {"page"}))
def test_every_target_can_be_planned(target):
    done = make("--dry-run", target, PYTHON=sys.executable)  # it need not be looked for
    assert done.returncode == 0, done.stderr


def test_recipes_stay_short():
    recipes = re.findall(r"^[a-z-]+:[^\n]*\n((?:\t[^\n]*\n)+)", MAKEFILE, re.MULTILINE)
    assert len(recipes) >= 15
    assert all(recipe.count("\n") <= 4 for recipe in recipes)


def test_the_tools_that_make_calls_exist():
    tools = set(re.findall(r"-m tools\.(\w+)", MAKEFILE))
    there = {path.stem for path in (ROOT / "tools").iterdir()}
    assert tools - there == set()
    assert len(tools) > 5


UNSEEN = {
    "sphinx-book-theme": "jupyter-book's theme, held at a version",
    "ipykernel": "what chapters run in",
    "ipywidgets": "tqdm's bar in a notebook",
    "pytest-timeout": "the setting `timeout` in pyproject.toml",
    "pytest-xdist": "the option -n 2 in the Makefile",
    "editables": "hatchling's, for an install that follows the sources",
}


def test_what_is_installed_is_imported_or_called_somewhere():
    wanted = set(re.findall(r"^([a-z0-9-]+)", (ROOT / "requirements.in").read_text("utf8"), re.M))
    shown = subprocess.run(
        ["git", "ls-files", "*.py", "*.toml", "*.yml", "Makefile", "book/*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    text = "\n".join((ROOT / name).read_text("utf8") for name in shown.stdout.splitlines())
    modules: dict[str, list[str]] = {}
    for module, names in packages_distributions().items():
        for name in names:
            modules.setdefault(re.sub(r"[._]", "-", name.lower()), []).append(module)

    def used(name):
        words = "|".join(map(re.escape, modules.get(name, [name])))
        listed = re.search(rf"^ *(?:import|from|-) (?:{words})\b", text, re.MULTILINE)
        return listed or re.search(rf"""(?:-m |/bin/|"-m", "){re.escape(name)}\b""", text)

    assert {name for name in wanted if not used(name)} == set(UNSEEN)


def test_without_a_new_python_make_says_what_is_missing():
    done = make("install", PYTHON="")
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stdout


def test_one_thread_wherever_numbers_are_made():
    assert "OMP_NUM_THREADS" in MAKEFILE
    shown = make("--eval", "show: ; @echo $$OMP_NUM_THREADS", "show")
    assert shown.stdout.strip() == "1"


def test_ci_runs_the_readmes_test_command_and_nothing_else():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert re.findall(r"^exec (make \w+)", script.read_text(), re.MULTILINE) == ["make test"]


def test_a_hook_before_a_commit_is_a_part_of_make_lint_and_downloads_nothing():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf8"))
    assert {repository["repo"] for repository in config["repos"]} == {"local"}
    lint = re.search(r"^lint:.*\n((?:\t.+\n)+)", MAKEFILE, re.MULTILINE)[1]
    for hook in config["repos"][0]["hooks"]:
        command = re.match(r"\.venv/bin/python (-m [\w.]+(?: (?:check|format))?)", hook["entry"])[1]
        assert f"$(PY) {command}" in lint, hook["id"]


def workflow_steps():
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        workflow = yaml.safe_load(path.read_text("utf8"))
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                yield path.name, step.get("run", "")


def test_workflows_call_targets_that_exist():
    called = [
        (name, target)
        for name, command in workflow_steps()
        for target in re.findall(r"\bmake ((?!git)[a-z-]+)", command)
    ]
    assert {target for _, target in called} - TARGETS == set()
    assert {"check.yml", "release.yml", "weekly.yml"} <= {name for name, _ in called}
    assert any(command == "bash .ci/run" for _, command in workflow_steps())


def test_every_python_that_make_looks_for_is_tested_and_so_are_the_oldest_packages():
    looked_for = set(re.findall(r"python(3\.\d+)", MAKEFILE))
    workflow = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text("utf8"))
    jobs = workflow["jobs"]
    steps = [step for job in ("test", "unit") for step in jobs[job]["steps"]]
    said = {step["with"]["python-version"] for step in steps if "python-version" in str(step)}
    assert looked_for == (said | set(jobs["unit"]["strategy"]["matrix"]["python"])) - {
        "${{ matrix.python }}"
    }
    oldest = "\n".join(step.get("run", "") for step in jobs["lowest"]["steps"])
    assert "--resolution lowest-direct pyproject.toml" in oldest
    file, name = re.search(r"--deselect (\S+)::(\w+)", oldest).groups()
    assert f"def {name}(" in (ROOT / file).read_text("utf8")


def weekly_jobs():
    return yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text("utf8"))["jobs"]


def test_each_weekly_job_that_fails_is_reported():
    jobs = weekly_jobs()
    report = jobs.pop("report")
    assert set(report["needs"]) == set(jobs)
    told = report["steps"][0]["env"]["RESULTS"]
    assert set(re.findall(r"needs\.([a-z-]+)\.result", told)) == set(jobs)
    assert all(job["timeout-minutes"] <= 350 for job in jobs.values())  # GitHub stops at 360


def test_windows_and_macos_run_the_tests_of_make_unit_and_three_pages_without_make():
    job = weekly_jobs()["elsewhere"]
    systems = [system.partition("-")[0] for system in job["strategy"]["matrix"]["system"]]
    assert systems == ["windows", "macos"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert not any("make" in command or ".venv" in command for command in commands)
    (tests,) = (command for command in commands if "-m pytest" in command)
    unit = re.search(r"^unit:.*\n\t@\$\(PY\) (.*) \$\(ARGS\)$", MAKEFILE, re.MULTILINE)[1]
    assert tests == f"python {unit}"
    (pages,) = (command.split()[3:] for command in commands if "-m tools.execute" in command)
    assert len(pages) == 3
    assert all("{code-cell}" in (ROOT / page).read_text("utf8") for page in pages)


def test_a_step_that_fails_keeps_no_other_from_testing():
    check = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text("utf8"))["jobs"]
    for job in (check["test"], weekly_jobs()["fresh-install"], weekly_jobs()["elsewhere"]):
        commands = [step for step in job["steps"] if "run" in step]
        wanted = [s for s in commands if re.search(r"\.ci/run|test-deep|tools\.execute", s["run"])]
        assert [step["if"] for step in wanted] == ["${{ !cancelled() }}"]


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


def test_the_lock_is_cut_into_requirements_with_their_hashes():
    found = environment.blocks(LOCK)
    assert [block.split("==")[0] for block in found][:3] == ["numpy", "nvidia-cublas", "torch"]
    assert found[0].count("--hash") == 2
    assert "via" not in "".join(found)


def test_the_real_lock_pins_every_requirement_with_a_hash():
    lock = (ROOT / "requirements.txt").read_text("utf8")
    found = environment.blocks(lock)
    assert len(found) == len(re.findall(r"^[a-z0-9][^\n]*==", lock, re.MULTILINE | re.IGNORECASE))
    assert all("--hash=sha256:" in block for block in found)
    assert any(block.startswith("uv==") for block in found)


def test_the_cpu_install_keeps_all_hashes_but_torchs_and_drops_cuda():
    torch, rest = environment.split_for_cpu(LOCK)
    assert torch == ["torch==2.14.1", "torchvision==0.29.2"]
    names = [line.split("==")[0] for line in rest.splitlines() if "==" in line]
    assert names == ["numpy", "uv"]
    assert rest.count("--hash") == 3


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose installs only leave a trace."""
    (tmp_path / "requirements.txt").write_text(LOCK)
    for folder in (tmp_path, tmp_path / environment.GRADER):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pyproject.toml").write_text("[project]\n")
    calls = []

    def pip_of(venv, reuse):
        calls.append("reuse" if reuse else "new")
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        if not (venv / "bin/python").exists():
            (venv / "bin/python").symlink_to(sys.executable)
        return ["pip"]

    def install(root, venv, torch, pip, run):
        calls.append(torch)
        if (root / "broken").exists():
            raise subprocess.CalledProcessError(1, ["uv"])

    monkeypatch.setattr(environment, "pip_of", pip_of)
    monkeypatch.setattr(environment, "install", install)
    return tmp_path, calls


def ensure(checkout, torch=None):
    root, calls = checkout
    calls.clear()
    done = environment.ensure(root, root / ".venv", torch)
    return done, list(calls)


def test_a_second_install_has_nothing_to_do(checkout):
    assert ensure(checkout) == (True, ["new", "default"])
    assert ensure(checkout) == (False, [])


NEEDED = ["requirements.txt", "pyproject.toml", "src/gradebox/pyproject.toml"]


@pytest.mark.parametrize("name", NEEDED)
def test_an_edit_of_what_is_needed_installs_into_the_same_environment(checkout, name):
    ensure(checkout)
    with (checkout[0] / name).open("a") as file:
        file.write("# more\n")
    assert ensure(checkout) == (True, ["reuse", "default"])


def test_an_interrupted_install_is_done_again(checkout):
    (checkout[0] / "broken").touch()
    with pytest.raises(subprocess.CalledProcessError):
        ensure(checkout, "cpu")
    (checkout[0] / "broken").unlink()
    assert ensure(checkout) == (True, ["reuse", "cpu"])
    assert ensure(checkout) == (False, [])


def test_the_choice_of_the_cpu_lasts_until_another_is_made(checkout):
    assert ensure(checkout, "cpu") == (True, ["new", "cpu"])
    assert ensure(checkout) == (False, [])
    assert ensure(checkout, "default") == (True, ["new", "default"])


def test_an_environment_that_does_not_start_is_made_anew(checkout):
    root, _ = checkout
    ensure(checkout)
    stamp = root / ".venv" / "environment.json"
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "python": "3.10"}))
    assert ensure(checkout) == (True, ["new", "default"])


def another(venv, root):
    """An environment, and something in it that must stay."""
    (venv / "lib").mkdir(parents=True)
    (venv / "lib/keep_me").touch()
    if root:
        stamp = {"digest": "x", "torch": "default", "root": root, "python": sys.version}
        (venv / "environment.json").write_text(json.dumps(stamp))
    return venv


OTHERS = {
    "a link": ("other", "/other", "is a link to"),
    "a link to one without a stamp": ("other", "", "is a link to"),
    "made for another folder": ("clone/.venv", "/other", "was made for /other"),
    "a file": ("file", "", "was not made by 'make install'"),
    "made by hand": ("clone/.venv", "", "was not made by 'make install'"),
}


@pytest.mark.parametrize(("place", "root", "says"), OTHERS.values(), ids=OTHERS)
def test_an_environment_of_another_folder_is_never_removed(
    tmp_path, monkeypatch, place, root, says
):
    (tmp_path / "clone/src/gradebox").mkdir(parents=True)
    for name in NEEDED:
        (tmp_path / "clone" / name).write_text(LOCK)
    if place == "file":  # some tools keep the place of an environment in a file of that name
        kept = tmp_path / "clone/.venv"
        kept.write_text("/somewhere")
    else:
        kept = another(tmp_path / place, root)
    if place == "other":
        (tmp_path / "clone/.venv").symlink_to(tmp_path / "other")
    monkeypatch.setattr(environment, "ROOT", tmp_path / "clone")
    monkeypatch.setattr(environment, "run", lambda *_: pytest.fail("something was installed"))
    command = ["environment.py", "--venv", str(tmp_path / "clone/.venv"), "--verbose"]
    monkeypatch.setattr(sys, "argv", command)
    before = sorted([kept, *kept.rglob("*")])
    with pytest.raises(SystemExit, match=says):
        environment.main()
    assert sorted([kept, *kept.rglob("*")]) == before


def test_an_environment_whose_making_was_stopped_at_once_is_still_ours(checkout):
    root, _ = checkout
    environment.claim(root, root / ".venv", {"root": str(root)})
    (root / ".venv/lib").mkdir()
    (root / ".venv/half").touch()
    assert ensure(checkout) == (True, ["new", "default"])
    environment.emptied(root / ".venv")
    assert [path.name for path in (root / ".venv").iterdir()] == ["environment.json"]


PIPS = [
    ("complete Python", True, True, True, "venv"),
    ("no ensurepip, but pip", False, True, True, "system pip"),
    ("neither, root on Debian", False, False, True, "apt"),
    ("neither, and no root", False, False, False, "error"),
]


@pytest.mark.parametrize(
    ("ensurepip", "pip", "apt", "expected"), [row[1:] for row in PIPS], ids=[r[0] for r in PIPS]
)
def test_an_incomplete_python_is_helped_or_explained(
    tmp_path, monkeypatch, ensurepip, pip, apt, expected
):
    ran, asked = [], []

    def works(*command):
        return pip if "pip" in command else True

    def apt_install(*packages):
        asked.extend(packages)
        return apt

    monkeypatch.setattr(environment, "has_ensurepip", lambda: ensurepip)
    monkeypatch.setattr(environment, "works", works)
    monkeypatch.setattr(environment, "run", lambda *command: ran.append(command))
    monkeypatch.setattr(environment, "apt_install", apt_install)
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
    names = "environment, browser, links"
    code = f"import sys; sys.path.insert(0, '.'); from tools import {names}"
    isolated = [sys.executable, "-I", "-S", "-c", code]
    assert subprocess.run(isolated, cwd=ROOT, capture_output=True).returncode == 0


# --- the browser, the stamp of the build, the link check ---------------------------------------


def program(path, text="#!/bin/sh\n"):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_chromium_is_found_and_ubuntus_snap_starter_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.delenv("VITBOOK_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "playwrights_own", lambda: None)
    monkeypatch.setattr(browser, "MAC", str(tmp_path / "nothing"))
    assert browser.find_chromium() is None
    program(tmp_path / "chromium-browser", "#!/bin/sh\nexec /snap/bin/chromium\n")
    assert browser.find_chromium() is None
    chrome = program(tmp_path / "google-chrome")
    assert browser.find_chromium() == chrome


def test_a_named_browser_is_taken_or_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("VITBOOK_CHROMIUM", program(tmp_path / "mine"))
    assert browser.find_chromium() == str(tmp_path / "mine")
    monkeypatch.setenv("VITBOOK_CHROMIUM", str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="VITBOOK_CHROMIUM"):
        browser.find_chromium()


def driver(tmp_path, monkeypatch, script):
    """A playwright whose own program is `script`."""
    monkeypatch.setattr(browser.sysconfig, "get_path", lambda name: str(tmp_path))
    (tmp_path / "playwright" / "driver").mkdir(parents=True)
    program(tmp_path / browser.DRIVER, script)


LACKING = """#!/bin/sh
[ -e libatomic ] && exit 0
echo "node: error while loading shared libraries: libatomic.so.1: cannot open" >&2
exit 127
"""


def test_a_driver_that_lacks_a_library_is_a_sentence_with_the_command_that_mends_it(
    tmp_path, monkeypatch
):
    driver(tmp_path, monkeypatch, LACKING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "apt_install", lambda *packages: False)
    monkeypatch.setenv("VITBOOK_CHROMIUM", program(tmp_path / "mine"))
    monkeypatch.setattr(sys, "argv", ["browser.py", "--install"])
    with pytest.raises(SystemExit, match=r"libatomic.so.1.*sudo apt install libatomic1"):
        browser.main()


def test_what_a_bare_machine_lacks_is_installed_before_a_browser_is_asked_for(
    tmp_path, monkeypatch, capsys
):
    driver(tmp_path, monkeypatch, LACKING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VITBOOK_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(browser, "is_debian", lambda: True)
    monkeypatch.setattr(browser, "NAMES", ["our-chromium"])
    asked = []

    def apt_install(*packages):
        asked.extend(packages)
        (tmp_path / "libatomic").touch()
        if "chromium" in packages:
            program(tmp_path / "our-chromium")
        return True

    monkeypatch.setattr(environment, "apt_install", apt_install)
    monkeypatch.setattr(sys, "argv", ["browser.py", "--install"])
    assert browser.main() == 0
    assert asked == ["libatomic1", "chromium"]
    assert capsys.readouterr().out == f"{tmp_path}/our-chromium\n"


def test_playwrights_own_browser_is_found_without_starting_playwright(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    assert browser.playwrights_own() is None
    mac = sys.platform == "darwin"
    inside = "chrome-mac/C.app/Contents/MacOS/C" if mac else "chrome-linux/chrome"
    for build in ("chromium-100", "chromium-200"):
        (tmp_path / build / inside).parent.mkdir(parents=True)
        (tmp_path / build / inside).touch()
    assert browser.playwrights_own() == str(tmp_path / "chromium-200" / inside)


def test_the_stamp_of_a_build_sees_every_source_and_no_scratch_file(tmp_path):
    def now():
        return digest(watched(tmp_path))

    (tmp_path / "book" / "part").mkdir(parents=True)
    seen = [now()]
    for name in ("_config.yml", "book/part/one.md", "book/part/figure.svg"):
        (tmp_path / name).write_text("x")
        seen.append(now())
    (tmp_path / "book/part/one.md").write_text("y")
    seen.append(now())
    assert len(set(seen)) == len(seen)
    (tmp_path / "book" / "__pycache__").mkdir()
    (tmp_path / "book" / "__pycache__" / "a.pyc").write_text("x")
    assert now() == seen[-1]


def test_the_link_check_gathers_outside_addresses_once(tmp_path):
    (tmp_path / "sub").mkdir()
    text = '<a class="x" href="https://example.org/a?b=1&amp;c=2#part">a</a><a href="b.html">b</a>'
    text += '<a href="https://us.example.org/newer.html">of this book</a>'
    (tmp_path / "a.html").write_text(text)
    (tmp_path / "sub" / "b.html").write_text(text)
    found = links.addresses(tmp_path, own="https://us.example.org/")
    assert found == {"https://example.org/a?b=1&c=2": ["a.html", "sub/b.html"]}


def test_the_link_check_tells_gone_from_busy(monkeypatch):
    def answer(code):
        def urlopen(request, timeout):
            raise links.urllib.error.HTTPError(request.full_url, code, "", {}, None)

        monkeypatch.setattr(links.urllib.request, "urlopen", urlopen)
        return links.ask("https://example.org/")

    assert answer(404) == ("404", True)
    assert answer(429) == ("429", False)


def test_an_install_is_told_briefly_and_a_failure_in_full(capfd):
    code = "print('Prepared 2 packages'); print(' + torch==1'); raise SystemExit({})"
    environment.run_briefly(sys.executable, "-c", code.format(0))
    assert "Prepared 2" in (said := capfd.readouterr().out)
    assert said.splitlines()[1:] == ["Prepared 2 packages"]
    with pytest.raises(subprocess.CalledProcessError):
        environment.run_briefly(sys.executable, "-c", code.format(1))
    assert " + torch==1" in capfd.readouterr().out
