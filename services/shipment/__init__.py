"""Shipment: accepted payments become parcels with a carrier and a promised date."""
