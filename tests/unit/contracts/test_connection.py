"""A properties file in librdkafka's names carries TLS and SASL to every client."""

from pathlib import Path

import pytest

from contracts.connection import Connection, Security, read_settings
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


def connection(folder: Path, properties: str) -> Connection:
    path = folder / "client.properties"
    path.write_text(properties, encoding="utf-8")
    return Connection(bootstrap_servers="kafka:9093", client_properties=str(path))


def problems_of(wanted: Connection) -> list[str]:
    with pytest.raises(InvalidSettingsError) as wrong:
        wanted.security()
    return wrong.value.problems


def test_librdkafka_is_told_what_is_set_and_nothing_else(tmp_path: Path) -> None:
    assert connection(tmp_path, PROPERTIES).librdkafka() == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ada",
        "sasl.password": "a=b # not a comment",
        "ssl.ca.location": "/etc/ca.pem",
    }


def test_without_a_file_there_is_no_security() -> None:
    plain = Connection(bootstrap_servers="kafka:9092")
    assert plain.security() == Security()
    assert plain.librdkafka() == {"bootstrap.servers": "kafka:9092", "security.protocol": "PLAINTEXT"}


def test_every_unknown_key_is_named_with_the_file(tmp_path: Path) -> None:
    wanted = connection(tmp_path, "sasl.user=ada\nssl.ca.location=/ca.pem\nno equals sign\n")
    problems = problems_of(wanted)
    assert len(problems) == 2
    assert problems[0].startswith(
        f"{tmp_path}/client.properties: sasl.user: unknown; did you mean sasl.username? Known are security.protocol,"
    )
    assert problems[1].startswith(f"{tmp_path}/client.properties: no equals sign: unknown")


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ("security.protocol=sasl_ssl", ["security.protocol = 'sasl_ssl': unknown; known"]),
        (
            "security.protocol=SASL_SSL",
            [f"sasl.{name} = '': SASL_SSL needs it" for name in ("mechanism", "username", "password")],
        ),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\nsasl.username=ada\nsasl.password=secret",
            ["sasl.mechanism = 'GSSAPI': unknown; known"],
        ),
    ],
)
def test_what_some_client_would_not_understand_is_refused_for_all(
    tmp_path: Path, properties: str, told: list[str]
) -> None:
    problems = problems_of(connection(tmp_path, properties))
    assert len(problems) == len(told)
    for problem, expected in zip(problems, told, strict=True):
        assert problem.startswith(f"{tmp_path}/client.properties: {expected}")
    assert "secret" not in str(problems)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    absent = Connection(bootstrap_servers="kafka:9092", client_properties=str(tmp_path / "absent"))
    assert problems_of(absent) == [f"{tmp_path}/absent: cannot be read (No such file or directory)"]
    folder = Connection(bootstrap_servers="kafka:9092", client_properties=str(tmp_path))
    assert problems_of(folder) == [f"{tmp_path}: cannot be read (Is a directory)"]


def test_aiokafka_is_told_the_same(tmp_path: Path) -> None:
    assert Connection(bootstrap_servers="one:9092").aiokafka() == {
        "bootstrap_servers": "one:9092",
        "security_protocol": "PLAINTEXT",
    }
    told = connection(
        tmp_path, "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=ada\nsasl.password=secret"
    ).aiokafka()
    assert (told["sasl_mechanism"], told["sasl_plain_username"]) == ("PLAIN", "ada")
    assert told["sasl_plain_password"] == "secret"
    assert told["ssl_context"].check_hostname


def test_problems_of_settings_connection_and_certificates_are_told_together(tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\nssl.ca.location=/nowhere/ca.pem\n")
    environ = {"TAILPACK_BOOTSTRAP_SERVERS": "one:1", "TAILPACK_CLIENT_PROPERTIES": str(properties)}
    with pytest.raises(InvalidSettingsError) as wrong:
        read_settings(environ | {"TAILPACK_SECURITY_PROTOCOL": "none"}, Connection)
    assert f"{properties}: certificates cannot be loaded" in wrong.value.problems[0]


def test_a_secret_may_have_a_file_of_its_own(tmp_path: Path) -> None:
    secret, properties = tmp_path / "secret", tmp_path / "client.properties"
    secret.write_text("hush \n")
    login = "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=me\n"
    properties.write_text(f"{login}sasl.password.file={secret}\n")
    connection = Connection(bootstrap_servers="somewhere:1", client_properties=str(properties))
    assert connection.librdkafka()["sasl.password"] == "hush "
    assert not [key for key in connection.librdkafka() if key.endswith(".file")]
    assert "hush" not in repr(connection.security())
    secret.unlink()
    with pytest.raises(InvalidSettingsError, match="secret: cannot be read"):
        connection.security()
