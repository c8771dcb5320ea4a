// The broker as a whole: what it holds, what moves, what is short.
import { at, may } from "../api.js";
import { Chart, RATES, Ranges, chosenRange, lengths, took, usePast, useRecent } from "../chart.js";
import { bytes, duration, number, rate, short } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { Card, Empty, Facts, Go, Head, Stat, Trouble } from "../ui.js";

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const range = chosenRange(route.query);
  const { data, problem } = useLive("/overview");
  const past = usePast("/overview", range);
  const recent = useRecent(data, "overview" + range, range);
  const totals = data?.object_totals ?? {};
  return html`<${Head} title="Overview" sub=${data ? `${data.cluster_name} · Warren ${data.product_version}` : ""}>
      <${Ranges} now=${range} /><//>
    <${Trouble} problem=${problem} />
    <dl class="stats">
      <${Stat} label="ready" value=${short(data?.queue_totals.messages_ready)} hint="waiting" />
      <${Stat} label="unacked" value=${short(data?.queue_totals.messages_unacknowledged)} hint="at consumers" />
      <${Stat} label="published" value=${rate(data?.message_stats.publish_details?.rate ?? 0)} />
      <${Stat} label="delivered" value=${rate(data?.message_stats.deliver_get_details?.rate ?? 0)} />
      <${Stat} label="connections" value=${html`<${Go} path=${["connections"]}>${number(totals.connections)}<//>`} />
      <${Stat} label="channels" value=${html`<${Go} path=${["channels"]}>${number(totals.channels)}<//>`} />
      ${totals.consumers !== undefined && html`<${Stat} label="consumers" value=${html`<${Go} path=${["consumers"]}>${number(totals.consumers)}<//>`} />`}
      <${Stat} label="queues" value=${html`<${Go} path=${["queues"]}>${number(totals.queues)}<//>`} />
      <${Stat} label="exchanges" value=${html`<${Go} path=${["exchanges"]}>${number(totals.exchanges)}<//>`} /></dl>
    <div class="grid">
      <${Card}><${Chart} title="Messages in queues" series=${lengths(doc => doc.queue_totals)} past=${past} recent=${recent} /><//>
      <${Card}><${Chart} title="Messages a second" series=${RATES} past=${past} recent=${recent} show=${rate} /><//></div>
    ${may("monitoring") && html`<${Node} range=${range} />`}
    <div class="grid"><${Card}><${Chart} title="Coming and going, a second" series=${CHURN} past=${past} recent=${recent} show=${rate} /><//></div>
    ${data?.object_totals.queues === 0 && html`<${Card}><${Empty} title="No queue yet"
      text="Declare one on the page of queues, or let a client do it: any AMQP 0-9-1 client library for RabbitMQ works with this address."
      ><${Go} path=${["queues"]}>Go to the queues<//><//><//>`}
    ${data?.listeners && html`<${Card} title="Where it listens"><${Facts} pairs=${data.listeners.map((/** @type {any} */ one) =>
      [one.protocol, html`<code>${one.ip_address}:${one.port}</code>`])} /><//>`}`;
}

/** What is opened and closed, declared and deleted. */
const CHURN = /** @type {import("../chart.js").Series[]} */ ([["connection_created", "connections opened", "--c1"], ["connection_closed", "closed", "--c5"], ["channel_created", "channels opened", "--c2"], ["channel_closed", "closed", "--c7"],
  ["queue_declared", "queues declared", "--c3"], ["queue_deleted", "deleted", "--c4"]].map(([key, label, color]) => ({ label, color, rate: true, details: (/** @type {any} */ doc) => doc.churn_rates?.[`${key}_details`] })));

/** Means of those that were in each time. */
const DISK = [took("confirms", "--c6", "confirms_waited", "confirm_microseconds"), took("log syncs", "--c2", "io_sync_count", "sync_microseconds")];
/** @param {number} value */
const milliseconds = value => `${value < 10 ? value.toFixed(2) : short(value)} ms`;

/** @param {{range: string}} props */
function Node({ range }) {
  const { data: nodes } = useLive("/nodes");
  const { data: ledger } = useLive("/ledger");
  const { data: cluster } = useLive("/cluster");
  const node = nodes?.[0];
  const path = node ? at`nodes/${node.name}` : null;
  const past = usePast(path, range);
  const recent = useRecent(node, "node" + range, range);
  const old = node && past && !Array.isArray(past) ? past : null;
  if (!node) return null;
  const one = (/** @type {string} */ name, /** @type {string} */ color) => [{
    label: name.replaceAll("_", " "), color, steady: true, details: (/** @type {any} */ doc) => doc[`${name}_details`], value: (/** @type {any} */ doc) => doc[name] }];
  const alarms = [node.mem_alarm && "memory", node.disk_free_alarm && "disk"].filter(Boolean);
  return html`<dl class="stats">
      <${Stat} label="alarms" kind=${alarms.length ? "bad" : "good"} value=${alarms.length ? alarms.join(", ") : "none"} hint=${alarms.length ? "publishers wait" : ""} />
      <${Stat} label="memory" value=${bytes(node.mem_used)} hint=${`of ${bytes(node.mem_limit)}`} />
      <${Stat} label="free disk" value=${bytes(node.disk_free)} hint=${`alarm below ${bytes(node.disk_free_limit)}`} />
      <${Stat} label="open files" value=${number(node.fd_used)} hint=${`of ${number(node.fd_total)}`} />
      <${Stat} label="up for" value=${duration(node.uptime)} />
      ${ledger && html`<${Stat} label="ledger" kind=${ledger.even ? "good" : "bad"} value=${html`<${Go} path=${["ledger"]}>${ledger.even ? "closes" : "does not close"}<//>`} />`}
      <${Stat} label="nodes" value=${html`<${Go} path=${["nodes"]}>${number(cluster ? cluster.nodes.length : nodes.length)}<//>`} hint=${cluster ? `epoch ${number(cluster.epoch)}` : ""} kind=${cluster && cluster.problem ? "bad" : ""} /></dl>
    <div class="grid">
      <${Card}><${Chart} title="Memory" series=${one("mem_used", "--c4")} past=${old} recent=${recent} show=${bytes} /><//>
      <${Card}><${Chart} title="Free disk" series=${one("disk_free", "--c3")} past=${old} recent=${recent} show=${bytes} /><//>
      <${Card}><${Chart} title="Connections" series=${one("sockets_used", "--c2")} past=${old} recent=${recent} /><//>
      <${Card}><${Chart} title="Waiting for the disk" series=${DISK} past=${old} recent=${recent} show=${milliseconds} /><//></div>`;
}
