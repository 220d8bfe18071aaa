// An MCP client made with the TypeScript SDK that servers can ask: for forms, texts and folders. Makes the given calls
// and prints their texts, and how often it was asked and told how far they are, as JSON.
//
//	node tspeer.mjs '[{"name":"x__y","arguments":{}}]' http://127.0.0.1:7420/mcp
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [calls, server] = process.argv.slice(2);
const seen = { elicitation: 0, sampling: 0, roots: 0, progress: 0 };
const client = new Client({ name: "tspeer", version: "1.0.0" }, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
client.setRequestHandler(ElicitRequestSchema, () => {
  seen.elicitation++;
  return { action: "accept", content: { name: "tess", check: true } };
});
client.setRequestHandler(CreateMessageRequestSchema, () => {
  seen.sampling++;
  return { model: "m", role: "assistant", content: { type: "text", text: "written by tess" } };
});
client.setRequestHandler(ListRootsRequestSchema, () => {
  seen.roots++;
  return { roots: [{ uri: "file:///srv/tess", name: "tess" }] };
});
const transport = new StreamableHTTPClientTransport(new URL(server));
await client.connect(transport);
const texts = [];
for (const call of JSON.parse(calls)) {
  const result = await client.callTool(call, undefined, { onprogress: () => seen.progress++ });
  texts.push(result.content.map((block) => block.text ?? "").join("\n"));
}
console.log(JSON.stringify({ texts, seen }));
await transport.terminateSession(); // which close does not do
await client.close();
