"""Faust gets the security settings of every other client."""

from pathlib import Path

from contracts.connection import Connection
from services.common.faust_app import faust_options


def test_faust_gets_the_password_of_the_properties_file(tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.username=ada\nsasl.password=secret\n"
    )
    connection = Connection(bootstrap_servers="one:1", client_properties=str(properties))
    credentials = faust_options(connection)["broker_credentials"]
    assert (credentials.mechanism.value, credentials.username) == ("SCRAM-SHA-512", "ada")
    assert credentials.protocol.value == "SASL_SSL"
