"""Reference data that the load generator draws from and Order validates against."""

from typing import Final

CURRENCIES: Final = ("EUR", "USD", "GBP", "CHF", "SEK")
COUNTRIES: Final = ("AT", "CH", "DE", "ES", "FR", "GB", "IT", "NL", "SE", "US")
MERCHANTS: Final = (
    "bakery", "bicycles", "books", "cinema", "electronics", "florist", "furniture", "games", "garden", "grocery",
    "hardware", "jewellery", "music", "opticians", "pharmacy", "shoes", "stationery", "toys", "travel", "wine",
)  # fmt: skip
MAX_AMOUNT_MINOR: Final = 10_000_000
"""Largest order, in minor units."""
MAX_ORDER_BYTES: Final = 16_384
"""Largest accepted order record or request body."""


def luhn_digit(digits: str) -> str:
    """Return the check digit that makes `digits` + digit pass the Luhn test (ISO/IEC 7812-1, annex B)."""
    doubled = (int(digit) * 2 for digit in digits[::-2])
    total = sum(value - 9 if value > 9 else value for value in doubled) + sum(map(int, digits[-2::-2]))
    return str(-total % 10)
