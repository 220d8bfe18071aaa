package draft_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/draft"
	"github.com/wasmgate/wasmgate/internal/policy"
)

func TestDraftLabel(t *testing.T) {
	effects := func(e ...gate.ToolEffect) []gate.ToolEffect { return e }
	tests := map[string]struct {
		definition string
		want       gate.ToolLabels
	}{
		"files__read_text_file": {`{"inputSchema":{"properties":{"path":{}}}}`, gate.ToolLabels{Private: true, Effects: effects("read")}},
		"files__readTextFile":   {`{}`, gate.ToolLabels{Private: true, Effects: effects("read")}},
		"files__write_file":     {`{"inputSchema":{"properties":{"path":{},"content":{}}}}`, gate.ToolLabels{Private: true, Effects: effects("internal"), To: []string{"/path"}, Content: []string{"/content"}}},
		"mail__send": {`{"inputSchema":{"properties":{"to":{},"cc":{},"body":{},"urgent":{}}}}`,
			gate.ToolLabels{Effects: effects("external"), To: []string{"/to", "/cc"}, Content: []string{"/body"}}},
		"web__fetch":                     {`{"inputSchema":{"properties":{"url":{}}}}`, gate.ToolLabels{Effects: effects("egress"), To: []string{"/url"}}},
		"db__drop_table":                 {`{"inputSchema":{"properties":{"a/b id":{}}}}`, gate.ToolLabels{Effects: effects("destructive"), To: []string{"/a~1b id"}, Takes: map[string]string{"/a~1b id": "b"}}},
		"users__reset_password":          {`{"inputSchema":{"properties":{"user":{},"new":{}}}}`, gate.ToolLabels{Effects: effects("destructive", "credential")}},
		"x__frobnicate":                  {`{"annotations":{"readOnlyHint":true},"inputSchema":{"properties":{"a":{}}}}`, gate.ToolLabels{Effects: effects("external")}},
		"x__get":                         {`{"annotations":{"readOnlyHint":false}}`, gate.ToolLabels{Effects: effects("external")}},
		"mail__search_contacts_by_email": {`{"inputSchema":{"properties":{"query":{}}}}`, gate.ToolLabels{Private: true, Effects: effects("read")}},
		"mail__delete_email": {`{"inputSchema":{"properties":{"email_id":{}}}}`,
			gate.ToolLabels{Private: true, Effects: effects("destructive"), To: []string{"/email_id"}, Takes: map[string]string{"/email_id": "email"}}},
		"shop__list_open_orders": {`{}`, gate.ToolLabels{Effects: effects("read")}},
		"shop__find_and_order":   {`{}`, gate.ToolLabels{Effects: effects("external")}},
		"shop__get_or_create":    {`{}`, gate.ToolLabels{Effects: effects("internal")}},
		"shop__send_parcel":      {`{"inputSchema":{"properties":{"street":{}}}}`, gate.ToolLabels{Effects: effects("external"), To: []string{"/street"}}},
		"me__update_profile": {`{"inputSchema":{"properties":{"first_name":{},"street":{}}}}`,
			gate.ToolLabels{Private: true, Effects: effects("internal"), To: []string{}, Content: []string{"/first_name", "/street"}}},
		"cal__create_event": {`{"inputSchema":{"properties":{"title":{},"participants":{}}}}`,
			gate.ToolLabels{Effects: effects("internal", "external"), To: []string{"/participants"}, Content: []string{"/title"}}},
		"db__query": {`{"inputSchema":{"properties":{"sql":{}}}}`, gate.ToolLabels{Effects: effects("external"), To: []string{"/sql"}}},
		"crm__list_people": {`{"outputSchema":{"type":"object","properties":{"people":{"type":"array","items":{"type":"object","properties":{
			"person_id":{"type":"string"},"owner":{"type":"string","format":"email"},"member":{"type":"string"},"title":{"type":"string"}}}}}}}`,
			gate.ToolLabels{Effects: effects("read"), IDs: map[gate.Place]string{"/people/*/person_id": "person"}, Identity: []gate.Place{"/people/*/owner"}, Names: []gate.Place{"/people/*/title"}}},
		"crm__list_tickets": {`{"outputSchema":{"properties":{"items":{"items":{"properties":{"id":{"type":"integer"}}}}}}}`,
			gate.ToolLabels{Effects: effects("read"), IDs: map[gate.Place]string{"/items/*/id": "ticket"}}},
		"x__find": {`{"annotations":{"destructiveHint":true}}`, gate.ToolLabels{Effects: effects("destructive")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.want.Result = gate.ResultUntrusted
			got := draft.Label(name, gate.MustDoc(tt.definition))
			if diff := cmp.Diff(policy.Label{Pattern: name, ToolLabels: tt.want}, got); diff != "" {
				t.Errorf("label (-want +got):\n%s", diff)
			}
			if problems := policy.CheckLabels([]policy.Label{got}); problems != nil {
				t.Error(problems[0])
			}
		})
	}
}
