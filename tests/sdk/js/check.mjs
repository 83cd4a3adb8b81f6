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
  assert.equal((await svix.application.patch(uid, { throttleRate: null })).throttleRate, null);
  const second = await svix.application.upsert(`${uid}-b`, { name: "four" });
  assert.equal(second.uid, `${uid}-b`);
  const found = [];
  for (let iterator, done = false; !done; ) {
    const page = await svix.application.list({ limit: 1, order: "descending", iterator });
    found.push(...page.data.map((one) => one.id));
    ({ iterator, done } = page);
  }
  assert.ok(found.indexOf(second.id) >= 0 && found.indexOf(second.id) < found.indexOf(app.id));
  await svix.application.delete(second.id);
  assert.equal((await refused(404, () => svix.application.get(second.id))).code, "H0302");
  assert.ok(app.createdAt instanceof Date);
  const wrong = await refused(422, () => svix.application.create({ name: "x", uid: "a b" }));
  assert.deepEqual(wrong.detail[0].loc, ["body", "uid"]);
  said("applications: create, get, getOrCreate, upsert, patch, list, delete, 404, 409, 422");
  return uid;
}

async function eventTypes() {
  const name = `order.made.${LOT}`;
  const schemas = { 1: { type: "object", required: ["n"], examples: [{ n: 1 }, { n: 2 }] } };
  await svix.eventType.create({ name, description: "an order was made", schemas });
  assert.deepEqual((await svix.eventType.get(name)).schemas, schemas);
  assert.equal((await svix.eventType.patch(name, { deprecated: true })).deprecated, true);
  const listed = await svix.eventType.list({ limit: 250, withContent: true });
  assert.ok(listed.data.some((one) => one.name === name && one.schemas));
  const other = `other.${LOT}`;
  assert.equal((await svix.eventType.upsert(other, { description: "another" })).archived, false);
  await svix.eventType.delete(other);
  const names = async (how) =>
    (await svix.eventType.list({ limit: 250, ...how })).data.map((one) => one.name);
  assert.ok(!(await names()).includes(other));
  assert.ok((await names({ includeArchived: true })).includes(other));
  assert.equal((await svix.eventType.get(other)).archived, true);
  await svix.eventType.delete(other, { expunge: true });
  await refused(404, () => svix.eventType.get(other));
  const schema = { type: "object", required: ["name"] };
  const post = { summary: "a pet", requestBody: { content: { "application/json": { schema } } } };
  const spec = { openapi: "3.1.0", webhooks: { [`pet.${LOT}`]: { post } } };
  const imported = await svix.eventType.importOpenapi({ spec });
  assert.deepEqual(imported.data.modified, [`pet.${LOT}`]);
  assert.equal((await svix.eventType.get(`pet.${LOT}`)).description, "a pet");
  said("event types: create, get, patch, list, upsert, archive, expunge, import");
  return name;
}

async function endpoints(app) {
  const url = sink.url("/a");
  const first = { url, uid: "ep-a", description: "the first", channels: ["c1"] };
  const endpoint = await svix.endpoint.create(app, first);
  assert.deepEqual(endpoint.channels, ["c1"]);
  assert.equal((await svix.endpoint.get(app, "ep-a")).id, endpoint.id);
  assert.equal((await svix.endpoint.patch(app, "ep-a", { channels: null })).channels, null);
  const replaced = await svix.endpoint.upsert(app, "ep-a", { url });
  assert.deepEqual([replaced.id, replaced.uid, replaced.description], [endpoint.id, "ep-a", ""]);
  await svix.endpoint.setHeaders(app, "ep-a", { headers: { "x-tenant": "t1", "x-api-key": "k" } });
  const headers = await svix.endpoint.getHeaders(app, "ep-a");
  assert.deepEqual(headers, { headers: { "x-tenant": "t1" }, sensitive: ["x-api-key"] });
  await svix.endpoint.patchHeaders(app, "ep-a", { headers: {}, deleteHeaders: ["X-Api-Key"] });
  assert.deepEqual((await svix.endpoint.getHeaders(app, "ep-a")).sensitive, []);
  await refused(422, () => svix.endpoint.create(app, { url: "http://169.254.169.254/" }));
  const secret = "whsec_TWZLUTlyOEdLWXFyVHdqVVBEOElMUFpJbzJMYUxhU3c=";
  await svix.endpoint.create(app, { url: sink.url("/own"), uid: "own", secret, disabled: true });
  assert.equal((await svix.endpoint.getSecret(app, "own")).key, secret);
  assert.equal((await svix.endpoint.list(app, { limit: 5 })).data.length, 2);
  await svix.endpoint.delete(app, "own");
  await refused(404, () => svix.endpoint.get(app, "own"));
  assert.deepEqual((await svix.endpoint.list(app)).data.map((one) => one.id), [endpoint.id]);
  said("endpoints: create, get, patch, upsert, headers, secret of one's own, gate, list, delete");
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
  const short = await svix.message.get(app, message.id, { withContent: false });
  assert.deepEqual(short.payload, {});
  await messagesUnderKeys(app, endpoint, eventType);
  said("messages: create, eventId, Idempotency-Key, schema, delivery, get, list, precheck, expunge");
  return message.id;
}

async function messagesUnderKeys(app, endpoint, eventType) {
  const active = async (kind) => (await svix.message.precheck(app, { eventType: kind })).active;
  await svix.endpoint.patch(app, endpoint, { eventTypes: [eventType] });
  assert.deepEqual([await active(eventType), await active("nobody.wants")], [true, false]);
  await svix.endpoint.patch(app, endpoint, { eventTypes: null });
  const before = sink.at("/a").length;
  const idempotencyKey = `key-${LOT}`;
  const create = (n) => svix.message.create(app, { eventType, payload: { n } }, { idempotencyKey });
  const made = await create(7);
  assert.equal((await create(7)).id, made.id);
  assert.equal((await refused(409, () => create(8))).code, "H0308");
  await arrived("/a", before + 1);
  await svix.message.expungeContent(app, made.id);
  const expunged = await svix.message.get(app, made.id, { withContent: true });
  assert.deepEqual(expunged.payload, { expired: true });
  const inline = { eventType, payload: { n: 5 }, application: { name: "inline" } };
  await svix.message.create(`js-inline-${LOT}`, inline);
  assert.equal((await svix.application.get(`js-inline-${LOT}`)).name, "inline");
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
  assert.ok(ofEndpoint.data.some((one) => one.msg.id === message));
  assert.deepEqual((await api.listByEndpoint(app, endpoint, { status: 2 })).data, []);
  const messages = (await api.listAttemptedMessages(app, endpoint)).data;
  assert.ok(messages.some((one) => one.id === message));
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
  assert.ok((await finished(task)).data.appStats[0].messageDestinations > 0);
  const types = await finished(await svix.statistics.aggregateEventTypes());
  const { id } = await svix.application.get(app);
  assert.ok(types.data.event_types.find((one) => one.appId === id).hasCatchAllEndpoint);
  said("operational webhooks, consumers of a poller, statistics");
}

const finished = (task) =>
  until("the task", async () => {
    const found = await svix.backgroundTask.get(task.id);
    return found.status === "finished" ? found : null;
  });

/** Has an endpoint tried once, which the SDK has no words for. */
async function triedOnce(app, endpoint) {
  const told = await fetch(`${serverUrl}/api/v1/app/${app}/endpoint/${endpoint}`, {
    method: "PATCH",
    headers: {
      authorization: `Bearer ${process.env.HAPAX_TOKEN}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ retrySchedule: [0] }),
  });
  assert.equal(told.status, 200);
}

async function recovery(app, eventType) {
  const since = new Date(Date.now() - 60_000);
  await svix.endpoint.create(app, { uid: "ep-b", url: sink.url("/b") });
  await triedOnce(app, "ep-b");
  sink.statuses["/b"] = 500;
  const message = await svix.message.create(app, { eventType, payload: { n: 9 } });
  await until("a dead letter", async () => {
    const { data } = await svix.messageAttempt.listAttemptedMessages(app, "ep-b", { status: 2 });
    return data.some((one) => one.id === message.id);
  });
  sink.statuses["/b"] = 200;
  const recovered = await finished(await svix.endpoint.recover(app, "ep-b", { since }));
  assert.equal(recovered.task, "endpoint.recover");
  assert.equal(recovered.data.messagesSent, 1);
  await arrived("/b", 2);
  await svix.endpoint.create(app, { uid: "ep-c", url: sink.url("/c") });
  const missed = await finished(await svix.endpoint.replayMissing(app, "ep-c", { since }));
  const sent = missed.data.messagesSent;
  assert.ok(sent >= 1);
  await arrived("/c", sent);
  await until("all of it is done", async () => {
    const { data } = await svix.messageAttempt.listAttemptedMessages(app, "ep-c", { status: 0 });
    return data.length === sent;
  });
  const bulk = await finished(await svix.endpoint.bulkReplay(app, "ep-c", { since }));
  assert.equal(bulk.data.messagesSent, sent);
  await arrived("/c", 2 * sent);
  const tasks = (await svix.backgroundTask.list({ limit: 50 })).data;
  assert.ok(tasks.some((one) => one.id === bulk.id));
  await svix.endpoint.sendExample(app, "ep-c", { eventType, exampleIndex: 1 });
  assert.equal((await arrived("/c", 2 * sent + 1)).at(-1).body, '{"n":2}');
  const polled = await svix.message.poller.poll(app, "ep-c", { limit: 1 });
  assert.equal(polled.data.length, 1);
  assert.equal(polled.done, false);
  const next = await svix.message.poller.poll(app, "ep-c", { iterator: polled.iterator });
  assert.ok(next.data.every((one) => one.id !== polled.data[0].id));
  await svix.endpoint.delete(app, "ep-b");
  await svix.endpoint.delete(app, "ep-c");
  said("recover, replayMissing, bulkReplay, background tasks, sendExample, poller");
}

async function portal(app) {
  const access = await svix.authentication.appPortalAccess(app, { sessionId: "s1" });
  assert.ok(access.url.includes(access.token));
  const consumer = new Svix(access.token, { serverUrl });
  assert.equal((await consumer.endpoint.list(app)).data.length, 1);
  await refused(403, () => consumer.application.list());
  await refused(403, () => consumer.endpoint.list(`js-inline-${LOT}`));
  const looks = await svix.authentication.appPortalAccess(app, { readOnly: true });
  const viewer = new Svix(looks.token, { serverUrl });
  await refused(403, () => viewer.endpoint.getSecret(app, "ep-a"));
  await viewer.authentication.logout();
  await refused(401, () => viewer.endpoint.list(app));
  await svix.authentication.expireAll(app, { sessionIds: ["s1"] });
  await refused(401, () => consumer.endpoint.list(app));
  said("portal: a token sees its own application, as its role allows, until it ends");
}

async function rest(app) {
  await svix.health.get();
  const quick = new Svix(process.env.HAPAX_TOKEN, { serverUrl, retryScheduleInMs: [] });
  // The SDK leaves the body of such an answer as it came.
  const notOffered = async (ask) => assert.equal(JSON.parse(await refused(501, ask)).code, "H0327");
  await notOffered(() => quick.integration.list(app));
  await notOffered(() => quick.streaming.stream.list());
  const flags = { featureFlags: ["beta"] };
  await notOffered(() => quick.authentication.appPortalAccess(app, flags));
  const stranger = new Svix("hpx_nobody", { serverUrl });
  assert.equal((await refused(401, () => stranger.application.list())).code, "H0301");
  await svix.application.delete(app);
  await refused(404, () => svix.application.get(app));
  said("health, 501, 401, delete");
}

server.listen(0, "127.0.0.1", async () => {
  const app = await apps();
  const eventType = await eventTypes();
  const endpoint = await endpoints(app);
  const message = await messages(app, endpoint, eventType);
  await attempts(app, endpoint, message);
  await rotation(app, endpoint, eventType);
  await operators(app, endpoint, eventType);
  await recovery(app, eventType);
  await portal(app);
  await rest(app);
  said("all well");
  process.exit(0);
});
