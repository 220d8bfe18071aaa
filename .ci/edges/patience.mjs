// What clients with little patience get through wasmgate: a call of 150 s by a client that gives up after 20 s of silence, and
// 100 calls that the official SDK cancels.
//
//   node patience.mjs --packages node_modules [--wasmgate PROGRAM] [--seconds 150] [--cancelled 100]
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const { values: flags } = parseArgs({ options: {
  wasmgate: { type: 'string', default: 'wasmgate' }, packages: { type: 'string' }, seconds: { type: 'string', default: '150' }, cancelled: { type: 'string', default: '100' },
} });
const load = async (name) => import(pathToFileURL(createRequire(join(resolve(flags.packages), 'x')).resolve(name)));
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js'), { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const place = mkdtempSync(join(tmpdir(), 'wasmgate-patience-')), config = join(place, 'wasmgate.yaml'), server = join(place, 'slow.mjs');
writeFileSync(server, `
import { createInterface } from 'node:readline';
const calls = new Map(), send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const result = { initialize: { protocolVersion: '2025-11-25', serverInfo: { name: 'slow', version: '1' }, capabilities: { tools: {} } }, ping: {}, 'tools/list': { tools: [{ name: 'wait', inputSchema: { type: 'object', properties: { seconds: { type: 'number' } } } }] } }[method];
  if (result) send({ id, result });
  if (method === 'notifications/cancelled') clearTimeout(calls.get(params.requestId));
  if (method === 'tools/call') calls.set(id, setTimeout(() => send({ id, result: { content: [{ type: 'text', text: 'done' }] } }), params.arguments.seconds * 1000));
});
`);
const listen = await new Promise((done) => { const s = createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => done(`127.0.0.1:${port}`)); }); });
writeFileSync(config, JSON.stringify({ version: 1, listen, state: 'state/', servers: { slow: { command: process.execPath, args: [server] } } }));
writeFileSync(join(place, 'grants.yaml'), JSON.stringify([{ to: ['*'], servers: ['slow'] }]));
const gateway = spawn(flags.wasmgate, ['serve', '--config', config], { stdio: 'ignore' });
await new Promise((done) => { const ask = () => fetch(`http://${listen}/readyz`).then((r) => (r.ok ? done() : setTimeout(ask, 100)), () => setTimeout(ask, 100)); ask(); });

const statuses = {}, errors = [];
// hasty is fetch, with a body that fails after 20 s without a byte, as bodies do for clients that give up.
async function hasty(url, options) {
  const response = await fetch(url, options);
  statuses[response.status] = (statuses[response.status] ?? 0) + 1;
  if (!response.body) return response;
  const reader = response.body.getReader();
  const body = new ReadableStream({
    async pull(controller) {
      let timer;
      const silence = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error('20 s of silence')), 20_000); });
      try {
        const { done, value } = await Promise.race([reader.read(), silence]);
        done ? controller.close() : controller.enqueue(value);
      } finally { clearTimeout(timer); }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}

const client = new Client({ name: 'patience', version: '1' });
client.onerror = (err) => errors.push(err.message);
const problems = [];
try {
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://${listen}/mcp`), { fetch: hasty }));
  const call = (seconds, options) => client.callTool({ name: 'slow__wait', arguments: { seconds } }, undefined, options);
  const long = call(Number(flags.seconds), { timeout: Number(flags.seconds) * 1000 + 60_000 }).catch((err) => err);
  let ended = 0;
  for (let i = 0; i < Number(flags.cancelled); i++) {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), i % 20);
    await call(60, { signal: abort.signal }).catch(() => ended++);
  }
  if (ended !== Number(flags.cancelled)) problems.push(`${ended} of ${flags.cancelled} cancelled calls ended`);
  if ((await call(0)).content?.[0]?.text !== 'done') problems.push('the session did not go on after the cancelled calls');
  const answer = await long;
  if (answer.content?.[0]?.text !== 'done') problems.push(`the long call: ${answer.message ?? JSON.stringify(answer)}`);
  if (statuses[409]) problems.push(`${statuses[409]} answers of 409`);
  for (const error of errors) if (/silence|reconnection/i.test(error)) problems.push(error);
} finally {
  await client.close().catch(() => {});
  gateway.kill('SIGTERM');
  await new Promise((done) => gateway.once('exit', done));
  rmSync(place, { recursive: true, force: true });
}
console.log(`a call of ${flags.seconds} s, ${flags.cancelled} cancelled calls, statuses ${JSON.stringify(statuses)}: ${problems.length ? problems.join('; ') : 'answered, the session went on'}`);
process.exit(problems.length ? 1 : 0);
