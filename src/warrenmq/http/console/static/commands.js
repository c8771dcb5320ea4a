// An action as one would type it: with curl, and with warren. Never with a secret: curl asks for the password itself.
import { who } from "./api.js";

/** @typedef {{method: string, path: string, body?: any, headers?: Record<string, string>, warren?: string}} Action */

const SECRET = new Set(["password", "password_hash"]);

/** A word for a POSIX shell.
 * @param {any} word */
export function quoted(word) {
  const text = String(word);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", `'\\''`) + "'";
}

/** sh`warren purge ${name}`: what stands in ${} is one word.
 * @param {TemplateStringsArray} strings @param {...any} values */
export const sh = (strings, ...values) =>
  strings.map((text, n) => n < values.length ? text + quoted(values[n]) : text).join("");

/** @param {string} vhost */
export const inVhost = vhost => vhost === "/" ? "" : sh` -p ${vhost}`;

/** @param {any} arguments_ */
export const asArguments = arguments_ =>
  arguments_ && Object.keys(arguments_).length ? sh` --arguments ${JSON.stringify(arguments_)}` : "";

/** @param {Action} action */
export function curl(action) {
  const parts = [`curl -u ${quoted(who.value?.user ?? "USER")}`];
  if (action.method !== "GET") parts.push(`-X ${action.method}`);
  for (const [name, value] of Object.entries(action.headers ?? {})) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (action.body !== undefined) {
    parts.push("-H 'content-type: application/json'");
    const hidden = JSON.stringify(action.body, (name, value) => SECRET.has(name) ? name.toUpperCase() : value);
    parts.push(`-d ${quoted(hidden.length > 4000 ? "@FILE" : hidden)}`);
  }
  parts.push(quoted(new URL("api" + action.path, location.href.split("#")[0]).href));
  return parts.join(" ");
}
