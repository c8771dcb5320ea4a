// Where is my message: its life as a timeline, and where it is now.
import { call } from "../api.js";
import { curl, sh } from "../commands.js";
import { Commands } from "../dialogs.js";
import { bytes, laidOut, number, time } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { go } from "../router.js";
import { Card, Empty, Facts, Head, Queue, Tag, Trouble } from "../ui.js";

const WAYS = /** @type {[string, string][]} */ ([["any", "id, message_id or correlation_id"], ["message_id", "message_id"], ["correlation_id", "correlation_id"], ["id", "the broker's own id"], ["header", "a header, name:value"], ["queue", "a queue it was in"]]);
const OPTIONS = /** @type {Record<string, string>} */ ({ any: "", message_id: "--message-id ", correlation_id: "--correlation-id ", id: "", header: "-H ", queue: "--queue " });

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const by = WAYS.map(([id]) => id).find(id => route.query[id]) ?? "any";
  const text = route.query[by] ?? "";
  const [way, setWay] = useState(by);
  const [typed, setTyped] = useState(text);
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const path = "/messages?" + new URLSearchParams({ [by]: text, ...(by === "queue" ? { vhost: route.query.vhost || "/" } : {}), limit: "20", body: "true" });
  useEffect(() => {
    setWay(by); // the address may be another one: back, or a link
    setTyped(text);
    setFound(null);
    setProblem(null);
    if (!text) return undefined;
    let gone = false;
    setBusy(true);
    call("GET", path).then(answer => { if (!gone) setFound(answer); }, error => { if (!gone) setProblem(error); }).finally(() => { if (!gone) setBusy(false); });
    return () => { gone = true; };
  }, [path]);
  const search = (/** @type {any} */ event) => { event.preventDefault(); go(["where"], { [way]: typed, vhost: route.query.vhost }); };
  return html`<${Head} title="Where is my message" sub="From the journal: who published it, where it went, who had it, how it ended." />
    <${Card}><form class="row" onSubmit=${search}><div class="field"><label for="w-way">Find by</label><select id="w-way" value=${way} onChange=${(/** @type {any} */ event) => setWay(event.target.value)}>${WAYS.map(([id, label]) => html`<option value=${id}>${label}</option>`)}</select></div>
      <div class="field grow"><label for="w-text">Value</label><input id="w-text" value=${typed} required onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} placeholder="order-4711" /></div><button class="main" disabled=${busy}>Find</button></form>
      ${text && html`<${Commands} warren=${sh`warren where ${""}`.replace("''", OPTIONS[by]) + sh`${by === "header" ? text.replace(":", "=") : text}`} curl=${curl({ method: "GET", path })} />`}<//>
    <${Trouble} problem=${problem} />${busy && html`<p class="soft" role="status">looking through the journal…</p>`}
    ${found && (found.items.length ? found.items.map((/** @type {any} */ item) => html`<${Life} key=${item.id} item=${item} />`)
      : html`<${Card}><${Empty} title="No such message" text=${found.known_from ? `The journal tells what happened from ${time(found.known_from)} to ${time(found.known_until)}; the last few seconds follow.` : "The journal has nothing yet; the last few seconds follow."} /><//>`)}
    ${!text && html`<${Card}><${Empty} title="Ask for one message" text="By the message_id your publisher gave it, or any header. Messages in lists have a link that leads here." /><//>`}`;
}

/** @param {{item: any}} props */
function Life({ item }) {
  const body = item.events.find((/** @type {any} */ event) => event.payload !== undefined);
  return html`<${Card} title=${item.message_id ? `message ${item.message_id}` : `message ${item.id}`} aside=${html`<${Tag} kind=${item.state === "waiting" ? "good" : item.state === "held" ? "warn" : ""}>${item.state}<//>`}>
    <div class="grid"><ul class="timeline">${item.events.map((/** @type {any} */ event) => html`<li class=${/acked|gone|purged|dead|settled|returned|refused|unroutable/.test(event.event) ? "end" : ""}><time>${time(event.time)}</time>${event.says}</li>`)}
      ${item.places.filter((/** @type {any} */ place) => place.now).map((/** @type {any} */ place) => html`<li class="now"><time>now</time>${place.now.says ?? place.now.state ?? place.state} <span class="soft">in</span> <${Queue} vhost=${place.vhost} name=${place.queue} /></li>`)}</ul>
      <div><${Facts} pairs=${[["broker's id", item.id], ["vhost", item.vhost], ["exchange", item.exchange || "(default)"], ["routing keys", item.routing_keys?.join(", ")], ["size", item.size === undefined ? undefined : bytes(item.size)],
        ["correlation_id", item.correlation_id || undefined], ["user", item.user], ["not recorded meanwhile", item.gaps?.length ? `${number(item.gaps.length)} gaps` : undefined]]} />
      ${body && html`<h3>Body</h3><pre tabindex="0">${body.payload_encoding === "base64" ? body.payload : laidOut(body.payload)}</pre>`}</div></div><//>`;
}
