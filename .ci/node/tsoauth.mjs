// The TypeScript SDK's client with its OAuth: it registers itself, prints the address that a browser has to open, waits on
// loopback for the answer, then lists the tools, makes a call and prints both as JSON.
//
//	node tsoauth.mjs http://127.0.0.1:7420/mcp TOOL
import http from "node:http";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [server, tool] = process.argv.slice(2);
const state = crypto.randomUUID();
const kept = {};

let came;
const answer = new Promise((resolve) => (came = resolve));
const listener = http.createServer((req, res) => {
  const query = new URL(req.url, "http://127.0.0.1").searchParams;
  res.end("done");
  if (query.get("state") === state) came(query);
});
await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
const redirectUrl = `http://127.0.0.1:${listener.address().port}/callback`;

const authProvider = {
  redirectUrl,
  clientMetadata: {
    client_name: "tsoauth",
    redirect_uris: [redirectUrl],
    application_type: "native",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => state,
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  redirectToAuthorization: (url) => console.log(`open ${url}`),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
};

async function connect() {
  const client = new Client({ name: "tsoauth", version: "1.0.0" });
  const transport = new StreamableHTTPClientTransport(new URL(server), { authProvider });
  try {
    await client.connect(transport);
  } catch (err) {
    if (!(err instanceof UnauthorizedError)) throw err;
    const query = await answer;
    await transport.finishAuth(query.get("code"));
    return connect();
  }
  return client;
}

const client = await connect();
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: {} });
console.log(JSON.stringify({ tools: tools.map((t) => t.name), result }));
await client.close();
listener.close();
