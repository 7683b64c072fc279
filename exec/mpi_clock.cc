// Ping-pong with rank 0, each process in its turn.
#include "exec/mpi_clock.h"

#include <vector>

#include "exec/clock_offset.h"
#include "exec/step_clock.h"

namespace bubblescope {

namespace {

constexpr int kRounds = 20;
/// From rank 0's decision to the beginning: enough for all to hear of it.
constexpr Nanos kNotice = 300'000;

/// A time in a letter; empty where `gives_up` came first.
std::optional<Nanos> await_time(MpiPort& port, const std::function<bool()>& gives_up) {
  for (const Patience patience;; patience.wait()) {
    for (const Letter& letter : port.look(Channel::kClock, 1))
      return BlobReader(letter.bytes).read<Nanos>();
    if (gives_up()) return std::nullopt;
  }
}

void send_time(MpiPort& port, std::int32_t peer, Nanos time) {
  BlobWriter writer;
  writer.write(time);
  port.send(peer, Channel::kClock, writer.take());
}

/// Rank 0: invites each, answers its questions, then tells all when to begin.
std::optional<Nanos> lead(MpiPort& port, const std::function<bool()>& gives_up) {
  for (std::int32_t peer = 1; peer < port.count(); ++peer) {
    send_time(port, peer, 0);
    for (int round = 0; round < kRounds; ++round) {
      if (!await_time(port, gives_up)) return std::nullopt;
      send_time(port, peer, read_monotonic_clock());
    }
  }
  const Nanos begin = read_monotonic_clock() + kNotice;
  for (std::int32_t peer = 1; peer < port.count(); ++peer) send_time(port, peer, begin);
  return begin;
}

std::optional<Nanos> follow(MpiPort& port, const std::function<bool()>& gives_up) {
  if (!await_time(port, gives_up)) return std::nullopt;
  std::vector<ClockSample> samples;
  for (int round = 0; round < kRounds; ++round) {
    const Nanos asked = read_monotonic_clock();
    send_time(port, 0, asked);
    const std::optional<Nanos> there = await_time(port, gives_up);
    if (!there) return std::nullopt;
    samples.push_back({asked, *there, read_monotonic_clock()});
  }
  const std::optional<Nanos> begin = await_time(port, gives_up);
  if (!begin) return std::nullopt;
  return *begin + find_clock_offset(samples);
}

}  // namespace

std::optional<Nanos> agree_on_begin(MpiPort& port, const std::function<bool()>& gives_up) {
  return port.rank() == 0 ? lead(port, gives_up) : follow(port, gives_up);
}

}  // namespace bubblescope
