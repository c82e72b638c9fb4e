"""Client properties of librdkafka are mapped to those of Java."""

from pathlib import Path

import pytest

from contracts.connection import Connection
from report import ReportError
from report.spark.topics import kafka_options

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"


def options(tmp_path: Path, *lines: str) -> dict[str, str]:
    properties = tmp_path / "client.properties"
    properties.write_text("\n".join(lines))
    return kafka_options(Connection(bootstrap_servers="broker:9093", client_properties=str(properties)))


def test_a_client_certificate_needs_a_key_that_java_reads(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text(CERTIFICATE)
    (tmp_path / "key.pem").write_text("-----BEGIN RSA PRIVATE KEY-----\nAA==\n-----END RSA PRIVATE KEY-----\n")
    lines = [f"ssl.certificate.location={tmp_path / 'cert.pem'}", f"ssl.key.location={tmp_path / 'key.pem'}"]
    with pytest.raises(ReportError, match="PKCS #8"):
        options(tmp_path, "security.protocol=SSL", *lines)

    (tmp_path / "key.pem").write_text("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n")
    found = options(tmp_path, "security.protocol=SSL", *lines)
    assert found["kafka.ssl.keystore.type"] == "PEM"
    assert found["kafka.ssl.keystore.certificate.chain"] == CERTIFICATE
