// comments.mjs: says of each text in Markdown which renderers leave a comment in the page, which no
// reader sees. Reads a JSON array of texts, and writes one of words.
import { Parser, HtmlRenderer } from 'commonmark';
import MarkdownIt from 'markdown-it';
import { marked } from 'marked';
import { parseFragment } from 'parse5';

const parser = new Parser(), renderer = new HtmlRenderer();
const it = new MarkdownIt({ html: true });
const renderers = {
  commonmark: text => renderer.render(parser.parse(text)),
  'markdown-it': text => it.render(text),
  marked: text => marked.parse(text),
};

const hides = node => node.nodeName === '#comment' || (node.childNodes ?? []).some(hides) || (node.content ? hides(node.content) : false);

let input = '';
for await (const chunk of process.stdin) input += chunk;
console.log(JSON.stringify(JSON.parse(input).map(text =>
  Object.keys(renderers).filter(name => hides(parseFragment(renderers[name](text)))).join(' '))));
