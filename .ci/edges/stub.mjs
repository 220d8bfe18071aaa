// A server with the fault of one row of rows.mjs: on standard input and output as `node stub.mjs ROW`, over HTTP by serve.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { rows } from './rows.mjs';

const echo = { name: 'echo', description: 'Echoes', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } };

// answer returns the answer to a request, as a server without faults gives it but for what the row says.
export function answer(row, { id, method, params = {} }) {
  const list = (member) => (row[member] === undefined && member === 'tools' ? { tools: [echo] } : Array.isArray(row[member]) ? { [member]: row[member] } : typeof row[member] === 'function' ? row[member](params.cursor) : row[member]);
  const results = {
    initialize: () => ({ protocolVersion: '2025-11-25', serverInfo: { name: 'stub', version: '1' }, capabilities: row.capabilities ?? { tools: {}, ...(row.prompts && { prompts: {} }), ...((row.resources || row.resourceTemplates) && { resources: {} }) } }),
    ping: () => ({}),
    'tools/list': () => list('tools'),
    'prompts/list': () => list('prompts') ?? { prompts: [] },
    'resources/list': () => list('resources') ?? { resources: [] },
    'resources/templates/list': () => list('resourceTemplates') ?? { resourceTemplates: [] },
    'resources/read': () => ({ contents: [{ uri: params.uri, text: `read ${decodeURI(params.uri)}` }] }),
    'tools/call': () => (typeof row.result === 'function' ? row.result(params) : row.result) ?? { content: [{ type: 'text', text: 'done' }] },
  };
  const result = results[method]?.();
  if (result === undefined) return { jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } };
  return result.error ? { jsonrpc: '2.0', id, error: result.error } : { jsonrpc: '2.0', id, result };
}

function stdio(row) {
  const write = (text) => process.stdout.write(text);
  const send = (message) => write(row.encode ? row.encode(message) : `${JSON.stringify(message)}\n`);
  write(row.first ?? '');
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    const message = JSON.parse(line);
    if (message.method === 'tools/call') write(row.during ?? '');
    if (message.id === undefined || message.method === undefined) return;
    setTimeout(() => send(answer(row, message)), message.method === 'tools/call' ? row.takes ?? 0 : 0);
  });
  lines.on('close', () => process.exit());
}

// serve has all rows over HTTP, each at its own path, and returns the address and what ends it.
export async function serve() {
  const sessions = {}, counts = {};
  const server = createServer(async (req, res) => {
    const id = req.url.slice(1), row = rows[id];
    let body = '';
    for await (const part of req) body += part;
    const message = body ? JSON.parse(body) : {};
    const json = (status, value, type = 'application/json') => { res.writeHead(status, { 'Content-Type': type }); res.end(typeof value === 'string' ? value : JSON.stringify(value)); };
    if (message.method === 'tools/call') counts[id] = (counts[id] ?? 0) + 1;
    const at = { req, res, message, json, reply: () => answer(row, message), count: counts[id] ?? 0, forget: () => { delete sessions[id]; } };
    if (message.method === 'server/discover') return json(400, { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no such method' } });
    if (row.sessions && message.method === 'initialize') {
      sessions[id] = `session-${id}-${Math.random()}`;
      res.setHeader('Mcp-Session-Id', sessions[id]);
    } else if (row.sessions && req.headers['mcp-session-id'] !== sessions[id]) {
      if (message.method === 'tools/call') counts[id]--; // it is not carried out
      return json(row.lost ?? 404, row.words ?? 'Session not found', 'text/plain');
    }
    if (row.http?.(at)) return undefined;
    if (req.method === 'GET') return json(405, 'Method Not Allowed', 'text/plain');
    if (message.id === undefined || message.method === undefined) { res.writeHead(202); return res.end(); }
    return json(200, at.reply());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: (id) => `http://127.0.0.1:${server.address().port}/${id}`, close: () => { server.closeAllConnections(); server.close(); } };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) stdio(rows[process.argv[2]]);
