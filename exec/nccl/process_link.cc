// Passing frames around.
#include "exec/nccl/process_link.h"

#include <poll.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

constexpr int kNapMilliseconds = 1;
/// No Program makes more, and 65,536 of these are counted in 64 bits.
constexpr std::uint64_t kLargestShare = std::uint64_t{1} << 44;
/// Before each rank's bytes in what all share: whether they are there, whether it is gone, a size.
constexpr std::uint64_t kShareHeader = 2 * sizeof(bool) + sizeof(std::size_t);

template <class Value>
Blob blob_of(const Value& value) {
  BlobWriter writer;
  writer.write(value);
  return writer.take();
}

/// Everyone's bytes by rank, of which some are missing, and who had gone when all were there.
struct Shares {
  std::vector<std::optional<Blob>> all;
  std::vector<bool> gone;
};

Blob write_shares(const Shares& shares) {
  BlobWriter writer;
  writer.write(shares.all.size());
  for (std::size_t rank = 0; rank < shares.all.size(); ++rank) {
    writer.write(shares.all[rank].has_value());
    writer.write(static_cast<bool>(shares.gone[rank]));
    writer.write_all(shares.all[rank].value_or(Blob()));
  }
  return writer.take();
}

Shares read_shares(const Blob& blob, std::size_t count) {
  BlobReader reader(blob);
  if (reader.read<std::size_t>() != count)
    throw Error(Fault::kMachine, "rank 0 sent garbage: another number of ranks");
  Shares shares{std::vector<std::optional<Blob>>(count), std::vector<bool>(count)};
  for (std::size_t rank = 0; rank < count; ++rank) {
    const bool is_there = reader.read<bool>();
    shares.gone[rank] = reader.read<bool>();
    Blob read = reader.read_all<std::byte>();
    if (is_there) shares.all[rank] = std::move(read);
  }
  return shares;
}

}  // namespace

ProcessLink::ProcessLink(const Seat& seat, std::vector<Connection> connections)
    : seat_(seat),
      gone_(static_cast<std::size_t>(seat.count), false),
      had_gone_(gone_),
      letters_(kLines),
      shares_(gone_.size()) {
  for (Connection& connection : connections) {
    const auto at = static_cast<std::int32_t>(peers_.size());
    peers_.push_back({seat.rank == 0 ? at + 1 : 0, std::move(connection)});
  }
  bound_frames();
}

void ProcessLink::allow_shares(std::uint64_t bytes) {
  largest_share_ = std::min(std::max(largest_share_, bytes), kLargestShare);
  bound_frames();
}

/// Rank 0 gets what one process shares, the others what all do.
void ProcessLink::bound_frames() {
  const auto count = static_cast<std::uint64_t>(seat_.count);
  const std::uint64_t all = sizeof(std::size_t) + count * (largest_share_ + kShareHeader);
  for (Peer& peer : peers_) peer.connection.reader.set_largest(leads() ? largest_share_ : all);
}

void ProcessLink::send(std::int32_t to, Line line, Blob payload) {
  if (peers_.empty()) return;
  Frame frame{line, to, std::move(payload)};
  if (leads()) frame.rank = 0;
  put(peers_[leads() ? static_cast<std::size_t>(to - 1) : 0], frame);
}

void ProcessLink::send_all(Line line, const Blob& payload) {
  if (!leads()) return send(kEveryone, line, payload);
  for (Peer& peer : peers_) put(peer, {line, 0, payload});
}

std::vector<ProcessLink::Letter> ProcessLink::look(Line line) {
  pump();
  std::deque<Letter>& waiting = letters_[static_cast<std::size_t>(line)];
  std::vector<Letter> letters(std::make_move_iterator(waiting.begin()),
                              std::make_move_iterator(waiting.end()));
  waiting.clear();
  return letters;
}

void ProcessLink::wait() const {
  std::vector<pollfd> waiting;
  for (const Peer& peer : peers_)
    if (peer.connection.socket.is_open())
      waiting.push_back({peer.connection.socket.descriptor(),
                         static_cast<short>(peer.outbox.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  poll(waiting.data(), waiting.size(), kNapMilliseconds);
}

std::vector<std::optional<Blob>> ProcessLink::share(Blob own, const GivesUp& gives_up) {
  if (own.size() > largest_share_)
    throw Error(Fault::kMachine, "rank " + std::to_string(seat_.rank) + " shares " +
                                     std::to_string(own.size()) + " bytes, of at most " +
                                     std::to_string(largest_share_) +
                                     " that its Program allows; please report it");
  std::vector<std::optional<Blob>> all(gone_.size());
  if (leads()) {
    all = gather(std::move(own), gives_up);
    had_gone_ = gone_;
    send_all(Line::kShared, write_shares({all, had_gone_}));
    flush(gives_up);  // what is not sent now waits for the next call, which may be long in coming
  } else {
    all[static_cast<std::size_t>(seat_.rank)] = own;
    send(0, Line::kShare, std::move(own));
    const std::optional<Blob> shared = await(Line::kShared, gives_up);
    if (!shared) {  // of the others nothing is known
      note_gone(0);
      return all;
    }
    Shares shares = read_shares(*shared, all.size());
    all = std::move(shares.all);
    had_gone_ = std::move(shares.gone);
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank]) note_gone(static_cast<std::int32_t>(rank));
  return all;
}

/// At rank 0: everyone's next share.
std::vector<std::optional<Blob>> ProcessLink::gather(Blob own, const GivesUp& gives_up) {
  std::vector<std::optional<Blob>> all(gone_.size());
  all[0] = std::move(own);
  for (;;) {
    for (Letter& letter : look(Line::kShare))
      shares_[static_cast<std::size_t>(letter.from)].push_back(std::move(letter.payload));
    bool misses = false;
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (!all[rank] && !shares_[rank].empty()) {
        all[rank] = std::move(shares_[rank].front());
        shares_[rank].pop_front();
      }
      misses = misses || (!all[rank] && !gone_[rank]);
    }
    if (!misses || gives_up()) return all;
    wait();
  }
}

std::optional<Blob> ProcessLink::await(Line line, const GivesUp& gives_up) {
  for (;;) {
    pump();
    std::deque<Letter>& letters = letters_[static_cast<std::size_t>(line)];
    if (!letters.empty()) {
      Blob payload = std::move(letters.front().payload);
      letters.pop_front();
      return payload;
    }
    if (is_gone(0) || gives_up()) return std::nullopt;
    wait();
  }
}

void ProcessLink::flush(const GivesUp& gives_up) {
  const auto is_sent = [](const Peer& peer) { return peer.outbox.empty(); };
  for (pump(); !std::all_of(peers_.begin(), peers_.end(), is_sent) && !gives_up(); pump()) wait();
}

void ProcessLink::pump() {
  for (Peer& peer : peers_) {
    if (peer.connection.socket.is_open()) write(peer);
    if (peer.connection.socket.is_open()) read(peer);
  }
}

void ProcessLink::write(Peer& peer) {
  while (!peer.outbox.empty()) {
    const Blob& first = peer.outbox.front();
    const auto written =
        peer.connection.socket.write(std::span(first).subspan(peer.sent, first.size() - peer.sent));
    if (!written) return part_with(peer);
    peer.sent += *written;
    if (peer.sent < first.size()) return;
    peer.outbox.pop_front();
    peer.sent = 0;
  }
}

/// It takes nothing any more, but may have said why.
void ProcessLink::part_with(Peer& peer) {
  peer.outbox.clear();
  peer.sent = 0;
  read(peer);
  if (peer.connection.socket.is_open()) lose(peer);
}

/// What came before the end is taken before it is noticed.
void ProcessLink::read(Peer& peer) {
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
    lose(peer);  // it says what no process of ours would
  }
}

void ProcessLink::take(const Peer& from, Frame frame) {
  const std::int32_t speaker = leads() ? from.rank : frame.rank;
  if (frame.rank >= seat_.count || speaker < 0) throw Error(Fault::kMachine, "a frame of no rank");
  if (!leads() && frame.line == Line::kGone)
    return note_gone(BlobReader(frame.payload).read<std::int32_t>());
  const bool for_me = !leads() || frame.rank <= 0;
  if (leads())
    for (Peer& peer : peers_)
      if (peer.rank != from.rank && (frame.rank == kEveryone || frame.rank == peer.rank))
        put(peer, {frame.line, from.rank, frame.payload});
  if (for_me)
    letters_[static_cast<std::size_t>(frame.line)].push_back({speaker, std::move(frame.payload)});
}

void ProcessLink::put(Peer& peer, const Frame& frame) {
  if (!peer.connection.socket.is_open()) return;
  peer.outbox.push_back(to_bytes(frame));
  write(peer);
}

void ProcessLink::lose(Peer& peer) {
  peer.connection.socket.close();
  peer.outbox.clear();
  note_gone(peer.rank);
}

/// Rank 0 tells the others.
void ProcessLink::note_gone(std::int32_t rank) {
  if (rank < 0 || rank >= seat_.count || gone_[static_cast<std::size_t>(rank)]) return;
  gone_[static_cast<std::size_t>(rank)] = true;
  if (!first_gone_) first_gone_ = rank;
  if (leads()) send_all(Line::kGone, blob_of(rank));
}

}  // namespace bubblescope
