// Messages, what became of them, and what they are signed with.

import assert from "node:assert/strict";
import { Webhook, messageInRaw } from "svix";
import { LOT, arrived, finished, paged, refused, said, sink, svix, until, verified } from "./scene.mjs";

export async function messages(app, endpoint, eventType) {
  const secret = (await svix.endpoint.getSecret(app, endpoint)).key;
  const payload = { n: 1, text: "grün" };
  const first = { eventType, eventId: `evt-${LOT}`, payload, tags: ["t1"], channels: ["c1"] };
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
  const [earlier, later] = [new Date(Date.now() - 60_000), new Date(Date.now() + 60_000)];
  assert.deepEqual([await list({ after: later }), await list({ before: earlier })], [[], []]);
  assert.deepEqual(await list({ after: earlier, before: later }), [message.id]);
  assert.deepEqual([await list({ channel: "c1" }), await list({ channel: "c2" })], [[message.id], []]);
  const short = await svix.message.get(app, message.id, { withContent: false });
  assert.deepEqual(short.payload, {});
  const second = await messagesUnderKeys(app, endpoint, eventType);
  const listed = await paged((how) => svix.message.list(app, how));
  assert.deepEqual(listed, [second, message.id]);
  await raw(app);
  said("messages: create, eventId, Idempotency-Key, schema, delivery, get, list, filters, precheck, raw, expunge");
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
  return made.id;
}

/** Payloads that are sent byte for byte, under a type of their own. */
async function raw(app) {
  const [eventType, json, xml] = [`raw.${LOT}`, '{"done" :  "\\u0079es"}\n', "<done/>\n"];
  await svix.endpoint.create(app, { url: sink.url("/raw"), uid: "ep-raw", eventTypes: [eventType] });
  const secret = (await svix.endpoint.getSecret(app, "ep-raw")).key;
  const before = sink.at("/a").length;
  await svix.message.create(app, messageInRaw(eventType, json));
  const [first] = await arrived("/raw", 1);
  assert.deepEqual([first.body, first.headers["content-type"]], [json, "application/json"]);
  verified(first, secret);
  const message = await svix.message.create(app, messageInRaw(eventType, xml, "text/xml"));
  const second = (await arrived("/raw", 2))[1];
  assert.deepEqual([second.body, second.headers["content-type"]], [xml, "text/xml"]);
  // The package of the standard takes JSON only.
  new Webhook(secret).verify(second.body, second.headers);
  const got = await svix.message.get(app, message.id, { withContent: true });
  assert.deepEqual(got.payload, { rawPayload: xml });
  // The first endpoint takes all types. Once it has these, what it has seen changes no more.
  await arrived("/a", before + 2);
  await svix.endpoint.delete(app, "ep-raw");
}

/** Ends the payloads of all messages. */
export async function expungeAll(app, eventType) {
  const message = await svix.message.create(app, { eventType, payload: { n: 99 } });
  const task = await svix.message.expungeAllContents(app);
  assert.equal(task.task, "application.purge_content");
  assert.ok((await finished(task)).data.messagesPurged >= 1);
  const got = await svix.message.get(app, message.id, { withContent: true });
  assert.deepEqual(got.payload, { expired: true });
  said("messages: expungeAllContents");
}

export async function attempts(app, endpoint, message) {
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
  const both = await until("two attempts", async () => {
    const { data } = await api.listByMsg(app, message);
    return data.length === 2 ? data.map((one) => one.id) : null;
  });
  assert.deepEqual(await paged((how) => api.listByMsg(app, message, how)), both);
  const stats = await until("figures", async () => {
    const found = await svix.endpoint.getStats(app, endpoint);
    return found.success >= 3 ? found : null;
  });
  assert.equal(stats.fail, 0);
  said("attempts: by message, by endpoint, by pages, one, destinations, resend, stats");
}

export async function rotation(app, endpoint, eventType) {
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
