"""How a process reaches Kafka: an address, and a properties file where TLS or SASL is wanted."""

from pathlib import Path

import msgspec

from contracts.validation import InvalidSettingsError, parse


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

        Raises InvalidSettingsError naming every line that is not understood, or the file that cannot be read.
        """
        if not self.client_properties:
            return Security()
        path = Path(self.client_properties)
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as missing:
            raise InvalidSettingsError([f"{path}: cannot be read ({missing.strerror})"]) from missing
        pairs = [line.partition("=") for line in map(str.strip, lines) if line and not line.startswith("#")]
        return parse({key.strip(): value.strip() for key, _, value in pairs}, Security, where=f"{path}: ")

    def librdkafka(self) -> dict[str, str]:
        """Return the configuration that confluent-kafka clients take."""
        named = msgspec.to_builtins(self.security())
        return {"bootstrap.servers": self.bootstrap_servers} | {key: value for key, value in named.items() if value}
