"""What a run came to: figures, causes, cost; the Spark job that finds them and the page that shows them."""
