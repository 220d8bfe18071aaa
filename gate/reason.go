package gate

import "github.com/wasmgate/wasmgate/gate/actions"

// maxReason bounds what a reason quotes, in bytes: a pointer, for one, holds names of any length.
const maxReason = 4 << 10

// unknown is what a client reads of a tool that does not exist, and of one that
// is hidden from it.
func unknown(a Action) string {
	switch a {
	case GetPrompt:
		return "no such prompt"
	case ReadResource, Subscribe:
		return "no such resource"
	case Complete:
		return "no such prompt or template of resources"
	case GetSkill:
		return "no such skill"
	case ReadDirectory:
		return "no such directory of a skill"
	case CallTool, actions.AgentCall:
		return "no such tool"
	default:
		return "no such method"
	}
}

// undecidable is what a client reads of an error in the policy.
const undecidable = "the policy cannot be evaluated for this call; tell your user that the audit log has the reason, under error"

// unableToMeet is what a client reads of an obligation that cannot be met.
const unableToMeet = "the policy demands what this gateway cannot do"

// tooManyDecisions is what the caller reads whose call was decided on so often in vain.
const tooManyDecisions = "the session changed with every decision on the call; call again"

// noCall refuses what is done by the zero Permit, or by that of a call that has ended.
const noCall = "there is no call on whose behalf it would be done"
