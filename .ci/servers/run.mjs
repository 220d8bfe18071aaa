// Calls ten real servers directly and through wasmgate, and compares what comes back, byte for byte.
//
//   node run.mjs WASMGATE [CALLS]     CALLS of each server, 20 unless it is said
//
// What differs by itself from one run to the next (times, process ids, random names) is taken out of both; what wasmgate changes on
// purpose is listed with its reason. Anything else fails. Then two clients work at one browser and one git server, and neither may see the other's page or folder.
import { execFileSync, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [wasmgate, calls = '20'] = process.argv.slice(2);
const bin = join(dirname(fileURLToPath(import.meta.url)), 'node_modules', '.bin');
const base = mkdtempSync(join(tmpdir(), 'wasmgate-servers-'));
const work = join(base, 'work');
const chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';

const page = createServer((req, res) => {
  res.setHeader('Content-Type', 'text/html');
  res.end(`<!DOCTYPE html><title>Page ${req.url}</title><h1>Heading ${req.url}</h1><p>Text with &lt;b&gt; and <a href="/other">a link</a>.</p><button>Press</button>`);
});
await new Promise((resolve) => page.listen(0, '127.0.0.1', resolve));
const site = `http://127.0.0.1:${page.address().port}`;

// fresh puts the folder back in which servers work, so that both runs begin alike.
function fresh() {
  rmSync(work, { recursive: true, force: true });
  mkdirSync(join(work, 'docs'), { recursive: true });
  writeFileSync(join(work, 'docs', 'a.md'), '# Title\n\nSome *text*, a [link](https://example.com/a) and `code`.\n\n- one\n- two\n');
  writeFileSync(join(work, 'docs', 'b.jsx'), 'export const B = () => <div onClick={() => go("<b>")}>{items.map((i) => <Item key={i} {...i} />)}</div>;\n');
  writeFileSync(join(work, 'docs', 'c.json'), '{"name": "c", "n": 12345678901234567890, "nested": {"x": [1, 2.50, null]}}\n');
  writeFileSync(join(work, 'docs', 'd.txt'), 'äöü — ✓ 漢字 🙂\ttab\r\nsecond line\n');
  const git = (...args) => execFileSync('git', ['-C', work, ...args], { env: { ...process.env, GIT_AUTHOR_DATE: '2026-01-01T00:00:00Z', GIT_COMMITTER_DATE: '2026-01-01T00:00:00Z', GIT_CONFIG_GLOBAL: '/dev/null' } });
  git('init', '-q', '-b', 'main');
  git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'add', '.');
  git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', 'first');
  writeFileSync(join(work, 'docs', 'a.md'), '# Title\n\nOther *text*.\n');
}

const memory = join(base, 'memory.jsonl');
const servers = {
  everything: { command: 'mcp-server-everything', args: [], calls: (i) => [
    ['echo', { message: `hello ${i} <b> & "quotes"` }], ['get-sum', { a: i, b: 0.5 }], ['get-tiny-image', {}], ['get-structured-content', { location: 'Chicago' }],
    ['get-annotated-message', { messageType: 'error', includeImage: true }], ['get-resource-links', { count: 3 }], ['get-resource-reference', { resourceType: 'Text', resourceId: 1 + (i % 5) }],
  ] },
  files: { command: 'mcp-server-filesystem', args: [work], calls: (i) => [
    ['read_text_file', { path: join(work, 'docs/a.md') }], ['read_text_file', { path: join(work, 'docs/b.jsx') }], ['read_text_file', { path: join(work, 'docs/c.json') }], ['read_text_file', { path: join(work, 'docs/d.txt') }],
    ['list_directory', { path: join(work, 'docs') }], ['search_files', { path: work, pattern: '**/*.md' }], ['write_file', { path: join(work, `w${i}.txt`), content: `line ${i}\n<x>\n` }],
    ['edit_file', { path: join(work, `w${i}.txt`), edits: [{ oldText: '<x>', newText: '<y attr="1">' }] }], ['directory_tree', { path: join(work, 'docs') }], ['read_text_file', { path: '/etc/passwd' }],
  ] },
  memory: { command: 'mcp-server-memory', args: [], env: { MEMORY_FILE_PATH: memory }, calls: (i) => [
    ['create_entities', { entities: [{ name: `e${i}`, entityType: 'thing', observations: ['has a key: value', 'a < b && c > d'] }] }], ['read_graph', {}], ['search_nodes', { query: `e${i}` }],
    ['add_observations', { observations: [{ entityName: `e${i}`, contents: ['nextPageToken: Ci0KJ2ZpabCDEF0123'] }] }], ['open_nodes', { names: [`e${i}`] }],
  ] },
  thinking: { command: 'mcp-server-sequential-thinking', args: [], calls: (i) => [
    ['sequentialthinking', { thought: `step ${i}`, nextThoughtNeeded: true, thoughtNumber: i + 1, totalThoughts: 50 }], ['sequentialthinking', { thought: '2', nextThoughtNeeded: 'true', thoughtNumber: '2', totalThoughts: 3 }],
  ] },
  git: { command: 'git-mcp-server', args: [], env: { MCP_LOG_LEVEL: 'error', LOGS_DIR: join(base, 'git-logs') }, calls: () => [
    ['git_set_working_dir', { path: work }], ['git_status', {}], ['git_log', { maxCount: 5 }], ['git_diff', {}], ['git_branch', { mode: 'list' }], ['git_show', { object: 'HEAD' }],
  ] },
  browser: { command: 'playwright-mcp', args: ['--headless', '--no-sandbox', '--isolated', '--executable-path', chromium, '--output-dir', join(base, 'browser')], calls: (i) => [
    ['browser_navigate', { url: `${site}/p${i % 3}` }], ['browser_snapshot', {}], ['browser_evaluate', { function: '() => document.querySelector("p").textContent' }], ['browser_tabs', { action: 'list' }],
    ['browser_console_messages', {}], ['browser_network_requests', {}],
  ] },
  commander: { command: 'desktop-commander', args: ['--no-onboarding'], env: { HOME: base }, calls: (i) => [
    ['read_file', { path: join(work, 'docs/c.json') }], ['list_directory', { path: join(work, 'docs') }], ['write_file', { path: join(work, `c${i}.txt`), content: 'x\n', mode: 'rewrite' }],
    ['get_file_info', { path: join(work, 'docs/d.txt') }],
  ] },
  runner: { command: 'mcp-server-code-runner', args: [], calls: (i) => [['run-code', { code: `console.log(JSON.stringify({ i: ${i}, a: "<b>" }))`, languageId: 'javascript' }]] },
  mermaid: { command: 'mcp-mermaid', args: [], calls: (i) => [['generate_mermaid_diagram', { mermaid: `graph TD; A${i}-->B; B-->C;`, outputType: 'mermaid' }], ['generate_mermaid_diagram', { mermaid: 'no diagram', outputType: 'mermaid' }]] },
  docs: { command: 'context7-mcp', args: [], calls: (i) => [['resolve-library-id', { query: `how to route ${i}`, libraryName: 'express' }]] },
};

// What differs from run to run, in any server's words.
const volatile = [
  [/(page|console)-\d{4}-[\w-]+/g, 'NAME'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?/g, 'TIME'], [/(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT[^"\\]*/g, 'TIME'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID'], [/\d{1,2}:\d\d:\d\d( [AP]M)?/g, 'CLOCK'], [/\d+(\.\d+)? ?ms\b/g, 'DURATION'], [/\d{13}/g, 'MILLISECONDS'],
  [/page-\d+|console-[\w.-]+|\[ref=\w+\]/g, 'NAME'], [/tmpfile-?\w*|tmp\.\w+/g, 'TEMP'],
];

// What wasmgate changes on purpose, by server and tool, and why.
const purposes = [
  { server: 'git', when: (d, g) => d.includes('<div onClick') && d === g.replaceAll('< div onClick', '<div onClick').replaceAll('< b>', '<b>').replaceAll('< Item', '<Item'),
    why: 'JSX in a diff, from a server that says nothing of its texts, is prose: `servers.git.sanitize: code` keeps it' },
  { when: (d, g) => /^ERROR (MCP error -\d+: )+/.test(d) && g.includes(JSON.stringify(d.replace(/^ERROR MCP error -\d+: /, '').slice(0, 40)).slice(1, -1)),
    why: 'an error of JSON-RPC that answers a tool call becomes a result with isError, which a model reads' },
  { when: (d, g) => d.includes('"isError":true') && g.includes("refused: the arguments break the tool's input schema"), why: 'the server would refuse it as well; the gateway did so before' },
];

const plain = (result) => {
  const { _meta, ...rest } = result; // what the gateway says of the call
  let s = JSON.stringify(rest);
  for (const [what, name] of volatile) s = s.replace(what, name);
  return s;
};

const client = async (transport) => {
  const c = new Client({ name: 'compare', version: '1' });
  await c.connect(transport, { timeout: 120000 });
  return c;
};

async function direct(name) {
  const s = servers[name];
  return client(new StdioClientTransport({ command: join(bin, s.command), args: s.args, env: { PATH: process.env.PATH, HOME: process.env.HOME, ...s.env }, cwd: base, stderr: 'ignore' }));
}

async function made(name, c, prefix) {
  const answers = [];
  for (let i = 0; answers.length < Number(calls); i++) {
    for (const [tool, args] of servers[name].calls(i)) {
      if (answers.length === Number(calls)) break;
      let answer;
      try {
        answer = plain(await c.callTool({ name: prefix + tool, arguments: args }, undefined, { timeout: 120000 }));
      } catch (err) {
        answer = `ERROR ${err.message}`;
      }
      answers.push({ tool, args, answer });
    }
  }
  return answers;
}

// The gateway, with all servers.
const listen = await new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => { const { port } = probe.address(); probe.close(() => resolve(`127.0.0.1:${port}`)); });
});
const only = (process.env.SERVERS ?? Object.keys(servers).join(' ')).split(' ');
writeFileSync(join(base, 'wasmgate.yaml'), JSON.stringify({
  version: 1, listen, servers: Object.fromEntries(only.map((id) => [id, { command: join(bin, servers[id].command), args: servers[id].args, env: servers[id].env ?? {}, cwd: base, timeout: '2m', start: '3m' }])),
}));
writeFileSync(join(base, 'grants.yaml'), JSON.stringify([{ to: ['*'], servers: only }]));
fresh();
const gateway = spawn(wasmgate, ['serve', '--config', join(base, 'wasmgate.yaml')], { stdio: ['ignore', 'ignore', 'ignore'] });
const through = () => client(new StreamableHTTPClientTransport(new URL(`http://${listen}/mcp`)));
let failed = 0;
try {
  execFileSync('bash', ['-c', `for i in $(seq 100); do curl -fs http://${listen}/healthz >/dev/null && exit 0; sleep 0.2; done; exit 1`]);
  for (const name of only) {
    rmSync(memory, { force: true });
    fresh();
    let a, b;
    try {
      const c = await direct(name);
      a = await made(name, c, '');
      await c.close();
      fresh();
      rmSync(memory, { force: true });
      const g = await through();
      b = await made(name, g, `${name}__`);
      await g.close();
    } catch (err) {
      console.log(`${name}: not compared: ${err.message}`);
      failed++;
      continue;
    }
    let same = 0, listed = 0;
    a.forEach(({ tool, args, answer }, i) => {
      const got = b[i].answer;
      if (answer === got) { same++; return; }
      const purpose = purposes.find((p) => (p.server ?? name) === name && p.when(answer, got));
      if (purpose) { listed++; console.log(`${name} ${tool}: differs: ${purpose.why}`); return; }
      failed++;
      console.log(`${name} ${tool} ${JSON.stringify(args)}:\n  direct  ${answer.slice(0, 600)}\n  through ${got.slice(0, 600)}`);
    });
    const errors = a.filter(({ answer }) => answer.startsWith('ERROR') || answer.includes('"isError":true')).length;
    console.log(`${name}: ${a.length} calls, ${same} the same, ${listed} differ for a reason that is listed; ${errors} of them fail directly, too`);
  }
  // Two clients at one server each.
  const [x, y] = [await through(), await through()];
  const words = async (c, name, args) => JSON.stringify((await c.callTool({ name, arguments: args }, undefined, { timeout: 120000 })).content);
  if (only.includes('browser')) {
    await words(x, 'browser__browser_navigate', { url: `${site}/private` });
    const seen = await words(y, 'browser__browser_snapshot', {});
    const own = await words(x, 'browser__browser_snapshot', {});
    const ok = !seen.includes('/private') && own.includes('/private');
    console.log(`two clients at one browser server: ${ok ? 'neither sees the other' : `NO: ${seen}`}`);
    failed += !ok;
  }
  if (only.includes('git')) {
    await words(x, 'git__git_set_working_dir', { path: work });
    const seen = await words(y, 'git__git_status', {});
    const ok = !seen.includes('docs/a.md') && (await words(x, 'git__git_status', {})).includes('a.md');
    console.log(`two clients at one git server: ${ok ? 'neither sees the other' : `NO: ${seen}`}`);
    failed += !ok;
  }
  await x.close();
  await y.close();
} finally {
  gateway.kill('SIGTERM');
  await new Promise((resolve) => gateway.once('exit', resolve));
  page.close();
  if (failed) console.log(`${failed} differences; see ${base}`);
  else rmSync(base, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
