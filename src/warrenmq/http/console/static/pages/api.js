// The API page: every endpoint with who may call it, and the command that does.
import { answer } from "../api.js";
import { curl } from "../commands.js";
import { Commands } from "../dialogs.js";
import { html, useEffect, useState } from "../html.js";
import { setQuery } from "../router.js";
import { Card, Empty, Head, Tag } from "../ui.js";

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const [paths, setPaths] = useState(/** @type {any} */ (null));
  useEffect(() => { answer("GET", "api/openapi.json").then(found => setPaths(found.json.paths)); }, []);
  const text = (route.query.name ?? "").toLowerCase();
  const rows = Object.entries(paths ?? {}).flatMap(([path, verbs]) => Object.entries(verbs).map(([verb, one]) => ({ path, verb: verb.toUpperCase(), ...one })))
    .filter(row => `${row.verb} ${row.path} ${row.summary}`.toLowerCase().includes(text));
  const groups = [...new Set(rows.map(row => row.tags[0]))];
  return html`<${Head} title="API" sub=${html`RabbitMQ's management API at its own paths, and more. For programs: <a href="api/openapi.json">the OpenAPI description</a>.`} />
    <input type="search" aria-label="filter endpoints" placeholder="Filter" value=${route.query.name ?? ""} onInput=${(/** @type {any} */ event) => setQuery({ name: event.target.value })} />
    ${paths && rows.length === 0 && html`<${Card}><${Empty} title="Nothing matches" text="No endpoint has this in it." /><//>`}
    ${groups.map(group => html`<${Card} key=${group} title=${group}>${rows.filter(row => row.tags[0] === group).map(row => html`<div class="message" key=${row.verb + row.path}><header><${Tag} kind=${row.verb === "GET" ? "good" : row.verb === "DELETE" ? "bad" : "accent"}>${row.verb}<//><code>${row.path}</code>
      <span class="grow">${row.summary}</span><small>${row["x-allowed-to"]}</small></header><${Commands} curl=${curl({ method: row.verb, path: row.path.slice(4), body: row.requestBody ? {} : undefined })} /></div>`)}<//>`)}`;
}
