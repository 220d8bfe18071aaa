// An MCP client made with the TypeScript SDK: lists the tools of a server, makes the given calls and prints both as JSON.
//
//	node tsclient.mjs '[{"name":"x__y","arguments":{}}]' http://127.0.0.1:7420/mcp
//	node tsclient.mjs '[]' wasmgate serve --stdio
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [calls, server, ...args] = process.argv.slice(2);
const transport = /^https?:/.test(server)
  ? new StreamableHTTPClientTransport(new URL(server))
  : new StdioClientTransport({ command: server, args, stderr: "inherit" });

const client = new Client({ name: "tsclient", version: "1.0.0" });
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const call of JSON.parse(calls)) {
  results.push(await client.callTool(call));
}
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
await client.close();
