// Calls real servers directly, through wasmgate as it is without configuration, and through wasmgate with everything `off`, and compares what
// comes back, byte for byte.
//
//   node run.mjs [--wasmgate PROGRAM] [--calls N] [--json] [SERVER...]     N calls of each server, 20 unless it is said; all servers
//
// What differs by itself from one run to the next (times, process ids, random names) is taken out of all. A difference is listed
// if wasmgate makes it whatever its profile is, or if the findings of the result name it and nothing else has changed.
// Anything else fails, as does a server that does not answer. Then two clients work at one browser and one git server, and
// neither may see the other's page or folder.
import { execFileSync, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { around, plain, table } from './print.mjs';
import { makeServers } from './servers.mjs';

const { values: flags, positionals } = parseArgs({ allowPositionals: true, options: {
  wasmgate: { type: 'string', default: 'wasmgate' }, calls: { type: 'string', default: '20' }, json: { type: 'boolean', default: false },
} });
const calls = Number(flags.calls);
const modules = join(dirname(fileURLToPath(import.meta.url)), 'node_modules'), bin = join(modules, '.bin');
const base = mkdtempSync(join(tmpdir(), 'wasmgate-servers-'));
const work = join(base, 'work'), memory = join(base, 'memory.jsonl');
const { servers, site, close } = await makeServers({ base, work, memory });
const names = positionals.length ? positionals : Object.keys(servers);
const unknown = names.filter((name) => !servers[name]);
if (unknown.length || !(calls > 0)) {
  console.error(unknown.length ? `no such server: ${unknown.join(', ')}; there are ${Object.keys(servers).join(', ')}` : '--calls takes a number');
  process.exit(2);
}

// fresh puts the folder back in which servers work, so that all runs begin alike.
function fresh() {
  rmSync(memory, { force: true });
  rmSync(work, { recursive: true, force: true });
  mkdirSync(join(work, 'docs'), { recursive: true });
  const git = (...args) => execFileSync('git', ['-C', work, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { env: { ...process.env, GIT_AUTHOR_DATE: '2026-01-01T00:00:00Z', GIT_COMMITTER_DATE: '2026-01-01T00:00:00Z', GIT_CONFIG_GLOBAL: '/dev/null' } });
  const commit = (message, files) => {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(work, 'docs', name), content);
    git('add', '.');
    git('commit', '-q', '-m', message);
  };
  git('init', '-q', '-b', 'main');
  commit('first', {
    'a.md': '# Title\n\nSome *text*, a [link](https://example.com/a) and `code`.\n\n- one\n- two\n', 'c.json': '{"name": "c", "n": 12345678901234567890, "nested": {"x": [1, 2.50, null]}}\n', 'd.txt': 'äöü — ✓ 漢字 🙂\ttab\r\nsecond line\n',
    'dot.png': Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==', 'base64'),
  });
  commit('add a component <B>', { 'b.jsx': 'export const B = () => <div onClick={() => go("<b>")}>{items.map((i) => <Item key={i} {...i} />)}</div>;\n' });
  commit('fix: a < b & "c" (#12)', { 'b.jsx': 'export const B = ({ items }: Props<Item>) => <ul>{items.map((i) => <Item key={i} {...i} />)}</ul>;\n' });
  writeFileSync(join(work, 'docs', 'a.md'), '# Title\n\nOther *text*.\n');
}

// Why results differ with the profile `off`, too.
const always = [
  [(d) => d.startsWith('ERROR MCP error'), 'an error of JSON-RPC that answers a tool call becomes a result with isError, which a model reads'],
  [(d, g) => d.includes('"isError":true') && g.includes("refused: the arguments break the tool's input schema"), 'arguments that the server would refuse, too, are refused before it sees them'],
];

// Why the findings of a result say that it was changed.
const reasons = {
  'link/image': 'an image from elsewhere, in prose', 'link/target': 'a link that carries a query or starts a program, in prose', 'control/ansi': 'colours of a terminal', 'control/return': 'a carriage return in prose that is no end of a line',
  'control/c0': 'control characters', 'html/comment': 'a comment that a page would hide, in prose', 'html/element': 'an element that acts, in prose', 'html/script': 'a script, in prose', 'html/handler': 'a handler, in prose', 'html/hidden': 'a hidden element, in prose',
  'html/url': 'an address in HTML that a page would load or follow, in prose', 'text/padding': 'white space that pushes text out of view', 'content/type': 'an image of another kind than it says', 'token/chat': 'a tag that hosts of models use, such as <system>, in prose',
};

// becauseOf returns the rules that explain how an answer differs: they are named by its findings, and without the spaces and
// marks that they leave both are the same. It returns none if anything else differs.
function becauseOf(direct, { answer, findings }) {
  const rules = [...new Set(findings.filter((f) => f.action !== 'reported').map((f) => f.rule))];
  const bare = (s) => s.replace(/\\+u001b\[[\d;]*m/g, '').replace(/(<|\]|!) +(?=[\w/!?(:[])/g, '$1');
  const [first, ...rest] = bare(answer).split(/\[(?:removed|redacted): [^\]]*\]/);
  let d = bare(direct);
  if (!rules.length || !d.startsWith(first)) return [];
  d = d.slice(first.length);
  for (const [i, part] of rest.entries()) {
    const at = i === rest.length - 1 ? d.length - part.length : d.indexOf(part);
    if (at < 0 || at > 500 || !d.startsWith(part, at)) return [];
    d = d.slice(at + part.length);
  }
  return d === '' ? rules.sort() : [];
}

async function client(transport) {
  const c = new Client({ name: 'compare', version: '1' });
  await c.connect(transport, { timeout: 120000 });
  return c;
}

// all returns what a client sees of one server: its tools, and its answers to the calls.
async function all(name, transport, prefix) {
  fresh();
  const c = await client(transport), answers = [], tools = [];
  for (let cursor; ;) {
    const page = await c.listTools({ cursor });
    tools.push(...page.tools.filter((t) => t.name.startsWith(prefix)).map((t) => ({ ...t, name: t.name.slice(prefix.length) })));
    if (!(cursor = page.nextCursor)) break;
  }
  for (let i = 0; answers.length < calls; i++) {
    for (const [tool, args] of servers[name].calls(i).slice(0, calls - answers.length)) {
      let answer, findings = [];
      try {
        const result = await c.callTool({ name: prefix + tool, arguments: args }, undefined, { timeout: 120000 });
        answer = plain(result);
        findings = result._meta?.['io.github.wasmgate/findings'] ?? [];
      } catch (err) {
        answer = `ERROR ${err.message}`;
      }
      answers.push({ tool, args, answer, findings });
    }
  }
  await c.close();
  return { tools, answers };
}

function direct(name) {
  const s = servers[name];
  return new StdioClientTransport({ command: join(bin, s.command), args: s.args, env: { PATH: process.env.PATH, HOME: process.env.HOME, ...s.env }, cwd: base, stderr: 'ignore' });
}

const gateways = [];
async function gateway(profile, sanitize) {
  const listen = await new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => { const { port } = probe.address(); probe.close(() => resolve(`127.0.0.1:${port}`)); });
  });
  const folder = join(base, profile), config = join(folder, 'wasmgate.yaml');
  mkdirSync(folder);
  writeFileSync(config, JSON.stringify({
    version: 1, listen, state: 'state/', ...sanitize, servers: Object.fromEntries(names.map((id) => [id, { command: join(bin, servers[id].command), args: servers[id].args, env: servers[id].env ?? {}, cwd: base, timeout: '2m', start: '3m' }])),
  }));
  writeFileSync(join(folder, 'grants.yaml'), JSON.stringify([{ to: ['*'], servers: names }]));
  const process = spawn(flags.wasmgate, ['serve', '--config', config], { stdio: 'ignore' });
  gateways.push(process);
  process.on('error', (err) => { console.error(`${flags.wasmgate}: ${err.message}`); });
  execFileSync('bash', ['-c', `for i in $(seq 150); do curl -fs http://${listen}/healthz >/dev/null && exit 0; sleep 0.2; done; exit 1`]);
  return () => new StreamableHTTPClientTransport(new URL(`http://${listen}/mcp`));
}

// compared holds an answer against the direct one, and counts it in row.
function compared(name, row, differences, d, g, off) {
  row.calls++;
  if (d.answer.startsWith('ERROR') || d.answer.includes('"isError":true')) row.failDirectly++;
  if (d.answer === g.answer) {
    row.same++;
    return;
  }
  let rules = [], reason;
  if (g.answer === off.answer) reason = always.find(([when]) => when(d.answer, g.answer))?.[1];
  else {
    rules = becauseOf(d.answer, g);
    if (!rules.length) rules = becauseOf(off.answer, g); // an error that became a result
    reason = rules.map((rule) => reasons[rule] ?? (rule.startsWith('secret/') ? 'a secret' : rule)).join('; ');
  }
  if (!reason) row.unlisted++;
  else if (rules.length) row.listed++;
  else row.asOff++;
  const known = differences.find((x) => reason && x.server === name && x.reason === reason);
  if (known) {
    known.count++;
    if (!known.tools.includes(d.tool)) known.tools.push(d.tool);
  } else differences.push({ server: name, tools: [d.tool], count: 1, rules, reason: reason || 'NOT LISTED', ...(reason ? {} : { arguments: d.args, direct: d.answer, off: off.answer, through: g.answer }) });
}

// changedTools names the tools whose definitions are others than direct ones, but for what the gateway adds.
function changedTools(a, b) {
  const bare = ({ execution, _meta, ...rest }) => rest;
  return a.filter((t) => !isDeepStrictEqual(bare(t), bare(b.find(({ name }) => name === t.name) ?? {}))).map((t) => t.name);
}

const rows = [], differences = [], apart = [];
try {
  const [standard, off] = [await gateway('standard', {}), await gateway('off', { sanitize: { profile: 'off', secrets: { arguments: 'allow', results: 'allow' } } })];
  for (const name of names) {
    const s = servers[name], row = { server: name, package: s.package, version: JSON.parse(readFileSync(join(modules, s.package, 'package.json'))).version, tools: 0, toolsChanged: [], calls: 0, same: 0, asOff: 0, listed: 0, unlisted: 0, failDirectly: 0 };
    rows.push(row);
    try {
      const d = await all(name, direct(name), ''), g = await all(name, standard(), `${name}__`), o = await all(name, off(), `${name}__`);
      row.tools = d.tools.length;
      row.toolsChanged = changedTools(d.tools, g.tools);
      d.answers.forEach((answer, i) => compared(name, row, differences, answer, g.answers[i], o.answers[i]));
    } catch (err) {
      row.error = err.message;
    }
    if (!flags.json) console.error(`${name}: ${row.error ?? `${row.calls} calls compared`}`);
  }
  const [x, y] = [await client(standard()), await client(standard())];
  const words = async (c, name, args) => JSON.stringify((await c.callTool({ name, arguments: args }, undefined, { timeout: 120000 })).content);
  if (names.includes('browser')) {
    await words(x, 'browser__browser_navigate', { url: `${site}/private` });
    const seen = await words(y, 'browser__browser_snapshot', {}), own = await words(x, 'browser__browser_snapshot', {});
    apart.push({ server: 'browser', holds: !seen.includes('/private') && own.includes('/private') });
  }
  if (names.includes('git')) {
    fresh();
    await words(x, 'git__git_set_working_dir', { path: work });
    const seen = await words(y, 'git__git_status', {}), own = await words(x, 'git__git_status', {});
    apart.push({ server: 'git', holds: !seen.includes('a.md') && own.includes('a.md') });
  }
  await x.close();
  await y.close();
} finally {
  for (const process of gateways) {
    process.kill('SIGTERM');
    if (process.exitCode === null && process.signalCode === null) await new Promise((resolve) => process.once('exit', resolve));
  }
  await close();
}

const bad = rows.some((r) => r.error || r.unlisted || r.toolsChanged.length) || apart.some((a) => !a.holds) || rows.length < names.length;
if (flags.json) console.log(JSON.stringify({ servers: rows, differences, apart, holds: !bad }, null, 2));
else {
  const sum = (key) => rows.reduce((n, r) => n + r[key], 0);
  console.log(table([
    ['server', 'package', 'tools', 'changed', 'calls', 'the same', 'as with off', 'listed', 'not listed', 'fail directly'],
    ...rows.map((r) => [r.server, `${r.package}@${r.version}`, r.tools, r.toolsChanged.length, r.calls, r.same, r.asOff, r.listed, r.error ? r.error : r.unlisted, r.failDirectly]),
    ['all', '', sum('tools'), rows.reduce((n, r) => n + r.toolsChanged.length, 0), sum('calls'), sum('same'), sum('asOff'), sum('listed'), sum('unlisted'), sum('failDirectly')],
  ]));
  if (differences.length) console.log(`\n${table([['server', 'calls', 'differs by', 'of tools'], ...differences.map((d) => [d.server, d.count, d.reason, d.tools.join(' ')])])}`);
  for (const r of rows.filter((r) => r.toolsChanged.length)) console.log(`\n${r.server}: definitions that differ: ${r.toolsChanged.join(', ')}`);
  for (const d of differences.filter((d) => d.direct)) console.log(`\n${d.server} ${d.tools} ${JSON.stringify(d.arguments).slice(0, 300)}\n  direct   ${around(d.direct, d.through)}\n  off      ${around(d.off, d.through)}\n  through  ${around(d.through, d.direct)}`);
  for (const a of apart) console.log(`\ntwo clients at one ${a.server} server: ${a.holds ? 'neither sees the other' : 'ONE SEES THE OTHER'}`);
}
rmSync(base, { recursive: true, force: true });
process.exit(bad ? 1 : 0);
