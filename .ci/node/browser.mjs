// Reads a JSON list of texts from stdin, shows each to a headless Chromium, as HTML and as Markdown that markdown-it has
// rendered, and writes what happened, as a JSON list of strings: "" for nothing.
//
// What counts: a script that ran, a request that left, a page that went elsewhere, a form that was sent to another place. The
// page is of an origin of its own, all requests are caught in the browser, and none reaches a network. After each text the
// handlers that a person could set off are looked for as well.
import MarkdownIt from 'markdown-it';
import { close, on, page } from './chromium.mjs';

const origin = 'http://page.invalid/';
const batch = 50; // texts that one load of the page shows

let happened = [];
let document = '';
on(({ method, params }) => {
  switch (method) {
    case 'Fetch.requestPaused': {
      const { url } = params.request;
      if (url === origin) {
        page('Fetch.fulfillRequest', { requestId: params.requestId, responseCode: 200, responseHeaders: [{ name: 'Content-Type', value: 'text/html; charset=utf-8' }], body: Buffer.from(document).toString('base64') }).catch(() => {});
        return;
      }
      // What stands beside the page may be asked for; what it would be, nobody says.
      if (!url.startsWith(origin) && !/^data:image\/(png|jpeg|gif|webp)[;,]/i.test(url)) happened.push(`asked for ${url.slice(0, 80)}`);
      page('Fetch.failRequest', { requestId: params.requestId, errorReason: 'BlockedByClient' }).catch(() => {});
      return;
    }
    case 'Page.javascriptDialogOpening':
      happened.push(`dialog ${params.message}`);
      page('Page.handleJavaScriptDialog', { accept: true }).catch(() => {});
      return;
    case 'Page.frameRequestedNavigation':
      happened.push(`goes to ${params.url.slice(0, 80)}`);
  }
});
for (const domain of ['Page', 'Runtime']) await page(`${domain}.enable`);
await page('Fetch.enable', { patterns: [{ urlPattern: '*' }] });

// look runs in the page, in a world of its own: it puts each text into an element, and has it do what a person can.
// A field of a form stands in the place of what the form has by the field's name, so forms are asked as elements are.
const look = `(async (texts) => {
  const found = [];
  const of = (node, name, kind = Element) => Object.getOwnPropertyDescriptor(kind.prototype, name).get.call(node);
  const attribute = (node, name) => Element.prototype.getAttribute.call(node, name);
  for (const text of texts) {
    const box = document.createElement('div');
    document.body.append(box);
    box.innerHTML = text;
    let what = '';
    for (const node of box.querySelectorAll('*')) {
      for (const { name, value } of of(node, 'attributes')) {
        if (name.startsWith('on') && value !== '' && name in node && typeof node[name] === 'function') what = 'handler ' + name;
      }
      if (node instanceof HTMLElement && (attribute(node, 'style') ?? '').trim() !== '') {
        const style = getComputedStyle(node);
        if (style.display === 'none' || style.visibility !== 'visible' || parseFloat(style.opacity) < 0.05 || parseFloat(style.fontSize) < 1) what = 'hidden by its style';
      }
      if (typeof node.href === 'string' && /^(javascript|vbscript|data):/i.test(node.href)) what = 'runs ' + node.href.slice(0, 60);
      if (node instanceof HTMLFormElement && attribute(node, 'action')) {
        const to = URL.parse(of(node, 'action', HTMLFormElement));
        if (to && to.origin !== location.origin) what = 'sends to ' + to;
      }
      const tag = of(node, 'tagName');
      if (['SCRIPT', 'STYLE', 'IFRAME'].includes(tag)) what = 'element ' + tag;
    }
    found.push(what);
    await new Promise((resolve) => setTimeout(resolve, 0));
    box.remove();
  }
  return found;
})`;

// within gives up on an answer of the browser that does not come; it returns undefined then.
async function within(ms, answer) {
  let timer;
  const late = new Promise((resolve) => { timer = setTimeout(resolve, ms); });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

// shown loads a page, has it settle, and returns what happened. A page that does not get ready has had its time.
async function shown(html) {
  happened = [];
  document = html;
  await page('Page.navigate', { url: origin });
  await within(5000, page('Runtime.evaluate', { expression: 'new Promise((r) => document.readyState === "complete" ? setTimeout(r, 5) : addEventListener("load", () => setTimeout(r, 5)))', awaitPromise: true }).catch(() => {}));
  return happened.filter((what) => what !== `goes to ${origin}`).join(', ');
}

// inserted puts texts into the elements of one page.
async function inserted(texts, again = true) {
  const before = await shown('<!DOCTYPE html><title>t</title><body>');
  const answer = await within(20000, page('Runtime.evaluate', { expression: `${look}(${JSON.stringify(texts)})`, awaitPromise: true, returnByValue: true }).catch(() => {})); // a text may have the page go away
  if (answer === undefined && again) return inserted(texts, false);
  if (answer === undefined && texts.length > 1) return null;
  const result = answer?.result ?? {};
  await new Promise((resolve) => setTimeout(resolve, 20));
  const found = Array.isArray(result.value) ? result.value : texts.map(() => `the page was lost: ${answer?.exceptionDetails?.exception?.description ?? ''}`);
  const all = [before, ...happened.filter((what) => what !== `goes to ${origin}`)].filter((what) => what !== '').join(', ');
  if (all === '') return found;
  return texts.length === 1 ? [found[0] || all] : null;
}

// judged says what happens with each text; if something happened that cannot be told apart, it asks about each alone.
async function judged(texts) {
  const found = await inserted(texts);
  if (found !== null) return found;
  const alone = [];
  for (const text of texts) alone.push(...await inserted([text]));
  return alone;
}

let input = '';
for await (const chunk of process.stdin) input += chunk;
const texts = JSON.parse(input);
const md = new MarkdownIt({ html: true });
const verdicts = texts.map(() => '');
try {
  for (let at = 0; at < texts.length; at += batch) {
    const some = texts.slice(at, at + batch);
    for (const read of [(s) => s, (s) => md.render(s)]) {
      (await judged(some.map(read))).forEach((what, i) => { verdicts[at + i] ||= what; });
    }
    // One in each batch is a page of its own, as a whole.
    verdicts[at] ||= await shown(some[0]);
  }
} finally {
  await close();
}
process.stdout.write(JSON.stringify(verdicts));
