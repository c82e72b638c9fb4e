"""The pictures of docs/model.md, drawn from simulations."""
