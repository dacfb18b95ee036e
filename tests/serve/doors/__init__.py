"""serve/doors: other tools' protocols."""
