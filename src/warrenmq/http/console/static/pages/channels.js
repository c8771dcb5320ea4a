// Channels: the list, and one of them.
import { at } from "../api.js";
import { Chart, RATES, Ranges, SHORT, chosenRange, usePast, useRecent } from "../chart.js";
import { number, rate } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { ServerTable, Table } from "../table.js";
import { Card, Empty, Facts, Go, Head, Missing, Tag, Trouble } from "../ui.js";
import { CONSUMERS } from "./consumers.js";

/** @param {string} name @param {string} label @returns {import("../table.js").Column} */
const rated = (name, label) => ({ key: name, label, num: true, sort: `message_stats.${name}_details.rate`, need: `message_stats.${name}_details`, show: row => rate(row.message_stats?.[`${name}_details`]?.rate ?? 0) });

/** @type {import("../table.js").Column[]} */
export const CHANNELS = [
  { key: "name", label: "name", show: row => html`<${Go} path=${["channels", row.name]}>${row.name}<//>` },
  { key: "vhost", label: "vhost", show: row => row.vhost },
  { key: "user", label: "user", show: row => row.user },
  { key: "mode", label: "mode", sort: "confirm", need: "confirm,transactional", show: row => html`${row.confirm && html`<${Tag} kind="good">confirms<//>`}${row.transactional && html`<${Tag}>tx<//>`}` },
  { key: "consumer_count", label: "consumers", num: true, show: row => number(row.consumer_count) },
  { key: "prefetch_count", label: "prefetch", num: true, show: row => row.prefetch_count || "" },
  { key: "messages_unacknowledged", label: "unacked", num: true, show: row => number(row.messages_unacknowledged) },
  { key: "messages_unconfirmed", label: "unconfirmed", num: true, show: row => number(row.messages_unconfirmed) },
  rated("publish", "published"), rated("deliver_get", "delivered"), rated("ack", "acked"),
];

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  if (route.path.length > 1) return html`<${One} name=${route.path[1]} query=${route.query} />`;
  const { vhost } = route.query;
  return html`<${Head} title="Channels" sub="The lines within connections on which clients publish and consume." />
    <${ServerTable} path=${vhost ? at`vhosts/${vhost}/channels` : "/channels"} columns=${CHANNELS} need=${["name"]} id=${(/** @type {any} */ row) => row.name}
      empty=${html`<${Empty} title="No channel is open" text="Clients open them within a connection." />`} />`;
}

/** @param {{name: string, query: Record<string, string>}} props */
function One({ name, query }) {
  const range = chosenRange(query, SHORT);
  const path = at`channels/${name}`;
  const { data: one, problem } = useLive(path);
  const past = usePast(one && path, range);
  const recent = useRecent(one, path, range);
  if (problem && !one) return html`<${Missing} name=${name} what="channel" why="The client has closed it, or is gone." problem=${problem} path=${["channels"]} all="All channels" />`;
  return html`<${Head} title=${name} sub=${one && html`channel ${one.number} of <${Go} path=${["connections", one.connection_details.name]}>${one.connection_details.name}<//>`}><${Ranges} now=${range} names=${SHORT} /><//><${Trouble} problem=${problem} />
    ${one && html`<div class="grid"><${Card}><${Chart} title="Messages a second" series=${RATES} past=${past} recent=${recent} show=${rate} /><//>
      <${Card} title="Channel"><${Facts} pairs=${[["user", one.user], ["vhost", one.vhost], ["confirms", one.confirm ? "yes" : "no"], ["transactional", one.transactional ? "yes" : "no"], ["prefetch", one.prefetch_count || "no limit"],
        ["unacked", number(one.messages_unacknowledged)], ["unconfirmed", number(one.messages_unconfirmed)], ["uncommitted", number(one.messages_uncommitted)]]} /><//></div>
    <${Card} title="Consumers"><${Table} bare rows=${one.consumer_details} columns=${CONSUMERS} id=${(/** @type {any} */ row) => row.consumer_tag} empty=${html`<${Empty} title="No consumer" text="This channel only publishes, or gets." />`} /><//>`}`;
}
