// Sends, receives and forwards frames.
#include "exec/nccl/socket_transport.h"

#include <poll.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

constexpr int kNapMilliseconds = 1;
/// An upper limit that no Program reaches; 65,536 times this still fits in 64 bits.
constexpr std::uint64_t kMaxGather = std::uint64_t{1} << 44;
/// The bytes before each rank's payload in a kGathered frame: whether it has answered, whether it
/// is gone, a size.
constexpr std::uint64_t kGatherHeader = 2 * sizeof(bool) + sizeof(std::size_t);

Blob write_gathered(const Gathered& gathered) {
  BlobWriter writer;
  writer.write(gathered.payloads.size());
  for (std::size_t rank = 0; rank < gathered.payloads.size(); ++rank) {
    writer.write(gathered.payloads[rank].has_value());
    writer.write(static_cast<bool>(gathered.gone[rank]));
    writer.write_all(gathered.payloads[rank].value_or(Blob()));
  }
  return writer.take();
}

Gathered read_gathered(const Blob& blob, std::size_t count) {
  BlobReader reader(blob);
  if (reader.read<std::size_t>() != count)
    throw Error(Fault::kMachine, "rank 0 sent an invalid message: a wrong number of ranks");
  Gathered gathered{std::vector<std::optional<Blob>>(count), std::vector<bool>(count)};
  for (std::size_t rank = 0; rank < count; ++rank) {
    const bool is_there = reader.read<bool>();
    gathered.gone[rank] = reader.read<bool>();
    Blob read = reader.read_all<std::byte>();
    if (is_there) gathered.payloads[rank] = std::move(read);
  }
  return gathered;
}

}  // namespace

SocketTransport::SocketTransport(const RankInfo& self, std::vector<Connection> connections)
    : Transport(self, /*is_relayed=*/true),
      messages_(kFrameKinds),
      gathers_(static_cast<std::size_t>(self.count)) {
  for (Connection& connection : connections) {
    const auto at = static_cast<std::int32_t>(peers_.size());
    peers_.push_back({self.rank == 0 ? at + 1 : 0, std::move(connection)});
  }
  bound_frames();
}

void SocketTransport::allow_gathers(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  largest_gather_ = std::min(std::max(largest_gather_, bytes), kMaxGather);
  bound_frames();
}

/// Sets the maximum frame: rank 0 receives the payload of one process, the others those of all.
void SocketTransport::bound_frames() {
  const auto count = static_cast<std::uint64_t>(self().count);
  const std::uint64_t all = sizeof(std::size_t) + count * (largest_gather_ + kGatherHeader);
  for (Peer& peer : peers_) peer.connection.reader.set_largest(is_root() ? largest_gather_ : all);
}

void SocketTransport::send(std::int32_t to, MessageTag tag, Blob payload) {
  const std::lock_guard lock(mutex_);
  send_frame(to, kind_of(tag), std::move(payload));
}

void SocketTransport::send_all(MessageTag tag, const Blob& payload) {
  const std::lock_guard lock(mutex_);
  send_to_all(kind_of(tag), payload);
}

void SocketTransport::send_frame(std::int32_t to, FrameKind kind, Blob payload) {
  if (peers_.empty()) return;
  Frame frame{kind, to, std::move(payload)};
  if (is_root()) frame.rank = 0;
  put(peers_[is_root() ? static_cast<std::size_t>(to - 1) : 0], frame);
}

void SocketTransport::send_to_all(FrameKind kind, const Blob& payload) {
  if (!is_root()) return send_frame(kAllRanks, kind, payload);
  for (Peer& peer : peers_) put(peer, {kind, 0, payload});
}

std::vector<Message> SocketTransport::poll(MessageTag tag) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return {};
  pump();
  std::deque<Message>& arrived = messages_[static_cast<std::size_t>(kind_of(tag))];
  std::vector<Message> messages(std::make_move_iterator(arrived.begin()),
                                std::make_move_iterator(arrived.end()));
  arrived.clear();
  return messages;
}

void SocketTransport::wait(const PollBackoff&) const {
  std::vector<pollfd> waiting;
  {
    const std::lock_guard lock(mutex_);
    for (const Peer& peer : peers_)
      if (peer.connection.socket.is_open())
        waiting.push_back({peer.connection.socket.descriptor(),
                           static_cast<short>(peer.outbox.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  }
  ::poll(waiting.data(), waiting.size(), kNapMilliseconds);
}

Gathered SocketTransport::gather(Blob own, const ShouldAbort& should_abort) {
  if (own.size() > largest_gather_)
    throw Error(Fault::kMachine, "rank " + std::to_string(self().rank) + " shares " +
                                     counted(own.size(), "byte") + ", of at most " +
                                     std::to_string(largest_gather_) +
                                     " that its Program allows; please report it");
  Gathered gathered{std::vector<std::optional<Blob>>(gathers_.size()), gone()};
  if (is_root()) {
    gathered.payloads = collect(std::move(own), should_abort);
    gathered.gone = gone();
    {
      const std::lock_guard lock(mutex_);
      send_to_all(FrameKind::kGathered, write_gathered(gathered));
    }
    flush(should_abort);  // unsent bytes would wait for the next call, which may come late
  } else {
    gathered.payloads[static_cast<std::size_t>(self().rank)] = own;
    send(0, MessageTag::kGather, std::move(own));
    const std::optional<Blob> all = await(FrameKind::kGathered, should_abort);
    if (all) gathered = read_gathered(*all, gathers_.size());
    if (!all) {  // nothing is known of the other ranks
      lose(0);
      gathered.gone = gone();
      return gathered;
    }
  }
  for (std::size_t rank = 0; rank < gathered.payloads.size(); ++rank)
    if (!gathered.payloads[rank]) {
      lose(static_cast<std::int32_t>(rank));
      gathered.gone[rank] = true;
    }
  return gathered;
}

/// Runs at rank 0: collects the payloads of all ranks for the next gather.
std::vector<std::optional<Blob>> SocketTransport::collect(Blob own,
                                                          const ShouldAbort& should_abort) {
  std::vector<std::optional<Blob>> all(gathers_.size());
  all[0] = std::move(own);
  for (const PollBackoff backoff; !collect_once(all) && !should_abort();) wait(backoff);
  return all;
}

/// Whether every rank that is not gone has answered.
bool SocketTransport::collect_once(std::vector<std::optional<Blob>>& all) {
  const std::lock_guard lock(mutex_);
  pump();
  std::deque<Message>& arrived = messages_[static_cast<std::size_t>(FrameKind::kGather)];
  for (Message& message : std::exchange(arrived, {}))
    gathers_[static_cast<std::size_t>(message.from)].push_back(std::move(message.payload));
  bool is_complete = true;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (!all[rank] && !gathers_[rank].empty()) {
      all[rank] = std::move(gathers_[rank].front());
      gathers_[rank].pop_front();
    }
    is_complete = is_complete && (all[rank] || is_gone(static_cast<std::int32_t>(rank)));
  }
  return is_complete;
}

std::optional<Blob> SocketTransport::await(FrameKind kind, const ShouldAbort& should_abort) {
  for (const PollBackoff backoff;; wait(backoff)) {
    {
      const std::lock_guard lock(mutex_);
      pump();
      std::deque<Message>& arrived = messages_[static_cast<std::size_t>(kind)];
      if (!arrived.empty()) {
        Blob payload = std::move(arrived.front().payload);
        arrived.pop_front();
        return payload;
      }
    }
    if (is_gone(0) || should_abort()) return std::nullopt;
  }
}

void SocketTransport::flush(const ShouldAbort& should_abort) {
  for (const PollBackoff backoff; !flush_once() && !should_abort();) wait(backoff);
}

/// Whether nothing is left to send.
bool SocketTransport::flush_once() {
  const std::lock_guard lock(mutex_);
  pump();
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.outbox.empty(); });
}

void SocketTransport::pump() {
  for (Peer& peer : peers_) {
    if (peer.connection.socket.is_open()) write(peer);
    if (peer.connection.socket.is_open()) read(peer);
  }
}

void SocketTransport::write(Peer& peer) {
  while (!peer.outbox.empty()) {
    const Blob& first = peer.outbox.front();
    const auto written =
        peer.connection.socket.write(std::span(first).subspan(peer.sent, first.size() - peer.sent));
    if (!written) return drop(peer);
    peer.sent += *written;
    if (peer.sent < first.size()) return;
    peer.outbox.pop_front();
    peer.sent = 0;
  }
}

/// Called when a write fails. The peer may have sent its last messages before that.
void SocketTransport::drop(Peer& peer) {
  peer.outbox.clear();
  peer.sent = 0;
  read(peer);
  if (peer.connection.socket.is_open()) lose(peer);
}

/// Handles all messages that were received before the end of the connection.
void SocketTransport::read(Peer& peer) {
  try {
    bool ended = false;
    for (;;) {
      const std::optional<Blob> bytes = peer.connection.socket.read();
      ended = !bytes;
      if (ended || bytes->empty()) break;
      peer.connection.reader.take(*bytes);
    }
    while (std::optional<Frame> frame = peer.connection.reader.next())
      take(peer, std::move(*frame));
    if (ended) lose(peer);
  } catch (const Error&) {
    lose(peer);  // it sent a malformed frame
  }
}

void SocketTransport::take(const Peer& from, Frame frame) {
  const std::int32_t sender = is_root() ? from.rank : frame.rank;
  if (frame.rank >= self().count || sender < 0)
    throw Error(Fault::kMachine, "a frame of an unknown rank");
  if (!is_root() && frame.kind == FrameKind::kGone) {
    const auto rank = BlobReader(frame.payload).read<std::int32_t>();
    if (rank < 0 || rank >= self().count) throw Error(Fault::kMachine, "there is no such rank");
    note_gone(rank);
    return;
  }
  const bool for_me = !is_root() || frame.rank <= 0;
  if (is_root())
    for (Peer& peer : peers_)
      if (peer.rank != from.rank && (frame.rank == kAllRanks || frame.rank == peer.rank))
        put(peer, {frame.kind, from.rank, frame.payload});
  if (for_me)
    messages_[static_cast<std::size_t>(frame.kind)].push_back({sender, std::move(frame.payload)});
}

void SocketTransport::put(Peer& peer, const Frame& frame) {
  if (!peer.connection.socket.is_open()) return;
  peer.outbox.push_back(to_bytes(frame));
  write(peer);
}

/// Marks a rank as gone. Rank 0 notifies the others.
void SocketTransport::lose(Peer& peer) {
  peer.connection.socket.close();
  peer.outbox.clear();
  if (note_gone(peer.rank) && is_root()) send_to_all(FrameKind::kGone, blob_of(peer.rank));
}

void SocketTransport::lose(std::int32_t rank) {
  const std::lock_guard lock(mutex_);
  if (note_gone(rank) && is_root()) send_to_all(FrameKind::kGone, blob_of(rank));
}

}  // namespace bubblescope::exec
