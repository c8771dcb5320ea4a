// What if: which of the newest messages would have gone elsewhere under another binding, policy, or other definitions.
import { call, oneVhost } from "../api.js";
import { curl, sh } from "../commands.js";
import { Commands, Input } from "../dialogs.js";
import { number, time } from "../format.js";
import { html, useEffect, useMemo, useState } from "../html.js";
import { go, href } from "../router.js";
import { Table } from "../table.js";
import { Card, Empty, Exchange, Go, Head, Queue, Stat, Tag, Trouble } from "../ui.js";

/** @typedef {import("../dialogs.js").Field} Field */
/** @typedef {{id: string, label: string, fields: Field[], asked: (v: any, vhost: string) => any}} Change */

const TO = /** @type {Field[]} */ ([{ name: "source", label: "From exchange", required: true }, { name: "kind", label: "To", type: "select", options: ["queue", "exchange"] }, { name: "destination", label: "Name", required: true }]);
const ARGUMENTS = /** @type {Field} */ ({ name: "arguments", label: "Arguments", hint: 'of headers exchanges: {"x-match": "all", "kind": "order"}' });

/** Each as it is said to the API. @type {Change[]} */
const CHANGES = [
  { id: "unbind", label: "a binding were taken away", fields: [...TO, { name: "which", label: "Which", type: "select", options: [["one", "that with this key"], ["all", "all between the two"]] }, { name: "key", label: "Routing key" }, ARGUMENTS],
    asked: (v, vhost) => ({ delete: { bindings: [{ vhost, source: v.source, destination_type: v.kind, destination: v.destination, ...(v.which === "all" ? {} : { routing_key: v.key, arguments: json(v.arguments, "Arguments") }) }] } }) },
  { id: "bind", label: "a binding were added", fields: [...TO, { name: "key", label: "Routing key" }, ARGUMENTS],
    asked: (v, vhost) => ({ put: { bindings: [{ vhost, source: v.source, destination_type: v.kind, destination: v.destination, routing_key: v.key, arguments: json(v.arguments, "Arguments") }] } }) },
  { id: "policy", label: "a policy were set or another one", fields: [{ name: "name", label: "Name", required: true }, { name: "pattern", label: "Pattern", required: true, hint: "a regular expression for names" },
    { name: "apply", label: "Applies to", type: "select", options: ["all", "queues", "exchanges"] }, { name: "priority", label: "Priority", type: "number", value: "0" }, { name: "definition", label: "Definition", required: true, hint: 'for example {"max-length": 1000}' }],
    asked: (v, vhost) => ({ put: { policies: [{ vhost, name: v.name, pattern: v.pattern, "apply-to": v.apply, priority: Number(v.priority || 0), definition: json(v.definition, "Definition") }] } }) },
  { id: "unpolicy", label: "a policy were taken away", fields: [{ name: "name", label: "Name", required: true }], asked: (v, vhost) => ({ delete: { policies: [{ vhost, name: v.name }] } }) },
  { id: "definitions", label: "these definitions held", fields: [{ name: "definitions", label: "An export of definitions, or what is to be put and deleted", type: "textarea", rows: 10, required: true, hint: 'for example {"delete": {"queues": [{"name": "orders"}]}}' }],
    asked: v => { const found = json(v.definitions, "Definitions"); return "put" in found || "delete" in found || "definitions" in found ? found : { definitions: found }; } },
];
const AGES = /** @type {Record<string, [number, string]>} seconds back */ ({ "10m": [600, "10 minutes"], "1h": [3600, "hour"], "8h": [28800, "8 hours"], "24h": [86400, "24 hours"] });

/** @param {string | undefined} text @param {string} label */
function json(text, label) {
  if (!text?.trim()) return {};
  let found;
  try { found = JSON.parse(text); } catch { throw new Error(`${label}: this is no JSON`); }
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new Error(`${label}: this is no JSON object`);
  return found;
}

/** @param {Change} change @param {any} given */
const filled = (change, given) => Object.fromEntries(change.fields.map(field => [field.name, given[field.name] ?? field.value ?? (field.type === "select" ? [field.options?.[0]].flat()[0] : "")]));

/** What is asked: of a link, or of what was just typed. Definitions are too long for the address: they stay here.
 * @param {Record<string, string>} query @param {string} text
 * @returns {{body: any, wrong: string} | null} */
function question(query, text) {
  const change = CHANGES.find(one => one.id === query.change);
  const given = /** @type {Record<string, string>} */ ({ ...query, definitions: text });
  if (!change || change.fields.some(field => field.required && !given[field.name])) return null;
  try { return { body: change.asked(filled(change, given), oneVhost(query)), wrong: "" }; } catch (error) { return { body: null, wrong: /** @type {Error} */ (error).message }; }
}

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const { query } = route;
  const here = href(["whatif"], query);
  const [typed, setTyped] = useState({ at: "", text: "" }); // of one address: both are new together
  const [round, setRound] = useState(0);
  const [told, setTold] = useState(/** @type {{key: string, found: any, problem: any} | null} */ (null));
  const asked = question(query, typed.at === here ? typed.text : "");
  const age = AGES[query.age] ? query.age : "1h";
  const key = asked?.body ? JSON.stringify([asked.body, age, round]) : "";
  const body = useMemo(() => ({ ...asked?.body, since: new Date(Date.now() - AGES[age][0] * 1000).toISOString() }), [key]);
  useEffect(() => {
    if (!key) return undefined;
    let gone = false;
    const tell = (/** @type {any} */ found, /** @type {any} */ problem) => { if (!gone) setTold({ key, found, problem }); };
    call("POST", "/whatif", body).then(found => tell(found, null), problem => tell(null, problem));
    return () => { gone = true; };
  }, [key]);
  const now = told?.key === key ? told : null;
  const busy = key !== "" && !now;
  const ask = (/** @type {any} */ values) => {
    const wanted = { vhost: query.vhost, ...values, definitions: "" };
    setTyped({ at: href(["whatif"], wanted), text: values.definitions ?? "" });
    if (href(["whatif"], wanted) === here) setRound(n => n + 1); else go(["whatif"], wanted);
  };
  const unwell = now?.problem?.status === 503;
  return html`<${Head} title="What if" sub=${`Which messages of the journal would have fared otherwise in vhost ${oneVhost(query)}. Nothing is changed.`} />
    <${Asking} key=${JSON.stringify(query)} query=${query} text=${typed.text} age=${age} busy=${busy} ask=${ask} />
    <${Trouble} problem=${asked?.wrong ? new Error(asked.wrong) : null} />
    ${asked?.body && html`<${Commands} warren=${sh`printf %s ${JSON.stringify(asked.body)} | warren whatif - --since ${age}`} curl=${curl({ method: "POST", path: "/whatif", body })} />`}
    <div aria-busy=${busy}>${busy && html`<p class="soft" role="status">playing the messages through…</p>`}
      ${unwell ? html`<${Card}><${Empty} title="The journal gives no answer" text=${`${now?.problem.message}. What if is answered from the journal: the broker has to be started with --journal on, and to have recorded messages.`} /><//>` : html`<${Trouble} problem=${now?.problem ?? null} />`}</div>
    ${now?.found && html`<${Told} found=${now.found} />`}
    ${!asked && html`<${Card}><${Empty} title="Choose a change" text="Messages that were published are taken through the definitions that hold and through those you suppose, and compared. Bindings and policies have a link that leads here." /><//>`}`;
}

/** @param {{query: Record<string, string>, text: string, age: string, busy: boolean, ask: (values: any) => void}} props */
function Asking({ query, text, age, busy, ask }) {
  const [id, setId] = useState(CHANGES.some(one => one.id === query.change) ? query.change : CHANGES[0].id);
  const [raw, setRaw] = useState(/** @type {any} */ ({ ...query, definitions: text }));
  const [back, setBack] = useState(age);
  const change = CHANGES.find(one => one.id === id) ?? CHANGES[0];
  const values = filled(change, raw);
  const read = async (/** @type {any} */ event) => { const file = event.target.files[0]; if (!file) return; const text = await file.text(); setRaw((/** @type {any} */ now) => ({ ...now, definitions: text })); };
  const run = (/** @type {any} */ event) => { event.preventDefault(); ask({ change: id, age: back === "1h" ? "" : back, ...values }); };
  return html`<${Card}><form class="asking" onSubmit=${run}><div class="row">
      <div class="field"><label for="i-change">What if</label><select id="i-change" value=${id} onChange=${(/** @type {any} */ event) => setId(event.target.value)}>${CHANGES.map(one => html`<option value=${one.id}>${one.label}</option>`)}</select></div>
      <div class="field"><label for="i-age">Of the last</label><select id="i-age" value=${back} onChange=${(/** @type {any} */ event) => setBack(event.target.value)}>${Object.entries(AGES).map(([name, [, label]]) => html`<option value=${name}>${label}</option>`)}</select></div></div>
    <div class=${id === "definitions" ? "" : "fields"}>${change.fields.map(field => html`<${Input} key=${field.name} field=${field} value=${values[field.name]} change=${(/** @type {any} */ value) => setRaw((/** @type {any} */ now) => ({ ...now, [field.name]: value }))} />`)}</div>
    ${id === "definitions" && html`<div class="field"><label for="i-file">From a file</label><input id="i-file" type="file" accept=".json,application/json" onChange=${read} /></div>`}
    <div class="buttons"><button class="main" disabled=${busy}>Ask</button></div></form><//>`;
}

/** @param {{found: any}} props */
function Told({ found }) {
  const extent = found.since ? `published from ${time(found.since)} to ${time(found.until)}` : "in that time";
  if (!found.messages) return html`<${Card}><${Empty} title="No message to look at" text="The journal has none of that time that you may see; the last few seconds follow." /><//>`;
  const named = (/** @type {any[]} */ all) => all.map(one => one.queue).join(", ");
  return html`<dl class="stats"><${Stat} label="messages" value=${number(found.messages)} hint=${extent} /><${Stat} label="would fare otherwise" value=${number(found.changed)} /><${Stat} label="would be worse off" kind=${found.worse ? "bad" : "good"} value=${number(found.worse)} hint="unroutable, refused, dropped, expired" /></dl>
    ${!found.whole && html`<p class="hint">There were more messages than are looked at: these are the newest.</p>`}
    ${found.not_looked_into.length > 0 && html`<p class="hint">What becomes of messages in these queues is not known: ${named(found.not_looked_into)}.</p>`}
    ${found.unreadable.length > 0 && html`<p class="problem">Files of the journal that cannot be read: ${found.unreadable.join(", ")}.</p>`}
    ${found.items.length ? html`<${Card} title="What would be otherwise"><${Table} bare rows=${found.items} empty="" id=${(/** @type {any} */ row) => JSON.stringify([row.vhost, row.exchange, row.routing_key, row.queue, row.before, row.after])} columns=${COLUMNS} />
      ${found.more > 0 && html`<p class="soft">and ${number(found.more)} more kinds of difference</p>`}<//>` : html`<p class="fine" role="status">All of them would have fared as they did.</p>`}`;
}

/** @type {import("../table.js").Column[]} */
const COLUMNS = [
  { key: "messages", label: "messages", num: true, show: row => number(row.messages) },
  { key: "exchange", label: "published to", show: row => html`<${Exchange} vhost=${row.vhost} name=${row.exchange} />${row.vhost !== "/" && html`<br /><small>${row.vhost}</small>`}` },
  { key: "routing_key", label: "routing key", show: row => html`<code>${row.routing_key}</code>` },
  { key: "queue", label: "to whom", show: row => row.queue === null ? html`<span class="soft">its publisher is told</span>` : html`<${Queue} vhost=${row.vhost} name=${row.queue} />` },
  { key: "before", label: "as it is", show: row => row.before },
  { key: "after", label: "then", show: row => html`<${Tag} kind=${row.worse ? "bad" : ["there", "routed"].includes(row.after) ? "good" : "warn"}>${row.after}<//>` },
  { key: "", label: "", show: row => html`<${Go} path=${["where"]} query=${{ id: row.example.id }}>such as ${row.example.message_id ?? row.example.id}<//><br /><small>${time(row.first)}</small>` },
];
