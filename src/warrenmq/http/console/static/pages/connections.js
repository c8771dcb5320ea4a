// Connections of clients: the list, and one of them.
import { at } from "../api.js";
import { Chart, Ranges, SHORT, chosenRange, usePast, useRecent } from "../chart.js";
import { sh } from "../commands.js";
import { act } from "../dialogs.js";
import { bytes, number, time } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { go } from "../router.js";
import { ServerTable } from "../table.js";
import { Card, Empty, Facts, Go, Head, Json, Missing, Tag, Trouble } from "../ui.js";
import { CHANNELS } from "./channels.js";

/** @param {{state: string}} props */
const State = ({ state }) => html`<${Tag} kind=${state === "running" ? "good" : state === "blocked" || state === "blocking" ? "bad" : "warn"}>${state}<//>`;
/** @param {number | undefined} value */
const traffic = value => `${bytes(Math.round(value ?? 0))}/s`;

/** @type {import("../table.js").Column[]} */
const COLUMNS = [
  { key: "name", label: "name", need: "name,user_provided_name", show: row => html`<${Go} path=${["connections", row.name]}>${row.name}<//>${row.user_provided_name && html`<br /><small>${row.user_provided_name}</small>`}` },
  { key: "vhost", label: "vhost", show: row => row.vhost },
  { key: "user", label: "user", show: row => row.user },
  { key: "state", label: "state", show: row => html`<${State} state=${row.state} />` },
  { key: "ssl", label: "TLS", show: row => row.ssl ? "yes" : "no" },
  { key: "channels", label: "channels", num: true, show: row => number(row.channels) },
  { key: "recv_oct_details", label: "from client", num: true, sort: "recv_oct_details.rate", show: row => traffic(row.recv_oct_details?.rate) },
  { key: "send_oct_details", label: "to client", num: true, sort: "send_oct_details.rate", show: row => traffic(row.send_oct_details?.rate) },
  { key: "client_properties", label: "client", need: "client_properties.product,client_properties.version", sort: "client_properties.product", show: row => [row.client_properties?.product, row.client_properties?.version].filter(one => typeof one === "string").join(" ") },
  { key: "timeout", label: "heartbeat", num: true, off: true, show: row => `${row.timeout} s` },
  { key: "connected_at", label: "since", off: true, show: row => time(row.connected_at) },
];

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  if (route.path.length > 1) return html`<${One} name=${route.path[1]} query=${route.query} />`;
  const { vhost } = route.query;
  return html`<${Head} title="Connections" sub="Clients, their users and their traffic." />
    <${ServerTable} path=${vhost ? at`vhosts/${vhost}/connections` : "/connections"} columns=${COLUMNS} need=${["name"]} id=${(/** @type {any} */ row) => row.name}
      empty=${html`<${Empty} title="No client is connected" text="Point a client library for RabbitMQ at one of the addresses on the overview." />`} />`;
}

/** @param {{name: string, query: Record<string, string>}} props */
function One({ name, query }) {
  const range = chosenRange(query, SHORT);
  const path = at`connections/${name}`;
  const { data: one, problem } = useLive(path);
  const past = usePast(one && path, range);
  const recent = useRecent(one, path, range);
  if (problem && !one) return html`<${Missing} name=${name} what="connection" why="The client has gone." problem=${problem} path=${["connections"]} all="All connections" />`;
  const close = () => act({ title: "Close this connection", text: `${name}: the client is told why, and usually comes back.`, danger: true, verb: "Close", name: one?.user_provided_name ?? name, done: "closed", after: () => go(["connections"]),
    fields: [{ name: "reason", label: "Reason", value: "closed in the console" }],
    action: v => ({ method: "DELETE", path, headers: { "x-reason": v.reason }, warren: sh`warren ctl close_connection ${name} ${v.reason}` }) });
  const octets = [["recv_oct", "from client", "--c1"], ["send_oct", "to client", "--c2"]].map(([key, label, color]) => ({ label, color, rate: true, details: (/** @type {any} */ doc) => doc[`${key}_details`] }));
  return html`<${Head} title=${name} sub=${one ? html`${one.user_provided_name ?? "connection"} of ${one.user} in ${one.vhost} <${State} state=${one.state} />` : "connection"}>
      <${Ranges} now=${range} names=${SHORT} /><button class="danger" onClick=${close}>Close</button><//><${Trouble} problem=${problem} />
    ${one && html`<div class="grid"><${Card}><${Chart} title="Octets a second" series=${octets} past=${past} recent=${recent} show=${traffic} /><//>
      <${Card} title="Connection"><${Facts} pairs=${[["since", time(one.connected_at)], ["protocol", one.protocol], ["log-in", one.auth_mechanism], ["TLS", one.ssl ? "yes" : "no"], ["certificate of", one.peer_cert_subject],
        ["heartbeat", `${one.timeout} s`], ["largest frame", bytes(one.frame_max)], ["channels at most", number(one.channel_max)], ["received", bytes(one.recv_oct)], ["sent", bytes(one.send_oct)]]} /><//>
      <${Card} title="What the client says of itself"><${Json} value=${one.client_properties} /><//></div>
    <${ServerTable} path=${path + "/channels"} columns=${CHANNELS} need=${["name"]} id=${(/** @type {any} */ row) => row.name} empty=${html`<${Empty} title="No channel" text="The client has opened none yet." />`} />`}`;
}
