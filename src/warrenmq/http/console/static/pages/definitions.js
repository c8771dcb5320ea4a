// Definitions: export to a file; import with what would change shown first.
import { at, call } from "../api.js";
import { sh } from "../commands.js";
import { act, note } from "../dialogs.js";
import { changes } from "../diff.js";
import { download, number, pretty } from "../format.js";
import { html, useState } from "../html.js";
import { Card, Empty, Head, Tag, Trouble } from "../ui.js";

const KINDS = /** @type {Record<string, [string, string, string]>} */ ({ new: ["good", "new", "will be made"], replaced: ["warn", "replaced", "will be as the file says"], differs: ["bad", "differs, and stays", "is there with other properties; an import leaves it alone"], same: ["", "same", "is there already"] });

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const { vhost } = route.query;
  const path = vhost ? at`definitions/${vhost}` : "/definitions";
  const [file, setFile] = useState(/** @type {{name: string, data: any, found: import("../diff.js").Change[]} | null} */ (null));
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const save = () => call("GET", path).then(found => download(`definitions-${new Date().toISOString().slice(0, 10)}.json`, pretty(found), "string"), error => note(error.message, true));
  const choose = async (/** @type {any} */ event) => {
    const chosen = event.target.files[0];
    setFile(null);
    setProblem(null);
    if (!chosen) return;
    try {
      const data = JSON.parse(await chosen.text());
      setFile({ name: chosen.name, data, found: changes(await call("GET", path), vhost ? within(data, vhost) : data) });
    } catch (error) {
      setProblem(new Error(`${chosen.name}: ${/** @type {Error} */ (error).message}`));
    }
  };
  const count = (/** @type {string} */ what) => file?.found.filter(one => one.what === what).length ?? 0;
  const load = () => act({ title: `Import ${file?.name}`, verb: "Import", done: "imported", after: () => setFile(null), text: `${count("new")} new, ${count("replaced")} replaced, ${count("differs")} differ and stay. Nothing is deleted.`,
    action: () => ({ method: "POST", path, body: file?.data, file: file?.name, ...(vhost ? {} : { warren: sh`warren ctl import_definitions ${file?.name}` }) }) });
  return html`<${Head} title="Definitions" sub=${`Everything that is declared or set${vhost ? ` in vhost ${vhost}` : ""}, without messages.`}><button class="main" onClick=${save}>Export</button><//>
    <${Card} title="Import"><div class="field"><label for="definitions">A file in RabbitMQ's format</label><input id="definitions" type="file" accept=".json,application/json" onChange=${choose} /><small>Nothing happens before you have seen what would change.</small></div>
      <${Trouble} problem=${problem} />
      ${file && html`<div class="row">${Object.entries(KINDS).map(([what, [kind, label]]) => html`<${Tag} kind=${kind}>${number(count(what))} ${label}<//>`)}<span class="grow"></span><button class="main" disabled=${count("new") + count("replaced") === 0} onClick=${load}>Import</button></div>
      ${count("new") + count("replaced") + count("differs") === 0 ? html`<${Empty} title="It is all there already" text="The file says what the broker has." />` : html`<${Changes} found=${file.found.filter(one => one.what !== "same")} />`}`}<//>`;
}

/** @param {any} data @param {string} vhost */
const within = (data, vhost) => Object.fromEntries(Object.entries(data).map(([name, rows]) => [name, Array.isArray(rows) ? rows.map(row => ({ vhost, ...row })) : rows]));

/** @param {{found: import("../diff.js").Change[]}} props */
function Changes({ found }) {
  const sections = [...new Set(found.map(one => one.section))];
  return sections.map(section => html`<div key=${section}><h3>${section.replaceAll("_", " ")}</h3><ul class="diff">${found.filter(one => one.section === section).slice(0, 200).map(one => html`<li>
    <${Tag} kind=${KINDS[one.what][0]} title=${KINDS[one.what][2]}>${KINDS[one.what][1]}<//>${html`<details><summary>${one.name}</summary>
      <div class="grid">${one.before && html`<div><small>now</small><pre tabindex="0">${hidden(one.before)}</pre></div>`}<div><small>in the file</small><pre tabindex="0">${hidden(one.after)}</pre></div></div></details>`}</li>`)}</ul></div>`);
}

/** Without what is secret.
 * @param {any} value */
const hidden = value => JSON.stringify(value, (name, one) => name === "password_hash" ? "…" : one, 2);
