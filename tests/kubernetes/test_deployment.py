"""The manifests on a real Kubernetes: pods become Ready under restricted pod security, and orders flow through."""

from kafka_helpers import wait_for
from pods import Deployed
from services_stack import order_without_id


def test_orders_flow_to_notification_where_somebody_else_states_the_count(deployed: Deployed) -> None:
    """Also without an autoscaler: the group shares its partitions evenly."""
    deployed.apply(replicas={"autoscaler": 0, "payment": 2}, components=("by-count",))
    deployed.wait_ready(kafka=1, order=1, shipment=1, notification=1, payment=2)
    with deployed.forwarded("service/order", 80) as order:
        code, placed = order("/orders", order_without_id())
        assert code == 202, placed
        where = placed["status_url"]
        wait_for(lambda: order(where)[1].get("status") == "notified", f"{where} is notified")
