// Sending again, messages for those who ask, figures.

import assert from "node:assert/strict";
import { LOT, arrived, finished, paged, refused, said, sink, svix, until } from "./scene.mjs";

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

/** Messages that are due later are not polled early; a consumer's place is kept by the server. */
export async function consumers(app) {
  const { poller } = svix.message;
  const [endpoint, eventType] = ["ep-polled", `polled.${LOT}`];
  const to = { url: sink.url("/polled"), uid: endpoint, eventTypes: [eventType], disabled: true };
  await svix.endpoint.create(app, to);
  const deliverAt = new Date(Date.now() + 2_000);
  const due = [];
  for (let number = 0; number < 3; number++) {
    due.push((await svix.message.create(app, { eventType, payload: {}, deliverAt })).id);
  }
  const ids = (page) => page.data.map((one) => one.id);
  const poll = (how) => poller.poll(app, endpoint, how);
  assert.deepEqual(ids(await poll()), []);
  const came = await until("their time", async () => {
    const found = ids(await poll());
    return found.length === 3 ? found : null;
  });
  assert.ok(Date.now() >= deliverAt);
  assert.deepEqual(came.toSorted(), due.toSorted());
  assert.deepEqual(await paged(poll), came);
  const asConsumer = (how) => poller.consumerPoll(app, endpoint, "worker", how);
  const first = await asConsumer({ limit: 1 });
  // It is shown until it is taken.
  assert.deepEqual([ids(first), ids(await asConsumer({ limit: 1 }))], [[came[0]], [came[0]]]);
  const second = await asConsumer({ limit: 1, iterator: first.iterator });
  assert.deepEqual(ids(second), [came[1]]);
  assert.deepEqual(ids(await asConsumer({ iterator: second.iterator })), [came[2]]);
  const behind = await refused(409, () => asConsumer({ iterator: first.iterator }));
  assert.equal(behind.code, "H0333");
  assert.ok((await poller.consumerSeek(app, endpoint, "worker", { after: deliverAt })).iterator);
  assert.deepEqual(ids(await asConsumer()), came);
  await svix.endpoint.delete(app, endpoint);
  said("poller: pages, nothing before its time; consumers: a place that is kept, 409, seek");
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
