// An action as one would type it: with curl, and with warren. Never with a secret: curl asks for the password itself.
import { who } from "./api.js";

/** ``file``: the body is that file, as it is; ``payload``: the octets of a file are the payload in it.
 * @typedef {{method: string, path: string, body?: any, headers?: Record<string, string>, warren?: string, file?: string, payload?: string}} Action */

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
    parts.push(action.file ? `--data-binary ${quoted("@" + action.file)}` : action.payload ? "--data-binary @-" : `-d ${quoted(hidden)}`);
  }
  parts.push(quoted(new URL("api" + action.path, location.href.split("#")[0]).href));
  if (!action.payload) return parts.join(" ");
  const [before, after] = JSON.stringify({ ...action.body, payload: "\0" }).split("\\u0000");
  return `{ printf %s ${quoted(before)}; base64 -w0 ${quoted(action.payload)}; printf %s ${quoted(after)}; } | ${parts.join(" ")}`;
}
