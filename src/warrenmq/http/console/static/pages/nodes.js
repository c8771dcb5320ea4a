// The nodes: how the cluster stands, what this node has and is short of, with what settings it runs.
import { at, call, may } from "../api.js";
import { Chart, Ranges, chosenRange, usePast, useRecent } from "../chart.js";
import { curl, sh } from "../commands.js";
import { Commands, act } from "../dialogs.js";
import { bytes, duration, number, rate, time } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { useLive } from "../live.js";
import { Table } from "../table.js";
import { Card, Empty, Facts, Head, Stat, Tag, Trouble } from "../ui.js";

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const range = chosenRange(route.query);
  const { data: nodes, problem } = useLive("/nodes");
  const { data: overview } = useLive("/overview?columns=cluster_name");
  const rename = () => act({ title: "Another name for this broker", text: "Clients and exports show it. Nothing else depends on it.", verb: "Name it", done: "it has another name", fields: [{ name: "name", label: "Name", required: true, value: overview?.cluster_name ?? "" }],
    action: v => ({ method: "PUT", path: "/cluster-name", body: { name: v.name }, warren: sh`warren ctl set_cluster_name ${v.name}` }) });
  return html`<${Head} title="Nodes and cluster" sub=${overview?.cluster_name}><${Ranges} now=${range} />${may("administrator") && html`<button onClick=${rename}>Rename</button>`}<//><${Trouble} problem=${problem} />
    <${Cluster} />
    ${nodes?.map((/** @type {any} */ node) => html`<${Node} key=${node.name} node=${node} range=${range} />`)}`;
}

function Cluster() {
  const { data, problem } = useLive("/cluster");
  if (problem) return /** @type {any} */ (problem).status === 404 ? html`<${Card} title="Cluster"><p class="soft">This broker is one node. Two or three of them can share one log, so that another goes on when one is gone: the setting cluster makes it one of several (experimental).</p><//>` : html`<${Trouble} problem=${problem} />`;
  if (!data) return null;
  const enough = data.in_sync.length >= data.min_in_sync;
  return html`<dl class="stats">
      <${Stat} label="leader" kind=${data.leader ? "" : "bad"} value=${data.leader ?? "none"} hint=${data.leader === data.node ? "this node" : ""} />
      <${Stat} label="epoch" value=${number(data.epoch)} hint=${data.epoch_since ? `since ${time(data.epoch_since)}` : ""} />
      <${Stat} label="takeovers" value=${number(data.takeovers)} hint="since this node started" />
      <${Stat} label="in sync" kind=${enough ? "good" : "bad"} value=${`${number(data.in_sync.length)} of ${number(data.nodes.length)}`} hint=${`at least ${number(data.min_in_sync)} wanted`} />
      <${Stat} label="etcd" kind=${data.etcd.reachable === false ? "bad" : "good"} value=${data.etcd.reachable === false ? "silent" : "answers"} hint=${`${number(data.etcd.errors)} errors`} /></dl>
    ${data.problem && html`<p class="problem" role="alert">${data.problem}</p>`}
    ${data.paused && html`<p class="hint" role="status">Takeovers are paused: if the leader is gone, nobody follows by himself.</p>`}
    <${Card} title=${`Cluster ${data.cluster}`}><${Table} bare rows=${data.nodes} empty="" id=${(/** @type {any} */ row) => row.name} columns=${MEMBERS} />
      <${Commands} warren="warren cluster status" curl=${curl({ method: "GET", path: "/cluster" })} /><//>`;
}

/** @type {import("../table.js").Column[]} */
const MEMBERS = [
  { key: "name", label: "node", show: row => html`<b>${row.name}</b>` },
  { key: "leads", label: "role", show: row => html`<${Tag} kind=${row.leads ? "accent" : ""}>${row.leads ? "leader" : "follower"}<//>` },
  { key: "in_sync", label: "in sync", show: row => html`<${Tag} kind=${row.in_sync ? "good" : "bad"}>${row.in_sync ? "in sync" : "behind"}<//>` },
  { key: "alive", label: "alive", show: row => html`<${Tag} kind=${row.alive ? "good" : "bad"}>${row.alive ? "alive" : "silent"}<//>` },
  { key: "lag_bytes", label: "lacks", num: true, show: row => row.lag_bytes === null ? "not known" : bytes(row.lag_bytes) },
  { key: "lag_batches", label: "batches", num: true, show: row => row.lag_batches === null ? "not known" : number(row.lag_batches) },
  { key: "address", label: "to other nodes", show: row => html`<code>${row.address ?? ""}</code>` },
  { key: "amqp", label: "AMQP", show: row => html`<code>${row.amqp ?? ""}</code>` },
  { key: "url", label: "HTTP", show: row => html`<code>${row.url ?? ""}</code>` },
];

/** What is written and synced. */
const LOG = /** @type {import("../chart.js").Series[]} */ ([["io_sync_count", "syncs", "--c2"], ["confirms_waited", "confirms that waited", "--c6"]].map(([key, label, color]) => ({ label, color, rate: true, details: (/** @type {any} */ doc) => doc[`${key}_details`] })));
const WRITTEN = /** @type {import("../chart.js").Series[]} */ ([{ label: "written", color: "--c1", rate: true, details: (/** @type {any} */ doc) => doc.io_write_bytes_details }]);
/** @param {number} value */
const traffic = value => `${bytes(Math.round(value))}/s`;

/** @param {{node: any, range: string}} props */
function Node({ node, range }) {
  const path = at`nodes/${node.name}`;
  const past = usePast(path, range);
  const recent = useRecent(node, "node" + range, range);
  const old = past && !Array.isArray(past) ? past : null;
  const { data: damaged } = useLive("/damaged");
  const files = [{ label: "open files", color: "--c4", steady: true, details: (/** @type {any} */ doc) => doc.fd_used_details, value: (/** @type {any} */ doc) => doc.fd_used }];
  const memory = [{ label: "memory", color: "--c3", steady: true, details: (/** @type {any} */ doc) => doc.mem_used_details, value: (/** @type {any} */ doc) => doc.mem_used }];
  const limits = () => act({ title: `Limits of ${node.name}`, verb: "Set", done: "set, until the next start", text: "Beyond them publishers are held up. They count until the next start: settings make them last.",
    fields: [{ name: "memory", label: "Memory, at most", value: String(node.mem_limit), hint: "octets, or with a unit: 4GB" }, { name: "disk", label: "Free disk, at least", value: String(node.disk_free_limit), hint: "octets, or with a unit: 2GB" }],
    action: v => [{ method: "PUT", path: `${path}/limits`, body: { memory_limit: sized(v.memory) }, warren: sh`warren ctl set_vm_memory_high_watermark absolute ${v.memory}` },
      { method: "PUT", path: `${path}/limits`, body: { disk_free_limit: sized(v.disk) }, warren: sh`warren ctl set_disk_free_limit ${v.disk}` }] });
  const listeners = (/** @type {"suspend" | "resume"} */ verb) => act({ title: verb === "suspend" ? `Take no new clients on ${node.name}` : `Take clients on ${node.name} again`, danger: verb === "suspend", name: verb === "suspend" ? node.name : undefined, verb: verb === "suspend" ? "Take none" : "Take them",
    text: verb === "suspend" ? "Who is connected stays; AMQP connections that are new are refused. This console goes on." : "AMQP connections are taken as before.", done: verb === "suspend" ? "no new clients are taken" : "clients are taken",
    action: () => ({ method: "POST", path: `${path}/${verb}_listeners`, warren: `warren ctl ${verb}_listeners` }) });
  const level = () => act({ title: `How much ${node.name} logs`, verb: "Set", done: "set, until the next start", fields: [{ name: "level", label: "From this level on", type: "select", value: "info", options: ["debug", "info", "warning", "error", "critical", "none"] }],
    action: v => ({ method: "PUT", path: `${path}/log_level`, body: { level: v.level }, warren: sh`warren ctl set_log_level ${v.level}` }) });
  const backup = () => act({ title: `Back up ${node.name}`, verb: "Copy", text: "The data folder is copied, consistently, while the broker goes on.", done: answer => `${bytes(answer.bytes)} in ${answer.folder}`,
    fields: [{ name: "folder", label: "Folder on the broker's machine", required: true, hint: "absolute; it must not exist yet, or be empty" }], action: v => ({ method: "POST", path: "/backup", body: { folder: v.folder }, warren: sh`warren backup ${v.folder}` }) });
  const alarms = [node.mem_alarm && "memory", node.disk_free_alarm && "disk"].filter(Boolean);
  return html`<section class="part"><div class="head"><div><h2>${node.name} <${Tag} kind=${node.running ? "good" : "bad"}>${node.running ? "running" : "down"}<//></h2></div>
      ${may("administrator") && html`<div class="actions"><button onClick=${limits}>Limits</button><button onClick=${level}>Log level</button><button onClick=${backup}>Back up</button><button onClick=${() => listeners("resume")}>Take clients</button><button class="danger" onClick=${() => listeners("suspend")}>Take no clients</button></div>`}</div>
    <dl class="stats"><${Stat} label="alarms" kind=${alarms.length ? "bad" : "good"} value=${alarms.length ? alarms.join(", ") : "none"} hint=${alarms.length ? "publishers wait" : ""} />
      <${Stat} label="memory" value=${bytes(node.mem_used)} hint=${`of ${bytes(node.mem_limit)}`} /><${Stat} label="free disk" value=${bytes(node.disk_free)} hint=${`alarm below ${bytes(node.disk_free_limit)}`} />
      <${Stat} label="open files" value=${number(node.fd_used)} hint=${`of ${number(node.fd_total)}`} /><${Stat} label="up for" value=${duration(node.uptime)} />
      <${Stat} label="damaged messages" kind=${damaged?.length ? "bad" : "good"} value=${damaged ? number(damaged.length) : "–"} /></dl>
    ${damaged?.length > 0 && html`<${Damaged} rows=${damaged} />`}
    <div class="grid"><${Card}><${Chart} title="The log, a second" series=${LOG} past=${old} recent=${recent} show=${rate} /><//><${Card}><${Chart} title="Written to the log" series=${WRITTEN} past=${old} recent=${recent} show=${traffic} /><//>
      <${Card}><${Chart} title="Open files" series=${files} past=${old} recent=${recent} /><//><${Card}><${Chart} title="Memory" series=${memory} past=${old} recent=${recent} show=${bytes} /><//></div>
    <${Card} title="This node"><${Facts} pairs=${[["process", node.os_pid], ["data", html`<code>${node.db_dir}</code>`], ["cores", number(node.processors)], ["settings from", node.config_files.join(", ") || "the command line and the environment"], ["log", node.log_files.join(", ") || "standard error"],
        ["exchange types", node.exchange_types.map((/** @type {any} */ one) => one.name).join(", ")], ["log-in", node.auth_mechanisms.filter((/** @type {any} */ one) => one.enabled).map((/** @type {any} */ one) => one.name).join(", ")]]} /><//>
    ${may("administrator") && html`<${Settings} path=${path} />`}</section>`;
}

/** @param {string} text */
const sized = text => /^\d+$/.test(text.trim()) ? Number(text) : text.trim();

/** @param {{rows: any[]}} props */
function Damaged({ rows }) {
  const drop = (/** @type {any} */ row) => act({ title: `Drop damaged message ${row.id}`, text: "It is gone for good then.", danger: true, verb: "Drop", name: row.id, done: "dropped", action: () => ({ method: "DELETE", path: at`damaged/${row.id}` }) });
  return html`<${Card} title="Messages that do not check on disk"><p class="soft">Nobody is handed these; those behind them went on. Keep a copy of the file before you drop one.</p><${Table} bare rows=${rows} empty="" id=${(/** @type {any} */ row) => row.id}
    columns=${[{ key: "owner", label: "of", show: (/** @type {any} */ row) => html`<b>${row.kind} ${row.owner}</b>` }, { key: "vhost", label: "vhost", show: (/** @type {any} */ row) => row.vhost }, { key: "place", label: "where", show: (/** @type {any} */ row) => html`<code>${row.place}</code>` }, { key: "reason", label: "why", show: (/** @type {any} */ row) => row.reason },
      { key: "", label: "", show: (/** @type {any} */ row) => may("administrator") && html`<div class="actions"><button class="danger" onClick=${() => drop(row)}>Drop</button></div>` }]} /><//>`;
}

/** Every setting, asked for when somebody looks.
 * @param {{path: string}} props */
function Settings({ path }) {
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  useEffect(() => { if (open) call("GET", `${path}/environment`).then(setFound, setProblem); }, [open, path]);
  return html`<${Card}><details onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}><summary>The settings it runs with</summary><${Trouble} problem=${problem} />
    ${found && (Object.keys(found).length ? html`<${Facts} pairs=${Object.entries(found).map(([name, value]) => [name, html`<code>${value === null ? "off" : typeof value === "object" ? value.join(", ") || "none" : String(value)}</code>`])} />` : html`<${Empty} title="None" text="" />`)}</details><//>`;
}
