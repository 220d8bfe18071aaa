// Shows pages of the console to a headless Chromium: node console.mjs SIGN-IN-LINK [--picture FILE] PATH...
//
// Each page is looked at in light and dark, wide and 320 pixels narrow, with and without scripts. What is wrong is written as
// lines of JSON: what axe finds, what the policy of contents refused, errors of scripts, dialogs, requests to elsewhere, and pages
// that are wider than their window. --picture writes the last page, wide and light, as a PNG instead.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const args = process.argv.slice(2);
const link = args.shift();
const picture = args[0] === '--picture' ? args.splice(0, 2)[1] : undefined;
const origin = new URL(link).origin;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE *.localhost'] });

const first = await browser.newContext();
const signin = await first.newPage();
await signin.goto(link);
await signin.waitForURL('**/ui/');
const cookies = await first.cookies();

async function look(options, paths) {
  const context = await browser.newContext(options);
  await context.addCookies(cookies);
  const page = await context.newPage();
  const wrong = [];
  page.on('console', (m) => { if (m.type() === 'error') wrong.push(m.text()); });
  page.on('pageerror', (e) => wrong.push(String(e)));
  page.on('dialog', (d) => { wrong.push('dialog'); d.dismiss(); });
  page.on('request', (r) => { if (!r.url().startsWith(origin)) wrong.push('request to ' + r.url()); });
  const devtools = await context.newCDPSession(page);
  for (const path of paths) {
    await page.goto(origin + path);
    if (options.javaScriptEnabled !== false) {
      await devtools.send('Runtime.evaluate', { expression: axe });
      const { result } = await devtools.send('Runtime.evaluate', {
        expression: 'axe.run().then((r) => JSON.stringify(r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 200)).join(" "))))',
        awaitPromise: true, returnByValue: true,
      });
      wrong.push(...JSON.parse(result.value));
      if (await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)) wrong.push('wider than its window');
    }
    if (picture && path === paths.at(-1)) await page.screenshot({ path: picture });
    for (const one of wrong.splice(0)) console.log(JSON.stringify({ path, ...options, wrong: one }));
  }
  await context.close();
}

if (picture) {
  await look({ viewport: { width: 1100, height: 700 }, colorScheme: 'light' }, args);
} else {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1280, 320]) await look({ colorScheme, viewport: { width, height: 900 } }, args);
  }
  await look({ javaScriptEnabled: false }, args);
}
await browser.close();
