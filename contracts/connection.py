"""The connection to Kafka: the addresses of the brokers and a properties file for TLS or SASL."""

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from contracts.settings import Rule, Rules, Settings, must, setting, unknown_name
from contracts.validation import InvalidSettingsError, from_environment, parse, table_in, text_in

T = TypeVar("T", bound=Settings)

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""SASL mechanisms that librdkafka, aiokafka, Faust and the Java clients support under the same names."""
SECRETS: Final = ("ssl.key.password", "sasl.password")
"""Properties that are secret. The property NAME.file holds the path of a file with only the secret."""
PLAIN_ADDRESS: Final = "must be HOST:PORT; leave out the protocol, which security.protocol sets in client_properties"
_SECRET: Final = re.compile("password|secret|token", re.IGNORECASE)
NO_SECRET: Final = f"secrets do not belong in this file; put each into its own, see {'.file and '.join(SECRETS)}.file"


def _required_by_sasl(name: str) -> tuple[str, Rule]:
    return must(name, lambda of: of[name] or "SASL" not in of["security_protocol"], "{security_protocol} requires it")


def _property(field: "Field[Any]") -> str:
    return field.name.replace("_", ".")


@dataclass(frozen=True, kw_only=True, repr=False)
class Security(Settings):
    """Security of the Kafka clients. Fields have the names of librdkafka's properties. `repr` shows no secret."""

    security_protocol: str = setting("PLAINTEXT", known=PROTOCOLS)
    ssl_ca_location: str = setting("")
    ssl_certificate_location: str = setting("")
    ssl_key_location: str = setting("")
    ssl_key_password: str = setting("")
    ssl_key_password_file: str = setting("")
    sasl_mechanism: str = setting("", known=("", *MECHANISMS))
    sasl_username: str = setting("")
    sasl_password: str = setting("")
    sasl_password_file: str = setting("")

    RULES: ClassVar[Rules] = tuple(map(_required_by_sasl, ("sasl_mechanism", "sasl_username", "sasl_password")))


@dataclass(frozen=True, kw_only=True)
class Connection(Settings):
    """Settings of the connection: TAILPACK_BOOTSTRAP_SERVERS, TAILPACK_CLIENT_PROPERTIES and TAILPACK_NAMESPACE."""

    bootstrap_servers: str
    """Brokers as HOST:PORT, separated by commas."""
    client_properties: str = setting("")
    """File with the client's TLS and SASL properties; empty: none."""
    namespace: str = setting("")
    """Prefix of every topic, group and transactional id."""

    RULES: ClassVar[Rules] = (
        must("bootstrap_servers", lambda of: "://" not in of["bootstrap_servers"], PLAIN_ADDRESS),
    )

    def security(self) -> Security:
        """Read the properties file: KEY=VALUE lines and # comments. Raises InvalidSettingsError with every problem."""
        if not self.client_properties:
            return Security()
        path = self.client_properties
        lines = map(str.strip, text_in(Path(path)).splitlines())
        pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
        properties = {key.strip(): value.strip() for key, _, value in pairs}
        problems: list[str] = []
        for name in SECRETS:
            try:
                properties |= {name: secret_in(file)} if (file := properties.get(f"{name}.file")) else {}
            except InvalidSettingsError as wrong:
                problems += wrong.problems
        if problems:
            raise InvalidSettingsError(problems)
        return parse(properties, Security, where=f"{path}: ", spelling=_property)

    def librdkafka(self) -> dict[str, str]:
        """Return the configuration of confluent-kafka clients."""
        security = self.security()
        own = {_property(field): getattr(security, field.name) for field in fields(security)}
        return {"bootstrap.servers": self.bootstrap_servers} | {k: v for k, v in own.items() if v and ".file" not in k}

    def aiokafka(self) -> dict[str, Any]:
        """Return the arguments of aiokafka's clients. Raises InvalidSettingsError, also for unusable certificates."""
        security = self.security()
        protocol = security.security_protocol
        arguments: dict[str, Any] = {"bootstrap_servers": self.bootstrap_servers, "security_protocol": protocol}
        if protocol.startswith("SASL"):
            arguments |= {
                "sasl_mechanism": security.sasl_mechanism,
                "sasl_plain_username": security.sasl_username,
                "sasl_plain_password": security.sasl_password,
            }
        if protocol.endswith("SSL"):
            try:
                context = arguments["ssl_context"] = ssl.create_default_context(cafile=security.ssl_ca_location or None)
                if certificate := security.ssl_certificate_location:
                    context.load_cert_chain(certificate, security.ssl_key_location or None, security.ssl_key_password)
            except OSError as unusable:
                problem = f"certificates cannot be loaded ({unusable}); correct the paths of ssl.*"
                raise InvalidSettingsError([f"{self.client_properties}: {problem}"]) from unusable
        return arguments


def read_settings(
    environ: Mapping[str, str], kind: type[T], config: Path | None = None, check: Callable[[T], object] = lambda _: None
) -> tuple[Connection, T]:
    """Return the connection and the process's own settings. Raises InvalidSettingsError with the problems of both.

    config: a TOML file. Environment variables override it. check: gets the settings; may raise InvalidSettingsError.
    """
    table = table_in(config) if config else {}
    problems, given = list[str](), {key: key for key in table}
    for name, short in kind.TABLES.items():
        for key, value in (table.pop(name) if isinstance(table.get(name), dict) else {}).items():
            full, here = short.get(key, key), f"[{name}] {key}"
            if full in given:
                problems.append(f"{config}: {given[full]} and {here} are the same setting; keep one of them")
            table[full], given[full] = value, here
    known = sorted({field.name for field in (*fields(Connection), *fields(kind))})
    why = {key: NO_SECRET if _SECRET.search(key) else unknown_name(key, known) for key in table if key not in known}
    problems += [f"{config}: {key}: {problem}" for key, problem in why.items()]
    found: list[Any] = []
    both: Any = ((Connection, Connection.aiokafka), (kind, check))  # `aiokafka` checks the certificates
    for record, validate in both:
        try:
            found.append(from_environment(environ, record, table, config))
            validate(found[-1])
        except InvalidSettingsError as wrong:
            problems += wrong.problems
    if problems:
        raise InvalidSettingsError(problems)
    return found[0], found[1]


def secret_in(path: str) -> str:
    """Return the secret in a file, without the line break. Raises InvalidSettingsError for an empty file."""
    if secret := text_in(Path(path)).rstrip("\r\n"):
        return secret
    raise InvalidSettingsError([f"{path}: is empty; write the secret into it"])
