// Messages as people read them, and the way to look into a queue without touching it.
import { at } from "./api.js";
import { inVhost, sh } from "./commands.js";
import { Commands } from "./dialogs.js";
import { curl } from "./commands.js";
import { bytes, download, duration, laidOut, number } from "./format.js";
import { html, useState } from "./html.js";
import { useLive } from "./live.js";
import { href, setQuery } from "./router.js";
import { Card, Empty, Facts, Json, Tag, Trouble } from "./ui.js";

/** @param {{items: any[], actions?: (item: any) => any}} props */
export const Messages = ({ items, actions }) => html`<div class="messages">${items.map((item, n) => html`<${Message} key=${item.position ?? n} item=${item} actions=${actions} />`)}</div>`;

/** @param {{item: any, actions?: (item: any) => any}} props */
function Message({ item, actions }) {
  const { headers, ...properties } = Array.isArray(item.properties) ? {} : item.properties;
  const id = item.properties?.message_id;
  return html`<article class="message"><header>
    ${item.position !== undefined && html`<b>#${number(item.position)}</b>`}${item.state && html`<${Tag} kind=${item.state === "held" ? "warn" : "good"}>${item.state}<//>`}
    ${item.redelivered && html`<${Tag} kind="warn">redelivered<//>`}<span><span class="soft">to</span> ${item.exchange || "(default)"} <span class="soft">with</span> <code>${item.routing_key}</code></span>
    <span class="soft grow">${bytes(item.payload_bytes)}${item.age_ms !== undefined && ` · ${duration(item.age_ms)} old`}</span>
    ${id && html`<a href=${href(["where"], { any: id })}>its life</a>`}
    <button onClick=${() => download(`message-${id ?? item.position ?? "body"}`, item.payload, item.payload_encoding)}>Download</button>${actions?.(item)}</header>
    <pre tabindex="0">${item.payload_encoding === "string" ? laidOut(item.payload) : item.payload}</pre>
    ${item.payload_encoding !== "string" && html`<small>octets that are no text, as base64</small>`}
    <details><summary>Properties and headers</summary><${Facts} pairs=${Object.entries(properties).map(([name, value]) => [name, String(value)])} />
      ${headers && html`<${Json} value=${headers} />`}${item.held && html`<h3>held by</h3><${Json} value=${item.held} />`}</details></article>`;
}

const FILTERS = /** @type {[string, string, string][]} */ ([["text", "Text in the body", ""], ["header", "Header", "name:value"], ["key", "Routing key", "order.*"], ["older", "Older than", "ms"]]);

/** @param {{vhost: string, name: string, route: import("./router.js").Route, actions?: (item: any) => any, extra?: Record<string, string>}} props */
export function Peek({ vhost, name, route, actions, extra = {} }) {
  const { query } = route;
  const [first, setFirst] = useState(0);
  const wanted = new URLSearchParams({ count: "20", truncate: "10000", ...extra, ...(first ? { first: String(first) } : {}) });
  for (const one of ["text", "header", "key", "older", "state"]) if (query[one]) wanted.append(one, query[one]);
  const path = at`queues/${vhost}/${name}/peek` + `?${wanted}`;
  const { data, problem } = useLive(path);
  const options = FILTERS.filter(([one]) => query[one]).map(([one]) => one === "header" ? sh` -H ${query[one].replace(":", "=")}` : one === "older" ? sh` --older ${query[one]}` : sh` --${one} ${query[one]}`).join("");
  return html`<${Card} title="Look, without taking anything">
    <div class="row">${FILTERS.map(([one, label, hint]) => html`<div class="field"><label for=${"peek-" + one}>${label}</label>
      <input id=${"peek-" + one} placeholder=${hint} value=${query[one] ?? ""} onChange=${(/** @type {any} */ event) => { setFirst(0); setQuery({ [one]: event.target.value }); }} /></div>`)}
      <div class="field"><label for="peek-state">Which</label><select id="peek-state" value=${query.state ?? "all"} onChange=${(/** @type {any} */ event) => setQuery({ state: event.target.value })}>
        <option value="all">all</option><option value="waiting">waiting</option><option value="held">held</option></select></div></div>
    <${Trouble} problem=${problem} />
    ${data && html`<p class="soft">${number(data.messages)} wait, ${number(data.messages_held)} are held; looked at ${number(data.looked)} to find these ${number(data.items.length)}.</p>`}
    ${data && (data.items.length ? html`<${Messages} items=${data.items} actions=${actions} />` : html`<${Empty} title="Nothing to see" text="No message is here that fits. Publish one, or widen the filters." />`)}
    ${data && html`<div class="buttons">${first > 0 && html`<button onClick=${() => setFirst(0)}>From the beginning</button>`}
      ${data.next < data.end && html`<button onClick=${() => setFirst(data.next)}>Go on</button>`}</div>`}
    <${Commands} warren=${sh`warren peek ${name}` + inVhost(vhost) + options + " --body"} curl=${curl({ method: "GET", path })} /><//>`;
}
