// The page of a host that shows MCP Apps, as a person's client is one: it lists the tools of a server, reads the page of one of them, has
// the sandbox run it, and calls the tool. The official AppBridge speaks with the page. What happens is in window.seen.
//
// The address says what to do, as JSON after "#": {endpoint, sandbox, tool, args, revision, strict}.
import { AppBridge, PostMessageTransport, getToolUiResourceUri } from '@modelcontextprotocol/ext-apps/app-bridge';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const seen = (window.seen = { state: 'starts', calls: [], notes: [] });
const todo = JSON.parse(decodeURIComponent(location.hash.slice(1)));
const info = { name: `apps-${todo.name}`, version: '1' };

// permitted is what a strict host looks at before it passes a page's call on: the list of tools that it was given itself.
function permitted(tools, name) {
  const tool = tools.find((t) => t.name === name);
  if (!tool) throw new Error(`the host has no tool ${name}`);
  if (!(tool._meta?.ui?.visibility ?? ['app']).includes('app')) throw new Error(`the tool ${name} is not for apps`);
}

async function show() {
  const client = new Client(info, {
    capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } },
    versionNegotiation: { mode: todo.revision === '2026-07-28' ? 'auto' : 'legacy' },
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(todo.endpoint, location.href)));
  const { tools } = await client.listTools();
  const tool = tools.find((t) => t.name === todo.tool);
  if (!tool) throw new Error(`no tool ${todo.tool} among ${tools.map((t) => t.name)}`);
  const uri = getToolUiResourceUri(tool);
  if (!uri) throw new Error(`the tool ${todo.tool} has no page`);
  const { contents: [content] } = await client.readResource({ uri });
  const html = content.text ?? new TextDecoder().decode(Uint8Array.from(atob(content.blob), (c) => c.charCodeAt(0)));
  const ui = content._meta?.ui ?? {};
  seen.page = { uri, length: html.length, csp: ui.csp };

  const frame = document.querySelector('iframe');
  const ready = new Promise((done) => addEventListener('message', ({ source, data }) => {
    if (source === frame.contentWindow && data?.method === 'ui/notifications/sandbox-proxy-ready') done();
  }));
  frame.src = `${todo.sandbox}?${encodeURIComponent(JSON.stringify(ui.csp ?? {}))}`;
  await ready;

  const { tools: serverTools = {}, resources: serverResources = {} } = client.getServerCapabilities() ?? {};
  const bridge = new AppBridge(null, info, { openLinks: {}, logging: {}, serverTools, serverResources, updateModelContext: { text: {} }, message: { text: {} } },
    { hostContext: { theme: 'light', displayMode: 'inline', locale: 'en-US', timeZone: 'UTC', platform: 'web', toolInfo: { tool } } });
  bridge.oncalltool = async (call) => {
    const one = { name: call.name, answer: 'none' };
    seen.calls.push(one);
    try {
      if (todo.strict) permitted(tools, call.name);
      const result = await client.callTool(call);
      one.answer = result.isError ? `isError ${JSON.stringify(result.content).slice(0, 200)}` : 'ok';
      return result;
    } catch (err) {
      one.answer = err.message;
      throw err;
    }
  };
  bridge.onreadresource = (read) => client.readResource(read);
  bridge.onlistresources = (list) => client.listResources(list);
  bridge.onmessage = async () => ({});
  bridge.onupdatemodelcontext = async () => ({});
  bridge.onopenlink = async () => ({});
  const initialized = new Promise((done) => { bridge.oninitialized = done; });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  await bridge.sendSandboxResourceReady({ html, csp: ui.csp, permissions: ui.permissions });
  seen.state = 'shown';
  await initialized;
  seen.state = 'initialized';
  await bridge.sendToolInput({ arguments: todo.args });
  const result = await client.callTool({ name: tool.name, arguments: todo.args });
  await bridge.sendToolResult(result);
  seen.state = result.isError ? `the tool failed: ${JSON.stringify(result.content).slice(0, 200)}` : 'alive';
}
show().catch((err) => { seen.state = `failed: ${err.message}`; });
