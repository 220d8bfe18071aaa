// Compares what the suite found without wasmgate and with it. Each argument is a folder with a folder of results a way:
// direct, plain (nothing is changed on the way), guarded (validation and sanitizing) and nodes (as plain, by three gateways in turns). Prints a table, and exits 1
// when a check fails through wasmgate that does not fail without it, or is not even come to.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

// The names of result folders end in the time at which they were written.
const scenarioOf = (folder) => folder.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "");

// read returns the checks of one way: counts, and the status of each "scenario: check" (the worst, of several).
function read(folder) {
  const checks = new Map();
  const count = { SUCCESS: 0, FAILURE: 0 };
  const scenarios = new Set();
  const failed = new Set();
  const files = readdirSync(folder, { recursive: true }).filter((name) => basename(name) === "checks.json");
  for (const name of files.map(dirname)) {
    for (const check of JSON.parse(readFileSync(join(folder, name, "checks.json"), "utf8"))) {
      const key = `${scenarioOf(name)}: ${check.id}`;
      if (check.status in count) count[check.status]++;
      scenarios.add(scenarioOf(name));
      if (check.status === "FAILURE") failed.add(scenarioOf(name));
      if (checks.get(key) !== "FAILURE") checks.set(key, check.status);
    }
  }
  return { checks, count, scenarios: `${scenarios.size - failed.size} of ${scenarios.size}` };
}

// What is other through wasmgate because it is a gate.
const meant = new Map([
  ["client-2026-07-28: http-custom-headers: sep-2243-client-omit-null", "the call breaks the tool's input schema, and is refused"],
  ["tasks-2026-07-28: server-tasks-required-task-error: sep-2663-server-returns-missing-capability-when-required", "wasmgate waits for the task itself"],
  ["tasks-2026-07-28: server-tasks-required-task-error: sep-2663-server-returns-missing-capability-data-shape", "there is no such error"],
]);

const lines = [];
const worse = [];
for (const folder of process.argv.slice(2)) {
  const direct = read(join(folder, "direct"));
  if (basename(folder) === "authorization" && direct.count.FAILURE > 0) worse.push("the identity provider fails as an authorization server");
  if (direct.count.SUCCESS === 0) worse.push(`${basename(folder)}, direct: nothing has passed`);
  for (const way of ["direct", "plain", "guarded", "nodes"].filter((way) => existsSync(join(folder, way)))) {
    const { checks, count, scenarios } = read(join(folder, way));
    const more = [];
    const differs = (what, key) => {
      const why = meant.get(`${basename(folder)}: ${key}`);
      if (why) console.error(`${basename(folder)}, ${way} ${what} as it should: ${key}: ${why}`);
      else more.push(`${what}: ${key}`);
    };
    for (const [key, status] of checks) {
      if (status === "FAILURE" && direct.checks.get(key) !== "FAILURE") differs("fails", key);
    }
    for (const [key, status] of direct.checks) {
      if (status === "SUCCESS" && !checks.has(key)) differs("is not come to", key);
    }
    lines.push([basename(folder), way, count.SUCCESS, count.FAILURE, scenarios, more.length].map(String));
    worse.push(...more.map((what) => `${basename(folder)}, ${way} ${what}`));
  }
}

const head = ["run", "way", "passed", "failed", "scenarios", "worse than direct"];
const width = head.map((h, i) => Math.max(h.length, ...lines.map((l) => l[i].length)));
for (const line of [head, width.map((w) => "-".repeat(w)), ...lines]) {
  console.log(`| ${line.map((cell, i) => cell.padEnd(width[i])).join(" | ")} |`);
}
for (const what of worse) console.error(what);
process.exit(worse.length > 0 ? 1 : 0);
