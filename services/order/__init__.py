"""Order: accepts orders over HTTP and from a topic, validates them, requests payment, and stores their status."""
