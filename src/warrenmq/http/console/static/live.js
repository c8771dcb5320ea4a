// One live stream for everything that is on the screen: who shows an answer of the API watches its path.
import { CALL, Problem, ask, worded } from "./api.js";
import { useEffect, useState } from "./html.js";
import { Store } from "./store.js";

/** @typedef {{data: any, problem: Problem | null, at: number}} Seen */

/** @type {Map<string, Set<(seen: Seen) => void>>} */
const watchers = new Map();
/** @type {Map<string, Seen>} */
const known = new Map();
const KNOWN = 40; // answers that are remembered, so that going back shows something at once

/** "live", "connecting" or "lost" */
export const state = new Store("connecting");

/** Is something on the screen that has no answer yet? */
export const waiting = new Store(true);
/** @type {any} */
let calm = null;

/** Said at once where it is so; where it is not, after a moment: what an answer shows may ask for more. */
function tellWaiting() {
  const now = [...watchers.keys()].some(path => !known.has(path));
  clearTimeout(calm);
  if (now === waiting.value) return;
  if (now) waiting.set(true); else calm = setTimeout(() => waiting.set(false), 60);
}

setTimeout(tellWaiting, 60);
addEventListener("hashchange", () => { waiting.set(true); setTimeout(tellWaiting, 60); }); // another page, which has not asked yet

/** @type {AbortController | null} */
let running = null;
let asked = "";
/** @type {any} */
let planned = null;

/** @param {string | null} path below /api; null: nothing
 * @returns {Seen} */
export function useLive(path) {
  const [seen, show] = useState(/** @type {[string | null, Seen] | null} */ (null));
  useEffect(() => {
    if (path === null) return undefined;
    const watcher = (/** @type {Seen} */ found) => show([path, found]);
    const all = watchers.get(path) ?? new Set();
    watchers.set(path, all.add(watcher));
    const now = known.get(path); // it may have come between the first look at it and this one
    if (now) watcher(now);
    plan();
    return () => {
      all.delete(watcher);
      if (!all.size) watchers.delete(path);
      plan();
    };
  }, [path]);
  if (seen && seen[0] === path) return seen[1];
  return known.get(path ?? "") ?? { data: null, problem: null, at: 0 };
}

/** Ask again now: something was changed. */
export function refresh() {
  asked = "";
  plan();
}

function plan() {
  tellWaiting();
  if (planned === null) planned = setTimeout(() => { planned = null; follow(); }, 10);
}

function follow() {
  const paths = [...watchers.keys()].sort();
  const query = paths.map(path => "watch=" + encodeURIComponent(path)).join("&");
  if (query === asked) return;
  asked = query;
  running?.abort();
  running = null;
  if (paths.length) read(query, running = new AbortController());
}

/** @param {string} query @param {AbortController} control */
async function read(query, control) {
  try {
    const response = await fetch("console/stream?" + query, { headers: CALL, signal: control.signal });
    if (response.status === 401) return await ask();
    if (!response.ok || !response.body) throw new Error(String(response.status));
    state.set("live");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const events = (text + value).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        if (event.startsWith("event: over")) return await ask();
        if (event.startsWith("data: ")) told(JSON.parse(event.slice(6)));
      }
    }
  } catch { /* the broker is away, or we are */ }
  if (control.signal.aborted) return undefined;
  state.set("lost");
  setTimeout(() => { if (running === control) { asked = ""; follow(); } }, 2000);
  return undefined;
}

/** @param {{path: string, status: number, body: any}} found */
function told({ path, status, body }) {
  const problem = status === 200 ? null : new Problem(status, worded(body?.reason ?? body?.error ?? status));
  const seen = { data: status === 200 ? body : null, problem, at: Date.now() };
  known.delete(path);
  known.set(path, seen);
  if (known.size > KNOWN) known.delete(known.keys().next().value ?? "");
  for (const watcher of watchers.get(path) ?? []) watcher(seen);
  tellWaiting();
}

/** Nothing of the last user is left when another one logs in. */
export function forget() {
  known.clear();
  watchers.clear();
  asked = "";
  running?.abort();
}
