"""A record of a schema that we do not know is told apart from one that is broken."""

import msgspec
import pytest

from contracts.events import SCHEMA_VERSION, UnknownVersionError, check_version


def test_our_own_version_is_known() -> None:
    check_version(b'{"v": %d, "anything": "else"}' % SCHEMA_VERSION)


@pytest.mark.parametrize(("value", "version"), [(b'{"v": 2}', 2), (b'{"v": 99, "order_id": "o-1"}', 99), (b"{}", 0)])
def test_another_version_or_none_is_unknown_and_named(value: bytes, version: int) -> None:
    with pytest.raises(UnknownVersionError, match=f"schema version {version} is unknown; this service understands 1"):
        check_version(value)


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"null", b'{"v": "1"}', b'{"v": null}', b"\xff\xfe"])
def test_what_is_no_record_at_all_is_a_decoding_error(value: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        check_version(value)
