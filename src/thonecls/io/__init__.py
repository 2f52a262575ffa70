"""Files to scenes and labels: rasters, vectors and arrays; no torch here."""
