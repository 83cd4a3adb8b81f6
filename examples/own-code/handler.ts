// Charges an order once, however often it is called: `node handler.mjs ORDER URL`.

const HAPAX = process.env.HAPAX_URL ?? "http://127.0.0.1:8080";
const TOKEN = process.env.HAPAX_TOKEN;
const [order, url] = process.argv.slice(2);

const ledger = async (path, body) => {
  const answer = await fetch(`${HAPAX}/api/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};

const charge = async () => ({ status: (await fetch(url, { method: "POST", body: order })).status });

const claim = await ledger("/effect/claim", {
  name: "charge-typescript",
  key: order,
  repeat: "once",
  leaseSeconds: 30,
});
if (claim.verdict !== "claimed") {
  // done: somebody has charged it, and here is what came of it. in_flight: somebody is at it. uncertain: ask a person.
  console.log(JSON.stringify(claim));
} else {
  const { effectId, fence } = claim;
  try {
    const result = await charge();
    await ledger(`/effect/${effectId}/settle`, { fence, outcome: "done", result });
    console.log(JSON.stringify({ verdict: "charged", result }));
  } catch (error) {
    // The card may have been charged, or not: say so.
    await ledger(`/effect/${effectId}/settle`, { fence, outcome: "uncertain", error: String(error) });
    throw error;
  }
}
