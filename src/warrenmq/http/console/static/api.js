// Calls of the API, as the user who is logged in. Errors are Problems with the API's own words.
import { saveFile } from "./format.js";
import { Store } from "./store.js";

/** @typedef {{user: string, tags: string[], version: string, rabbitmq_version: string, node: string, cluster: string,
 *   amqp: {host: string, port: number}}} Who */

/** @type {Store<Who | null | undefined>} undefined: not known yet */
export const who = new Store(/** @type {any} */ (undefined));

/** The names of the virtual hosts that the user may see; undefined: not known yet.
 * @type {Store<string[] | undefined>} */
export const vhosts = new Store(/** @type {any} */ (undefined));

/** Asks for them anew. */
export async function lookForVhosts() {
  vhosts.set(await call("GET", "/vhosts?columns=name").then(rows => rows.map((/** @type {any} */ row) => row.name), () => []));
  return vhosts.value ?? [];
}

/** The virtual host of a page that shows one only: that of the address, else / or the first that the user may see.
 * @param {Record<string, string>} query */
export const oneVhost = query => query.vhost || (vhosts.value?.length && !vhosts.value.includes("/") ? vhosts.value[0] : "/");

export const CALL = { "x-warren-console": "1" };

export class Problem extends Error {
  /** @param {number} status @param {string} text */
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** @param {any} reason */
export const worded = reason => typeof reason === "string" ? reason : JSON.stringify(reason);

/** @param {string} method @param {string} path below /api @param {any} [body] @param {Record<string, string>} [headers]
 * @returns {Promise<any>} */
export async function call(method, path, body, headers = {}) {
  return (await answer(method, "api" + path, body, headers)).json;
}

/** @param {string} method @param {string} url @param {any} [body] @param {Record<string, string>} [headers] */
export async function answer(method, url, body, headers = {}) {
  /** @type {RequestInit} */
  const options = { method, headers: { ...CALL, ...headers }, credentials: "same-origin" };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { ...options.headers, "content-type": "application/json" };
  }
  let response;
  try {
    response = await fetch(url, options);
  } catch {
    throw new Problem(0, "the broker does not answer");
  }
  const text = await response.text();
  let json = null;
  try { json = text.trim() ? JSON.parse(text) : null; } catch { /* some answers are no JSON */ }
  if (!response.ok) {
    if (response.status === 401 && who.value && url.startsWith("api")) await ask();
    throw new Problem(response.status, json ? worded(json.reason ?? json.error) : `${response.status} ${text}`);
  }
  return { json, text, status: response.status };
}

/** What the API answers as a file in the reader's downloads, of no type that a browser would open.
 * @param {string} path below /api @param {string} name */
export async function fetchFile(path, name) {
  const response = await fetch("api" + path, { headers: CALL, credentials: "same-origin" });
  if (!response.ok) throw new Problem(response.status, worded((await response.json().catch(() => null))?.reason ?? response.status));
  saveFile(name, new Blob([await response.blob()], { type: "application/octet-stream" }));
}

/** Who is logged in, if anybody. */
export async function ask() {
  try {
    const { json } = await answer("GET", "console/session");
    who.set(json.user ? json : null);
  } catch {
    if (who.value === undefined) who.set(null);
  }
}

/** @param {string} username @param {string} password */
export async function logIn(username, password) {
  const { json } = await answer("POST", "console/session", { username, password });
  who.set(json);
}

export async function logOut() {
  await answer("DELETE", "console/session");
  who.set(null);
}

/** A path below /api of names: at`queues/${vhost}/${name}`.
 * @param {TemplateStringsArray} strings @param {...any} values */
export const at = (strings, ...values) =>
  "/" + strings.map((text, n) => n < values.length ? text + encodeURIComponent(values[n]) : text).join("");

/** The name of an exchange in paths.
 * @param {string} name */
export const exchangeInPath = name => name === "" ? "amq.default" : name;

/** @param {string} tag */
export const may = tag => {
  const tags = who.value?.tags ?? [];
  if (tags.includes("administrator")) return true;
  if (tag === "policymaker") return tags.includes("policymaker");
  if (tag === "monitoring") return tags.includes("monitoring");
  return tag === "management";
};
