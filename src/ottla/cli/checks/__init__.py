"""The checks of `ottla doctor`. Each module separates gathering facts from judging them."""
