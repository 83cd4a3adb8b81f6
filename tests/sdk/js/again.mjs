// Sending again, messages for those who ask, figures.

import assert from "node:assert/strict";
import { arrived, finished, refused, said, sink, svix, until } from "./scene.mjs";

export async function recovery(app, eventType) {
  const since = new Date(Date.now() - 60_000);
  await svix.endpoint.create(app, { uid: "ep-b", url: sink.url("/b") });
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
  await svix.endpoint.delete(app, "ep-b");
  await svix.endpoint.delete(app, "ep-c");
  said("recover, replayMissing, bulkReplay, background tasks, sendExample");
}

/** A consumer's place is kept by the server; whoever shows an older one is told so. */
export async function consumers(app, endpoint) {
  const { poller } = svix.message;
  const polled = await poller.poll(app, endpoint, { limit: 1 });
  assert.deepEqual([polled.data.length, polled.done], [1, false]);
  const rest = await poller.poll(app, endpoint, { iterator: polled.iterator });
  assert.ok(rest.data.every((one) => one.id !== polled.data[0].id));
  const poll = (how) => poller.consumerPoll(app, endpoint, "worker", how);
  const page = await poll({ limit: 1 });
  assert.equal((await poll({ limit: 1 })).data[0].id, page.data[0].id);
  const next = await poll({ limit: 1, iterator: page.iterator });
  assert.notEqual(next.data[0].id, page.data[0].id);
  await poll({ limit: 1, iterator: next.iterator });
  const behind = await refused(409, () => poll({ iterator: page.iterator }));
  assert.equal(behind.code, "H0333");
  assert.ok((await poller.consumerSeek(app, endpoint, "worker", { after: new Date() })).iterator);
  assert.deepEqual((await poll()).data, []);
  said("poller: pages; consumers: a place that is kept, 409, seek");
}

export async function statistics(app) {
  const day = 86_400_000;
  const time = { since: new Date(Date.now() - day), until: new Date(Date.now() + day) };
  const asked = (appIds) => svix.statistics.aggregateAppStats({ ...time, appIds });
  const task = await asked([app, "nobody"]);
  assert.deepEqual(task.unresolvedAppIds, ["nobody"]);
  const { appStats } = (await finished(task)).data;
  assert.deepEqual(appStats.map((one) => one.appUid), [app]);
  assert.ok(appStats[0].messageDestinations > 0);
  await refused(422, () => asked(["nobody"]));
  const types = await finished(await svix.statistics.aggregateEventTypes());
  const { id } = await svix.application.get(app);
  assert.ok(types.data.event_types.find((one) => one.appId === id).hasCatchAllEndpoint);
  said("statistics: attempts and subscriptions by application, unresolved ids");
}
