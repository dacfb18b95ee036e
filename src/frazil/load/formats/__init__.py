"""File formats: rows with strict types out of bytes, in bounded memory."""
