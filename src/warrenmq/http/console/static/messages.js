// Messages as people read them, and the way to look into a queue without touching it.
import { at, fetchFile } from "./api.js";
import { curl, inVhost, sh } from "./commands.js";
import { Commands, note } from "./dialogs.js";
import { bytes, download, dumped, duration, laidOut, number, octets } from "./format.js";
import { html } from "./html.js";
import { useLive } from "./live.js";
import { href, setQuery } from "./router.js";
import { Card, Empty, Facts, Json, Tag, Trouble } from "./ui.js";

/** @param {{items: any[], actions?: (item: any) => any, queue?: string}} props queue: its path, where they still are in it */
export const Messages = ({ items, actions, queue }) => html`<div class="messages">${items.map((item, n) => html`<${Message} key=${item.position ?? n} item=${item} actions=${actions} queue=${queue} />`)}</div>`;

const SHOWN = 10_000; // characters of a text
const DUMPED = 512; // octets of what is none

/** The body as people read it, and what has to be said of it.
 * @param {any} item @returns {[string, string]} */
function readable(item) {
  if (item.payload_encoding === "string") {
    const text = item.payload.slice(0, SHOWN);
    const whole = text.length === item.payload.length && new TextEncoder().encode(text).length === item.payload_bytes;
    return whole ? [laidOut(text), ""] : [text, `The beginning of ${bytes(item.payload_bytes)}: Download has all of it.`];
  }
  const part = octets(item.payload.slice(0, Math.ceil(DUMPED / 3) * 4)).slice(0, DUMPED);
  return [dumped(part), part.length < item.payload_bytes ? `No text: the first ${DUMPED} octets of ${bytes(item.payload_bytes)}. Download has all of it.` : "No text: its octets."];
}

/** The whole body as a file: what is looked at in a queue is asked for anew, as only its beginning is here.
 * @param {any} item @param {string | undefined} queue */
function save(item, queue) {
  const name = `message-${item.properties?.message_id ?? item.position ?? "body"}`;
  if (!queue || item.position === undefined) return download(name, item.payload, item.payload_encoding);
  return fetchFile(`${queue}/body?position=${item.position}`, name).catch(error => note(error.message, true));
}

/** @param {{item: any, actions?: (item: any) => any, queue?: string}} props */
function Message({ item, actions, queue }) {
  const [shown, rest] = readable(item);
  const { headers, ...properties } = Array.isArray(item.properties) ? {} : item.properties;
  const id = item.properties?.message_id;
  return html`<article class="message"><header>
    ${item.position !== undefined && html`<b>#${number(item.position)}</b>`}${item.state && html`<${Tag} kind=${item.state === "waiting" || item.state === "retained" ? "good" : "warn"}>${item.state}<//>`}
    ${item.redelivered && html`<${Tag} kind="warn">redelivered<//>`}<span><span class="soft">to</span> ${item.exchange || "(default)"} <span class="soft">with</span> <code>${item.routing_key}</code></span>
    <span class="soft grow">${bytes(item.payload_bytes)}${item.age_ms !== undefined && ` · ${duration(item.age_ms)} old`}</span>
    ${id && html`<a href=${href(["where"], { any: id })}>its life</a>`}
    <button onClick=${() => save(item, queue)}>Download</button>${actions?.(item)}</header>
    <pre tabindex="0">${shown}</pre>
    ${item.payload_bytes === 0 ? html`<small>an empty body</small>` : rest && html`<small>${rest}</small>`}
    <details><summary>Properties and headers</summary><${Facts} pairs=${Object.entries(properties).map(([name, value]) => [name, String(value)])} />
      ${headers && html`<${Json} value=${headers} />`}${item.held && html`<h3>held by</h3><${Json} value=${item.held} />`}</details></article>`;
}

const FILTERS = /** @type {[string, string, string][]} */ ([["text", "Text in the body", ""], ["header", "Header", "name:value"], ["key", "Routing key", "order.*"], ["older", "Older than, ms", "60000"]]);

/** @param {{vhost: string, name: string, route: import("./router.js").Route, actions?: (item: any) => any, headers?: string[]}} props headers: those that all have */
export function Peek({ vhost, name, route, actions, headers = [] }) {
  const { query } = route;
  const first = Number(query.first || 0);
  const setFirst = (/** @type {number} */ at) => setQuery({ first: at || "" });
  const wanted = new URLSearchParams({ count: "20", truncate: String(SHOWN), ...(first ? { first: String(first) } : {}) });
  for (const header of headers) wanted.append("header", header);
  for (const one of ["text", "header", "key", "older", "state"]) if (query[one]) wanted.append(one, query[one]);
  const path = at`queues/${vhost}/${name}/peek` + `?${wanted}`;
  const { data, problem } = useLive(path);
  const options = headers.map(one => sh` -H ${one.replace(":", "=")}`).join("") + FILTERS.filter(([one]) => query[one]).map(([one]) => one === "header" ? sh` -H ${query[one].replace(":", "=")}` : one === "older" ? sh` --older ${query[one]}` : ` --${one}` + sh` ${query[one]}`).join("") + (query.state === "held" || query.state === "waiting" ? ` --${query.state}` : "") + (first ? ` --from ${first}` : "");
  return html`<${Card} title="Look, without taking anything">
    <div class="fields">${FILTERS.map(([one, label, hint]) => html`<div class="field"><label for=${"peek-" + one}>${label}</label>
      <input id=${"peek-" + one} placeholder=${hint} value=${query[one] ?? ""} onChange=${(/** @type {any} */ event) => setQuery({ [one]: event.target.value, first: "" })} /></div>`)}
      <div class="field"><label for="peek-state">Which</label><select id="peek-state" value=${query.state ?? "all"} onChange=${(/** @type {any} */ event) => setQuery({ state: event.target.value, first: "" })}>
        <option value="all">all</option><option value="waiting">waiting</option><option value="held">held</option></select></div></div>
    <${Trouble} problem=${problem} />
    ${data && html`<p class="soft">${number(data.messages)} wait, ${number(data.messages_held)} are held; looked at ${number(data.looked)} to find these ${number(data.items.length)}.</p>`}
    ${data && (data.items.length ? html`<${Messages} items=${data.items} actions=${actions} queue=${at`queues/${vhost}/${name}`} />` : html`<${Empty} title="Nothing to see" text="No message is here that fits. Publish one, or widen the filters." />`)}
    ${data && html`<div class="buttons">${first > 0 && html`<button onClick=${() => setFirst(0)}>From the beginning</button>`}
      ${data.next < data.end && html`<button onClick=${() => setFirst(data.next)}>Go on</button>`}</div>`}
    <${Commands} warren=${sh`warren peek ${name}` + inVhost(vhost) + options + " --limit 20 --body"} curl=${curl({ method: "GET", path })} /><//>`;
}
