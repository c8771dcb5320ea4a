// Delayed messages on a time axis: search, zoom, give another time, deliver now, cancel.
import { at, oneVhost } from "../api.js";
import { curl, inVhost, sh } from "../commands.js";
import { Commands, act } from "../dialogs.js";
import { bytes, duration, laidOut, number, time } from "../format.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { useLive } from "../live.js";
import { href, setQuery } from "../router.js";
import { Table } from "../table.js";
import { Card, Empty, Exchange, Head, Json, Queue, Tag, Trouble } from "../ui.js";

const MINUTE = 60000;
const SPANS = /** @type {[string, number][]} */ ([["10 min", 10 * MINUTE], ["1 h", 60 * MINUTE], ["1 day", 1440 * MINUTE], ["30 days", 43200 * MINUTE]]);
const BINS = 48;

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const { query } = route;
  const vhost = oneVhost(query);
  const wanted = new URLSearchParams({ limit: "300" });
  for (const one of ["exchange", "routing_key", "header", "message_id", "from", "to"]) if (query[one]) wanted.set(one, query[one]);
  const path = at`delayed/${vhost}` + `?${wanted}`;
  const { data, problem } = useLive(path);
  const items = data?.items ?? [];
  const filtered = ["exchange", "routing_key", "header", "message_id", "from", "to"].some(one => query[one]);
  const about = (/** @type {any} */ item) => ({ path: at`delayed/${vhost}/${item.id}`, query: item.exchange ? `?exchange=${encodeURIComponent(item.exchange)}` : "", word: (item.exchange ? sh` -e ${item.exchange}` : "") + inVhost(vhost) });
  const reschedule = (/** @type {any} */ item) => act({ title: `Give ${item.id} another time`, verb: "Reschedule", done: "it has another time",
    fields: [{ name: "at", label: "Due at (your time)", type: "datetime-local", value: local(item.due_ms) }],
    action: v => ({ method: "POST", path: about(item).path + "/reschedule" + about(item).query, body: { deliver_at: new Date(v.at).getTime() }, warren: sh`warren delayed reschedule ${item.id} --at ${String(new Date(v.at).getTime())}` + about(item).word }) });
  const deliver = (/** @type {any} */ item) => act({ title: `Deliver ${item.id} now`, text: "As if it were due.", verb: "Deliver", done: answer => answer.routed ? "delivered" : "no queue took it",
    action: () => ({ method: "POST", path: about(item).path + "/deliver-now" + about(item).query, warren: sh`warren delayed deliver-now ${item.id}` + about(item).word }) });
  const cancel = (/** @type {any} */ item) => act({ title: `Cancel ${item.id}`, text: "It will never be delivered.", danger: true, verb: "Cancel it", name: item.id, done: "cancelled",
    action: () => ({ method: "DELETE", path: about(item).path + about(item).query, warren: sh`warren delayed cancel ${item.id}` + about(item).word }) });
  const fields = /** @type {[string, string, string][]} */ ([["exchange", "Exchange", ""], ["routing_key", "Routing key", ""], ["header", "Header", "name:value"], ["message_id", "message_id", ""]]);
  return html`<${Head} title="Delayed messages" sub=${data ? `${number(data.messages_delayed)} wait in vhost ${vhost} for their time.` : ""}>
      <div class="segments" role="group" aria-label="zoom">${SPANS.map(([label, span]) => html`<button aria-pressed=${false} onClick=${() => setQuery({ from: String(Date.now()), to: String(Date.now() + span) })}>${label}</button>`)}
        <button aria-pressed=${!query.to} onClick=${() => setQuery({ from: "", to: "" })}>all</button></div><//>
    <${Trouble} problem=${problem} />
    <${Card} title="When they are due" aside=${query.to && html`<span class="soft">${time(Number(query.from))} – ${time(Number(query.to))}</span>`}>
      ${items.length ? html`<${Axis} items=${items} query=${query} from=${query.from ? Number(query.from) : undefined} to=${query.to ? Number(query.to) : undefined} />` : html`<p class="soft">${data ? "Nothing is due in this time." : "…"}</p>`}
      <div class="fields">${fields.map(([name, label, hint]) => html`<div class="field"><label for=${"s-" + name}>${label}</label><input id=${"s-" + name} value=${query[name] ?? ""} placeholder=${hint} onChange=${(/** @type {any} */ event) => setQuery({ [name]: event.target.value })} /></div>`)}</div>
      <${Commands} warren=${`warren delayed list` + (query.exchange ? sh` --exchange ${query.exchange}` : "") + inVhost(vhost)} curl=${curl({ method: "GET", path })} /><//>
    ${data?.next && html`<p class="soft">The first ${number(items.length)} by due time are shown. Zoom in or search for others.</p>`}
    ${!problem && html`<${Table} bare rows=${data ? items : null} id=${(/** @type {any} */ row) => row.id + row.exchange} empty=${filtered ? html`<${Empty} title="Nothing matches" text="Widen the search, or zoom out." />`
      : html`<${Empty} title="Nothing is delayed" text="Declare an exchange of type x-delayed-message and publish to it with the header x-delay, in milliseconds. Messages that wait for a retry are here too."><a href=${href(["exchanges"], { vhost })}>To the exchanges</a><//>`}
      columns=${[{ key: "due_ms", label: "due", show: (/** @type {any} */ row) => html`${time(row.due_ms)}<br /><small>in ${duration(row.due_ms - Date.now())}</small>` }, { key: "id", label: "id", show: (/** @type {any} */ row) => html`<code>${row.id}</code>${row.repeats && html`<br /><${Tag} kind="accent">repeats<//>`}` },
        { key: "exchange", label: "at", show: (/** @type {any} */ row) => row.queue ? html`<${Queue} vhost=${vhost} name=${row.queue} /> <${Tag}>retry ${row.retry}<//>` : html`<${Exchange} vhost=${vhost} name=${row.exchange} />` },
        { key: "routing_keys", label: "key", show: (/** @type {any} */ row) => html`<code>${row.routing_keys.join(", ")}</code>` },
        { key: "payload", label: "body", show: (/** @type {any} */ row) => html`<details><summary>${row.payload.slice(0, 60)} <small>${bytes(row.payload_bytes)}</small></summary><pre tabindex="0">${laidOut(row.payload)}</pre><${Json} value=${row.headers} /></details>` },
        { key: "", label: "", show: (/** @type {any} */ row) => html`<div class="actions">${!row.queue && html`<button onClick=${() => reschedule(row)}>Reschedule</button>`}<button onClick=${() => deliver(row)}>Deliver now</button>${!row.queue && html`<button class="danger" onClick=${() => cancel(row)}>Cancel</button>`}</div>` }]} />`}`;
}

/** As an input of the reader's local time wants it.
 * @param {number} ms */
function local(ms) {
  const date = new Date(ms);
  return new Date(ms - date.getTimezoneOffset() * MINUTE).toISOString().slice(0, 19);
}

const HEIGHT = 98; // of the highest bar
const moments = new Intl.DateTimeFormat(undefined, { month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", hour12: false });

/** As many bars as there is room for; each leads to its part of the time.
 * @param {{items: any[], query: Record<string, string>, from?: number, to?: number}} props */
function Axis({ items, query, from, to }) {
  const box = useRef(/** @type {any} */ (null));
  const [room, setRoom] = useState(960);
  useEffect(() => {
    const watch = new ResizeObserver(() => { if (box.current) setRoom(Math.max(200, Math.floor(box.current.clientWidth))); });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const bins = Math.max(12, Math.min(BINS, Math.floor(room / 16)));
  const first = from ?? Math.min(Date.now(), items[0].due_ms);
  const last = to ?? Math.max(items[items.length - 1].due_ms + 1, first + MINUTE);
  const width = (last - first) / bins;
  const wide = room / bins;
  const ticks = Math.max(1, Math.min(4, Math.floor(room / 170)));
  const counts = Array.from({ length: bins }, () => 0);
  for (const item of items) counts[Math.max(0, Math.min(bins - 1, Math.floor((item.due_ms - first) / width)))]++;
  const most = Math.max(...counts, 1);
  const high = (/** @type {number} */ count) => Math.max(4, HEIGHT * count / most);
  return html`<div ref=${box}><svg class="axis" width=${room} height="150" viewBox=${`0 0 ${room} 150`} role="group" aria-label="how many are due when"><text x="2" y="12">at most ${number(most)} in ${duration(width)}</text><line x1="0" x2=${room} y1="124" y2="124" />
    ${counts.map((count, n) => count > 0 && html`<a key=${n} href=${href(["delayed"], { ...query, from: String(Math.floor(first + n * width)), to: String(Math.ceil(first + (n + 1) * width)) })} aria-label=${`${count} due around ${time(first + (n + 0.5) * width)}: zoom`}>
      <title>${count} due around ${time(first + (n + 0.5) * width)}: click to zoom</title><rect class="bin" x=${n * wide} y="0" width=${wide} height="124" /><rect x=${n * wide + 1.5} width=${wide - 3} rx="3" y=${122 - high(count)} height=${high(count)} /></a>`)}
    ${Array.from({ length: ticks + 1 }, (_, n) => html`<text x=${Math.min(room - 2, Math.max(2, n * room / ticks))} y="142" text-anchor=${n === 0 ? "start" : n === ticks ? "end" : "middle"}>${moments.format(first + (last - first) * n / ticks)}</text>`)}</svg></div>`;
}
