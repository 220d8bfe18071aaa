// Calls each server of rows.mjs directly and through one gateway, and compares what the client gets.
//
//   node edges.mjs --packages node_modules [--wasmgate PROGRAM] [--newest] [--json] [ROW...]
//
// All servers stand behind one gateway, so that none may hurt another. A row fails if what comes through is not what the row wants, or
// differs from a direct connection without a reason.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { table } from '../servers/print.mjs';
import { rows } from './rows.mjs';
import { serve } from './stub.mjs';

const { values: flags, positionals } = parseArgs({ allowPositionals: true, options: {
  wasmgate: { type: 'string', default: 'wasmgate' }, packages: { type: 'string' }, newest: { type: 'boolean', default: false }, json: { type: 'boolean', default: false },
} });
const names = positionals.length ? positionals : Object.keys(rows);
const unknown = names.filter((name) => !rows[name]);
if (unknown.length) {
  console.error(`no such row: ${unknown.join(', ')}`);
  process.exit(2);
}
const load = async (name) => import(pathToFileURL(createRequire(join(resolve(flags.packages), 'x')).resolve(name)));
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js'), { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js'), { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const second = flags.newest && (await load('@modelcontextprotocol/client'));
const here = dirname(fileURLToPath(import.meta.url)), base = mkdtempSync(join(tmpdir(), 'wasmgate-edges-'));
const limit = { timeout: 5000 };

// got returns what a client gets of one server: parts that the row is about, as text.
async function got(row, client, prefix, v2) {
  const said = (f) => f().catch((err) => `ERROR ${err.message.split('\n')[0].slice(0, 80)}`);
  const mine = (list, key) => list.map((one) => one[key]).filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length)).sort().join(' ');
  const call = () => client.callTool({ name: `${prefix}echo`, arguments: { text: 'x' } }, ...(v2 ? [limit] : [undefined, limit]));
  const parts = { tools: await said(async () => mine((await client.listTools(undefined, limit)).tools, 'name')) };
  if (row.prompts || row.capabilities?.prompts) parts.prompts = await said(async () => mine((await client.listPrompts(undefined, limit)).prompts, 'name'));
  if (row.resources) parts.resources = await said(async () => (await client.listResources(undefined, limit)).resources.map(({ uri }) => uri).filter((uri) => !prefix || row.resources.some((one) => one.uri === uri)).sort().join(' '));
  if (row.read) parts.read = await said(async () => (await client.readResource({ uri: row.read }, limit)).contents[0].text);
  parts.call = await said(async () => { const { content, isError } = await call(); return (isError ? 'isError ' : '') + content.map((c) => c.text).join(' '); });
  return parts;
}

async function direct(name, web) {
  const row = rows[name], client = new Client({ name: 'edges', version: '1' });
  client.onerror = () => {};
  const transport = row.on === 'http' ? new StreamableHTTPClientTransport(new URL(web.url(name))) : new StdioClientTransport({ command: process.execPath, args: [join(here, 'stub.mjs'), name], stderr: 'ignore' });
  try {
    await client.connect(transport, limit);
    return await got(row, client, '');
  } catch (err) {
    return { connect: `ERROR ${err.message.split('\n')[0].slice(0, 80)}` };
  } finally {
    await client.close().catch(() => {});
  }
}

// gateway begins each revision anew: the addresses of the servers change, and with them what is approved.
async function gateway(web) {
  const place = mkdtempSync(join(base, 'gateway-'));
  const listen = await new Promise((done) => { const s = createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => done(`127.0.0.1:${port}`)); }); });
  const config = join(place, 'wasmgate.yaml');
  const server = (name) => (rows[name].on === 'http' ? { url: web.url(name) } : { command: process.execPath, args: [join(here, 'stub.mjs'), name] });
  writeFileSync(config, JSON.stringify({ version: 1, listen, state: 'state/', servers: Object.fromEntries(names.map((name) => [name, { ...server(name), sessions: 'shared', timeout: '20s', start: '60s' }])) }));
  writeFileSync(join(place, 'grants.yaml'), JSON.stringify([{ to: ['*'], servers: names, resources: ['*'] }]));
  const child = spawn(flags.wasmgate, ['serve', '--config', config], { stdio: 'ignore' });
  for (let i = 0; i < 300 && !(await fetch(`http://${listen}/healthz`).then(() => true, () => false)); i++) await new Promise((done) => setTimeout(done, 100));
  await new Promise((done) => spawn(flags.wasmgate, ['status', '--check', '--config', config], { stdio: 'ignore' }).once('exit', done)); // waits for servers that start, some of them in this process
  return { url: new URL(`http://${listen}/mcp`), status: () => spawnSync(flags.wasmgate, ['status', '--config', config], { encoding: 'utf8' }).stdout, end: () => new Promise((done) => { child.once('exit', done); child.kill('SIGTERM'); }) };
}

// clients are those that are led through the gateway: how each is made, and whether it is of the second SDK.
const clients = [['2025-11-25', () => new Client({ name: 'edges', version: '1' }), StreamableHTTPClientTransport, false]];
if (second) {
  for (const mode of ['legacy', 'auto']) clients.push([mode === 'auto' ? 'newest revision' : 'SDK 2, 2025-11-25', () => new second.Client({ name: 'edges', version: '1' }, { versionNegotiation: { mode } }), second.StreamableHTTPClientTransport, true]);
}

const before = await serve(), plain = {};
const running = [...names];
await Promise.all(Array.from({ length: 4 }, async () => { for (let name; (name = running.shift());) plain[name] = await direct(name, before); }));
before.close();

const results = [];
for (const [revision, make, Transport, v2] of clients) {
  const web = await serve(), g = await gateway(web), client = make();
  client.onerror = () => {};
  try {
    await client.connect(new Transport(g.url), { timeout: 60000 });
    for (const name of names) {
      const row = rows[name], through = await got(row, client, `${name}__`, v2);
      const want = { tools: 'echo', call: 'done', ...row.want }, wrong = Object.keys(through).filter((part) => part in want && through[part] !== want[part]);
      const differs = Object.keys(plain[name]).concat(Object.keys(through)).some((part) => plain[name][part] !== through[part]);
      results.push({ row: name, revision, verdict: wrong.length ? 'WRONG' : differs && !row.why ? 'DIFFERS' : differs ? 'better' : 'same', reason: differs ? row.why ?? '' : '', direct: plain[name], through, want });
    }
  } finally {
    await client.close().catch(() => {});
    if (results.some((r) => r.verdict === 'WRONG' && r.revision === revision) && !flags.json) console.error(g.status());
    await g.end();
    web.close();
  }
}
rmSync(base, { recursive: true, force: true });

const bad = results.filter(({ verdict }) => verdict === 'WRONG' || verdict === 'DIFFERS');
if (flags.json) console.log(JSON.stringify(results, null, 2));
else {
  const words = (parts) => Object.entries(parts).map(([part, value]) => `${part}: ${value}`).join(', ');
  console.log(table([['row', 'revision', '', 'reason', 'direct'], ...results.filter((r) => r.verdict !== 'same').map((r) => [r.row, r.revision, r.verdict, r.reason, words(r.direct).slice(0, 120)])]));
  for (const r of bad) console.log(`\n${r.row}, ${r.revision}: ${r.verdict}\n  direct   ${words(r.direct)}\n  through  ${words(r.through)}\n  wanted   ${words(r.want)}`);
  console.log(`\n${results.length} results: ${results.filter((r) => r.verdict === 'same').length} the same, ${results.filter((r) => r.verdict === 'better').length} better, ${bad.length} bad`);
}
process.exit(bad.length ? 1 : 0);
