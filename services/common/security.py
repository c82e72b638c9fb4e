"""The connection's security in the words of aiokafka and of Faust."""

import ssl
from typing import Any

import faust
from aiokafka.helpers import create_ssl_context

from contracts.connection import Connection
from services.common.errors import ServiceError


def aiokafka_options(connection: Connection) -> dict[str, Any]:
    """Return the keyword arguments that aiokafka's clients take. Raises as `faust_options`."""
    security = connection.security()
    options: dict[str, Any] = {
        "bootstrap_servers": connection.bootstrap_servers,
        "security_protocol": security.security_protocol,
        "ssl_context": _context(connection),
    }
    if security.security_protocol.startswith("SASL"):
        options |= {
            "sasl_mechanism": security.sasl_mechanism,
            "sasl_plain_username": security.sasl_username,
            "sasl_plain_password": security.sasl_password,
        }
    return options


def faust_options(connection: Connection) -> dict[str, Any]:
    """Return the keyword arguments that a Faust app takes.

    Raises InvalidSettingsError for a bad properties file, ServiceError for certificates that cannot be loaded.
    """
    security = connection.security()
    brokers = [f"kafka://{address.strip()}" for address in connection.bootstrap_servers.split(",")]
    context = _context(connection)
    if security.security_protocol.startswith("SASL"):
        credentials = faust.SASLCredentials(
            username=security.sasl_username,
            password=security.sasl_password,
            mechanism=security.sasl_mechanism,
            ssl_context=context,
        )
    else:
        credentials = faust.SSLCredentials(context) if context else None
    return {"broker": brokers, "broker_credentials": credentials}


def _context(connection: Connection) -> ssl.SSLContext | None:
    security = connection.security()
    if not security.security_protocol.endswith("SSL"):
        return None
    try:
        context: ssl.SSLContext = create_ssl_context(
            cafile=security.ssl_ca_location or None,
            certfile=security.ssl_certificate_location or None,
            keyfile=security.ssl_key_location or None,
            password=security.ssl_key_password or None,
        )
    except OSError as unusable:
        raise ServiceError(
            f"{connection.client_properties}: certificates cannot be loaded ({unusable}); correct the ssl. paths"
        ) from unusable
    return context
