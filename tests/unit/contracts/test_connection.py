"""A properties file with librdkafka's names configures TLS and SASL of every client."""

from pathlib import Path

import pytest

from contracts.connection import Connection
from contracts.validation import InvalidSettingsError

PROPERTIES = """
# who we are
security.protocol = SASL_SSL
  sasl.mechanism=SCRAM-SHA-512
sasl.username=ada
sasl.password=a=b # not a comment

   # indented
ssl.ca.location=/etc/ca.pem
"""
LOGIN = "security.protocol=SASL_SSL\nsasl.username=ada\nsasl.password=secret"


def connection(folder: Path, properties: str) -> Connection:
    path = folder / "client.properties"
    path.write_text(properties, encoding="utf-8")
    return Connection(bootstrap_servers="kafka:9093", client_properties=str(path))


def problems_of(wanted: Connection) -> list[str]:
    with pytest.raises(InvalidSettingsError) as wrong:
        wanted.security()
    return wrong.value.problems


def test_librdkafka_gets_exactly_the_properties_of_the_file(tmp_path: Path) -> None:
    assert connection(tmp_path, PROPERTIES).librdkafka() == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ada",
        "sasl.password": "a=b # not a comment",
        "ssl.ca.location": "/etc/ca.pem",
    }


@pytest.mark.parametrize(
    ("properties", "wrong"),
    [
        ("security.protocol=sasl_ssl", ["security.protocol = 'sasl_ssl'"]),
        ("security.protocol=SASL_SSL", [f"sasl.{name} = ''" for name in ("mechanism", "username", "password")]),
        (f"{LOGIN}\nsasl.mechanism=GSSAPI", ["sasl.mechanism = 'GSSAPI'"]),
    ],
)
def test_a_property_that_one_client_lacks_is_refused_for_all(tmp_path: Path, properties: str, wrong: list[str]) -> None:
    problems = problems_of(connection(tmp_path, properties))
    assert len(problems) == len(wrong)
    for problem, expected in zip(problems, wrong, strict=True):
        assert problem.startswith(f"{tmp_path}/client.properties: {expected}")
    assert "secret" not in str(problems)


def test_a_secret_can_be_in_its_own_file(tmp_path: Path) -> None:
    secret, properties = tmp_path / "secret", tmp_path / "client.properties"
    secret.write_text("\ufeffhush \n", encoding="utf-8")
    login = "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=me\n"
    properties.write_text(f"\ufeff{login}sasl.password.file={secret}\n")
    connection = Connection(bootstrap_servers="somewhere:1", client_properties=str(properties))
    assert connection.librdkafka()["sasl.password"] == "hush "
    assert not [key for key in connection.librdkafka() if key.endswith(".file")]
    assert "hush" not in repr(connection.security())
    secret.unlink()
    with pytest.raises(InvalidSettingsError, match="secret: cannot be read"):
        connection.security()


def test_an_address_with_a_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match="leave out the protocol"):
        Connection(bootstrap_servers="PLAINTEXT://kafka:9092")
