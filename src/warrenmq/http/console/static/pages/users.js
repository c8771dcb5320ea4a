// Users: tags, permissions, topic permissions and limits.
import { at, call, lookForVhosts } from "../api.js";
import { inVhost, sh } from "../commands.js";
import { act } from "../dialogs.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { go } from "../router.js";
import { ServerTable, Table } from "../table.js";
import { Card, Empty, Facts, Go, Head, Missing, Tag, Trouble } from "../ui.js";

const TAGS = ["administrator", "monitoring", "policymaker", "management", "impersonator"];
/** @param {{tags: string[]}} props */
const Tags = ({ tags }) => tags.length ? tags.map(tag => html`<${Tag} kind=${tag === "administrator" ? "accent" : ""}>${tag}<//>`) : html`<span class="soft">none: not the console, only AMQP</span>`;

/** @type {import("../dialogs.js").Field[]} */
const tagged = TAGS.map(tag => ({ name: tag, label: tag, type: "checkbox" }));
const tagsOf = (/** @type {any} */ v) => TAGS.filter(tag => v[tag]);

export const add = () => act({ title: "Add a user", verb: "Add", done: "the user is there", text: "Tags say what of this console and its API the user may use; permissions, what of queues and exchanges.",
  fields: [{ name: "user", label: "Name", required: true }, { name: "password", label: "Password", type: "password", required: true }, ...tagged],
  action: v => ({ method: "PUT", path: at`users/${v.user}`, body: { password: v.password, tags: tagsOf(v).join(",") }, warren: sh`warren user add ${v.user}` + tagsOf(v).map(tag => ` --tag ${tag}`).join("") }) });

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  if (route.path.length > 1) return html`<${One} name=${route.path[1]} />`;
  return html`<${Head} title="Users" sub="Who may log in, and to what end."><button class="main" onClick=${add}>Add a user</button><//>
    <${ServerTable} path="/users" need=${["name"]} id=${(/** @type {any} */ row) => row.name} empty="" columns=${[
      { key: "name", label: "name", show: (/** @type {any} */ row) => html`<${Go} path=${["users", row.name]}>${row.name}<//>` }, { key: "tags", label: "tags", show: (/** @type {any} */ row) => html`<${Tags} tags=${row.tags} />` },
      { key: "limits", label: "limits", show: (/** @type {any} */ row) => Object.entries(row.limits ?? {}).map(([name, value]) => html`<${Tag}>${name} ${value}<//>`) }]} />`;
}

/** @param {{name: string}} props */
function One({ name }) {
  const path = at`users/${name}`;
  const { data: user, problem } = useLive(path + "?columns=name,tags,limits");
  const { data: permissions } = useLive(path + "/permissions");
  const { data: topics } = useLive(path + "/topic-permissions");
  if (problem && !user) return html`<${Missing} name=${name} what="user" why="The user may have been deleted." problem=${problem} path=${["users"]} all="All users" />`;
  const password = () => act({ title: `Another password for ${name}`, verb: "Change", done: "changed", text: "It ends the user's sessions in this console.",
    fields: [{ name: "password", label: "New password", type: "password", required: true }],
    action: v => ({ method: "PUT", path, body: { password: v.password, tags: user.tags.join(",") }, warren: sh`warren user password ${name}` }) });
  const change = async () => { const { password_hash, hashing_algorithm } = await call("GET", path); act({ title: `Tags of ${name}`, verb: "Change", done: "changed", text: "They count from the next call on. The password stays.",
    fields: tagged.map(field => ({ ...field, value: user.tags.includes(field.name) })),
    action: v => ({ method: "PUT", path, body: { password_hash, hashing_algorithm, tags: tagsOf(v).join(",") }, warren: sh`warren user tags ${name}` + tagsOf(v).map(tag => ` --tag ${tag}`).join("") }) }); };
  const remove = () => act({ title: `Delete user ${name}`, text: "The user's connections are closed.", danger: true, verb: "Delete", name, done: "the user is deleted", after: () => go(["users"]), action: () => ({ method: "DELETE", path, warren: sh`warren user delete ${name}` }) });
  const permit = async () => { const all = await lookForVhosts(); act({ title: `What ${name} may do`, text: "Regular expressions, searched in the names of queues and exchanges. Empty allows nothing.", verb: "Set", done: "set",
    fields: [{ name: "vhost", label: "Virtual host", type: "select", options: all }, ...["configure", "write", "read"].map(one => ({ name: one, label: one, value: ".*" }))],
    action: v => ({ method: "PUT", path: at`permissions/${v.vhost}/${name}`, body: { configure: v.configure, write: v.write, read: v.read }, warren: sh`warren permission set ${name} ${v.configure} ${v.write} ${v.read}` + inVhost(v.vhost) }) }); };
  const clear = (/** @type {any} */ row) => act({ title: `Take away what ${name} may do in ${row.vhost}`, danger: true, verb: "Take away", name, done: "taken away", action: () => ({ method: "DELETE", path: at`permissions/${row.vhost}/${name}`, warren: sh`warren permission clear ${name}` + inVhost(row.vhost) }) });
  const topic = async () => { const all = await lookForVhosts(); act({ title: `Which keys ${name} may use`, text: "At one topic exchange. {username} and {vhost} stand for the user's.", verb: "Set", done: "set",
    fields: [{ name: "vhost", label: "Virtual host", type: "select", options: all }, { name: "exchange", label: "Exchange", value: "amq.topic" }, { name: "write", label: "publish to", value: ".*" }, { name: "read", label: "bind with", value: ".*" }],
    action: v => ({ method: "PUT", path: at`topic-permissions/${v.vhost}/${name}`, body: { exchange: v.exchange, write: v.write, read: v.read }, warren: sh`warren ctl set_topic_permissions` + inVhost(v.vhost) + sh` ${name} ${v.exchange} ${v.write} ${v.read}` }) }); };
  const lift = (/** @type {any} */ row) => act({ title: `Lift the topic permission on ${row.exchange}`, danger: true, verb: "Lift", name, done: "lifted", action: () => ({ method: "DELETE", path: at`topic-permissions/${row.vhost}/${name}/${row.exchange}`, warren: sh`warren ctl clear_topic_permissions` + inVhost(row.vhost) + sh` ${name} ${row.exchange}` }) });
  const limit = () => act({ title: `Limit ${name}`, verb: "Set", done: "set", fields: [{ name: "name", label: "Limit", type: "select", options: ["max-connections", "max-channels"] }, { name: "value", label: "At most", type: "number", value: 100, hint: "-1 is no limit, 0 allows none" }],
    action: v => ({ method: "PUT", path: at`user-limits/${name}/${v.name}`, body: { value: v.value }, warren: sh`warren ctl set_user_limits ${name} ${JSON.stringify({ [v.name]: v.value })}` }) });
  const closeAll = () => act({ title: `Close the connections of ${name}`, danger: true, verb: "Close all", name, done: "closed", action: () => ({ method: "DELETE", path: at`connections/username/${name}`, warren: sh`warren ctl close_all_user_connections ${name} ${"by an administrator"}` }) });
  return html`<${Head} title=${name} sub="user"><button onClick=${password} disabled=${!user}>Password</button><button onClick=${change} disabled=${!user}>Tags</button><button onClick=${limit}>Limit</button><button class="danger" onClick=${closeAll}>Close connections</button><button class="danger" onClick=${remove}>Delete</button><//><${Trouble} problem=${problem} />
    ${user && html`<${Card}><${Facts} pairs=${[["tags", html`<${Tags} tags=${user.tags} />`], ...Object.entries(user.limits ?? {}).map(([key, value]) => [key, String(value)])]} /><//>
    <${Card} title="Permissions" aside=${html`<button onClick=${permit}>Set permissions</button>`}><${Table} bare rows=${permissions} id=${(/** @type {any} */ row) => row.vhost} empty=${html`<${Empty} title="May enter no virtual host" text="Set permissions in one, or the user can do nothing over AMQP." />`}
      columns=${[{ key: "vhost", label: "vhost", show: (/** @type {any} */ row) => row.vhost }, ...["configure", "write", "read"].map(one => ({ key: one, label: one, show: (/** @type {any} */ row) => html`<code>${row[one]}</code>` })), { key: "", label: "", show: (/** @type {any} */ row) => html`<button onClick=${() => clear(row)}>Take away</button>` }]} /><//>
    <${Card} title="Topic permissions" aside=${html`<button onClick=${topic}>Set topic permissions</button>`}><${Table} bare rows=${topics} id=${(/** @type {any} */ row) => row.vhost + row.exchange} empty=${html`<${Empty} title="Every key is allowed" text="Topic permissions narrow the keys at one topic exchange." />`}
      columns=${[{ key: "vhost", label: "vhost", show: (/** @type {any} */ row) => row.vhost }, { key: "exchange", label: "exchange", show: (/** @type {any} */ row) => row.exchange }, ...["write", "read"].map(one => ({ key: one, label: one, show: (/** @type {any} */ row) => html`<code>${row[one]}</code>` })), { key: "", label: "", show: (/** @type {any} */ row) => html`<button onClick=${() => lift(row)}>Lift</button>` }]} /><//>`}`;
}
