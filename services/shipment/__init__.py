"""Shipment: creates a parcel, with carrier and delivery day, for each accepted payment."""
