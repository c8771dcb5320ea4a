// The form that publishes a message: key, properties, headers, a body from the keyboard or a file.
import { at, exchangeInPath } from "./api.js";
import { inVhost, sh } from "./commands.js";
import { act } from "./dialogs.js";

/** @param {string} vhost @param {string} exchange "" is the default one @param {string} [key] */
export function publish(vhost, exchange, key = "") {
  act({
    title: exchange ? `Publish to ${exchange}` : `Publish to queue ${key}`, verb: "Publish",
    text: "Mandatory and confirmed: you are told whether a queue took it.",
    fields: [
      { name: "key", label: "Routing key", value: key },
      { name: "persistent", label: "Persistent: it outlives a restart in a durable queue", type: "checkbox", value: true },
      { name: "headers", label: "Headers", type: "json", hint: 'for example {"kind": "order", "attempt": 1}' },
      { name: "properties", label: "Properties", type: "json", keys: [["content_type", "application/json"], ["message_id", "4711"], ["correlation_id", ""], ["reply_to", ""], ["expiration", "60000"], ["priority", 1], ["type", ""], ["app_id", ""]] },
      { name: "body", label: "Body", type: "textarea" },
      { name: "file", label: "Or the body from a file", type: "file" },
    ],
    action: v => {
      const file = /** @type {import("./dialogs.js").Chosen | null} */ (v.file || null);
      const properties = { ...v.properties, ...(v.persistent ? { delivery_mode: 2 } : {}), ...(Object.keys(v.headers).length ? { headers: v.headers } : {}) };
      const words = Object.entries(v.headers).map(([name, value]) => typeof value === "string" ? sh` -H ${`${name}=${value}`}` : sh` -H ${`${name}:=${JSON.stringify(value)}`}`)
        .concat(Object.entries(v.properties).map(([name, value]) => sh` -P ${`${name}=${value}`}`)).join("");
      return { method: "POST", path: at`exchanges/${vhost}/${exchangeInPath(exchange)}/publish`,
        body: { routing_key: v.key, properties, payload: file ? file.base64 : v.body, payload_encoding: file ? "base64" : "string" },
        warren: sh`warren publish ${v.key} ${file ? "-" : v.body}` + (exchange ? sh` -e ${exchange}` : "") + words + (v.persistent ? " --persistent" : "") + " --mandatory --confirm" + inVhost(vhost) + (file ? sh` < ${file.name}` : ""), ...(file ? { payload: file.name } : {}) };
    },
    done: answer => answer.routed ? "published: a queue took it" : "published, but no queue took it",
  });
}
