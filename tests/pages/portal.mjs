// The consumers' portal as its guests walk it: in by a magic link, an endpoint of their own, what it got and did not get.
import assert from "node:assert/strict";
import { api, hooks, until } from "./world.mjs";

/** A magic link to an application's pages. */
export const link = async (app) => (await api("POST", `/auth/app-portal-access/${app}`, {})).url;

/** Applications, types and messages that the walk is about. */
const prepare = async () => {
  for (const uid of ["acme", "globex"]) await api("POST", "/app", { name: uid, uid });
  const schema = (example) => ({ 1: { type: "object", properties: { id: { type: "string" } }, examples: [example] } });
  await api("POST", "/event-type", { name: "invoice.paid", description: "An invoice was paid.", schemas: schema({ id: "inv_1" }) });
  await api("POST", "/event-type", { name: "invoice.voided", description: "An invoice was voided.", schemas: schema({ id: "inv_2" }) });
};

const publish = async (id, type = "invoice.paid") => (await api("POST", "/app/acme/msg", { eventType: type, payload: { id } })).id;

/** Deliveries of the endpoint that came so far, by path. */
const got = (path) => hooks.seen.filter((one) => one.path === path);

/** The walk. Says where its pages are. */
export const portal = async (page, sink, step) => {
  await prepare();
  await page.goto(await link("acme"));
  await page.waitForURL("**/portal/endpoints");
  assert.ok(!page.url().includes("key="), "the key is out of the address");
  step("portal: a magic link leads in");

  await page.click("text=Add an endpoint");
  await page.fill("#url", `${sink}/hooks`);
  await page.fill("#description", "books");
  await page.check('input[name="types"][value="invoice.paid"]');
  await page.click('button:has-text("Add the endpoint")');
  await page.waitForSelector('h1:has-text("/hooks")');
  const at = new URL(page.url()).pathname;
  step("portal: an endpoint is added");

  await page.selectOption("#example-type", "invoice.paid");
  await page.click('section:has-text("Send an example") button.main');
  await until("the example", async () => got("/hooks").length === 1);
  assert.equal(got("/hooks")[0].body, '{"id":"inv_1"}');
  step("portal: an example arrives");

  await page.click('nav a:has-text("Settings")');
  await page.check('input[name="types"][value="invoice.voided"]');
  await page.click('button:has-text("Save")');
  await page.waitForSelector(".note.good");
  await page.fill("#header-name", "x-team");
  await page.fill("#header-value", "blue");
  await page.click('button:has-text("Add or replace")');
  await page.waitForSelector("li:has-text('x-team')");
  await publish("with-header", "invoice.voided");
  await until("the header", async () => got("/hooks").some((one) => one.headers["x-team"] === "blue"));
  step("portal: event types and headers are changed, and count");

  await page.click('nav a:has-text("Secret")');
  await page.click('button:has-text("Show it")');
  const before = await page.textContent(".secret code");
  assert.match(before, /^whsec_/);
  await page.goto(page.url());
  await page.click('button:has-text("Make a new secret")');
  await page.waitForSelector(".secret code");
  const after = await page.textContent(".secret code");
  assert.match(after, /^whsec_/);
  assert.notEqual(after, before);
  const id = await publish("after-rotation");
  const signed = await until("a delivery", async () => got("/hooks").find((one) => one.headers["webhook-id"] === id));
  assert.equal(signed.headers["webhook-signature"].split(" ").length, 2, "both secrets sign for a while");
  step("portal: the secret is shown and rotated, and both sign");

  hooks.broken = true;
  const failed = await publish("fails");
  await until("it was given up", async () => (await api("GET", "/app/acme/dead-letter")).data.length === 1);
  await page.goto(new URL("/portal/messages", page.url()).href);
  await page.click(`a[href="/portal/messages/${failed}"]`);
  await page.waitForSelector("text=Attempts");
  await page.click('a[href*="/attempts/"]');
  const attempt = new URL(page.url()).pathname;
  const text = await page.textContent("main");
  assert.match(text, /fails/, "the request is shown");
  assert.match(text, /no room/, "and the answer");
  step("portal: a failed attempt is read, request and response");

  hooks.broken = false;
  await page.goto(new URL(at, page.url()).href);
  await page.click('button:has-text("Send failed again")');
  await page.waitForSelector(".note.good");
  await until("what had failed", async () => got("/hooks").some((one) => one.headers["webhook-id"] === failed && one.well));
  step("portal: what failed is sent again");

  await page.click('nav a:has-text("Settings")');
  await page.click('button:has-text("Disable it")');
  await page.waitForSelector(".note");
  const missed = await publish("missed");
  await page.goto(new URL(at, page.url()).href);
  await page.click('button:has-text("Enable it")');
  await page.waitForSelector(".note.good");
  await page.click('button:has-text("Send missed")');
  await page.waitForSelector(".note.good");
  await until("what was missed", async () => got("/hooks").some((one) => one.headers["webhook-id"] === missed));
  step("portal: what was missed is sent");

  await page.goto(await link("globex"));
  await page.waitForSelector("text=This link is of another application");
  await page.click("text=Stay at acme");
  await page.waitForURL("**/portal/endpoints");
  await page.waitForSelector("text=/hooks");
  step("portal: a link of another application asks first");
  return ["/portal/endpoints", "/portal/endpoints/new", at, `${at}/settings`, `${at}/secret`, `${at}/verify`, "/portal/messages", `/portal/messages/${failed}`, attempt, "/portal/events", "/portal/events/invoice.paid", "/portal/verify"];
};
