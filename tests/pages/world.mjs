// The world around the server: a sink for effects that a test can break and mend, a provider that signs, and the API.
import crypto from "node:crypto";
import http from "node:http";

export const URL_ = process.env.HAPAX_URL;
export const TOKEN = process.env.HAPAX_TOKEN;
const SECRET = Buffer.from("c2NoZW1hdGhlc2lzLXNhbXBsZS1zZWNyZXQ=", "base64");

/** A sink that refuses while it is `broken`, and hangs up where the path says so. */
export const sink = { broken: true, seen: [] };
/** Endpoints of consumers, on the same server: what came, and whether they are well. */
export const hooks = { broken: false, seen: [] };
const hook = (request, answer, body) => {
  const well = !hooks.broken;
  hooks.seen.push({ path: request.url, headers: request.headers, body, well });
  answer.writeHead(well ? 200 : 500, { "content-type": "text/plain" });
  answer.end(well ? "thanks" : "no room");
};
export const listen = (port) => new Promise((resolve) => {
  const server = http.createServer((request, answer) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk)).on("end", () => {
      if (request.url === "/hooks") { hook(request, answer, Buffer.concat(chunks).toString()); return; }
      sink.seen.push(request.headers["idempotency-key"]);
      if (request.url === "/silent") { request.socket.destroy(); return; }
      answer.writeHead(sink.broken ? 422 : 200, { "content-type": "text/html" });
      answer.end(sink.broken ? "<script>window.pwned = 1</script> no such plan" : "ok");
    });
  });
  server.listen(port, "127.0.0.1", () => resolve(server));
});

/** Sends an event as the provider would; gives its id. */
export const send = async (id, type, data) => {
  const body = JSON.stringify({ type, timestamp: new Date().toISOString(), data });
  const at = Math.floor(Date.now() / 1000);
  const proof = crypto.createHmac("sha256", SECRET).update(`${id}.${at}.${body}`).digest("base64");
  const headers = { "content-type": "application/json", "webhook-id": id, "webhook-timestamp": String(at), "webhook-signature": `v1,${proof}` };
  const answer = await fetch(`${URL_}/in/demo`, { method: "POST", headers, body });
  const told = await answer.json();
  if (!told.eventId) throw new Error(`not accepted: ${JSON.stringify(told)}`);
  return told.eventId;
};

/** A request through the guard. */
export const guarded = async (key, path) => fetch(`http://127.0.0.1:${process.env.HAPAX_GUARD_PORT}${path}`, {
  method: "POST", headers: { "idempotency-key": key, "x-caller": "ada", "content-type": "application/json" }, body: "{}",
});

export const api = async (method, path, body) => {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const answer = await fetch(`${URL_}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
};

/** Asks until there is an answer. */
export const until = async (what, ask) => {
  for (let tries = 0; tries < 300; tries += 1) {
    const found = await ask();
    if (found) return found;
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
  throw new Error(`never: ${what}`);
};
export const status = (id, wanted) => until(`${id} is ${wanted}`, async () => (await api("GET", `/event/${id}`)).status === wanted);
