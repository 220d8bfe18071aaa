// A headless Chromium, driven over a pipe (--remote-debugging-pipe): messages are JSON, each ended by a zero byte.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const profile = mkdtempSync(join(tmpdir(), 'wasmgate-browser-'));
const browser = spawn(process.env.CHROMIUM ?? 'chromium', [
  '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--no-first-run',
  '--disable-extensions', '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND', `--user-data-dir=${profile}`, '--remote-debugging-pipe', 'about:blank',
], { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

let next = 0, rest = '';
const waiting = new Map();
let listen = () => {};

// on has what the browser reports heard.
export const on = (f) => { listen = f; };
browser.stdio[4].on('data', (chunk) => {
  rest += chunk;
  for (let end; (end = rest.indexOf('\0')) >= 0; rest = rest.slice(end + 1)) {
    const message = JSON.parse(rest.slice(0, end));
    if (message.id === undefined) listen(message);
    else {
      const { resolve, reject } = waiting.get(message.id);
      waiting.delete(message.id);
      message.error ? reject(new Error(message.error.message)) : resolve(message.result);
    }
  }
});
// A browser that is gone breaks its pipes and answers nobody.
const gone = (why) => {
  for (const { reject } of waiting.values()) reject(new Error(`the browser is gone: ${why}`));
  waiting.clear();
};
for (const pipe of [browser.stdio[3], browser.stdio[4]]) pipe.on('error', gone);
browser.on('error', gone);
browser.on('exit', gone);
const send = (method, params = {}, sessionId) => new Promise((resolve, reject) => {
  waiting.set(++next, { resolve, reject });
  browser.stdio[3].write(JSON.stringify({ id: next, method, params, sessionId }) + '\0');
});

const { targetInfos } = await send('Target.getTargets');
const { sessionId } = await send('Target.attachToTarget', { targetId: targetInfos.find((t) => t.type === 'page').targetId, flatten: true });
export const page = (method, params) => send(method, params, sessionId);

// close ends the browser and its children, which write into the profile.
export async function close() {
  const ended = browser.exitCode !== null || browser.signalCode !== null || new Promise((resolve) => browser.once('exit', resolve));
  try {
    process.kill(-browser.pid, 'SIGKILL');
  } catch { /* all have ended */ }
  await ended;
  try {
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  } catch { /* what is left of it is in the folder for what is temporary */ }
}
