package draft_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/draft"
	"github.com/wasmgate/wasmgate/policy"
)

func TestDraftLabel(t *testing.T) {
	effects := func(e ...provenance.ToolEffect) []provenance.ToolEffect { return e }
	tests := map[string]struct {
		definition string
		want       provenance.ToolLabels
	}{
		"files__read_text_file": {`{"inputSchema":{"properties":{"path":{}}}}`, provenance.ToolLabels{Private: true, Effects: effects("read")}},
		"files__readTextFile":   {`{}`, provenance.ToolLabels{Private: true, Effects: effects("read")}},
		"files__write_file":     {`{"inputSchema":{"properties":{"path":{},"content":{}}}}`, provenance.ToolLabels{Private: true, Effects: effects("internal"), To: []string{"/path"}, Content: []string{"/content"}}},
		"mail__send": {`{"inputSchema":{"properties":{"to":{},"cc":{},"body":{},"urgent":{}}}}`,
			provenance.ToolLabels{Effects: effects("external"), To: []string{"/to", "/cc"}, Content: []string{"/body"}}},
		"web__fetch":                     {`{"inputSchema":{"properties":{"url":{}}}}`, provenance.ToolLabels{Effects: effects("egress"), To: []string{"/url"}}},
		"db__drop_table":                 {`{"inputSchema":{"properties":{"a/b id":{}}}}`, provenance.ToolLabels{Effects: effects("destructive"), To: []string{"/a~1b id"}, Takes: map[string]string{"/a~1b id": "b"}}},
		"users__reset_password":          {`{"inputSchema":{"properties":{"user":{},"new":{}}}}`, provenance.ToolLabels{Private: true, Effects: effects("destructive", "credential")}},
		"x__frobnicate":                  {`{"annotations":{"readOnlyHint":true},"inputSchema":{"properties":{"a":{}}}}`, provenance.ToolLabels{Effects: effects("external")}},
		"x__get":                         {`{"annotations":{"readOnlyHint":false}}`, provenance.ToolLabels{Effects: effects("external")}},
		"mail__search_contacts_by_email": {`{"inputSchema":{"properties":{"query":{}}}}`, provenance.ToolLabels{Private: true, Effects: effects("read"), Identity: []provenance.Place{"/**/email"}, Names: []provenance.Place{"/**/name"}}},
		"mail__delete_email": {`{"inputSchema":{"properties":{"email_id":{}}}}`,
			provenance.ToolLabels{Private: true, Effects: effects("destructive"), To: []string{"/email_id"}, Takes: map[string]string{"/email_id": "message"}}},
		"shop__list_open_orders": {`{}`, provenance.ToolLabels{Effects: effects("read")}},
		"shop__find_and_order":   {`{}`, provenance.ToolLabels{Effects: effects("external")}},
		"shop__get_or_create":    {`{}`, provenance.ToolLabels{Effects: effects("internal")}},
		"shop__send_parcel":      {`{"inputSchema":{"properties":{"street":{}}}}`, provenance.ToolLabels{Effects: effects("external"), To: []string{"/street"}}},
		"me__update_profile": {`{"inputSchema":{"properties":{"first_name":{},"street":{}}}}`,
			provenance.ToolLabels{Private: true, Effects: effects("internal")}},
		"web__fill_form": {`{"inputSchema":{"properties":{"url":{},"element_ref":{},"text":{}}}}`,
			provenance.ToolLabels{Effects: effects("external", "egress"), To: []string{"/url", "/element_ref"}, Content: []string{"/text"}, Takes: map[string]string{"/element_ref": "element"}}},
		"chat__post_message": {`{"inputSchema":{"properties":{"channel_id":{},"text":{}},"required":["channel_id"]}}`,
			provenance.ToolLabels{Private: true, Effects: effects("external"), To: []string{"/channel_id"}, Content: []string{"/text"}, Takes: map[string]string{"/channel_id": "recipient.channel"}}},
		"chat__send_direct_message": {`{"inputSchema":{"properties":{"recipient":{},"body":{}}}}`,
			provenance.ToolLabels{Private: true, Effects: effects("external"), To: []string{"/recipient"}, Content: []string{"/body"}, Takes: map[string]string{"/recipient": "recipient.user"}}},
		"bank__send_money": {`{"inputSchema":{"properties":{"recipient":{},"amount":{}}}}`,
			provenance.ToolLabels{Effects: effects("external"), To: []string{"/recipient"}, Commits: []string{"/amount"}, Takes: map[string]string{"/amount": "amount"}}},
		"cal__create_event": {`{"inputSchema":{"properties":{"title":{},"participants":{}}}}`,
			provenance.ToolLabels{Effects: effects("internal", "external"), To: []string{"/participants"}, Content: []string{"/title"}, Takes: map[string]string{"/participants": "recipient.user"}}},
		"db__query": {`{"inputSchema":{"properties":{"sql":{}}}}`, provenance.ToolLabels{Effects: effects("external"), To: []string{"/sql"}}},
		"crm__list_people": {`{"outputSchema":{"type":"object","properties":{"people":{"type":"array","items":{"type":"object","properties":{
			"person_id":{"type":"string"},"owner":{"type":"string","format":"email"},"member":{"type":"string"},"title":{"type":"string"}}}}}}}`,
			provenance.ToolLabels{Effects: effects("read"), IDs: map[provenance.Place]string{"/people/*/person_id": "person"}, Identity: []provenance.Place{"/people/*/owner"}, Names: []provenance.Place{"/people/*/title"}}},
		"crm__list_tickets": {`{"outputSchema":{"properties":{"items":{"items":{"properties":{"id":{"type":"integer"}}}}}}}`,
			provenance.ToolLabels{Effects: effects("read"), IDs: map[provenance.Place]string{"/items/*/id": "ticket"}}},
		"git__merge_pull_request": {`{"inputSchema":{"properties":{"owner":{"type":"string"},"repo":{"type":"string"},"pull_number":{"type":"integer"},"squash":{"type":"boolean"},"commit_title":{"type":"string"}}}}`,
			provenance.ToolLabels{Effects: effects("internal", "external"), To: []string{"/owner"}, Commits: []string{"/squash", "/repo", "/pull_number"}, Content: []string{"/commit_title"},
				Takes: map[string]string{"/repo": "repo", "/pull_number": "pull"}}},
		"mail__forward": {`{"inputSchema":{"properties":{"message_id":{},"to":{},"email_subject":{},"sendAt":{"type":"string","format":"date-time"}}}}`,
			provenance.ToolLabels{Effects: effects("external"), To: []string{"/to"}, Commits: []string{"/sendAt", "/message_id"}, Content: []string{"/email_subject"},
				Takes: map[string]string{"/message_id": "message"}}},
		"mail__archive_email": {`{"inputSchema":{"properties":{"id":{}}}}`,
			provenance.ToolLabels{Private: true, Effects: effects("internal"), To: []string{"/id"}, Takes: map[string]string{"/id": "message"}}},
		"disk__share": {`{"inputSchema":{"properties":{"file":{},"name":{"description":"username of the person"},"mode":{"enum":["r","w"]}}}}`,
			provenance.ToolLabels{Effects: effects("external"), To: []string{"/name"}, Commits: []string{"/mode", "/file"}, Takes: map[string]string{"/file": "file"}}},
		"bank__pay":              {`{"inputSchema":{"properties":{"payee":{},"account_number":{},"amount":{},"memo":{}}}}`, provenance.ToolLabels{Effects: effects("external", "destructive"), To: []string{"/payee", "/account_number"}, Commits: []string{"/amount"}, Content: []string{"/memo"}, Takes: map[string]string{"/account_number": "account", "/amount": "amount"}}},
		"net__publish":           {`{"inputSchema":{"properties":{"text":{},"reply_to":{}},"required":["text"]}}`, provenance.ToolLabels{Effects: effects("external")}}, // no one says who reads it
		"shop__ship_to":          {`{"inputSchema":{"properties":{"order_id":{},"shipping_street":{}}}}`, provenance.ToolLabels{Effects: effects("external"), To: []string{"/shipping_street"}, Commits: []string{"/order_id"}, Takes: map[string]string{"/order_id": "order"}}},
		"home__set_volume":       {`{"inputSchema":{"properties":{"level":{}}}}`, provenance.ToolLabels{Effects: effects("internal"), To: []string{}, Commits: []string{"/level"}}},
		"list__unsubscribe_list": {`{}`, provenance.ToolLabels{Effects: effects("external")}},
		"x__search_and_replace":  {`{}`, provenance.ToolLabels{Effects: effects("internal")}},
		"x__search_and_zap":      {`{}`, provenance.ToolLabels{Effects: effects("external")}},
		"x__check_in":            {`{}`, provenance.ToolLabels{Effects: effects("external")}},
		"x__get_name_and_amount": {`{}`, provenance.ToolLabels{Effects: effects("read")}},
		"x__find":                {`{"annotations":{"destructiveHint":true}}`, provenance.ToolLabels{Effects: effects("destructive")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.want.Result = provenance.ResultUntrusted
			got := draft.Of(map[string]gate.Doc{name: gate.MustDoc(tt.definition)}).Label(name)
			if diff := cmp.Diff(policy.Label{Pattern: name, ToolLabels: tt.want}, got); diff != "" {
				t.Errorf("label (-want +got):\n%s", diff)
			}
			if problems := policy.CheckLabels([]policy.Label{got}); problems != nil {
				t.Error(problems[0])
			}
		})
	}
}

// As long as no result of a server was seen, the words of its tools suggest the places of a record in
// results. A first word that most tools share says whose they are, and not what they do.
func TestDraftOfServer(t *testing.T) {
	tools := map[string]gate.Doc{
		"m__acme_search_mails": gate.MustDoc(`{"description":"Each mail has a sender and comes from somebody"}`),
		"m__acme_list_folders": gate.MustDoc(`{}`),
		"m__acme_read_file":    gate.MustDoc(`{}`),
		"m__acme_send_mail":    gate.MustDoc(`{"inputSchema":{"properties":{"recipients":{},"subject":{},"owner_note":{}}}}`),
		"m__delete_mail":       gate.MustDoc(`{"inputSchema":{"properties":{"message_id":{}}}}`),
		"m__add_event":         gate.MustDoc(`{"inputSchema":{"properties":{"attendees":{}}}}`),
		"n__get_order":         gate.MustDoc(`{"inputSchema":{"properties":{"order_number":{}}}}`),
	}
	read := []provenance.ToolEffect{provenance.EffectRead}
	want := map[string]provenance.ToolLabels{
		"m__acme_search_mails": {Private: true, Effects: read, IDs: map[provenance.Place]string{"/**/id": "message", "/**/message_id": "message"},
			Identity: []provenance.Place{"/**/sender", "/**/recipient"}, Names: []provenance.Place{"/**/subject"}},
		"m__acme_list_folders": {Effects: read},
		"m__acme_read_file":    {Private: true, Effects: read},
		"n__get_order":         {Effects: read, IDs: map[provenance.Place]string{"/**/number": "order", "/**/order_number": "order"}},
	}
	drafts := draft.Of(tools)
	for name, labels := range want {
		labels.Result = provenance.ResultUntrusted
		if diff := cmp.Diff(policy.Label{Pattern: name, ToolLabels: labels}, drafts.Label(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	bank := draft.Of(map[string]gate.Doc{
		"b__get_user_info":             gate.MustDoc(`{}`),
		"b__get_profile":               gate.MustDoc(`{"inputSchema":{"properties":{"user_id":{}}}}`),
		"b__get_users":                 gate.MustDoc(`{}`),
		"b__get_account_mails":         gate.MustDoc(`{}`),
		"b__list_transactions":         gate.MustDoc(`{}`),
		"b__list_payment_requests":     gate.MustDoc(`{}`),
		"b__search_contacts":           gate.MustDoc(`{"inputSchema":{"properties":{"query":{}}}}`),
		"b__list_files":                gate.MustDoc(`{}`),
		"b__transfer_money":            gate.MustDoc(`{"inputSchema":{"properties":{"recipient":{},"amount":{}}}}`),
		"b__update_email_address":      gate.MustDoc(`{"inputSchema":{"properties":{"email":{}}}}`),
		"b__get_channels":              gate.MustDoc(`{}`),
		"b__post_channel_message":      gate.MustDoc(`{"inputSchema":{"properties":{"channel":{},"text":{}}}}`),
		"b__list_pending_transactions": gate.MustDoc(`{}`),
	})
	own := []provenance.Place{"/**/email", "/**/address", "/**/phone", "/**/iban"}
	users := map[provenance.Place]string{"/**/id": "recipient.user", "/**/user_id": "recipient.user"}
	amounts := map[provenance.Place]string{"/**/amount": "amount"}
	for name, want := range map[string]provenance.ToolLabels{
		"b__get_user_info":             {Private: true, Effects: read, Own: own, IDs: users},
		"b__get_profile":               {Private: true, Effects: read},
		"b__get_users":                 {Private: true, Effects: read, IDs: users},
		"b__get_account_mails":         {Private: true, Effects: read, Identity: []provenance.Place{"/**/email"}},
		"b__list_transactions":         {Private: true, Effects: read, IDs: amounts},
		"b__list_pending_transactions": {Private: true, Effects: read},
		"b__list_payment_requests":     {Effects: read},
		"b__search_contacts":           {Private: true, Effects: read, Identity: []provenance.Place{"/**/email"}, Names: []provenance.Place{"/**/name"}},
		"b__list_files":                {Private: true, Effects: read, Identity: []provenance.Place{"/**/owner", "/**/shared_with"}, Names: []provenance.Place{"/**/name", "/**/filename"}},
		"b__get_channels":              {Effects: read, IDs: map[provenance.Place]string{"/**/name": "recipient.channel"}},
		"b__transfer_money":            {Effects: []provenance.ToolEffect{provenance.EffectExternal, provenance.EffectDestructive}, To: []string{"/recipient"}, Commits: []string{"/amount"}, Takes: map[string]string{"/amount": "amount"}},
	} {
		want.Result = provenance.ResultUntrusted
		if diff := cmp.Diff(policy.Label{Pattern: name, ToolLabels: want}, bank.Label(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	chat := draft.Of(map[string]gate.Doc{
		"c__list_messages":        gate.MustDoc(`{}`),
		"c__get_users_in_channel": gate.MustDoc(`{"inputSchema":{"properties":{"channel":{}}}}`),
		"c__send_direct_message":  gate.MustDoc(`{"inputSchema":{"properties":{"recipient":{},"body":{}}}}`),
	})
	for name, tt := range map[string]struct {
		result string
		want   map[provenance.Place]string
	}{
		"c__list_messages":        {`[{"sender":"Alice","body":"hello there, all of you"}]`, map[provenance.Place]string{"/*/sender": "recipient.user"}},
		"c__get_users_in_channel": {`["Alice","Bob"]`, map[provenance.Place]string{"/*": "recipient.user"}},
	} {
		if diff := cmp.Diff(tt.want, chat.Label(name, gate.MustDoc(tt.result)).IDs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	recorded := drafts.Label("n__get_order", gate.MustDoc(`{"number":"A1","contact_email":"a@b.example","title":"x"}`))
	if diff := cmp.Diff(provenance.ToolLabels{Result: provenance.ResultUntrusted, Effects: read, IDs: map[provenance.Place]string{"/number": "order"},
		Identity: []provenance.Place{"/contact_email"}, Names: []provenance.Place{"/title"}}, recorded.ToolLabels); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}
