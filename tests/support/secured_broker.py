"""An embedded Kafka as organisations run it: TLS with its own CA, SCRAM logins, and only explicit rights.

The administrator uses its plain listener, clients use the secured listener.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tailpack.local.broker import Broker
from tailpack.local.broker_config import PROPERTIES
from tailpack.local.ports import free_port

USER: Final = "tailpack"
PASSWORD: Final = 'k=v # "quoted" \\ and more'
"""Password with all characters that a client's configuration could misinterpret."""
MECHANISM: Final = "SCRAM-SHA-512"

SECURED: Final = """\
listeners=PLAINTEXT://127.0.0.1:{{port}},SECURED://127.0.0.1:{secured_port},CONTROLLER://127.0.0.1:{{controller_port}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SECURED://127.0.0.1:{secured_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms={mechanism}
listener.name.secured.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""


@dataclass(frozen=True, slots=True)
class SecuredKafka:
    """A running broker, with its secured address and a properties file for `--client-properties`."""

    address: str
    ca: Path
    folder: Path
    plain: str
    """The administrator's address."""

    def add_user(self, user: str) -> None:
        """Add a user with PASSWORD and without rights."""
        _add_user(AdminClient({"bootstrap.servers": self.plain}), user)

    def client_properties(self, password: str = PASSWORD, user: str = USER) -> Path:
        """Write a client's properties file and return its path."""
        path = self.folder / f"{user}.properties"
        path.write_text(
            f"# {user}'s login\n"
            "security.protocol=SASL_SSL\n"
            f"ssl.ca.location={self.ca}\n"
            f"sasl.mechanism={MECHANISM}\n"
            f"sasl.username={user}\n"
            f"sasl.password={password}\n",
            encoding="utf-8",
        )
        return path


@contextmanager
def secured_kafka(folder: Path, *, prefix: str, is_planned: bool = False) -> Iterator[SecuredKafka]:
    """Run a broker on which USER may do what docs/howto/own-kafka.md asks for, on names that start with `prefix`."""
    folder.mkdir(parents=True, exist_ok=True)
    ca, keystore = _certificates(folder)
    port = free_port()
    extra = SECURED.format(secured_port=port, mechanism=MECHANISM, keystore=keystore)
    # Java takes the last one of two properties with the same name.
    broker = Broker(folder / "kafka", properties=PROPERTIES + extra, is_planned=is_planned)
    try:
        plain = broker.start()
        admin = AdminClient({"bootstrap.servers": plain})
        _add_user(admin, USER)
        _grant(admin, prefix)
        yield SecuredKafka(f"127.0.0.1:{port}", ca, folder, plain)
    finally:
        broker.kill()


def _add_user(admin: AdminClient, user: str) -> None:
    login = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    changes = [UserScramCredentialUpsertion(user, login, PASSWORD.encode())]
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result(30)


def _grant(admin: AdminClient, prefix: str) -> None:
    rights = {
        ResourceType.TOPIC: ("CREATE", "DESCRIBE", "READ", "WRITE"),
        ResourceType.GROUP: ("DESCRIBE", "READ"),
        ResourceType.TRANSACTIONAL_ID: ("DESCRIBE", "WRITE"),
    }
    bindings = [
        AclBinding(
            kind,
            prefix,
            ResourcePatternType.PREFIXED,
            f"User:{USER}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for kind, operations in rights.items()
        for operation in operations
    ]
    for done in admin.create_acls(bindings).values():
        done.result(30)


def _certificates(folder: Path) -> tuple[Path, Path]:
    """Return the CA's certificate, and a PEM file with the broker's key and certificate."""
    ca, ca_key, key, request, extensions, certificate, keystore = (
        folder / name for name in ("ca.pem", "ca.key", "kafka.key", "kafka.csr", "kafka.ext", "kafka.crt", "kafka.pem")
    )
    extensions.write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n", encoding="ascii")
    new = ("req", "-newkey", "rsa:2048", "-nodes")
    _openssl(*new, "-x509", "-days", "2", "-subj", "/CN=test CA", "-keyout", ca_key, "-out", ca)
    _openssl(*new, "-subj", "/CN=kafka", "-keyout", key, "-out", request)
    signed_by = ("-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2")
    _openssl("x509", "-req", "-in", request, *signed_by, "-extfile", extensions, "-out", certificate)
    keystore.write_text(key.read_text() + certificate.read_text(), encoding="ascii")
    return ca, keystore


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
