"""What goes wrong in a request, with RabbitMQ 3.10's status codes and JSON."""

from __future__ import annotations

from warrenmq.wire.replies import ACCESS_REFUSED, NOT_FOUND, AmqpError


class ApiError(Exception):
    """An error that is answered as ``{"error": ..., "reason": ...}`` with a status code."""

    def __init__(self, status: int, error: str, reason: object) -> None:
        super().__init__(f"{status} {error}: {reason}")
        self.status = status
        self.error = error
        self.reason = reason


def bad_request(reason: object) -> ApiError:
    return ApiError(400, "bad_request", reason)


def not_found() -> ApiError:
    return ApiError(404, "Object Not Found", "Not Found")


def vhost_not_found() -> ApiError:
    """What a PUT or POST into a vhost that does not exist is told; a GET gets ``not_found``."""
    return ApiError(404, "not_found", "vhost_not_found")


def not_authorised(reason: str) -> ApiError:
    return ApiError(401, "not_authorised", reason)


def of_amqp(error: AmqpError) -> ApiError:
    """A refusal by the broker's rules, as the HTTP API reports it for declarations, deletions and bindings."""
    if error.code == ACCESS_REFUSED:
        return not_authorised("Access refused.")
    if error.code == NOT_FOUND:
        return ApiError(404, "not_found", error.explanation)
    return bad_request(error.explanation)
