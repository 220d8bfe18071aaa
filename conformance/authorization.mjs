// Tries an authorization server whose people consent at once, ../.ci/node/idp.mjs, with the suite's scenarios for such: it
// registers a client there, and opens what a person has to open, as alice.
//
//	node authorization.mjs SUITE ISSUER PORT FOLDER      the port is for the redirect
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [suite, issuer, port, folder] = process.argv.slice(2);
const redirect = `http://127.0.0.1:${port}/callback`;
const metadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
const registered = await fetch(metadata.registration_endpoint, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ application_type: "native", redirect_uris: [redirect], token_endpoint_auth_method: "none" }),
});
const { client_id } = await registered.json();

// open goes where a browser is led, with the cookies that it gets, up to the redirect.
async function open(url) {
  const cookies = new Map();
  for (let at = url; at; ) {
    const answer = await fetch(at, {
      redirect: "manual",
      headers: { "X-Person": "alice", Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
    });
    for (const cookie of answer.headers.getSetCookie()) cookies.set(...cookie.split(";")[0].split(/=(.*)/s));
    const next = answer.headers.get("location");
    at = next && new URL(next, at);
  }
}

const run = spawn(process.execPath, [
  suite, "authorization", "--url", issuer, "--client-id", client_id, "--resource", "https://gw.example.com/mcp", "-p", port, "-o", folder,
]);
createInterface({ input: run.stdout }).on("line", (line) => {
  if (line.startsWith(metadata.authorization_endpoint)) open(line);
});
run.stderr.pipe(process.stderr);
run.on("exit", (code) => process.exit(code));
