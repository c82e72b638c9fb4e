"""Notification: tells the customer, and closes the event's timeline."""
