// Command names translates names from standard input, one JSON object per line, as Prometheus'
// OTLP receiver does with its defaults.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"github.com/prometheus/otlptranslator"
)

type input struct {
	Name, Unit, Type string
	Monotonic        bool
}

type output struct {
	Metric *string `json:"metric"`
	Label  *string `json:"label"`
	Unit   string  `json:"unit"`
}

func typeOf(in input) otlptranslator.MetricType {
	switch in.Type {
	case "gauge":
		return otlptranslator.MetricTypeGauge
	case "sum":
		if in.Monotonic {
			return otlptranslator.MetricTypeMonotonicCounter
		}
		return otlptranslator.MetricTypeNonMonotonicCounter
	case "histogram":
		return otlptranslator.MetricTypeHistogram
	case "exponential_histogram":
		return otlptranslator.MetricTypeExponentialHistogram
	}
	return otlptranslator.MetricTypeSummary
}

func orNil(name string, err error) *string {
	if err != nil {
		return nil
	}
	return &name
}

func main() {
	metrics := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	labels := otlptranslator.LabelNamer{
		UnderscoreLabelSanitization: true,
		PreserveMultipleUnderscores: true,
	}
	units := otlptranslator.UnitNamer{}
	lines := bufio.NewScanner(os.Stdin)
	encoder := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var in input
		if err := json.Unmarshal(lines.Bytes(), &in); err != nil {
			log.Fatal(err)
		}
		metric := otlptranslator.Metric{Name: in.Name, Unit: in.Unit, Type: typeOf(in)}
		out := output{
			Metric: orNil(metrics.Build(metric)),
			Label:  orNil(labels.Build(in.Name)),
			Unit:   units.Build(in.Unit),
		}
		if err := encoder.Encode(out); err != nil {
			log.Fatal(err)
		}
	}
}
