// Reads a JSON list of texts from stdin and writes what is active in each, as a JSON list of strings: "" for none.
// Texts are read as HTML by parse5, and as Markdown by marked first; neither shares code with the sanitizer.
import { marked } from 'marked';
import { parse, parseFragment } from 'parse5';

const running = new Set(['script', 'iframe', 'object', 'embed', 'applet', 'base', 'style', 'svg', 'math', 'frameset', 'frame']);
const bare = new Set(['script', 'style', 'svg', 'math']); // act without attributes
const fetching = new Set(['src', 'srcset', 'background', 'poster', 'lowsrc', 'dynsrc']);

function active(node) {
  const name = node.tagName;
  if (running.has(name) && (bare.has(name) || node.attrs.length > 0)) return `element ${name}`;
  if ((name === 'link' || name === 'meta') && node.attrs.length > 0) return `element ${name}`;
  for (const { name: key, value } of node.attrs ?? []) {
    const url = value.replace(/[\u0000-\u0020]/g, '').toLowerCase();
    if (/^on[a-z]/i.test(key) && value !== '') return `handler ${key}`;
    if (/^(javascript|vbscript|livescript):|^data:text\/html/.test(url)) return `URL in ${key}`;
    if (fetching.has(key) && /^(https?:)?\/\//.test(url)) return `${name} fetches ${key}`;
    if (key === 'style' && /url\(["']?(https?:)?\/\//.test(url)) return 'style fetches';
  }
  for (const child of [...(node.childNodes ?? []), ...(node.content ? [node.content] : [])]) {
    const found = active(child);
    if (found) return found;
  }
  return '';
}

let input = '';
for await (const chunk of process.stdin) input += chunk;
const found = JSON.parse(input).map((text) => {
  const readings = [parse(text), parseFragment(text), parseFragment(marked.parse(text))];
  return readings.map(active).find((what) => what !== '') ?? '';
});
process.stdout.write(JSON.stringify(found));
