// An identity provider made with oidc-provider, at which whoever the header X-Person names signs in and consents at once:
// code with PKCE, dynamic registration, JWT access tokens for the resource that was asked for, refresh tokens that are
// good once, revocation. A client "robot" gets tokens for itself, with the secret of ROBOT_SECRET; a client "signer" does so, and has
// people log in, by the private key to SIGNER_JWK (private_key_jwt). With CLIENT and CLIENT_SECRET it has a part in single
// sign-on to servers: the client gets ID-JAGs here for JAG_CLIENT at any authorization server, if alice is the person; or,
// with JAG_ISSUER, it gets tokens here for the ID-JAGs of that issuer.
//
//	node idp.mjs PORT SECONDS      for how long access tokens hold
//
// GET /test/seen tells what was granted and every secret so far, GET /test/steal?person=P uses P's last used refresh token again.
import http from "node:http";
import { SignJWT, createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from "jose";
import { Provider, errors } from "oidc-provider";

const [port, seconds] = process.argv.slice(2).map(Number);
const issuer = `http://127.0.0.1:${port}`;
const groups = { alice: ["eng-web"], bob: ["sales"], robot: ["robots"] };
const scopes = ["openid", "offline_access", "mcp"];

const exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
const bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const type = (name) => `urn:ietf:params:oauth:token-type:${name}`;
const { CLIENT, CLIENT_SECRET, JAG_CLIENT, JAG_ISSUER } = process.env;
const key = CLIENT && (await generateKeyPair("RS256", { extractable: true }));

const seen = { granted: {}, revoked: 0, secrets: [] };
const used = {}; // the last token request with a refresh token of each person

const resourceServer = (resource) => ({
  scope: "mcp",
  audience: resource,
  accessTokenFormat: "jwt",
  accessTokenTTL: seconds,
  jwt: { sign: { alg: "RS256" } },
});

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "robot",
      client_secret: process.env.ROBOT_SECRET ?? "unused",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    },
    ...(process.env.SIGNER_JWK
      ? [
          {
            client_id: "signer",
            application_type: "native",
            token_endpoint_auth_method: "private_key_jwt",
            jwks: { keys: [JSON.parse(process.env.SIGNER_JWK)] },
            grant_types: ["client_credentials", "authorization_code", "refresh_token"],
            redirect_uris: ["http://127.0.0.1/callback"],
            response_types: ["code"],
          },
        ]
      : []),
    ...(CLIENT
      ? [
          {
            client_id: CLIENT,
            client_secret: CLIENT_SECRET,
            ...(JAG_ISSUER
              ? { grant_types: [bearer], redirect_uris: [], response_types: [] }
              : {
                  application_type: "native",
                  grant_types: ["authorization_code", "refresh_token", exchange],
                  redirect_uris: ["http://127.0.0.1/callback"],
                  response_types: ["code"],
                }),
          },
        ]
      : []),
  ],
  ...(key && { jwks: { keys: [{ ...(await exportJWK(key.privateKey)), kid: "k1", alg: "RS256", use: "sig" }] } }),
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (_ctx, token) => ({ groups: groups[token.accountId ?? token.clientId] ?? [] }),
  scopes,
  pkce: { required: () => true },
  clientBasedCORS: () => false,
  rotateRefreshToken: true,
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: [crypto.randomUUID()] },
  ttl: { AccessToken: seconds, ClientCredentials: seconds, Grant: 3600, RefreshToken: 3600, Session: 3600, Interaction: 600, IdToken: 600 },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx, resource) => resourceServer(resource),
    },
  },
});

// verified returns the claims of a token that is expected to be good.
async function verified(token, keys, options) {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (err) {
    throw new errors.InvalidGrant(err.code);
  }
}

async function vouch(ctx) {
  const { client, params } = ctx.oidc;
  const { sub } = await verified(params.subject_token, key.publicKey, { issuer, audience: client.clientId });
  if (params.subject_token_type !== type("id_token") || params.requested_token_type !== type("id-jag")) throw new errors.InvalidRequest();
  if (sub !== "alice") throw new errors.AccessDenied();
  const { audience, resource } = params;
  const access_token = await new SignJWT({ client_id: JAG_CLIENT, resource, scope: "mcp" })
    .setProtectedHeader({ alg: "RS256", kid: "k1", typ: "oauth-id-jag+jwt" })
    .setIssuer(issuer).setSubject(sub).setAudience(audience).setJti(crypto.randomUUID()).setIssuedAt().setExpirationTime("5m")
    .sign(key.privateKey);
  ctx.body = { issued_token_type: type("id-jag"), access_token, token_type: "N_A", expires_in: 300, scope: "mcp" };
}

const jtis = new Set();

async function believe(ctx) {
  const { client, params } = ctx.oidc;
  const keys = createRemoteJWKSet(new URL(`${JAG_ISSUER}/jwks`));
  const said = await verified(params.assertion, keys, { issuer: JAG_ISSUER, audience: issuer, typ: "oauth-id-jag+jwt" });
  if (said.client_id !== client.clientId || jtis.has(said.jti) || (params.resource && params.resource !== said.resource)) throw new errors.InvalidGrant();
  jtis.add(said.jti);
  const token = new provider.AccessToken({ client, accountId: said.sub, scope: said.scope });
  token.resourceServer = new provider.ResourceServer(said.resource, resourceServer(said.resource));
  ctx.body = { access_token: await token.save(), token_type: "Bearer", expires_in: token.expiration, scope: said.scope };
}

if (JAG_CLIENT) provider.registerGrantType(exchange, vouch, ["audience", "resource", "scope", "subject_token", "subject_token_type", "requested_token_type"]);
if (JAG_ISSUER) provider.registerGrantType(bearer, believe, ["assertion", "resource", "scope"]);

const secrets = ["code", "code_verifier", "state", "access_token", "refresh_token", "id_token", "client_secret", "registration_access_token", "token", "client_assertion", "assertion", "subject_token"];
function keep(from) {
  for (const name of secrets) {
    if (typeof from?.[name] === "string" && !seen.secrets.includes(from[name])) seen.secrets.push(from[name]);
  }
}

provider.use(async (ctx, next) => {
  if (ctx.path === "/auth" && !ctx.query.scope) ctx.query = { ...ctx.query, scope: "mcp" }; // its default (RFC 6749, 3.3)
  await next();
  keep(ctx.oidc?.params);
  keep(ctx.oidc?.body);
  if (typeof ctx.body === "object") keep(ctx.body);
  const to = ctx.response.get("location") ?? "";
  if (to.includes("code=")) keep(Object.fromEntries(new URL(to).searchParams));
  if (ctx.oidc?.route === "revocation" && ctx.status === 200) seen.revoked++;
  if (ctx.oidc?.route === "token" && ctx.status === 200) {
    const { grant_type } = ctx.oidc.params;
    seen.granted[grant_type] = (seen.granted[grant_type] ?? 0) + 1;
    if (grant_type === "refresh_token") used[ctx.oidc.account.accountId] = new URLSearchParams(ctx.oidc.body);
  }
});

async function interact(req, res) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(req, res);
  if (prompt.name === "login") {
    return provider.interactionFinished(req, res, { login: { accountId: req.headers["x-person"] } });
  }
  const grant = grantId ? await provider.Grant.find(grantId) : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(scopes.join(" "));
  for (const resource of [params.resource ?? []].flat()) grant.addResourceScope(resource, "mcp");
  return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
}

const handle = provider.callback();
http
  .createServer(async (req, res) => {
    try {
      if (req.url.startsWith("/interaction/")) return await interact(req, res);
      if (req.url === "/test/seen") return res.end(JSON.stringify(seen));
      if (req.url.startsWith("/test/steal")) {
        const person = new URL(req.url, issuer).searchParams.get("person");
        const answer = await fetch(`${issuer}/token`, { method: "POST", body: used[person] });
        return res.end(`${answer.status} ${(await answer.json()).error}`);
      }
      await handle(req, res);
    } catch (err) {
      res.writeHead(500).end(String(err?.error_description ?? err));
    }
  })
  .listen(port, "127.0.0.1");
