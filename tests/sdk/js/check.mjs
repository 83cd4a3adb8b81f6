// Drives a Hapax server with the Svix SDK for JavaScript. Exits non-zero at the first thing that is not as the SDK expects it.
//
// `scene.mjs` says what it needs to know of the server.

import { consumers, recovery, statistics } from "./again.mjs";
import { apps, endpoints, eventTypes } from "./catalogue.mjs";
import { attempts, expungeAll, messages, rotation } from "./messages.mjs";
import { operators, portal, refusals } from "./people.mjs";
import { refused, said, svix } from "./scene.mjs";

const app = await apps();
const eventType = await eventTypes();
const endpoint = await endpoints(app);
const message = await messages(app, endpoint, eventType);
await attempts(app, endpoint, message);
await rotation(app, endpoint, eventType);
await recovery(app, eventType);
await consumers(app);
await statistics(app);
await operators(app, eventType);
await portal(app);
await refusals(app, message);
await expungeAll(app, eventType);
await svix.application.delete(app);
await refused(404, () => svix.application.get(app));
said("all well");
process.exit(0);
