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
