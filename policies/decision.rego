# The gate's own module. Packs and users' files add to the sets; what comes of
# them is decided here and nowhere else: what nothing allows is denied, of what is
# allowed ask has a person asked, and deny beats both.
package wasmgate

# Each set exists, even if no other file adds to it. The condition on the action
# lets the rule index pass these rules over.
allow contains "" if {
	input.action == ""
	false
}

ask contains "" if {
	input.action == ""
	false
}

deny contains "" if {
	input.action == ""
	false
}

obligations contains {} if {
	input.action == ""
	false
}

labels contains "" if {
	input.action == ""
	false
}

# Who may open the control socket, or has signed in to the console by it, runs the gateway.
allow contains "the operator of this machine" if {
	input.action in {"admin/read", "admin/approve", "admin/pin", "admin/grant"}
	input.admin.operator == true
}

decision := {"effect": "deny", "reasons": deny, "obligations": set(), "labels": set()} if {
	deny != set()
} else := {"effect": "ask", "reasons": ask, "obligations": obligations, "labels": labels} if {
	allow != set()
	ask != set()
} else := {"effect": "allow", "reasons": allow, "obligations": obligations, "labels": labels} if {
	allow != set()
} else := {"effect": "deny", "reasons": set(), "obligations": set(), "labels": set()}
