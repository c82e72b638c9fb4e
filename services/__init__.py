"""The services Order, Payment, Shipment and Notification, and the Kafka consumer of replicas that follow plans."""
