"""How a process reaches Kafka: an address, and a properties file where TLS or SASL is wanted."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from contracts.validation import InvalidSettingsError, from_environment, parse

T = TypeVar("T", bound=msgspec.Struct)

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""What librdkafka, aiokafka, Faust and Java's clients all know, spelt as all of them take it."""


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """Client security in librdkafka's property names. Empty text means unset."""

    security_protocol: str = msgspec.field(default="PLAINTEXT", name="security.protocol")
    ssl_ca_location: str = msgspec.field(default="", name="ssl.ca.location")
    ssl_certificate_location: str = msgspec.field(default="", name="ssl.certificate.location")
    ssl_key_location: str = msgspec.field(default="", name="ssl.key.location")
    ssl_key_password: str = msgspec.field(default="", name="ssl.key.password")
    sasl_mechanism: str = msgspec.field(default="", name="sasl.mechanism")
    sasl_username: str = msgspec.field(default="", name="sasl.username")
    sasl_password: str = msgspec.field(default="", name="sasl.password")


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """Environment: TAILPACK_BOOTSTRAP_SERVERS, TAILPACK_CLIENT_PROPERTIES (path), TAILPACK_NAMESPACE."""

    bootstrap_servers: str
    client_properties: str = ""
    namespace: str = ""
    """Put before every topic, group and transactional id, so that runs on one broker never meet."""

    def security(self) -> Security:
        """Read the properties file (KEY=VALUE lines, # comments).

        Raises InvalidSettingsError naming every line that is wrong or missing, or the file that cannot be read.
        """
        if not self.client_properties:
            return Security()
        path = Path(self.client_properties)
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as missing:
            raise InvalidSettingsError([f"{path}: cannot be read ({missing.strerror})"]) from missing
        pairs = [line.partition("=") for line in map(str.strip, lines) if line and not line.startswith("#")]
        security = parse({key.strip(): value.strip() for key, _, value in pairs}, Security, where=f"{path}: ")
        if problems := _problems(security):
            raise InvalidSettingsError([f"{path}: {problem}" for problem in problems])
        return security

    def librdkafka(self) -> dict[str, str]:
        """Return the configuration that confluent-kafka clients take."""
        named = msgspec.to_builtins(self.security())
        return {"bootstrap.servers": self.bootstrap_servers} | {key: value for key, value in named.items() if value}

    def aiokafka(self) -> dict[str, Any]:
        """Return the arguments that aiokafka's clients take.

        Raises InvalidSettingsError as `security` does, and for certificates that cannot be loaded.
        """
        security = self.security()
        arguments: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers,
            "security_protocol": security.security_protocol,
        }
        if security.security_protocol.startswith("SASL"):
            arguments |= {
                "sasl_mechanism": security.sasl_mechanism,
                "sasl_plain_username": security.sasl_username,
                "sasl_plain_password": security.sasl_password,
            }
        if security.security_protocol.endswith("SSL"):
            try:
                arguments["ssl_context"] = _ssl_context(security)
            except OSError as unusable:
                problem = f"certificates cannot be loaded ({unusable}); correct the ssl. paths"
                raise InvalidSettingsError([f"{self.client_properties}: {problem}"]) from unusable
        return arguments


def read_settings(environ: Mapping[str, str], kind: type[T]) -> tuple[Connection, T]:
    """Return the connection and the process's own settings. Raises InvalidSettingsError with every problem of both."""
    problems: list[str] = []
    connection: Connection | None = None
    settings: T | None = None
    try:
        connection = from_environment(environ, Connection)
        connection.aiokafka()  # whatever client the process uses, its certificates must be there
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    try:
        settings = from_environment(environ, kind)
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    if problems or connection is None or settings is None:
        raise InvalidSettingsError(problems)
    return connection, settings


def _ssl_context(security: Security) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=security.ssl_ca_location or None)
    if security.ssl_certificate_location:
        key, password = security.ssl_key_location or None, security.ssl_key_password or None
        context.load_cert_chain(security.ssl_certificate_location, key, password)
    return context


def _problems(security: Security) -> list[str]:
    protocol, mechanism = security.security_protocol, security.sasl_mechanism
    if protocol not in PROTOCOLS:
        return [f"security.protocol = {protocol}: unknown; known are {', '.join(PROTOCOLS)}"]
    if not protocol.startswith("SASL"):
        return []
    unknown = [f"sasl.mechanism = {mechanism}: unknown; known are {', '.join(MECHANISMS)}"]
    needed = {
        "sasl.mechanism": mechanism,
        "sasl.username": security.sasl_username,
        "sasl.password": security.sasl_password,
    }
    missing = [f"{name}: missing; {protocol} needs it" for name, value in needed.items() if not value]
    return missing + (unknown if mechanism and mechanism not in MECHANISMS else [])
