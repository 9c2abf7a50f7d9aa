"""Topics, settings, groups, offsets and the cluster: looking at them and changing them."""
