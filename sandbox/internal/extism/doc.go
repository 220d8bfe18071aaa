// Package extism provides the host side of the Extism plug-in ABI, so that existing plug-ins
// (servlets of mcp.run, plug-ins of hyper-mcp) run as they are.
//
// It needs neither an Extism SDK nor Extism's kernel module: [Instantiate]
// gives a runtime the host functions, written in Go, over a heap that belongs
// to one call. That heap and all else that a plug-in can reach through this
// package is in the call's [Plugin], so that instances hold no host state.
//
// # The ABI
//
// A plug-in exports functions without parameters. It reads its input and
// writes its output through a heap of the host, at offsets of 64 bits. Offset
// 0 is no memory. The functions of the module extism:host/env are those that
// the kernel and the runtime of Extism 1 give to plug-ins (extism/extism,
// kernel/src/lib.rs and runtime/src/pdk.rs); [Imports] lists them. Left out
// are the ones that no plug-in kit imports (input_set, output_offset,
// output_length), and the names of before Extism 1 in the module env: both
// catalogues of tools are younger.
//
// Three things are stricter than in Extism, or differ:
//
//   - A load or store outside the heap ends the guest; Extism reads zero or what lies there. Freed
//     memory stays readable, as in Extism: it is the same call's. Freeing it again does nothing, as
//     in Extism, because some kits do.
//   - output_set and error_set copy at once. Extism reads at the end of the
//     call, when the guest may have freed the memory or not.
//   - Response headers of HTTP are always there for http_headers. Its format
//     has one value for a name: several are joined by ", ".
//
// The ABI has no way to tell a guest that a host call failed. As in Extism, a
// refused HTTP request or one without an answer ends the guest, with the
// reason in the [*Error].
//
// # hyper-mcp's host functions
//
// Plug-ins of hyper-mcp's version 2 may import the module extism:host/user.
// All its functions are there, so that such plug-ins link. They answer as
// hyper-mcp does when the client cannot do what is asked for:
//
//	create_elicitation               declined, with the reason
//	create_message                   an empty model's message with the reason, stopped by "error"
//	get_access_token                 an error, with the reason
//	get_keyring_secret               no secret: none is ever handed to a guest
//	list_roots                       no roots
//	notify_logging_message           goes to the log, as what log_info and the like write
//	notify_progress                  dropped, with a line in the log
//	notify_prompt_list_changed       dropped, with a line in the log
//	notify_resource_list_changed     dropped, with a line in the log
//	notify_resource_updated          dropped, with a line in the log
//	notify_tool_list_changed         dropped, with a line in the log
//	notify_url_elicitation_completed dropped, with a line in the log
//
// # Running a plug-in
//
// A module that imports from one of the two modules is a plug-in ([IsPlugin]); [Detect] says by its
// exports which convention for tools it follows. To get its list of tools its own code must run
// ([Version.List], on the input [ListRequest]): run it without any grant, with an empty
// configuration, under the limits of a call and in an instance that is thrown away, and ask an
// operator before its tools are shown to anybody, because the list is the plug-in's own claim. A
// call runs [Version.Call] on the input of [Request]. For both, in this order: `_initialize` if it
// is exported, else `__wasm_call_ctors` if that is; the function; [Plugin.Answer] on what it
// returned; [ParseTools] or [ParseResult]. If the guest trapped, [Plugin.Err] often says why, in
// the guest's own words.
package extism
