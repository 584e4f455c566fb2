"""The templates for a cluster: their syntax, and the shards that they ask for."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from gradebox.cli import _shard, parser

import gradebox

TEMPLATES = Path(gradebox.__file__).parent / "templates"


@pytest.fixture
def asked(tmp_path):
    """Runs a command where `gradebox` prints its arguments, and gives these."""
    (tmp_path / "gradebox").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "gradebox").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"

    def asked(command, **variables):
        env = {"PATH": path, **{key: str(value) for key, value in variables.items()}}
        return subprocess.run(command, env=env, capture_output=True, text=True)

    return asked


def shards(said):
    """The shards that the commands ask for; an option that gradebox has not would end the test."""
    return [_shard(parser().parse_args(arguments).shard) for arguments in said]


@pytest.mark.parametrize("first", [0, 1])
def test_the_tasks_of_a_slurm_array_are_all_shards(asked, first):
    about = {"SLURM_ARRAY_TASK_COUNT": 3, "SLURM_ARRAY_TASK_MIN": first, "SLURM_CPUS_PER_TASK": 4}
    command = ["bash", TEMPLATES / "slurm.sh", "a b.zip", "package.zip", "out"]
    tasks = [asked(command, **about, SLURM_ARRAY_TASK_ID=first + n) for n in range(3)]
    said = [task.stdout.splitlines() for task in tasks]
    assert shards(said) == [(1, 3), (2, 3), (3, 3)]
    assert said[0][:3] == ["a b.zip", "--assignment", "package.zip"]
    assert said[0][said[0].index("--jobs") + 1] == "4"


def test_no_two_shards_share_a_machine():
    assert "\n#SBATCH --exclusive\n" in (TEMPLATES / "slurm.sh").read_text()
    job = yaml.safe_load((TEMPLATES / "kubernetes.yaml").read_text())
    rules = job["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    (rule,) = rules["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    # Kubernetes gives each pod of a job this label
    assert rule["labelSelector"]["matchLabels"] == {"job-name": job["metadata"]["name"]}


def test_the_pods_of_a_kubernetes_job_are_all_shards(asked):
    job = yaml.safe_load((TEMPLATES / "kubernetes.yaml").read_text())
    assert (job["kind"], job["spec"]["completionMode"]) == ("Job", "Indexed")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    given = {one["name"]: one["value"] for one in container["env"]}
    assert given["SHARDS"] == str(job["spec"]["completions"])
    command = [*container["command"], *container["args"]]
    pods = [asked(command, **given, JOB_COMPLETION_INDEX=index) for index in range(8)]
    said = [pod.stdout.splitlines() for pod in pods]
    assert shards(said) == [(number, 8) for number in range(1, 9)]
    mounted = container["volumeMounts"][0]["mountPath"]
    assert all(word.startswith(mounted) for word in said[0] if word.startswith("/"))
