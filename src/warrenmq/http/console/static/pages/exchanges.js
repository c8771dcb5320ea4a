// Exchanges: the list, and one of them with its bindings both ways.
import { at, exchangeInPath, lookForVhosts } from "../api.js";
import { Bindings, bindFrom, bindTo } from "../bindings.js";
import { Chart, Ranges, SHORT, chosenRange, usePast, useRecent } from "../chart.js";
import { asArguments, inVhost, sh } from "../commands.js";
import { act } from "../dialogs.js";
import { number, rate } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { publish } from "../publish.js";
import { go } from "../router.js";
import { ServerTable } from "../table.js";
import { Card, Empty, Exchange, Explained, Facts, Head, Missing, Tag, Trouble } from "../ui.js";

const TYPES = /** @type {[string, string][]} */ ([["direct", "direct: the key is the binding's"], ["fanout", "fanout: to all that is bound"], ["topic", "topic: words of the key, with * and #"],
  ["headers", "headers: by what the headers say"], ["x-delayed-message", "x-delayed-message: later"], ["x-consistent-hash", "x-consistent-hash: one of them, by hash"], ["x-random", "x-random: one of them"]]);

/** @type {import("../table.js").Column[]} */
const COLUMNS = [
  { key: "name", label: "name", show: row => html`<${Exchange} vhost=${row.vhost} name=${row.name} />` },
  { key: "vhost", label: "vhost", show: row => row.vhost },
  { key: "type", label: "type", show: row => html`<${Tag} kind="accent">${row.type}<//>` },
  { key: "features", label: "features", sort: "policy", need: "durable,auto_delete,internal,arguments,policy", show: row => html`${!row.durable && html`<${Tag} kind="warn">transient<//>`}${row.auto_delete && html`<${Tag}>auto-delete<//>`}
    ${row.internal && html`<${Tag}>internal<//>`}${row.arguments?.["alternate-exchange"] && html`<${Tag} title=${row.arguments["alternate-exchange"]}>alternate<//>`}${row.policy && html`<${Tag} kind="accent">${row.policy}<//>`}` },
  { key: "in", label: "in", num: true, sort: "message_stats.publish_in_details.rate", need: "message_stats.publish_in_details", show: row => rate(row.message_stats?.publish_in_details?.rate ?? 0) },
  { key: "out", label: "out", num: true, sort: "message_stats.publish_out_details.rate", need: "message_stats.publish_out_details", show: row => rate(row.message_stats?.publish_out_details?.rate ?? 0) },
  { key: "messages_delayed", label: "delayed", num: true, off: true, show: row => row.messages_delayed === undefined ? "" : number(row.messages_delayed) },
];

/** @param {string} vhost */
export const add = async vhost => {
  const all = await lookForVhosts();
  act({ title: "Add an exchange", verb: "Add", done: "the exchange is there",
    fields: [{ name: "vhost", label: "Virtual host", type: "select", options: all, value: vhost || all[0] }, { name: "name", label: "Name", required: true }, { name: "type", label: "Type", type: "select", options: TYPES },
      { name: "durable", label: "Durable: it outlives a restart", type: "checkbox", value: true }, { name: "auto_delete", label: "Auto-delete: it goes with its last binding", type: "checkbox" },
      { name: "internal", label: "Internal: only other exchanges publish to it", type: "checkbox" }, { name: "arguments", label: "Arguments", type: "json", keys: [["alternate-exchange", "unrouted"], ["x-delayed-type", "topic"]] }],
    action: v => {
      const args = v.type === "x-delayed-message" && !v.arguments["x-delayed-type"] ? { "x-delayed-type": "direct", ...v.arguments } : v.arguments;
      return { method: "PUT", path: at`exchanges/${v.vhost}/${v.name}`, body: { type: v.type, durable: v.durable, auto_delete: v.auto_delete, internal: v.internal, arguments: args },
        warren: sh`warren declare exchange ${v.name} --type ${v.type}` + inVhost(v.vhost) + (v.durable ? "" : " --transient") + (v.auto_delete ? " --auto-delete" : "") + (v.internal ? " --internal" : "") + asArguments(args) };
    } });
};

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  if (route.path.length > 2) return html`<${One} vhost=${route.path[1]} name=${route.path[2]} query=${route.query} />`;
  const { vhost } = route.query;
  return html`<${Head} title="Exchanges" sub="Where messages are published to, and how they find their queues."><button class="main" onClick=${() => add(vhost)}>Add an exchange</button><//>
    <${ServerTable} path=${vhost ? at`exchanges/${vhost}` : "/exchanges"} columns=${COLUMNS} need=${["name", "vhost"]} id=${(/** @type {any} */ row) => row.vhost + " " + row.name} empty=${html`<${Empty} title="No exchange" text="You may see no virtual host." />`} />`;
}

/** @param {{vhost: string, name: string, query: Record<string, string>}} props */
function One({ vhost, name, query }) {
  const range = chosenRange(query, SHORT);
  const path = at`exchanges/${vhost}/${exchangeInPath(name)}`;
  const { data: one, problem } = useLive(path);
  const past = usePast(one && path, range);
  const recent = useRecent(one, path, range);
  const isDefault = name === "amq.default";
  if (problem && !one) return html`<${Missing} name=${name} what=${`exchange in ${vhost}`} why="It may have been deleted." problem=${problem} path=${["exchanges"]} all="All exchanges" />`;
  const remove = () => act({ title: `Delete exchange ${name}`, text: "Its bindings go with it.", danger: true, verb: "Delete", name, done: "the exchange is deleted", after: () => go(["exchanges"]),
    fields: [{ name: "unused", label: "Only if nothing is bound", type: "checkbox" }],
    action: v => ({ method: "DELETE", path: path + (v.unused ? "?if-unused=true" : ""), warren: sh`warren delete exchange ${name}` + inVhost(vhost) + (v.unused ? " --if-unused" : "") }) });
  const series = [["publish_in", "in", "--c1"], ["publish_out", "out", "--c2"]].map(([key, label, color]) => ({ label, color, rate: true, details: (/** @type {any} */ doc) => doc.message_stats?.[`${key}_details`] }));
  return html`<${Head} title=${isDefault ? "(default)" : name} sub=${one && html`${one.type} exchange in ${vhost}`}>
      <${Ranges} now=${range} names=${SHORT} /><button onClick=${() => go(["topology"], { vhost, exchange: name })}>Try a key</button><button onClick=${() => publish(vhost, isDefault ? "" : name)}>Publish</button>
      ${!isDefault && html`<button onClick=${() => bindFrom(vhost, name)}>Bind from it</button><button onClick=${() => bindTo(vhost, name, "exchange")}>Bind to it</button>`}
      ${!isDefault && !name.startsWith("amq.") && html`<button class="danger" onClick=${remove}>Delete</button>`}<//><${Trouble} problem=${problem} />
    ${one && html`<div class="grid"><${Card}><${Chart} title="Messages a second" series=${series} past=${past} recent=${recent} show=${rate} /><//>
      <${Card} title="Exchange"><${Facts} pairs=${[["durable", one.durable ? "yes" : "no"], ["auto-delete", one.auto_delete ? "yes" : "no"], ["internal", one.internal ? "yes" : "no"], ["policy", one.policy ?? "none"],
        ["delayed messages", one.messages_delayed === undefined ? undefined : number(one.messages_delayed)], ["declared by", one.user_who_performed_action || undefined]]} /><h3>Arguments</h3><${Explained} value=${one.arguments} /><//></div>
    ${isDefault ? html`<${Card} title="Bindings"><p class="soft">Every queue is bound to the default exchange by its own name. Nobody can change that.</p><//>`
      : html`<${Card} title="Out of it"><${Bindings} vhost=${vhost} path=${path + "/bindings/source"} name=${name} kind="exchange" /><//>
    <${Card} title="Into it"><${Bindings} vhost=${vhost} path=${path + "/bindings/destination"} name=${name} kind="exchange" /><//>`}`}`;
}
