module frazil.test/names

go 1.23.0

require github.com/prometheus/otlptranslator v1.0.0
