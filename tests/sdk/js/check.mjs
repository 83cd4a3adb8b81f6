// Drives a Hapax server with the Svix SDK for JavaScript. Exits non-zero at the first thing that is not as the SDK expects it.
//
// HAPAX_URL and HAPAX_TOKEN say where the server is and who asks. Its endpoints may be on 127.0.0.1.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import http from "node:http";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Svix, Webhook } from "svix";

const serverUrl = process.env.HAPAX_URL;
const svix = new Svix(process.env.HAPAX_TOKEN, { serverUrl });
const LOT = randomUUID().slice(0, 8);
// Longer than anything here takes, so that what never comes fails the run instead of hanging it.
const TOO_LONG_MS = 60_000;

const said = (what) => console.log(`javascript: ${what}`);

/** What arrives, and what is answered. */
const sink = {
  status: 200,
  statuses: {},
  url: (path) => `http://127.0.0.1:${server.address().port}${path}`,
  seen: [],
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
    response.writeHead(sink.statuses[request.url] ?? sink.status).end("ok");
  });
});

async function until(what, look) {
  const end = Date.now() + TOO_LONG_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const arrived = (path, count) =>
  until(`${count} at ${path}`, () => (sink.at(path).length >= count ? sink.at(path) : null));

async function refused(status, ask) {
  try {
    await ask();
  } catch (problem) {
    assert.equal(problem.code, status, JSON.stringify(problem.body));
    return problem.body;
  }
  assert.fail(`${status} is expected`);
}

/** Verifies with the SDK and with the package of the standard. */
function verified({ headers, body }, secret) {
  new Webhook(secret).verify(body, headers);
  new StandardWebhook(secret).verify(body, headers);
}

async function apps() {
  const uid = `js-${LOT}`;
  const app = await svix.application.create({ name: "one", uid, metadata: { plan: "a" } });
  assert.equal((await svix.application.get(uid)).id, app.id);
  assert.equal((await svix.application.getOrCreate({ name: "two", uid })).name, "one");
  await refused(409, () => svix.application.create({ name: "two", uid }));
  assert.deepEqual((await svix.application.upsert(uid, { name: "three", uid })).metadata, {});
  assert.equal((await svix.application.patch(uid, { throttleRate: 7 })).throttleRate, 7);
  const page = await svix.application.list({ limit: 250, order: "descending" });
  assert.ok(page.data.some((one) => one.id === app.id));
  assert.ok(app.createdAt instanceof Date);
  const wrong = await refused(422, () => svix.application.create({ name: "x", uid: "a b" }));
  assert.deepEqual(wrong.detail[0].loc, ["body", "uid"]);
  said("applications: create, get, getOrCreate, upsert, patch, list, 409, 422");
  return uid;
}

async function eventTypes() {
  const name = `order.made.${LOT}`;
  const schemas = { 1: { type: "object", required: ["n"], example: { n: 1 } } };
  await svix.eventType.create({ name, description: "an order was made", schemas });
  assert.deepEqual((await svix.eventType.get(name)).schemas, schemas);
  assert.equal((await svix.eventType.patch(name, { deprecated: true })).deprecated, true);
  const listed = await svix.eventType.list({ limit: 250, withContent: true });
  assert.ok(listed.data.some((one) => one.name === name && one.schemas));
  said("event types: create, get, patch, list");
  return name;
}

async function endpoints(app) {
  const url = sink.url("/a");
  const endpoint = await svix.endpoint.create(app, { url, uid: "ep-a", channels: ["c1"] });
  assert.deepEqual(endpoint.channels, ["c1"]);
  assert.equal((await svix.endpoint.patch(app, "ep-a", { channels: null })).channels, null);
  await svix.endpoint.setHeaders(app, "ep-a", { headers: { "x-tenant": "t1", "x-api-key": "k" } });
  const headers = await svix.endpoint.getHeaders(app, "ep-a");
  assert.deepEqual(headers, { headers: { "x-tenant": "t1" }, sensitive: ["x-api-key"] });
  await svix.endpoint.patchHeaders(app, "ep-a", { headers: {}, deleteHeaders: ["X-Api-Key"] });
  assert.deepEqual((await svix.endpoint.getHeaders(app, "ep-a")).sensitive, []);
  await refused(422, () => svix.endpoint.create(app, { url: "http://169.254.169.254/" }));
  assert.equal((await svix.endpoint.list(app)).data.length, 1);
  said("endpoints: create, patch, headers, gate, list");
  return endpoint.id;
}

async function messages(app, endpoint, eventType) {
  const secret = (await svix.endpoint.getSecret(app, endpoint)).key;
  const first = { eventType, eventId: `evt-${LOT}`, payload: { n: 1, text: "grün" }, tags: ["t1"] };
  const message = await svix.message.create(app, first, { withContent: true });
  assert.deepEqual(message.payload, first.payload);
  assert.equal((await svix.message.create(app, first)).id, message.id);
  const other = { ...first, payload: { n: 2 } };
  assert.equal((await refused(409, () => svix.message.create(app, other))).code, "H0326");
  await refused(422, () => svix.message.create(app, { eventType, payload: {} }));
  const [one] = await arrived("/a", 1);
  verified(one, secret);
  assert.equal(one.headers["webhook-id"], message.id);
  assert.equal(one.headers["x-tenant"], "t1");
  assert.deepEqual(JSON.parse(one.body), first.payload);
  const got = await svix.message.get(app, `evt-${LOT}`, { withContent: true });
  assert.deepEqual(got.payload, first.payload);
  const list = (how) => svix.message.list(app, how).then((page) => page.data.map((m) => m.id));
  assert.deepEqual(await list({ tag: "t1", eventTypes: [eventType, "other"] }), [message.id]);
  assert.deepEqual(await list({ after: new Date(Date.now() + 60_000) }), []);
  assert.equal((await svix.message.precheck(app, { eventType })).active, true);
  said("messages: create, eventId, schema, delivery, get, list, precheck");
  return message.id;
}

async function attempts(app, endpoint, message) {
  const api = svix.messageAttempt;
  const tried = await until("an attempt", async () => {
    const { data } = await api.listByMsg(app, message);
    return data.length > 0 ? data : null;
  });
  assert.equal(tried[0].status, 0);
  assert.equal(tried[0].responseStatusCode, 200);
  assert.equal((await api.get(app, message, tried[0].id)).endpointId, endpoint);
  const ofEndpoint = await api.listByEndpoint(app, endpoint, { withMsg: true, statusCodeClass: 200 });
  assert.equal(ofEndpoint.data[0].msg.id, message);
  assert.equal((await api.listAttemptedMessages(app, endpoint)).data[0].id, message);
  assert.equal((await api.listAttemptedDestinations(app, message)).data[0].id, endpoint);
  const before = sink.at("/a").length;
  await api.resend(app, message, endpoint);
  await arrived("/a", before + 1);
  assert.equal((await svix.endpoint.getStats(app, endpoint)).fail, 0);
  said("attempts: by message, by endpoint, one, destinations, resend, stats");
}

async function rotation(app, endpoint, eventType) {
  const old = (await svix.endpoint.getSecret(app, endpoint)).key;
  await svix.endpoint.rotateSecret(app, endpoint, {});
  const fresh = (await svix.endpoint.getSecret(app, endpoint)).key;
  assert.notEqual(fresh, old);
  const before = sink.at("/a").length;
  await svix.message.create(app, { eventType, payload: { n: 3 } });
  const one = (await arrived("/a", before + 1)).at(-1);
  verified(one, old);
  verified(one, fresh);
  await svix.endpoint.rotateSecret(app, endpoint, { gracePeriodSeconds: 0 });
  await svix.message.create(app, { eventType, payload: { n: 4 } });
  const next = (await arrived("/a", before + 2)).at(-1);
  assert.throws(() => new Webhook(fresh).verify(next.body, next.headers));
  verified(next, (await svix.endpoint.getSecret(app, endpoint)).key);
  said("rotation: old and new verify during the overlap, and not beyond it");
}

async function operators(app, endpoint, eventType) {
  const api = svix.operationalWebhook.endpoint;
  const made = await api.create({ url: sink.url("/ops"), eventTypes: ["endpoint.disabled"] });
  assert.ok((await api.list()).data.some((one) => one.id === made.id));
  await svix.endpoint.create(app, { uid: "gone", url: sink.url("/gone") });
  sink.statuses["/gone"] = 410;
  await svix.message.create(app, { eventType, payload: { n: 5 } });
  const one = (await arrived("/ops", 1))[0];
  verified(one, (await api.getSecret(made.id)).key);
  assert.equal(JSON.parse(one.body).data.endpointUid, "gone");
  await api.delete(made.id);
  await svix.endpoint.delete(app, "gone");
  const poller = svix.message.poller;
  const page = await until("messages to poll", async () => {
    const page = await poller.consumerPoll(app, endpoint, "worker", { limit: 1 });
    return page.data.length ? page : null;
  });
  const again = await poller.consumerPoll(app, endpoint, "worker", { limit: 1 });
  assert.equal(again.data[0].id, page.data[0].id);
  const next = await poller.consumerPoll(app, endpoint, "worker", { iterator: page.iterator });
  assert.ok(next.data.every((one) => one.id !== page.data[0].id));
  assert.ok((await poller.consumerSeek(app, endpoint, "worker", { after: new Date() })).iterator);
  const since = new Date(Date.now() - 86_400_000);
  const until_ = new Date(Date.now() + 86_400_000);
  const task = await svix.statistics.aggregateAppStats({ since, until: until_, appIds: [app] });
  const done = await until("the task", async () => {
    const found = await svix.backgroundTask.get(task.id);
    return found.status === "finished" ? found : null;
  });
  assert.ok(done.data.appStats[0].messageDestinations > 0);
  said("operational webhooks, consumers of a poller, statistics");
}

async function rest(app, endpoint, eventType) {
  const since = new Date(Date.now() - 60_000);
  const task = await svix.endpoint.recover(app, endpoint, { since });
  const done = await until("the task", async () => {
    const found = await svix.backgroundTask.get(task.id);
    return found.status === "finished" ? found : null;
  });
  assert.equal(done.task, "endpoint.recover");
  const before = sink.at("/a").length;
  await svix.endpoint.sendExample(app, endpoint, { eventType });
  assert.equal((await arrived("/a", before + 1)).at(-1).body, '{"n":1}');
  const access = await svix.authentication.appPortalAccess(app, {});
  const consumer = new Svix(access.token, { serverUrl });
  assert.equal((await consumer.endpoint.list(app)).data.length, 1);
  await refused(403, () => consumer.application.list());
  await svix.authentication.expireAll(app, {});
  await refused(401, () => consumer.endpoint.list(app));
  await svix.health.get();
  const quick = new Svix(process.env.HAPAX_TOKEN, { serverUrl, retryScheduleInMs: [] });
  await refused(501, () => quick.integration.list(app));
  await svix.application.delete(app);
  await refused(404, () => svix.application.get(app));
  said("recover, background task, send-example, portal, health, 501, delete");
}

server.listen(0, "127.0.0.1", async () => {
  const app = await apps();
  const eventType = await eventTypes();
  const endpoint = await endpoints(app);
  const message = await messages(app, endpoint, eventType);
  await attempts(app, endpoint, message);
  await rotation(app, endpoint, eventType);
  await operators(app, endpoint, eventType);
  await rest(app, endpoint, eventType);
  said("all well");
  process.exit(0);
});
