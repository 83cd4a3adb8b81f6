// Decisions of operators beside the incident walk: another body of the same event, and a guarded request of which nobody knows.
import assert from "node:assert/strict";
import { URL_, api, guarded, send, until } from "./world.mjs";

/** A delivery with another body: it is an event of its own. Says where its page is. */
export const conflict = async (page, step) => {
  const id = await send("twice-1", "order.twice", { id: "ord_9", amount: 10 });
  assert.equal(await send("twice-1", "order.twice", { id: "ord_9", amount: 20 }), id);
  await page.goto(`${URL_}/events/${id}`);
  const text = await page.textContent("main");
  assert.match(text, /brought another body/);
  assert.ok((await page.locator(".diff ins").count()) > 0, "the difference is shown");
  await page.fill('[id^="conflict-"]', "the second amount is right");
  await page.click('button:has-text("It is an event of its own")');
  await page.waitForSelector("text=Somebody decided");
  step("a conflict is seen side by side and decided");
  return `/events/${id}`;
};

/** A guarded request that hangs up on the way. Says where its page is. */
export const guard = async (page, step) => {
  await guarded("pay-1", "/silent").catch(() => null);
  const found = await until("a key that nobody knows about", async () => (await api("GET", "/guard/key?state=unknown")).data[0]);
  await page.goto(`${URL_}/guard`);
  await page.click(`a[href="/guard/${found.id}"]`);
  await page.fill("#key-reason", "it is not in the bank's log");
  await page.click('button:has-text("It did not: the key is free")');
  await page.waitForSelector("text=The key is settled");
  step("a guarded request of which nobody knew is settled");
  return `/guard/${found.id}`;
};
