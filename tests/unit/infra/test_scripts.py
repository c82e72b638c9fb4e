"""The shell scripts: shellcheck, and the commands of the steps to GKE."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted([*(ROOT / "infra").rglob("*.sh"), ROOT / ".ci" / "run"])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_finds_nothing(script: Path) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, script], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stdout


def dry(*words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    there = {"PATH": os.environ["PATH"], "DRY_RUN": "1"} | environ
    return subprocess.run(
        [ROOT / "infra/gke.sh", *words], env=there, capture_output=True, text=True, check=False, timeout=30
    )


@pytest.mark.parametrize(
    ("step", "runs"),
    [
        ("create", "gcloud container clusters create tailpack --project mine --zone us-central1-a --num-nodes 5"),
        ("images", "docker push us-central1-docker.pkg.dev/mine/tailpack/tailpack-report:0.1.0"),
        ("kafka", "kubectl --context gke_mine_us-central1-a_tailpack apply -f infra/k8s/overlays/gke/strimzi.yaml"),
        ("run", ".venv/bin/python -m tailpack dev bench cluster --context gke_mine_us-central1-a_tailpack"),
        ("delete", "gcloud container clusters delete tailpack --project mine"),
    ],
)
def test_a_dry_run_prints_the_commands_of_a_step(step: str, runs: str) -> None:
    done = dry(step, PROJECT="mine")
    assert done.returncode == 0, done.stderr
    assert any(line.startswith(runs) for line in done.stdout.splitlines()), done.stdout


@pytest.mark.parametrize(
    ("words", "environ", "message"),
    [
        ((), {}, "no step given"),
        (("create",), {}, "set PROJECT"),
        (("creat",), {"PROJECT": "mine"}, "unknown step creat"),
        (("delete",), {"CONTEXT": "here", "REGISTRY": "mine"}, "cannot delete here"),
    ],
)
def test_a_usage_error_is_one_line(words: tuple[str, ...], environ: dict[str, str], message: str) -> None:
    done = dry(*words, **environ)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
