package ship

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	common "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/telemetry"
)

// A Kind is what takes records.
type Kind string

// The kinds of targets.
const (
	HTTP Kind = "http" // a line of JSON each
	OTLP Kind = "otlp" // log records of OpenTelemetry
	OPA  Kind = "opa"  // a list of decisions, as OPA sends its decision logs
)

// A Format is what a record is sent as. Of OPA it means nothing.
type Format string

// The formats.
const (
	AsItIs Format = "audit" // the line of the log
	OCSF   Format = "ocsf"
)

// recordID tells a record from every other, and from itself when it comes twice.
func recordID(e audit.Entry) string { return e.Log + "/" + strconv.FormatUint(e.Seq, 10) }

// body returns the records in the words of the target; nil if there is nothing to say.
func (s *Shipper) body(batch []audit.Entry) (contentType string, body []byte, err error) {
	switch s.Kind {
	case HTTP:
		var b bytes.Buffer
		for _, e := range batch {
			text, err := s.text(e)
			if err != nil {
				return "", nil, err
			}
			b.Write(text)
			b.WriteByte('\n')
		}
		return "application/x-ndjson", b.Bytes(), nil
	case OTLP:
		m, err := s.records(batch)
		if err != nil {
			return "", nil, err
		}
		body, err = proto.Marshal(m)
		return "application/x-protobuf", body, err
	case OPA:
		var all []Decision
		for _, e := range batch {
			if d, ok := DecisionOf(e, s.Relays); ok {
				all = append(all, d)
			}
		}
		if len(all) == 0 {
			return "", nil, nil
		}
		body, err = json.Marshal(all)
		return "application/json", body, err
	}
	return "", nil, fmt.Errorf("%q is not a kind of target", s.Kind)
}

// text returns a record as JSON.
func (s *Shipper) text(e audit.Entry) ([]byte, error) {
	if s.Format == OCSF {
		return json.Marshal(ocsf(e))
	}
	return e.Raw, nil
}

// records returns log records. They are an ExportLogsServiceRequest, too, which has the
// same form on the wire.
func (s *Shipper) records(batch []audit.Entry) (*logs.LogsData, error) {
	scoped := &logs.ScopeLogs{Scope: telemetry.Scope("")}
	for _, e := range batch {
		text, err := s.text(e)
		if err != nil {
			return nil, err
		}
		severity, word := logs.SeverityNumber_SEVERITY_NUMBER_INFO, "INFO"
		if strings.HasPrefix(e.Code, "refused_") || e.Error != "" {
			severity, word = logs.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
		}
		r := &logs.LogRecord{
			TimeUnixNano: uint64(e.Time.UnixNano()), ObservedTimeUnixNano: uint64(e.Time.UnixNano()),
			SeverityNumber: severity, SeverityText: word, EventName: "wasmgate." + string(e.Event),
			Body: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: string(text)}},
		}
		for _, a := range [][2]string{
			{"log.record.uid", recordID(e)}, {"wasmgate.event", string(e.Event)}, {"wasmgate.call", e.ID}, {"wasmgate.code", e.Code},
			{"mcp.method.name", string(e.Action)}, {"wasmgate.server", e.Server}, {"wasmgate.effect", string(e.Effect)}, {"user.id", e.Principal},
		} {
			if a[1] != "" {
				r.Attributes = append(r.Attributes, telemetry.Text(a[0], a[1]))
			}
		}
		scoped.LogRecords = append(scoped.LogRecords, r)
	}
	return &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{Resource: telemetry.ResourceOf(s.Resource), ScopeLogs: []*logs.ScopeLogs{scoped}}}}, nil
}
