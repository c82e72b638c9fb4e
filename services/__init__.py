"""Order, Payment, Shipment, Notification, and the consumer that Payment stands on."""
