// Reads a JSON list of drawings in SVG from stdin, shows each to a headless Chromium, as a document and as a part of a page, and
// writes what happened, as a JSON list of strings: "" for nothing.
//
// What counts: a script that ran, a request that left, a page that went elsewhere, a handler, a link that runs.
import { close, on, page } from './chromium.mjs';

const origin = 'http://drawing.invalid/';
const harmless = /^data:(image\/(png|jpe?g|gif|webp|avif|bmp|svg\+xml)|font\/|application\/)/i;

let happened = [];
let shown = { type: '', body: '' };
on(({ method, params }) => {
  switch (method) {
    case 'Fetch.requestPaused': {
      const { url } = params.request;
      if (url === origin) {
        page('Fetch.fulfillRequest', { requestId: params.requestId, responseCode: 200, responseHeaders: [{ name: 'Content-Type', value: shown.type }], body: Buffer.from(shown.body).toString('base64') }).catch(() => {});
        return;
      }
      if (!url.startsWith(origin) && !harmless.test(url)) happened.push(`asked for ${url.slice(0, 80)}`);
      page('Fetch.failRequest', { requestId: params.requestId, errorReason: 'BlockedByClient' }).catch(() => {});
      return;
    }
    case 'Page.javascriptDialogOpening':
      happened.push(`dialog ${params.message}`);
      page('Page.handleJavaScriptDialog', { accept: true }).catch(() => {});
      return;
    case 'Page.frameRequestedNavigation':
      if (params.url !== origin) happened.push(`goes to ${params.url.slice(0, 80)}`);
  }
});
for (const domain of ['Page', 'Runtime']) await page(`${domain}.enable`);
await page('Fetch.enable', { patterns: [{ urlPattern: '*' }] });

// look runs in the page and returns what would act if a person touched it.
const look = `(() => {
  const attributes = Object.getOwnPropertyDescriptor(Element.prototype, 'attributes').get;
  for (const node of document.querySelectorAll('*')) {
    for (const { name, localName, value } of attributes.call(node)) {
      if (name.startsWith('on') && value !== '' && name in node && typeof node[name] === 'function') return 'handler ' + name;
      if (localName === 'href' && /^(javascript|vbscript|data:text|data:application)/i.test(value.replace(/[\\u0000- ]/g, ''))) return 'runs ' + value.slice(0, 60);
    }
  }
  return '';
})()`;

async function show(type, body) {
  happened = [];
  shown = { type, body };
  await page('Page.navigate', { url: origin });
  const ready = 'new Promise((r) => document.readyState === "complete" ? setTimeout(r, 20) : addEventListener("load", () => setTimeout(r, 20)))';
  const late = new Promise((resolve) => { setTimeout(resolve, 5000).unref(); });
  await Promise.race([late, page('Runtime.evaluate', { expression: ready, awaitPromise: true }).catch(() => {})]);
  const { result } = await page('Runtime.evaluate', { expression: look, returnByValue: true }).catch(() => ({}));
  return [...happened, result?.value ?? ''].filter((what) => what !== '').join(', ');
}

let input = '';
for await (const chunk of process.stdin) input += chunk;
const verdicts = [];
try {
  for (const text of JSON.parse(input)) {
    const found = await show('image/svg+xml', text);
    verdicts.push(found || await show('text/html; charset=utf-8', `<!DOCTYPE html><title>t</title><body><div>${text}</div>`));
  }
} finally {
  await close();
}
process.stdout.write(JSON.stringify(verdicts));
