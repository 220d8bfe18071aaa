// wasmgate: has the gateway decide on OpenCode's own tools. Written by `wasmgate hook install
// opencode`, which replaces it; `wasmgate hook uninstall opencode` takes it out.
import { spawnSync } from "node:child_process"

const line = []/* the hook */

function tell(event) {
  const r = spawnSync(line[0], line.slice(1), { input: JSON.stringify(event), encoding: "utf8", timeout: 10000 })
  if (r.error || r.signal) return `wasmgate: the hook did not run: ${r.error ?? r.signal}`
  if (r.status === 0) return ""
  return r.stderr.trim() || `wasmgate: the hook failed with ${r.status}`
}

const of = (i) => ({ session_id: i.sessionID, tool_use_id: i.callID, tool_name: i.tool })

export const Wasmgate = async () => ({
  "chat.message": async (i, o) => {
    const prompt = (o.parts ?? []).filter((p) => p.type === "text" && !p.synthetic).map((p) => p.text).join("\n")
    tell({ hook_event_name: "UserPromptSubmit", session_id: i.sessionID, prompt })
  },
  "tool.execute.before": async (i, o) => {
    const denied = tell({ hook_event_name: "PreToolUse", ...of(i), tool_input: o.args ?? {} })
    if (denied) throw new Error(denied)
  },
  "tool.execute.after": async (i, o) => {
    tell({ hook_event_name: "PostToolUse", ...of(i), tool_input: i.args ?? {}, tool_response: o.output ?? "" })
  },
  event: async ({ event }) => {
    const session_id = event.properties?.sessionID
    if (event.type === "session.idle") tell({ hook_event_name: "Stop", session_id })
    if (event.type === "session.deleted") tell({ hook_event_name: "SessionEnd", session_id: event.properties?.info?.id ?? session_id })
  },
})
