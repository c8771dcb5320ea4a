// Virtual hosts: what is in them, and their limits.
import { at, lookForVhosts, may } from "../api.js";
import { sh } from "../commands.js";
import { act } from "../dialogs.js";
import { bytes, number, rate } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { ServerTable } from "../table.js";
import { Go, Head, Tag } from "../ui.js";

export const add = () => act({ title: "Add a virtual host", verb: "Add", done: "the virtual host is there", after: lookForVhosts, text: "You get all permissions in it.", fields: [{ name: "name", label: "Name", required: true }, { name: "description", label: "Description" }, { name: "type", label: "Queues are by default", type: "select", options: ["classic", "quorum", "stream"] }],
  action: v => ({ method: "PUT", path: at`vhosts/${v.name}`, body: { description: v.description, ...(v.type === "classic" ? {} : { default_queue_type: v.type }) }, warren: sh`warren ctl add_vhost ${v.name}` + (v.description ? sh` --description ${v.description}` : "") + (v.type === "classic" ? "" : ` --default-queue-type ${v.type}`) }) });
const limit = (/** @type {string} */ name) => act({ title: `Limit ${name}`, verb: "Set", done: "set", fields: [{ name: "limit", label: "Limit", type: "select", options: ["max-connections", "max-queues"] }, { name: "value", label: "At most", type: "number", value: 1000, hint: "-1 is no limit, 0 allows none" }],
  action: v => ({ method: "PUT", path: at`vhost-limits/${name}/${v.limit}`, body: { value: v.value }, warren: sh`warren ctl set_vhost_limits -p ${name} ${JSON.stringify({ [v.limit]: v.value })}` }) });
const remove = (/** @type {string} */ name) => act({ title: `Delete virtual host ${name}`, text: "With all that it holds: queues, messages, exchanges, permissions.", danger: true, verb: "Delete", name, done: "the virtual host is deleted", after: lookForVhosts, action: () => ({ method: "DELETE", path: at`vhosts/${name}`, warren: sh`warren ctl delete_vhost ${name}` }) });

export function Page() {
  const { data: limits } = useLive("/vhost-limits");
  const of = (/** @type {string} */ name) => limits?.find((/** @type {any} */ one) => one.vhost === name)?.value ?? {};
  /** @type {import("../table.js").Column[]} */
  const columns = [
    { key: "name", label: "name", need: "name,description", show: row => html`<${Go} path=${["queues"]} query=${{ vhost: row.name }}>${row.name}<//>${row.description && html`<br /><small>${row.description}</small>`}` },
    { key: "messages_ready", label: "ready", num: true, show: row => number(row.messages_ready) }, { key: "messages_unacknowledged", label: "unacked", num: true, show: row => number(row.messages_unacknowledged) },
    { key: "publish", label: "published", num: true, sort: "message_stats.publish_details.rate", need: "message_stats.publish_details", show: row => rate(row.message_stats?.publish_details?.rate ?? 0) },
    { key: "recv_oct", label: "received", num: true, show: row => bytes(row.recv_oct) }, { key: "send_oct", label: "sent", num: true, show: row => bytes(row.send_oct) },
    { key: "default_queue_type", label: "default type", show: row => row.default_queue_type === "undefined" ? "classic" : row.default_queue_type }, { key: "limits", label: "limits", sort: "name", need: "name", show: row => Object.entries(of(row.name)).map(([name, value]) => html`<${Tag} kind="warn">${name} ${value}<//>`) },
  ];
  if (may("administrator")) columns.push({ key: "", label: "", show: row => html`<div class="actions"><button onClick=${() => limit(row.name)}>Limit</button><button class="danger" onClick=${() => remove(row.name)}>Delete</button></div>` });
  return html`<${Head} title="Virtual hosts" sub="Worlds of their own: names, permissions and limits are by virtual host.">${may("administrator") && html`<button class="main" onClick=${add}>Add a virtual host</button>`}<//>
    <${ServerTable} path="/vhosts" columns=${columns} need=${["name"]} id=${(/** @type {any} */ row) => row.name} empty="" />`;
}
