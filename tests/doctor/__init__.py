"""Every failure that the doctor knows is made for real; then its fix line is followed, and the
doctor finds nothing any more."""
