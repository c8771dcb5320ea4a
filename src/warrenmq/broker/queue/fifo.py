"""What waits in a queue, in order: requeued entries, a window of messages in memory, and pages beyond it.

Duty: order and counts. Not here: limits, expiry, consumers.

- ``_returned`` (``returned.py``): requeued entries. Whatever was delivered once is older than what was not, so they
  all come before the window. (Not always after a restart: what was given back before it is in the window or a page, and
  what was under a lease until now may be younger. It comes first all the same.)
- ``_items`` from ``_head``: the window, entries with their content.
- ``_pages`` (``page.py``): packed entries whose content is in the log, or in the transient store. Only while pages
  exist do new entries go there, so order holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.message import Message, Origin, message_from
from warrenmq.broker.queue import holder, paging
from warrenmq.broker.queue.page import MOVED, PAGE, PERSISTENT, REDELIVERED, Page
from warrenmq.broker.queue.place import Place, by_position
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.queue.returned import Returned
from warrenmq.broker.stored import Origins, message_of
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import StoredMessage
from warrenmq.log.index import QueueIndex
from warrenmq.log.packs import PACK, PACKED, Kind
from warrenmq.wire.peek import peek_properties

if TYPE_CHECKING:
    from warrenmq.broker.queue.lease import Lease

PAGE_IN: Final = 256  # entries read back at a time
PAGE_IN_BYTES: Final = 4 << 20  # or fewer, of so many bytes; at least one
NOWHERE: Final = Origin("", [""])  # of a message that nobody looks at any more
PRIORITY_BIT: Final = 0x08  # of octet 12 of a content header: it has a priority


@final
class Fifo:
    """The waiting entries of one priority, oldest first, wherever they are kept."""

    def __init__(self, queue: Queue, priority: i64) -> None:
        self._queue: Final = queue
        self.priority: Final = priority
        self.bare: i64 = 0  # requeued entries whose long bodies are in the log alone
        self.awaited: i64 = 0  # the address of a long body that is being read
        self._ahead: i64 = 0  # the address of an entry that was read before it is taken
        self._ahead_pieces: list[bytes] | None = None  # the body of that entry
        self._returned: Final = Returned()
        self._items: list[Entry | None] = []
        self._head: i64 = 0
        self._pages: list[Page] = []
        self._first_page: i64 = 0
        self._resident: dict[int, Entry] = {}  # by position: entries in pages (with address 0) that no disk would take
        self.paged: i64 = 0  # entries in pages
        self.length: i64 = 0
        self._origins: Origins | None = None  # of what was read back
        self._kind: Kind | None = None  # the kind of what was unpacked last
        self._like: Message | None = None  # a message of that kind

    def window(self) -> i64:
        """Entries with content in memory."""
        return len(self._items) - self._head + self._returned.count

    def push(self, entry: Entry) -> None:
        self.length += 1
        self._queue.broker.windowed += 1
        self._items.append(entry)

    def push_packed(self, address: i64, position: i64, size: i64, flags: i64, expires_at: i64) -> None:
        """An entry whose content is in the log or the transient store."""
        self.length += 1
        self.paged += 1
        pages = self._pages
        page = pages[-1] if pages else None
        if page is None or len(page.addresses) >= PAGE:
            page = Page()
            pages.append(page)
        page.add(address, position, size << 8 | flags, expires_at)

    def push_resident(self, entry: Entry) -> None:
        """Behind what is paged out, but no disk takes it: it keeps its place in the pages and its content in memory."""
        self._resident[entry.position] = entry
        self.push_packed(0, entry.position, entry.message.size, 0, entry.expires_at)

    def is_resident(self, position: i64) -> bool:
        return int(position) in self._resident

    def put_away(self, entry: Entry, address: i64) -> None:
        """The transient store has taken what no disk had: from now on it is as others in pages."""
        message = entry.message
        flags: i64 = (PERSISTENT if message.persistent else 0) | (MOVED if message.moved else 0)
        for page in self._pages[self._first_page :]:
            count: i64 = len(page.addresses)
            if count > page.start and page.position(count - 1) >= entry.position:
                i = page.start
                while page.position(i) != entry.position:
                    i += 1
                page.addresses[i] = address
                page.metas[i] = message.size << 8 | flags
                break
        del self._resident[entry.position]

    def peek(self) -> Entry | None:
        if self._returned.count and self._is_whole():
            return self._returned.next()
        while self._head >= len(self._items):
            if self.paged == 0:
                return None
            self._page_in()
        return self._items[self._head]

    def head_in_memory(self) -> Entry | None:
        """The oldest entry when its content is in memory: nothing is read for somebody who only looks."""
        if self._returned.count:
            return self._returned.next()
        return self._items[self._head] if self._head < len(self._items) else None

    def pop(self) -> Entry | None:
        """Take the oldest entry."""
        if self._returned.count and self._is_whole():
            return self._pop_returned()
        self._queue.broker.windowed -= 1
        items = self._items
        head = self._head
        while head >= len(items):
            if self.paged == 0:
                self._queue.broker.windowed += 1
                return None
            self._page_in()
            items = self._items
            head = self._head
        entry = items[head]
        items[head] = None
        head += 1
        if head >= len(items):
            items.clear()
            head = 0
        elif head >= 4096 and head * 2 > len(items):
            del items[:head]
            head = 0
        self._head = head
        self.length -= 1
        return entry

    def pop_unread(self) -> Entry | None:
        """Take the oldest entry for good: its content is not read if it is not in memory."""
        if self._returned.count:
            return self._pop_returned()
        if self.paged == 0 or self._head < len(self._items):
            return self.pop()
        page = self._pages[self._first_page]
        i = page.start
        if page.addresses[i] == 0:
            return self.pop()
        entry = self._unread(page, i)
        self._skip(page)
        return entry

    def take_out(self, position: i64) -> Entry | None:
        """Take the entry at this position for good, wherever in the order it stands; its content is not read if it is
        not in memory. None: it does not wait here."""
        entry = self._returned.take(position)
        if entry is not None:
            self._left_returned(entry)
            return entry
        i = self._from(position)
        if i < len(self._items):
            item = self._items[i]
            if item is None or item.position != position:
                return None
            del self._items[i]
            if self._head >= len(self._items):
                self._items.clear()
                self._head = 0
            self.length -= 1
            self._queue.broker.windowed -= 1
            return item
        p: i64 = self._first_page
        while p < len(self._pages):
            page = self._pages[p]
            count: i64 = len(page.addresses)
            if count > page.start and page.position(count - 1) >= position:
                return self._take_out_of(page, p, position)
            p += 1
        return None

    def _take_out_of(self, page: Page, p: i64, position: i64) -> Entry | None:
        i = page.start
        while i < len(page.addresses) and page.position(i) < position:
            i += 1
        if i == len(page.addresses) or page.position(i) != position:
            return None
        if page.addresses[i] == self._ahead:
            self.read_ahead(0, None)
        entry = self._unread(page, i)
        if i == page.start and p == self._first_page:
            self._skip(page)
            return entry
        left = Page()
        j = page.start
        while j < len(page.addresses):
            if j != i:
                expires_at: i64 = 0 if page.expiries is None else page.expiries[j]
                left.add(page.addresses[j], page.position(j), page.metas[j], expires_at)
            j += 1
        page.replace(left)
        self.paged -= 1
        self.length -= 1
        if len(left.addresses) == 0:
            del self._pages[p]
        return entry

    def _unread(self, page: Page, i: i64) -> Entry:
        """A packed entry that leaves, without its content."""
        position = page.position(i)
        address = page.addresses[i]
        if address == 0:
            return self._resident.pop(position)
        meta = page.metas[i]
        entry = Entry(self._without_body(address, meta), self._queue, position)
        if address < 0:
            self._queue.broker.transient.free(-address)
        return entry

    def _without_body(self, address: i64, meta: i64) -> Message:
        """The message of a packed entry, as far as it is known without reading from disk."""
        persistent = (meta & PERSISTENT) != 0
        if address < 0 and -address & PACKED:
            record = self._queue.broker.transient.packs.head(-address)
            message = self._message(record, address, persistent)
            message = message_from(message.origin, message.id, record.header, [], meta >> 8, persistent)
        else:
            message = Message(NOWHERE, 0, b"", 0, 0, meta >> 8, persistent)
            message.address = address if address > 0 else 0
        message.absent = True
        return message

    def _pop_returned(self) -> Entry:
        """Take the next of what came back."""
        entry = self._returned.pop()
        self._left_returned(entry)
        return entry

    def _left_returned(self, entry: Entry) -> None:
        self._queue.broker.windowed -= 1
        self.length -= 1
        if entry.message.absent:
            self.bare -= 1

    def _is_whole(self) -> bool:
        """Of what came back the next has its body, read now if need be; what is damaged is set aside. False when none
        is left."""
        while self._returned.count:
            message = self._returned.next().message
            if not message.absent:
                return True
            try:
                message.chunks = self._pieces(message.address)
                message.absent = False
                self.bare -= 1
            except RecordDamaged:
                self.unreadable(message.address)
        return False

    def _skip(self, page: Page) -> None:
        """The first entry of the first page is taken."""
        page.start += 1
        self.paged -= 1
        self.length -= 1
        if page.start == len(page.addresses):
            self._next_page()

    def head_expiry(self) -> i64:
        """When the oldest entry expires, 0 for never or when there is none; nothing is read."""
        if self._returned.count:
            return self._returned.next().expires_at
        if self._head < len(self._items):
            item = self._items[self._head]
            return 0 if item is None else item.expires_at
        if self.paged == 0:
            return 0
        page = self._pages[self._first_page]
        expiries = page.expiries
        return 0 if expiries is None else expiries[page.start]

    def head_position(self) -> i64:
        """Of the oldest entry; beyond all when there is none. Nothing is read."""
        return self._returned.next().position if self._returned.count else self._first_position()

    def head_size(self) -> i64:
        """Body size of the oldest entry, without reading its content."""
        if self._returned.count:
            return self._returned.next().message.size
        if self._head < len(self._items):
            item = self._items[self._head]
            return 0 if item is None else item.message.size
        page = self._pages[self._first_page]
        return page.metas[page.start] >> 8

    def unread_head(self) -> i64:
        """The address of the oldest entry, when its body is so long that it is not read at once; else 0."""
        if self._returned.count:
            message = self._returned.next().message
            unread = message.absent and message.size > paging.LONG and message.address != self._ahead
            return message.address if unread else 0
        if self.paged == 0 or self._head < len(self._items):
            return 0
        page = self._pages[self._first_page]
        address = page.addresses[page.start]
        unread = address != 0 and page.metas[page.start] >> 8 > paging.LONG and address != self._ahead
        return address if unread else 0

    def read_ahead(self, address: i64, pieces: list[bytes] | None) -> None:
        """The body at this address has been read, or cannot be."""
        self._ahead = address
        self._ahead_pieces = pieces

    def unreadable(self, address: i64) -> None:
        """The long body of the oldest entry is damaged. One that came back is set aside now; one in a page when it is
        taken."""
        if self._returned.count == 0:
            self.read_ahead(address, None)
            return
        queue = self._queue
        entry = self._pop_returned()
        message = entry.message
        queue.ready -= 1
        queue.ready_bytes -= message.size
        queue.set_aside(
            message.address, entry.position, message.size, entry.redelivered, entry.expires_at, self.priority
        )

    def _pieces(self, address: i64) -> list[bytes]:
        """A long body, which has been read ahead as a rule."""
        pieces = self._ahead_pieces if address == self._ahead else None
        self._ahead = 0
        self._ahead_pieces = None
        if pieces is None:
            broker = self._queue.broker
            pieces = [paging.read_part(broker, address, part) for part in paging.parts_of(broker, address)]
        return pieces

    def lease_head(self, lease: Lease, priority: i64) -> None:
        """Move the oldest entry to a lease; what is in memory only goes to the transient store."""
        if self._returned.count == 0 and self._head >= len(self._items):
            self._lease_packed(lease, priority)
            return
        entry = self.pop_unread()
        assert entry is not None
        message = entry.message
        address = paging.address_of(self._queue, message)
        flags: i64 = REDELIVERED if entry.redelivered else 0
        lease.add(address, entry.position, message.size, priority, flags, entry.expires_at)
        if address < 0 and self._queue.journal.tells(message):
            lease.told[int(lease.count()) - 1] = message.number()

    def _lease_packed(self, lease: Lease, priority: i64) -> None:
        page = self._pages[self._first_page]
        i = page.start
        if page.addresses[i] == 0:
            self._page_in()
            self.lease_head(lease, priority)
            return
        meta = page.metas[i]
        expiries = page.expiries
        expires_at: i64 = 0 if expiries is None else expiries[i]
        address = page.addresses[i]
        lease.add(address, page.position(i), meta >> 8, priority, meta & REDELIVERED, expires_at)
        if address < 0 and -address & PACKED and self._queue.journal.all:
            message = self._without_body(address, meta)
            if self._queue.journal.tells(message):
                lease.told[int(lease.count()) - 1] = message.number()
        self._skip(page)

    def _next_page(self) -> None:
        """The first page is used up."""
        self._first_page += 1
        if self._first_page == len(self._pages) or self._first_page > 64:
            del self._pages[: self._first_page]
            self._first_page = 0
        else:
            self._pages[self._first_page - 1] = _EMPTY

    def put_back(self, entries: list[Entry]) -> None:
        """Requeue at the original positions; oldest first in the list."""
        i: i64 = len(entries) - 1
        while i >= 0:  # newest first, so that most go in front of the last
            self._returned.put(entries[i])
            i -= 1
        self._came_back(entries)

    def put_behind(self, entries: list[Entry]) -> None:
        """Requeue in this order, behind what was requeued before."""
        self._returned.put_behind(entries)
        self._came_back(entries)

    def _came_back(self, entries: list[Entry]) -> None:
        self.length += len(entries)
        self._queue.broker.windowed += len(entries)
        for entry in entries:
            if entry.message.absent:
                self.bare += 1

    def _page_in(self) -> None:
        """Read the next packed entries into the (empty) window. It stays empty when all of them are damaged."""
        page = self._pages[self._first_page]
        start = page.start
        end: i64 = len(page.addresses)
        if end - start > PAGE_IN:
            end = start + PAGE_IN
        addresses: list[i64] = []
        size: i64 = 0
        i: i64 = start
        while i < end:
            size += page.metas[i] >> 8
            if size > PAGE_IN_BYTES and i > start:
                end = i
                break
            address = page.addresses[i]
            if address > 0 or (address < 0 and not -address & PACKED):
                addresses.append(address)
            i += 1
        if size > PAGE_IN_BYTES and len(addresses) == 1 and len(paging.parts_of(self._queue.broker, addresses[0])):
            large = self._large(page, start)
            self._items = [] if large is None else [large]
            self._head = 0
            self._queue.broker.windowed += len(self._items)
            return
        stored = paging.read(self._queue.broker, addresses) if addresses else []
        items: list[Entry | None] = []
        expiries = page.expiries
        taken: i64 = 0
        unpacked = False
        i = start
        while i < end:
            address = page.addresses[i]
            if address == 0:
                items.append(self._resident.pop(page.position(i)))
            else:
                meta = page.metas[i]
                if address < 0 and -address & PACKED:
                    message = self._unpacked(-address, meta)
                    unpacked = True
                else:
                    record = stored[taken]
                    taken += 1
                    if record is None:
                        self._set_aside(page, i)
                        i += 1
                        continue
                    message = self._message(record, address, (meta & PERSISTENT) != 0)
                    if (meta & MOVED) != 0:
                        self._mark_moved(message)
                entry = Entry(message, self._queue, page.position(i))
                entry.redelivered = (meta & REDELIVERED) != 0
                if expiries is not None:
                    entry.expires_at = expiries[i]
                items.append(entry)
            i += 1
        if unpacked:
            self._queue.broker.transient.free_packed(page.addresses, start, end, [])
        self.paged -= end - start
        page.start = end
        if end == len(page.addresses):
            self._next_page()
        self._items = items
        self._head = 0
        self._queue.broker.windowed += len(items)

    def _unpacked(self, handle: i64, meta: i64) -> Message:
        """A message out of its pack. Most are of the same sort as the one before."""
        packs = self._queue.broker.transient.packs
        pack = packs.pack_of(handle)
        place = handle & (PACK - 1)
        kind = pack.kinds[pack.kind_of[place]]
        like = self._like
        if like is None or kind is not self._kind:
            like = self._message(packs.head(handle), -handle, False)
            self._like = like
            self._kind = kind
        size = meta >> 8
        message = Message(like.origin, pack.id(place), b"", 0, like.header_size, size, (meta & PERSISTENT) != 0)
        message.header_payload = kind.header
        message.priority = like.priority
        message.chunks = [packs.body(pack, place)] if size else []
        return message

    def _set_aside(self, page: Page, i: i64) -> None:
        """The packed entry is damaged: it leaves the order, and those behind it move up."""
        queue = self._queue
        meta = page.metas[i]
        expiries = page.expiries
        expires_at: i64 = 0 if expiries is None else expiries[i]
        self.length -= 1
        queue.ready -= 1
        queue.ready_bytes -= meta >> 8
        queue.set_aside(
            page.addresses[i],
            page.position(i),
            meta >> 8,
            (meta & REDELIVERED) != 0,
            expires_at,
            self.priority,
        )

    def _large(self, page: Page, i: i64) -> Entry | None:
        """One entry whose body is read in pieces and stays so. None: it is damaged."""
        meta = page.metas[i]
        self.paged -= 1
        page.start = i + 1
        if page.start == len(page.addresses):
            self._next_page()
        address = page.addresses[i]
        try:
            message = self._message_at(address, meta >> 8, (meta & PERSISTENT) != 0)
        except RecordDamaged:
            self._set_aside(page, i)
            return None
        if address < 0:
            self._queue.broker.transient.free(-address)
        if (meta & MOVED) != 0:
            self._mark_moved(message)
        entry = Entry(message, self._queue, page.position(i))
        entry.redelivered = (meta & REDELIVERED) != 0
        if page.expiries is not None:
            entry.expires_at = page.expiries[i]
        return entry

    def _mark_moved(self, message: Message) -> None:
        """It came from inside the broker: if the log does not have that on disk yet, its delivery waits."""
        log = self._queue.broker.log
        if message.address > 0 and not log.is_synced(message.address):
            message.moved = True
            message.batch = log.batch

    def _message_at(self, address: i64, size: i64, persistent: bool) -> Message:
        """A message read from disk; a long body stays in pieces. RecordDamaged when it does not check."""
        message = self.bare_message_at(address, size, persistent)
        if message.absent:
            message.chunks = self._pieces(address)
            message.absent = False
        return message

    def bare_message_at(self, address: i64, size: i64, persistent: bool = True) -> Message:
        """A message read from disk, but for a long body, which stays there. RecordDamaged when it does not check."""
        broker = self._queue.broker
        record = broker.log.read_head(address) if address > 0 else broker.transient.get_head(-address)
        message = self._message(record, address, persistent)
        if len(paging.parts_of(broker, address)) == 0:
            return message
        bare = message_from(message.origin, message.id, message.header(), [], size, message.persistent)
        bare.address = message.address
        bare.priority = message.priority
        bare.absent = True
        return bare

    def _message(self, record: StoredMessage, address: i64, persistent: bool) -> Message:
        header = record.header
        origins = self._origins
        if origins is None:
            origins = Origins()
            self._origins = origins
        message = message_of(record, origins.of(record), address, persistent)
        if (header[12] & PRIORITY_BIT) != 0:
            message.priority = peek_properties(header).priority
        return message

    def clear(self) -> None:
        self.read_ahead(0, None)
        broker = self._queue.broker
        broker.windowed -= self.window()
        broker.freeing.add(self._items)
        broker.freeing.add(list(self._resident.values()))
        self._returned.clear(broker.freeing)
        self._items = []
        self._head = 0
        self._pages = []
        self._first_page = 0
        self._resident = {}
        self.bare = 0
        self.paged = 0
        self.length = 0

    def let_go(self) -> None:
        """The broker has stopped: no entries are held any more, and nobody asks how many there were."""
        self._items = []
        self._resident = {}
        self._returned.keep([])

    def forget_transient(self) -> i64:
        """Drop what the log does not keep for this queue, wherever it stands. Returns the bytes that stay."""
        queue = self._queue
        before = self.window()
        returned = [entry for entry in self._returned.all() if queue.logs(entry.message)]
        self._returned.keep(returned)
        items: list[Entry | None] = []
        for item in self._items[self._head :]:
            if item is not None and queue.logs(item.message):
                items.append(item)
        self._items = items
        self._head = 0
        self.length = self.window()
        queue.broker.windowed -= before - self.length
        size: i64 = 0
        for entry in returned:
            size += entry.message.size
        for item in items:
            if item is not None:
                size += item.message.size
        return size + self._forget_transient_pages()

    def _forget_transient_pages(self) -> i64:
        self.free_transient()
        pages = self._pages[self._first_page :]
        self._pages = []
        self._first_page = 0
        self.paged = 0
        size: i64 = 0
        for page in pages:
            j: i64 = page.start
            while j < len(page.addresses):
                address = page.addresses[j]
                position = page.position(j)
                if address > 0 or (address == 0 and self._queue.logs(self._resident[position].message)):
                    meta = page.metas[j]
                    expiries = page.expiries
                    self.push_packed(address, position, meta >> 8, meta & 255, 0 if expiries is None else expiries[j])
                    size += meta >> 8
                elif address == 0:
                    del self._resident[position]
                j += 1
        return size

    def places(self, first: i64, end: i64, most: i64) -> list[Place]:
        """Entries with positions from ``first`` up to ``end``, oldest first. Nothing is read and nothing moves."""
        out = [place_of(entry) for entry in self._returned.between(first, end, most)]
        mixed = len(out) > 0 and self._first_position() < self._returned.newest().position
        wanted = most
        if mixed:
            most += len(out)
        items = self._items
        i = self._from(first)
        while i < len(items) and len(out) < most:
            item = items[i]
            if item is not None:
                if item.position >= end:
                    break
                out.append(place_of(item))
            i += 1
        p: i64 = self._first_page
        while p < len(self._pages) and len(out) < most:
            page = self._pages[p]
            count: i64 = len(page.addresses)
            if count > page.start and page.position(count - 1) >= first:
                if page.position(page.start) >= end:
                    break
                self._places_of(page, first, end, most, out)
            p += 1
        if mixed:
            out.sort(key=by_position)
            return out[:wanted]
        return out

    def _first_position(self) -> i64:
        """Of the window and the pages; beyond all when there is nothing."""
        if self._head < len(self._items):
            item = self._items[self._head]
            if item is not None:
                return item.position
        if self._first_page < len(self._pages):
            page = self._pages[self._first_page]
            if page.start < len(page.addresses):
                return page.position(page.start)
        return 1 << 62

    def _from(self, first: i64) -> i64:
        """The index of the first item of the window whose position is ``first`` or later."""
        low: i64 = self._head
        high: i64 = len(self._items)
        while low < high:
            middle = (low + high) // 2
            item = self._items[middle]
            if item is not None and item.position < first:
                low = middle + 1
            else:
                high = middle
        return low

    def _places_of(self, page: Page, first: i64, end: i64, most: i64, out: list[Place]) -> None:
        i = page.start
        while i < len(page.addresses) and len(out) < most:
            position = page.position(i)
            if first <= position < end:
                address = page.addresses[i]
                if address == 0:
                    out.append(place_of(self._resident[position]))
                else:
                    meta = page.metas[i]
                    expires_at: i64 = 0 if page.expiries is None else page.expiries[i]
                    out.append(Place(position, meta >> 8, (meta & REDELIVERED) != 0, expires_at, address, None))
            i += 1

    def logged(self, out: vec[i64]) -> vec[i64]:
        """Where the log keeps what waits here, behind ``out``. Packed: there may be many millions."""
        for entry in self._returned.all():
            if self._queue.holds(entry.message):
                out = append(out, entry.message.address)
        i: i64 = self._head
        while i < len(self._items):
            item = self._items[i]
            if item is not None and self._queue.holds(item.message):
                out = append(out, item.message.address)
            i += 1
        for page in self._pages[self._first_page :]:
            j: i64 = page.start
            while j < len(page.addresses):
                if page.addresses[j] > 0:
                    out = append(out, page.addresses[j])
                j += 1
        return out

    def count_logged(self) -> i64:
        """How much of what waits here the log keeps."""
        count: i64 = 0
        for entry in self._returned.all():
            if self._queue.holds(entry.message):
                count += 1
        i: i64 = self._head
        while i < len(self._items):
            item = self._items[i]
            if item is not None and self._queue.holds(item.message):
                count += 1
            i += 1
        for page in self._pages[self._first_page :]:
            j: i64 = page.start
            while j < len(page.addresses):
                if page.addresses[j] > 0:
                    count += 1
                j += 1
        return count

    def unlogged(self, most: i64, out: list[Entry]) -> None:
        """Some of what the log does not keep for this queue and is in memory, up to so many in all; without the body
        what is packed."""
        queue = self._queue
        for entry in self._returned.all():
            if len(out) < most and not queue.holds(entry.message):
                out.append(entry)
        i = self._head
        while i < len(self._items) and len(out) < most:
            item = self._items[i]
            if item is not None and not queue.holds(item.message):
                out.append(item)
            i += 1
        p: i64 = self._first_page
        while p < len(self._pages) and len(out) < most:
            page = self._pages[p]
            j = page.start
            while j < len(page.addresses) and len(out) < most:
                address = page.addresses[j]
                position = page.position(j)
                if address < 0 and -address & PACKED:
                    out.append(Entry(self._without_body(address, page.metas[j]), queue, position))
                elif address == 0 and not queue.holds(self._resident[position].message):
                    out.append(self._resident[position])
                j += 1
            p += 1

    def free_transient(self) -> None:
        """Nobody will read what waits here: give back its room in the transient store."""
        transient = self._queue.broker.transient
        left: list[list[Any]] = []
        for page in self._pages[self._first_page :]:
            transient.free_those(page.addresses, page.start, left)
        self._queue.broker.freeing.add_pieces(left)

    def fill_index(self, index: QueueIndex, priority: i64) -> None:
        """What the log is to remember of this fifo at a clean stop."""
        for entry in self._returned.all():
            self._index_entry(index, entry, priority)
        i: i64 = self._head
        while i < len(self._items):
            item = self._items[i]
            if item is not None:
                self._index_entry(index, item, priority)
            i += 1
        for page in self._pages[self._first_page :]:
            j: i64 = page.start
            while j < len(page.addresses):
                meta = page.metas[j]
                expiries = page.expiries
                if page.addresses[j] > 0:
                    index.add(
                        page.position(j),
                        page.addresses[j],
                        0 if expiries is None else expiries[j],
                        holder.pack(priority, meta >> 8, (meta & REDELIVERED) != 0),
                    )
                j += 1

    def _index_entry(self, index: QueueIndex, entry: Entry, priority: i64) -> None:
        message = entry.message
        if self._queue.holds(message):
            packed = holder.pack(priority, message.size, entry.redelivered)
            index.add(entry.position, message.address, entry.expires_at, packed)

    def take_back(self, first: i64, addresses: list[i64]) -> i64:
        """Take out the never-delivered entries of the log's batches from ``first`` on, which could not be written.
        Adds their addresses, returns the bytes of their bodies."""
        size: i64 = 0
        kept: list[Entry | None] = []
        i: i64 = self._head
        while i < len(self._items):
            item = self._items[i]
            if item is not None:
                if item.message.batch >= first and not item.redelivered and not item.message.moved:
                    addresses.append(item.message.address)
                    size += item.message.size
                    self.length -= 1
                    self._queue.broker.windowed -= 1
                else:
                    kept.append(item)
            i += 1
        self._queue.broker.windowed -= len(self._items) - self._head - len(kept)
        self._items = kept
        self._head = 0
        p: i64 = len(self._pages) - 1
        while p >= self._first_page:  # what is not on disk is at the end
            more = self._take_back_page(self._pages[p], addresses)
            if more < 0:
                break
            size += more
            p -= 1
        while len(self._pages) > self._first_page and len(self._pages[-1].addresses) == self._pages[-1].start:
            self._pages.pop()
        if len(self._pages) == self._first_page:
            self._pages = []
            self._first_page = 0
        return size

    def _take_back_page(self, page: Page, addresses: list[i64]) -> i64:
        """The bytes taken out of the page; -1 when nothing in it waits for the disk."""
        log = self._queue.broker.log
        left = Page()
        size: i64 = 0
        waiting = False
        i: i64 = page.start
        while i < len(page.addresses):
            address = page.addresses[i]
            meta = page.metas[i]
            unwritten = address > 0 and not log.is_synced(address)
            waiting = waiting or unwritten
            if unwritten and (meta & (REDELIVERED | MOVED)) == 0:
                addresses.append(address)
                size += meta >> 8
                self.paged -= 1
                self.length -= 1
            else:
                left.add(address, page.position(i), meta, 0 if page.expiries is None else page.expiries[i])
            i += 1
        if not waiting:
            return -1
        page.replace(left)
        return size


_EMPTY: Final = Page()


def place_of(entry: Entry) -> Place:
    message = entry.message
    return Place(entry.position, message.size, entry.redelivered, entry.expires_at, 0, message)
