// Shows the apps of real servers in a headless Chromium, by a host with the official AppBridge: directly, and through one gateway in front of
// all servers. Each row is a server, a revision, and a kind of host: one that passes on each name that a page calls, or a strict one that
// looks it up in the list of tools. An app has to come alive, and each of its calls to be answered; pages that draw the same each time are
// compared by the pixel.
//
//   node apps.mjs --packages node_modules --wasmgate PROGRAM [--out FOLDER] [--json] [SERVER...]
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { table } from '../servers/print.mjs';

// What each server has: the tool with the page, what a person clicks, which calls its page makes then, and whether it draws the same each time.
const servers = {
  'basic-vanillajs': { tool: 'get-time', click: '#get-time-btn', calls: ['get-time'] },
  'budget-allocator': { tool: 'get-budget-data', calls: [], still: true },
  'system-monitor': { tool: 'get-system-info', click: '#poll-toggle-btn', calls: ['poll-system-stats'] },
  'cohort-heatmap': { tool: 'get-cohort-data', calls: ['get-cohort-data'] },
  'customer-segmentation': { tool: 'get-customer-data', calls: ['get-customer-data'] },
  debug: { tool: 'debug-tool', calls: ['debug-log'] },
  pdf: { tool: 'display_pdf', calls: ['read_pdf_bytes'], still: true, file: true },
};
const revisions = ['2025-11-25', '2026-07-28'], hosts = ['forwards', 'strict'];
const patience = 90_000; // for whatever a browser or a server does, on a busy machine

const { values: flags, positionals } = parseArgs({ allowPositionals: true, options: {
  wasmgate: { type: 'string' }, packages: { type: 'string' }, out: { type: 'string' }, json: { type: 'boolean', default: false },
} });
const names = positionals.length ? positionals : Object.keys(servers);
const unknown = names.filter((name) => !servers[name]);
if (unknown.length || !flags.wasmgate || !flags.packages) {
  console.error(unknown.length ? `no such server: ${unknown.join(', ')}` : 'usage: node apps.mjs --packages FOLDER --wasmgate PROGRAM [SERVER...]');
  process.exit(2);
}
const packages = resolve(flags.packages), here = dirname(fileURLToPath(import.meta.url)), { resolve: find } = createRequire(join(packages, 'x'));
const load = (name) => import(pathToFileURL(find(name)));
const { build } = await load('esbuild'), { chromium } = (await load('playwright-core')).default;
const base = mkdtempSync(join(tmpdir(), 'wasmgate-apps-')), running = [];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const listen = (handler) => new Promise((done) => {
  const server = createServer(handler).listen(0, '127.0.0.1', () => { running.push(() => { server.close(); server.closeAllConnections(); }); done(server.address().port); });
});
const freePort = async () => {
  const port = await listen(() => {});
  running.pop()();
  return port;
};

// program starts one, and ends it with the run.
function program(command, args, options) {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], ...options });
  let said = '';
  child.stderr.on('data', (chunk) => { said = (said + chunk).slice(-4000); });
  const gone = new Promise((done) => child.once('exit', done));
  running.push(() => { child.kill('SIGTERM'); return gone; });
  return { said: () => said, over: () => child.exitCode !== null || child.signalCode !== null };
}

async function answers(url, { said, over }) {
  for (const end = Date.now() + patience; Date.now() < end && !over(); await pause(100)) {
    if (await fetch(url).then(() => true, () => false)) return;
  }
  throw new Error(`nothing answers at ${url}: ${said()}`);
}

// A page of PDF with a word on it, so that nothing has to be fetched.
function pdf(path) {
  const text = 'BT /F1 48 Tf 60 700 Td (wasmgate) Tj ET';
  const objects = ['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${text.length} >>\nstream\n${text}\nendstream`, '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'];
  let out = '%PDF-1.4\n';
  const at = objects.map((o, i) => { const start = out.length; out += `${i + 1} 0 obj\n${o}\nendobj\n`; return start; });
  const table = at.map((n) => `${String(n).padStart(10, '0')} 00000 n \n`).join('');
  writeFileSync(path, `${out}xref\n0 6\n0000000000 65535 f \n${table}trailer << /Size 6 /Root 1 0 R >>\nstartxref\n${out.length}\n%%EOF\n`);
}

const file = join(base, 'page.pdf');
pdf(file);
const commandOf = (name) => [join(packages, '@modelcontextprotocol', `server-${name}`, 'dist/index.js'), ...(servers[name].file ? [file] : [])];
const argumentsOf = (name) => (servers[name].file ? { url: pathToFileURL(file).href } : {});

// endpoints are where each server is reached: by itself, and behind the gateway.
async function endpoints() {
  const direct = {};
  await Promise.all(names.map(async (name) => {
    const port = await freePort();
    const p = program(process.execPath, commandOf(name), { env: { ...process.env, PORT: String(port) }, cwd: base });
    direct[name] = `http://127.0.0.1:${port}/mcp`;
    await answers(direct[name], p);
  }));
  const address = `127.0.0.1:${await freePort()}`, config = join(base, 'wasmgate.yaml');
  const behind = names.map((name) => [name, { command: process.execPath, args: [...commandOf(name), '--stdio'], apps: 'on', start: '90s', timeout: '60s' }]);
  writeFileSync(config, JSON.stringify({
    version: 1, listen: address, state: 'state/', servers: Object.fromEntries(behind), pins: { mode: 'trust-first' }, policy: { packs: ['grants'], data: { grants: 'grants.yaml' } },
  }));
  writeFileSync(join(base, 'grants.yaml'), JSON.stringify([{ to: ['*'], servers: names, resources: ['*'] }]));
  await answers(`http://${address}/healthz`, program(flags.wasmgate, ['serve', '--config', config]));
  const status = spawnSync(flags.wasmgate, ['status', '--check', '--config', config], { encoding: 'utf8' }); // waits for servers that start
  if (status.status !== 0) console.error(status.stdout + status.stderr);
  return { direct, through: Object.fromEntries(names.map((name) => [name, `http://${address}/mcp`])) };
}

// web serves the host's page, and what it reaches on its own origin; the sandbox is on another.
async function web(where) {
  const { outputFiles: [script] } = await build({ entryPoints: [join(here, 'host.mjs')], bundle: true, write: false, format: 'esm', nodePaths: [packages], logLevel: 'error' });
  const relay = (req, res, to) => {
    const headers = Object.fromEntries(Object.entries(req.headers).filter(([name]) => !/^(host|origin|referer|sec-.*)$/.test(name)));
    const there = request(to, { method: req.method, headers }, (answer) => { res.writeHead(answer.statusCode, answer.headers); answer.pipe(res); });
    there.on('error', (err) => { if (!res.headersSent) res.writeHead(502); res.end(err.message); });
    req.pipe(there);
    res.on('close', () => there.destroy());
  };
  const port = await listen((req, res) => {
    const [, way, name] = req.url.split('/');
    if (where[way]?.[name]) return relay(req, res, where[way][name]);
    res.setHeader('content-type', req.url === '/host.js' ? 'text/javascript' : 'text/html; charset=utf-8');
    res.end(req.url === '/host.js' ? script.contents : '<!doctype html><title>host</title><body style="margin:0"><iframe style="border:0;width:900px;height:700px"></iframe><script type="module" src="/host.js"></script>');
  });
  const html = readFileSync(join(here, 'sandbox.html'));
  const sandbox = await listen((req, res) => {
    const csp = JSON.parse(decodeURIComponent(req.url.split('?')[1] ?? '') || '{}');
    const from = (list, none = '') => (csp[list] ?? []).join(' ') || none;
    const [connect, resources] = [from('connectDomains'), from('resourceDomains')];
    res.setHeader('content-type', 'text/html; charset=utf-8');
    res.setHeader('content-security-policy', [
      "default-src 'none'", `script-src 'unsafe-inline' 'unsafe-eval' blob: data: ${resources}`, `style-src 'unsafe-inline' ${resources}`, `img-src data: blob: ${resources}`, `font-src data: ${resources}`,
      `media-src data: blob: ${resources}`, `connect-src blob: data: ${connect}`, 'worker-src blob: data:', `frame-src ${from('frameDomains', "'self'")}`, `base-uri ${from('baseUriDomains', "'none'")}`, "object-src 'none'",
    ].join('; '));
    res.end(html);
  });
  return { host: `http://127.0.0.1:${port}/`, sandbox: `http://localhost:${sandbox}/` };
}

// shown has a host show the app of a server, and returns what it came to, with a picture.
async function shown(browser, at, name, way, revision, kind) {
  const { tool, click, calls } = servers[name], page = await browser.newPage({ viewport: { width: 900, height: 700 } }), said = [];
  page.on('pageerror', (err) => said.push(err.message.split('\n')[0]));
  page.on('console', (m) => { if (m.type() === 'error') said.push(m.text().slice(0, 160)); });
  try {
    const todo = { name, endpoint: `/${way}/${name}`, sandbox: at.sandbox, tool: way === 'direct' ? tool : `${name}__${tool}`, args: argumentsOf(name), revision, strict: kind === 'strict' };
    await page.goto(`${at.host}#${encodeURIComponent(JSON.stringify(todo))}`);
    const is = (condition, arg) => page.waitForFunction(condition, arg, { timeout: patience }).catch(() => {});
    await is(() => window.seen && !/^(starts|shown|initialized)$/.test(window.seen.state));
    if (click) await page.frames().at(-1).locator(click).first().click({ timeout: patience }).catch((err) => said.push(err.message.split('\n')[0]));
    await is((wanted) => wanted.every((one) => window.seen.calls.some(({ name: called, answer }) => (called === one || called.endsWith(`__${one}`)) && answer !== 'none')), calls);
    let picture, last;
    for (let i = 0; i < 20 && (!picture || picture !== last); i++) { // until it draws no more
      await pause(300);
      [last, picture] = [picture, (await page.screenshot()).toString('base64')];
    }
    const seen = await page.evaluate(() => window.seen);
    const answered = (one) => seen.calls.some(({ name: called, answer }) => (called === one || called.endsWith(`__${one}`)) && answer === 'ok');
    const failed = seen.calls.filter(({ answer }) => answer !== 'ok' && answer !== 'none');
    const ok = seen.state === 'alive' && calls.every(answered) && failed.length === 0;
    return { server: name, revision, kind, way, ok, state: seen.state, answered: seen.calls.filter(({ answer }) => answer === 'ok').length, failed, said, picture };
  } finally {
    await page.close();
  }
}

// differing counts the pixels of two pictures that are not equal.
const differing = (page, a, b) => page.evaluate(async (both) => {
  const [one, other] = await Promise.all(both.map(async (data) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    return new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  }));
  return one.length === other.length ? one.reduce((n, pixel, i) => n + (pixel !== other[i]), 0) : -1;
}, [a, b]);

const results = [];
let browser;
try {
  const at = await web(await endpoints());
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
  const blank = await browser.newPage();
  for (const name of names) {
    for (const revision of revisions) {
      for (const kind of hosts) {
        const [direct, through] = [await shown(browser, at, name, 'direct', revision, kind), await shown(browser, at, name, 'through', revision, kind)];
        const pixels = await differing(blank, direct.picture, through.picture);
        const verdict = !through.ok ? 'FAILS' : !direct.ok ? 'better' : servers[name].still && pixels ? 'DIFFERS' : 'alive';
        for (const one of [direct, through]) {
          if (flags.out) {
            mkdirSync(flags.out, { recursive: true });
            writeFileSync(join(flags.out, `${name}-${revision}-${kind}-${one.way}.png`), Buffer.from(one.picture, 'base64'));
          }
          delete one.picture;
        }
        results.push({ name, revision, kind, verdict, pixels, direct, through });
        if (!flags.json) console.error(`${name}, ${revision}, ${kind}: ${verdict}`);
      }
    }
  }
} finally {
  await browser?.close();
  await Promise.all(running.map((end) => end()));
  rmSync(base, { recursive: true, force: true });
}

const bad = results.filter(({ verdict }) => verdict === 'FAILS' || verdict === 'DIFFERS');
if (flags.json) console.log(JSON.stringify(results, null, 2));
else {
  const of = ({ ok, state, answered }) => (ok ? `alive, ${answered} calls` : state);
  console.log(table([['server', 'revision', 'host', '', 'direct', 'through', 'pixels that differ'], ...results.map((r) => [r.name, r.revision, r.kind, r.verdict, of(r.direct), of(r.through), servers[r.name].still ? r.pixels : `${r.pixels} (draws anew)`])]));
  for (const r of bad) for (const one of [r.direct, r.through]) if (!one.ok) console.log(`\n${r.name}, ${r.revision}, ${r.kind}, ${one.way}: ${one.state}\n  failed  ${JSON.stringify(one.failed)}\n  browser ${one.said.slice(0, 5).join(' | ')}`);
  console.log(`\n${results.length - bad.length} of ${results.length} alive with every call answered`);
}
process.exit(bad.length ? 1 : 0);
