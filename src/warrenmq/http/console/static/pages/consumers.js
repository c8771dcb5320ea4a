// Consumers: who takes messages from where, and how many at once.
import { at } from "../api.js";
import { number } from "../format.js";
import { html } from "../html.js";
import { ServerTable } from "../table.js";
import { Empty, Go, Head, Queue, Tag } from "../ui.js";

/** @type {import("../table.js").Column[]} */
export const CONSUMERS = [
  { key: "consumer_tag", label: "consumer tag", show: row => html`<code>${row.consumer_tag}</code>` },
  { key: "queue", label: "queue", sort: "queue.name", show: row => html`<${Queue} vhost=${row.queue.vhost} name=${row.queue.name} />` },
  { key: "vhost", label: "vhost", sort: "queue.vhost", need: "queue", show: row => row.queue.vhost },
  { key: "channel_details", label: "channel", sort: "channel_details.name", show: row => html`<${Go} path=${["channels", row.channel_details.name]}>${row.channel_details.name}<//>` },
  { key: "ack_required", label: "acks", show: row => row.ack_required ? "manual" : "automatic" },
  { key: "prefetch_count", label: "prefetch", num: true, show: row => row.prefetch_count ? number(row.prefetch_count) : "no limit" },
  { key: "active", label: "state", need: "active,activity_status,exclusive", show: row => html`<${Tag} kind=${row.active ? "good" : ""}>${row.activity_status}<//>${row.exclusive && html`<${Tag}>exclusive<//>`}` },
];

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const { vhost } = route.query;
  return html`<${Head} title="Consumers" sub="Subscriptions of clients to queues." />
    <${ServerTable} path=${vhost ? at`consumers/${vhost}` : "/consumers"} columns=${CONSUMERS} search="consumer tag" id=${(/** @type {any} */ row) => row.channel_details.name + row.consumer_tag}
      empty=${html`<${Empty} title="Nobody consumes" text="A consumer is there once a client calls basic.consume." />`} />`;
}
