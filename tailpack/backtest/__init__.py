"""Past traffic for `tailpack backtest`, and the page of its result."""
