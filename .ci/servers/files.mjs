// Has a real file server read the real files that sanitize/testdata/honest.txt names, through wasmgate, and compares what comes with the files:
// as wasmgate is without configuration, with `sanitize: code` for the server, and as prose of which nobody says anything.
//
//   node files.mjs [--wasmgate PROGRAM] [--files N] [--json]     N files of each type, all unless it is said
//
// With `code` nothing may have changed but by hidden characters, terminal sequences and secrets. As prose, at most 2 % of
// the files that hold nothing active may have. go mod download and npm ci --prefix .ci/node fetch the files.
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { table } from './print.mjs';

const { values: flags } = parseArgs({ options: { wasmgate: { type: 'string', default: 'wasmgate' }, files: { type: 'string', default: '1500' }, json: { type: 'boolean', default: false } } });
const here = dirname(fileURLToPath(import.meta.url)), root = join(here, '..', '..');
const base = mkdtempSync(join(tmpdir(), 'wasmgate-files-'));

// The files, copied into a folder each, so that the server may read these and no others.
const roots = new Map(execFileSync('go', ['list', '-m', '-e', '-f', '{{.Path}}@{{.Version}}\t{{.Dir}}', 'all'], { cwd: root, encoding: 'utf8' }).trim().split('\n').map((line) => line.split('\t')));
for (const [path, { version }] of Object.entries(JSON.parse(readFileSync(join(root, '.ci/node/package-lock.json'))).packages)) {
  if (path) roots.set(`npm:${path.replace('node_modules/', '')}@${version}`, join(root, '.ci/node', path));
}
const byType = {};
let missing = 0;
for (const [i, line] of readFileSync(join(root, 'sanitize/testdata/honest.txt'), 'utf8').trim().split('\n').entries()) {
  const [pack, name, digest] = line.split('\t'), from = join(roots.get(pack) || '/nowhere', name);
  if (!existsSync(from) || createHash('sha256').update(readFileSync(from)).digest('hex').slice(0, 16) !== digest) {
    missing++;
    continue;
  }
  const list = (byType[extname(name)] ??= []);
  if (list.length === Number(flags.files)) continue;
  const path = join(base, String(i), basename(name));
  mkdirSync(dirname(path));
  copyFileSync(from, path);
  list.push({ name: `${pack} ${name}`, path });
}

// What makes a file hold something active, told without the sanitizer, as sanitize/honest_test.go does.
const markup = ['.html', '.jsx', '.svg'];
const acts = /!\[[^\]]*\]\(\s*<?(https?:)?\/\/|!\[[^\]]*\]\s*\[|\]\(\s*<?[a-z+.-]+:[^)\s]*\?|^\s*\[[^\]]+\]:\s*<?[a-z]+:\S*\?|<[a-z!/?]/im;
const quiet = (type, text) => !markup.includes(type) && (type !== '.md' || !acts.test(text));
const allowed = /^(control|unicode|token|secret)\//;

const server = { command: join(here, 'node_modules/.bin/mcp-server-filesystem'), args: [base], start: '3m' };
writeFileSync(join(base, 'wasmgate.yaml'), JSON.stringify({ version: 1, state: 'state/', servers: { plain: server, code: { ...server, sanitize: 'code' }, prose: { ...server, sanitize: 'text' } } }));
writeFileSync(join(base, 'grants.yaml'), JSON.stringify([{ to: ['*'], servers: ['plain', 'code', 'prose'] }]));
const client = new Client({ name: 'files', version: '1' });
await client.connect(new StdioClientTransport({ command: flags.wasmgate, args: ['serve', '--stdio', '--config', join(base, 'wasmgate.yaml')], stderr: 'ignore' }), { timeout: 200000 });

const rows = [], changes = [];
let bad = 0;
try {
  for (const type of Object.keys(byType).sort()) {
    const row = { type, files: byType[type].length, plain: 0, code: 0, prose: 0, quiet: 0, quietProse: 0 };
    rows.push(row);
    for (const { name, path } of byType[type]) {
      const text = readFileSync(path, 'utf8'), isQuiet = quiet(type, text);
      row.quiet += isQuiet;
      for (const as of ['plain', 'code', 'prose']) {
        const result = await client.callTool({ name: `${as}__read_text_file`, arguments: { path } }, undefined, { timeout: 60000 });
        if (result.content[0].text === text) continue;
        row[as]++;
        const rules = [...new Set((result._meta?.['io.github.wasmgate/findings'] ?? []).filter((f) => f.action !== 'reported').map((f) => f.rule))];
        if (as === 'prose' && isQuiet) row.quietProse++;
        const held = as === 'code' ? rules.length > 0 && rules.every((r) => allowed.test(r)) : rules.length > 0;
        if (!held) bad++;
        if (!held || as === 'code' || (as === 'prose' && isQuiet)) changes.push({ as, file: name, rules: rules.join(' ') || result.content[0].text.slice(0, 200) });
      }
    }
  }
} finally {
  await client.close();
  rmSync(base, { recursive: true, force: true });
}
const all = { type: 'all' };
for (const key of Object.keys(rows[0]).slice(1)) all[key] = rows.reduce((n, r) => n + r[key], 0);
bad += all.quietProse * 50 > all.quiet;
if (flags.json) console.log(JSON.stringify({ types: rows, changes, missing, holds: !bad }, null, 2));
else {
  console.log(table([['type', 'files', 'changed', 'with code', 'as prose', 'hold nothing active', 'of those as prose'], ...[...rows, all].map((r) => Object.values(r))]));
  console.log(`\n${missing} files of the list are not here`);
  if (changes.length) console.log(`\n${table([['as', 'file', 'by'], ...changes.map((c) => Object.values(c))])}`);
}
process.exit(bad ? 1 : 0);
