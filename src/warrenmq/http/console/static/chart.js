// Charts that move: what was comes once from the broker's samples, what is from the live stream.
import { call } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { short } from "./format.js";
import { setQuery } from "./router.js";
import { Store, useStore } from "./store.js";
import uPlot from "./vendor/uplot.js";

/** @typedef {{label: string, color: string, rate?: boolean, details: (doc: any) => any, value?: (doc: any) => number | undefined,
 *   steady?: boolean}} Series steady: it is never 0 in truth */

/** Seconds back, and between two points. */
export const RANGES = /** @type {Record<string, [number, number]>} */ ({
  "10m": [600, 5], "1h": [3600, 60], "8h": [28800, 600], "24h": [86400, 1800],
});

/** The names of those that are kept of everything; the others, of vhosts, the overview and the nodes. */
export const SHORT = ["10m", "1h"];

/** How far back is chosen in the address.
 * @param {Record<string, string>} query @param {string[]} [names] */
export const chosenRange = (query, names = Object.keys(RANGES)) => names.includes(query.range) ? query.range : "10m";

/** @param {{now: string, names?: string[]}} props */
export const Ranges = ({ now, names = Object.keys(RANGES) }) => html`<div class="segments" role="group" aria-label="how far back">${names.map(one =>
  html`<button aria-pressed=${one === now} onClick=${() => setQuery({ range: one === "10m" ? "" : one })}>${one}</button>`)}</div>`;

/** Grows when colours are others. */
export const colours = new Store(0);

/** What was, of a document with samples: asked once, and again when as much time has passed as between two points.
 * @param {string | null} path null: it is not known to be there @param {string} range */
export function usePast(path, range) {
  const [past, setPast] = useState(/** @type {any} */ (null));
  useEffect(() => {
    if (path === null) return undefined;
    let gone = false;
    const [age, step] = RANGES[range];
    const query = ["lengths", "msg_rates", "data_rates", "node_stats"].map(one => `${one}_age=${age}&${one}_incr=${step}`).join("&");
    const look = () => call("GET", `${path}?${query}`).then(found => { if (!gone) setPast({ doc: found, path, range }); }, () => undefined);
    look();
    const timer = setInterval(look, Math.max(60, step) * 1000);
    return () => { gone = true; clearInterval(timer); };
  }, [path, range]);
  return past && past.path === path && past.range === range ? past.doc : null;
}

/** The documents of the stream with their times, as many as are shown: beside more than ten minutes, none.
 * @param {any} doc @param {string} key @param {string} range */
export function useRecent(doc, key, range) {
  const kept = useRef({ key, list: /** @type {[number, any][]} */ ([]) });
  if (kept.current.key !== key) kept.current = { key, list: [] };
  const list = kept.current.list;
  if (doc && list[list.length - 1]?.[1] !== doc) {
    list.push([Date.now() / 1000, doc]);
    if (list.length > 400) list.shift();
  }
  return range === "10m" ? list : [];
}

/** Points of each series at common times.
 * @param {Series[]} series @param {any} past @param {[number, any][]} recent */
export function points(series, past, recent) {
  /** @type {number[]} */
  let times = [];
  const rows = series.map(() => /** @type {(number | null)[]} */ ([]));
  const samples = past ? series.map(one => [...(one.details(past)?.samples ?? [])].reverse()) : [];
  const longest = samples.reduce((most, one) => one.length > most.length ? one : most, []);
  // before there was anything to count, the samples are 0: lengths are left out there, and the first step of a counter
  const begin = samples.map(own => own.findIndex(one => one.sample !== 0));
  for (let n = 1; n < longest.length; n++) {
    const then = longest[n].timestamp / 1000;
    times.push(then);
    samples.forEach((own, place) => {
      const one = own[n], before = own[n - 1];
      if (!one) return rows[place].push(null);
      if (!series[place].rate) return rows[place].push(n < begin[place] && series[place].steady ? null : one.sample);
      const seconds = (one.timestamp - before.timestamp) / 1000;
      return rows[place].push(Math.max(0, (one.sample - before.sample) / seconds));
    });
  }
  const last = times[times.length - 1] ?? 0;
  for (const [then, doc] of recent) {
    if (then <= last) continue;
    times.push(then);
    series.forEach((one, place) => {
      const found = one.rate ? one.details(doc)?.rate ?? 0 : one.value?.(doc);
      rows[place].push(found ?? null);
    });
  }
  if (!times.length) {
    const now = Date.now() / 1000; // an idle broker has been idle
    return [[now - RANGES["10m"][0], now], ...series.map(one => one.rate ? [0, 0] : [null, null])];
  }
  return [times, ...rows];
}

/** @param {string} name */
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @param {{title: string, series: Series[], past: any, recent: [number, any][], show?: (value: number) => string, height?: number}} props */
export function Chart({ title, series, past, recent, show = short, height = 140 }) {
  const box = useRef(/** @type {any} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const scheme = useStore(colours);
  const data = points(series, past, recent);
  const names = series.map(one => one.label).join();
  useEffect(() => {
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const made = new uPlot({
      width: box.current.clientWidth || 300, height: Math.max(height, box.current.clientHeight), legend: { show: false },
      cursor: { points: { size: 6 }, drag: { x: false, y: false } },
      scales: { y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, 1) * 1.1] } },
      axes: [{ ...axis, size: 26, space: 70, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map(clock) },
        { ...axis, size: 58, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map(one => show(one)) }],
      series: [{}, ...series.map(one => ({
        label: one.label, stroke: colour(one.color), width: 2, fill: series.length === 1 ? colour(one.color) + "1c" : undefined,
        points: { show: false }, spanGaps: true,
      }))],
    }, data, box.current);
    plot.current = made;
    const watch = new ResizeObserver(() => { if (box.current) made.setSize({ width: box.current.clientWidth, height: Math.max(height, box.current.clientHeight) }); });
    watch.observe(box.current);
    return () => { watch.disconnect(); made.destroy(); plot.current = null; };
  }, [names, height, scheme]);
  useEffect(() => { plot.current?.setData(data); });
  const now = data.slice(1).map(row => /** @type {any[]} */ (row)[row.length - 1]);
  return html`<figure class="chart"><figcaption><h2>${title}</h2><ul>${series.map((one, n) => html`<li>
    <i class=${"dot " + one.color.slice(2)}></i>${one.label} <b>${now[n] === undefined || now[n] === null ? "–" : show(now[n])}</b></li>`)}</ul></figcaption>
    <div ref=${box} class="plot" role="img" aria-label=${`${title} over time`}></div></figure>`;
}

/** @param {number} seconds */
function clock(seconds) {
  const date = new Date(seconds * 1000);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}${date.getSeconds() ? ":" + two(date.getSeconds()) : ""}`;
}

/** How long something took on average, in ms, from how often it was and how long that took together; nothing where it never was.
 * @param {string} label @param {string} color @param {string} often @param {string} microseconds
 * @returns {Series} */
export function took(label, color, often, microseconds) {
  const mean = (/** @type {number} */ time, /** @type {number} */ count) => count > 0 ? time / count / 1000 : null;
  return { label, color, value: doc => mean(doc[`${microseconds}_details`].rate, doc[`${often}_details`].rate) ?? undefined, details: doc => {
    const times = doc[`${microseconds}_details`]?.samples ?? [], counts = doc[`${often}_details`]?.samples ?? [];
    // the last first: each from the one before it in time
    return { samples: times.map((/** @type {any} */ one, /** @type {number} */ n) => ({ timestamp: one.timestamp,
      sample: times[n + 1] ? mean(one.sample - times[n + 1].sample, counts[n].sample - counts[n + 1].sample) : null })) };
  } };
}

/** The rates of messages, as every object with message_stats has them. */
export const RATES = /** @type {Series[]} */ ([
  ["publish", "--c1"], ["confirm", "--c6"], ["deliver", "--c2"], ["deliver_no_ack", "--c7"], ["ack", "--c3"], ["redeliver", "--c5"], ["get", "--c4"],
].map(([name, color]) => ({
  label: name.replaceAll("_", " "), color, rate: true, details: (/** @type {any} */ doc) => doc.message_stats?.[`${name}_details`],
})));

/** @type {(of: (doc: any) => any) => Series[]} */
export const lengths = of => [["messages_ready", "ready", "--c1"], ["messages_unacknowledged", "unacked", "--c2"]].map(([name, label, color]) => ({
  label, color, details: (/** @type {any} */ doc) => of(doc)?.[`${name}_details`], value: (/** @type {any} */ doc) => of(doc)?.[name],
}));
