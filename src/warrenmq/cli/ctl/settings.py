"""Verbs of ``warren ctl`` about vhosts, limits, parameters and policies."""

from __future__ import annotations

from typing import Any

from warrenmq.cli._api import DATA, UNAVAILABLE, Failure, segment
from warrenmq.cli.ctl.call import Call, Misuse, Result, columns_of, expect, json_argument, no_such_user
from warrenmq.cli.ctl.output import Facts, Table, compact


def _metadata(call: Call) -> dict[str, object]:
    body: dict[str, object] = {key: call.options[key] for key in ("description", "tags") if key in call.options}
    if "default-queue-type" in call.options:
        body["default_queue_type"] = call.options["default-queue-type"]
    if "nack-unroutable" in call.options:
        wanted = call.options["nack-unroutable"]
        if wanted not in ("true", "false"):
            raise Misuse(f"--nack-unroutable should be true or false, not {wanted}")
        body["nack_unroutable"] = wanted == "true"
    if "journal" in call.options:
        body["journal"] = call.options["journal"]
    if "journal-sample" in call.options:
        sample = call.options["journal-sample"]
        if not sample.isdecimal():
            raise Misuse(f"--journal-sample should be a number from 1, not {sample}")
        body["journal_sample"] = int(sample)
    return body


def add_vhost(call: Call) -> Result:
    body = _metadata(call)
    answer = call.api.ask("PUT", call.path("vhosts", call.arguments[0]), body)
    expect(answer)
    if answer.status == 201:  # the API lets in who adds a vhost; rabbitmqctl lets in nobody
        me = call.api.get("/whoami")["name"]
        expect(call.api.ask("DELETE", call.path("permissions", call.arguments[0], me)))
    return None


def update_vhost_metadata(call: Call) -> Result:
    """A verb of later RabbitMQs: change what add_vhost says, and leave alone what is not mentioned."""
    name = call.arguments[0]
    body = _metadata(call)
    if not body:
        others = "--nack-unroutable, --journal or --journal-sample"
        raise Misuse(f"nothing to change: give --description, --tags, --default-queue-type, {others}")
    found = call.api.ask("GET", call.path("vhosts", name))
    expect(found, Failure(f'Virtual host "{name}" does not exist', DATA))
    expect(call.api.ask("PUT", call.path("vhosts", name), body))
    return None


def delete_vhost(call: Call) -> Result:
    name = call.arguments[0]
    missing = Failure(f"Virtual host '{name}' does not exist", DATA, plain=True)
    expect(call.api.ask("DELETE", call.path("vhosts", name)), missing)
    return None


def list_vhosts(call: Call) -> Result:
    known = ["name", "tracing", "description", "tags", "default_queue_type", "cluster_state"]
    columns = columns_of(call, ["name"], known)
    rows = call.api.get("/vhosts")
    for row in rows:
        row["cluster_state"] = f"[{{{call.node}, running}}]"
        row["default_queue_type"] = row.get("default_queue_type") or "undefined"
    return Table(columns, rows)


def set_vhost_tags(call: Call) -> Result:
    name, *tags = call.arguments
    found = call.api.ask("GET", call.path("vhosts", name))
    expect(found, Failure(f'Virtual host "{name}" does not exist', DATA))
    expect(call.api.ask("PUT", call.path("vhosts", name), {"tags": ",".join(tags)}))
    return None


def _limits(text: str) -> dict[str, Any]:
    limits = json_argument(text)
    if not isinstance(limits, dict):
        raise Failure("limits should be a JSON object", UNAVAILABLE)
    return limits


def set_vhost_limits(call: Call) -> Result:
    limits = _limits(call.arguments[0])
    call.known_vhost()
    for name, value in limits.items():
        expect(call.api.ask("PUT", f"/vhost-limits/{call.at}/{segment(name)}", {"value": value}))
    return None


def clear_vhost_limits(call: Call) -> Result:
    for found in call.api.get(f"/vhost-limits/{call.at}"):
        for name in found["value"]:
            expect(call.api.ask("DELETE", f"/vhost-limits/{call.at}/{segment(name)}"))
    return None


def list_vhost_limits(call: Call) -> Result:
    if "global" in call.options:
        rows = [{"vhost": one["vhost"], "limits": one["value"]} for one in call.api.get("/vhost-limits")]
        return Table(["vhost", "limits"], rows, {"limits"})
    call.known_vhost()
    found = call.api.get(f"/vhost-limits/{call.at}")
    if not found:
        return Facts("", [])
    text = compact(found[0]["value"])
    return Facts(text, {"node": call.node, "result": "ok", "value": text})


def set_user_limits(call: Call) -> Result:
    user, limits = call.arguments[0], _limits(call.arguments[1])
    expect(call.api.ask("GET", call.path("users", user)), no_such_user(user))
    for name, value in limits.items():
        expect(call.api.ask("PUT", f"/user-limits/{segment(user)}/{segment(name)}", {"value": value}))
    return None


def clear_user_limits(call: Call) -> Result:
    user, wanted = call.arguments
    expect(call.api.ask("GET", call.path("users", user)), no_such_user(user))
    for name in ("max-connections", "max-channels") if wanted == "all" else (wanted,):
        expect(call.api.ask("DELETE", f"/user-limits/{segment(user)}/{segment(name)}"))
    return None


def list_user_limits(call: Call) -> Result:
    """Of one user, ``guest`` unless another is named, as rabbitmqctl has it; of all with ``--global``."""
    rows = [{"user": one["user"], "limits": one["value"]} for one in call.api.get("/user-limits")]
    if "global" in call.options:
        return Table(["user", "limits"], rows, {"limits"})
    user = call.options.get("user", "guest")
    expect(call.api.ask("GET", call.path("users", user)), no_such_user(user))
    return compact(next((row["limits"] for row in rows if row["user"] == user), {}))


def set_parameter(call: Call) -> Result:
    component, name, value = call.arguments
    path = f"/parameters/{segment(component)}/{call.at}/{segment(name)}"
    expect(call.api.ask("PUT", path, {"value": json_argument(value)}))
    return None


def clear_parameter(call: Call) -> Result:
    component, name = call.arguments
    answer = call.api.ask("DELETE", f"/parameters/{segment(component)}/{call.at}/{segment(name)}")
    expect(answer, Failure("Parameter does not exist", UNAVAILABLE))
    return None


def list_parameters(call: Call) -> Result:
    rows = [one for one in call.api.get("/parameters") if one["vhost"] == call.vhost]
    for row in rows:
        if row["component"] == "operator_policy":  # stored as a parameter; in rabbitmqctl's order of keys
            row["value"] = {key: row["value"][key] for key in ("pattern", "definition", "priority", "apply-to")}
    return Table(["component", "name", "value"], rows, {"value"})


def set_global_parameter(call: Call) -> Result:
    name, value = call.arguments
    expect(call.api.ask("PUT", call.path("global-parameters", name), {"value": json_argument(value)}))
    return None


def clear_global_parameter(call: Call) -> Result:
    answer = call.api.ask("DELETE", call.path("global-parameters", call.arguments[0]))
    expect(answer, Failure("Parameter does not exist", UNAVAILABLE))
    return None


def list_global_parameters(call: Call) -> Result:
    rows = call.api.get("/global-parameters")
    return Table(["name", "value"], rows, {"value"})


def set_cluster_name(call: Call) -> Result:
    expect(call.api.ask("PUT", "/cluster-name", {"name": call.arguments[0]}))
    return None


# -- policies


def _set_policy(call: Call, prefix: str) -> Result:
    name, pattern, definition = call.arguments
    priority = call.options.get("priority", "0")
    try:
        number = int(priority)
    except ValueError:
        raise Misuse(f"Invalid options for this command:\n--priority : {priority}") from None
    body = {
        "pattern": pattern,
        "definition": json_argument(definition),
        "priority": number,
        "apply-to": call.options.get("apply-to", "all"),
    }
    call.known_vhost()
    expect(call.api.ask("PUT", f"/{prefix}/{call.at}/{segment(name)}", body))
    return None


def set_policy(call: Call) -> Result:
    return _set_policy(call, "policies")


def set_operator_policy(call: Call) -> Result:
    return _set_policy(call, "operator-policies")


def _clear_policy(call: Call, prefix: str) -> Result:
    answer = call.api.ask("DELETE", f"/{prefix}/{call.at}/{segment(call.arguments[0])}")
    expect(answer, Failure("Parameter does not exist", UNAVAILABLE))
    return None


def clear_policy(call: Call) -> Result:
    return _clear_policy(call, "policies")


def clear_operator_policy(call: Call) -> Result:
    return _clear_policy(call, "operator-policies")


POLICY = ["vhost", "name", "pattern", "apply-to", "definition", "priority"]


def list_policies(call: Call) -> Result:
    call.known_vhost()
    return Table(POLICY, call.api.get(f"/policies/{call.at}"), {"definition"})


def list_operator_policies(call: Call) -> Result:
    call.known_vhost()
    return Table(POLICY, call.api.get(f"/operator-policies/{call.at}"), {"definition"})
