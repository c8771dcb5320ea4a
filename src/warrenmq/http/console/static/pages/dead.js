// Dead letters as an inbox: in groups by how and where they died; look, send back, take back.
import { at, call, oneVhost } from "../api.js";
import { inVhost, sh } from "../commands.js";
import { act, note } from "../dialogs.js";
import { canonical } from "../diff.js";
import { bytes, counted, number, pretty, time } from "../format.js";
import { html, useState } from "../html.js";
import { useLive } from "../live.js";
import { Peek } from "../messages.js";
import { href, setQuery } from "../router.js";
import { Table } from "../table.js";
import { Card, Empty, Go, Head, Tag, Trouble } from "../ui.js";

const BY = /** @type {[string, string][]} */ ([["reason,queue", "reason and queue"], ["reason", "reason"], ["queue", "queue"], ["exchange", "exchange"]]);

/** The queues that dead letters reach: those bound to an exchange that some queue names for them.
 * @param {any[]} queues @param {any[]} bindings */
export function collecting(queues, bindings) {
  const exchanges = new Set();
  const found = new Set();
  for (const one of queues) {
    const dead = one.arguments?.["x-dead-letter-exchange"] ?? one.effective_policy_definition?.["dead-letter-exchange"];
    const key = one.arguments?.["x-dead-letter-routing-key"] ?? one.effective_policy_definition?.["dead-letter-routing-key"];
    if (dead === "" && key) found.add(key);
    else if (dead) exchanges.add(dead);
  }
  for (let size = -1; size !== exchanges.size;) {
    size = exchanges.size;
    for (const one of bindings) if (exchanges.has(one.source) && one.destination_type === "exchange") exchanges.add(one.destination);
  }
  for (const one of bindings) if (exchanges.has(one.source) && one.destination_type === "queue") found.add(one.destination);
  return queues.filter(one => found.has(one.name));
}

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const vhost = oneVhost(route.query);
  const { data: queues, problem } = useLive(at`queues/${vhost}` + "?columns=name,arguments,effective_policy_definition,messages,type");
  const { data: bindings } = useLive(at`bindings/${vhost}`);
  const boxes = queues && bindings ? collecting(queues, bindings) : null;
  const name = route.query.queue ?? boxes?.find(one => one.messages)?.name ?? boxes?.[0]?.name;
  return html`<${Head} title="Dead letters" sub=${`What was rejected, expired or did not fit in vhost ${vhost}: look at it, and send it back.`} /><${Trouble} problem=${problem} />
    ${boxes && boxes.length === 0 && !name ? html`<${Card}><${Empty} title="Nothing collects dead letters" text="Give a queue the argument x-dead-letter-exchange, or a policy with dead-letter-exchange, and bind a queue to that exchange."
      ><${Go} path=${["policies"]} query=${{ vhost }}>Set a policy<//><//><//>`
    : name && html`<div class="row"><label for="d-queue">Queue</label><select id="d-queue" value=${name} onChange=${(/** @type {any} */ event) => setQuery({ queue: event.target.value, group: "", first: "" })}>
        ${(boxes ?? []).map(one => html`<option value=${one.name}>${one.name} (${number(one.messages)})</option>`)}${boxes && !boxes.some(one => one.name === name) && html`<option value=${name}>${name}</option>`}</select>
        <label for="d-by">by</label><select id="d-by" value=${BY.some(([id]) => id === route.query.by) ? route.query.by : route.query.by ? "header" : "reason,queue"} onChange=${(/** @type {any} */ event) => setQuery({ by: event.target.value === "header" ? "header:error" : event.target.value, group: "" })}>
          ${BY.map(([id, label]) => html`<option value=${id}>${label}</option>`)}<option value="header">a header</option></select>
        ${route.query.by?.startsWith("header:") && html`<input aria-label="header" value=${route.query.by.slice(7)} onChange=${(/** @type {any} */ event) => setQuery({ by: `header:${event.target.value}`, group: "" })} />`}</div>
      <${Inbox} key=${vhost + name} vhost=${vhost} name=${name} route=${route} /><${Transfers} vhost=${vhost} />`}`;
}

/** What peek and redrive are asked for to get one group.
 * @param {Record<string, string>} by */
const headersOf = by => Object.entries(by).filter(([, value]) => value !== "").map(([name, value]) => name.startsWith("header:") ? `${name.slice(7)}:${value}` : `x-first-death-${name}:${value}`);

/** @param {{vhost: string, name: string, route: import("../router.js").Route}} props */
function Inbox({ vhost, name, route }) {
  const path = at`queues/${vhost}/${name}`;
  const by = (route.query.by ?? "reason,queue").split(",").map(one => `by=${encodeURIComponent(one)}`).join("&");
  const { data, problem } = useLive(`${path}/deaths?${by}`);
  const [preview, setPreview] = useState(/** @type {any} */ (null));
  const groups = data?.groups ?? [];
  const chosen = groups.find((/** @type {any} */ one) => JSON.stringify(one.by) === route.query.group);
  const header = chosen ? headersOf(chosen.by) : [];
  const options = header.map(one => sh` -H ${one.replace(":", "=")}`).join("");
  const redrive = (/** @type {boolean} */ dry) => act({
    title: dry ? "What would a redrive do?" : `Redrive ${chosen ? number(chosen.messages) : "all"} dead letters of ${name}`, verb: dry ? "Preview" : "Redrive",
    text: dry ? "Nothing is sent." : "They go back to the exchange and with the key of their first death, and leave this queue. It can be undone for what nobody has touched meanwhile.",
    done: answer => dry ? "looked" : `transfer ${answer.id} is on its way`,
    after: async answer => { if (dry) setPreview(await settled(vhost, answer.id)); },
    fields: [{ name: "limit", label: "At most", type: "number" }, { name: "exchange", label: "To another exchange", hint: "empty: that of the first death" }, { name: "routing_key", label: "With another key", hint: "empty: that of the first death" }],
    action: v => ({ method: "POST", path: `${path}/redrive`, body: { ...(header.length ? { header } : {}), ...(v.limit ? { limit: v.limit } : {}), ...(v.exchange ? { exchange: v.exchange } : {}), ...(v.routing_key ? { routing_key: v.routing_key } : {}), ...(dry ? { dry_run: true } : {}) },
      warren: sh`warren redrive ${name}` + inVhost(vhost) + options + (v.limit ? ` --limit ${v.limit}` : "") + (v.exchange ? sh` --to ${v.exchange}` : "") + (v.routing_key ? sh` --to-key ${v.routing_key}` : "") + (dry ? " --dry-run" : "") }),
  });
  return html`<${Trouble} problem=${problem} />
    ${data && (groups.length === 0 ? html`<${Card}><${Empty} title="The inbox is empty" text=${`No dead letter waits in ${name}.`} /><//>` : html`<div class="inbox"><div class="list groups"><nav aria-label="Groups of dead letters">
      <a href=${href(["dead"], { ...route.query, group: "", first: "" })} aria-current=${chosen ? undefined : "true"}><b>All</b><span class="soft">${counted(groups.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.messages, 0), "dead letter")}</span></a>
      ${groups.map((/** @type {any} */ one) => html`<a key=${JSON.stringify(one.by)} href=${href(["dead"], { ...route.query, group: JSON.stringify(one.by), first: "" })} aria-current=${one === chosen ? "true" : undefined}>
        <b>${Object.values(one.by).filter(Boolean).join(" · ") || "no dead letters"}</b><span class="soft">${counted(one.messages, "message")}${one.redriven ? `, ${number(one.redriven)} sent back before` : ""}</span></a>`)}</nav></div>
      <div class="grid one"><${Card} title=${chosen ? Object.values(chosen.by).filter(Boolean).join(" · ") : "All of them"} aside=${html`<div class="actions"><button onClick=${() => redrive(true)}>Preview</button><button class="main" onClick=${() => redrive(false)}>Redrive</button></div>`}>
        ${preview && html`<div class="hint" role="status">Of ${number(preview.matched)} messages ${number(preview.sent)} would go back: ${Object.entries(preview.targets).map(([to, n]) => `${n} to ${to}`).join(", ") || "none"}.
          ${Object.entries(preview.stayed).map(([why, n]) => html`<div>${n} would stay: ${why}</div>`)}</div>`}<//>
      <${Peek} vhost=${vhost} name=${name} route=${route} headers=${header} actions=${(/** @type {any} */ item) => item.state === "waiting" && html`<button onClick=${() => edit(vhost, name, item).catch(error => note(error.message, true))}>Edit</button>`} /></div></div>`)}`;
}

const EDITED = 256 << 10; // octets of a body that the broker lets one edit

/** A dead letter goes back as another one: what is changed of it, and where to.
 * @param {string} vhost @param {string} name @param {any} item */
async function edit(vhost, name, item) {
  const path = at`queues/${vhost}/${name}`;
  const place = item.properties.message_id ?? `at position ${item.position}`;
  if (item.payload_bytes > EDITED) throw new Error(`${place}: ${bytes(item.payload_bytes)} are too long to be edited. Download it, and publish what you make of it.`);
  const whole = (await call("GET", `${path}/peek?first=${item.position}&end=${item.position + 1}&truncate=${EDITED}`)).items[0];
  if (!whole) throw new Error(`${place} is no longer here`);
  const { headers = {}, content_type = "" } = Array.isArray(whole.properties) ? {} : whole.properties;
  const own = Object.fromEntries(Object.entries(headers).filter(([key]) => !key.startsWith("x-death") && !key.startsWith("x-first-death") && !key.startsWith("x-last-death") && key !== "x-redriven"));
  const encoding = whole.payload_encoding;
  act({ title: `Edit message ${place} of ${name}, and send it back`, verb: "Send it back", done: answer => `transfer ${answer.id} is on its way`,
    text: "It leaves this queue as you change it here, to the exchange and with the key of its first death. The journal keeps what it was, and that it was you. Undo, below, brings it back as it was while nobody has touched it.",
    fields: [{ name: "payload", label: encoding === "string" ? "Body" : "Body, in base64", type: "textarea", rows: 7, value: whole.payload }, { name: "content_type", label: "Content type", value: content_type },
      { name: "headers", label: "Headers", type: "json", rows: 5, value: pretty(own), hint: "take a line away and the header goes; those of its deaths stay" },
      { name: "exchange", label: "To another exchange", hint: "empty: that of the first death" }, { name: "routing_key", label: "With another key", hint: "empty: that of the first death" }],
    action: v => ({ method: "POST", path: `${path}/redrive`, body: { ...(v.exchange ? { exchange: v.exchange } : {}), ...(v.routing_key ? { routing_key: v.routing_key } : {}),
      edit: { position: item.position, ...(v.payload === whole.payload ? {} : { payload: v.payload, payload_encoding: encoding }), ...(v.content_type === content_type ? {} : { content_type: v.content_type }), headers: changed(own, v.headers) } } }) });
}

/** Headers that are others, and null for those that go.
 * @param {Record<string, any>} before @param {Record<string, any>} after */
const changed = (before, after) => ({ ...Object.fromEntries(Object.keys(before).filter(key => !(key in after)).map(key => [key, null])),
  ...Object.fromEntries(Object.entries(after).filter(([key, value]) => canonical(value) !== canonical(before[key]))) });

/** @param {string} vhost @param {string} id */
async function settled(vhost, id) {
  for (let n = 0; n < 100; n++) {
    const found = await call("GET", at`transfers/${vhost}/${id}`);
    if (found.ended) return found;
    await new Promise(done => setTimeout(done, 100));
  }
  return null;
}

/** @param {{vhost: string}} props */
function Transfers({ vhost }) {
  const { data } = useLive(at`transfers/${vhost}`);
  const rows = data?.filter((/** @type {any} */ one) => !one.dry_run).reverse();
  if (!rows?.length) return null;
  const undo = (/** @type {any} */ one) => act({ title: `Undo transfer ${one.id}`, text: "What nobody has touched since comes back to where it was.", verb: "Undo", done: "it is being taken back",
    action: () => ({ method: "POST", path: at`transfers/${vhost}/${one.id}/undo`, warren: sh`warren transfers undo ${one.id}` + inVhost(vhost) }) });
  const stop = (/** @type {any} */ one) => act({ title: `Stop transfer ${one.id}`, text: "What is sent is sent.", verb: "Stop", done: "stopped",
    action: () => ({ method: "DELETE", path: at`transfers/${vhost}/${one.id}`, warren: sh`warren transfers cancel ${one.id}` + inVhost(vhost) }) });
  return html`<${Card} title="Transfers"><${Table} bare rows=${rows} id=${(/** @type {any} */ row) => row.id} empty="" columns=${[
    { key: "kind", label: "what", show: (/** @type {any} */ row) => html`<b>${row.kind}</b> ${row.queue} → ${row.target}` }, { key: "state", label: "state", show: (/** @type {any} */ row) => html`<${Tag} kind=${row.problem ? "bad" : row.ended ? "good" : "warn"}>${row.state}<//>${row.problem}` },
    { key: "sent", label: "sent", num: true, show: (/** @type {any} */ row) => `${number(row.sent)} of ${number(row.matched)}` }, { key: "undo", label: "taken back", num: true, show: (/** @type {any} */ row) => row.undo ? number(row.undo.undone) : "" },
    { key: "started", label: "started", show: (/** @type {any} */ row) => time(row.started) }, { key: "user", label: "by", show: (/** @type {any} */ row) => row.user },
    { key: "", label: "", show: (/** @type {any} */ row) => !row.ended ? html`<button onClick=${() => stop(row)}>Stop</button>` : !row.undo && row.sent ? html`<button onClick=${() => undo(row)}>Undo</button>` : "" }]} /><//>`;
}

