// Bindings of a queue or an exchange, both ways.
import { at, exchangeInPath } from "./api.js";
import { asArguments, inVhost, sh } from "./commands.js";
import { act } from "./dialogs.js";
import { html } from "./html.js";
import { useLive } from "./live.js";
import { Table } from "./table.js";
import { Empty, Exchange, Go, Queue, Tag } from "./ui.js";

/** @param {string} vhost @param {string} name @param {"queue" | "exchange"} kind what gets the messages */
export const bindTo = (vhost, name, kind) => act({
  title: `Bind ${kind} ${name}`, text: "Messages of an exchange come here when their key fits.", verb: "Bind", done: "bound",
  fields: [{ name: "source", label: "From exchange", required: true }, ...KEY],
  action: v => binding(vhost, v.source, name, kind, v.key, v.arguments),
});

/** @param {string} vhost @param {string} source */
export const bindFrom = (vhost, source) => act({
  title: `Bind from ${source}`, text: "Messages of this exchange go there when their key fits.", verb: "Bind", done: "bound",
  fields: [{ name: "kind", label: "To", type: "select", options: ["queue", "exchange"] }, { name: "name", label: "Name", required: true }, ...KEY],
  action: v => binding(vhost, source, v.name, v.kind, v.key, v.arguments),
});

/** @type {import("./dialogs.js").Field[]} */
const KEY = [{ name: "key", label: "Routing key", hint: "at topic exchanges * is one word, # any number of them" },
  { name: "arguments", label: "Arguments", type: "json", hint: 'at headers exchanges what has to be there: {"x-match": "all", "kind": "order"}' }];

/** @param {string} vhost @param {string} source @param {string} name @param {string} kind @param {string} key @param {any} args */
const binding = (vhost, source, name, kind, key, args) => ({
  method: "POST", path: at`bindings/${vhost}/e/${exchangeInPath(source)}/${kind === "queue" ? "q" : "e"}/${name}`, body: { routing_key: key, arguments: args },
  warren: sh`warren bind ${source} ${name} ${key}` + (kind === "queue" ? "" : " --to-exchange") + inVhost(vhost) + asArguments(args),
});

/** @param {any} row */
const unbind = row => act({
  title: `Unbind ${row.destination} from ${row.source}`, danger: true, verb: "Unbind", name: row.destination, done: "unbound", text: row.routing_key ? `The binding with key ${row.routing_key}.` : "",
  action: () => ({ method: "DELETE", path: at`bindings/${row.vhost}/e/${exchangeInPath(row.source)}/${row.destination_type === "queue" ? "q" : "e"}/${row.destination}/${row.properties_key}`,
    warren: sh`warren unbind ${row.source} ${row.destination} ${row.routing_key}` + (row.destination_type === "queue" ? "" : " --to-exchange") + inVhost(row.vhost) + asArguments(row.arguments) }),
});

/** The question what would be without it.
 * @param {any} row */
const without = row => ({ change: "unbind", vhost: row.vhost, source: row.source, kind: row.destination_type, destination: row.destination, key: row.routing_key, arguments: Object.keys(row.arguments).length ? JSON.stringify(row.arguments) : "" });

/** @param {{vhost: string, path: string, name: string, kind: "queue" | "exchange"}} props */
export function Bindings({ vhost, path, name, kind }) {
  const { data, problem } = useLive(path);
  /** @type {import("./table.js").Column[]} */
  const columns = [
    { key: "source", label: "from", text: row => row.source, show: row => html`<${Exchange} vhost=${row.vhost} name=${row.source} />` },
    { key: "routing_key", label: "routing key", text: row => row.routing_key, show: row => html`<code>${row.routing_key}</code>` },
    { key: "arguments", label: "arguments", show: row => Object.keys(row.arguments).length ? html`<code>${JSON.stringify(row.arguments)}</code>` : "" },
    { key: "destination", label: "to", text: row => row.destination, show: row => row.destination_type === "queue" ? html`<${Queue} vhost=${row.vhost} name=${row.destination} />`
      : html`<${Exchange} vhost=${row.vhost} name=${row.destination} /> <${Tag}>exchange<//>` },
    { key: "", label: "", show: row => row.source ? html`<div class="actions"><${Go} path=${["whatif"]} query=${without(row)}>What if not?<//><button onClick=${() => unbind(row)}>Unbind</button></div>` : html`<${Tag} title="every queue has it, nobody can take it away">default<//>` },
  ];
  return html`<${Table} rows=${data} problem=${problem} columns=${columns} bare id=${(/** @type {any} */ row) => [row.source, row.destination_type, row.destination, row.properties_key].join(" ")}
    empty=${html`<${Empty} title="No bindings" text=${kind === "queue" ? `Nothing reaches ${name} but by the default exchange.` : `Nothing is bound here yet.`} ><span class="soft">in ${vhost}</span><//>`} />`;
}
