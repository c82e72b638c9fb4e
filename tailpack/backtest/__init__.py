"""What `tailpack backtest` reads and writes: past traffic, and a page."""
