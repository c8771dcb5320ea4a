// Queues and streams: the list, and one of them.
import { at, lookForVhosts } from "../api.js";
import { Chart, RATES, Ranges, SHORT, chosenRange, lengths, usePast, useRecent } from "../chart.js";
import { asArguments, inVhost, sh } from "../commands.js";
import { act } from "../dialogs.js";
import { bytes, counted, duration, number, rate, time } from "../format.js";
import { html, useState } from "../html.js";
import { useLive } from "../live.js";
import { Bindings, bindTo } from "../bindings.js";
import { Messages, Peek } from "../messages.js";
import { publish } from "../publish.js";
import { go } from "../router.js";
import { ServerTable, Table } from "../table.js";
import { Card, Empty, Explained, Facts, Head, Missing, Queue, Stat, Tabs, Tag } from "../ui.js";
import { CONSUMERS } from "./consumers.js";

/** @type {import("../table.js").Column[]} */
const COLUMNS = [
  { key: "name", label: "name", show: row => html`<${Queue} vhost=${row.vhost} name=${row.name} />` },
  { key: "vhost", label: "vhost", show: row => row.vhost },
  { key: "type", label: "type", show: row => html`<${Tag} kind=${row.type === "classic" ? "" : "accent"}>${row.type}<//>` },
  { key: "features", label: "features", sort: "policy", need: "durable,auto_delete,exclusive,arguments,policy,operator_policy,state", show: row => html`<${Features} queue=${row} />` },
  { key: "messages_ready", label: "ready", num: true, show: row => number(row.messages_ready) },
  { key: "messages_unacknowledged", label: "unacked", num: true, show: row => number(row.messages_unacknowledged) },
  { key: "messages", label: "total", num: true, show: row => number(row.messages) },
  { key: "consumers", label: "consumers", num: true, show: row => number(row.consumers) },
  { key: "in", label: "in", num: true, sort: "message_stats.publish_details.rate", need: "message_stats.publish_details", show: row => rate(row.message_stats?.publish_details?.rate ?? 0) },
  { key: "out", label: "out", num: true, sort: "message_stats.deliver_get_details.rate", need: "message_stats.deliver_get_details", show: row => rate(row.message_stats?.deliver_get_details?.rate ?? 0) },
  { key: "ack", label: "acked", num: true, sort: "message_stats.ack_details.rate", need: "message_stats.ack_details", off: true, show: row => rate(row.message_stats?.ack_details?.rate ?? 0) },
  { key: "message_bytes", label: "bytes", num: true, off: true, show: row => bytes(row.message_bytes) },
  { key: "oldest", label: "oldest waits", num: true, off: true, sort: "ages.oldest_waiting_ms", need: "ages.oldest_waiting_ms", show: row => duration(row.ages?.oldest_waiting_ms) },
  { key: "policy", label: "policy", off: true, show: row => row.policy ?? "" },
  { key: "idle_since", label: "idle since", off: true, show: row => time(row.idle_since) },
];

/** @param {{queue: any}} props */
function Features({ queue }) {
  const own = queue.arguments ?? {};
  return html`${queue.state === "paused" && html`<${Tag} kind="bad">paused<//>`}${queue.durable ? null : html`<${Tag} kind="warn">transient<//>`}${queue.auto_delete && html`<${Tag}>auto-delete<//>`}${queue.exclusive && html`<${Tag}>exclusive<//>`}
    ${["x-message-ttl", "x-expires", "x-max-length", "x-dead-letter-exchange", "x-max-priority", "x-single-active-consumer", "x-delivery-limit"].filter(name => name in own).map(name =>
      html`<${Tag} title=${`${name}: ${own[name]}`}>${name.slice(2)}<//>`)}${queue.policy && html`<${Tag} kind="accent" title="policy">${queue.policy}<//>`}`;
}

/** @param {string[]} vhosts @param {string} vhost */
export const declare = (vhosts, vhost) => act({
  title: "Add a queue", verb: "Add", done: "the queue is there",
  fields: [
    { name: "vhost", label: "Virtual host", type: "select", options: vhosts, value: vhost || vhosts[0] },
    { name: "name", label: "Name", required: true },
    { name: "type", label: "Type", type: "select", options: [["classic", "classic"], ["quorum", "quorum: always durable, with a delivery limit"], ["stream", "stream: read again and again"]] },
    { name: "durable", label: "Durable: it outlives a restart", type: "checkbox", value: true },
    { name: "auto_delete", label: "Auto-delete: it goes with its last consumer", type: "checkbox" },
    { name: "arguments", label: "Arguments", type: "json", keys: [["x-message-ttl", 60000], ["x-expires", 3600000], ["x-max-length", 10000], ["x-max-length-bytes", 100000000], ["x-overflow", "reject-publish"], ["x-dead-letter-exchange", "dead"],
      ["x-dead-letter-routing-key", "retry"], ["x-max-priority", 10], ["x-single-active-consumer", true], ["x-delivery-limit", 5], ["x-max-age", "7D"]] },
  ],
  action: v => {
    const all = { ...(v.type === "classic" ? {} : { "x-queue-type": v.type }), ...v.arguments };
    return { method: "PUT", path: at`queues/${v.vhost}/${v.name}`, body: { durable: v.durable, auto_delete: v.auto_delete, arguments: all },
      warren: sh`warren declare queue ${v.name}` + inVhost(v.vhost) + (v.durable ? "" : " --transient") + (v.auto_delete ? " --auto-delete" : "") + asArguments(all) };
  },
});

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  if (route.path.length > 2) return html`<${One} vhost=${route.path[1]} name=${route.path[2]} route=${route} />`;
  const { vhost } = route.query;
  const add = async () => declare(await lookForVhosts(), vhost);
  return html`<${Head} title="Queues and streams" sub="What waits, what is with consumers, and what moves."><button class="main" onClick=${add}>Add a queue</button><//>
    <${ServerTable} path=${vhost ? at`queues/${vhost}` : "/queues"} columns=${COLUMNS} need=${["name", "vhost"]} id=${(/** @type {any} */ row) => row.vhost + " " + row.name}
      empty=${html`<${Empty} title="No queue yet" text="A queue holds messages until somebody takes them. Add one here, or let your client declare it."
        ><button class="main" onClick=${add}>Add a queue</button><//>`} />`;
}

/** @param {{vhost: string, name: string, route: import("../router.js").Route}} props */
function One({ vhost, name, route }) {
  const path = at`queues/${vhost}/${name}`;
  const { data: queue, problem } = useLive(path);
  const tab = route.query.tab ?? "overview";
  const remove = () => act({ title: `Delete queue ${name}`, text: "Its messages go with it.", danger: true, verb: "Delete", name, done: "the queue is deleted", after: () => go(["queues"]),
    fields: [{ name: "empty", label: "Only if it is empty", type: "checkbox" }, { name: "unused", label: "Only if nobody consumes", type: "checkbox" }],
    action: v => ({ method: "DELETE", path: path + (v.empty || v.unused ? `?if-empty=${v.empty}&if-unused=${v.unused}` : ""),
      warren: sh`warren delete queue ${name}` + inVhost(vhost) + (v.empty ? " --if-empty" : "") + (v.unused ? " --if-unused" : "") }) });
  const purge = () => act({ title: `Purge queue ${name}`, text: "What waits in it is thrown away. What consumers hold stays.", danger: true, verb: "Purge", name, done: "purged",
    action: () => ({ method: "DELETE", path: path + "/contents", warren: sh`warren purge ${name}` + inVhost(vhost) }) });
  const move = () => act({ title: `Move the messages of ${name}`, verb: "Move", done: answer => `moving as transfer ${answer.id}`,
    fields: [{ name: "target", label: "To queue", required: true }, { name: "limit", label: "At most", type: "number" }, { name: "copy", label: "Copy instead: they stay here too", type: "checkbox" }],
    action: v => ({ method: "POST", path: `${path}/${v.copy ? "copy" : "move"}`, body: { target: v.target, ...(v.limit ? { limit: v.limit } : {}) },
      warren: sh`warren ${v.copy ? "copy" : "move"} ${name} ${v.target}` + (v.limit ? ` --limit ${v.limit}` : "") + inVhost(vhost) }) });
  const paused = queue?.state === "paused";
  const pause = () => act({ title: paused ? `Resume queue ${name}` : `Pause queue ${name}`, verb: paused ? "Resume" : "Pause", done: paused ? "its messages are handed out again" : "paused: nothing is handed out",
    text: paused ? "Consumers get its messages again." : "It goes on taking messages, and hands none out, also after a restart: consumers wait, basic.get and leases find it empty. What consumers hold stays theirs.",
    action: () => ({ method: "PUT", path: `${path}/${paused ? "resume" : "pause"}`, warren: sh`warren ${paused ? "resume" : "pause"} ${name}` + inVhost(vhost) }) });
  if (problem && !queue) return html`<${Missing} name=${name} what=${`queue in ${vhost}`} why="It may have been deleted, or expired." problem=${problem} path=${["queues"]} all="All queues" />`;
  if (!queue) return html`<${Head} title=${name} sub=${`queue in ${vhost}`} />`;
  const stream = queue.type === "stream";
  return html`<${Head} title=${name} sub=${html`${stream ? "stream" : `${queue.type} queue`} in ${vhost} ${paused && html`<${Tag} kind="bad">paused<//>`}${!queue.durable && html`<${Tag} kind="warn">transient<//>`}
      ${queue.policy && html`<${Tag} kind="accent">policy ${queue.policy}<//>`}`}>
      <button onClick=${() => publish(vhost, "", name)}>Publish</button><button onClick=${() => bindTo(vhost, name, "queue")}>Bind</button>
      <button onClick=${pause}>${paused ? "Resume" : "Pause"}</button>${!stream && html`<button onClick=${move}>Move</button><button class="danger" onClick=${purge}>Purge</button>`}<button class="danger" onClick=${remove}>Delete</button><//>
    <${Tabs} now=${tab} path=${route.path} tabs=${[["overview", "Overview"], ["peek", "Peek"], ...(stream ? [] : [["get", "Get"]]), ["bindings", "Bindings"], ["consumers", `Consumers (${queue.consumers})`], ...(stream ? [] : [["leases", "Leases"]])]} />
    ${paused && html`<p class="hint" role="status">This queue is paused: it takes messages and hands none out until it is resumed. Peek looks into it all the same.</p>`}
    ${tab === "peek" ? html`<${Peek} vhost=${vhost} name=${name} route=${route} />` : tab === "get" ? html`<${Get} vhost=${vhost} name=${name} />`
      : tab === "bindings" ? html`<${Bindings} vhost=${vhost} path=${path + "/bindings"} name=${name} kind="queue" />`
      : tab === "consumers" ? html`<${Table} bare rows=${queue.consumer_details} columns=${CONSUMERS} id=${(/** @type {any} */ row) => row.channel_details.name + row.consumer_tag}
          empty=${html`<${Empty} title="Nobody consumes" text="Messages wait until a client subscribes with basic.consume." />`} />`
      : tab === "leases" && !stream ? html`<${Leases} vhost=${vhost} name=${name} />`
      : html`<${Figures} queue=${queue} path=${path} query=${route.query} />`}`;
}

/** @param {{queue: any, path: string, query: Record<string, string>}} props */
function Figures({ queue, path, query }) {
  const range = chosenRange(query, SHORT);
  const past = usePast(path, range);
  const recent = useRecent(queue, path, range);
  const stream = queue.type === "stream";
  const { data: offsets } = useLive(stream ? path + "/stream" : null);
  const { data: ledger } = useLive(path + "/ledger");
  return html`<div class="row end"><${Ranges} now=${range} names=${SHORT} /></div><dl class="stats">${stream
      ? html`<${Stat} label="messages" value=${number(queue.messages)} hint=${bytes(queue.message_bytes)} /><${Stat} label="first offset" value=${number(offsets?.first)} /><${Stat} label="next offset" value=${number(offsets?.next)} />
        <${Stat} label="unacked" value=${number(queue.messages_unacknowledged)} /><${Stat} label="consumers" value=${number(queue.consumers)} /><${Stat} label="oldest is from" value=${duration(queue.ages?.oldest_waiting_ms)} hint="ago" />`
      : html`<${Stat} label="ready" value=${number(queue.messages_ready)} hint=${bytes(queue.message_bytes_ready)} />
        <${Stat} label="unacked" value=${number(queue.messages_unacknowledged)} hint=${bytes(queue.message_bytes_unacknowledged)} />
        <${Stat} label="consumers" value=${number(queue.consumers)} /><${Stat} label="oldest waits" value=${duration(queue.ages?.oldest_waiting_ms)} />
        <${Stat} label="longest held" value=${duration(queue.ages?.oldest_held_ms)} />`}
      ${ledger && html`<${Stat} label="its sums" kind=${ledger.even ? "good" : "bad"} value=${ledger.even ? "close" : "do not close"} />`}</dl>
    <div class="grid"><${Card}><${Chart} title="Messages" series=${lengths(doc => doc)} past=${past} recent=${recent} /><//>
      <${Card}><${Chart} title="Messages a second" series=${RATES.filter(one => one.label !== "confirm")} past=${past} recent=${recent} show=${rate} /><//></div>
    <div class="grid small"><${Card} title="Arguments"><${Explained} value=${queue.arguments} /><//>
      <${Card} title="What its policies say"><${Facts} pairs=${[["policy", queue.policy ?? "none"], ["operator policy", queue.operator_policy ?? "none"]]} />
        ${Object.keys(queue.effective_policy_definition ?? {}).length > 0 && html`<${Explained} value=${queue.effective_policy_definition} />`}<//>
      <${Card} title="More"><${Facts} pairs=${[["state", queue.state], ["node", queue.node], ["durable", queue.durable ? "yes" : "no"], ["auto-delete", queue.auto_delete ? "yes" : "no"],
        ["exclusive to", queue.owner_pid_details?.name], ["single active consumer", queue.single_active_consumer_tag ?? undefined], ["idle since", queue.idle_since ? time(queue.idle_since) : undefined],
        ["replicated", queue.replicated === undefined ? undefined : queue.replicated ? "yes" : "no: one node"]]} /><//></div>`;
}

/** @param {{vhost: string, name: string}} props */
function Leases({ vhost, name }) {
  const path = at`queues/${vhost}/${name}/leases`;
  const { data, problem } = useLive(path);
  const back = (/** @type {any} */ row) => act({ title: `Give back lease ${row.id}`, text: `${counted(row.left, "message")} of ${row.owner || "nobody by name"} come back to their places. Whoever reads them can settle them no more.`, danger: true, verb: "Give back", name: row.id, done: "they are back",
    action: () => ({ method: "DELETE", path: `${path}/${encodeURIComponent(row.id)}` }) });
  return html`<${Table} bare rows=${data} problem=${problem} id=${(/** @type {any} */ row) => row.id} empty=${html`<${Empty} title="Nothing is leased" text="Readers such as Spark take messages under a lease: nobody else gets them, and they come back when it runs out." />`}
    columns=${[{ key: "owner", label: "owner", text: (/** @type {any} */ row) => row.owner, show: (/** @type {any} */ row) => html`<b>${row.owner || "–"}</b>` }, { key: "id", label: "lease", show: (/** @type {any} */ row) => html`<code>${row.id}</code>` },
      { key: "left", label: "left", num: true, show: (/** @type {any} */ row) => `${number(row.left)} of ${number(row.count)}` }, { key: "bytes", label: "size", num: true, show: (/** @type {any} */ row) => bytes(row.bytes) },
      { key: "expires_at", label: "runs out", show: (/** @type {any} */ row) => time(row.expires_at) }, { key: "", label: "", show: (/** @type {any} */ row) => html`<div class="actions"><button class="danger" onClick=${() => back(row)}>Give back</button></div>` }]} />`;
}

const MODES = /** @type {[string, string][]} */ ([["ack_requeue_true", "look: put them back, marked redelivered"], ["ack_requeue_false", "take them out"], ["reject_requeue_false", "reject them: dead letters, where the queue has an exchange for them"]]);

/** @param {{vhost: string, name: string}} props */
function Get({ vhost, name }) {
  const [got, setGot] = useState(/** @type {any[] | null} */ (null));
  const get = () => act({ title: `Get messages from ${name}`, text: "To look without touching anything, use Peek.", verb: "Get", done: answer => `${answer.length} messages`, after: setGot,
    fields: [{ name: "ackmode", label: "And then", type: "select", options: MODES }, { name: "count", label: "How many", type: "number", value: 1 }],
    action: v => ({ method: "POST", path: at`queues/${vhost}/${name}/get`, body: { ackmode: v.ackmode, count: v.count ?? 1, encoding: "auto" },
      warren: v.ackmode.startsWith("reject") ? undefined : sh`warren get ${name} --count ${v.count ?? 1}` + (v.ackmode === "ack_requeue_true" ? " --requeue" : "") + inVhost(vhost) }) });
  return html`<${Card} title="Get" aside=${html`<button class="main" onClick=${get}>Get messages</button>`}>
    <p class="soft">Takes messages as a client would. They are shown here once.</p>
    ${got && (got.length ? html`<${Messages} items=${got} />` : html`<${Empty} title="Nothing waits" text="The queue is empty, or all of it is with consumers." />`)}<//>`;
}

