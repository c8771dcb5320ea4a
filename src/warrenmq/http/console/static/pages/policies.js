// Policies and operator policies, and what each of them is in force on right now.
import { at, lookForVhosts, may } from "../api.js";
import { inVhost, sh } from "../commands.js";
import { act } from "../dialogs.js";
import { number } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { href } from "../router.js";
import { Table } from "../table.js";
import { Card, Empty, Go, Head } from "../ui.js";

/** Of policies and operator policies. @type {[string, any][]} */
const LIMITS = [["message-ttl", 60000], ["expires", 3600000], ["max-length", 10000], ["max-length-bytes", 100000000], ["delivery-limit", 5]];

/** @param {boolean} operator @param {string} vhost @param {any} [row] */
export async function set(operator, vhost, row) {
  const all = await lookForVhosts();
  act({ title: row ? `Change ${row.name}` : operator ? "Set an operator policy" : "Set a policy", verb: "Set", done: "set; it is live",
    text: operator ? "Operator policies limit what policies and arguments ask for: the smaller value counts." : "Of the policies that fit a queue or exchange, the one with the highest priority is in force.",
    fields: [{ name: "vhost", label: "Virtual host", type: "select", options: all, value: row?.vhost ?? (vhost || all[0]) }, { name: "name", label: "Name", value: row?.name ?? "", required: true }, { name: "pattern", label: "Pattern", value: row?.pattern ?? "", hint: "a regular expression for names" },
      { name: "apply", label: "Applies to", type: "select", value: row?.["apply-to"] ?? (operator ? "queues" : "all"), options: operator ? ["queues"] : ["all", "queues", "exchanges"] }, { name: "priority", label: "Priority", type: "number", value: row?.priority ?? 0 },
      { name: "definition", label: "Definition", type: "json", value: row ? JSON.stringify(row.definition) : "{}", keys: operator ? LIMITS : [...LIMITS, ["overflow", "reject-publish"], ["dead-letter-exchange", "dead"], ["dead-letter-routing-key", "retry"], ["alternate-exchange", "unrouted"]] }],
    action: v => ({ method: "PUT", path: at`${operator ? "operator-policies" : "policies"}/${v.vhost}/${v.name}`, body: { pattern: v.pattern, definition: v.definition, priority: v.priority ?? 0, "apply-to": v.apply },
      warren: operator ? sh`warren ctl set_operator_policy` + inVhost(v.vhost) + sh` --priority ${v.priority ?? 0} --apply-to ${v.apply} ${v.name} ${v.pattern} ${JSON.stringify(v.definition)}`
        : sh`warren policy set ${v.name} ${v.pattern} --arguments ${JSON.stringify(v.definition)} --apply-to ${v.apply} --priority ${v.priority ?? 0}` + inVhost(v.vhost) }) });
}

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const { vhost } = route.query;
  const { data: own, problem: wrong } = useLive(vhost ? at`policies/${vhost}` : "/policies");
  const { data: operators, problem: refused } = useLive(vhost ? at`operator-policies/${vhost}` : "/operator-policies");
  const { data: force } = useLive(vhost ? at`policies-in-force/${vhost}` : "/policies-in-force");
  const list = (/** @type {any[] | null} */ rows, /** @type {boolean} */ operator) => {
    const problem = operator ? refused : wrong;
    const remove = (/** @type {any} */ row) => act({ title: `Delete policy ${row.name}`, danger: true, verb: "Delete", name: row.name, done: "deleted", action: () => ({ method: "DELETE", path: at`${operator ? "operator-policies" : "policies"}/${row.vhost}/${row.name}`,
      warren: operator ? `warren ctl clear_operator_policy` + inVhost(row.vhost) + sh` ${row.name}` : sh`warren policy clear ${row.name}` + inVhost(row.vhost) }) });
    return html`<${Table} bare rows=${rows} problem=${problem} id=${(/** @type {any} */ row) => row.vhost + " " + row.name}
      empty=${html`<${Empty} title=${operator ? "No operator policy" : "No policy yet"} text="A policy gives arguments to all queues or exchanges whose name fits, also to those that are there already." />`}
      columns=${[{ key: "name", label: "name", text: (/** @type {any} */ row) => row.name, show: (/** @type {any} */ row) => html`<b>${row.name}</b>` }, { key: "vhost", label: "vhost", show: (/** @type {any} */ row) => row.vhost }, { key: "pattern", label: "pattern", text: (/** @type {any} */ row) => row.pattern, show: (/** @type {any} */ row) => html`<code>${row.pattern}</code>` },
        { key: "apply-to", label: "applies to", show: (/** @type {any} */ row) => row["apply-to"] }, { key: "priority", label: "priority", num: true, show: (/** @type {any} */ row) => number(row.priority) }, { key: "definition", label: "definition", show: (/** @type {any} */ row) => html`<code>${JSON.stringify(row.definition)}</code>` },
        { key: "force", label: "in force on", show: (/** @type {any} */ row) => html`<${Matched} of=${force?.find((/** @type {any} */ one) => one.vhost === row.vhost && one.name === row.name && one.operator === operator)} />` },
        { key: "", label: "", show: (/** @type {any} */ row) => may(operator ? "administrator" : "policymaker") && html`<div class="actions">${!operator && html`<${Go} path=${["whatif"]} query=${{ change: "unpolicy", vhost: row.vhost, name: row.name }}>What if not?<//>`}<button onClick=${() => set(operator, row.vhost, row)}>Change</button><button class="danger" onClick=${() => remove(row)}>Delete</button></div>` }]} />`;
  };
  return html`<${Head} title="Policies" sub="Arguments for queues and exchanges by their names, changed while everything runs." />
    <${Card} title="Policies" aside=${may("policymaker") && html`<button class="main" onClick=${() => set(false, vhost)}>Set a policy</button>`}>${list(own, false)}<//>
    <${Card} title="Operator policies" aside=${may("administrator") && html`<button onClick=${() => set(true, vhost)}>Set an operator policy</button>`}>${list(operators, true)}<//>`;
}

/** @param {{of: any}} props */
function Matched({ of }) {
  if (!of) return html`<span class="soft">…</span>`;
  const all = of.queues + of.exchanges;
  if (!all) return html`<span class="soft">nothing</span>`;
  const first = of.first.map((/** @type {any} */ one) => html`<div><a href=${href([one.kind + "s", of.vhost, one.name || "amq.default"])}>${one.name || "(default)"}</a></div>`);
  return html`<details><summary>${number(all)}</summary>${first}${all > first.length && html`<small>and ${number(all - first.length)} more</small>`}</details>`;
}
