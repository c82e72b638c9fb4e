"""Dashboards and alerts: generated files are current, and queries use declared metrics."""

import re
import shutil
import subprocess

import pytest
import yaml
from compose_file import ROOT
from dashboard_queries import dashboards, declared_metrics, metrics_in

PROMETHEUS = ROOT / "infra" / "prometheus"
RULES = [rule for group in yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"] for rule in group["rules"]]


def test_the_dashboards_are_what_the_program_writes():
    for path, text in dashboards().rendered().items():
        assert path.read_text(encoding="utf-8") == text, "python infra/grafana/dashboards.py"


def test_every_query_uses_declared_metrics():
    all_queries = dashboards().queries() | {rule.get("alert", rule.get("record")): rule["expr"] for rule in RULES}
    for where, query in all_queries.items():
        assert metrics_in(query) <= declared_metrics().keys(), where
        assert re.search("tailpack[_:]", query), where


def test_every_alert_is_documented():
    page = (ROOT / "docs" / "howto" / "operate.md").read_text(encoding="utf-8")
    alerts = {rule["alert"] for rule in RULES if "alert" in rule}
    assert set(re.findall(r"`(Tailpack\w+)`", page)) == alerts


@pytest.mark.parametrize("command", [["check", "config", "prometheus.yml"], ["test", "rules", "alerts_test.yml"]])
def test_prometheus_accepts_the_configuration_and_alerts_fire_as_specified(command: list[str]):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    done = subprocess.run(["promtool", *command], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
