"""FX graphs become graphs of Weft."""
