"""Settings: every mistake is named at once, and security reaches both client libraries."""

from pathlib import Path

import pytest

from contracts.connection import Connection, read_settings
from contracts.validation import InvalidSettingsError
from services.common.errors import ServiceError
from services.common.security import aiokafka_options, faust_options
from services.common.settings import ServiceSettings
from services.order.settings import OrderSettings


def test_all_problems_of_connection_and_service_are_told_together() -> None:
    with pytest.raises(InvalidSettingsError) as wrong:
        read_settings({"TAILPACK_HTTP_PORT": "70000", "TAILPACK_GROUPING": "none"}, OrderSettings)
    named = {problem.replace(":", " ").split(" ")[0] for problem in wrong.value.problems}
    assert named == {
        "TAILPACK_BOOTSTRAP_SERVERS",
        "TAILPACK_GROUPING",
        "TAILPACK_HTTP_PORT",
        "TAILPACK_PAYMENT_PARTITIONS",
    }


def test_a_properties_file_that_cannot_be_read_is_a_settings_problem(tmp_path: Path) -> None:
    environ = {
        "TAILPACK_BOOTSTRAP_SERVERS": "127.0.0.1:9092",
        "TAILPACK_CLIENT_PROPERTIES": str(tmp_path / "absent"),
    }
    with pytest.raises(InvalidSettingsError, match="absent"):
        read_settings(environ, ServiceSettings)


def test_plain_connections_need_no_credentials() -> None:
    connection = Connection(bootstrap_servers="one:1,two:2")
    assert faust_options(connection) == {"broker": ["kafka://one:1", "kafka://two:2"], "broker_credentials": None}
    assert aiokafka_options(connection)["security_protocol"] == "PLAINTEXT"


def test_a_password_reaches_both_client_libraries(tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.username=ada\nsasl.password=secret\n"
    )
    connection = Connection(bootstrap_servers="one:1", client_properties=str(properties))
    ours = aiokafka_options(connection)
    credentials = faust_options(connection)["broker_credentials"]
    assert (ours["sasl_mechanism"], ours["sasl_plain_username"]) == ("SCRAM-SHA-512", "ada")
    assert ours["ssl_context"] is not None
    assert (credentials.mechanism.value, credentials.username) == ("SCRAM-SHA-512", "ada")
    assert credentials.protocol.value == "SASL_SSL"


def test_a_certificate_that_is_not_there_is_named_by_both(tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\nssl.ca.location=/nowhere/ca.pem\n")
    connection = Connection(bootstrap_servers="one:1", client_properties=str(properties))
    for options in (aiokafka_options, faust_options):
        with pytest.raises(ServiceError, match=r"client\.properties: certificates cannot be loaded"):
            options(connection)
