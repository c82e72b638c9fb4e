"""Security reaches Faust as it reaches every other client."""

from pathlib import Path

from contracts.connection import Connection
from contracts.topics import Group
from services.common.faust_app import ServiceSettings, faust_options, make_app


def test_plain_connections_need_no_credentials() -> None:
    told = faust_options(Connection(bootstrap_servers="one:1,two:2"))
    assert (told["broker"], told["broker_credentials"]) == (["kafka://one:1", "kafka://two:2"], None)


def test_a_password_reaches_faust(tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.username=ada\nsasl.password=secret\n"
    )
    connection = Connection(bootstrap_servers="one:1", client_properties=str(properties))
    credentials = faust_options(connection)["broker_credentials"]
    assert (credentials.mechanism.value, credentials.username) == ("SCRAM-SHA-512", "ada")
    assert credentials.protocol.value == "SASL_SSL"


def test_who_leads_a_partition_is_asked_again_soon(tmp_path: Path) -> None:
    app = make_app(
        Connection(bootstrap_servers="one:1"), Group.SHIPMENT, ServiceSettings(data_dir=str(tmp_path)), lambda: None
    )
    assert max(app.conf.consumer_metadata_max_age_ms, app.conf.producer_metadata_max_age_ms) <= 5000
