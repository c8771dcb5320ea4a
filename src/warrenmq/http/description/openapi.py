"""The OpenAPI description, made from the table of endpoints and the typed models."""

from __future__ import annotations

from typing import Any

import msgspec

from warrenmq.http.endpoint import Endpoint
from warrenmq.http.models import Page, Problem

LISTING = {
    "page": "number of the page, from 1; without it everything comes in one list",
    "page_size": "items a page, at most 500 (100 unless given)",
    "name": "only items whose name contains this (with page)",
    "use_regex": "true: name is a regular expression",
    "sort": "field to sort by; a.b is b within a",
    "sort_reverse": "true: largest first",
    "columns": "fields wanted, separated by commas; only these come, also where the schema requires more",
}


def description(endpoints: list[Endpoint], version: str) -> dict[str, Any]:
    models: list[Any] = [Problem, Page]
    for endpoint in endpoints:
        models.extend(model for model in (endpoint.body, endpoint.answer, endpoint.unwell) if model is not None)
    schemas, components = msgspec.json.schema_components(models, ref_template="#/components/schemas/{name}")
    schema_of = {repr(model): schema for model, schema in zip(models, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(f"/api{endpoint.path}", {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Warren management API",
            "version": version,
            "description": "RabbitMQ 3.10's management HTTP API, served by Warren.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
        },
        "security": [{"basic": []}],
    }


def _operation(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    problem = {"description": "Refused", "content": _json(schema_of[repr(Problem)])}
    went_well: dict[str, Any] = {"description": endpoint.summary}
    if endpoint.answer is not None:
        schema = schema_of[repr(endpoint.answer)]
        if endpoint.listing:
            schema = {"anyOf": [schema, schema_of[repr(Page)]]}
        went_well["content"] = _json(schema)
    responses = {str(endpoint.status): went_well, "400": problem, "401": problem, "404": problem}
    if endpoint.status == 201 and endpoint.method == "PUT":
        responses["204"] = {"description": "It was there already"}
    if endpoint.unwell is not None:
        responses["503"] = {"description": "Not well", "content": _json(schema_of[repr(endpoint.unwell)])}
    elif endpoint.method != "GET":
        responses["503"] = {**problem, "description": "Not written yet; it may still be"}
    if endpoint.body is not None:
        responses["413"] = {**problem, "description": "The body is too large"}
    parameters = [
        {"name": segment[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
        for segment in endpoint.segments
        if segment.startswith("{")
    ]
    if endpoint.listing:
        parameters += [
            {"name": name, "in": "query", "required": False, "description": text, "schema": {"type": "string"}}
            for name, text in LISTING.items()
        ]
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": _identifier(endpoint),
        "tags": [endpoint.segments[0]],
        "x-allowed-to": endpoint.level,
        "parameters": parameters,
        "responses": responses,
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"content": _json(schema_of[repr(endpoint.body)])}
    return operation


def _identifier(endpoint: Endpoint) -> str:
    words = [word.strip("{}").replace("-", "_") for word in endpoint.segments]
    return "_".join([endpoint.method.lower(), *words])


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
