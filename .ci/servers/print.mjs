// What both comparisons share: an answer without what differs by itself, and a table.

// What differs from run to run, in any server's words.
const volatile = [
  [/(page|console)-\d{4}-[\w-]+/g, 'NAME'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?/g, 'TIME'], [/(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT[^"\\]*/g, 'TIME'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID'], [/\d{1,2}:\d\d:\d\d( [AP]M)?/g, 'CLOCK'], [/\d+(\.\d+)? ?ms\b/g, 'DURATION'], [/\b\d{13}\b/g, 'MILLISECONDS'], [/(?<="timestamp\\?": ?)\d{10}\b/g, 'SECONDS'],
  [/page-\d+|console-[\w.-]+/g, 'NAME'], [/\bUmVzb3VyY2Ug[\w+/=]+/g, 'BLOB WITH A TIME'], [/"durationMs":\d+/g, '"durationMs":0'], [/http:\/\/(localhost|127\.0\.0\.1):\d+\/mcp/g, 'ADDRESS'], [/tmpfile-?\w*|tmp\.\w+/g, 'TEMP'],
];

// plain is an answer as text, without what differs from run to run, and without what the gateway says of it.
export function plain(answer) {
  let s = JSON.stringify(answer ?? null, (key, value) => (key === '_meta' ? undefined : value));
  for (const [what, name] of volatile) s = s.replace(what, name);
  return s;
}

// table aligns columns, numbers to the right.
export function table(rows) {
  const width = rows[0].map((_, i) => Math.max(...rows.map((r) => String(r[i]).length)));
  return rows.map((r) => r.map((v, i) => (typeof v === 'number' ? String(v).padStart(width[i]) : String(v).padEnd(width[i]))).join('  ').trimEnd()).join('\n');
}

// around shows a text from shortly before where it differs from another.
export function around(text, other) {
  let i = 0;
  while (i < text.length && text[i] === other[i]) i++;
  return (i > 100 ? '...' : '') + text.slice(i > 100 ? i - 100 : 0, i + 300);
}
