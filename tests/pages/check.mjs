// Drives the pages in a real Chromium, as people do: `cargo xt pages`. Ends at the first thing that is not as it should be.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { conflict, guard } from "./decide.mjs";
import { link, portal } from "./portal.mjs";
import { URL_, TOKEN, api, listen, send, sink, status, until } from "./world.mjs";

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SHOTS = process.env.HAPAX_SHOTS;
const CORPUS = ["<script>window.pwned=1</script>", "\"><img src=x onerror=window.pwned=1>", "</pre></template><svg onload=window.pwned=1>", "' onmouseover='window.pwned=1", "javascript:window.pwned=1"];

const server = await listen(Number(process.env.HAPAX_SINK_PORT));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const complaints = [];

/** A window; whatever its console says about errors or the policy is a complaint. */
const window_ = async (options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  page.on("console", (said) => { if (["error", "warning"].includes(said.type()) && !said.text().includes("status of 4")) complaints.push(`${page.url()}: ${said.text()}`); });
  page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error}`));
  return page;
};
/** Somebody who is logged in. */
const somebody = async (token, options = {}) => {
  const page = await window_(options);
  await page.goto(`${URL_}/login`);
  await page.fill("#token", token);
  await page.click("button[type=submit]");
  await page.waitForURL(`${URL_}/`);
  return page;
};
const step = (name) => console.log(`ok: ${name}`);
const token = async (role) => (await api("POST", "/token", { name: `a ${role}`, role })).token;

// The incident walk.
const admin = await somebody(TOKEN);
step("log in");
const failed = await send("order-1", "order.paid", { id: "ord_1" });
await status(failed, "dead");
await admin.goto(`${URL_}/`);
await admin.click(`a[href="/events/${failed}"]`);
assert.match(await admin.textContent("#verdict"), /This is safe/);
assert.match(await admin.textContent("main"), /no such plan/);
await admin.fill("#verdict-reason", "the plan is there now");
await admin.click('button:has-text("Dry run")');
await admin.waitForSelector("text=Nothing was changed");
assert.equal(await admin.inputValue("#verdict-reason"), "the plan is there now");
assert.equal(sink.seen.length, 1);
sink.broken = false;
await admin.click('button:has-text("Retry now")');
await admin.waitForSelector("text=The retry has begun");
await status(failed, "completed");
await admin.reload();
assert.match(await admin.textContent("#verdict"), /There is nothing to do/);
step("a half-failed event is understood, tried and done");

// An uncertain effect.
const unsure = await send("charge-1", "charge.made", { id: "ch_1" });
const effect = await until("an uncertain effect", async () => (await api("GET", `/event/${unsure}`)).effects.find((one) => one.state === "uncertain"));
await admin.goto(`${URL_}/events/${unsure}`);
assert.match(await admin.textContent("#verdict"), /Somebody has to decide/);
await admin.fill(`#resolve-${effect.id}`, "it is in their log");
await admin.click('button:has-text("It was applied")');
await admin.waitForSelector("text=The effect is settled");
step("an uncertain effect is settled");

// Many dead letters, with progress.
sink.broken = true;
const many = [];
for (let at = 0; at < 40; at += 1) many.push(await send(`bulk-${at}`, "order.bulk", { id: at }));
for (const id of many) await status(id, "dead");
sink.broken = false;
await admin.goto(`${URL_}/dead`);
await admin.fill("#b-type", "order.bulk");
await admin.fill("#b-rate", "20");
await admin.fill("#bulk-reason", "the target is back");
await admin.click('button:has-text("Replay them")');
await admin.waitForSelector("[data-progress]");
await admin.waitForSelector("[data-through]", { timeout: 30_000 });
assert.match(await admin.textContent("[data-through]"), /Sent40/);
for (const id of many) await status(id, "completed");
step("dead letters are replayed, and the page shows how far it is without being asked");

// The live list.
await admin.goto(`${URL_}/events`);
await admin.click("#follow");
await until("a live row", async () => {
  await send(`live-${Date.now()}`, "order.live", { id: "live" });
  return (await admin.locator("tr.fresh").count()) > 0;
});
await admin.click("#follow");
step("events show up live");

// Other decisions, and the consumers' side.
const disputed = await conflict(admin, step);
const guardKey = await guard(admin, step);
await admin.goto(`${URL_}/events?keyContains=bulk-3`);
assert.equal(await admin.locator("tbody tr").count(), 11);
step("events are found by a text in their key");
const guest = await window_();
const portalPaths = await portal(guest, `http://127.0.0.1:${process.env.HAPAX_SINK_PORT}`, step);
const acme = await api("GET", "/app/acme");
const [endpoint] = (await api("GET", "/app/acme/endpoint")).data;
const [replay] = (await api("GET", "/replay")).data;
assert.equal((await admin.goto(`${URL_}/no-such-page`)).status(), 404);
assert.match(await admin.textContent("main"), /nothing here by that name/i);
step("what is no page says so as a page");

// Roles.
const viewer = await somebody(await token("viewer"));
await viewer.goto(`${URL_}/events/${failed}`);
assert.equal(await viewer.locator("text=Retry now").count(), 0);
assert.equal((await viewer.goto(`${URL_}/audit`)).status(), 403);
step("viewers look and do not act");

// What came from outside stays text.
sink.broken = true;
const paths = ["/", "/events", "/effects", "/review", "/dead", "/replays", `/replays/${replay.id}`, "/sources", "/sources/demo", "/apps", "/guard", "/tokens", "/audit", "/settings", `/events/${failed}`, `/events/${unsure}`, disputed, guardKey, `/apps/${acme.id}`, `/apps/${acme.id}/endpoints/${endpoint.id}`, "/no-such-page"];
const own = paths.length;
for (const [at, text] of CORPUS.entries()) {
  const id = await send(`${at}${text}`, `order.${text}`, { id: text, all: CORPUS });
  await api("POST", "/token", { name: `${at}${text}`, role: "viewer", reason: text });
  const app = await api("POST", "/app", { name: text });
  paths.push(`/events/${id}`, `/apps/${app.id}`, `/events?type=${encodeURIComponent(text)}`, `/login?next=${encodeURIComponent(text)}`);
}
for (const path of paths) {
  await admin.goto(URL_ + path);
  assert.equal(await admin.evaluate(() => window.pwned), undefined, path);
}
step("nothing in payloads, names, keys and answers runs");

// Every page: reachable for all, readable on a phone, light and dark.
const shown = async (page, path, name) => {
  await page.goto(URL_ + path);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  assert.ok(!wide, `${path} scrolls sideways`);
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/${name}.png`, fullPage: true });
};
/** What a screenshot is called: ids are left out, so that it is the same every time. */
const events = { [`/events/${failed}`]: "event-done", [`/events/${unsure}`]: "event-resolved", [disputed]: "event-conflict" };
const named = (path) => events[path]
  ?? path.replace(/\/(evt|app|ep|msg|atmpt|key|rpl)_[^/]+/g, "-$1").replaceAll("/", "-").replace(/^-$/, "-overview").slice(1);
const axe = async (page, path) => {
  const found = await page.evaluate(async (source) => { (0, eval)(source); return (await window.axe.run()).violations; }, AXE);
  const serious = found.filter((one) => ["serious", "critical"].includes(one.impact));
  assert.deepEqual(serious.map((one) => `${path}: ${one.id}: ${one.nodes[0].html}`), []);
};
if (SHOTS) fs.mkdirSync(SHOTS, { recursive: true });
for (const [name, options] of [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["phone", { colorScheme: "light", viewport: { width: 390, height: 800 } }]]) {
  // axe is brought in from outside, which the pages' policy forbids to everybody else.
  const page = await somebody(TOKEN, { ...options, bypassCSP: true });
  for (const path of paths.slice(0, own + 1)) {
    await shown(page, path, `${named(path)}-${name}`);
    await axe(page, path);
  }
  await shown(page, "/login", `login-${name}`);
  await axe(page, "/login");
  const theirs = await window_({ ...options, bypassCSP: true });
  await theirs.goto(await link("acme"));
  await theirs.waitForURL("**/portal/endpoints");
  for (const path of portalPaths) {
    await shown(theirs, path, `${named(path)}-${name}`);
    await axe(theirs, path);
  }
  step(`all pages, ${name}`);
}

// Without a script, all of it can be read.
const plain = await somebody(TOKEN, { javaScriptEnabled: false });
await plain.goto(`${URL_}/events/${failed}`);
assert.match(await plain.textContent("#verdict"), /There is nothing to do/);
step("all can be read without scripts");

assert.deepEqual(complaints, []);
step("no complaint on any console");
await browser.close();
server.close();
