"""Files for Grafana."""
