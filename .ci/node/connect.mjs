// Logs in to a server on a page of the gateway, in a headless Chromium, as a person does: node connect.mjs LINK PERSON
//
// It signs in, looks at the page, presses its button, and goes where that leads. What is wrong is written as lines of JSON: what
// axe finds, what the policy of contents refused, errors and dialogs. The last line is the heading of the last page.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const [link, person] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'] });
const context = await browser.newContext({ extraHTTPHeaders: { 'X-Person': person } });
const page = await context.newPage();
const wrong = (what) => console.log(JSON.stringify({ at: page.url().split('?')[0], wrong: what }));
page.on('console', (m) => { if (m.type() === 'error' && !m.text().includes('favicon')) wrong(m.text()); });
page.on('pageerror', (e) => wrong(String(e)));
page.on('dialog', (d) => { wrong('dialog'); d.dismiss(); });
await page.goto(link);
const devtools = await context.newCDPSession(page);
await devtools.send('Runtime.evaluate', { expression: axe });
const { result } = await devtools.send('Runtime.evaluate', { expression: 'axe.run().then((r) => JSON.stringify(r.violations.map((v) => v.id)))', awaitPromise: true, returnByValue: true });
for (const one of JSON.parse(result.value)) wrong(one);
await page.getByRole('button').click();
await page.waitForURL('**/connect/callback?*');
console.log(await page.locator('h1').textContent());
await browser.close();
