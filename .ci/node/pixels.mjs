// Reads a JSON list of pairs of pages from stdin, has a headless Chromium draw both of each, and writes which look alike, as a
// JSON list of strings: "" for those that differ. Two pages that differ in a word alone and look alike hide it.
import { close, on, page } from './chromium.mjs';

on(({ method, params }) => {
  if (method === 'Fetch.requestPaused') page('Fetch.failRequest', { requestId: params.requestId, errorReason: 'BlockedByClient' }).catch(() => {});
  if (method === 'Page.javascriptDialogOpening') page('Page.handleJavaScriptDialog', { accept: true }).catch(() => {});
});
await page('Page.enable');
await page('Fetch.enable', { patterns: [{ urlPattern: 'http*' }] });
await page('Emulation.setDeviceMetricsOverride', { width: 900, height: 3000, deviceScaleFactor: 1, mobile: false });
const { frameTree } = await page('Page.getFrameTree');

async function drawn(text) {
  const html = `<!DOCTYPE html><title>t</title><body><p>Before.</p><div>${text}</div></body>`;
  await page('Page.setDocumentContent', { frameId: frameTree.frame.id, html });
  const { data } = await page('Page.captureScreenshot', { format: 'png', optimizeForSpeed: true });
  return data;
}

let input = '';
for await (const chunk of process.stdin) input += chunk;
const verdicts = [];
try {
  for (const [a, b] of JSON.parse(input)) {
    try {
      verdicts.push(await drawn(a) === await drawn(b) ? 'looks alike' : '');
    } catch (err) {
      throw new Error(`while it drew ${a.slice(0, 200)}`, { cause: err });
    }
  }
} finally {
  await close();
}
process.stdout.write(JSON.stringify(verdicts));
