// Operators, consumers, strangers.

import assert from "node:assert/strict";
import { LOT, arrived, client, refused, said, sink, svix, verified } from "./scene.mjs";

export async function operators(app, eventType) {
  const api = svix.operationalWebhook.endpoint;
  const uid = `ops-${LOT}`;
  const made = await api.create({ url: sink.url("/ops"), uid, eventTypes: ["endpoint.disabled"] });
  assert.equal((await api.get(made.id)).uid, uid);
  assert.ok((await api.list()).data.some((one) => one.id === made.id));
  await api.setHeaders(made.id, { headers: { "x-team": "ops" } });
  assert.deepEqual((await api.getHeaders(made.id)).headers, { "x-team": "ops" });
  const old = (await api.getSecret(made.id)).key;
  await api.rotateSecret(made.id, { gracePeriodSeconds: 3_600 });
  const fresh = (await api.getSecret(made.id)).key;
  assert.notEqual(fresh, old);
  await svix.endpoint.create(app, { uid: "gone", url: sink.url("/gone") });
  sink.statuses["/gone"] = 410;
  await svix.message.create(app, { eventType, payload: { n: 5 } });
  const one = (await arrived("/ops", 1))[0];
  verified(one, old);
  verified(one, fresh);
  assert.equal(one.headers["x-team"], "ops");
  assert.equal(JSON.parse(one.body).data.endpointUid, "gone");
  assert.equal((await svix.endpoint.get(app, "gone")).disabled, true);
  const changed = await api.upsert(made.id, { url: sink.url("/ops2") });
  assert.equal(changed.url, sink.url("/ops2"));
  await api.delete(made.id);
  await refused(404, () => api.get(made.id));
  await svix.endpoint.delete(app, "gone");
  said("operational webhooks: create, get, list, headers, rotation, a delivery that verifies, upsert, delete");
}

export async function portal(app) {
  const access = await svix.authentication.appPortalAccess(app, { sessionId: "s1" });
  assert.ok(access.url.includes(access.token));
  const consumer = client(access.token);
  assert.equal((await consumer.endpoint.list(app)).data.length, 1);
  await refused(403, () => consumer.application.list());
  await refused(403, () => consumer.endpoint.list(`js-inline-${LOT}`));
  const looks = await svix.authentication.appPortalAccess(app, { readOnly: true });
  const viewer = client(looks.token);
  await refused(403, () => viewer.endpoint.getSecret(app, "ep-a"));
  await viewer.authentication.logout();
  await refused(401, () => viewer.endpoint.list(app));
  await svix.authentication.expireAll(app, { sessionIds: ["s1"] });
  await refused(401, () => consumer.endpoint.list(app));
  said("portal: a token sees its own application, as its role allows, until it ends");
}

export async function refusals(app, message) {
  await svix.health.get();
  // The SDK leaves the body of such an answer as it came.
  const notOffered = async (ask) => assert.equal(JSON.parse(await refused(501, ask)).code, "H0327");
  await notOffered(() => svix.integration.list(app));
  await notOffered(() => svix.streaming.stream.list());
  await notOffered(() => svix.ingest.source.list());
  const flags = { featureFlags: ["beta"] };
  await notOffered(() => svix.authentication.appPortalAccess(app, flags));
  await notOffered(() => svix.message.bulkExpungeContent(app, { ids: [message] }));
  const api = svix.messageAttempt;
  const attempt = (await api.listByMsg(app, message)).data[0].id;
  await notOffered(() => api.expungeContent(app, message, attempt));
  const stranger = client("hpx_nobody");
  assert.equal((await refused(401, () => stranger.application.list())).code, "H0301");
  said("health; what is not offered answers 501 with a code, a stranger 401");
}
