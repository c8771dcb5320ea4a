// Virtual hosts: the list, and one of them with its figures, limits and who may what in it.
import { at, lookForVhosts, may } from "../api.js";
import { Chart, RATES, Ranges, chosenRange, lengths, usePast, useRecent } from "../chart.js";
import { sh } from "../commands.js";
import { act } from "../dialogs.js";
import { bytes, number, rate } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { go } from "../router.js";
import { ServerTable, Table } from "../table.js";
import { Card, Empty, Facts, Go, Head, Missing, Stat, Tag, Trouble } from "../ui.js";

export const add = () => act({ title: "Add a virtual host", verb: "Add", done: "the virtual host is there", after: lookForVhosts, text: "You get all permissions in it.", fields: [{ name: "name", label: "Name", required: true }, { name: "description", label: "Description" }, { name: "type", label: "Queues are by default", type: "select", options: ["classic", "quorum", "stream"] }],
  action: v => ({ method: "PUT", path: at`vhosts/${v.name}`, body: { description: v.description, ...(v.type === "classic" ? {} : { default_queue_type: v.type }) }, warren: sh`warren ctl add_vhost ${v.name}` + (v.description ? sh` --description ${v.description}` : "") + (v.type === "classic" ? "" : ` --default-queue-type ${v.type}`) }) });
const limit = (/** @type {string} */ name) => act({ title: `Limit ${name}`, verb: "Set", done: "set", fields: [{ name: "limit", label: "Limit", type: "select", options: ["max-connections", "max-queues"] }, { name: "value", label: "At most", type: "number", value: 1000, hint: "-1 is no limit, 0 allows none" }],
  action: v => ({ method: "PUT", path: at`vhost-limits/${name}/${v.limit}`, body: { value: v.value }, warren: sh`warren ctl set_vhost_limits -p ${name} ${JSON.stringify({ [v.limit]: v.value })}` }) });
const lift = (/** @type {string} */ name, /** @type {string} */ which) => act({ title: `Lift ${which} of ${name}`, verb: "Lift", done: "lifted", text: "There is no such limit then.", action: () => ({ method: "DELETE", path: at`vhost-limits/${name}/${which}` }) });
const remove = (/** @type {string} */ name) => act({ title: `Delete virtual host ${name}`, text: "With all that it holds: queues, messages, exchanges, permissions.", danger: true, verb: "Delete", name, done: "the virtual host is deleted", after: () => { go(["vhosts"]); lookForVhosts(); }, action: () => ({ method: "DELETE", path: at`vhosts/${name}`, warren: sh`warren ctl delete_vhost ${name}` }) });

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const { data: limits } = useLive("/vhost-limits");
  const of = (/** @type {string} */ name) => limits?.find((/** @type {any} */ one) => one.vhost === name)?.value ?? {};
  if (route.path.length > 1) return html`<${One} name=${route.path[1]} query=${route.query} limits=${of(route.path[1])} />`;
  /** @type {import("../table.js").Column[]} */
  const columns = [
    { key: "name", label: "name", need: "name,description", show: row => html`<${Go} path=${["vhosts", row.name]}>${row.name}<//>${row.description && html`<br /><small>${row.description}</small>`}` },
    { key: "messages_ready", label: "ready", num: true, show: row => number(row.messages_ready) }, { key: "messages_unacknowledged", label: "unacked", num: true, show: row => number(row.messages_unacknowledged) },
    { key: "publish", label: "published", num: true, sort: "message_stats.publish_details.rate", need: "message_stats.publish_details", show: row => rate(row.message_stats?.publish_details?.rate ?? 0) },
    { key: "recv_oct", label: "received", num: true, show: row => bytes(row.recv_oct) }, { key: "send_oct", label: "sent", num: true, show: row => bytes(row.send_oct) },
    { key: "default_queue_type", label: "default type", show: row => kind(row) }, { key: "limits", label: "limits", sort: "name", need: "name", show: row => Object.entries(of(row.name)).map(([name, value]) => html`<${Tag} kind="warn">${name} ${value}<//>`) },
  ];
  if (may("administrator")) columns.push({ key: "", label: "", show: row => html`<div class="actions"><button onClick=${() => limit(row.name)}>Limit</button><button class="danger" onClick=${() => remove(row.name)}>Delete</button></div>` });
  return html`<${Head} title="Virtual hosts" sub="Worlds of their own: names, permissions and limits are by virtual host.">${may("administrator") && html`<button class="main" onClick=${add}>Add a virtual host</button>`}<//>
    <${ServerTable} path="/vhosts" columns=${columns} need=${["name"]} id=${(/** @type {any} */ row) => row.name} empty=${html`<${Empty} title="No virtual host" text="You may enter none: an administrator sets permissions in one." />`} />`;
}

/** @param {any} row */
const kind = row => !row.default_queue_type || row.default_queue_type === "undefined" ? "classic" : row.default_queue_type;

/** Who is no administrator is shown what the list has of it.
 * @param {{name: string, query: Record<string, string>, limits: Record<string, number>}} props */
function One({ name, query, limits }) {
  const range = chosenRange(query);
  const chief = may("administrator");
  const path = at`vhosts/${name}`;
  const { data, problem } = useLive(chief ? path : "/vhosts");
  const one = chief ? data : data?.find((/** @type {any} */ row) => row.name === name);
  const past = usePast(one && chief ? path : null, range);
  const recent = useRecent(one, path + range, range);
  const gone = data && !one ? Object.assign(new Error("Not Found"), { status: 404 }) : problem;
  if (gone && !one) return html`<${Missing} name=${name} what="virtual host" why="It may have been deleted, or you may not enter it." problem=${gone} path=${["vhosts"]} all="All virtual hosts" />`;
  if (!one) return html`<${Head} title=${name} sub="virtual host" />`;
  return html`<${Head} title=${name} sub=${one.description || "virtual host"}><${Ranges} now=${range} /><${Go} path=${["queues"]} query=${{ vhost: name }} class="button">Queues<//><${Go} path=${["topology"]} query=${{ vhost: name }} class="button">Topology<//>
      ${chief && html`<button onClick=${() => limit(name)}>Limit</button><button class="danger" onClick=${() => remove(name)}>Delete</button>`}<//>
    <dl class="stats"><${Stat} label="ready" value=${number(one.messages_ready)} /><${Stat} label="unacked" value=${number(one.messages_unacknowledged)} /><${Stat} label="published" value=${rate(one.message_stats?.publish_details?.rate ?? 0)} />
      <${Stat} label="received" value=${bytes(one.recv_oct)} /><${Stat} label="sent" value=${bytes(one.send_oct)} /></dl>
    <div class="grid"><${Card}><${Chart} title="Messages in queues" series=${lengths(doc => doc)} past=${past} recent=${recent} /><//><${Card}><${Chart} title="Messages a second" series=${RATES} past=${past} recent=${recent} show=${rate} /><//></div>
    <div class="grid"><${Card} title="Limits">${Object.keys(limits).length ? html`<${Facts} pairs=${Object.entries(limits).map(([which, value]) => [which, html`${number(value)} ${chief && html`<button class="small" onClick=${() => lift(name, which)}>Lift</button>`}`])} />` : html`<p class="soft">Connections and queues are not limited in it.</p>`}<//>
      <${Card} title="More"><${Facts} pairs=${[["queues are by default", kind(one)], ["tags", one.tags?.length ? one.tags.join(", ") : undefined], ["tracing", one.tracing ? "on" : "off"]]} /><//></div>
    ${chief && html`<${Rights} path=${path} />`}`;
}

/** @param {{path: string}} props */
function Rights({ path }) {
  const { data: permissions, problem } = useLive(path + "/permissions");
  const { data: topics } = useLive(path + "/topic-permissions");
  const user = { key: "user", label: "user", text: (/** @type {any} */ row) => row.user, show: (/** @type {any} */ row) => html`<${Go} path=${["users", row.user]}>${row.user}<//>` };
  const pattern = (/** @type {string} */ key) => ({ key, label: key, show: (/** @type {any} */ row) => html`<code>${row[key]}</code>` });
  return html`<${Trouble} problem=${problem} /><${Card} title="Who may what"><${Table} bare rows=${permissions} id=${(/** @type {any} */ row) => row.user} columns=${[user, pattern("configure"), pattern("write"), pattern("read")]}
      empty=${html`<${Empty} title="Nobody may enter it" text="Set permissions on the page of a user."><${Go} path=${["users"]}>Users<//><//>`} /><//>
    <${Card} title="Topic permissions"><${Table} bare rows=${topics} id=${(/** @type {any} */ row) => row.user + " " + row.exchange} columns=${[user, { key: "exchange", label: "exchange", show: (/** @type {any} */ row) => row.exchange }, pattern("write"), pattern("read")]}
      empty=${html`<${Empty} title="Every key is allowed" text="Topic permissions narrow the keys that a user may use at one topic exchange." />`} /><//>`;
}
