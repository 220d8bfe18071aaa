// Has clients that others wrote talk to server-everything directly and through wasmgate, and compares what each of them got, step by step.
//
//   node clients.mjs [--wasmgate PROGRAM] [--json]
//
// A difference that is not listed below fails.
import { execFile, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve as resolvePath } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import * as v1http from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as v1stdio from '@modelcontextprotocol/sdk/client/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';
import * as v2stdio from '@modelcontextprotocol/client/stdio';
import { around, plain, table } from './print.mjs';

const { values: flags } = parseArgs({ options: { wasmgate: { type: 'string', default: 'wasmgate' }, json: { type: 'boolean', default: false } } });
const bin = join(dirname(fileURLToPath(import.meta.url)), 'node_modules', '.bin');
const base = mkdtempSync(join(tmpdir(), 'wasmgate-clients-'));
const free = () => new Promise((resolve) => { const s = createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => resolve(port)); }); });
const children = [];
const run = (command, args, env) => children.push(spawn(command, args, { stdio: 'ignore', env: { ...process.env, ...env } }));

async function answers(url) {
  for (let i = 0; i < 300; i++) {
    if (await fetch(url).then(() => true, () => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`${url} does not answer`);
}

// reach is where the server is, directly and through wasmgate, where the names of tools and prompts begin with its own.
const everything = join(bin, 'mcp-server-everything'), prefix = 'everything__';
const port = await free();
run(everything, ['streamableHttp'], { PORT: String(port) });
await answers(`http://localhost:${port}/mcp`);

// gateway starts one in front of a server, and returns its address and a program that joins it on stdio.
async function gateway(name, server) {
  const config = join(base, name, 'wasmgate.yaml'), listen = `127.0.0.1:${await free()}`, joins = join(base, name, 'joins');
  mkdirSync(join(base, name));
  writeFileSync(config, JSON.stringify({ version: 1, listen, state: 'state/', servers: { everything: server } }));
  writeFileSync(join(base, name, 'grants.yaml'), JSON.stringify([{ to: ['*'], servers: ['everything'], resources: ['demo://*'], asks: ['roots', 'sampling', 'secrets'] }]));
  writeFileSync(joins, `#!/bin/sh\nexec '${resolvePath(flags.wasmgate)}' serve --stdio --config '${config}'\n`, { mode: 0o700 });
  run(flags.wasmgate, ['serve', '--config', config]);
  await answers(`http://${listen}/healthz`);
  return { url: `http://${listen}/mcp`, joins };
}

const local = await gateway('local', { command: everything }), far = await gateway('far', { url: `http://localhost:${port}/mcp` });
const itself = { url: `http://localhost:${port}/mcp`, prefix: '' };
const reach = {
  stdio: [{ command: everything, args: [], prefix: '' }, { command: local.joins, args: [], prefix }],
  http: [itself, { url: far.url, prefix }],
  'http, server on stdio': [itself, { url: local.url, prefix }],
};

const said = (err) => `ERROR ${err.code ?? ''} ${err.message}`;

// talk has a client of either SDK do what a client can do, and returns what came of each step.
async function talk(c, { prefix }) {
  const got = {}, heard = [];
  const step = async (name, f) => { got[name] = await f().then(plain, said); };
  const call = (name, args, options) => c.callTool({ name: prefix + name, arguments: args }, ...(c.v2 ? [options] : [undefined, options]));
  const mine = (list) => list.filter(({ name }) => name.startsWith(prefix)).sort((a, b) => (a.name < b.name ? -1 : 1));
  await step('tools/list', async () => mine((await c.listTools()).tools));
  await step('prompts/list', async () => mine((await c.listPrompts()).prompts));
  await step('resources/list', async () => (await c.listResources()).resources);
  await step('resources/templates/list', async () => (await c.listResourceTemplates()).resourceTemplates);
  await step('ping', () => c.ping());
  await step('logging/setLevel', () => c.setLoggingLevel('debug'));
  await step('echo', () => call('echo', { message: 'a <b> & "c" ✓' }));
  await step('structured content', () => call('get-structured-content', { location: 'Chicago' }));
  await step('image', () => call('get-tiny-image', {}));
  await step('annotations', () => call('get-annotated-message', { messageType: 'error', includeImage: true }));
  await step('links', () => call('get-resource-links', { count: 3 }));
  await step('embedded resource', () => call('get-resource-reference', { resourceType: 'Blob', resourceId: 2 }));
  await step('progress', async () => {
    const result = await call('trigger-long-running-operation', { duration: 0.4, steps: 4 }, { onprogress: (p) => heard.push(p) });
    return { result, heard: heard.filter((p) => p.progress < p.total) }; // the last one may meet the result, which the SDK takes first
  });
  await step('cancelled', async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort('enough'), 200);
    return call('trigger-long-running-operation', { duration: 20, steps: 20 }, { signal: stop.signal });
  });
  await step('after it', () => call('get-sum', { a: 1, b: 2 }));
  await step('wrong arguments', () => call('get-sum', { a: 'x', b: 2 }));
  await step('unknown tool', () => call('nothing', {}));
  await step('form', () => call('trigger-elicitation-request', {}));
  await step('text of a model', () => call('trigger-sampling-request', { prompt: 'Say hello', maxTokens: 20 }));
  await step('folders', () => call('get-roots-list', {}));
  await step('resources/read', async () => c.readResource({ uri: (await c.listResources()).resources[0].uri }));
  await step('resources/read of a template', () => c.readResource({ uri: 'demo://resource/dynamic/text/3' }));
  await step('unknown resource', () => c.readResource({ uri: 'demo://resource/nothing' }));
  await step('prompts/get', () => c.getPrompt({ name: `${prefix}simple-prompt` }));
  await step('prompts/get with arguments', () => c.getPrompt({ name: `${prefix}args-prompt`, arguments: { city: 'Paris', state: 'TX' } }));
  await step('prompts/get with a resource', () => c.getPrompt({ name: `${prefix}resource-prompt`, arguments: { resourceType: 'Text', resourceId: '2' } }));
  await step('unknown prompt', () => c.getPrompt({ name: `${prefix}nothing` }));
  await step('completion of a prompt', () => c.complete({ ref: { type: 'ref/prompt', name: `${prefix}completable-prompt` }, argument: { name: 'department', value: 'E' } }));
  await step('completion of a template', () => c.complete({ ref: { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' }, argument: { name: 'resourceId', value: '1' } }));
  await step('resources/subscribe', () => c.subscribeResource({ uri: 'demo://resource/dynamic/text/1' }));
  await step('resources/unsubscribe', () => c.unsubscribeResource({ uri: 'demo://resource/dynamic/text/1' }));
  return got;
}

const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const form = () => ({ action: 'accept', content: { name: 'tess', check: true } });
const written = () => ({ model: 'm', role: 'assistant', content: { type: 'text', text: 'written by tess' } });
const folders = () => ({ roots: [{ uri: 'file:///srv/tess', name: 'tess' }] });

function sdk1(transport) {
  return async (to) => {
    const c = new v1.Client({ name: 'sdk1', version: '1' }, { capabilities });
    c.setRequestHandler(types.ElicitRequestSchema, form);
    c.setRequestHandler(types.CreateMessageRequestSchema, written);
    c.setRequestHandler(types.ListRootsRequestSchema, folders);
    await c.connect(transport(to));
    try { return await talk(c, to); } finally { await c.close(); }
  };
}

function sdk2(mode) {
  return async (to) => {
    const c = new v2.Client({ name: 'sdk2', version: '2' }, { capabilities, versionNegotiation: { mode } });
    c.v2 = true;
    c.setRequestHandler('elicitation/create', form);
    c.setRequestHandler('sampling/createMessage', written);
    c.setRequestHandler('roots/list', folders);
    await c.connect(to.url ? new v2.StreamableHTTPClientTransport(new URL(to.url)) : new v2stdio.StdioClientTransport({ command: to.command, args: to.args, stderr: 'ignore' }));
    try { return await talk(c, to); } finally { await c.close(); }
  };
}

const stdio = (to) => new v1stdio.StdioClientTransport({ command: to.command, args: to.args, stderr: 'ignore' });
const http = (to) => new v1http.StreamableHTTPClientTransport(new URL(to.url));
const remote = (to) => new v1stdio.StdioClientTransport({ command: join(bin, 'mcp-remote'), args: [to.url, '--allow-http', '--transport', 'http-only'], stderr: 'ignore', env: { ...process.env, HOME: base } });

// granted leaves out the tools that come with wasmgate.
const granted = (answer) => (answer.tools ? { ...answer, tools: answer.tools.filter(({ name }) => !name.startsWith('local__')) } : answer);

// command runs a program of the command line, which prints JSON.
function command(program, ...args) {
  return new Promise((resolve) => execFile(join(bin, program), args, { env: { ...process.env, HOME: base }, timeout: 60000, maxBuffer: 1 << 25 }, (err, out, told) => {
    try { resolve(plain(granted(JSON.parse(out)))); } catch { resolve(`ERROR ${out}${told || err?.message}`); }
  }));
}

const inspector = async (to) => {
  const target = to.url ? [to.url, '--transport', 'http'] : [to.command, ...to.args], got = {};
  const ask = async (name, ...args) => { got[name] = await command('mcp-inspector', '--cli', ...target, '--method', ...args); };
  await ask('tools/list', 'tools/list');
  await ask('prompts/list', 'prompts/list');
  await ask('resources/list', 'resources/list');
  await ask('resources/templates/list', 'resources/templates/list');
  await ask('tools/call', 'tools/call', '--tool-name', `${to.prefix}echo`, '--tool-arg', 'message=a <b>');
  await ask('tools/call with numbers', 'tools/call', '--tool-name', `${to.prefix}get-sum`, '--tool-arg', 'a=1', 'b=2');
  await ask('resources/read', 'resources/read', '--uri', 'demo://resource/dynamic/text/3');
  await ask('prompts/get', 'prompts/get', '--prompt-name', `${to.prefix}args-prompt`, '--prompt-args', 'city=Paris');
  return got;
};

const mcporter = async (to) => {
  const target = ['--http-url', to.url, '--allow-http', '--name', 'x'], got = {};
  got.list = await command('mcporter', 'list', ...target, '--json');
  got.call = await command('mcporter', 'call', ...target, '--tool', `${to.prefix}echo`, '--output', 'json', 'message=a <b>');
  got['call with numbers'] = await command('mcporter', 'call', ...target, '--tool', `${to.prefix}get-sum`, '--output', 'json', 'a=1', 'b=2');
  return got;
};

const clients = [
  ['TypeScript SDK 1', 'stdio', sdk1(stdio)], ['TypeScript SDK 1', 'http', sdk1(http)], ['TypeScript SDK 1', 'http, server on stdio', sdk1(http)],
  ['TypeScript SDK 2, 2025-11-25', 'stdio', sdk2('legacy')], ['TypeScript SDK 2, 2025-11-25', 'http', sdk2('legacy')],
  ['TypeScript SDK 2, newest', 'stdio', sdk2('auto')], ['TypeScript SDK 2, newest', 'http', sdk2('auto')],
  ['mcp-remote', 'http', sdk1(remote)],
  ['inspector --cli', 'stdio', inspector], ['inspector --cli', 'http', inspector], ['mcporter', 'http', mcporter],
];

// more reports whether one list of tools has all of another's, but for what a revision has or has not.
function more(want, have) {
  const [a, b] = [want, have].map((s) => { const list = JSON.parse(s); return list.tools ?? list; });
  const bare = ({ execution, ...tool }) => tool;
  return a.every((t) => isDeepStrictEqual(bare(t), bare(b.find(({ name }) => name === t.name) ?? {})));
}

// Why what a client gets may differ: in which steps, when, and the reason.
const listed = [
  [/^(tools\/)?list$/, more, 'the gateway declares to servers whatever clients may be able to do, so that they offer more tools; 2026-07-28 has no execution.taskSupport'],
  [/wrong arguments|call with numbers/, (d, g) => d.includes('Input validation error') && g.includes("refused: the arguments break the tool's input schema"), 'arguments that the server would refuse, too, are refused before it sees them'],
  [/^unknown (tool|prompt)/, (d, g) => d.includes(' not found') && /^ERROR -32602 (MCP error -32602: )?unknown /.test(g), 'who asks for what is unknown learns nothing of what there is'],
  [/^unknown resource/, (d, g) => d.includes(' not found') && /^ERROR -32(602|002) (MCP error -32002: )?unknown resource/.test(g), 'the code and the words are those of the revision, not of the server'],
  [/./, (d, g) => g.includes('is not supported by the negotiated protocol version'), 'the gateway speaks 2026-07-28 where the server does not, and that has no such method'],
  [/^resources\/read/, (d, g) => g.replace('"ttlMs":0,"cacheScope":"private",', '') === d, 'results of 2026-07-28 say how long they may be kept'],
];

const rows = [], differences = [];
try {
  for (const [client, over, talks] of clients) {
    const row = { client, over, steps: 0, same: 0, listed: 0, unlisted: 0 };
    rows.push(row);
    try {
      const [to, through] = reach[over];
      const direct = await talks(to), got = await talks(through);
      for (const [step, want] of Object.entries(direct)) {
        const have = got[step].replaceAll(through.prefix, '');
        row.steps++;
        if (have === want) { row.same++; continue; }
        const reason = listed.find(([steps, when]) => steps.test(step) && when(want, have, over))?.[2];
        row[reason ? 'listed' : 'unlisted']++;
        const known = differences.find((d) => reason && d.step === step && d.reason === reason);
        if (known) known.clients.push(`${client} over ${over}`);
        else differences.push({ step, clients: [`${client} over ${over}`], reason: reason ?? 'NOT LISTED', ...(reason ? {} : { direct: want, through: have }) });
      }
    } catch (err) {
      row.error = err.message;
    }
  }
} finally {
  for (const child of children) {
    child.kill('SIGTERM');
    if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => child.once('exit', resolve));
  }
  rmSync(base, { recursive: true, force: true });
}
const bad = rows.some((r) => r.error || r.unlisted) || rows.length < clients.length;
if (flags.json) console.log(JSON.stringify({ clients: rows, differences, holds: !bad }, null, 2));
else {
  console.log(table([['client', 'over', 'steps', 'the same', 'listed', 'not listed'], ...rows.map((r) => [r.client, r.over, r.steps, r.same, r.listed, r.error ?? r.unlisted])]));
  const known = differences.filter((d) => !d.direct);
  if (known.length) console.log(`\n${table([['step', 'clients', 'differs by'], ...known.map((d) => [d.step, d.clients.length, d.reason])])}`);
  for (const d of differences.filter((d) => d.direct)) console.log(`\n${d.step}: ${d.clients}\n  direct   ${around(d.direct, d.through)}\n  through  ${around(d.through, d.direct)}`);
}
process.exit(bad ? 1 : 0);
