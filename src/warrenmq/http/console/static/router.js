// The address says what is shown: #/queues/%2F/orders?tab=peek. Everything a view can be asked for is in it.
import { Store, useStore } from "./store.js";

/** @typedef {{path: string[], query: Record<string, string>}} Route */

/** @returns {Route} */
function here() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(part => part !== "");
  return { path: parts.map(unquoted), query: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

/** @param {string} part */
function unquoted(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

/** @type {Store<Route>} */
const route = new Store(here());
addEventListener("hashchange", () => route.set(here()));

export const useRoute = () => useStore(route);

/** @param {string[]} path @param {Record<string, string | number | undefined | null>} [query] */
export function href(path, query = {}) {
  const wanted = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(wanted.map(([name, value]) => [name, String(value)])).toString();
  return "#/" + path.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

/** @param {string[]} path @param {Record<string, any>} [query] */
export function go(path, query) { location.hash = href(path, query); }

/** Another query at the same place; what is undefined or "" goes. Typing does not fill the history.
 * @param {Record<string, any>} change */
export function setQuery(change) {
  const now = route.value;
  history.replaceState(null, "", href(now.path, { ...now.query, ...change }));
  route.set(here());
}
