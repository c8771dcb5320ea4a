// Lists: filter, sort, page and choose columns, with all of it in the address. Long ones are cut by the broker.
import { html, useState } from "./html.js";
import { useLive } from "./live.js";
import { number } from "./format.js";
import { setQuery, useRoute } from "./router.js";
import { Empty, Trouble } from "./ui.js";

/** @typedef {{key: string, label: string, sort?: string, num?: boolean, show: (row: any) => any, text?: (row: any) => string,
 *   off?: boolean, need?: string}} Column */

const SIZE = 50;

/** A list that the broker filters, sorts and cuts.
 * @param {{path: string, columns: Column[], need?: string[], empty: any, id: (row: any) => string, more?: string, search?: string}} props */
export function ServerTable({ path, columns, need = [], empty, id, more = "", search = "name" }) {
  const { query } = useRoute();
  const chosen = shown(columns, query.columns);
  const sort = query.sort ?? "";
  const fields = [...new Set([...need, ...chosen.map(one => one.need ?? one.key)])].filter(one => one !== "");
  const wanted = new URLSearchParams({ page: query.page ?? "1", page_size: String(SIZE), columns: fields.join(",") });
  if (query.name) wanted.set("name", query.name);
  if (query.regex) wanted.set("use_regex", "true");
  if (sort) { wanted.set("sort", sort); wanted.set("sort_reverse", String(query.reverse === "1")); }
  const { data, problem } = useLive(`${path}?${wanted}${more}`);
  const rows = data?.items ?? [];
  const none = data && data.total_count === 0;
  return html`<div class="list">
    <${Bar} columns=${columns} chosen=${chosen} query=${query} search=${search} regex=${true} change=${setQuery}
      count=${data ? (data.filtered_count === data.total_count ? number(data.total_count) : `${number(data.filtered_count)} of ${number(data.total_count)}`) : ""} />
    <${Trouble} problem=${problem} />
    ${none ? empty : html`<${Rows} columns=${chosen} rows=${rows} id=${id} sort=${sort} reverse=${query.reverse === "1"} waiting=${!data && !problem} change=${setQuery} />
    ${data && rows.length === 0 && html`<${Empty} title="Nothing matches" text="No name has this in it. Change the filter above, or clear it." />`}
    <${Pages} page=${Number(query.page ?? 1)} count=${data?.page_count ?? 1} change=${setQuery} />`}</div>`;
}

/** A list that is here already. ``bare``: one of several on its page, so that what is chosen is not in the address.
 * @param {{rows: any[] | null, columns: Column[], empty: any, id: (row: any) => string, problem?: Error | null, bare?: boolean}} props */
export function Table({ rows, columns, empty, id, problem = null, bare = false }) {
  const route = useRoute();
  const [own, setOwn] = useState(/** @type {Record<string, string>} */ ({}));
  const query = bare ? own : route.query;
  const change = bare ? (/** @type {any} */ part) => setOwn(now => ({ ...now, ...part })) : setQuery;
  const chosen = shown(columns, query.columns);
  const { sort, name } = query;
  const reverse = query.reverse === "1";
  let found = rows ?? [];
  if (name) found = found.filter(row => columns.some(column => column.text?.(row).toLowerCase().includes(name.toLowerCase())));
  if (sort) found = [...found].sort((one, other) => compare(at(one, sort), at(other, sort)) * (reverse ? -1 : 1));
  const count = Math.max(1, Math.ceil(found.length / SIZE));
  const page = Math.min(Number(query.page || 1), count);
  const long = rows !== null && rows.length > (bare ? SIZE : 0);
  return html`<div class="list">
    ${long && html`<${Bar} columns=${columns} chosen=${chosen} query=${query} search="text" regex=${false} change=${change}
      count=${found.length === rows.length ? number(rows.length) : `${number(found.length)} of ${number(rows.length)}`} />`}
    <${Trouble} problem=${problem} />
    ${rows && rows.length === 0 ? empty : html`<${Rows} columns=${chosen} rows=${found.slice((page - 1) * SIZE, page * SIZE)} id=${id} sort=${sort ?? ""} reverse=${reverse}
      waiting=${!rows && !problem} change=${change} />`}
    <${Pages} page=${page} count=${count} change=${change} /></div>`;
}

/** @param {Column[]} columns @param {string | undefined} wanted */
function shown(columns, wanted) {
  if (!wanted) return columns.filter(column => !column.off);
  const keys = wanted.split(",");
  return columns.filter(column => keys.includes(column.key) || column.label === "");
}

/** @param {any} row @param {string} path */
const at = (row, path) => path.split(".").reduce((value, step) => value?.[step], row);

/** @param {any} one @param {any} other */
function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one ?? "").localeCompare(String(other ?? ""));
}

/** @param {{columns: Column[], chosen: Column[], query: Record<string, string>, count: string, search: string, regex: boolean, change: (part: any) => void}} props */
function Bar({ columns, chosen, query, count, search, regex, change }) {
  const choose = (/** @type {Column} */ column) => {
    const keys = columns.filter(one => (one === column) !== chosen.includes(one)).map(one => one.key);
    change({ columns: keys.join(",") });
  };
  return html`<div class="bar">
    <input type="search" aria-label=${`filter by ${search}`} placeholder=${`Filter by ${search}`} value=${query.name ?? ""}
      onInput=${(/** @type {any} */ event) => change({ name: event.target.value, page: "" })} />
    ${regex && html`<label class="check"><input type="checkbox" checked=${query.regex === "1"}
      onChange=${(/** @type {any} */ event) => change({ regex: event.target.checked ? "1" : "", page: "" })} /> regular expression</label>`}
    <span class="soft grow">${count}</span>
    ${columns.length > 3 && html`<details class="menu"><summary>Columns</summary><div class="menu-box">${columns.filter(one => one.label).map(column =>
      html`<label class="check"><input type="checkbox" checked=${chosen.includes(column)} onChange=${() => choose(column)} /> ${column.label}</label>`)}</div></details>`}
  </div>`;
}

/** @param {{columns: Column[], rows: any[], id: (row: any) => string, sort: string, reverse: boolean, waiting: boolean,
 *   change: (part: any) => void}} props */
function Rows({ columns, rows, id, sort, reverse, waiting, change }) {
  const sorted = (/** @type {Column} */ column) => {
    const key = column.sort ?? column.key;
    const down = sort === key ? !reverse : !!column.num;
    change({ sort: key, reverse: down ? "1" : "", page: "" });
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="table"><table role="table" aria-busy=${waiting}>
    <thead role="rowgroup"><tr role="row">${columns.map(column => {
      const key = column.sort ?? column.key;
      const order = sort === key ? (reverse ? "descending" : "ascending") : undefined;
      return html`<th key=${column.key} role="columnheader" class=${column.num ? "num" : ""} aria-sort=${order} scope="col">${key && column.label
        ? html`<button onClick=${() => sorted(column)}>${column.label}<span aria-hidden="true">${order ? (reverse ? " ↓" : " ↑") : ""}</span></button>`
        : column.label || html`<span class="hidden">actions</span>`}</th>`;
    })}</tr></thead>
    <tbody role="rowgroup">${waiting ? html`<tr role="row"><td role="cell" colspan=${columns.length} class="soft">…</td></tr>` : rows.map(row =>
      html`<tr role="row" key=${id(row)}>${columns.map(column => html`<td role="cell" key=${column.key} class=${column.num ? "num" : ""} data-label=${column.label}>${column.show(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** @param {{page: number, count: number, change: (part: any) => void}} props */
function Pages({ page, count, change }) {
  if (count <= 1) return null;
  const to = (/** @type {number} */ n) => change({ page: n === 1 ? "" : String(n) });
  return html`<nav class="pages" aria-label="Pages"><button disabled=${page <= 1} onClick=${() => to(page - 1)}>Previous</button>
    <span>page ${number(page)} of ${number(count)}</span>
    <button disabled=${page >= count} onClick=${() => to(page + 1)}>Next</button></nav>`;
}
