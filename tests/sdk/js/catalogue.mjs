// Applications, types of events, endpoints.

import assert from "node:assert/strict";
import { LOT, paged, refused, said, sink, svix } from "./scene.mjs";

export async function apps() {
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
  const found = await paged((how) => svix.application.list({ ...how, order: "descending" }));
  assert.ok(found.indexOf(second.id) >= 0 && found.indexOf(second.id) < found.indexOf(app.id));
  await svix.application.delete(second.id);
  assert.equal((await refused(404, () => svix.application.get(second.id))).code, "H0302");
  assert.ok(app.createdAt instanceof Date);
  const wrong = await refused(422, () => svix.application.create({ name: "x", uid: "a b" }));
  assert.deepEqual(wrong.detail[0].loc, ["body", "uid"]);
  said("applications: create, get, getOrCreate, upsert, patch, list, delete, 404, 409, 422");
  return uid;
}

export async function eventTypes() {
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
  const take = async (how) => (await svix.eventType.importOpenapi(how)).data;
  const would = await take({ spec, dryRun: true });
  assert.deepEqual([would.modified, would.toModify.map((one) => one.name)], [[], [`pet.${LOT}`]]);
  await refused(404, () => svix.eventType.get(`pet.${LOT}`));
  assert.deepEqual((await take({ spec })).modified, [`pet.${LOT}`]);
  assert.deepEqual((await take({ specRaw: JSON.stringify(spec) })).modified, [`pet.${LOT}`]);
  const yaml = await refused(422, () => take({ specRaw: "openapi: 3.1.0" }));
  assert.deepEqual(yaml.detail[0].loc, ["body", "specRaw"]);
  assert.equal((await svix.eventType.get(`pet.${LOT}`)).description, "a pet");
  said("event types: create, get, patch, list, upsert, archive, expunge, import");
  return name;
}

export async function endpoints(app) {
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
  const own = (await svix.endpoint.get(app, "own")).id;
  assert.deepEqual(await paged((how) => svix.endpoint.list(app, how)), [endpoint.id, own]);
  await svix.endpoint.delete(app, "own");
  await refused(404, () => svix.endpoint.get(app, "own"));
  assert.deepEqual((await svix.endpoint.list(app)).data.map((one) => one.id), [endpoint.id]);
  said("endpoints: create, get, patch, upsert, headers, secret of one's own, gate, list by pages, delete");
  return endpoint.id;
}
