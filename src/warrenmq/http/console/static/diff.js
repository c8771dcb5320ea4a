// What an import of definitions would change, from what is there and what the file says.

/** @typedef {{section: string, name: string, what: "new" | "replaced" | "differs" | "same", before?: any, after: any}} Change */

const KEYS = /** @type {Record<string, string[]>} */ ({
  vhosts: ["name"], users: ["name"], permissions: ["vhost", "user"], topic_permissions: ["vhost", "user", "exchange"], parameters: ["vhost", "component", "name"],
  global_parameters: ["name"], policies: ["vhost", "name"], queues: ["vhost", "name"], exchanges: ["vhost", "name"], bindings: ["vhost", "source", "destination_type", "destination", "routing_key", "arguments"],
});
const STAYS = new Set(["queues", "exchanges", "bindings"]); // what exists is left as it is

/** JSON with the names of objects in order, to compare by.
 * @param {any} value @returns {string} */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object") return `{${Object.keys(value).sort().map(key => JSON.stringify(key) + ":" + canonical(value[key])).join(",")}}`;
  return JSON.stringify(value) ?? "null";
}

/** @param {any} now an export of what is there @param {any} file @returns {Change[]} */
export function changes(now, file) {
  /** @type {Change[]} */
  const found = [];
  for (const [section, keys] of Object.entries(KEYS)) {
    const id = (/** @type {any} */ one) => canonical(keys.map(key => one[key]));
    const there = new Map((now[section] ?? []).map((/** @type {any} */ one) => [id(one), one]));
    for (const one of file[section] ?? []) {
      const before = there.get(id(one));
      const same = before && Object.keys(one).every(key => canonical(one[key]) === canonical(before[key]) || before[key] === undefined);
      const name = keys.filter(key => key !== "arguments").map(key => one[key]).filter(Boolean).join(" · ");
      found.push({ section, name, before, after: one, what: !before ? "new" : same ? "same" : STAYS.has(section) ? "differs" : "replaced" });
    }
  }
  return found;
}
