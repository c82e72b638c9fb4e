"""Notification: notifies the customer and completes the timeline of the event."""
