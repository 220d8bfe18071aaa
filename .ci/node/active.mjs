// Reads a JSON list of texts from stdin and writes what is active in each, as a JSON list of strings: "" for nothing.
// A text is read as HTML by parse5, as a document and as a part of one, and as Markdown by marked, markdown-it, commonmark.js,
// micromark, remarkable, snarkdown and cmark-gfm, whose output parse5 reads again. None of them shares code with the sanitizer.
//
// What counts: what runs, loads, goes elsewhere by itself, sends, or carries more than a path when it is clicked. A comment
// counts if it hides the words of `hidden`.
import { spawnSync } from 'node:child_process';
import { HtmlRenderer, Parser } from 'commonmark';
import MarkdownIt from 'markdown-it';
import { marked } from 'marked';
import { micromark } from 'micromark';
import { gfm, gfmHtml } from 'micromark-extension-gfm';
import { parse, parseFragment } from 'parse5';
import { Remarkable } from 'remarkable';
import snarkdown from 'snarkdown';

export const hidden = 'secret orders for the model';

const always = new Set(['script', 'style', 'iframe', 'frameset']);
const loaders = { object: ['data', 'classid', 'codebase'], embed: ['src'], applet: ['code', 'archive', 'codebase', 'object'], frame: ['src'], portal: ['src'] };
const fetching = new Set(['src', 'srcset', 'imagesrcset', 'background', 'poster', 'lowsrc', 'dynsrc', 'ping', 'attributionsrc']);
const styles = new Set(['style', 'fill', 'stroke', 'filter', 'mask', 'clip-path', 'cursor', 'marker', 'marker-start', 'marker-mid', 'marker-end']);
const fetchingElements = new Set([
  'image', 'use', 'feimage', 'textpath', 'mpath', 'tref', 'cursor', 'font-face-uri', 'pattern', 'lineargradient', 'radialgradient', 'filter',
]);
const followers = new Set(['a', 'area', 'form', 'button', 'input']);
const words = new Set(['alt', 'title', 'content', 'class', 'id', 'name']); // attributes that are no addresses
const following = new Set(['href', 'action', 'formaction']);
const quietRel = /^(self|alternate|canonical|author|license|help|via|edit|related|enclosure|replies|next|prev|up|first|last|noopener|noreferrer|nofollow)$/;
const quietEquiv = /^(content-type|x-ua-compatible|content-language|imagetoolbar|)$/i;
const runs = /^(javascript|vbscript|livescript):|^data:(text\/html|text\/xml|application\/|image\/svg)/;
const notHandlers = new Set(['once', 'only', 'online', 'onto', 'ones']);
const home = 'https://home.invalid/folder/page';

// resolved returns the address that a browser would go to, or null.
function resolved(value) {
  try {
    return new URL(value, home);
  } catch {
    return null;
  }
}

// fetched says whether fetching an address leaves the page; pictures within the text do not.
function fetched(value) {
  if (/^\s*data:image\/(png|jpeg|gif|webp)[;,]/i.test(value.replace(/[\t\n\r]/g, ''))) return false;
  const url = resolved(value);
  return url !== null && url.origin !== 'https://home.invalid';
}

// written says whether a link is an address that is written out, which some renderers follow wherever it stands: it shows
// where it leads.
function written(url, shown) {
  const plain = shown.trim().replaceAll('\\', '%5C');
  return [plain, `http://${plain}`].some((s) => resolved(s)?.host === url.host && resolved(s)?.username === url.username);
}

// carries says whether a click on an address runs something, or tells its host more than a path.
function carries(value, shown) {
  if (/^(?!javascript|vbscript|livescript)[a-z][a-z\d]*:(:\w*)+$/i.test(value)) return false; // a name of C++, Rust or Perl
  const url = resolved(value);
  if (url === null) return false;
  switch (url.protocol) {
    case 'mailto:': case 'tel:':
      return false;
    case 'ftp:':
      if (written(url, shown)) return false; // by marked
      break;
    case 'http:': case 'https:':
      if (url.origin === 'https://home.invalid') return false;
      return (url.search !== '' || url.username !== '') && !written(url, shown);
  }
  return !/^[\w.\/:;&-]{0,64}$/.test(url.pathname) || url.search !== '' || runs.test(url.href) || /^(data|blob|file|vscode|about):/.test(url.href);
}

// css reads a style as CSS does: comments are nothing, escapes are letters.
function css(value) {
  return value
    .replace(/\/\*[^]*?(\*\/|$)/g, '')
    .replace(/\\([0-9a-f]{1,6})[ \t\r\n\f]?|\\([^])/gi, (_, hex, char) => (hex ? String.fromCodePoint(Math.min(parseInt(hex, 16) || 0xfffd, 0x10ffff)) : char === '\n' ? '' : char))
    .toLowerCase();
}

function styleFetches(value) {
  for (const [, , inner] of css(value).matchAll(/(url|src|image|image-set)\(\s*["']?([^"')]*)/g)) {
    if (fetched(inner)) return true;
  }
  return false;
}

const text = (node) => node.value ?? (node.childNodes ?? []).map(text).join('');

function active(node) {
  const name = node.tagName;
  if (node.nodeName === '#comment' && node.data.includes(hidden)) return 'hidden words in a comment';
  if (name !== undefined) {
    const found = element(name.toLowerCase(), node);
    if (found) return found;
  }
  for (const child of [...(node.childNodes ?? []), ...(node.content ? [node.content] : [])]) {
    const found = active(child);
    if (found) return found;
  }
  return '';
}

function element(name, node) {
  if (always.has(name)) return `element ${name}`;
  const attrs = Object.fromEntries(node.attrs.map((a) => [(a.prefix ? a.prefix + ':' : '') + a.name.toLowerCase(), a.value]));
  const has = (key) => attrs[key] !== undefined;
  if (loaders[name]?.some(has)) return `element ${name}`;
  if (name === 'base' && (has('href') || has('target'))) return 'element base';
  if (name === 'link' && has('href') && (attrs.rel ?? '').toLowerCase().split(/\s+/).some((rel) => rel !== '' && !quietRel.test(rel))) return 'element link';
  if (name === 'meta' && !quietEquiv.test((attrs['http-equiv'] ?? '').trim())) return 'element meta';
  if (name === 'form' && (attrs.action ?? '').trim() !== '' && !attrs.action.trim().startsWith('#')) return 'element form';
  if (/^(set|animate|animatetransform|animatemotion)$/.test(name) && has('attributename')) return `element ${name}`;
  for (const [key, value] of Object.entries(attrs)) {
    const bare = key.replace(/^xlink:/, '');
    if (/^on[a-z]{2,}$/.test(key) && value !== '' && !notHandlers.has(key)) return `handler ${key}`;
    if (!words.has(key) && runs.test(value.replace(/[\u0000-\u0020]/g, '').toLowerCase())) return `URL in ${key}`;
    if (fetching.has(key) && (key.includes('srcset') ? value.split(',').map((one) => one.trim().split(/\s+/)[0]) : [value]).some(fetched)) return `${name} fetches ${key}`;
    if (fetchingElements.has(name) && bare === 'href' && fetched(value)) return `${name} fetches ${key}`;
    if (following.has(bare) && followers.has(name) && carries(value, text(node))) return `${name} carries ${key}`;
    if (styles.has(key) && styleFetches(value)) return `${key} fetches`;
  }
  return '';
}

const reader = new Parser();
const writer = new HtmlRenderer();
const plain = new MarkdownIt({ html: true });
const linking = new MarkdownIt({ html: true, linkify: true, breaks: true });
const remarkable = new Remarkable('full', { html: true });
const readers = {
  'as a document': (s) => [parse, s],
  'as a part': (s) => [parseFragment, s],
  'by marked': (s) => [parseFragment, marked.parse(s)],
  'by markdown-it': (s) => [parseFragment, plain.render(s)],
  'by markdown-it, linking': (s) => [parseFragment, linking.render(s)],
  'by commonmark.js': (s) => [parseFragment, writer.render(reader.parse(s))],
  'by micromark': (s) => [parseFragment, micromark(s, { allowDangerousHtml: true, allowDangerousProtocol: true, extensions: [gfm()], htmlExtensions: [gfmHtml()] })],
  'by remarkable': (s) => [parseFragment, remarkable.render(s)],
  'by snarkdown': (s) => [parseFragment, snarkdown(s)],
};

// cmark-gfm, where it is installed, is a process for each text: it reads a hundred of them.
const cmark = ['--unsafe', ...['table', 'strikethrough', 'autolink', 'tasklist'].flatMap((name) => ['-e', name])];
const hasCmark = spawnSync('cmark-gfm', ['--version']).status === 0;
const byCmark = (s) => [parseFragment, spawnSync('cmark-gfm', cmark, { input: s, encoding: 'utf8' }).stdout];

const gaveUp = [];

// judge returns what is active in a text, and for whom. What two renderers write alike is looked at once.
export function judge(s, i, all) {
  const seen = new Set();
  const some = hasCmark && i % Math.ceil(all.length / 100) === 0 ? { 'by cmark-gfm': byCmark } : {};
  for (const [by, read] of Object.entries({ ...readers, ...some })) {
    let shown;
    try {
      const [parsed, html] = read(s);
      if (parsed === parseFragment && seen.has(html)) continue;
      if (parsed === parseFragment) seen.add(html);
      shown = parsed(html);
    } catch (err) { // a renderer that gives up shows nothing; marked stumbles over some lists
      gaveUp.push(`${by}: ${err}`);
      continue;
    }
    const what = active(shown);
    if (what) return `${what}, ${by}`;
  }
  return '';
}

let input = '';
for await (const chunk of process.stdin) input += chunk;
const texts = JSON.parse(input);
const verdicts = texts.map(judge);
if (gaveUp.length > 3 + texts.length / 100) throw new Error(`judges gave up ${gaveUp.length} times on ${texts.length} texts, as in ${gaveUp[0]}`);
process.stdout.write(JSON.stringify(verdicts));
