"""The external scaler under real KEDA and a real HPA, and what a cluster that is not as it must be says."""

import json
from collections.abc import Iterator

import pytest
from tailpack_command import tailpack

keda = pytest.importorskip("bench.keda", reason="packages are missing: pip install '.[keda]'")

from bench import BenchError  # noqa: E402
from contracts.connection import Connection  # noqa: E402

NOBODY = Connection(bootstrap_servers="127.0.0.1:1")
pytestmark = pytest.mark.usefixtures("kubernetes")


@pytest.fixture
def api() -> Iterator["keda.client.ApiClient"]:
    with keda.connect(None) as made:
        yield made


def test_pods_follow_the_plan_within_a_sync_of_the_hpa() -> None:
    done = tailpack("bench", "keda", "--json", deadline_s=240)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["n"] == keda.TARGETS
    assert 0 < found["direct_reaction_p50_s"] < found["reaction_p50_s"] <= found["reaction_max_s"] < keda.DEADLINE_S


def test_a_context_that_is_not_there_is_named() -> None:
    with pytest.raises(BenchError, match="nowhere"):
        keda.connect("nowhere")


def test_what_a_user_may_not_do_is_named_with_its_verb(api: "keda.client.ApiClient") -> None:
    api.set_default_header("Impersonate-User", "nobody")
    with pytest.raises(BenchError, match=r"\(403\).*cannot (get|create) .*; give the Role that verb"):
        keda.measure(api, NOBODY, announce=lambda _: None)


def test_a_cluster_without_keda_is_told(api: "keda.client.ApiClient", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keda, "GROUP", "nowhere.example")
    with pytest.raises(BenchError, match="KEDA is not installed in this cluster"):
        keda.measure(api, NOBODY, announce=lambda _: None)
