// The server, the sink, and how answers are looked at.
//
// HAPAX_URL and HAPAX_TOKEN say where the server is and who asks. Its endpoints may be on 127.0.0.1, and what fails is tried once.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Svix, Webhook } from "svix";

const serverUrl = process.env.HAPAX_URL;
// Longer than anything here takes, so that what never comes fails the run instead of hanging it.
const TOO_LONG_MS = 60_000;

/** Somebody who shows this token. What fails is not asked again: it is looked at. */
export const client = (token) => new Svix(token, { serverUrl, retryScheduleInMs: [] });

export const svix = client(process.env.HAPAX_TOKEN);
/** What makes the names of this run its own. */
export const LOT = randomUUID().slice(0, 8);

export const said = (what) => console.log(`javascript: ${what}`);

/** What arrives, and what is answered: 200 where nothing else is said. */
export const sink = {
  statuses: {},
  seen: [],
  url: (path) => `http://127.0.0.1:${server.address().port}${path}`,
  at(path) {
    return this.seen.filter((one) => one.path === path);
  },
};

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts).toString("utf8");
    sink.seen.push({ path: request.url, headers: request.headers, body });
    response.writeHead(sink.statuses[request.url] ?? 200).end("ok");
  });
});
server.listen(0, "127.0.0.1");
await once(server, "listening");

export async function until(what, look) {
  const end = Date.now() + TOO_LONG_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export const arrived = (path, count) =>
  until(`${count} at ${path}`, () => (sink.at(path).length >= count ? sink.at(path) : null));

/** Waits for a task to end. */
export const finished = (task) =>
  until("the task", async () => {
    const found = await svix.backgroundTask.get(task.id);
    return found.status === "finished" ? found : null;
  });

/** All that a list has, one by one: `ask` is given what each page is asked for. */
export async function paged(ask) {
  const found = [];
  for (let iterator, done = false; !done; ) {
    const page = await ask({ limit: 1, iterator });
    assert.ok(page.data.length <= 1);
    found.push(...page.data.map((one) => one.id));
    ({ iterator, done } = page);
  }
  return found;
}

export async function refused(status, ask) {
  try {
    await ask();
  } catch (problem) {
    assert.equal(problem.code, status, JSON.stringify(problem.body));
    return problem.body;
  }
  assert.fail(`${status} is expected`);
}

/** Verifies with the SDK and with the package of the standard. */
export function verified({ headers, body }, secret) {
  new Webhook(secret).verify(body, headers);
  new StandardWebhook(secret).verify(body, headers);
}
