"""The figures of the pages as inline SVG, coloured by the classes of page.css: one drawing serves both themes."""
