// The log as it is written: the last lines, the newest first.
import { curl } from "../commands.js";
import { Commands } from "../dialogs.js";
import { time } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { setQuery } from "../router.js";
import { Card, Empty, Head, Tag, Trouble } from "../ui.js";

const KINDS = /** @type {Record<string, string>} */ ({ warning: "warn", error: "bad", critical: "bad" });

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const { level = "", text = "" } = route.query;
  const path = "/log?" + new URLSearchParams({ count: "200", ...(level ? { level } : {}), ...(text ? { text } : {}) });
  const { data, problem } = useLive(path);
  return html`<${Head} title="Log" sub="What the broker has written since its start: the last 200 lines, the newest first." /><${Trouble} problem=${problem} />
    <${Card}><div class="fields"><div class="field"><label for="l-text">Text</label><input id="l-text" type="search" value=${text} placeholder="a name, an address, an event" onInput=${(/** @type {any} */ event) => setQuery({ text: event.target.value })} /></div>
      <div class="field"><label for="l-level">At least</label><select id="l-level" value=${level} onChange=${(/** @type {any} */ event) => setQuery({ level: event.target.value })}>
        <option value="">everything</option><option value="warning">warning</option><option value="error">error</option></select></div></div>
      ${data && (data.length ? html`<ol class="log">${[...data].reverse().map((/** @type {any} */ one) => html`<li key=${one.number}><time>${time(one.time)}</time> <${Tag} kind=${KINDS[one.level] ?? ""}>${one.level}<//> <b>${one.event}</b> <span>${one.text}</span></li>`)}</ol>`
        : html`<${Empty} title=${level || text ? "Nothing matches" : "Nothing was written yet"} text=${level || text ? "No line of the last 1,000 has this in it." : "Lines come when clients connect, definitions change, or something goes wrong."} />`)}
      <${Commands} curl=${curl({ method: "GET", path })} /><//>`;
}
