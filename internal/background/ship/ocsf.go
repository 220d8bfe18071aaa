package ship

import (
	"encoding/json"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
)

// The numbers of the Open Cybersecurity Schema Framework that are used (schema.ocsf.io,
// version 1.6.0).
const (
	ocsfVersion = "1.6.0"

	classBase, classAPI           = 0, 6003 // Base Event, API Activity
	categoryNone, categoryApp     = 0, 6
	activityRead, activityOther   = 2, 99
	severityInfo, severityLow     = 1, 2
	statusSuccess, statusFailure  = 1, 2
	actionAllowed, actionDenied   = 1, 2
	dispositionAllowed, blockedBy = 1, 2
)

type object = map[string]any

// ocsf returns the event that a record is in OCSF: API Activity of a call's end and of a
// host call, a Base Event of anything else. The record itself is in it under unmapped.
func ocsf(e audit.Entry) object {
	if e.Event != gate.Done && e.Event != gate.HostCall {
		return base(e, classBase, categoryNone, activityOther)
	}
	activity := activityOther
	if e.Action == gate.ReadResource {
		activity = activityRead
	}
	o := base(e, classAPI, categoryApp, activity)
	o["activity_name"] = string(e.Action)
	o["actor"] = object{"user": user(e)}
	o["api"] = object{"operation": string(e.Action), "service": object{"name": e.Server}, "request": object{"uid": e.ID}}
	o["resources"] = []object{{"name": e.Tool, "uid": e.ToolDigest}}
	o["src_endpoint"] = object{"name": e.Client.Name, "uid": e.Session} // which the class requires: what is known of the client
	o["duration"] = e.TookUS / 1000
	o["action_id"], o["disposition_id"] = actionAllowed, dispositionAllowed
	if strings.HasPrefix(e.Code, "refused_") {
		o["action_id"], o["disposition_id"], o["severity_id"] = actionDenied, blockedBy, severityLow
	}
	if e.PolicyRevision != "" {
		o["policy"] = object{"uid": e.PolicyRevision}
	}
	return o
}

// base returns what each event has.
func base(e audit.Entry, class, category, activity int) object {
	profiles := []string{}
	if class == classAPI {
		profiles = []string{"security_control"}
	}
	o := object{
		"class_uid": class, "category_uid": category, "activity_id": activity, "type_uid": class*100 + activity,
		"time": e.Time.UnixMilli(), "severity_id": severityInfo, "status_id": statusSuccess,
		"metadata": object{
			"version": ocsfVersion, "uid": recordID(e), "sequence": e.Seq, "log_name": "audit", "profiles": profiles,
			"product": object{"name": "wasmgate", "vendor_name": "wasmgate"},
		},
		"unmapped": object{"wasmgate": json.RawMessage(e.Raw)},
	}
	if e.Code != "" && e.Code != codes.OK {
		o["status_id"], o["status_code"] = statusFailure, e.Code
	}
	if class == classBase {
		o["activity_name"] = string(e.Event)
	}
	if text := strings.Join(e.Reasons, "; "); text != "" {
		o["message"] = text
	}
	return o
}

func user(e audit.Entry) object {
	u := object{"uid": e.Principal, "name": e.Principal}
	if e.Tenant != "" {
		u["org"] = object{"uid": e.Tenant}
	}
	var groups []object
	for _, role := range e.Roles {
		groups = append(groups, object{"name": role})
	}
	if groups != nil {
		u["groups"] = groups
	}
	return u
}
