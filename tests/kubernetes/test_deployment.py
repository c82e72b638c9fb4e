"""The manifests on a real Kubernetes: pods become Ready under restricted pod security, and orders flow through."""

from kafka_helpers import wait_for
from pods import Deployed, kubectl
from services_stack import order_without_id

TOKEN = "a token of the callers of this shop"
FILES = {
    "order": {"card-token-key": "a secret of the keyed hash of cards", "api-token": TOKEN},
    "kafka-login": {"client.properties": "security.protocol=PLAINTEXT"},
}


def test_orders_reach_notification_without_an_autoscaler(deployed: Deployed) -> None:
    """Without an autoscaler the group shares its partitions evenly. Secrets are mounted as files."""
    kubectl("create", "namespace", deployed.name)
    for name, held in FILES.items():
        literals = [f"--from-literal={key}={value}" for key, value in held.items()]
        deployed.kubectl("create", "secret", "generic", name, *literals)
    deployed.apply(replicas={"autoscaler": 0, "payment": 2}, components=("by-count", "secrets", "login"))
    deployed.wait_ready(kafka=1, order=1, shipment=1, notification=1, payment=2)
    with deployed.forwarded("service/order", 80) as order:
        body, mine = order_without_id(), {"Authorization": f"Bearer {TOKEN}"}
        assert order("/orders", body)[0] == 401
        code, placed = order("/orders", body, mine)
        assert code == 202, placed
        where = placed["status_url"]
        wait_for(lambda: order(where, None, mine)[1].get("status") == "notified", f"{where} is notified")
    properties = deployed.kubectl("exec", "deployment/payment", "--", "sh", "-c", "cat $TAILPACK_CLIENT_PROPERTIES")
    assert properties == b"security.protocol=PLAINTEXT"
