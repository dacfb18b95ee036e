// Reads requests from standard input, one JSON object per line, sends each to a node, and decodes
// the answer as the clients of Tempo and Jaeger do: unknown fields are errors.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/gogo/protobuf/proto"
	"github.com/golang/protobuf/jsonpb"
	"github.com/grafana/tempo/pkg/tempopb"
	jaeger "github.com/jaegertracing/jaeger/model/json"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

type request struct {
	As     string `json:"as"`
	Url    string `json:"url"`
	Accept string `json:"accept"`
}

type result struct {
	As    string `json:"as"`
	Url   string `json:"url"`
	Count int    `json:"count"`
	Error string `json:"error"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var sent request
		if err := json.Unmarshal(lines.Bytes(), &sent); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		count, err := ask(sent)
		done := result{As: sent.As, Url: sent.Url, Count: count}
		if err != nil {
			done.Error = err.Error()
		}
		if err := out.Encode(done); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func ask(sent request) (int, error) {
	request, err := http.NewRequest("GET", sent.Url, nil)
	if err != nil {
		return 0, err
	}
	if sent.Accept != "" {
		request.Header.Set("Accept", sent.Accept)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d: %s", response.StatusCode, body)
	}
	return decode(sent.As, body)
}

func decode(as string, body []byte) (int, error) {
	switch as {
	case "plain":
		return len(body), nil
	case "trace":
		var answer tempopb.Trace
		err := proto.Unmarshal(body, &answer)
		return spans(&answer), err
	case "trace_by_id":
		var answer tempopb.TraceByIDResponse
		err := proto.Unmarshal(body, &answer)
		return spans(answer.Trace), err
	case "trace_by_id_json":
		var answer tempopb.TraceByIDResponse
		err := strict(body, &answer)
		return spans(answer.Trace), err
	case "search":
		var answer tempopb.SearchResponse
		err := strict(body, &answer)
		return len(answer.Traces), err
	case "tags":
		var answer tempopb.SearchTagsResponse
		err := strict(body, &answer)
		return len(answer.TagNames), err
	case "tags_v2":
		var answer tempopb.SearchTagsV2Response
		err := strict(body, &answer)
		return len(answer.Scopes), err
	case "values":
		var answer tempopb.SearchTagValuesResponse
		err := strict(body, &answer)
		return len(answer.TagValues), err
	case "values_v2":
		var answer tempopb.SearchTagValuesV2Response
		err := strict(body, &answer)
		return len(answer.TagValues), err
	case "range":
		var answer tempopb.QueryRangeResponse
		err := strict(body, &answer)
		return len(answer.Series), err
	case "instant":
		var answer tempopb.QueryInstantResponse
		err := strict(body, &answer)
		return len(answer.Series), err
	case "jaeger_names":
		return decodeJaeger(body, new([]string))
	case "jaeger_operations":
		return decodeJaeger(body, new([]jaegerOperation))
	case "jaeger_traces":
		return decodeJaeger(body, new([]jaeger.Trace))
	case "jaeger_dependencies":
		return decodeJaeger(body, new([]jaeger.DependencyLink))
	case "jaeger_v3_traces":
		return decodeResult(body)
	case "jaeger_v3":
		var answer map[string][]any
		err := json.Unmarshal(body, &answer)
		count := 0
		for _, listed := range answer {
			count += len(listed)
		}
		return count, err
	}
	return 0, fmt.Errorf("%q is not known", as)
}

func strict(body []byte, answer interface {
	Reset()
	String() string
	ProtoMessage()
}) error {
	return jsonpb.Unmarshal(bytes.NewReader(body), answer)
}

func spans(trace *tempopb.Trace) int {
	count := 0
	if trace == nil {
		return count
	}
	for _, resource := range trace.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			count += len(scope.Spans)
		}
	}
	return count
}

type jaegerOperation struct {
	Name     string `json:"name"`
	SpanKind string `json:"spanKind"`
}

type jaegerError struct {
	Code int    `json:"code"`
	Msg  string `json:"msg"`
}

// The envelope of Jaeger's version 1. The data is decoded into the types of Jaeger itself.
func decodeJaeger[T any](body []byte, data *[]T) (int, error) {
	answer := struct {
		Data   *[]T          `json:"data"`
		Total  int           `json:"total"`
		Limit  int           `json:"limit"`
		Offset int           `json:"offset"`
		Errors []jaegerError `json:"errors"`
	}{Data: data}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&answer)
	return len(*data), err
}

func decodeResult(body []byte) (int, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, err
	}
	unmarshaler := ptrace.JSONUnmarshaler{}
	traces, err := unmarshaler.UnmarshalTraces(answer.Result)
	if err != nil {
		return 0, err
	}
	return traces.SpanCount(), nil
}
