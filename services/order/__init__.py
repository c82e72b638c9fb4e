"""Order: takes orders over HTTP and from a topic, validates them, requests their payment, knows their status."""
