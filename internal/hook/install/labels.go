package install

// The labels of agents' own tools. Anyone may have written a file that is read, and the command of a
// shell does not show what it does, so the labels of both are strict; loosen them as far as your policy
// allows. A search tells its words to the service that answers it.
const (
	claudeLabels = `claude-code__Bash: {result: untrusted, private: true, effect: [local, external, destructive, egress, credential], control: [/command]}
claude-code__PowerShell: {result: untrusted, private: true, effect: [local, external, destructive, egress, credential], control: [/command]}
claude-code__WebFetch: {result: untrusted, effect: [read, egress], control: [/url], content: [/prompt]}
claude-code__WebSearch: {result: untrusted, effect: [read, egress], to: [], content: [/query, /allowed_domains, /blocked_domains]}
claude-code__Read: {result: untrusted, private: true, effect: [read], control: [/file_path]}
claude-code__Grep: {result: untrusted, private: true, effect: [read], control: []}
claude-code__Glob: {result: untrusted, private: true, effect: [read], control: []}
claude-code__Edit: {result: echo, effect: [local], control: [/file_path], content: [/old_string, /new_string]}
claude-code__Write: {result: echo, effect: [local], control: [/file_path], content: [/content]}
claude-code__NotebookEdit: {result: echo, effect: [local], control: [/notebook_path], content: [/new_source]}
claude-code__TodoWrite: {result: echo, effect: [read], control: [], content: [/todos]}
claude-code__Agent: {result: untrusted, effect: [local], control: [], content: [/prompt, /description]}
claude-code__Task: {result: untrusted, effect: [local], control: [], content: [/prompt, /description]}
claude-code__CronCreate: {result: echo, effect: [local], control: [/prompt]}
"claude-code__*": {result: untrusted, private: true, effect: [external, destructive]}
`
	codexLabels = `codex__Bash: {result: untrusted, private: true, effect: [local, external, destructive, egress, credential], control: [/command]}
codex__apply_patch: {result: echo, effect: [local], control: [], content: [/command, /input]}
codex__spawn_agent: {result: untrusted, effect: [local], control: [], content: [/message]}
codex__web_search: {result: untrusted, effect: [read, egress], to: [], content: [/query]}
"codex__*": {result: untrusted, private: true, effect: [external, destructive]}
`
	geminiLabels = `gemini-cli__run_shell_command: {result: untrusted, private: true, effect: [local, external, destructive, egress, credential], control: [/command]}
gemini-cli__read_file: {result: untrusted, private: true, effect: [read], control: [/file_path]}
gemini-cli__grep_search: {result: untrusted, private: true, effect: [read], control: []}
gemini-cli__glob: {result: untrusted, private: true, effect: [read], control: []}
gemini-cli__replace: {result: echo, effect: [local], control: [/file_path], content: [/old_string, /new_string]}
gemini-cli__write_file: {result: echo, effect: [local], control: [/file_path], content: [/content]}
gemini-cli__web_fetch: {result: untrusted, effect: [read, egress], control: [/prompt]}
gemini-cli__google_web_search: {result: untrusted, effect: [read, egress], to: [], content: [/query]}
"gemini-cli__*": {result: untrusted, private: true, effect: [external, destructive]}
`
	opencodeLabels = `opencode__bash: {result: untrusted, private: true, effect: [local, external, destructive, egress, credential], control: [/command]}
opencode__read: {result: untrusted, private: true, effect: [read], control: [/filePath]}
opencode__grep: {result: untrusted, private: true, effect: [read], control: []}
opencode__glob: {result: untrusted, private: true, effect: [read], control: []}
opencode__edit: {result: echo, effect: [local], control: [/filePath], content: [/oldString, /newString]}
opencode__write: {result: echo, effect: [local], control: [/filePath], content: [/content]}
opencode__webfetch: {result: untrusted, effect: [read, egress], control: [/url]}
opencode__task: {result: untrusted, effect: [local], control: [], content: [/prompt, /description]}
"opencode__*": {result: untrusted, private: true, effect: [external, destructive]}
`
)
