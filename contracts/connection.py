"""How a process reaches Kafka: an address, and a properties file where TLS or SASL is wanted."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from contracts.settings import Rules, Settings, Values, declaration, setting
from contracts.validation import ConfigFile, InvalidSettingsError, parse

T = TypeVar("T", bound=Settings)

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Mechanisms that librdkafka, aiokafka, Faust and Java's clients all know, by the same names."""


def _needed(name: str, values: Values) -> str | None:
    protocol, told = values["security_protocol"], values[name] or values.get(f"{name}_file")
    return f"{protocol} needs it" if protocol.startswith("SASL") and not told else None


@dataclass(frozen=True, kw_only=True, repr=False)
class Security(Settings):
    """Client security by librdkafka's property names, which its documentation explains. Its text shows no secret."""

    security_protocol: str = setting("PLAINTEXT", known=PROTOCOLS, key="security.protocol")
    ssl_ca_location: str = setting("", key="ssl.ca.location")
    ssl_certificate_location: str = setting("", key="ssl.certificate.location")
    ssl_key_location: str = setting("", key="ssl.key.location")
    ssl_key_password: str = setting("", key="ssl.key.password")
    ssl_key_password_file: str = setting("", key="ssl.key.password.file")
    sasl_mechanism: str = setting("", known=("", *MECHANISMS), key="sasl.mechanism")
    sasl_username: str = setting("", key="sasl.username")
    sasl_password: str = setting("", key="sasl.password")
    sasl_password_file: str = setting("", key="sasl.password.file")

    RULES: ClassVar[Rules] = tuple(
        (name, partial(_needed, name)) for name in ("sasl_mechanism", "sasl_username", "sasl_password")
    )

    def with_secrets(self) -> "Security":
        """Return the same with the passwords that files hold, without the line's end. Raises InvalidSettingsError."""
        read: dict[str, str] = {}
        problems = []
        for name in ("ssl_key_password", "sasl_password"):
            if path := getattr(self, f"{name}_file"):
                try:
                    read |= {name: secret_in(path), f"{name}_file": ""}
                except InvalidSettingsError as wrong:
                    problems += wrong.problems
        if problems:
            raise InvalidSettingsError(problems)
        return replace(self, **read)

    def properties(self) -> dict[str, str]:
        """Return what is set, by librdkafka's names."""
        named = {declaration(one).key: getattr(self, one.name) for one in fields(self)}
        return {key: value for key, value in named.items() if value}


@dataclass(frozen=True, kw_only=True)
class Connection(Settings):
    """Environment: TAILPACK_BOOTSTRAP_SERVERS, TAILPACK_CLIENT_PROPERTIES, TAILPACK_NAMESPACE."""

    bootstrap_servers: str
    """HOST:PORT of brokers, separated by commas."""
    client_properties: str = setting("")
    """Path of a file of KEY=VALUE lines with the client's security; empty: none."""
    namespace: str = setting("")
    """Put before every topic, group and transactional id, so that runs on one broker never meet."""

    def security(self) -> Security:
        """Read the properties file (KEY=VALUE lines, # comments).

        Raises InvalidSettingsError naming every line that is wrong or missing, or the file that cannot be read.
        """
        if not self.client_properties:
            return Security()
        path = self.client_properties
        lines = map(str.strip, _text_in(path).splitlines())
        pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
        told = {key.strip(): value.strip() for key, _, value in pairs}
        return parse(told, Security, where=f"{path}: ").with_secrets()

    def librdkafka(self) -> dict[str, str]:
        """Return the configuration that confluent-kafka clients take."""
        return {"bootstrap.servers": self.bootstrap_servers} | self.security().properties()

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


def read_settings(
    environ: Mapping[str, str],
    kind: type[T],
    config: Path | None = None,
    check: Callable[[T, ConfigFile], object] = lambda *_: None,
) -> tuple[Connection, T]:
    """Return the connection and the process's own settings. Raises InvalidSettingsError with every problem of both.

    config: a TOML file below the environment. check: called with settings that are right by themselves.
    """
    file = ConfigFile(config, environ)
    problems = file.strangers(Connection, kind)
    found: list[Any] = []
    try:
        found.append(file.read(Connection))
        found[0].aiokafka()  # whatever client the process uses, its certificates must be there
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    try:
        found.append(file.read(kind))
        check(found[-1], file)
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    if problems:
        raise InvalidSettingsError(problems)
    connection, settings = found
    return connection, settings


def secret_in(path: str) -> str:
    """Return what a file holds that holds a secret and nothing else, without the line's end.

    Raises InvalidSettingsError for one that cannot be read or is empty.
    """
    if secret := _text_in(path).rstrip("\r\n"):
        return secret
    raise InvalidSettingsError([f"{path}: is empty"])


def _text_in(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as missing:
        raise InvalidSettingsError([f"{path}: cannot be read ({missing.strerror})"]) from missing
    except UnicodeDecodeError as wrong:
        raise InvalidSettingsError([f"{path}: is no text in UTF-8"]) from wrong


def _ssl_context(security: Security) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=security.ssl_ca_location or None)
    if security.ssl_certificate_location:
        key, password = security.ssl_key_location or None, security.ssl_key_password or None
        context.load_cert_chain(security.ssl_certificate_location, key, password)
    return context
