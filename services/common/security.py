"""The connection's security in the words of aiokafka and of Faust."""

import ssl
from typing import Any

import faust
from aiokafka.helpers import create_ssl_context

from contracts.connection import Connection, Security


def aiokafka_options(connection: Connection) -> dict[str, Any]:
    """Return the keyword arguments that aiokafka's clients take."""
    security = connection.security()
    options: dict[str, Any] = {
        "bootstrap_servers": connection.bootstrap_servers,
        "security_protocol": security.security_protocol,
        "ssl_context": _context(security),
    }
    if security.security_protocol.startswith("SASL"):
        options |= {
            "sasl_mechanism": security.sasl_mechanism or "PLAIN",
            "sasl_plain_username": security.sasl_username,
            "sasl_plain_password": security.sasl_password,
        }
    return options


def faust_options(connection: Connection) -> dict[str, Any]:
    """Return the keyword arguments that a Faust app takes."""
    security = connection.security()
    brokers = [f"kafka://{address.strip()}" for address in connection.bootstrap_servers.split(",")]
    context = _context(security)
    if security.security_protocol.startswith("SASL"):
        credentials = faust.SASLCredentials(
            username=security.sasl_username,
            password=security.sasl_password,
            mechanism=security.sasl_mechanism or "PLAIN",
            ssl_context=context,
        )
    else:
        credentials = faust.SSLCredentials(context) if context else None
    return {"broker": brokers, "broker_credentials": credentials}


def _context(security: Security) -> ssl.SSLContext | None:
    if not security.security_protocol.endswith("SSL"):
        return None
    context: ssl.SSLContext = create_ssl_context(
        cafile=security.ssl_ca_location or None,
        certfile=security.ssl_certificate_location or None,
        keyfile=security.ssl_key_location or None,
        password=security.ssl_key_password or None,
    )
    return context
