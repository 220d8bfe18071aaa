// An MCP server behind OAuth, made with the TypeScript SDK: it takes JWT access tokens of an issuer that are for itself.
// The tool whoami says whose token a call has, and so do a prompt and a resource; echo repeats the header Authorization.
//
//	node protected.mjs PORT ISSUER
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from "@modelcontextprotocol/sdk/server/auth/router.js";
import { createRemoteJWKSet, jwtVerify } from "jose";

const [port, issuer] = process.argv.slice(2);
const resource = new URL(`http://127.0.0.1:${port}/mcp`);
const oauthMetadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
const keys = createRemoteJWKSet(new URL(oauthMetadata.jwks_uri));

const verifier = {
  async verifyAccessToken(token) {
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, audience: resource.href, typ: "at+jwt" });
      return { token, clientId: payload.client_id, scopes: payload.scope.split(" "), expiresAt: payload.exp, extra: { sub: payload.sub } };
    } catch (err) {
      throw new InvalidTokenError(err.code);
    }
  },
};

function server() {
  const s = new McpServer({ name: "protected", version: "1.0.0" });
  const say = (text) => ({ content: [{ type: "text", text }] });
  s.registerTool("whoami", {}, ({ authInfo }) => say(`user ${authInfo.extra.sub}, scopes ${authInfo.scopes}`));
  s.registerPrompt("greet", {}, ({ authInfo }) => ({ messages: [{ role: "user", content: { type: "text", text: `user ${authInfo.extra.sub}` } }] }));
  s.registerResource("me", "jira://me", {}, (uri, { authInfo }) => ({ contents: [{ uri: uri.href, text: `user ${authInfo.extra.sub}` }] }));
  s.registerTool("echo", {}, ({ requestInfo }) => say(`it was sent ${requestInfo.headers.authorization}`));
  return s;
}

const app = createMcpExpressApp();
app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: resource, scopesSupported: ["mcp"] }));
app.all("/mcp", requireBearerAuth({ verifier, requiredScopes: ["mcp"], resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource) }), async (req, res) => {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  res.on("close", () => transport.close());
  await server().connect(transport);
  await transport.handleRequest(req, res, req.body);
});
app.listen(Number(port), "127.0.0.1");
