// The ledger: what came is what left and what is here, or something is wrong.
import { at, may, oneVhost } from "../api.js";
import { curl, sh } from "../commands.js";
import { Commands } from "../dialogs.js";
import { number } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { Table } from "../table.js";
import { Card, Facts, Head, Queue, Tag, Trouble } from "../ui.js";

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const vhost = route.query.vhost || (may("monitoring") ? "" : oneVhost({})); // of all together only who may see all
  const path = vhost ? at`ledger/${vhost}` : "/ledger";
  const { data, problem } = useLive(path);
  return html`<${Head} title="Ledger" sub="Every message that came has left or is here. The sums are put together anew from what is in the queues." /><${Trouble} problem=${problem} />
    ${data && html`<p class=${data.even ? "fine" : "problem"} role="status">${data.even ? "Everything adds up." : "Something does not add up."}</p>
    ${data.sums.map((/** @type {any} */ sum) => html`<${Card} title=${sum.sum} aside=${html`<${Tag} kind=${sum.difference ? "bad" : "good"}>${sum.difference ? `off by ${number(sum.difference)}` : "closes"}<//>`}>
      ${MEANINGS[sum.sum] && html`<p class="soft">${MEANINGS[sum.sum]}</p>`}<div class="sum"><${Side} title="came" of=${sum.came} /><b>=</b><${Side} title="left" of=${sum.left} /><b>+</b><${Side} title="is here" of=${sum.here} /></div><//>`)}
    ${data.queues.length > 0 && html`<${Card} title="Queues that do not close"><${Table} bare rows=${data.queues} empty="" id=${(/** @type {any} */ row) => row.vhost + row.queue + row.sum}
      columns=${[{ key: "queue", label: "queue", show: (/** @type {any} */ row) => html`<${Queue} vhost=${row.vhost} name=${row.queue} />` }, { key: "vhost", label: "vhost", show: (/** @type {any} */ row) => row.vhost }, { key: "sum", label: "sum", show: (/** @type {any} */ row) => row.sum }, { key: "difference", label: "off by", num: true, show: (/** @type {any} */ row) => number(row.difference) }]} /><//>`}
    <${Commands} warren=${"warren ledger" + (vhost ? sh` --vhost ${vhost}` : "")} curl=${curl({ method: "GET", path })} />`}`;
}

/** What is counted in each sum. */
const MEANINGS = /** @type {Record<string, string>} */ ({
  entries: "Messages in classic and quorum queues; one in three queues counts three times.",
  streams: "Messages appended to streams, and what their retention has trimmed.",
  order: "By how many what queues tell of themselves differs from what stands in their order: always 0.",
  routing: "Every publish, once: a queue took it, it waits for its time, or it was returned, dropped or refused.",
  answers: "Publishes that want a confirm: acked, nacked, or still waiting for the disk.",
  transactions: "Publishes in transactions: committed, rolled back, or open.",
  delayed: "Messages that wait for their time at delayed exchanges.",
});

/** @param {{title: string, of: Record<string, number>}} props */
const Side = ({ title, of }) => html`<div><h3>${title}</h3><p class="total">${number(Object.values(of).reduce((sum, one) => sum + one, 0))}</p>
  <${Facts} pairs=${Object.entries(of).filter(([, value]) => value).map(([name, value]) => [name.replaceAll("_", " "), number(value)])} /></div>`;
