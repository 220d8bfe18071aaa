// One row for each way in which public reports say that servers are. A new report is one row:
//
//   on       'http', or else standard input and output
//   tools, prompts, resources, resourceTemplates, result, capabilities   what it lists, answers and declares: see stub.mjs
//   first, during, encode, takes   what it prints first and during a call, how it writes messages, how long a call takes (stdio)
//   http, sessions, lost, words    answers a request itself if it returns true; how it says that a session is lost (http)
//   read     a URI to read
//   want     what a client gets through wasmgate, in parts; what is left out is { tools: 'echo', call: 'done' }
//   why      the reason why that differs from a direct connection; a row without one has to be the same
const text = (t) => ({ content: [{ type: 'text', text: t }] });
const object = (properties, more = {}) => ({ type: 'object', properties, ...more });
const tool = (name, inputSchema, more = {}) => ({ name, inputSchema, ...more });
const events = (...all) => ({ res }) => { res.writeHead(200, { 'Content-Type': 'text/event-stream' }); res.end(all.join('')); return true; };
const called = ({ message }) => message.method === 'tools/call';
const repairs = 'wasmgate repairs what strict clients refuse';
const lenient = 'wasmgate reads what the client does not';

// lost makes a server forget its sessions at each odd call.
const lost = (status, words) => ({
  on: 'http', sessions: true, lost: status, words, why: 'wasmgate begins another session and sends the call again',
  http: (at) => { if (called(at) && at.count === 1) { at.forget(); at.json(status, words, 'text/plain'); return true; } return false; },
});

export const rows = {
  plain: {},
  // Standard output.
  'banner': { first: 'Server running on stdio\n' },
  'json-log-first': { first: '{"level":30,"msg":"listening"}\n' },
  'json-log-in-call': { during: '{"level":"info","message":"called"}\n' },
  'console-log-object': { first: '{ level: 3,\n  nested: { a: [Array] }\n}\n' },
  'python-dict': { first: "{'status': 'ok', 'tools': 4}\n" },
  'many-lines': { first: 'starting\n'.repeat(200) },
  'coloured-lines': { first: '\u001b[32m[INFO]\u001b[0m ready\n["a"]\n' },
  'byte-order-mark': { first: '\ufeff', why: lenient },
  'carriage-returns': { encode: (m) => `${JSON.stringify(m)}\r\n\r\n` },
  'id-as-text': { encode: (m) => `${JSON.stringify({ ...m, id: String(m.id) })}\n` },
  'id-with-fraction': { encode: (m) => `${JSON.stringify(m).replace(/"id":(\d+)/, '"id":$1.0')}\n` },
  'error-null': { encode: (m) => `${JSON.stringify({ ...m, error: null })}\n`, why: lenient },
  'answers-twice': { encode: (m) => `${JSON.stringify(m)}\n`.repeat(2) },
  'unknown-members': { encode: (m) => `${JSON.stringify({ ...m, elapsed: 3 })}\n`, why: lenient },
  // Listings.
  'cursor-null': { tools: () => ({ tools: [tool('echo', object({}))], nextCursor: null }), why: lenient },
  'cursor-empty': { tools: () => ({ tools: [tool('echo', object({}))], nextCursor: '' }) },
  'cursor-ignored': { tools: () => ({ tools: [tool('echo', object({}))], nextCursor: 'again' }) },
  'second-page-fails': { tools: (cursor) => (cursor ? { error: { code: -32602, message: 'bad cursor' } } : { tools: [tool('echo', object({}))], nextCursor: 'x' }) },
  'first-page-twice': { tools: (cursor) => ({ tools: [tool('echo', object({}))], ...(cursor ? {} : { nextCursor: 'x' }) }) },
  'prompts-without-list': { capabilities: { tools: {}, prompts: {} }, prompts: {}, want: { prompts: '' }, why: repairs },
  'prompts-fail': { capabilities: { tools: {}, prompts: {} }, prompts: { error: { code: -32603, message: 'broken' } }, want: { prompts: '' }, why: 'the list of one server is not that of all' },
  'no-capabilities': { capabilities: null, why: lenient },
  // Definitions.
  'pattern-looks-around': { tools: [tool('echo', object({ text: { type: 'string', pattern: '^(?!\\.)(?!.*\\.\\.)([a-z.]+)$' } }))] },
  'pattern-looks-back': { tools: [tool('echo', object({ text: { type: 'string', pattern: '(?<=a)(b)\\1' } }))] },
  'properties-list': { tools: [tool('echo', { type: 'object', properties: [] })], why: repairs },
  'required-null': { tools: [tool('echo', { type: 'object', required: null })], why: repairs },
  'keywords-null': { tools: [tool('echo', object({ text: { type: 'string', description: null, enum: null } }, { additionalProperties: null, $defs: [] }))] },
  'output-schema-null': { tools: [tool('echo', object({}), { outputSchema: null })], why: repairs },
  'output-reference-leads-nowhere': { tools: [tool('echo', object({}), { outputSchema: object({ a: { $ref: '#/$defs/none' } }) })], result: { ...text('done'), structuredContent: {} }, want: {}, why: 'a keyword that cannot be judged is left out' },
  'required-in-property': { tools: [tool('echo', object({ text: { type: 'string', required: true } }))] },
  'type-any': { tools: [tool('echo', object({ text: { type: 'any' } }))] },
  'tuple-without-draft': { tools: [tool('echo', object({ text: { type: 'string' }, tags: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] } }))] },
  'recursive-schema': { tools: [tool('echo', object({ text: { type: 'string' }, child: { $ref: '#' } }))] },
  'prompt-nulls': { prompts: [{ name: 'p', description: null, arguments: null, _meta: [] }], want: { prompts: 'p' }, why: repairs },
  'resource-nulls': { resources: [{ uri: 'note://x', name: 'n', mimeType: null, size: null, annotations: null }], want: { resources: 'note://x' }, why: repairs },
  'resource-without-name': { resources: [{ uri: 'note://nameless' }], want: { resources: 'note://nameless' }, why: repairs },
  'tool-nulls': { tools: [tool('echo', object({}), { title: null, annotations: null, icons: [], execution: null, _meta: null })], why: repairs },
  // URIs.
  'uri-letters': { resources: [{ uri: 'note://café/x', name: 'n' }], read: 'note://café/x', want: { resources: 'note://café/x', read: 'read note://café/x' } },
  'uri-escaped': { resources: [{ uri: 'letters://café/x', name: 'n' }], read: 'letters://caf%C3%A9/x', want: { resources: 'letters://café/x', read: 'read letters://café/x' } },
  'template-letters': { resources: [], resourceTemplates: [{ uriTemplate: 'docs://café/{name}', name: 't' }], read: 'docs://caf%C3%A9/x', want: { resources: '', read: 'read docs://café/x' } },
  'template-path': { resources: [], resourceTemplates: [{ uriTemplate: 'path://f/{rest*}', name: 't' }], read: 'path://f/a/b', want: { resources: '', read: 'read path://f/a/b' } },
  // Results.
  'content-object': { result: { content: { type: 'text', text: 'done' } }, why: repairs },
  'content-text': { result: { content: 'done' }, why: repairs },
  'content-missing': { result: { structuredContent: {} }, want: { call: '' } },
  'result-nulls': { result: { ...text('done'), structuredContent: null, isError: null, _meta: null }, why: repairs },
  'text-number': { result: { content: [{ type: 'text', text: 5 }] }, want: { call: '5' }, why: repairs },
  'meta-list': { result: { ...text('done'), _meta: [] }, why: repairs },
  'text-null': { result: { content: [{ type: 'text', text: 'done', annotations: null }] }, why: repairs },
  // HTTP.
  'event-ping': { on: 'http', http: (at) => called(at) && events('event: ping\ndata: ping\n\n', `event: message\ndata: ${JSON.stringify(at.reply())}\n\n`)(at), why: lenient },
  'event-comments': { on: 'http', http: (at) => called(at) && events(': hello\n\n'.repeat(100), `data: ${JSON.stringify(at.reply())}\n\n`)(at) },
  'event-returns': { on: 'http', http: (at) => called(at) && events(`data: ${JSON.stringify(at.reply())}\r\n\r\n`)(at) },
  'mark-in-body': { on: 'http', http: (at) => called(at) && (at.json(200, `\ufeff${JSON.stringify(at.reply())}`), true) },
  'get-not-found': { on: 'http', sessions: true, http: ({ req, json }) => req.method === 'GET' && (json(404, 'Not Found', 'text/plain'), true) },
  'error-with-404': { on: 'http', http: (at) => called(at) && (at.json(404, { jsonrpc: '2.0', id: at.message.id, error: { code: -32000, message: `data missing, ${at.count}` } }), true), want: { call: 'isError data missing, 1' }, why: 'a JSON-RPC error becomes a result that models read' },
  'error-with-400': { on: 'http', http: (at) => called(at) && (at.json(400, { jsonrpc: '2.0', id: at.message.id, error: { code: -32602, message: `no city, ${at.count}` } }), true), want: { call: 'isError no city, 1' }, why: 'a JSON-RPC error becomes a result that models read' },
  'prompts-with-404': { on: 'http', capabilities: { tools: {}, prompts: {} }, http: (at) => at.message.method === 'prompts/list' && (at.json(404, { jsonrpc: '2.0', id: at.message.id, error: { code: -32601, message: 'none' } }), true), want: { prompts: '' }, why: 'the list of one server is not that of all' },
  'charset': { on: 'http', http: (at) => called(at) && (at.json(200, JSON.stringify(at.reply()), 'Application/JSON; charset=utf-8'), true) },
  ...Object.fromEntries([[400, 'Bad Request: No valid session ID provided'], [401, 'Invalid session ID'], [404, 'Session not found'], [410, 'session expired'], [500, 'unknown session'], [503, 'the session does not exist']].map(([status, words]) => [`session-lost-${status}`, lost(status, words)])),
};
