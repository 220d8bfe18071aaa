// The servers, and the calls that each gets: calls(i) are those of round i. What a server needs from elsewhere stands in for it here, on loopback.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { texts } from './texts.mjs';

const text = (i) => texts[i % texts.length];

async function listening(handle) {
  const server = createServer(handle);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

const json = (res, value, status = 200) => {
  res.writeHead(status, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify(value));
};

const escaped = (s) => s.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

// pages are those that the browser sees: text, links, a form, a table, and what a script adds.
function pages(req, res) {
  const i = Number(/\d+/.exec(req.url)?.[0] ?? 0);
  res.setHeader('Content-Type', 'text/html; charset=utf-8');
  res.end(`<!DOCTYPE html><title>Page ${req.url}</title><h1>Heading ${req.url}</h1><p id="text">${escaped(text(i))}</p><a href="/other?q=1">a link</a>
<form action="/send"><label>Name <input name="name"></label><select><option>one<option>two</select><input type="checkbox" aria-label="Agree"><button type="button" onclick="console.log('pressed')">Press</button></form>
<table><tr><th>a<td>1<tr><th>b<td>2</table><script>console.info("loaded ${i}")</script>`);
}

// tracker answers as the REST API of GitLab does, as far as its server asks.
async function tracker(req, res) {
  let body = '';
  for await (const part of req) body += part;
  const path = new URL(req.url, 'http://x').pathname, sent = body ? JSON.parse(body) : {};
  const time = '2026-01-31T12:00:00.000Z', web = 'https://git.example.com/team/app', sha = '3f786850e387550fdab836ed7e6dc881de23001b';
  const user = { id: 7, username: 'anna', name: 'Anna', state: 'active', avatar_url: `${web}/anna.png`, web_url: 'https://git.example.com/anna' };
  const project = (id, name) => ({ id, name, path_with_namespace: `team/${name}`, visibility: 'private', owner: user, web_url: web, description: text(id), ssh_url_to_repo: 'git@git.example.com:team/app.git', http_url_to_repo: `${web}.git`, created_at: time, last_activity_at: time, default_branch: 'main', forked_from_project: { name, path_with_namespace: `up/${name}`, owner: user, web_url: web } });
  if (path.includes('/missing')) return json(res, { message: '404 Not Found' }, 404);
  if (path.endsWith('/issues')) {
    return json(res, { id: 100, iid: 10, project_id: 1, title: sent.title, description: sent.description ?? '', state: 'opened', author: user, assignees: [user], labels: (sent.labels ?? '').split(',').map((name, id) => ({ id, name, color: '#fff' })), milestone: null, created_at: time, updated_at: time, closed_at: null, web_url: `${web}/-/issues/10` });
  }
  if (path.endsWith('/merge_requests')) {
    return json(res, { id: 200, iid: 20, project_id: 1, title: sent.title, description: sent.description ?? '', state: 'opened', merged: false, author: user, assignees: [], source_branch: sent.source_branch, target_branch: sent.target_branch, diff_refs: { base_sha: sha, head_sha: sha, start_sha: sha }, web_url: `${web}/-/merge_requests/20`, created_at: time, updated_at: time, merged_at: null, closed_at: null, merge_commit_sha: null });
  }
  if (path.includes('/repository/files/')) {
    if (req.method !== 'GET') return json(res, { file_path: 'docs/a.md', branch: sent.branch, commit_id: sha });
    const i = Number(/\d+(?=\.)/.exec(path)?.[0] ?? 0);
    return json(res, { file_name: `f${i}.md`, file_path: `docs/f${i}.md`, size: text(i).length, encoding: 'base64', content: Buffer.from(text(i)).toString('base64'), content_sha256: sha, ref: 'main', blob_id: sha, last_commit_id: sha });
  }
  if (path.endsWith('/branches')) return json(res, { name: sent.branch ?? 'new', commit: { id: sha, web_url: `${web}/-/commit/${sha}` } });
  if (path.endsWith('/fork') || req.method === 'POST') return json(res, project(2, sent.name ?? 'fork'));
  res.setHeader('X-Total', '3');
  return json(res, [1, 5, 9].map((id) => project(id, `app${id}`)));
}

// library answers as the API of Context7 does.
function library(req, res) {
  const url = new URL(req.url, 'http://x'), i = Number(/\d+/.exec(url.searchParams.get('query') ?? '')?.[0] ?? 0);
  if (url.pathname.endsWith('/search')) {
    return json(res, { results: [1, 2, 3].map((n) => ({ id: `/org/lib${n}`, title: `Library ${n}`, description: text(i + n), branch: 'main', lastUpdateDate: '2026-01-31', state: 'finalized', totalTokens: 1000 * n, totalSnippets: 10 * n, stars: n, trustScore: 9, benchmarkScore: 80, versions: ['v1.0.0'] })) });
  }
  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  res.end(`### How to ${i}\n\nSource: https://github.com/org/lib/blob/main/README.md#L${i}\n\n${text(i)}\n\n--------------------------------\n`);
}

// makeServers starts what stands in for the world, and returns the servers by name, with what ends it.
export async function makeServers({ base, work, memory }) {
  const db = await PGlite.create();
  await db.exec('CREATE TABLE notes (id int PRIMARY KEY, body text, n numeric, f float8, at timestamptz, tags text[], doc jsonb, raw bytea, yes boolean)');
  for (const [i, body] of texts.entries()) {
    await db.query('INSERT INTO notes VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)', [i, body, '12345678901234567890.' + i, i / 7, '2026-01-31T12:00:00Z', ['a', '<b>', `t${i}`], { body, i }, new Uint8Array([i, 255]), i % 2 === 0]);
  }
  const sql = new PGLiteSocketServer({ db, port: 0, host: '127.0.0.1', maxConnections: 20 });
  const port = new Promise((resolve) => sql.addEventListener('listening', ({ detail }) => resolve(detail.port)));
  await sql.start();
  const site = await listening(pages), api = await listening(tracker), docs = await listening(library);

  const at = (name) => join(work, name);
  const kinds = ['md', 'txt', 'jsx', 'html', 'json', 'go', 'yaml', 'csv'];
  const servers = {
    everything: { package: '@modelcontextprotocol/server-everything', command: 'mcp-server-everything', calls: (i) => [
      ['echo', { message: text(i) }], ['get-sum', { a: i, b: 0.5 }], ['get-tiny-image', {}], ['get-structured-content', { location: ['Chicago', 'New York', 'Los Angeles'][i % 3] }],
      ['get-annotated-message', { messageType: ['error', 'success', 'debug'][i % 3], includeImage: i % 2 === 0 }], ['get-resource-links', { count: 1 + (i % 10) }],
      ['get-resource-reference', { resourceType: ['Text', 'Blob'][i % 2], resourceId: 1 + (i % 5) }], ['trigger-long-running-operation', { duration: 0.01, steps: 2 }], ['echo', { message: `${i}: ${text(i + 17)}` }], ['get-sum', { a: 'x', b: i }],
    ] },
    files: { package: '@modelcontextprotocol/server-filesystem', command: 'mcp-server-filesystem', args: [work], calls: (i) => {
      const file = at(`w${i}.${kinds[i % kinds.length]}`);
      return [
        ['write_file', { path: file, content: text(i) }], ['read_text_file', { path: file }], ['read_text_file', { path: file, head: 2 }], ['get_file_info', { path: at('docs/a.md') }],
        ['edit_file', { path: file, edits: [{ oldText: text(i), newText: text(i + 1) }] }], ['read_multiple_files', { paths: [file, at('docs/b.jsx'), at('docs/none')] }], ['list_directory', { path: at('docs') }],
        ['search_files', { path: work, pattern: '**/*.md' }], ['directory_tree', { path: at('docs') }], ['read_text_file', { path: '/etc/passwd' }], ['create_directory', { path: at(`d${i}`) }],
        ['move_file', { source: file, destination: at(`d${i}/moved`) }], ['read_media_file', { path: at('docs/dot.png') }], ['list_allowed_directories', {}],
      ];
    } },
    memory: { package: '@modelcontextprotocol/server-memory', command: 'mcp-server-memory', env: { MEMORY_FILE_PATH: memory }, calls: (i) => [
      ['create_entities', { entities: [{ name: `e${i}`, entityType: 'thing', observations: [text(i), 'nextPageToken: Ci0KJ2ZpabCDEF0123'] }] }], ['search_nodes', { query: `e${i}` }],
      ['add_observations', { observations: [{ entityName: `e${i}`, contents: [text(i + 1)] }] }], ['open_nodes', { names: [`e${i}`, 'none'] }], ['create_relations', { relations: [{ from: `e${i}`, to: 'e0', relationType: 'follows' }] }],
      ['read_graph', {}], ['delete_observations', { deletions: [{ entityName: `e${i}`, observations: [text(i)] }] }], ['add_observations', { observations: [{ entityName: 'none', contents: ['x'] }] }],
      ...(i % 5 === 4 ? [['delete_entities', { entityNames: [`e${i - 1}`] }]] : []),
    ] },
    thinking: { package: '@modelcontextprotocol/server-sequential-thinking', command: 'mcp-server-sequential-thinking', calls: (i) => [
      ['sequentialthinking', { thought: text(i), nextThoughtNeeded: true, thoughtNumber: i + 1, totalThoughts: 50 }], ['sequentialthinking', { thought: String(i), nextThoughtNeeded: 'true', thoughtNumber: String(i + 2), totalThoughts: 3 }],
      ['sequentialthinking', { thought: text(i), nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1, isRevision: true, revisesThought: 1 }], ['sequentialthinking', { thought: text(i), nextThoughtNeeded: true, thoughtNumber: 2, totalThoughts: 2, branchFromThought: 1, branchId: `b${i}` }],
    ] },
    git: { package: '@cyanheads/git-mcp-server', command: 'git-mcp-server', env: { MCP_LOG_LEVEL: 'error', LOGS_DIR: join(base, 'git-logs') }, calls: (i) => [
      ['git_set_working_dir', { path: work }], ['git_status', {}], ['git_log', { maxCount: 1 + (i % 5) }], ['git_diff', {}], ['git_diff', { stat: true }], ['git_branch', { mode: 'list' }], ['git_show', { object: 'HEAD' }], ['git_show', { object: `HEAD~${i % 3}`, stat: true }],
      ['git_blame', { filePath: ['docs/a.md', 'docs/b.jsx', 'docs/d.txt'][i % 3] }], ['git_tag', { mode: 'list' }], ['git_reflog', { maxCount: 3 }], ['git_remote', { mode: 'list' }], ['git_branch', { mode: 'create', branchName: `b${i}` }], ['git_stash', { mode: 'list' }], ['git_show', { object: 'nowhere' }], ['git_log', { maxCount: 3, oneline: true }],
    ] },
    browser: { package: '@playwright/mcp', command: 'playwright-mcp', args: ['--headless', '--no-sandbox', '--isolated', '--executable-path', process.env.CHROMIUM ?? '/usr/bin/chromium', '--output-dir', join(base, 'browser')], calls: (i) => [
      ['browser_navigate', { url: `${site.url}/p${i}` }], ['browser_snapshot', {}], ['browser_evaluate', { function: '() => document.querySelector("#text").textContent' }], ['browser_tabs', { action: 'list' }], ['browser_console_messages', {}], ['browser_network_requests', {}],
      ['browser_find', { text: 'Heading' }], ['browser_type', { target: 'input[name=name]', text: `name ${i}` }], ['browser_select_option', { target: 'select', values: ['two'] }], ['browser_click', { target: 'button' }], ['browser_press_key', { key: 'Tab' }], ['browser_hover', { target: 'a' }],
      ['browser_evaluate', { function: '() => document.body.innerHTML' }], ['browser_resize', { width: 800, height: 600 }], ['browser_take_screenshot', {}], ['browser_click', { target: '#none' }], ['browser_navigate', { url: `${site.url}/q${i}` }], ['browser_navigate_back', {}],
    ].filter(([name]) => i < 2 || name !== 'browser_click' || i % 4 === 0) },
    commander: { package: '@wonderwhy-er/desktop-commander', command: 'desktop-commander', args: ['--no-onboarding'], env: { HOME: base }, calls: (i) => {
      const file = at(`c${i}.${kinds[i % kinds.length]}`);
      return [
        ['write_file', { path: file, content: text(i), mode: 'rewrite' }], ['read_file', { path: file }], ['read_file', { path: file, offset: 1, length: 1 }], ['edit_block', { file_path: file, old_string: text(i).slice(0, 12), new_string: 'other words' }], ['write_file', { path: file, content: text(i + 3), mode: 'append' }],
        ['read_multiple_files', { paths: [file, at('docs/c.json')] }], ['list_directory', { path: at('docs') }], ['create_directory', { path: at(`x${i}`) }], ['move_file', { source: file, destination: at(`x${i}/f`) }], ['list_searches', {}], ['list_sessions', {}], ['read_file', { path: at('none') }],
      ];
    } },
    runner: { package: 'mcp-server-code-runner', command: 'mcp-server-code-runner', calls: (i) => [
      ['run-code', { code: `console.log(${JSON.stringify(text(i))})`, languageId: 'javascript' }], ['run-code', { code: `throw new Error("${i} < b")`, languageId: 'javascript' }], ['run-code', { code: `echo ${i} '<b>' "$((${i} * 2))"`, languageId: 'shellscript' }], ['run-code', { code: `cat <<'END'\n${text(i + 7)}\nEND`, languageId: 'shellscript' }], ['run-code', { code: 'x', languageId: 'nosuch' }],
    ] },
    docs: { package: '@upstash/context7-mcp', command: 'context7-mcp', env: { CONTEXT7_API_URL: docs.url }, calls: (i) => [
      ['resolve-library-id', { query: `how to route ${i}`, libraryName: 'express' }], ['query-docs', { libraryId: '/org/lib1', query: `example ${i}` }], ['query-docs', { libraryId: '/org/lib2', query: `configuration of ${i + 11}` }], ['query-docs', { query: i }],
    ] },
    database: { package: '@modelcontextprotocol/server-postgres', command: 'mcp-server-postgres', args: [`postgresql://postgres:postgres@127.0.0.1:${await port}/postgres`], calls: (i) => [
      ['query', { sql: `SELECT * FROM notes WHERE id = ${i % texts.length}` }], ['query', { sql: `SELECT id, body FROM notes WHERE id BETWEEN ${i} AND ${i + 3} ORDER BY id` }], ['query', { sql: 'SELECT count(*), sum(n), avg(f), min(at), max(id) FROM notes' }], ['query', { sql: `SELECT ${i} AS a, NULL AS b, '<b>'::text AS c, ARRAY[1, 2] AS d, '{"x": 1}'::jsonb AS e` }],
      ['query', { sql: `SELECT repeat('word ', ${100 * i}) AS long` }], ['query', { sql: `SELECT nothing FROM nowhere${i}` }], ['query', { sql: `DELETE FROM notes WHERE id = ${i}` }], ['query', { sql: 'SELECT unnest(tags) AS tag FROM notes ORDER BY 1 LIMIT 5' }], ['query', { sql: `SELECT doc->>'body' AS body FROM notes WHERE id = ${(i + 9) % texts.length}` }],
    ] },
    tracker: { package: '@modelcontextprotocol/server-gitlab', command: 'mcp-server-gitlab', env: { GITLAB_API_URL: api.url, GITLAB_PERSONAL_ACCESS_TOKEN: 'none' }, calls: (i) => [
      ['create_issue', { project_id: 'team/app', title: `Issue ${i}`, description: text(i), labels: ['bug', 'a < b'], assignee_ids: [7] }], ['search_repositories', { search: `app${i}` }], ['get_file_contents', { project_id: 'team/app', file_path: `docs/f${i}.md`, ref: 'main' }],
      ['create_or_update_file', { project_id: 'team/app', file_path: `docs/f${i}.md`, content: text(i), commit_message: `write ${i}`, branch: 'main' }], ['create_merge_request', { project_id: 'team/app', title: `Change ${i}`, description: text(i + 5), source_branch: `b${i}`, target_branch: 'main' }],
      ['create_branch', { project_id: 'team/app', branch: `b${i}`, ref: 'main' }], ['fork_repository', { project_id: 'team/app' }], ['create_repository', { name: `r${i}`, visibility: 'private' }], ['create_issue', { project_id: 'missing', title: 'x' }], ['create_issue', { project_id: 'team/app', title: `Issue ${i}`, assignee_ids: ['7'] }],
    ] },
  };
  const close = async () => {
    [site, api, docs].forEach((s) => s.close());
    await sql.stop();
    await db.close();
  };
  return { servers, site: site.url, close };
}
