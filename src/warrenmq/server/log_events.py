"""Every event that the log may tell: when it is written, and what to do about it.

Duty: the words for the operator, in one table; the documentation's page is made from it, and a test compares it with
the calls in the code, both ways. Not here: when an event is written, and its fields.
"""

from __future__ import annotations

from typing import NamedTuple


class LogEvent(NamedTuple):
    """A kind of log line."""

    levels: str
    meaning: str
    cure: str = ""


_DEFECT = "`warren ledger` shows the sum; keep the log and the data folder, and report it: this is a defect of Warren."

GROUPS: dict[str, dict[str, LogEvent]] = {
    "Start, stop, reload": {
        "log.recovering": LogEvent(
            "info", "The log is being read at the start, `done` of `total` octets; every five seconds."
        ),
        "definitions.loaded": LogEvent("info", "A file of `load_definitions` was imported."),
        "config.no_meaning": LogEvent(
            "warning", "A key of `rabbitmq.conf` has no meaning here; the reason says why.", "Nothing, or take it out."
        ),
        "server.reloaded": LogEvent("info", "SIGHUP was answered; `changed` names the settings."),
        "server.reload_refused": LogEvent(
            "error",
            "SIGHUP found a file or certificate that is not right. Nothing was changed.",
            "Mend it; reload again.",
        ),
        "server.needs_restart": LogEvent(
            "warning", "These settings were changed, and count after a restart only.", "Restart when it suits."
        ),
        "server.stopping": LogEvent("info", "The broker was asked to stop; `reason` says by which signal."),
        "server.stopped": LogEvent("info", "Everything is on disk, and the process ends."),
        "messages_without_queue": LogEvent(
            "warning",
            "The log held messages of a queue that is not defined; they are let go of.",
            "If you did not delete it, its messages are in the last backup; report it.",
        ),
        "unknown_definition": LogEvent(
            "warning",
            "The log holds a definition of a kind that this version does not know; it is not used.",
            "You went back to an older Warren: take the newer one again.",
        ),
    },
    "Connections": {
        "connection_opened": LogEvent("info", "A client logged in."),
        "connection_closed": LogEvent("info", "A client went, or was made to; `reason` says why."),
        "login_refused": LogEvent(
            "warning",
            "A login over AMQP failed.",
            "The password, or the vhost's permission. With `hint`: too many of them came from this address, which is "
            "made to wait.",
        ),
        "http_login_refused": LogEvent("warning", "A login over HTTP failed.", "As for `login_refused`."),
        "handshake_timeout": LogEvent(
            "warning",
            "A client did not log in within `handshake_timeout`.",
            "Often a port scan, or a load balancer that only looks whether the port is open: let it ask `/readyz`.",
        ),
        "bad_protocol_header": LogEvent(
            "warning",
            "What came first was not AMQP 0-9-1; `hint` says what it looks like.",
            "Mend the client's port or scheme.",
        ),
        "missed_heartbeats": LogEvent(
            "warning",
            "A client was silent for two heartbeats and was cut off.",
            "The client was blocked or its machine is gone: look there. Clients that work long between reads need "
            "a longer heartbeat.",
        ),
        "connection_error": LogEvent(
            "error",
            "A connection was closed because of what its client did; `code` and `text` are what it was told.",
            "Mend the client: the text says what.",
        ),
        "channel_error": LogEvent(
            "error", "The same of one channel; the connection goes on.", "Mend the client: the text says what."
        ),
        "tls_handshake_failed": LogEvent(
            "warning",
            "A client and the broker did not agree on TLS; `reason` and `hint` say on what.",
            "Most often the client does not know the authority, or has no certificate where `tls_verify` asks for one.",
        ),
        "tls_handshake_ended": LogEvent(
            "info", "A client went before TLS was agreed on: a port scan, or a health check."
        ),
        "https.handshake_failed": LogEvent("info", "The same on the HTTPS port."),
        "tls_accept_failed": LogEvent(
            "error",
            "The system gave no socket for a TLS client, most often for want of file descriptors.",
            "Raise the limit (`LimitNOFILE`), or find the client that leaks connections.",
        ),
        "http.accept_failed": LogEvent("error", "The same on the HTTP port.", "As for `tls_accept_failed`."),
    },
    "Alarms and the machine": {
        "alarm": LogEvent(
            "warning, info",
            "Publishers are blocked, or free again (`reason` is `cleared`).",
            "Memory: let consumers catch up, add consumers, purge, raise `memory_high_watermark`. Disk: make room.",
        ),
        "loop.stalled": LogEvent(
            "warning, info",
            "The event loop served nobody for more than 0.1 s. `spent` is `cpu` (a warning) when the broker worked, "
            "`waiting` when disk or machine kept it; `ran` names what ran.",
            "`waiting`: look at the disk and at what else the machine does. `cpu`, again and again: report it with the "
            "line.",
        ),
        "disk.unseen": LogEvent(
            "error",
            "Free disk cannot be asked; the alarm stays as it is.",
            "Look at the file system of the data folder.",
        ),
        "folder.gone": LogEvent(
            "error",
            "The data folder was removed, replaced or unmounted under the running broker, which writes to files that "
            "no start would find.",
            "Put it back. If it is lost: `warren backup` takes what the broker still holds, before you stop it.",
        ),
        "folder.back": LogEvent("info", "It is in its place again."),
        "folder.open_to_others": LogEvent(
            "warning", "Other users of the machine may enter the data folder.", "`chmod 700`, if you did not mean that."
        ),
    },
    "The log and its damages": {
        "log_write_failed": LogEvent(
            "error",
            "The disk did not take a batch. Its publishers are nacked, and publishers are blocked until it does.",
            "`reason` is the system's word: most often a full or broken disk. Service returns by itself.",
        ),
        "log_recovered": LogEvent("info", "The disk takes writes again, and all that waited is on it."),
        "message_damaged": LogEvent(
            "error",
            "A message does not read as it was written. It is kept aside and not delivered; those behind it are.",
            "`warren damaged` lists, tries again, drops. Check the disk: bits that turn once turn again.",
        ),
        "damaged_message_dropped": LogEvent("warning", "Somebody dropped a damaged message for good."),
        "segment_damaged": LogEvent(
            "error",
            "A file of the log does not check beyond single messages.",
            "Take a backup now, check it with `warren log verify`, and replace the disk.",
        ),
        "deduplication_page_damaged": LogEvent(
            "error",
            "What an exchange remembered of message ids does not read as it was written; the window begins anew.",
            "Duplicates of before may come through once. Check the disk.",
        ),
        "ledger_difference": LogEvent("error", "A sum that must come out even does not.", _DEFECT),
        "ledger_adds_up": LogEvent("info", "It does again."),
    },
    "Queues, messages, policies": {
        "quorum_queue_without_replicas": LogEvent(
            "warning",
            "A quorum queue was declared; it has one member, and its messages are on one machine.",
            "Know it; back up.",
        ),
        "dead_letter_strategy_not_in_force": LogEvent(
            "warning",
            "`at-least-once` dead lettering needs `overflow: reject-publish` and a dead-letter exchange, "
            "as in RabbitMQ.",
            "Set them as well; until then dead letters go at most once.",
        ),
        "delayed_undeliverable": LogEvent(
            "warning",
            "Delayed messages became due and no queue took them.",
            "Bind a queue, or give the exchange an alternate exchange.",
        ),
        "delayed_cancelled_with_exchange": LogEvent(
            "warning", "A delayed exchange was deleted, and with it what waited in it."
        ),
        "delayed_repetition_ended": LogEvent(
            "error", "A repeated message cannot be scheduled again; `reason` says why.", "Publish it anew."
        ),
        "lease_expired": LogEvent(
            "warning",
            "Leased messages were not settled in time and went back to their queue.",
            "A reader that is too slow, or gone: extend the lease, or look for it.",
        ),
        "queue_purged_around_leases": LogEvent("warning", "A queue was purged; what is leased of it stays leased."),
        "queue_deleted_with_leases": LogEvent(
            "warning", "A queue was deleted with messages under lease: they are gone for whoever held them."
        ),
        "deduplication_ids_evicted_early": LogEvent(
            "warning",
            "An exchange forgot message ids before their window was over, as it may remember only so many.",
            "A shorter window, or room for more ids.",
        ),
        "pattern_given_up": LogEvent(
            "warning",
            "A regular expression took too long; what it would have matched is refused until it is tried again.",
            "Write the pattern without nested repetitions.",
        ),
        "pattern_back": LogEvent("info", "It is in force again."),
        "queue_paused": LogEvent(
            "info",
            "Nothing is handed out of a queue until it is resumed; `user` paused it.",
        ),
        "queue_resumed": LogEvent("info", "Its messages are handed out again."),
        "transfer_started": LogEvent("info", "A move, copy or redrive began; `user` asked for it."),
        "transfer_ended": LogEvent("info", "It ended: `state`, and how many messages were `sent`."),
        "transfer_undone": LogEvent("info", "It was taken back."),
    },
    "The journal": {
        "journal.not_written": LogEvent(
            "warning",
            "The journal's process cannot write; `reason` says why. The broker goes on without it.",
            "Install pyarrow, or make room. What the log cannot keep for it meanwhile is a gap, and said so.",
        ),
        "journal.written_again": LogEvent("info", "It is written again."),
    },
    "OpenTelemetry": {
        "telemetry.not_sent": LogEvent(
            "warning",
            "The collector does not take metrics or spans (`what`). The broker goes on, and those are lost.",
            "Look whether `otel_endpoint` is right and answers.",
        ),
        "telemetry.sent_again": LogEvent("info", "It takes them again."),
        "witness_failed": LogEvent(
            "error", "The span of a message could not be made. The message is not harmed.", "As for `internal_error`."
        ),
    },
    "A cluster (experimental)": {
        "cluster.node_started": LogEvent("info", "A node began: its number, and where its log ends."),
        "cluster.begins": LogEvent(
            "warning",
            "Nothing stood in etcd: this node begins the cluster with what is in its folder.",
            "If there was a cluster before, stop all nodes: `cluster` or `cluster_etcd` names another one.",
        ),
        "cluster.campaign": LogEvent(
            "warning", "This node tries to lead; `reason` says why.", "Look for what happened to the leader before."
        ),
        "cluster.leading": LogEvent(
            "warning", "This node leads from now on.", "Look for what happened to the leader before."
        ),
        "cluster.scanned": LogEvent(
            "warning",
            "A node that begins to lead had to read its whole log first; as a rule it knows it by heart.",
            "Nothing, if its disk failed shortly before.",
        ),
        "cluster.leaves": LogEvent(
            "warning",
            "This node no longer leads, or could not go on; it starts anew and follows.",
            "`reason` says why: a newer epoch is another node that took over.",
        ),
        "cluster.too_few": LogEvent(
            "error",
            "Fewer nodes are in sync than `cluster_min_in_sync` wants: publishers wait, and are told so.",
            "Bring another node back; `warren cluster status` says what each lacks.",
        ),
        "cluster.enough": LogEvent("info", "Enough nodes are in sync; publishers go on."),
        "cluster.clocks_apart": LogEvent(
            "warning",
            "A node's clock is more than half a second from the leader's.",
            "Let all machines set their clocks by the same servers: a takeover moves times to live by the difference.",
        ),
        "cluster.clocks_agree": LogEvent("info", "They agree again."),
        "cluster.transfer": LogEvent(
            "warning", "An operator lets another node lead; it has everything.", "Nothing: this node starts anew."
        ),
        "cluster.removed": LogEvent(
            "warning",
            "An operator removed a node; it counts no longer, and is not let in.",
            "`warren cluster add` takes it back.",
        ),
        "cluster.upgraded": LogEvent(
            "warning", "An operator let all nodes use a later version of the protocol and the log.", "Nothing."
        ),
        "cluster.too_old": LogEvent(
            "error",
            "This node does not know what the others may use by now, and stays out.",
            "Upgrade it; nothing of its folder is lost.",
        ),
        "cluster.paused": LogEvent(
            "warning", "An operator paused takeovers: nobody leads if this node dies.", "`warren cluster pause --off`."
        ),
        "cluster.handed_over": LogEvent(
            "warning", "An operator recovers etcd: this node told what it knows.", "Nothing: this node starts anew."
        ),
        "cluster.forced": LogEvent(
            "error",
            "An operator lets this node lead although it may lack what was confirmed.",
            "`floor` is how far was confirmed at least, `end` what this node has: what lies between is lost.",
        ),
        "cluster.unpaused": LogEvent("warning", "Whoever is in sync may take over again.", "Nothing."),
        "cluster.following": LogEvent("info", "This node follows that leader."),
        "cluster.leader_silent": LogEvent(
            "warning", "Nothing came from the leader for so long.", "Look at its machine and at the network."
        ),
        "cluster.follower_came": LogEvent("info", "A node asked for what its log lacks."),
        "cluster.follower_in_sync": LogEvent("info", "A node has everything, and counts from now on."),
        "cluster.follower_dropped": LogEvent(
            "warning",
            "A node did not acknowledge for `cluster_ack_timeout`; the others go on without it.",
            "It comes back by itself when its machine, its disk and the network allow it.",
        ),
        "cluster.follower_stays_out": LogEvent(
            "error",
            "A node was late three times within `cluster_stay_out`, and does not count for as long.",
            "Look at its disk, its machine and the network. It goes on following, and counts again by itself.",
        ),
        "cluster.log_too_old": LogEvent(
            "warning",
            "The leader has no longer what follows this node's log.",
            "Nothing: it takes a new number and begins anew.",
        ),
        "cluster.snapshot_begins": LogEvent("info", "A whole log is sent to a node that has none."),
        "cluster.snapshot_installed": LogEvent("info", "A whole log has come, and is this node's now."),
        "cluster.snapshot_failed": LogEvent(
            "error", "A whole log did not come; it is tried again.", "Look at the disk that `reason` names."
        ),
        "cluster.node_renewed": LogEvent(
            "error",
            "This node lost something that it had acknowledged, and became another one.",
            "Find out whether its folder was put back to an earlier state, or its disk is failing.",
        ),
        "cluster.node_twice": LogEvent(
            "error",
            "Another process runs under this node's number.",
            "A folder must not be copied: empty this one, or stop the other.",
        ),
        "cluster.node_failed": LogEvent(
            "error", "A defect; the node starts anew.", "Report it, with the traceback on the line."
        ),
        "cluster.replica_refused": LogEvent(
            "error", "The log refused what the leader sent; the node starts anew.", "Look at the disk and the network."
        ),
        "cluster.disk_failed": LogEvent(
            "error", "A follower's disk took nothing; it is dropped, and tries again.", "Make room, or replace it."
        ),
        "cluster.read_back_failed": LogEvent(
            "error",
            "The leader cannot read what a follower lacks, and leads no longer.",
            "Replace the disk of that machine.",
        ),
        "cluster.link_refused": LogEvent(
            "warning",
            "A connection between nodes was refused; `reason` says by whom and why.",
            "If it is a node of this cluster: give it the same secret, or a certificate of the same authority.",
        ),
        "cluster.refused": LogEvent("error", "The leader does not take this node.", "`reason` says what to do."),
        "cluster.etcd_silent": LogEvent(
            "error",
            "etcd does not answer; as long as the nodes hear one another everything goes on.",
            "Bring it back: without it nobody can be replaced.",
        ),
        "cluster.etcd_unanswered": LogEvent(
            "warning", "A write to etcd was not answered, and is sent again.", "Look at etcd if it goes on."
        ),
        "cluster.etcd_another": LogEvent(
            "error", "This etcd is not the one of this cluster.", "Bring that one back: its data are not replaceable."
        ),
        "cluster.etcd_old": LogEvent(
            "error", "etcd has an earlier state than this node.", "Bring back the etcd that was there."
        ),
        "cluster.etcd_empty": LogEvent(
            "error", "etcd has forgotten this cluster.", "Bring back the etcd that was there."
        ),
        "cluster.config_refused": LogEvent(
            "error",
            "What stands in etcd was written by nobody of this version.",
            "Nobody may edit it; or this node is older than the others: install their version.",
        ),
        "cluster.member_refused": LogEvent("error", "A key of the cluster in etcd is none of Warren's.", "Delete it."),
    },
    "Defects": {
        "internal_error": LogEvent(
            "error",
            "Warren failed in serving a connection, which was closed with 541; others go on.",
            "Report it, with the traceback on the line.",
        ),
        "queue_failed": LogEvent("error", "The same of one queue.", "As for `internal_error`."),
        "timer_failed": LogEvent("error", "The same of a timer, which is tried again.", "As for `internal_error`."),
        "background.failed": LogEvent("error", "The same of a task; `what` names it.", "As for `internal_error`."),
        "http_error": LogEvent("error", "The same of an HTTP request, which got 500.", "As for `internal_error`."),
    },
}
EVENTS: dict[str, LogEvent] = {name: one for group in GROUPS.values() for name, one in group.items()}
